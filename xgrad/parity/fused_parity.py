"""Comparison of a backend's fused kernels with the generic rules that they replace.

Kernel and rule run on the same device. The op table already tests the kernels of ops and of their
gradients on short inputs, and the seeded draws test the kernels of random numbers. The cases here
test updates of optimizers and of running statistics, and reductions of rows that are too long for
finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops import attention, convolution, normalization, pooling, recurrent, softmaxes
from xgrad.ops.class_losses import _cross_entropy
from xgrad.ops.normalization import running_statistics
from xgrad.ops.windows import Window
from xgrad.optim.adam import adam_step
from xgrad.optim.sgd import sgd_step
from xgrad.support import trees

LENGTH = 1500  # length of rows, which a block of threads reduces instead of a warp
ELEMENTS = 1003  # size of the parameters
LIMIT = 32
REASON = (
    "An update rounds each operation of the generic rule in the same order, and must be"
    " bit-identical, whether its factors are numbers or read from memory. Rows are summed in"
    f" another order: their largest error may be {LIMIT} times the precision of the largest result,"
    f" of a sum of {LENGTH} terms of one size. So may be the errors of recurrent layers,"
    " convolutions and attention, which are products with the same weights."
)


@dataclass(frozen=True)
class FusedKernel:
    """The largest difference between a kernel and its generic rule.

    `error` and `limit` are in units of the precision of the largest result.
    """

    device: str
    what: str
    dtype: str
    error: float
    limit: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is within tolerance."""
        return self.error <= self.limit


