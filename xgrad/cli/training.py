"""A training run of ``xgrad train``: the network, its optimization, and the files of the run."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.cli import plots
from xgrad.cli.checkpoints import Checkpoints, Stopped, stop_signals
from xgrad.cli.info import blas, versions
from xgrad.cli.models import make_model, shifted
from xgrad.cli.progress import Progress
from xgrad.core.tensor import Tensor
from xgrad.data import DataLoader, Split, TensorDataset, TrainTestImages
from xgrad.optim import lr_scheduler
from xgrad.serialization import serialized
from xgrad.support.files import write, write_together

WEIGHTS, CONFIG, METRICS, TIMING = "weights.safetensors", "config.json", "metrics.jsonl", "timing.jsonl"
PICTURES = ("curves.png", "mistakes.png")
METRIC_NAMES = ("epoch", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy")
TIMING_NAMES = ("epoch", "captured", "train_seconds", "validation_seconds", "images_per_second")
FILES = (WEIGHTS, CONFIG, METRICS, TIMING, *PICTURES)

WARM_UP = 0.25  # the fraction of the steps in which the learning rate of onecycle rises


def one_cycle(optimizer: optim.Optimizer, steps: int) -> lr_scheduler.LRScheduler:
    """Return a schedule that rises from 0 and falls to 0, unlike `OneCycleLR`."""

    def factor(step: int) -> float:
        done = step / steps
        return math.sin(math.pi / 2 * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))) ** 2

    return lr_scheduler.LambdaLR(optimizer, factor)


#: The schedule of the learning rate, given the number of steps of the run; stepped after each of them, or each epoch.
SCHEDULES: dict[str, Callable[[optim.Optimizer, int], lr_scheduler.LRScheduler]] = {
    "cosine": lr_scheduler.CosineAnnealingLR,
    "constant": lambda optimizer, steps: lr_scheduler.LambdaLR(optimizer, lambda step: 1.0),
    "linear": lambda optimizer, steps: lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps),
    "step": lambda optimizer, steps: lr_scheduler.StepLR(optimizer, -(-steps // 3)),
    "onecycle": one_cycle,
    "plateau": lambda optimizer, steps: lr_scheduler.ReduceLROnPlateau(optimizer, patience=1),
}

Sums = tuple[Tensor, Tensor]  # sum of the losses of images, and number of correct predictions, on the device
Step = Callable[[Tensor, Tensor, Tensor, Tensor], Sums]


@dataclass(frozen=True)
class Options:
    """Settings of a training run, defaults included."""

    dataset: str
    device: str
    model: str
    hidden: tuple[int, ...]
    activation: str
    dropout: float
    optimizer: str
    lr: float
    momentum: float
    weight_decay: float
    schedule: str
    shift: int
    batch_size: int
    epochs: int
    amp: bool
    validation: int  # the number of training images, the last ones, that are held back
    patience: int  # epochs without a smaller validation loss, 0 for any number
    seed: int


def kinds(state: dict[str, Any]) -> dict[str, Any]:
    """Return the types of the values of a state, and of those in lists."""
    return {name: [*map(type, x)] if isinstance(x, list) else type(x) for name, x in state.items()}


def note(text: str) -> None:
    """Print a remark on standard error, in one line."""
    print(f"xgrad train: {text}", file=sys.stderr)


@xgrad.no_grad()
def add_batch(logits: Tensor, labels: Tensor, mean_loss: Tensor, losses: Tensor, correct: Tensor) -> Sums:
    """Return the sums with a batch added."""
    return losses + mean_loss * len(labels), correct + xgrad.sum(xgrad.argmax(logits, axis=1) == labels)


def means(sums: Sums, count: int) -> tuple[float, float]:
    """Return mean loss and accuracy. This waits for the device."""
    loss, correct = sums
    return loss.item() / count, correct.item() / count


@dataclass(frozen=True)
class Scaling:
    """Standardization of grey values to mean 0 and standard deviation 1 over the training images."""

    mean: float
    std: float

    @classmethod
    def of(cls, split: Split) -> Scaling:
        """Return the scaling of training images."""
        flat = split.images.reshape(-1)
        mean = int(flat.sum(dtype=np.int64)) / flat.size
        squares = int(np.einsum("i,i->", flat, flat, dtype=np.int64))  # exact, and without a copy of the images
        return cls(mean, math.sqrt(squares / flat.size - mean**2))

    def __call__(self, images: np.ndarray, device: Device) -> Tensor:
        """Return scaled images on a device, one row each."""
        rows = images.reshape(len(images), math.prod(images.shape[1:])).astype(np.float32)
        rows -= self.mean
        rows /= self.std
        return xgrad.asarray(rows, device=device)


@xgrad.no_grad()
def probabilities(model: nn.Module, images: Tensor) -> np.ndarray:
    """Return the probabilities of all classes, of shape (images, classes)."""
    model.eval()
    batches = DataLoader(TensorDataset(images), batch_size=1000)
    return xgrad.concat([nn.functional.softmax(model(rows), axis=1) for (rows,) in batches]).cpu().numpy()


@dataclass
class Position:
    """The position in a run: an object of its own, since a captured step reads the attributes of the run."""

    steps: int  # taken so far
    seen: int  # images of this epoch so far
    sums: Sums  # of these images
    start: float  # time at which the epoch began; seconds since then in a checkpoint
    best: dict[str, Tensor]  # weights of the epoch with the smallest validation loss, if there is a validation split


class TrainingRun:
    """One run of the command, with its files and its state, with which it can be resumed.

    After each epoch all files are replaced together. Whenever the process is killed, the weights in the folder are
    those of the last epoch in the metrics, or of the best one if there is a validation split. A kill within the
    replacement may leave no weights: see `write_together`. The test images are evaluated once, after all choices.

    Numbers that the seed determines are in other files than times, so that they can be compared. Whether steps are
    captured affects times only.
    """

    def __init__(
        self, options: Options, data: TrainTestImages, device: Device, out: Path, quiet: bool, capture: bool = False
    ) -> None:
        self.options, self.data, self.device, self.out, self.quiet = options, data, device, out, quiet
        count = len(data.train) - options.validation
        train, held = (
            Split(data.train.images[part], data.train.labels[part]) for part in (slice(count), slice(count, None))
        )
        self.scaling = Scaling.of(train)
        self.train, self.validation, self.test = (
            TensorDataset(
                self.scaling(split.images, device), xgrad.asarray(split.labels.astype(np.int64), device=device)
            )
            for split in (train, held, data.test)
        )
        self.metric_names = METRIC_NAMES if options.validation else METRIC_NAMES[:3]
        height, width = data.train.images.shape[1:]
        self.shape = (height, width)
        self.background = -self.scaling.mean / self.scaling.std
        xgrad.manual_seed(options.seed)
        self.model = make_model(
            options.model, self.shape, data.classes, options.hidden, options.activation, options.dropout
        ).to(device)
        optimizers: dict[str, Callable[..., optim.Optimizer]] = {
            "sgd": partial(optim.SGD, momentum=options.momentum),
            "adam": optim.Adam,
            "adamw": optim.AdamW,
        }
        self.optimizer = optimizers[options.optimizer](
            self.model.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self.loader = DataLoader(self.train, options.batch_size, shuffle=True)
        self.schedule = SCHEDULES[options.schedule](self.optimizer, options.epochs * len(self.loader))
        self.scaler = xgrad.amp.GradScaler(device, enabled=options.amp)
        self.step: Step = self.train_batch
        self.check: Step = self.test_batch
        if capture:
            self.step = xgrad.capture(self.step, state=self.scaler)  # which has tensors in its attributes
            self.check = xgrad.capture(self.check)
        self.saved = 0  # the last epoch with all files written
        self.checkpoint_every, self.keep = 0, 3  # steps between checkpoints, 0 for none, and their number
        self.signals: list[int] = []  # that were received
        self.position = Position(0, 0, self.zero_sums(), 0.0, {})
        self.metrics: list[dict[str, float]] = []
        self.timing: list[dict[str, float]] = []

    def run(self) -> int:
        """Train, and return the exit status."""
        self.say(self.headline())
        checkpoints = self.checkpoints = Checkpoints(self.out, self.keep)
        with stop_signals() as self.signals:
            try:
                for epoch in range(len(self.metrics) + 1, self.options.epochs + 1):
                    if 0 < self.options.patience <= epoch - 1 - self.best_epoch:
                        self.say(f"no smaller validation loss than that of epoch {self.best_epoch}: ended")
                        break
                    if not self.epoch(epoch):
                        return 1
                    self.stop_if_asked()
                if not self.finish():
                    return 1
                self.draw()
            except Stopped as stopped:
                steps = self.position.steps
                if checkpoints.last != steps:
                    checkpoints.write(steps, self.state_dict())
                checkpoints.wait()
                note(f"interrupted after step {steps}: `xgrad train --resume {self.out}` continues")
                return 128 + int(stopped.args[0])
            except KeyboardInterrupt:
                note(f"interrupted: {f'{self.out} holds epoch {self.saved}' if self.saved else 'nothing was written'}")
                return 130
            finally:
                checkpoints.wait()
        accuracy, count = self.metrics[-1]["test_accuracy"], len(self.data.test)
        print(f"test accuracy {accuracy:.2%} ({round(accuracy * count)} of {count}); see {self.out}{os.sep}")
        return 0

    def stop_if_asked(self) -> None:
        """Raise `Stopped` after a signal; called between steps only."""
        if self.signals:
            raise Stopped(self.signals[0])

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to resume the run after the last step, to the same bits."""
        seen = self.position.seen
        return {
            "options": asdict(self.options) | {"checkpoint_every": self.checkpoint_every, "keep": self.keep},
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
            "loader": self.loader.state_dict(),
            "random": xgrad.random.get_state(),
            "position": vars(self.position) | {"start": time.perf_counter() - self.position.start if seen else 0.0},
            "metrics": self.metrics,
            "timing": self.timing,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, on any device; raise an error for what it cannot have returned."""
        position, metrics, timing = Position(**state["position"]), state["metrics"], state["timing"]
        best = {name: x.to(self.device) for name, x in position.best.items()}
        shapes = {name: x.shape for name, x in self.model.state_dict().items()}
        if {name: x.shape for name, x in best.items()} != (shapes if metrics and self.options.validation else {}):
            raise ValueError("the weights of the best epoch are those of another network")
        losses, correct = (x.to(self.device) for x in position.sums)
        numbers = [x for line in (vars(position) | {"sums": 0, "best": 0}, *metrics, *timing) for x in line.values()]
        if losses.shape or correct.shape or not all(0 <= x < math.inf for x in numbers) or len(metrics) != len(timing):
            raise ValueError("the numbers of images, steps or seconds, or the metrics, are of another kind")
        for lines, names in ((metrics, self.metric_names), (timing, TIMING_NAMES)):
            if any(tuple(line) != names for line in lines):
                raise ValueError(f"expected {', '.join(names)} of each epoch")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for part, saved in ((self.schedule, state["schedule"]), (self.scaler, state["scaler"])):
            if kinds(saved) != kinds(part.state_dict()):
                raise ValueError(f"the state of {type(part).__name__} is of another kind")
            part.load_state_dict(saved)
        self.loader.load_state_dict(state["loader"])
        position.sums, position.start, position.best = (losses, correct), -position.start, best
        self.position, self.metrics, self.timing, self.saved = position, metrics, timing, len(metrics)
        xgrad.random.set_state(state["random"])

    def headline(self) -> str:
        """Return a summary of data, network and device."""
        parameters, name = list(self.model.parameters()), self.options.model
        if name == "mlp":
            name = "MLP " + "-".join(str(n) for n in (parameters[0].shape[1], *(p.shape[0] for p in parameters[::2])))
        description = self.device.backend.describe(self.device.index)
        return (
            f"{self.data.name}: {len(self.train)} training and {len(self.test)} test images; "
            f"{name}, {sum(p.size for p in parameters)} parameters, "
            f"{self.options.optimizer} on {self.device} ({description})"
        )

    def say(self, text: str) -> None:
        """Print a line unless only the last line is wanted."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, number: int) -> bool:
        """Train on every image once, evaluate, and write the files; return whether the losses are finite."""
        self.position.start += time.perf_counter()
        start = self.position.start
        train_loss, train_accuracy = self.learn(number)
        trained = time.perf_counter()
        validation: tuple[float, ...] = self.evaluate(self.validation) if self.options.validation else ()
        evaluated = time.perf_counter()
        figures = (number, train_loss, train_accuracy, *validation)
        if not self.finite(figures, "training or validation"):
            return False
        rate = len(self.train) / (trained - start)
        shown = "validation loss {:.4f}  accuracy {:.2%}  ".format(*validation) if validation else ""
        self.metrics.append(dict(zip(self.metric_names, figures, strict=True)))
        best = self.position.best
        if self.options.validation and self.best_epoch == number:
            best = {name: xgrad.asarray(x, copy=True) for name, x in self.model.state_dict().items()}
        self.position = Position(self.position.steps, 0, self.zero_sums(), 0.0, best)
        if isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau):
            self.schedule.step(validation[0])
        captured = getattr(self.step, "refusal", "not captured") is None
        times = (number, captured, trained - start, evaluated - trained, rate)
        self.timing.append(dict(zip(TIMING_NAMES, times, strict=True)))
        self.write()
        self.say(
            f"epoch {number}/{self.options.epochs}  train loss {train_loss:.4f}  accuracy {train_accuracy:.2%}  "
            + shown
            + f"{evaluated - start:.1f} s  {rate:.0f} images/s"
        )
        return True

    @property
    def best_epoch(self) -> int:
        """The epoch with the smallest validation loss, or the last one without a validation split; 0 before any."""
        losses = [line["validation_loss"] for line in self.metrics] if self.options.validation else []
        return losses.index(min(losses)) + 1 if losses else len(self.metrics)

    def finish(self) -> bool:
        """Evaluate the weights of the run on the test images, and write; return whether the loss is finite."""
        if self.position.best:
            self.model.load_state_dict(self.position.best)
        start = time.perf_counter()
        loss, accuracy = self.evaluate(self.test)
        if not self.finite((loss,), "test"):
            return False
        epoch = self.best_epoch
        self.timing.append({"epoch": epoch, "test_seconds": time.perf_counter() - start})
        self.metrics.append({"epoch": epoch, "test_loss": loss, "test_accuracy": accuracy})
        self.write()
        return True

    def finite(self, figures: tuple[float, ...], images: str) -> bool:
        """Return whether figures are finite, or note that they are not."""
        wrong = [x for x in figures if not math.isfinite(x)]
        if wrong:
            lr = self.options.lr
            note(f"expected finite losses, got {wrong[0]} on {images} images: choose a smaller --lr than {lr:g}")
        return not wrong

    def zero_sums(self) -> Sums:
        """Return the sums of no images."""
        return xgrad.asarray(0.0, device=self.device), xgrad.asarray(0, device=self.device)

    def learn(self, epoch: int) -> tuple[float, float]:
        """Take the steps of one epoch, or the rest of them; return mean loss and accuracy during training."""
        self.model.train()
        position = self.position
        with closing(Progress(f"epoch {epoch}/{self.options.epochs}", len(self.train), self.quiet)) as progress:
            for images, labels in self.loader:
                position.sums = self.step(images, labels, *position.sums)
                if not isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau):
                    self.schedule.step()
                position.seen, position.steps = position.seen + len(labels), position.steps + 1
                if progress.due():
                    progress.show(position.seen, *means(position.sums, position.seen))
                if self.checkpoint_every and position.steps % self.checkpoint_every == 0:
                    self.checkpoints.write(position.steps, self.state_dict())
                self.stop_if_asked()
            return means(position.sums, position.seen)

    def train_batch(self, images: Tensor, labels: Tensor, losses: Tensor, correct: Tensor) -> Sums:
        """Take a step; return the sums with its images added."""
        if self.options.shift:
            images = shifted(images, self.shape, self.options.shift, self.background)
        with xgrad.amp.autocast(self.device, enabled=self.options.amp):
            logits = self.model(images)
            loss = nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return add_batch(logits, labels, loss, losses, correct)

    def evaluate(self, images_and_labels: TensorDataset) -> tuple[float, float]:
        """Return mean loss and accuracy on images that are not for training."""
        self.model.eval()
        sums = self.zero_sums()
        for images, labels in DataLoader(images_and_labels, batch_size=1000):
            sums = self.check(images, labels, *sums)
        return means(sums, len(images_and_labels))

    @xgrad.no_grad()
    def test_batch(self, images: Tensor, labels: Tensor, losses: Tensor, correct: Tensor) -> Sums:
        """Return the sums with a batch added."""
        logits = self.model(images)
        return add_batch(logits, labels, nn.functional.cross_entropy(logits, labels), losses, correct)

    def write(self) -> None:
        """Write the files of the run together, so that weights, metrics and configuration belong to one epoch."""
        files: dict[str, bytes | None] = {
            WEIGHTS: serialized(self.position.best or self.model.state_dict())
        }  # first: see write_together
        files[CONFIG] = (json.dumps(self.config(), indent=2) + "\n").encode()
        for name, lines in ((METRICS, self.metrics), (TIMING, self.timing)):
            files[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        files |= dict.fromkeys(PICTURES)  # pictures of earlier weights are removed
        write_together({str(self.out / name): content for name, content in files.items()})
        self.saved = int(max(line["epoch"] for line in self.metrics))

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

    def draw(self) -> None:
        """Write the pictures, or note that matplotlib is missing."""
        title = f"{self.data.name}, {self.options.optimizer}, seed {self.options.seed}"
        predictions = probabilities(self.model, self.test.tensors[0])
        test = self.data.test
        try:
            write(self.out / "curves.png", plots.curves(self.metrics, title))
            write(self.out / "mistakes.png", plots.mistakes(test.images, test.labels, predictions))
        except ImportError as error:
            note(f"pictures are left out: {error}")
