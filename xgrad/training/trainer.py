"""The training loop, its resumable state, and the base class of callbacks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from xgrad import ops, random
from xgrad.amp import GradScaler, autocast
from xgrad.capture import capture as captured
from xgrad.core.dtypes import float64
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.data.loader import DataLoader, continued_after_errors
from xgrad.distributed import Communicator, DataParallel
from xgrad.distributed.communicator import END_OF_EPOCH
from xgrad.nn import Module
from xgrad.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from xgrad.optim.optimizer import Optimizer
from xgrad.support.signals import SignalDelay
from xgrad.support.states import check_state, load_or_restore

Totals = tuple[Tensor, ...]  # sums of the loss and the metrics over samples, on the device


class Callback:
    """Base class of callbacks, whose methods a `Trainer` calls with itself as `trainer`.

    By default, the methods do nothing.

    Examples
    --------
    >>> import xgrad
    >>> class Print(xgrad.training.Callback):
    ...     def on_epoch_end(self, trainer):
    ...         print(trainer.history[-1])
    """

    def on_fit_start(self, trainer: Trainer) -> None:
        """Called at the start of `fit`."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Called before each epoch, and before the rest of a resumed epoch."""

    def on_batch_end(self, trainer: Trainer) -> None:
        """Called after each step."""

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Called after each epoch and its evaluation; ``trainer.history`` has their figures."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """Called at the end of `fit`, also after an exception."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""


