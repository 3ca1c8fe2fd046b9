"""A backend's fused kernels against the generic rules that they replace, on its own device, where no row of ops leads.

The rows of ops lead to the kernels of ops and of their gradients, on short inputs, and the draws to those of random
numbers. Here are the updates of optimizers, and rows that are too long for differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xgrad import ops
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops.nn import _cross_entropy
from xgrad.optim.adam import adam_step
from xgrad.optim.sgd import sgd_step

LENGTH = 1500  # of rows, which a block of threads then works on, not one of its warps
ELEMENTS = 1003  # of parameters
LIMIT = 32
REASON = (
    "An update is the operations of the generic rule in their order, each rounded by itself, and must have the same "
    "bits, whether its factors are numbers or read from memory. Rows are summed in another order: their largest error "
    f"may be {LIMIT} times the precision of the largest result, of a sum of {LENGTH} terms of one size."
)


@dataclass(frozen=True)
class Fused:
    """The largest difference between a kernel and its generic rule, in units of the precision of the largest result."""

    device: str
    what: str
    dtype: str
    error: float
    limit: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is tolerated."""
        return self.error <= self.limit


@dataclass(frozen=True)
class Case:
    """What a kernel, known by name, is called with: NumPy's arrays, which it may change, numbers, and other options."""

    kernel: str
    generic: Callable[..., Any]
    arguments: Callable[[str], tuple[Any, ...]]
    options: dict[str, Any]
    limit: float = 0.0
    factors: bool = False  # whether its floats may be arrays as well
    residual: bool = False  # whether it puts something aside, which is its own affair


def _update(step: Callable[..., Any], arguments: Callable[[str], tuple[Any, ...]], *, factors: bool) -> Case:
    return Case(step.__name__, OVERRIDABLE[step.__name__].generic, arguments, {}, factors=factors)


def _sgd(
    momentum: float, decay: float, *, begins: bool = False, nesterov: bool = False, maximize: bool = False
) -> Case:
    def arguments(dtype: str) -> tuple[Any, ...]:
        p, g, buffer = _numbers(3, (ELEMENTS,), dtype)
        kept = None if begins or not momentum else buffer
        return p, g, kept, 0.1, decay, momentum, 1.0 if nesterov else 0.7, nesterov, maximize

    return _update(sgd_step, arguments, factors=bool(momentum))


def _adam(shrink: float, decay: float, *, amsgrad: bool = False, maximize: bool = False) -> Case:
    def arguments(dtype: str) -> tuple[Any, ...]:
        p, g, m, v, largest = _numbers(5, (ELEMENTS,), dtype)
        most = np.abs(largest) if amsgrad else None
        return p, g, m, np.abs(v), most, 0.9, 0.999, shrink, decay, 1e-8, 1e-3, maximize

    return _update(adam_step, arguments, factors=True)


def _rows(name: str) -> Iterator[tuple[str, Case]]:
    forward = getattr(ops, name).function.forward
    yield f"{name} of long rows", Case(name, forward, lambda t: tuple(_numbers(1, (3, LENGTH), t)), {"axis": -1}, LIMIT)

    def arguments(dtype: str) -> tuple[Any, ...]:
        x, g = _numbers(2, (3, LENGTH), dtype)
        return g, forward(Device("cpu").xp, x, axis=-1), -1

    gradient = f"{name}_gradient"
    yield f"the gradient of {name} of long rows", Case(gradient, OVERRIDABLE[gradient].generic, arguments, {}, LIMIT)


def _losses(dtype: str) -> tuple[Any, ...]:
    return *_numbers(1, (3, LENGTH), dtype), np.array([0, LENGTH - 1, 7])


def _gradients_of_losses(dtype: str) -> tuple[Any, ...]:
    x, target = _losses(dtype)
    _, scale = _LOSS.forward(Device("cpu").xp, x, target, reduction="mean", label_smoothing=0.1)
    return np.array(0.7, dtype), x, target, "mean", 0.1, scale


def _numbers(count: int, shape: tuple[int, ...], dtype: str) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(0)
    return (generator.normal(size=shape).astype(dtype) for _ in range(count))


_LOSS = _cross_entropy.function  # type: ignore[attr-defined]

CASES: dict[str, Case] = {
    "SGD": _sgd(0.0, 0.01),
    "SGD with momentum, the first step": _sgd(0.9, 0.01, begins=True, maximize=True),
    "SGD with momentum": _sgd(0.9, 0.0),
    "SGD with Nesterov's momentum": _sgd(0.9, 0.01, nesterov=True),
    "Adam": _adam(1.0, 0.01),
    "Adam with amsgrad": _adam(1.0, 0.0, amsgrad=True, maximize=True),
    "AdamW": _adam(0.99, 0.0),
    **dict(_rows("softmax")),
    **dict(_rows("log_softmax")),
    "cross_entropy of long rows": Case(
        "cross_entropy", _LOSS.forward, _losses, {"reduction": "none", "label_smoothing": 0.1}, LIMIT, residual=True
    ),
    "the gradient of cross_entropy of long rows": Case(
        "cross_entropy_gradient", OVERRIDABLE["cross_entropy_gradient"].generic, _gradients_of_losses, {}, LIMIT
    ),
}  # fmt: skip


def compare_fused(device: Device, dtype: str) -> list[Fused]:
    """Hold every kernel that a device has against its generic rule."""
    kernels = device.backend.kernels
    return [_compared(what, case, device, dtype) for what, case in CASES.items() if case.kernel in kernels]


def _compared(what: str, case: Case, device: Device, dtype: str) -> Fused:
    kernel = device.backend.kernels[case.kernel]
    try:
        with device.active():
            expected = _results(lambda *given, **more: case.generic(device.xp, *given, **more), case, device, dtype)
            runs = [_results(kernel, case, device, dtype, arrays) for arrays in (False, True)[: 1 + case.factors]]
    except Exception as error:
        return Fused(str(device), what, dtype, np.inf, case.limit, f"{type(error).__name__}: {error}")
    errors = [_error(ours, theirs) for run in runs for ours, theirs in zip(run, expected, strict=True)]
    return Fused(str(device), what, dtype, max(errors), case.limit)


def _results(
    call: Callable[..., Any], case: Case, device: Device, dtype: str, arrays: bool = False
) -> list[np.ndarray]:
    """Return what a call gives back, and what it makes of its arguments."""

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        if isinstance(value, np.ndarray) or (arrays and type(value) is float):
            return device.xp.asarray(device.backend.from_host(np.array(value), device.index), copy=True)
        return value

    given = [moved(value) for value in case.arguments(dtype)]
    result = call(*given, **case.options)
    arrays_left = _arrays((result[0] if case.residual else result, given))
    return [device.backend.to_host(x) for x in arrays_left if x.shape]


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in a nest of tuples."""
    for part in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(part, (tuple, list)):
            yield from _arrays(part)
        elif hasattr(part, "shape"):
            yield part


def _error(got: np.ndarray, want: np.ndarray) -> float:
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.inf
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else np.inf
    off = float(np.max(np.abs(got - want)) / np.max(np.abs(want)) / np.finfo(want.dtype).eps)
    return off if np.isfinite(off) else np.inf
