"""The training loop and its callbacks, compared with a loop by hand.

Continued runs have the bits of uninterrupted runs.
"""

from __future__ import annotations

import gc
import json
import math
import signal
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xgrad
from helpers import check_error
from xgrad import nn, optim, training
from xgrad.cli.settings import settings
from xgrad.cli.train import parser
from xgrad.cli.training_run import TrainingRun
from xgrad.data import DataLoader, TensorDataset, digits
from xgrad.training import EMA, Callback, EarlyStopping, JSONLines, Trainer

METRICS = {"error": lambda y, t: xgrad.abs(y - t)[:, 0]}


def trainer(
    device: str = "cpu", callbacks: Any = (), validation: bool = True, **options: Any
) -> Trainer:
    """Return a trainer of a linear function of 3 numbers, from 40 samples in batches of 16."""
    xgrad.manual_seed(0)
    x = xgrad.random.randn((60, 3), device=device)
    y = x @ xgrad.asarray([[1.0], [-2.0], [3.0]], device=device)
    train, held = (TensorDataset(x[part, ...], y[part, ...]) for part in (slice(40), slice(40, 60)))
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 1)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    options = {
        "metrics": METRICS,
        "scheduler": optim.lr_scheduler.ExponentialLR(optimizer, 0.99),
        **options,
    }
    loaders = DataLoader(train, 16, shuffle=True), DataLoader(held, 16) if validation else None
    callbacks = [make(model) if isinstance(make, type(lambda: 0)) else make for make in callbacks]
    return Trainer(
        model, optimizer, nn.functional.mse_loss, *loaders, callbacks=callbacks, **options
    )