class Trainer:
    """A training loop: steps over batches, an evaluation after each epoch, and callbacks.

    Parameters
    ----------
    model : Module
        The model; its parameters and the batches must be on one device.
    optimizer : Optimizer
        An optimizer of the model's parameters.
    loss : callable
        ``loss(output, targets)`` returns the mean over a batch.
    train_loader : DataLoader
        Training batches ``(inputs, targets)``.
    validation_loader : DataLoader, optional
        Batches to evaluate after each epoch.
    metrics : dict of callable, optional
        Functions of the output and the targets that return a value for each sample, of shape
        (samples,).
    scheduler : LRScheduler, optional
        A scheduler that is stepped after each batch. A `ReduceLROnPlateau` is stepped after each
        epoch, with the validation loss.
    transform : callable, optional
        Random augmentation of the training inputs.
    amp : bool, default False
        Whether to compute matrix products in float16: see `xgrad.amp`.
    capture : bool, default False
        Whether to capture the steps: see `xgrad.capture`.
    callbacks : sequence of Callback
        Callbacks, in the order of their calls. Put callbacks that save the state last.
    parallel : DataParallel, optional
        The processes that share each batch, the same as for `train_loader`. All of them call `fit`,
        `evaluate`, `state_dict` and `load_state_dict`; callbacks that write are for rank 0.

    Attributes
    ----------
    history : list of dict
        The mean losses and metrics of each epoch, such as ``"validation_loss"``.
    timing : list of dict
        The seconds of each epoch, and whether its steps were captured.
    eval_model : Module
        The model that is evaluated: `model`, or the average of `EMA`.
    steps, samples : int
        The number of steps so far, and the number of samples in this epoch.
    should_stop : bool
        Set by a callback to end the training before the next epoch.

    Raises
    ------
    ValueError
        If the optimizer has no parameter of the model, if there is a `ReduceLROnPlateau` but no
        validation loader, if `parallel` and `train_loader` have different processes, or if `amp` is
        combined with sharded state.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.random.randn((64, 3))
    >>> data = xgrad.data.TensorDataset(x, x @ xgrad.asarray([[1.0], [2.0], [3.0]]))
    >>> model = xgrad.nn.Linear(3, 1)
    >>> optimizer = xgrad.optim.Adam(model.parameters(), lr=0.1)
    >>> loader = xgrad.data.DataLoader(data, batch_size=16, shuffle=True)
    >>> trainer = xgrad.training.Trainer(
    ...     model, optimizer, xgrad.nn.functional.mse_loss, loader
    ... )
    >>> first, *_, last = trainer.fit(epochs=10)
    >>> last["train_loss"] < first["train_loss"]
    True
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], Tensor],
        train_loader: DataLoader,
        validation_loader: DataLoader | None = None,
        *,
        metrics: Mapping[str, Callable[[Any, Any], Tensor]] | None = None,
        scheduler: LRScheduler | None = None,
        transform: Callable[[Any], Any] | None = None,
        amp: bool = False,
        capture: bool = False,
        callbacks: Sequence[Callback] = (),
        parallel: DataParallel | None = None,
    ) -> None:
        if isinstance(scheduler, ReduceLROnPlateau) and validation_loader is None:
            raise ValueError(
                "Trainer: expected a validation_loader, whose loss ReduceLROnPlateau follows, got"
                " None"
            )
        if train_loader.ranks is not (parallel and parallel.communicator) or (
            amp and parallel and parallel.sharded
        ):
            raise ValueError(
                "Trainer: expected a train_loader with the ranks of `parallel`, and no amp with"
                " shards"
            )
        if {*map(id, model.parameters())}.isdisjoint(
            id(p) for x in optimizer.param_groups for p in x["params"]
        ):
            raise ValueError(
                "Trainer: expected an optimizer of parameters of the model, got one of other"
                " tensors"
            )
        self.ranks = parallel.communicator if parallel else Communicator()
        self.model = self.eval_model = model
        self.optimizer, self.scheduler, self.callbacks = optimizer, scheduler, callbacks
        self.train_loader = train_loader
        self.validation_loader = validation_loader
        self.capture = capture
        self.device = device = next(model.parameters()).device
        self.scaler = scaler = GradScaler(device, enabled=amp)
        functions = dict(metrics or {})
        self.names = ("loss", *functions)
        parts = ("train",) if validation_loader is None else ("train", "validation")
        self.columns = ("epoch", *(f"{part}_{name}" for part in parts for name in self.names))
        self.history, self.timing = list[dict[str, float]](), list[dict[str, float]]()
        self.epochs = self.steps = self.samples = 0
        self.totals, self.seconds, self.should_stop = self._zeros(), 0.0, False

        # These are functions of the parts: functions of self would create a reference cycle.
        @no_grad()
        def add(totals: Totals, output: Any, targets: Any, mean: Tensor) -> Totals:
            values = [function(output, targets) for function in functions.values()]
            if wrong := [x.shape for x in values if x.shape != (len(targets),)]:
                raise ValueError(
                    f"Trainer: expected a value a sample of metrics, shape ({len(targets)},), got"
                    f" {wrong}"
                )
            sums = (mean * len(targets), *map(ops.sum, values))
            return tuple(total + x.astype(float64) for total, x in zip(totals, sums, strict=True))

        def backward(inputs: Any, targets: Any, *totals: Tensor) -> tuple[Tensor, Totals]:
            with autocast(device, enabled=amp):
                output = model(inputs if transform is None else transform(inputs))
                mean = loss(output, targets)
            optimizer.zero_grad()
            scaler.scale(mean).backward()
            return mean.detach(), add(totals, output, targets, mean)

        def update() -> None:
            scaler.step(optimizer)
            scaler.update()

        def step(*batch: Any) -> Totals:
            _, totals = backward(*batch)
            update()
            return totals

        @no_grad()
        def eval_step(model: Module, inputs: Any, targets: Any, *totals: Tensor) -> Totals:
            output = model(inputs)
            return add(totals, output, targets, loss(output, targets))

        capturing: Callable[[Any], Any] = captured if capture else lambda step: step
        self.captured = capturing(backward if parallel else step)
        between = update if parallel and parallel.sharded else capturing(update)
        self.train_step = (
            parallel.step_between(self.captured, between) if parallel else self.captured
        )
        self.eval_step: Callable[..., Totals] = capturing(eval_step)

    def fit(self, epochs: int) -> list[dict[str, float]]:
        """Train up to a total number of `epochs`, and return the history.

        The total includes the epochs of `load_state_dict`. ValueError is raised if `train_loader`
        has no batches, or if a metric does not return a value for each sample.

        An exception, such as KeyboardInterrupt or an exception of a callback, leaves the state
        after the last step: another call continues with the next batch, as does a trainer that
        loads `state_dict`. Ctrl-C and SIGTERM, if a Python function handles them, wait for the end
        of the step; a second signal of the same kind does not wait, and may leave the step half
        done.
        """
        self.epochs, self.should_stop = epochs, False
        with SignalDelay() as signals:
            try:
                self._call("on_fit_start")
                for _ in range(len(self.history), epochs):
                    self._call("on_epoch_start")
                    if self.should_stop:
                        break
                    self._epoch(signals)
                    self._call("on_epoch_end")
            finally:
                self._call("on_fit_end")
        return self.history

    def _epoch(self, signals: SignalDelay) -> None:
        """Run the steps of an epoch, or the remaining ones, and evaluate."""
        self.model.train()
        resumed = time.perf_counter() - self.seconds
        with continued_after_errors(self.train_loader) as done:
            for inputs, targets in self.train_loader:
                with signals.held():
                    self.totals = self.train_step(inputs, targets, *self.totals)
                    done()
                    if self.scheduler and not isinstance(self.scheduler, ReduceLROnPlateau):
                        self.scheduler.step()
                    self.steps, self.samples = self.steps + 1, self.samples + len(targets)
                    self.seconds = time.perf_counter() - resumed
                self._call("on_batch_end")
            # after `load_state_dict`, rank 0 has the samples of all ranks
            if not (self.samples or self.ranks.rank):
                raise ValueError(
                    "Trainer.fit: expected batches of train_loader, got none: add data, or no"
                    " drop_last"
                )
            means = self.means(*self.ranks.sums(self.totals, self.samples, END_OF_EPOCH))
            trained = time.perf_counter()
            validation = (
                {} if self.validation_loader is None else self.evaluate(self.validation_loader)
            )
            epoch = len(self.history) + 1
            is_captured = getattr(self.captured, "refusal", "") is None
            times = {
                "train_seconds": trained - resumed,
                "validation_seconds": time.perf_counter() - trained,
            }
            figures = dict(
                zip(self.columns, (epoch, *means.values(), *validation.values()), strict=True)
            )
            with signals.held():
                self.history.append(figures)
                self.timing.append({"epoch": epoch, "captured": is_captured, **times})
                self.samples, self.totals, self.seconds = 0, self._zeros(), 0.0
                if isinstance(self.scheduler, ReduceLROnPlateau):
                    self.scheduler.step(validation["loss"])
                done()

    def evaluate(self, loader: DataLoader) -> dict[str, float]:
        """Return the mean loss and metrics of `eval_model` on the batches of `loader`.

        The batches are dealt to the ranks in turn. This waits for the device.
        """
        self.eval_model.eval()
        totals, count = self._zeros(), 0
        for inputs, targets in islice(loader, self.ranks.rank, None, self.ranks.size):
            totals = self.eval_step(self.eval_model, inputs, targets, *totals)
            count = count + len(targets)
        return self.means(*self.ranks.sums(totals, count, "Trainer.evaluate"))

    def means(self, totals: Totals, count: int) -> dict[str, float]:
        """Return totals divided by a number of samples, by name; NaN if the number is 0.

        This waits for the device.
        """
        return {
            name: total.item() / (count or math.nan)
            for name, total in zip(self.names, totals, strict=True)
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state for `xgrad.save`, to continue after the last step bit for bit."""
        totals, samples = self.ranks.sums(self.totals, self.samples, "Trainer.state_dict")
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict() if self.scheduler else {},
            "scaler": self.scaler.state_dict(),
            "loader": self.train_loader.state_dict(),
            "random": random.get_state(),
            "position": {"steps": self.steps, "samples": samples, "seconds": self.seconds},
            "totals": totals,
            "history": [*self.history],
            "timing": [*self.timing],
            "callbacks": {name: part.state_dict() for name, part in self._stateful().items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue in `fit` from the result of `state_dict`, on any device.

        The state must come from a trainer with equal arguments. LookupError, TypeError, ValueError
        or AttributeError is raised for anything else; then nothing is loaded.
        """
        load_or_restore("Trainer.load_state_dict", self._load, state, self.state_dict())

    def _load(self, state: Mapping[str, Any]) -> None:
        position = dict(state["position"])
        history = list(state["history"])
        timing = list(state["timing"])
        totals = tuple(x.to(self.device, dtype=float64) for x in state["totals"])
        if [x.shape for x in totals] != [()] * len(self.names) or any(
            tuple(line) != self.columns for line in history
        ):
            raise ValueError(
                "Trainer.load_state_dict: expected figures of each epoch of"
                f" {', '.join(self.columns)}"
            )
        finite = all(0 <= x < math.inf for line in (position, *timing) for x in line.values())
        numbers = all(isinstance(x, (int, float)) for line in history for x in line.values())
        if len(history) != len(timing) or not finite or not numbers:
            raise ValueError(
                "Trainer.load_state_dict: expected finite numbers of steps, samples and seconds"
            )
        self.model.load_state_dict(state["model"])  # before the optimizer
        self.optimizer.load_state_dict(state["optimizer"])
        for name, part in (("scheduler", self.scheduler), ("scaler", self.scaler)):
            check_state(
                f"Trainer.load_state_dict: {name}", state[name], part.state_dict() if part else {}
            )
            if part:
                part.load_state_dict(state[name])
        callbacks = self._stateful()
        check_state(
            "Trainer.load_state_dict: callbacks",
            dict.fromkeys(state["callbacks"]),
            dict.fromkeys(callbacks),
        )
        for name, callback in callbacks.items():
            callback.load_state_dict(state["callbacks"][name])
        self.train_loader.load_state_dict(state["loader"])
        self.steps = position["steps"]
        self.seconds = position["seconds"]
        self.history = history
        self.timing = timing
        # Rank 0 has the sums of all ranks.
        self.totals, self.samples = (
            (self._zeros(), 0) if self.ranks.rank else (totals, position["samples"])
        )
        random.set_state(state["random"])

    def _stateful(self) -> dict[str, Callback]:
        """Return the callbacks that have a state, by class name.

        Equal names are numbered.
        """
        parts = [
            part for part in self.callbacks if type(part).state_dict is not Callback.state_dict
        ]
        names = [type(part).__name__ for part in parts]
        return {f"{name}{names[:i].count(name) or ''}": parts[i] for i, name in enumerate(names)}

    def _call(self, hook: str) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self)

    def _zeros(self) -> Totals:
        return tuple(ops.zeros((), dtype=float64, device=self.device) for _ in self.names)
