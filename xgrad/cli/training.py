"""A training of ``xgrad train``: what is learnt from what, and the files that are kept of it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.cli import plots
from xgrad.cli.info import blas, versions
from xgrad.cli.progress import Progress
from xgrad.core.tensor import Tensor
from xgrad.data import DataLoader, Split, TensorDataset, TrainTestImages
from xgrad.serialization import serialized
from xgrad.support.files import write, write_together

WEIGHTS, CONFIG, METRICS, TIMING = "weights.safetensors", "config.json", "metrics.jsonl", "timing.jsonl"
PICTURES = ("curves.png", "mistakes.png")


@dataclass(frozen=True)
class Options:
    """What a training depends on, with every default filled in."""

    dataset: str
    device: str
    hidden: tuple[int, ...]
    activation: str
    dropout: float
    optimizer: str
    lr: float
    momentum: float
    weight_decay: float
    schedule: str
    batch_size: int
    epochs: int
    seed: int


def note(text: str) -> None:
    """Say in one line what the user did not ask for."""
    print(f"xgrad train: {text}", file=sys.stderr)


Sums = tuple[Tensor, Tensor]  # of the losses of images, and of how many were classified right


class Tally:
    """Loss and accuracy, added up on the device: to read them is to wait for it, so that is done seldom.

    Attributes
    ----------
    count : int
        How many images were counted.
    sums : tuple of two tensors
        The sum of their losses, and the number of those that were classified right.
    """

    def __init__(self, device: Device) -> None:
        self.count = 0
        self.sums: Sums = xgrad.asarray(0.0, device=device), xgrad.asarray(0, device=device)

    def add(self, count: int, sums: Sums) -> None:
        """Count a batch, given what the sums are with it."""
        self.count += count
        self.sums = sums

    def read(self) -> tuple[float, float]:
        """Return the mean loss and the accuracy so far."""
        loss, right = self.sums
        return loss.item() / self.count, right.item() / self.count


@xgrad.no_grad()
def summed(logits: Tensor, labels: Tensor, mean_loss: Tensor, losses: Tensor, right: Tensor) -> Sums:
    """Return the sums with those of a batch added."""
    return losses + mean_loss * len(labels), right + xgrad.sum(xgrad.argmax(logits, axis=1) == labels)


@dataclass(frozen=True)
class Scaling:
    """Grey values made to have mean 0 and standard deviation 1 over the training images."""

    mean: float
    std: float

    @classmethod
    def of(cls, split: Split) -> Scaling:
        """Return that of the training images."""
        flat = split.images.reshape(-1)
        mean = int(flat.sum(dtype=np.int64)) / flat.size
        squares = int(np.einsum("i,i->", flat, flat, dtype=np.int64))  # exact, and without a copy of the images
        return cls(mean, math.sqrt(squares / flat.size - mean**2))

    def __call__(self, images: np.ndarray, device: Device) -> Tensor:
        """Return images on a device, one row each."""
        rows = images.reshape(len(images), -1).astype(np.float32)
        rows -= self.mean
        rows /= self.std
        return xgrad.asarray(rows, device=device)


def network(options: Options, pixels: int, classes: int, device: Device) -> nn.MLP:
    """Return the network, with new weights."""
    return nn.MLP([pixels, *options.hidden, classes], options.activation, options.dropout, device=device)


def optimizer(options: Options, model: nn.Module) -> optim.Optimizer:
    """Return what takes the steps."""
    parameters, decay = model.parameters(), options.weight_decay
    if options.optimizer == "sgd":
        return optim.SGD(parameters, lr=options.lr, momentum=options.momentum, weight_decay=decay)
    kind = optim.Adam if options.optimizer == "adam" else optim.AdamW
    return kind(parameters, lr=options.lr, weight_decay=decay)


@xgrad.no_grad()
def probabilities(model: nn.Module, images: Tensor) -> np.ndarray:
    """Return the probability of every class, of shape (images, classes)."""
    model.eval()
    batches = DataLoader(TensorDataset(images), batch_size=1000)
    return xgrad.concat([nn.functional.softmax(model(rows), axis=1) for (rows,) in batches]).cpu().numpy()


class Training:
    """One run of the command: what is learnt, and the files that are kept of it.

    After each epoch all files are replaced together: whenever the process is killed, the weights in the folder are
    those that its configuration and the last line of its metrics describe. A kill within the replacement may leave no
    weights: see `write_together`.

    Numbers that the seed determines go to other files than times, so that the former can be compared. Whether steps are
    replayed is a matter of time alone.
    """

    def __init__(
        self, options: Options, data: TrainTestImages, device: Device, out: Path, quiet: bool, capture: bool = False
    ) -> None:
        self.options, self.data, self.device, self.out, self.quiet = options, data, device, out, quiet
        self.scaling = Scaling.of(data.train)
        self.train, self.test = (
            TensorDataset(
                self.scaling(split.images, device), xgrad.asarray(split.labels.astype(np.int64), device=device)
            )
            for split in (data.train, data.test)
        )
        xgrad.manual_seed(options.seed)
        self.model = network(options, self.train.tensors[0].shape[1], data.classes, device)
        self.optimizer = optimizer(options, self.model)
        self.loader = DataLoader(self.train, options.batch_size, shuffle=True)
        self.step: Callable[[Tensor, Tensor, Tensor, Tensor], Sums] = self.learn_batch
        self.check: Callable[[Tensor, Tensor, Tensor, Tensor], Sums] = self.check_batch
        if capture:
            self.step, self.check = xgrad.capture(self.step), xgrad.capture(self.check)
        self.kept = 0  # the last epoch of which all files were written
        self.metrics: list[dict[str, float]] = []
        self.timing: list[dict[str, float]] = []

    def run(self) -> int:
        """Train, and return the exit status."""
        self.say(self.headline())
        try:
            for epoch in range(1, self.options.epochs + 1):
                if not self.epoch(epoch):
                    return 1
            self.draw()
        except KeyboardInterrupt:
            kept = f"{self.out} holds what epoch {self.kept} left" if self.kept else "nothing was written"
            note(f"interrupted: {kept}")
            return 130
        last, tested = self.metrics[-1], len(self.data.test)
        right = round(last["test_accuracy"] * tested)
        print(f"test accuracy {last['test_accuracy']:.2%} ({right} of {tested}); see {self.out}{os.sep}")
        return 0

    def headline(self) -> str:
        """Return what is trained on what."""
        parts = list(self.model.parameters())
        sizes = "-".join(str(n) for n in (parts[0].shape[1], *(p.shape[0] for p in parts[::2])))
        count = sum(p.size for p in parts)
        where = self.device.backend.describe(self.device.index)
        return (
            f"{self.data.name}: {len(self.train)} training and {len(self.test)} test images; "
            f"MLP {sizes}, {count} parameters, {self.options.optimizer} on {self.device} ({where})"
        )

    def say(self, text: str) -> None:
        """Print a line that is not the last."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, number: int) -> bool:
        """Learn from every image once, evaluate, and write; return whether the losses are finite."""
        start = time.perf_counter()
        train_loss, train_accuracy = self.learn(number)
        trained = time.perf_counter()
        test_loss, test_accuracy = self.evaluate()
        evaluated = time.perf_counter()
        if not math.isfinite(train_loss + test_loss):
            note(
                f"expected finite losses, got {train_loss} on the training and {test_loss} on the test images in "
                f"epoch {number}: choose a smaller --lr than {self.options.lr:g}"
            )
            return False
        rate = len(self.train) / (trained - start)
        self.metrics.append(
            {
                "epoch": number,
                "train_loss": train_loss,
                "train_accuracy": train_accuracy,
                "test_loss": test_loss,
                "test_accuracy": test_accuracy,
            }
        )
        self.timing.append(
            {
                "epoch": number,
                "captured": getattr(self.step, "refusal", "not captured") is None,
                "train_seconds": trained - start,
                "test_seconds": evaluated - trained,
                "images_per_second": rate,
            }
        )
        self.write()
        self.say(
            f"epoch {number}/{self.options.epochs}  train loss {train_loss:.4f}  accuracy {train_accuracy:.2%}  "
            f"test loss {test_loss:.4f}  accuracy {test_accuracy:.2%}  {evaluated - start:.1f} s  {rate:.0f} images/s"
        )
        return True

    def learn(self, epoch: int) -> tuple[float, float]:
        """Take the steps of one epoch, and return the mean loss and the accuracy on the way."""
        self.model.train()
        tally = Tally(self.device)
        first = (epoch - 1) * len(self.loader)
        with Progress(f"epoch {epoch}/{self.options.epochs}", len(self.train), self.quiet) as progress:
            for step, (images, labels) in enumerate(self.loader, first):
                self.set_rate(step / (self.options.epochs * len(self.loader)))
                tally.add(len(labels), self.step(images, labels, *tally.sums))
                if progress.due():
                    progress.show(tally.count, *tally.read())
            return tally.read()

    def learn_batch(self, images: Tensor, labels: Tensor, losses: Tensor, right: Tensor) -> Sums:
        """Take a step, and return the sums with those of its images added."""
        logits = self.model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return summed(logits, labels, loss, losses, right)

    def evaluate(self) -> tuple[float, float]:
        """Return the mean loss and the accuracy on the test images."""
        self.model.eval()
        tally = Tally(self.device)
        for images, labels in DataLoader(self.test, batch_size=1000):
            tally.add(len(labels), self.check(images, labels, *tally.sums))
        return tally.read()

    @xgrad.no_grad()
    def check_batch(self, images: Tensor, labels: Tensor, losses: Tensor, right: Tensor) -> Sums:
        """Return the sums with those of a batch added."""
        logits = self.model(images)
        return summed(logits, labels, nn.functional.cross_entropy(logits, labels), losses, right)

    def set_rate(self, done: float) -> None:
        """Choose the learning rate, given which part of the steps is done."""
        if self.options.schedule == "cosine":
            for group in self.optimizer.param_groups:
                group["lr"] = self.options.lr * (1 + math.cos(math.pi * done)) / 2

    def write(self) -> None:
        """Write the files of the run together: weights never stand beside figures or a configuration of others."""
        figures = {
            name: "".join(json.dumps(line) + "\n" for line in lines).encode()
            for name, lines in ((METRICS, self.metrics), (TIMING, self.timing))
        }
        files: dict[str, bytes | None] = {WEIGHTS: serialized(self.model.state_dict())}  # first: see write_together
        files |= {CONFIG: (json.dumps(self.config(), indent=2) + "\n").encode()} | figures
        files |= dict.fromkeys(PICTURES)  # of earlier weights
        write_together({str(self.out / name): content for name, content in files.items()})
        self.kept = len(self.metrics)

    def config(self) -> dict[str, Any]:
        """Return all that is needed to repeat the training, and to use the weights."""
        return asdict(self.options) | {
            "image_shape": self.data.train.images.shape[1:],
            "classes": self.data.classes,
            "class_names": self.data.class_names,
            "grey_values": asdict(self.scaling) | {"largest": self.data.scale},
            "device_description": self.device.backend.describe(self.device.index),
            "data_source": self.data.source,
            "blas": blas(),
            "versions": versions(),
        }

    def draw(self) -> None:
        """Draw the pictures, or say what it takes."""
        title = f"{self.data.name}, {self.options.optimizer}, seed {self.options.seed}"
        certain = probabilities(self.model, self.test.tensors[0])
        test = self.data.test
        try:
            write(self.out / "curves.png", plots.curves(self.metrics, title))
            write(self.out / "mistakes.png", plots.mistakes(test.images, test.labels, certain))
        except ImportError as error:
            note(f"pictures are left out: {error}")
