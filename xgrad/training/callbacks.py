"""Callbacks of a training loop: logging, progress, weight averaging, early stopping."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from xgrad.capture import capture
from xgrad.core.tensor import Tensor
from xgrad.nn import Module
from xgrad.optim.swa_utils import AveragedModel, get_ema_avg_fn
from xgrad.support.files import json_lines, write
from xgrad.support.hints import import_optional
from xgrad.training.trainer import Callback, Trainer

BAR_SECONDS, LINE_SECONDS = 0.2, 5.0  # between two updates of the progress bar or lines


class EMA(Callback):
    """Evaluate an exponential moving average of the weights instead of the weights.

    The average is updated after each step. Floating-point buffers, such as running statistics, are
    averaged, too.

    Parameters
    ----------
    model : Module
        The model of the trainer.
    decay : float, default 0.999
        The weight of the previous average, from 0 to 1: see `get_ema_avg_fn`.

    Attributes
    ----------
    average : AveragedModel
        The average; ``average.module`` becomes ``trainer.eval_model``.

    Raises
    ------
    ValueError
        If the decay is not from 0 to 1.

    Examples
    --------
    >>> import xgrad
    >>> ema = xgrad.training.EMA(xgrad.nn.Linear(2, 1), decay=0.99)
    """

    def __init__(self, model: Module, decay: float = 0.999) -> None:
        self.average = AveragedModel(model, avg_fn=get_ema_avg_fn(decay), use_buffers=True)

    def on_fit_start(self, trainer: Trainer) -> None:
        trainer.eval_model, update = self.average.module, self.average.update_parameters
        self._update = capture(update) if trainer.capture else update

    def on_batch_end(self, trainer: Trainer) -> None:
        self._update(trainer.model)

    def state_dict(self) -> dict[str, Any]:
        return self.average.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.average.load_state_dict(state_dict)


class EarlyStopping(Callback):
    """Keep the weights of the best epoch, and stop after a number of epochs without a better one.

    Parameters
    ----------
    patience : float, default inf
        The number of epochs without a better one after which training stops.
    monitor : str, default "validation_loss"
        A name in the history.
    mode : {"min", "max"}, default "min"
        Whether lower or higher values are better.

    Attributes
    ----------
    best_weights : dict
        The ``state_dict()`` of the best epoch, for ``model.load_state_dict``.

    Raises
    ------
    ValueError
        If `mode` is neither of these; in `Trainer.fit`, if the history has no such name.

    Examples
    --------
    >>> import xgrad
    >>> stopping = xgrad.training.EarlyStopping(patience=3)
    >>> stopping.best_epoch([{"validation_loss": loss} for loss in (0.5, 0.3, 0.4)])
    2
    """

    def __init__(
        self, patience: float = math.inf, monitor: str = "validation_loss", mode: str = "min"
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: expected mode 'min' or 'max', got {mode!r}")
        self.patience, self.monitor, self.sign = patience, monitor, 1 if mode == "min" else -1
        self.best_weights: dict[str, Tensor] = {}

    def best_epoch(self, history: Iterable[Mapping[str, float]]) -> int:
        """Return the number of the best epoch in `history`, the first on ties; 0 if it is empty."""
        values = [self.sign * line[self.monitor] for line in history]
        return (
            min(range(len(values)), key=lambda i: (math.isnan(values[i]), values[i])) + 1
            if values
            else 0
        )

    def on_epoch_start(self, trainer: Trainer) -> None:
        if self.monitor not in trainer.columns:
            raise ValueError(
                f"EarlyStopping: expected a monitor of {trainer.columns[1:]}, got {self.monitor!r}"
            )
        trainer.should_stop |= (
            len(trainer.history) - self.best_epoch(trainer.history) >= self.patience
        )

    def on_epoch_end(self, trainer: Trainer) -> None:
        if self.best_epoch(trainer.history) == len(trainer.history):
            self.best_weights = trainer.eval_model.state_dict()

    def state_dict(self) -> dict[str, Any]:
        return {"best_weights": self.best_weights}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.best_weights = dict(state_dict["best_weights"])


class JSONLines(Callback):
    """Write the history to a file after each epoch, with one JSON object per line.

    The file is complete at any time.

    Parameters
    ----------
    path : str or path
        The file; an existing one is replaced.

    Examples
    --------
    >>> import xgrad
    >>> log = xgrad.training.JSONLines("metrics.jsonl")
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def on_epoch_end(self, trainer: Trainer) -> None:
        write(self.path, json_lines(trainer.history))


