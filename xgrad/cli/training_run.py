"""A training run of ``xgrad train``: the network, its optimization, and the files of the run."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.cli import plots
from xgrad.cli.arguments import command
from xgrad.cli.checkpoints import FOLDER, Checkpoints, Stopped, stop_signals
from xgrad.cli.inference import Scaling, probabilities
from xgrad.cli.info import blas, versions
from xgrad.cli.models import make_model, shifted
from xgrad.cli.settings import SCHEDULES, Options
from xgrad.cli.sources import note
from xgrad.cli.threads import largest_product
from xgrad.data import DataLoader, Split, TensorDataset, TrainTestImages
from xgrad.distributed import Communicator, DataParallel
from xgrad.distributed.processes import fail
from xgrad.serialization import serialized
from xgrad.support.files import Content, json_lines, write, write_together
from xgrad.training import EMA, Callback, EarlyStopping, Progress, TensorBoard, Trainer

WEIGHTS = "weights.safetensors"
CONFIG = "config.json"
METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"
PICTURES = ("curves.png", "mistakes.png")
FILES = (WEIGHTS, CONFIG, METRICS, TIMING, *PICTURES)
CONTENTS = dict(
    zip(
        FILES,
        (
            "the weights, for predict and xgrad.load",
            "settings, versions and device",
            "losses and accuracies of each epoch, and on the test images",
            "seconds and images per second of each epoch",
            "the same losses and accuracies as a picture",
            "misclassified test images",
        ),
        strict=True,
    )
)


class DivergedError(Exception):
    """A loss that is not finite; the arguments are its value and the kind of images."""


class TrainingRun(Callback):
    """The files, messages and checkpoints of one run, as a callback of its `trainer`.

    After each epoch, all files are replaced together. Whenever the process is killed, the weights
    in the folder belong to the last epoch in the metrics, or to the best epoch if there is a
    validation split. A kill during the replacement may leave no weights: see `write_together`. The
    test images are evaluated once, after all choices.

    Numbers that the seed determines are in other files than times, so that they can be compared.
    Whether steps are captured affects times only.
    """

    def __init__(
        self,
        options: Options,
        data: TrainTestImages,
        device: Device,
        out: Path,
        quiet: bool,
        ranks: Communicator | None = None,
    ) -> None:
        # Of several processes, one writes the files.
        self.ranks, self.writes = ranks, ranks is None or ranks.rank == 0
        self.options = options
        self.data = data
        self.device = device
        self.out = out
        self.quiet = quiet
        count = len(data.train) - options.validation
        train, held = (
            Split(data.train.images[part], data.train.labels[part])
            for part in (slice(count), slice(count, None))
        )
        self.scaling = Scaling.of(train)
        self.train, self.validation, self.test = (
            TensorDataset(
                self.scaling(split.images, device),
                xgrad.asarray(split.labels.astype(np.int64), device=device),
            )
            for split in (train, held, data.test)
        )
        height, width = data.train.images.shape[1:]
        self.shape = (height, width)
        self.stopping = EarlyStopping(options.patience or math.inf)
        self.saved = 0  # the last epoch with all files written
        # steps between checkpoints, 0 for none, and the number of checkpoints to keep
        self.checkpoint_every, self.keep = 0, 3
        self.tensorboard: TensorBoard | None = None
        self.signals: list[int] = []  # received so far
        self.threads = ""  # the line on the number of BLAS threads

    def trainer(
        self, capture: bool, tensorboard: bool = False, shard_state: bool = False
    ) -> Trainer:
        """Return the trainer of this run, with a new network.

        Raise ImportError if `tensorboard` is true and tensorboardX is missing.
        """
        options, shape = self.options, self.shape
        xgrad.manual_seed(options.seed)
        model = make_model(
            options.model,
            shape,
            self.data.classes,
            options.hidden,
            options.activation,
            options.dropout,
        ).to(self.device)
        optimizers: dict[str, Callable[..., optim.Optimizer]] = {
            "sgd": partial(optim.SGD, momentum=options.momentum),
            "adam": optim.Adam,
            "adamw": optim.AdamW,
        }
        optimizer = optimizers[options.optimizer](
            model.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        loader = DataLoader(self.train, options.batch_size, shuffle=True, ranks=self.ranks)
        background = -self.scaling.mean / self.scaling.std
        self.tensorboard = TensorBoard(self.out) if tensorboard and self.writes else None
        callbacks = [
            EMA(model, options.ema) if options.ema else None,
            self.stopping if options.validation else None,
            None if self.quiet else Progress("images"),
            self.tensorboard,
            self,
        ]
        return Trainer(
            model,
            optimizer,
            nn.functional.cross_entropy,
            loader,
            DataLoader(self.validation, batch_size=1000) if options.validation else None,
            metrics={"accuracy": lambda logits, labels: xgrad.argmax(logits, axis=1) == labels},
            scheduler=SCHEDULES[options.schedule](optimizer, options.epochs * len(loader)),
            transform=(
                (lambda images: shifted(images, shape, options.shift, background))
                if options.shift
                else None
            ),
            amp=options.amp,
            capture=capture,
            callbacks=[*filter(None, callbacks)],
            parallel=(
                DataParallel(model, optimizer, self.ranks, shard_state) if self.ranks else None
            ),
        )

    def run(self, trainer: Trainer) -> int:
        """Train, and return the exit status."""
        self.say("\n".join(self.headlines(trainer)))
        self.saved = len(trainer.history)
        if self.tensorboard:
            self.tensorboard.folder = self.out / "tensorboard"
        checkpoints = self.checkpoints = Checkpoints(self.out, self.keep)
        with stop_signals() as self.signals:
            try:
                trainer.fit(self.options.epochs)
                if trainer.should_stop:
                    best = self.stopping.best_epoch(trainer.history)
                    self.say(f"no smaller validation loss since epoch {best}: ended")
                accuracy = self.finish(trainer)
                self.draw(trainer)
            except Stopped as stopped:
                if checkpoints.last != trainer.steps:
                    self.write_checkpoint(trainer)
                checkpoints.wait()
                note(
                    f"interrupted after step {trainer.steps}: `xgrad train --resume {self.out}`"
                    " continues"
                )
                return 128 + int(stopped.args[0])
            except DivergedError as error:
                value, images = error.args
                lr = self.options.lr
                note(
                    f"expected finite losses, got {value} on {images} images: choose a smaller --lr"
                    f" than {lr:g}"
                )
                return 1
            except KeyboardInterrupt:
                saved = f"{self.out} holds epoch {self.saved}"
                note(f"interrupted: {saved if self.saved else 'nothing was written'}")
                if self.ranks is not None and self.ranks.size > 1:
                    checkpoints.wait()
                    fail(self.ranks, "was interrupted", 130)  # since others wait for this rank
                return 130
            finally:
                checkpoints.wait()
        count = len(self.data.test)
        see = f"; see {self.out}{os.sep}" if self.quiet else ""
        print(f"test accuracy {accuracy:.2%} ({round(accuracy * count)} of {count}){see}")
        self.say(self.files_and_next())
        return 0

    def files_and_next(self) -> str:
        """Return the files in the folder of the run, and the command that shows them."""
        what = {**CONTENTS, FOLDER + os.sep: "states to resume from"}
        if self.tensorboard:
            what["tensorboard" + os.sep] = "figures by epoch, for TensorBoard"
        there = {name: text for name, text in what.items() if (self.out / name).exists()}
        width = max(map(len, there), default=0) + 2
        return "\n".join(
            [
                f"files in {self.out}{os.sep}:",
                *[f"  {name:{width}}{text}" for name, text in there.items()],
                f"next: {command('report', str(self.out))}",
            ]
        )

    def on_batch_end(self, trainer: Trainer) -> None:
        """Write a checkpoint if one is due."""
        if self.checkpoint_every and trainer.steps % self.checkpoint_every == 0:
            self.write_checkpoint(trainer)
        self.stop_if_asked(trainer)

    def write_checkpoint(self, trainer: Trainer) -> None:
        """Write the state, which all ranks gather."""
        state, self.checkpoints.last = self.state_of(trainer), trainer.steps
        if self.writes:
            self.checkpoints.write(trainer.steps, state)

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Write the files, and print the figures."""
        line, times = trainer.history[-1], trainer.timing[-1]
        self.check_finite(line, "training or validation")
        self.write(trainer)
        shown = "validation loss {validation_loss:.4f}  accuracy {validation_accuracy:.2%}  "
        seconds = times["train_seconds"] + times["validation_seconds"]
        self.say(
            f"epoch {line['epoch']}/{trainer.epochs}  "
            + "train loss {train_loss:.4f}  train accuracy {train_accuracy:.2%}  ".format(**line)
            + (shown.format(**line) if self.options.validation else "")
            + f"{seconds:.1f} s  {len(self.train) / times['train_seconds']:.0f} images/s"
        )
        self.stop_if_asked(trainer)

    def stop_if_asked(self, trainer: Trainer) -> None:
        """Raise `Stopped` after a signal to any rank; called between steps only."""
        signals = (
            [self.signals]
            if self.ranks is None
            else self.ranks.gather_objects(self.signals, "the end of a step")
        )
        if any(signals):
            raise Stopped(max(signals)[0])

    def state_of(self, trainer: Trainer) -> dict[str, Any]:
        """Return the state of a checkpoint: the trainer's state, and the options of the command."""
        options = {
            "checkpoint_every": self.checkpoint_every,
            "keep": self.keep,
            "tensorboard": bool(self.tensorboard),
        }
        return {"options": asdict(self.options) | options, **trainer.state_dict()}

    def load_state_dict_of(self, trainer: Trainer, state: dict[str, Any]) -> None:
        """Continue from a checkpoint, on any device; raise an error for anything else."""
        trainer.load_state_dict(state)
        shapes, best = (
            {name: x.shape for name, x in part.items()}
            for part in (trainer.eval_model.state_dict(), self.stopping.best_weights)
        )
        if best != (shapes if trainer.history and self.options.validation else {}):
            raise ValueError("the weights of the best epoch belong to another network")

    def headlines(self, trainer: Trainer) -> list[str]:
        """Return a summary of data, network, settings, device and threads, a line for each."""
        options, parameters = self.options, list(trainer.model.parameters())
        name = options.model
        if name == "mlp":
            name = "MLP " + "-".join(
                str(n) for n in (parameters[0].shape[1], *(p.shape[0] for p in parameters[::2]))
            )
        count = sum(p.size for p in parameters)
        held = f", {options.validation} validation" if options.validation else ""
        decay = f", weight decay {options.weight_decay:g}" if options.weight_decay else ""
        description = self.device.backend.describe(self.device.index)
        lines = [
            f"{self.data.name}: {len(self.train)} training{held} and {len(self.test)} test images",
            f"network: {name}, {count} parameters",
            f"training: {options.epochs} epoch{'s' * (options.epochs > 1)}, batches of"
            f" {options.batch_size}, {options.optimizer}, lr {options.lr:g}{decay},"
            f" {options.schedule}",
            f"device: {self.device} ({description})",
            self.threads,
        ]
        return [*filter(None, lines)]

    def largest_product(self, trainer: Trainer) -> int:
        """Return the multiply-adds of the largest product of weights with a batch.

        Of several processes, each computes with its part of the batch.
        """
        row, processes = self.train.tensors[0][:1], self.ranks.size if self.ranks else 1
        return largest_product(trainer.model, row, -(-self.options.batch_size // processes))

    def say(self, text: str) -> None:
        """Print a line unless the run is quiet."""
        if not self.quiet:
            print(text, flush=True)

    def finish(self, trainer: Trainer) -> float:
        """Evaluate the run's weights on the test images, write files, and return the accuracy."""
        epoch = len(trainer.history)
        if self.options.validation:
            epoch = self.stopping.best_epoch(trainer.history)
            trainer.eval_model.load_state_dict(self.stopping.best_weights)
        start = time.perf_counter()
        figures = trainer.evaluate(DataLoader(self.test, batch_size=1000))
        self.check_finite(figures, "test")
        seconds = time.perf_counter() - start
        test = {"epoch": epoch, **{f"test_{name}": value for name, value in figures.items()}}
        self.write(trainer, test, {"epoch": epoch, "test_seconds": seconds})
        self.metrics = [*trainer.history, test]
        return figures["accuracy"]

    def check_finite(self, figures: Mapping[str, float], images: str) -> None:
        """Raise `DivergedError` if a figure is not finite."""
        for value in figures.values():
            if not math.isfinite(value):
                raise DivergedError(value, images)

    def write(self, trainer: Trainer, *test: dict[str, float]) -> None:
        """Write the files of the run together.

        Weights, metrics and configuration then belong to one epoch. `test` is the last line of the
        metrics and the last line of the times.
        """
        rates = [
            {"images_per_second": len(self.train) / line["train_seconds"]}
            for line in trainer.timing
        ]
        files: dict[str, Content | None] = {
            # the first file: see `write_together`
            WEIGHTS: serialized(self.stopping.best_weights or trainer.eval_model.state_dict()),
            CONFIG: (json.dumps(self.config(), indent=2) + "\n").encode(),
            METRICS: json_lines([*trainer.history, *test[:1]]),
            TIMING: json_lines(
                [
                    *(line | rate for line, rate in zip(trainer.timing, rates, strict=True)),
                    *test[1:],
                ]
            ),
            **dict.fromkeys(PICTURES),  # pictures of earlier weights are removed
        }
        if self.writes:
            write_together({str(self.out / name): content for name, content in files.items()})
        self.saved = len(trainer.history)

    def config(self) -> dict[str, Any]:
        """Return the settings that repeat the run and describe the weights."""
        return asdict(self.options) | {
            "image_shape": self.shape,
            "classes": self.data.classes,
            "class_names": self.data.class_names,
            "grey_values": asdict(self.scaling) | {"largest": self.data.scale},
            "device_description": self.device.backend.describe(self.device.index),
            "data_source": self.data.source,
            "blas": blas(),
            "versions": versions(),
        }

    def draw(self, trainer: Trainer) -> None:
        """Write the pictures, or note that matplotlib is missing."""
        if not self.writes:
            return
        title = f"{self.data.name}, {self.options.optimizer}, seed {self.options.seed}"
        predictions = probabilities(trainer.eval_model, self.test.tensors[0])
        test = self.data.test
        try:
            write(self.out / "curves.png", plots.curves(self.metrics, title))
            write(self.out / "mistakes.png", plots.mistakes(test.images, test.labels, predictions))
        except ImportError as error:
            note(f"pictures are left out: {error}")
