"""Scenarios that are played twice, eagerly and with captured steps.

Everything that can be observed must have the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.backend.recording import recording
from xgrad.capture import Captured
from xgrad.nn import functional
from xgrad.parity.run_op import to_numpy
from xgrad.support import trees

#: Whether all programs are compiled at once: ``CAPTURE_NATIVE=1`` in the environment.
NATIVE = os.environ.get("CAPTURE_NATIVE") == "1"
Capture = Callable[..., Any]
Scenario = Callable[[Capture], Iterator[Any]]
# of its executor, or of checks that `cuda` lacks
on_cpu = pytest.mark.parametrize("capturing_device", ["cpu"])


def observed(value: Any) -> Any:
    """Return what can be observed of a value.

    For an array: its type, dtype, shape, strides, and bits. All NaNs have the same bits.
    """
    if isinstance(value, (xgrad.Tensor, np.ndarray, np.generic)):
        strides = value._data.strides if isinstance(value, xgrad.Tensor) else value.strides
        array = np.array(to_numpy(value) if isinstance(value, xgrad.Tensor) else value)
        if array.dtype.kind in "fc":
            for part in (array.real, array.imag) if array.dtype.kind == "c" else (array,):
                part[np.isnan(part)] = np.nan
        # The stride of an axis of length 1, and the strides of an empty array, mean nothing.
        layout = (
            tuple([s for s, n in zip(strides, array.shape, strict=True) if n > 1])
            if array.size
            else ()
        )
        leaf = isinstance(value, xgrad.Tensor) and value.is_leaf and value.requires_grad
        return type(value), str(array.dtype), array.shape, layout, leaf, array.tobytes()
    return float.hex(value) if isinstance(value, float) else value


def snapshot(tree: Any) -> list[Any]:
    """Return what can be observed of containers and their contents."""
    return [str(_containers(tree)), *[(path, observed(leaf)) for path, leaf in trees.leaves(tree)]]


def _containers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree), [(key, _containers(part)) for key, part in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree), [_containers(part) for part in tree]
    return None if tree is None else "leaf"


def play(scenario: Scenario, capture: Capture) -> list[Any]:
    """Return a snapshot of each value that a scenario yields."""
    return [snapshot(tree) for tree in scenario(capture)]


def take_turns_in_threads(turn: int) -> None:
    """Alternate between one thread and two, if all programs are compiled."""
    if NATIVE:
        xgrad.set_num_threads(1 + turn % 2)


def assert_same(expected: list[Any], got: list[Any]) -> None:
    """Compare two lists of snapshots."""
    assert len(expected) == len(got)
    for moment, (one, other) in enumerate(zip(expected, got, strict=True)):
        assert one[0] == other[0], f"moment {moment}: expected {one[0]}, got {other[0]}"
        for (path, a), (_, b) in zip(one[1:], other[1:], strict=True):
            assert a == b, (
                f"moment {moment}, {path or 'value'}: expected {_brief(a)}, got {_brief(b)}"
            )


def _brief(value: Any) -> Any:
    if not (isinstance(value, tuple) and isinstance(value[-1], bytes)):
        return value
    return *value[:-1], np.frombuffer(value[-1], value[1]).reshape(value[2]).tolist()


def compare(scenario: Scenario) -> list[Captured[..., Any]]:
    """Play a scenario eagerly and captured; return the captured steps."""
    expected = play(scenario, eager)
    captures = []

    def capture(step: Callable[..., Any], **options: Any) -> Any:
        captures.append(xgrad.capture(step, **options))
        return captures[-1]

    assert_same(expected, play(scenario, capture))
    assert recording.get() is None
    return captures


def compare_replays(scenario: Scenario, traces: int | None = None) -> None:
    """Play a scenario both ways; no step may be refused.

    If `traces` is given, each step is traced as often.
    """
    captures = compare(scenario)
    assert captures
    for captured in captures:
        assert captured.refusal is None
        assert captured.recordings > 0 if traces is None else captured.recordings == traces


def replayed(scenario: Scenario) -> Callable[[], None]:
    """Return the test of a scenario.

    The scenario takes a function that captures a step, and yields the values to compare.
    """

    @wraps(scenario)
    def test() -> None:
        compare_replays(scenario)

    del test.__wrapped__  # whose parameter is not a fixture
    return test


def everything(model: Any, *optimizers: Any, gradients: bool = True) -> dict[str, Any]:
    """Return the state of a training run: weights, gradients and the state of optimizers."""
    parts: dict[str, Any] = {"weights": model.state_dict()}
    if gradients:
        parts["gradients"] = [p.grad for p in model.parameters()]
    return parts | {"optimizers": [optimizer.state_dict() for optimizer in optimizers]}


def assert_concrete(*things: Any) -> None:
    """Check that no trace runs, and that things hold numbers, and arrays of a real device."""
    assert recording.get() is None
    for thing in things:
        if isinstance(thing, xgrad.Tensor):
            assert (
                type(thing._data) is thing.device.backend.array_type
                and type(thing._placement.device) is Device
            )
            assert thing._leaf is None or type(thing._leaf.placement.device) is Device
            assert_concrete(getattr(thing._leaf, "grad", None))
        elif isinstance(thing, nn.Module):
            assert_concrete(*thing.parameters(), *thing.buffers())
        elif isinstance(thing, optim.Optimizer):
            for group in thing.param_groups:
                assert_concrete(*group["params"])
                options = [x for _, x in trees.leaves({**group, "params": None})]
                assert all(
                    isinstance(x, (int, float, str, type(None), np.generic, np.ndarray))
                    for x in options
                )
            for flat in thing.flats():
                assert type(flat.device) is Device
                assert_concrete(
                    flat.buffer, flat.gradients.buffer, *flat.gradients.views, *flat.arrays.values()
                )
                assert all(isinstance(x, (int, float, np.generic)) for x in flat.numbers.values())


# Parts of scenarios


def eager(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a step as it is."""
    return step


def array(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Return a tensor of random numbers."""
    return xgrad.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def batch(seed: int, n: int = 6) -> tuple[Any, Any]:
    """Return random inputs of five features, and their labels, of three classes."""
    return array(n, 5, seed=seed), xgrad.asarray(np.random.default_rng(seed).integers(0, 3, n))


def network() -> nn.Module:
    """Return a small network with dropout."""
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Dropout(0.3), nn.Linear(4, 3))


def adam(params: Any) -> optim.Optimizer:
    """Return an optimizer."""
    return optim.Adam(params, lr=0.01)


def custom(
    update: Callable[..., Any], elementwise: bool = False, **options: Any
) -> Callable[[Any], optim.Optimizer]:
    """Return a function that makes an optimizer with a given update."""
    methods = {"update": lambda self, *args: update(*args), "elementwise": elementwise}
    return lambda params: type("Custom", (optim.Optimizer,), methods)(params, options)


def training_step(
    model: nn.Module, optimizer: optim.Optimizer, loss_of: Any = None
) -> Callable[..., Any]:
    """Return a training step that is not captured, by default with the cross-entropy loss."""

    def step(x: Any, y: Any = None) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y) if loss_of is None else loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def mean_square(scores: Any, _: Any) -> Any:
    """Return a loss."""
    return (scores**2).mean()


def training(capture: Capture, make: Callable[[Any], Any] = adam) -> tuple[Any, Any, Any]:
    """Return a network, its optimizer, and a captured training step."""
    xgrad.manual_seed(3)
    model = network()
    optimizer = make(model.parameters())
    return model, optimizer, capture(training_step(model, optimizer))