class TensorBoard(Callback):
    """Write losses, metrics and learning rates of each epoch for TensorBoard.

    The package tensorboardX writes the files.

    Parameters
    ----------
    folder : str or path
        The folder for event files; a resumed run adds a file.

    Raises
    ------
    ImportError
        If tensorboardX is missing: ``pip install 'xgrad[tensorboard]'``.

    Examples
    --------
    >>> import xgrad
    >>> log = xgrad.training.TensorBoard("runs/logs")  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = import_optional("tensorboardX", "tensorboard").SummaryWriter
        self.folder = folder

    def on_fit_start(self, trainer: Trainer) -> None:
        # the file name must differ from the file of an earlier `fit`
        first, name = len(trainer.history) + 1, f".{trainer.steps}"
        self.writer = self._writer(str(self.folder), purge_step=first, filename_suffix=name)

    def on_epoch_end(self, trainer: Trainer) -> None:
        rates = {f"lr/{i}": group["lr"] for i, group in enumerate(trainer.optimizer.param_groups)}
        for name, value in (trainer.history[-1] | rates).items():
            part, _, metric = name.partition("_")
            if name != "epoch":
                self.writer.add_scalar(
                    f"{metric}/{part}" if metric else name, value, len(trainer.history)
                )

    def on_fit_end(self, trainer: Trainer) -> None:
        self.writer.close()


class Progress(Callback):
    """Show the progress of each epoch and of the whole training on standard error.

    On a terminal, tqdm draws a bar; without tqdm, the progress is printed as lines. Updates are
    rare, since reading the figures waits for the device.

    Parameters
    ----------
    unit : str, default "samples"
        The name of the samples.

    Examples
    --------
    >>> import xgrad
    >>> progress = xgrad.training.Progress(unit="images")
    """

    def __init__(self, unit: str = "samples") -> None:
        self.unit = unit
        self.options = {"leave": False, "dynamic_ncols": True, "mininterval": 0, "miniters": 1}
        self.bar: Any = None

    def on_fit_start(self, trainer: Trainer) -> None:
        self.fit_start, self.resumed = time.perf_counter(), -1.0

    def on_epoch_start(self, trainer: Trainer) -> None:
        self.start = self.shown = time.perf_counter()
        self.label = f"epoch {len(trainer.history) + 1}/{trainer.epochs}"
        # 0 if the length is unknown
        self.count = (
            getattr(trainer.train_loader.dataset, "__len__", lambda: 0)() // trainer.ranks.size
        )
        if self.resumed < 0:
            self.resumed = self._done(trainer)
        self.interval = LINE_SECONDS
        with suppress(ImportError):
            # with disable=None, tqdm draws a bar only on a terminal
            tqdm = import_optional("tqdm", "cli").tqdm
            self.bar = tqdm(
                desc=self.label,
                total=self.count or None,
                unit=self.unit,
                bar_format="{desc} {percentage:3.0f}%|{bar}|" if self.count else None,
                disable=None,
                **self.options,
            )
            self.interval = math.inf if self.bar.disable else BAR_SECONDS

    def on_batch_end(self, trainer: Trainer) -> None:
        now, seen = time.perf_counter(), trainer.samples
        if now - self.shown < self.interval:
            return
        self.shown = now
        means = trainer.means(trainer.totals, seen)
        figures = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        text = f"{self._total(trainer, now)}train: {figures}"
        if self.bar is not None:
            # narrower than 80 columns with two figures; braces would be fields of the format
            text = text.replace("{", "{{").replace("}", "}}")
            part = " {percentage:3.0f}%|{bar}|" if self.count else " {n_fmt} {unit},"
            self.bar.bar_format = f"{{desc}}{part} {text}"
            self.bar.update(seen - self.bar.n)
        else:
            rate = f"{seen / (now - self.start):.0f} {self.unit}/s"
            print(
                f"{self.label}: {seen}/{self.count or '?'} {self.unit}, {text}, {rate}",
                file=sys.stderr,
            )

    def _done(self, trainer: Trainer) -> float:
        """Return the fraction of the training that is done."""
        part = trainer.samples / self.count if self.count else 0.0
        return (len(trainer.history) + part) / trainer.epochs

    def _total(self, trainer: Trainer, now: float) -> str:
        """Return the progress of the whole training, and the time that is left of it."""
        done = self._done(trainer)
        if done <= self.resumed:  # of samples without a number, in the first epoch
            return ""
        left = (now - self.fit_start) * (1 - done) / (done - self.resumed)
        clock = str(timedelta(seconds=round(left))).removeprefix("0:")
        return f"total {done:.0%}, {clock} left, "

    def on_fit_end(self, trainer: Trainer) -> None:
        if self.bar is not None:
            self.bar.close()

    on_epoch_end = on_fit_end