def test_history_has_the_figures_of_a_loop_by_hand(device: str) -> None:
    history = trainer(device, capture=xgrad.Device(device).backend.executor is not None).fit(2)
    reference = trainer(device)
    model, optimizer, scheduler = reference.model, reference.optimizer, reference.scheduler
    assert scheduler is not None and reference.validation_loader is not None
    for line in history:
        model.train()
        sums = [0.0, 0.0]
        for x, y in reference.train_loader:
            output = model(x)
            loss = nn.functional.mse_loss(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            sums[0] += loss.item() * len(y)
            sums[1] += xgrad.sum(xgrad.abs(output - y)).item()
        model.eval()
        x, y = reference.validation_loader.dataset.tensors
        output = model(x)
        expected = [s / 40 for s in sums] + [nn.functional.mse_loss(output, y).item()]
        expected += [xgrad.mean(xgrad.abs(output - y)).item()]
        names = ["train_loss", "train_error", "validation_loss", "validation_error"]
        assert list(line) == ["epoch", *names] and [line[n] for n in names] == pytest.approx(
            expected, rel=1e-4
        )


class Presses(nn.Module):
    """A layer in which Ctrl-C is pressed a number of times in one step."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times, self.passed, self.calls = times, 0, 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        for _ in range(self.times if self.calls == 2 else 0):
            signal.raise_signal(signal.SIGINT)
            self.passed += 1
        return x


def test_signal_waits_for_the_end_of_a_step() -> None:
    whole = trainer(validation=False, capture=False)
    expected = whole.fit(2)
    parts = trainer(validation=False, capture=False)
    handler = signal.getsignal(signal.SIGINT)
    layer = Presses(1)
    parts.model.append(layer)
    with pytest.raises(KeyboardInterrupt):
        parts.fit(2)
    assert (parts.steps, layer.passed, layer.calls) == (2, 1, 2)
    assert signal.getsignal(signal.SIGINT) is handler
    assert parts.fit(2) == expected
    assert [p.tolist() for p in parts.model.parameters()] == [
        p.tolist() for p in whole.model.parameters()
    ]


def test_second_signal_within_a_step_does_not_wait() -> None:
    parts = trainer(validation=False, capture=False)
    layer = Presses(3)
    parts.model.append(layer)
    with pytest.raises(KeyboardInterrupt):
        parts.fit(2)
    assert (parts.steps, layer.passed) == (1, 1)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_that_no_function_handles_are_left_alone(handler: Any) -> None:
    before = signal.signal(signal.SIGTERM, handler)
    seen = []
    try:
        trainer(
            callbacks=[
                hook("on_batch_end", lambda t: seen.append(signal.getsignal(signal.SIGTERM)))
            ]
        ).fit(1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(seen) == {handler}


class StopAt(Callback):
    """An interruption after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_batch_end(self, trainer: Trainer) -> None:
        if trainer.steps == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("step", [2, 3, 5])
def test_loaded_state_continues_to_the_same_bits(step: int, capture: bool, tmp_path: Path) -> None:
    parts = (EarlyStopping(), lambda model: EMA(model, 0.8))
    whole = trainer(callbacks=parts, capture=capture)
    whole.fit(3)
    stopped = trainer(callbacks=(EarlyStopping(), parts[1], StopAt(step)), capture=capture)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(3)
    xgrad.save(stopped.state_dict(), tmp_path / "state")
    resumed = trainer(callbacks=(EarlyStopping(), parts[1]), capture=capture)
    resumed.load_state_dict(xgrad.load(tmp_path / "state"))
    assert resumed.fit(3) == whole.history and len(whole.history) == 3
    states = [
        xgrad.serialization.serialized({**t.state_dict(), "timing": 0}) for t in (whole, resumed)
    ]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": {}},
        {"scheduler": {}},
        {"scaler": {"scale": 2.0}},
        {"callbacks": {}},
        {"loader": {}},
        {"position": {"steps": 1}},
        {"random": {}},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("steps", [0, 5])
def test_state_that_does_not_fit_leaves_the_trainer_as_it_was(steps: int, change: Any) -> None:
    parts = EarlyStopping(), lambda model: EMA(model, 0.8)
    other = trainer(callbacks=parts)
    other.fit(2)
    t = trainer(callbacks=(EarlyStopping(), parts[1], StopAt(steps)))
    if steps:
        with pytest.raises(KeyboardInterrupt):
            t.fit(3)
    before = xgrad.serialization.serialized(t.state_dict())
    with pytest.raises((LookupError, TypeError, ValueError)):
        t.load_state_dict(other.state_dict() | change)
    assert xgrad.serialization.serialized(t.state_dict()) == before


@pytest.mark.parametrize("scheduler", ["CosineAnnealingLR(o, 9)", "MultiStepLR(o, [4])"])
def test_loaded_schedule_of_integers_continues(scheduler: str, tmp_path: Path) -> None:
    def made() -> Trainer:
        t = trainer()
        t.optimizer.param_groups[0]["lr"] = 1
        t.scheduler = eval(f"optim.lr_scheduler.{scheduler}", {"optim": optim, "o": t.optimizer})
        return t

    whole, stopped, resumed = made(), made(), made()
    whole.fit(2)
    xgrad.manual_seed(0)
    stopped.fit(1)
    xgrad.save(stopped.state_dict(), tmp_path / "state")
    resumed.load_state_dict(xgrad.load(tmp_path / "state"))
    resumed.fit(2)
    assert resumed.optimizer.param_groups[0]["lr"] == whole.optimizer.param_groups[0]["lr"] != 1


def test_callbacks_of_one_class_have_a_state_each() -> None:
    saved, loaded = (
        trainer(callbacks=[lambda m: EMA(m, 0.5), lambda m: EMA(m, 0.9)]) for _ in range(2)
    )
    saved.fit(1)
    loaded.load_state_dict(saved.state_dict())
    for a, b in zip(saved.callbacks, loaded.callbacks, strict=True):
        assert xgrad.serialization.serialized(a.state_dict()) == xgrad.serialization.serialized(
            b.state_dict()
        )


def test_callback_with_an_empty_state_at_first_is_loaded() -> None:
    class Count(Callback):
        def __init__(self) -> None:
            self.epochs: dict[str, int] = {}

        def on_epoch_end(self, trainer: Trainer) -> None:
            self.epochs["done"] = len(trainer.history)

        def state_dict(self) -> dict[str, Any]:
            return self.epochs

        def load_state_dict(self, state_dict: Any) -> None:
            self.epochs = dict(state_dict)

    saved, loaded = trainer(callbacks=[Count()]), trainer(callbacks=[Count()])
    saved.fit(2)
    loaded.load_state_dict(saved.state_dict())
    assert loaded.callbacks[0].state_dict() == {"done": 2}


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize(
    ("where", "number"), [("loss", 1), ("loss", 2), ("loss", 5), ("callback", 3), ("metric", 6)]
)
def test_fit_after_an_exception_continues_to_the_same_bits(
    where: str, number: int, saves: bool
) -> None:
    whole, calls = trainer(), Counter[str]()
    whole.fit(3)

    def failing(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            calls[name] += 1
            if name == where and calls[name] == number:
                raise KeyboardInterrupt
            return function(*args)

        return call

    def made() -> Trainer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nn.functional, "mse_loss", failing("loss", nn.functional.mse_loss))
            # the sixth batch is one of the validation
            metrics = {"error": failing("metric", METRICS["error"])}
            return trainer(
                callbacks=[hook("on_batch_end", failing("callback", lambda t: None))],
                metrics=metrics,
            )

    stopped = made()
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(3)
    if saves:
        state, stopped = stopped.state_dict(), made()
        stopped.load_state_dict(state)
    assert stopped.fit(3) == whole.history and stopped.steps == whole.steps == 9
    assert [p.tolist() for p in stopped.model.parameters()] == [
        p.tolist() for p in whole.model.parameters()
    ]


class Stream:
    """Samples without a number of them."""

    def __init__(self, data: TensorDataset) -> None:
        self.data = data

    def __iter__(self) -> Iterator[Any]:
        return iter([self.data[i] for i in range(len(self.data))])


def test_second_epoch_of_a_stream_that_is_exhausted_is_refused() -> None:
    t = trainer()
    once = iter(Stream(t.train_loader.dataset))
    t.train_loader = DataLoader(type("Once", (), {"__iter__": lambda self: once})(), 16)
    check_error(
        "fit(2)",
        "ValueError: Trainer.fit: expected batches of train_loader, got none: add data",
        fit=t.fit,
    )
    assert len(t.history) == 1


def test_validation_loader_may_have_no_length_or_no_samples() -> None:
    t = trainer()
    held = t.validation_loader.dataset
    t.validation_loader = DataLoader(Stream(held), 16)
    (line,) = t.fit(1)
    assert t.evaluate(DataLoader(held, 16))["loss"] == line["validation_loss"]
    t.validation_loader = DataLoader(TensorDataset(xgrad.ones((0, 3)), xgrad.ones((0, 1))))
    assert math.isnan(t.fit(2)[1]["validation_loss"])


def test_ema_is_evaluated_in_place_of_the_model() -> None:
    t = trainer(callbacks=[lambda model: EMA(model, 0.75)])
    assert isinstance(t.callbacks[0], EMA)
    steps = []
    t.callbacks = [
        *t.callbacks,
        hook("on_batch_end", lambda t: steps.append(t.model[0].weight.detach().tolist())),
    ]
    (line,) = t.fit(1)
    average: Any = xgrad.asarray(steps[0])
    for weight in steps[1:]:
        average = 0.75 * average + 0.25 * xgrad.asarray(weight)
    assert xgrad.allclose(t.eval_model[0].weight, average) and not xgrad.allclose(
        t.model[0].weight, average
    )
    assert (
        t.validation_loader is not None
        and t.evaluate(t.validation_loader)["loss"] == line["validation_loss"]
    )


@pytest.mark.parametrize("tqdm", [False, True])
def test_progress_of_samples_without_a_number_is_shown(
    tqdm: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(training.callbacks, "LINE_SECONDS", 0)
    t = trainer(callbacks=[training.Progress()])
    t.train_loader = DataLoader(Stream(t.train_loader.dataset), 16)
    t.fit(1)
    assert ("epoch 1/1: 16/? samples, train: loss " in capsys.readouterr().err) == (not tqdm)


@pytest.mark.parametrize("capture", [False, True])
def test_epoch_without_batches_and_metric_that_is_a_mean_are_refused(capture: bool) -> None:
    t = trainer(capture=capture)
    t.train_loader = DataLoader(t.train_loader.dataset, 41, drop_last=True)
    check_error(
        "fit(1)",
        "ValueError: Trainer.fit: expected batches of train_loader, got none: add data",
        fit=t.fit,
    )
    for mean in (lambda y, t: xgrad.mean(xgrad.abs(y - t)), lambda y, t: xgrad.abs(y - t)):
        t = trainer(capture=capture, metrics={"error": mean})
        shape = mean(xgrad.ones((16, 1)), xgrad.ones((16, 1))).shape
        error = (
            "ValueError: Trainer: expected a value a sample of metrics, shape (16,), got"
            f" [{shape}]…"
        )
        check_error("fit(1)", error, fit=t.fit)


def hook(name: str, function: Any) -> Callback:
    """Return a callback with one method."""
    return type("Hook", (Callback,), {name: lambda self, trainer: function(trainer)})()


def test_early_stopping_keeps_the_weights_of_the_best_epoch() -> None:
    stopping, weights = EarlyStopping(patience=2, monitor="validation_error", mode="max"), []
    t = trainer(
        callbacks=[
            hook("on_epoch_end", lambda t: weights.append(t.model[0].weight.tolist())),
            stopping,
        ]
    )
    history = t.fit(50)
    values = [line["validation_error"] for line in history]
    best = values.index(max(values))
    assert t.should_stop and len(history) == best + 3 and stopping.best_epoch(history) == best + 1
    assert stopping.best_weights["0.weight"].tolist() == weights[best] != weights[-1]
    assert t.fit(50) is history and len(history) == best + 3, "it stays stopped"
    nan = [{"validation_error": x} for x in (math.nan, 1.0, math.nan)]
    assert stopping.best_epoch(nan) == 2 and stopping.best_epoch([]) == 0


def test_json_lines_are_the_history(tmp_path: Path) -> None:
    history = trainer(callbacks=[JSONLines(tmp_path / "log")]).fit(2)
    assert [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()] == history


def test_callbacks_are_called_in_order_and_at_the_end_of_an_interrupted_fit() -> None:
    calls: list[str] = []
    hooks = "on_fit_start on_epoch_start on_batch_end on_epoch_end on_fit_end".split()
    parts = [
        hook(name, lambda t, name=name: calls.append(name.removeprefix("on_"))) for name in hooks
    ]
    trainer(callbacks=parts).fit(1)
    assert (
        " ".join(calls) == "fit_start epoch_start batch_end batch_end batch_end epoch_end fit_end"
    )
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        trainer(callbacks=[*parts, StopAt(1)]).fit(1)
    assert " ".join(calls) == "fit_start epoch_start batch_end fit_end"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "plateau()",
            (
                "ValueError: Trainer: expected a validation_loader, whose loss ReduceLROnPlateau"
                " follows"
            ),
        ),
        (
            "trainer(validation=False, callbacks=[EarlyStopping()]).fit(1)",
            (
                "ValueError: EarlyStopping: expected a monitor of ('train_loss', 'train_error'),"
                " got 'validation_loss'"
            ),
        ),
        (
            "EarlyStopping(mode='auto')",
            "ValueError: EarlyStopping: expected mode 'min' or 'max', got 'auto'",
        ),
        (
            "EMA(xp.nn.Linear(1, 1), 2)",
            "ValueError: get_ema_avg_fn: expected a decay from 0 to 1, got 2",
        ),
        (
            "load(totals=())",
            "ValueError: Trainer.load_state_dict: expected figures of each epoch of epoch, train",
        ),
        (
            "load(timing=[{}])",
            "ValueError: Trainer.load_state_dict: expected finite numbers of steps",
        ),
        (
            "load(scheduler={})",
            (
                "ValueError: Trainer.load_state_dict: scheduler: expected ['_last_lr', …"
                " 'last_epoch'], got []"
            ),
        ),
        (
            "trainer().load_state_dict({})",
            "ValueError: Trainer.load_state_dict: expected ['callbacks', … got []",
        ),
        (
            "trainer().load_state_dict(3)",
            "ValueError: Trainer.load_state_dict: expected ['callbacks', … got int",
        ),
        (
            "load(callbacks={'EMA': {}})",
            "ValueError: Trainer.load_state_dict: callbacks: expected [], got ['EMA']",
        ),
    ],
)
def test_wrong_argument_is_named(call: str, expected: str) -> None:
    def plateau() -> Trainer:
        scheduler = optim.lr_scheduler.ReduceLROnPlateau(
            optim.SGD([xgrad.ones(1, requires_grad=True)], lr=0.1)
        )
        return trainer(validation=False, scheduler=scheduler)

    def load(**change: Any) -> None:
        t = trainer()
        t.load_state_dict(t.state_dict() | change)

    check_error(
        call,
        expected,
        plateau=plateau,
        load=load,
        trainer=trainer,
        EarlyStopping=EarlyStopping,
        EMA=EMA,
    )


