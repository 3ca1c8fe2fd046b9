"""MNIST to 98 % test accuracy, data loading included: 784-256-128-10, Adam, batches of 128.

Grey values are from 0 to 1. Peers start from equal weights, except scikit-learn, and draw their own
shuffles; both differ between seeds. All epochs of a seed run in one process, and the processes
alternate epoch by epoch until the test accuracy is reached, for at most 12 epochs. Before that,
each process reads the files once, and trains another model on a single batch, since some libraries
import modules at their first step. The time includes reading and unpacking the files, set-up, and
training with shuffles and batches; evaluation is reported separately.

The learning rate is 0.004 in the first epoch and falls by a factor of 0.6 in each epoch. With this
schedule, the accuracy rises steadily. At a constant rate of 0.001, it fluctuates near 98 %, and the
number of epochs, 5 to 20, is random. Since one epoch more or less says nothing about a library, the
seconds are also given for the median number of epochs. `--quick` trains on the embedded digits to
80 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness import Options, UsageError, begin, worker_group
from benchmarks.peers import BATCH
from benchmarks.problems import Images, images
from benchmarks.report import Cells, Result, Table
from benchmarks.worker import peer
from xgrad.data import DataError

PEERS = {
    "xgrad": "xgrad_peer:epochs",
    "xgrad captured": "xgrad_peer:epochs_captured",
    "NumPy by hand": "by_hand:epochs",
    "PyTorch": "pytorch:epochs",
    "PyTorch fused Adam": "pytorch:epochs_fused",
    "PyTorch DataLoader": "pytorch:epochs_loader",
    "scikit-learn": "scikit_learn:epochs",
}
CAP, RATE, DECAY = 12, 4e-3, 0.6
Runs = dict[str, list[list[dict[str, float]]]]  # by peer, seed and epoch


class Training:
    """Training in the process of a peer."""

    def __init__(self, target: str, seed: int, quick: bool, **device: str) -> None:
        sizes = [64, 32, 10] if quick else [784, 256, 128, 10]
        begin = peer(target)
        warm_up, _ = begin(batch(sizes), sizes, seed, **device)
        warm_up(RATE)
        # The first process to allocate this much memory gets it faster than later ones.
        images(quick)
        start = time.perf_counter()
        self.data = images(quick)
        self.train: Callable[[float], Any]
        self.predict: Callable[[Any], Any]
        self.train, self.predict = begin(self.data, sizes, seed, **device)
        self.loading = time.perf_counter() - start

    def epoch(self, number: int) -> dict[str, float]:
        """Train for one epoch, numbered from 1, and return times and accuracy."""
        start = time.perf_counter()
        self.train(RATE * DECAY ** (number - 1))
        trained = time.perf_counter()
        accuracy = float((self.predict(self.data.test) == self.data.test_labels).mean())
        end = time.perf_counter()
        return {
            "loading": self.loading,
            "epoch": trained - start,
            "evaluation": end - trained,
            "accuracy": accuracy,
        }


def batch(sizes: Sequence[int]) -> Images:
    """Return blank images for one batch."""
    x, labels = np.zeros((BATCH, sizes[0]), np.float32), np.arange(BATCH) % sizes[-1]
    return Images(x, labels, x, labels)


def run(options: Options) -> Result:
    options = options.filled(repeats=7)
    result = begin("epoch", __doc__ or "", options)
    (peers,) = options.chosen(PEERS)
    try:
        images(options.quick)
    except DataError as error:
        raise UsageError(str(error)) from error
    result.tables = measured(result, peers, options)
    return result


def measured(
    result: Result, peers: Mapping[str, str], options: Options, **device: str
) -> list[Table]:
    """Return the tables of training runs of all peers."""
    target = 0.8 if options.quick else 0.98
    runs: Runs = {}
    for seed in range(options.repeats or 1):
        arguments = {"seed": seed, "quick": options.quick, **device}
        with worker_group(
            result, peers, "benchmarks.epoch:Training", f"seed {seed}", arguments, options
        ) as group:
            for number in range(1, CAP + 1):
                for name, figures in group.ask("epoch", number=number):
                    if number == 1:
                        runs.setdefault(name, []).append([])
                    runs[name][-1].append(figures)
                    if figures["accuracy"] >= target:
                        group.remove(name)
    accuracies: Cells = {name: {} for name in runs}
    for name, epochs in ((name, epochs) for name, seeds in runs.items() for epochs in seeds):
        for number, figures in enumerate(epochs, 1):
            accuracies[name].setdefault(str(number), []).append(figures["accuracy"])
    details = summary(runs, target)
    times = {name: {"time": cells.pop("seconds")} for name, cells in details.items()}
    return [
        Table(f"Time to {100 * target:g} % test accuracy", "s", times, "bars"),
        Table("Epochs, and seconds by part", "", details),
        Table("Test accuracy by epoch", "", accuracies, corner="epoch"),
    ]


def summary(runs: Runs, target: float) -> Cells:
    """Return the seconds to the target and their parts; seeds that miss the target have none."""
    reached = {
        name: [epochs for epochs in seeds if epochs[-1]["accuracy"] >= target]
        for name, seeds in runs.items()
    }
    pace = median([len(epochs) for seeds in reached.values() for epochs in seeds] or [1])

    def seconds(epochs: list[dict[str, float]]) -> float:
        return epochs[0]["loading"] + sum(figures["epoch"] for figures in epochs)

    return {
        name: {
            "seconds": [seconds(epochs) for epochs in reached[name]],
            "epochs": [float(len(epochs)) for epochs in reached[name]],
            "seeds that reached it": [float(len(reached[name]))],
            f"seconds for {pace:g} epochs": [
                epochs[0]["loading"] + pace * median(figures["epoch"] for figures in epochs)
                for epochs in seeds
            ],
            "seconds an epoch": [figures["epoch"] for epochs in seeds for figures in epochs],
            "seconds of loading": [epochs[0]["loading"] for epochs in seeds],
            "seconds of an evaluation": [
                figures["evaluation"] for epochs in seeds for figures in epochs
            ],
        }
        for name, seeds in runs.items()
    }
