"""Fused kernels: one launch in place of the several of a generic rule, which is what they are compared with.

Nothing here waits for the GPU, reads a value on the host or copies to the device, so all of it can be captured in a
CUDA graph. Seeds, numbers of calls and the factors of optimizers may be numbers, or arrays of no axes, which a graph
then reads at each replay: uint64 the first two, float64 the others, which is what they are converted to otherwise.

`linear` is left alone. Its bias is added in place, by one launch. To join that with the activation behind it would save
a launch, and cost one in the derivative, where the bias and the product both need the gradient in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops import floor_divide, log_softmax, remainder, sigmoid, softmax, softplus
from xgrad.ops.dropout import _dropout, dropout_scale
from xgrad.ops.nn import _cross_entropy
from xgrad_cupy import source

_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}
_WARP, _WARPS, _LONG = 32, 8, 1024  # rows up to that length are a warp's, of which there are so many in a block
_HUGE, _FEW = 1 << 16, 64
_DROPPING = 128  # threads of a block of `dropout`

# The operations of the generic rules, each rounded by itself, so that results are those of these to the bit. Memory is
# what takes the time, not arithmetic.
_EXACT = ("--fmad=false",)


class Kernels:
    """The kernels of a module that is CuPy, or has those of its names that are used here.

    Parameters
    ----------
    cp : module
        With ``ElementwiseKernel``, ``RawKernel``, ``ndarray``, ``empty``, ``empty_like``, ``ascontiguousarray`` and
        ``moveaxis``.
    xp : namespace
        What generic rules run on.
    """

    def __init__(self, cp: Any, xp: Any) -> None:
        self._cp, self._xp = cp, xp
        make = cp.ElementwiseKernel
        self._bits = make(
            "uint64 seed, uint64 call", "uint64 first, raw uint64 words", source.BITS, "xgrad_bits",
            preamble=source.PHILOX,
        )  # fmt: skip
        self._uniform = {
            np.dtype(bits): make(f"{bits} bits", f"{floats} out", body, f"xgrad_uniform_{floats}")
            for bits, floats, body in (
                ("int32", "float32", source.UNIFORM_32),
                ("int64", "float64", source.UNIFORM_64),
            )
        }
        factors = "float64 beta1, float64 beta2, float64 shrink, float64 decay, float64 eps, float64 rate"
        self._adam = make(f"T g, {factors}, bool maximize", "T p, T m, T v", source.ADAM, "xgrad_adam", options=_EXACT)
        self._amsgrad = make(
            f"T g, {factors}, bool maximize", "T p, T m, T v, T largest", source.AMSGRAD, "xgrad_amsgrad",
            options=_EXACT,
        )  # fmt: skip
        self._sgd = make(
            "T g, float64 lr, float64 decay, bool maximize", "T p", source.SGD, "xgrad_sgd", options=_EXACT
        )
        self._momentum = make(
            "T g, float64 lr, float64 decay, float64 momentum, float64 fresh, bool nesterov, bool maximize, "
            "bool begins", "T p, T buffer", source.SGD_WITH_MOMENTUM, "xgrad_sgd_with_momentum", options=_EXACT,
        )  # fmt: skip
        self._raw = cache(self._compiled)

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Return the kernels under the names of what they replace: see ``Backend.kernels``."""
        make = self._cp.ElementwiseKernel
        ops = {
            sigmoid: make("T x", "T out", source.SIGMOID, "xgrad_sigmoid"),
            floor_divide: make("T x1, T x2", "T out", source.FLOOR_DIVIDE, "xgrad_floor_divide", options=_EXACT),
            remainder: make("T x1, T x2", "T out", source.REMAINDER, "xgrad_remainder", options=_EXACT),
            softplus: make("T x", "T out", source.SOFTPLUS, "xgrad_softplus"),
            softmax: self.softmax,
            log_softmax: self.log_softmax,
            _cross_entropy: self.cross_entropy,
            _dropout: self.dropout,
        }
        parts = {
            "sigmoid_gradient": make("T g, T out", "T result", source.SIGMOID_GRADIENT, "xgrad_sigmoid_gradient"),
            "softplus_gradient": make("T g, T out", "T result", source.SOFTPLUS_GRADIENT, "xgrad_softplus_gradient"),
            "tanh_gradient": make("T g, T out", "T result", source.TANH_GRADIENT, "xgrad_tanh_gradient"),
            "relu_gradient": make("T g, T out", "T result", source.RELU_GRADIENT, "xgrad_relu_gradient"),
            "softmax_gradient": self.softmax_gradient,
            "log_softmax_gradient": self.log_softmax_gradient,
            "cross_entropy_gradient": self.cross_entropy_gradient,
            "sgd_step": self.sgd_step,
            "adam_step": self.adam_step,
        }
        functions: dict[Any, Any] = {op.function: kernel for op, kernel in ops.items()}  # type: ignore[attr-defined]
        table = {function.name: self._for_floats(kernel, function.forward) for function, kernel in functions.items()}
        table |= {name: self._for_floats(kernel, OVERRIDABLE[name].generic) for name, kernel in parts.items()}
        return table | {"uniform": self.uniform}

    def _for_floats(self, kernel: Callable[..., Any], generic: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that leaves to the generic rule what it declines, and dtypes such as float16."""

        def chosen(x: Any, *args: Any, **options: Any) -> Any:
            dtype = x.dtype if hasattr(x, "dtype") else args[0].dtype
            result = kernel(x, *args, **options) if dtype in _FLOATS else NotImplemented
            return generic(self._xp, x, *args, **options) if result is NotImplemented else result

        chosen.__name__ = generic.__name__.lstrip("_")
        return chosen

    # Random numbers

    def bits(self, seed: Any, call: Any, width: int, count: int) -> Any:
        """Return what `Backend.random_bits` does, on the current device."""
        words = self._cp.empty(4 * -(-count * width // 256), np.uint64)
        self._bits(self._word(seed), self._word(call), words[::4], words)
        return words.view(f"int{width}")[:count]

    def uniform(self, bits: Any, dtype: Any) -> Any:
        """Return the floats that integers of 32 or of 64 bits make: see `variates.uniform`."""
        return self._uniform[bits.dtype](bits).astype(dtype, copy=False)

    def dropout(self, x: Any, *, seed: Any, call: Any, device: Any, p: float) -> tuple[Any, Any]:
        """Return `x` times a mask, and the mask, on the current device."""
        threshold, scale = dropout_scale(p)
        out, mask = (self._cp.empty(x.shape, x.dtype) for _ in range(2))
        if x.size:
            words = map(self._word, (seed, call))
            from_placement = [(word, np.uint64(0)) if self._is_array(word) else (None, word) for word in words]
            given = self._cp.ascontiguousarray(x), out, mask, np.int32(threshold), np.float64(scale), np.int64(x.size)
            kernel = self._raw("dropout", x.dtype.name, "int64")
            kernel((-(-x.size // (16 * _DROPPING)),), (_DROPPING,), (*from_placement[0], *from_placement[1], *given))
        return out, mask

    def _word(self, value: Any) -> Any:
        """Return an integer below 2**64, or an array of no axes, as a kernel takes it."""
        return value.astype(np.uint64, copy=False) if self._is_array(value) else np.uint64(value)

    def _is_array(self, value: Any) -> bool:
        return isinstance(value, self._cp.ndarray)

    # Rows

    def softmax(self, x: Any, *, axis: Any) -> Any:
        """Return exponentials scaled to a sum of 1."""
        return self._by_rows("softmax", axis, x)

    def softmax_gradient(self, g: Any, out: Any, axis: Any) -> Any:
        """Return the gradient of the input of `softmax`."""
        return self._by_rows("softmax_gradient", axis, g, out)

    def log_softmax(self, x: Any, *, axis: Any) -> Any:
        """Return logarithms of exponentials scaled to a sum of 1."""
        return self._by_rows("log_softmax", axis, x)

    def log_softmax_gradient(self, g: Any, out: Any, axis: Any) -> Any:
        """Return the gradient of the input of `log_softmax`."""
        return self._by_rows("log_softmax_gradient", axis, g, out)

    def cross_entropy(self, input: Any, target: Any, *, reduction: str, label_smoothing: float) -> Any:
        """Return the loss; and the largest logits of rows and the sums of their exponentials aside, in one array."""
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if not classes and target.size:
            raise IndexError("expected classes, got none")
        if _idle(target.size, classes):
            return NotImplemented
        x = cp.ascontiguousarray(self._moved(input, axis, -1))
        losses, scale = cp.empty(target.shape, x.dtype), cp.empty((2, target.size), x.dtype)
        given = x, cp.ascontiguousarray(target), losses, scale, np.float64(label_smoothing)
        self._launch("cross_entropy", x, target.dtype, given, classes)
        loss = losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
        return loss, scale.reshape(2, *input.shape[:axis], 1, *input.shape[axis + 1 :])

    def cross_entropy_gradient(
        self, g: Any, input: Any, target: Any, reduction: str, label_smoothing: float, scale: Any
    ) -> Any:
        """Return the gradient of the logits."""
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if _idle(target.size, classes):
            return NotImplemented
        arrays = g, self._moved(input, axis, -1), target, scale[0], scale[1]
        g, x, target, tops, totals = map(cp.ascontiguousarray, arrays)
        result = cp.empty(x.shape, x.dtype)
        each, count = np.int32(reduction == "none"), np.int64(target.size if reduction == "mean" else 1)
        given = g, each, x, target, tops, totals, result, np.float64(label_smoothing), count
        self._launch("cross_entropy_gradient", x, target.dtype, given, classes)
        return self._moved(result, -1, axis)

    def _moved(self, x: Any, source: int, target: int) -> Any:
        """Return a view with an axis elsewhere; where it is there already, `moveaxis` would take its time as well."""
        return x if (source - target) % x.ndim == 0 else self._cp.moveaxis(x, source, target)

    def _by_rows(self, name: str, axis: Any, *arrays: Any) -> Any:
        """Run a kernel on arrays of one shape whose rows are what lies along an axis, along several, or everything."""
        cp, shape = self._cp, arrays[0].shape
        axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        last = tuple(range(-len(axes), 0))
        from_placement = bool(shape) and axes in ((-1,), (len(shape) - 1,))
        moved = arrays if from_placement else [cp.moveaxis(x, axes, last) for x in arrays]
        length = math.prod([shape[i] for i in axes])
        if not length or _idle(arrays[0].size // length, length):
            return NotImplemented
        out = cp.empty(moved[0].shape, moved[0].dtype)
        self._launch(name, out, np.dtype("int64"), (*map(cp.ascontiguousarray, moved), out), length)
        return out if from_placement else cp.moveaxis(out, last, axes)

    def _launch(self, name: str, x: Any, classes: Any, given: tuple[Any, ...], length: int) -> None:
        """Run a kernel on rows of a length, of which there are as many as in `x`."""
        if x.size:
            rows = x.size // length
            block = (_WARP, _WARPS) if length <= _LONG else (_WARP * _WARPS, 1)
            kernel = self._raw(name, x.dtype.name, classes.name)
            kernel((-(-rows // block[1]),), block, (*given, np.int64(rows), np.int64(length)))

    def _compiled(self, name: str, dtype: str, classes: str) -> Any:
        types = f"typedef {_TYPES[dtype]} T;\ntypedef {_TYPES[classes]} I;\n"
        return self._cp.RawKernel(types + (source.DROPOUT if name == "dropout" else source.ROWS), name)

    # Optimizers

    def sgd_step(
        self, p: Any, g: Any, buffer: Any, lr: Any, decay: Any, momentum: Any, new: Any, nesterov: bool, maximize: bool
    ) -> Any:
        """Update by `optim.SGD`, in place."""
        lr, decay = self._factor(lr), self._factor(decay)
        if not self._is_array(momentum) and not momentum:
            self._sgd(g, lr, decay, bool(maximize), p)
            return buffer
        begins, factors = buffer is None, (lr, decay, self._factor(momentum), self._factor(new))
        buffer = self._cp.empty_like(p) if begins else buffer
        self._momentum(g, *factors, bool(nesterov), bool(maximize), begins, p, buffer)
        return buffer

    def adam_step(
        self,
        p: Any,
        g: Any,
        m: Any,
        v: Any,
        largest: Any,
        beta1: Any,
        beta2: Any,
        shrink: Any,
        decay: Any,
        eps: Any,
        rate: Any,
        maximize: bool,
    ) -> None:
        """Update by `optim.Adam` or `AdamW`, in place."""
        factors = map(self._factor, (beta1, beta2, shrink, decay, eps, rate))
        if largest is None:
            self._adam(g, *factors, bool(maximize), p, m, v)
        else:
            self._amsgrad(g, *factors, bool(maximize), p, m, v, largest)

    def _factor(self, value: Any) -> Any:
        """Return a number, or an array of no axes, as a kernel takes it."""
        return value.astype(np.float64, copy=False) if self._is_array(value) else float(value)


def _idle(rows: int, length: int) -> bool:
    """Return whether rows are too few, and so long that a block for each would leave most of the GPU idle."""
    return length > _HUGE and rows < _FEW