@dataclass(frozen=True)
class KernelCase:
    """A call of a kernel by name.

    `arguments` returns NumPy arrays, which the call may change, and numbers; `options` are the
    keyword arguments. `generic` is the rule, by default the generic rule of the overridable
    function. `factors` tells whether the floats may also be arrays. `residual` tells whether the
    kernel also returns a residual, which is not compared.
    """

    kernel: str
    arguments: Callable[[str], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    limit: float = 0.0
    generic: Callable[..., Any] | None = None
    factors: bool = False
    residual: bool = False


def _sgd(
    momentum: float,
    decay: float,
    *,
    first: bool = False,
    nesterov: bool = False,
    maximize: bool = False,
) -> KernelCase:
    def arguments(dtype: str) -> tuple[Any, ...]:
        p, g, buffer = _numbers(3, (ELEMENTS,), dtype)
        state = None if first or not momentum else buffer
        return p, g, state, 0.1, decay, momentum, 1.0 if nesterov else 0.7, nesterov, maximize

    return KernelCase(sgd_step.__name__, arguments, factors=bool(momentum))


def _adam(
    shrink: float, decay: float, *, amsgrad: bool = False, maximize: bool = False
) -> KernelCase:
    def arguments(dtype: str) -> tuple[Any, ...]:
        p, g, m, v, largest = _numbers(5, (ELEMENTS,), dtype)
        state = np.abs(largest) if amsgrad else None
        return p, g, m, np.abs(v), state, 0.9, 0.999, shrink, decay, 1e-8, 1e-3, maximize

    return KernelCase(adam_step.__name__, arguments, factors=True)


def _statistics(dtype: str) -> tuple[Any, ...]:
    mean, var, average, variance = _numbers(4, (ELEMENTS,), dtype)
    batch = (average.reshape(1, -1, 1, 1), np.abs(variance).reshape(1, -1, 1, 1))
    return mean, np.abs(var), *batch, 24 / 23, 0.1


def _softmax(name: str) -> dict[str, KernelCase]:
    forward = getattr(softmaxes, f"_{name}").function.forward

    def arguments(dtype: str) -> tuple[Any, ...]:
        return tuple(_numbers(1, (3, LENGTH), dtype))

    def gradient_arguments(dtype: str) -> tuple[Any, ...]:
        x, g = _numbers(2, (3, LENGTH), dtype)
        return g, forward(Device("cpu").xp, x, axis=-1), -1

    return {
        f"{name} of long rows": KernelCase(name, arguments, {"axis": -1}, LIMIT, forward),
        f"the gradient of {name} of long rows": KernelCase(
            f"{name}_gradient", gradient_arguments, {}, LIMIT
        ),
    }


def _lstm_steps(dtype: str) -> tuple[Any, ...]:
    x, weight, h, c = (
        next(_numbers(1, shape, dtype)) for shape in ((9, 3, 20), (20, 5), (3, 5), (3, 5))
    )
    return x, weight, h, c, True


def _lstm_gradient(dtype: str) -> tuple[Any, ...]:
    x, weight, h, c, reverse = _lstm_steps(dtype)
    states, cells, gates = recurrent._lstm_steps(Device("cpu").xp, x, weight, h, c, reverse)
    return states, h, weight, c, cells, gates, reverse


def _gru_steps(dtype: str) -> tuple[Any, ...]:
    x, weight, h, bias = (
        next(_numbers(1, shape, dtype)) for shape in ((9, 3, 15), (15, 5), (3, 5), (15,))
    )
    return x, weight, h, bias, True


def _gru_gradient(dtype: str) -> tuple[Any, ...]:
    x, weight, h, bias, reverse = _gru_steps(dtype)
    states, gates = recurrent._gru_steps(Device("cpu").xp, x, weight, h, bias, reverse)
    return 1 - states, weight, h, states, gates, reverse


def _rows(dtype: str) -> tuple[Any, ...]:
    x, weight, bias = (next(_numbers(1, shape, dtype)) for shape in ((9, LENGTH), (LENGTH,), (1,)))
    return x, weight, bias + weight, (1,), 1e-5, True


def _channels(dtype: str) -> tuple[Any, ...]:
    """Return arguments for channels of several chunks."""
    x, weight = (next(_numbers(1, shape, dtype)) for shape in ((5, 3, LENGTH), (3, 1)))
    return x, weight, weight + 1, (0, 2), 1e-5, True


def _normalization_gradient(
    arguments: Callable[[str], tuple[Any, ...]], dtype: str
) -> tuple[Any, ...]:
    x, weight, bias, axes, *more = arguments(dtype)
    _, average, scale, _ = normalization._standardize(
        Device("cpu").xp, x, weight, bias, axes, *more
    )
    return x[::-1, ...] * 2, x, weight, (average, scale), axes, *more


def _attention_values(dtype: str) -> tuple[Any, ...]:
    """Return arguments with masked scores of queries for several keys, without dropout."""
    query, key, value, mask = (
        next(_numbers(1, shape, dtype))
        for shape in ((2, 3, 9, 8), (2, 1, LENGTH, 8), (2, 1, LENGTH, 5), (3, 1, LENGTH))
    )
    return query, key, value, mask, True, 0.3, 0.0, None, None, None


def _attention_gradient(dtype: str) -> tuple[Any, ...]:
    query, key, value, mask, *more = _attention_values(dtype)
    out, (exponentials, total) = attention._attention_values(
        Device("cpu").xp, query, key, value, mask, *more
    )
    weights = exponentials / total, None  # as the kernel keeps them
    return out[..., ::-1, :] * 1, query, key, value, mask, out, weights, *more


def _attention_gradient_rule(xp: Any, *args: Any) -> Any:
    """Return the result of the generic rule, which computes its own weights."""
    rule = OVERRIDABLE["attention_gradient"].generic
    return rule(xp, *args[:6], None, *args[7:])


_PADDED = ((2, 1), (1, 1))
_CONVOLUTION = Window((19, 20), (3, 2), (1, 2), _PADDED, (2, 1))
_POOL = Window((19, 20), (3, 2), (1, 2), _PADDED, (1, 1))
_GROUPS = 2


def _of_windows(op: Any, window: Window, *shapes: tuple[int, ...], **more: Any) -> KernelCase:
    """Return the case of an op on arrays, whose spatial axes are of a window if not given."""

    def arguments(dtype: str) -> tuple[Any, ...]:
        return tuple([next(_numbers(1, shape, dtype)) for shape in shapes])

    rule = op.function
    return KernelCase(rule.name, arguments, {"window": window, **more}, LIMIT, rule.forward)


def _losses(dtype: str) -> tuple[Any, ...]:
    return *_numbers(1, (3, LENGTH), dtype), np.array([0, LENGTH - 1, 7])


def _gradients_of_losses(dtype: str) -> tuple[Any, ...]:
    x, target = _losses(dtype)
    _, scale = _LOSS.forward(Device("cpu").xp, x, target, reduction="mean", label_smoothing=0.1)
    return np.array(0.7, dtype), x, target, "mean", 0.1, scale


def _numbers(count: int, shape: tuple[int, ...], dtype: str) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(0)
    return (generator.normal(size=shape).astype(dtype) for _ in range(count))


_IMAGES, _WEIGHT = (3, 6, *_CONVOLUTION.size), (8, 6 // _GROUPS, *_CONVOLUTION.kernel)
_SLOPES = (3, 8, *_CONVOLUTION.out)
_POOLED = (3, 6, *_POOL.out)
_LOSS = _cross_entropy.function  # type: ignore[attr-defined]
_LOSS_OPTIONS = {"reduction": "none", "label_smoothing": 0.1}

KERNEL_CASES: dict[str, KernelCase] = {
    "SGD": _sgd(0.0, 0.01),
    "SGD with momentum, the first step": _sgd(0.9, 0.01, first=True, maximize=True),
    "SGD with momentum": _sgd(0.9, 0.0),
    "SGD with Nesterov's momentum": _sgd(0.9, 0.01, nesterov=True),
    "Adam": _adam(1.0, 0.01),
    "Adam with amsgrad": _adam(1.0, 0.0, amsgrad=True, maximize=True),
    "AdamW": _adam(0.99, 0.0),
    "running statistics": KernelCase(running_statistics.__name__, _statistics),
    **_softmax("softmax"),
    **_softmax("log_softmax"),
    "cross_entropy of long rows": KernelCase(
        "cross_entropy", _losses, _LOSS_OPTIONS, LIMIT, _LOSS.forward, residual=True
    ),
    "the gradient of cross_entropy of long rows": KernelCase(
        "cross_entropy_gradient", _gradients_of_losses, {}, LIMIT
    ),
    "the steps of an LSTM": KernelCase("lstm_steps", _lstm_steps, {}, LIMIT),
    "the gradient of an LSTM": KernelCase("lstm_gradient", _lstm_gradient, {}, LIMIT),
    "the steps of a GRU": KernelCase("gru_steps", _gru_steps, {}, LIMIT),
    "the gradient of a GRU": KernelCase("gru_gradient", _gru_gradient, {}, LIMIT),
    "standardize of long rows": KernelCase("standardize", _rows, {}, LIMIT),
    "standardize of long channels": KernelCase("standardize", _channels, {}, LIMIT),
    "the gradient of a normalization of long rows": KernelCase(
        "normalization_gradient", partial(_normalization_gradient, _rows), {}, LIMIT
    ),
    "the gradient of a normalization of long channels": KernelCase(
        "normalization_gradient", partial(_normalization_gradient, _channels), {}, LIMIT
    ),
    "attention to many keys": KernelCase(
        "attention_values", _attention_values, {}, LIMIT, residual=True
    ),
    "the gradient of attention to many keys": KernelCase(
        "attention_gradient", _attention_gradient, {}, LIMIT, _attention_gradient_rule
    ),
    "convolution": _of_windows(
        convolution.convolution, _CONVOLUTION, _IMAGES, _WEIGHT, _WEIGHT[:1], groups=_GROUPS
    ),
    "the gradient of convolution for the input": _of_windows(
        convolution.convolution_input, _CONVOLUTION, _SLOPES, _WEIGHT, groups=_GROUPS
    ),
    "the gradient of convolution for the weight": _of_windows(
        convolution.convolution_weight, _CONVOLUTION, _IMAGES, _SLOPES, groups=_GROUPS
    ),
    "maximum pool": _of_windows(pooling.maximum_pool, _POOL, _IMAGES),
    "the gradient of maximum pool": _of_windows(
        pooling.maximum_pool_gradient, _POOL, _POOLED, _IMAGES
    ),
    "sum pool": _of_windows(pooling.sum_pool, _POOL, _IMAGES),
    "the gradient of sum pool": _of_windows(pooling.sum_pool_gradient, _POOL, _POOLED),
}


def compare_fused(device: Device, dtype: str) -> list[FusedKernel]:
    """Compare the kernels of a device with their generic rules.

    Kernels that are bit-identical to their rules by declaration are left out.
    """
    kernels = device.backend.kernels.keys() - device.backend.rule_kernels
    return [
        compare_kernel(what, device, dtype)
        for what, case in KERNEL_CASES.items()
        if case.kernel in kernels
    ]


def compare_kernel(what: str, device: Device, dtype: str) -> FusedKernel:
    """Compare a kernel of a device, by the name of its case, with its generic rule."""
    case = KERNEL_CASES[what]
    kernel = device.backend.kernels[case.kernel]
    rule = case.generic or OVERRIDABLE[case.kernel].generic
    try:
        with device.active():
            expected = _run(partial(rule, device.xp), case, device, dtype)
            runs = [
                _run(kernel, case, device, dtype, arrays)
                for arrays in (False, True)[: 1 + case.factors]
            ]
    except Exception as error:
        return FusedKernel(
            str(device), what, dtype, np.inf, case.limit, f"{type(error).__name__}: {error}"
        )
    errors = [
        _error(got, wanted) for run in runs for got, wanted in zip(run, expected, strict=True)
    ]
    return FusedKernel(str(device), what, dtype, max(errors), case.limit)


def _run(
    function: Callable[..., Any], case: KernelCase, device: Device, dtype: str, arrays: bool = False
) -> list[np.ndarray]:
    """Return the results of a call, and the arguments that it may have changed.

    If `arrays` is true, floats are passed as arrays.
    """

    def to_device(value: Any) -> Any:
        if isinstance(value, np.ndarray) or (arrays and type(value) is float):
            return device.xp.asarray(
                device.backend.from_host(np.array(value), device.index), copy=True
            )
        return value

    given = case.arguments(dtype)
    arguments = trees.rebuild(given, [to_device(value) for _, value in trees.leaves(given)])
    result = function(*arguments, **case.options)
    outputs = trees.leaves((result[0] if case.residual else result, arguments))
    return [device.backend.to_host(x) for _, x in outputs if getattr(x, "shape", ())]


def _error(got: np.ndarray, expected: np.ndarray) -> float:
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else np.inf
    off = float(
        np.max(np.abs(got - expected)) / np.max(np.abs(expected)) / np.finfo(expected.dtype).eps
    )
    return off if np.isfinite(off) else np.inf
