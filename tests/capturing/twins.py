"""A scenario that is played twice, with its steps as they are and captured: all that it shows must be the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, optim, trees
from xgrad.capturing import Captured
from xgrad.nn import functional
from xgrad.parity.evaluate import host

Scenario = Callable[[Callable[..., Any]], Iterator[Any]]


def shown(value: Any) -> Any:
    """Return what there is to see of something, to compare: of an array the bits, where NaNs are all the same."""
    if isinstance(value, (xgrad.Tensor, np.ndarray, np.generic)):
        kind = type(value)
        strides = value._data.strides if isinstance(value, xgrad.Tensor) else value.strides
        array = host(value) if isinstance(value, xgrad.Tensor) else np.asarray(value)
        array = np.array(array)  # a copy
        if array.dtype.kind in "fc":
            for part in (array.real, array.imag) if array.dtype.kind == "c" else (array,):
                part[np.isnan(part)] = np.nan
        # Along an axis of one, and where there are no elements, a stride says nothing.
        layout = tuple([s for s, n in zip(strides, array.shape, strict=True) if n > 1]) if array.size else ()
        wants = isinstance(value, xgrad.Tensor) and value.is_leaf and value.requires_grad  # a walked graph is of no use
        return kind, str(array.dtype), array.shape, layout, wants, array.tobytes()
    if isinstance(value, float):
        return float.hex(value)
    return value


def snapshot(tree: Any) -> list[Any]:
    """Return what there is to see of containers of things."""
    return [str(_containers(tree)), *[(path, shown(leaf)) for path, leaf in trees.leaves(tree)]]


def _containers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree), [(key, _containers(part)) for key, part in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree), [_containers(part) for part in tree]
    return None if tree is None else "leaf"


def played(scenario: Scenario, capture: Callable[..., Any]) -> list[Any]:
    """Return what a scenario shows."""
    return [snapshot(tree) for tree in scenario(capture)]


def alike(expected: list[Any], got: list[Any]) -> None:
    """Compare what two have shown."""
    assert len(expected) == len(got)
    for moment, (one, other) in enumerate(zip(expected, got, strict=True)):
        assert one[0] == other[0], f"moment {moment}: {one[0]} against {other[0]}"
        for (path, a), (_, b) in zip(one[1:], other[1:], strict=True):
            assert a == b, f"moment {moment}, {path or 'value'}: {_brief(a)} against {_brief(b)}"


def _brief(value: Any) -> Any:
    if not (isinstance(value, tuple) and isinstance(value[-1], bytes)):
        return value
    return *value[:-1], np.frombuffer(value[-1], value[1]).reshape(value[2]).tolist()


def twice(scenario: Scenario) -> list[Captured[..., Any]]:
    """Play a scenario with its steps as they are, and captured; return what captured them."""
    expected = played(scenario, lambda step, **options: step)
    captures = []

    def capture(step: Callable[..., Any], **options: Any) -> Any:
        captures.append(xgrad.capture(step, **options))
        return captures[-1]

    alike(expected, played(scenario, capture))
    return captures


def replays(scenario: Scenario, recordings: int | None = None) -> None:
    """Play a scenario twice: no captured step is to be refused, and each recorded so often, if that is given."""
    captures = twice(scenario)
    assert captures
    for captured in captures:
        assert captured.refusal is None
        assert recordings is None or captured.recordings == recordings


def replayed(scenario: Scenario) -> Callable[[], None]:
    """Make a test of a scenario, which is given what captures a step and yields all that is to be the same."""

    @wraps(scenario)
    def test() -> None:
        replays(scenario)

    del test.__wrapped__  # whose argument is none of pytest's
    return test


def all_of(model: Any, *optimizers: Any, gradients: bool = True) -> dict[str, Any]:
    """Return all that a training has: weights, gradients and optimizers."""
    parts: dict[str, Any] = {"weights": model.state_dict()}
    if gradients:
        parts["gradients"] = [p.grad for p in model.parameters()]
    return parts | {"optimizers": [optimizer.state_dict() for optimizer in optimizers]}


# What scenarios are made of


def eagerly(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step as it is."""
    return step


def array(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Return a tensor of random numbers."""
    return xgrad.asarray(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def batch(seed: int, n: int = 6) -> tuple[Any, Any]:
    """Return random inputs of five features, and their classes, one of three."""
    return array(n, 5, seed=seed), xgrad.asarray(np.random.default_rng(seed).integers(0, 3, n))


def network() -> nn.Module:
    """Return a small network with dropout."""
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Dropout(0.3), nn.Linear(4, 3))


def adam(params: Any) -> optim.Optimizer:
    """Return an optimizer."""
    return optim.Adam(params, lr=0.01)


def learning(model: nn.Module, optimizer: optim.Optimizer) -> Callable[[Any, Any], Any]:
    """Return a step of a training, as it is."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def training(capture: Callable[..., Any], opt: Callable[[Any], Any] = adam) -> tuple[Any, Any, Any]:
    """Return a network, its optimizer, and a captured step of a training."""
    xgrad.manual_seed(3)
    model = network()
    optimizer = opt(model.parameters())
    return model, optimizer, capture(learning(model, optimizer))