def events(folder: Path) -> dict[tuple[str, int], float]:
    """Return the scalars in the event files of a folder, by name and step."""
    event_pb2, scalars = pytest.importorskip("tensorboardX.proto.event_pb2"), {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:  # records: the length, its checksum, an event, its checksum
            size = int.from_bytes(content[:8], "little")
            event = event_pb2.Event.FromString(content[12 : 12 + size])
            scalars |= {
                (value.tag, event.step): value.simple_value for value in event.summary.value
            }
            content = content[16 + size :]
    return scalars


def test_tensorboard_has_the_figures_of_each_epoch(tmp_path: Path) -> None:
    pytest.importorskip(
        "tensorboardX", reason="needs tensorboardX: pip install 'xgrad[tensorboard]'"
    )
    t = trainer(callbacks=[training.TensorBoard(tmp_path)])
    t.fit(1)
    first = events(tmp_path)
    history = t.fit(2)
    expected = {}
    for line in history:
        for name in t.columns[1:]:
            part, metric = name.split("_")
            expected[f"{metric}/{part}", line["epoch"]] = pytest.approx(line[name])
    rates = {("lr/0", epoch): pytest.approx(0.1 * 0.99 ** (3 * epoch)) for epoch in (1, 2)}
    scalars = events(tmp_path)
    assert scalars == expected | rates and first.items() < scalars.items()


def test_missing_tensorboard_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(
        ImportError, match=r"tensorboardX is missing .*: pip install 'xgrad\[tensorboard\]'"
    ):
        training.TensorBoard(tmp_path)


# Memory


def test_run_of_the_command_line_is_released_without_the_collector(tmp_path: Path) -> None:
    options = """digits --hidden 4 --batch-size 500 --epochs 1 --device cpu --validation 20
        --patience 2"""
    data = digits()
    args = parser().parse_args(options.split())
    gc.collect()
    gc.disable()
    try:
        run = TrainingRun(
            settings(args, data, xgrad.Device("cpu")), data, xgrad.Device("cpu"), tmp_path, True
        )
        loop = run.trainer(capture=True)
        loop.fit(1)
        parts = [
            weakref.ref(x)
            for x in (run, loop, loop.model, loop.optimizer, loop.train_step, run.train)
        ]
        assert loop.train_step.refusal is None
        del run, loop
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()


def test_optimizer_of_another_model_is_refused() -> None:
    net, other = nn.Linear(2, 1), nn.Linear(2, 1)
    loader = DataLoader(TensorDataset(xgrad.ones((4, 2)), xgrad.ones((4, 1))))
    with pytest.raises(ValueError, match="expected an optimizer of parameters of the model"):
        Trainer(net, optim.SGD(other.parameters(), lr=0.1), nn.MSELoss(), loader)


def test_fraction_of_epochs_is_refused() -> None:
    net = nn.Linear(2, 1)
    loader = DataLoader(TensorDataset(xgrad.ones((4, 2)), xgrad.ones((4, 1))))
    trainer = Trainer(net, optim.SGD(net.parameters(), lr=0.1), nn.MSELoss(), loader)
    epochs: Any = 2.5
    with pytest.raises(TypeError, match="integer"):
        trainer.fit(epochs)
    assert trainer.steps == 0
