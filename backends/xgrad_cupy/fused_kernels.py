"""Fused kernels: one launch replaces the several launches of a generic rule.

The tests compare each kernel with its generic rule. No kernel waits for the GPU, reads a value on
the host or copies to the device, so a CUDA graph can contain them all. Seeds, call numbers and the
factors of optimizers are numbers or 0-d arrays, which a graph reads at each replay: uint64 and
float64, to which other dtypes are converted.

`linear` has no fused kernel: one launch adds its bias in place. Fusing the bias with the activation
would save that launch, and cost one in the derivative, where both the bias and the product need
the gradient in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from xgrad.backend.overridable import OVERRIDABLE, ComposedKernel
from xgrad.ops import floor_divide, log_softmax, remainder, sigmoid, softmax, softplus
from xgrad.ops.class_losses import _cross_entropy
from xgrad.ops.dropout import _dropout, dropout_scale
from xgrad.ops.elementwise.arithmetic import _floor_quotient
from xgrad.optim.adam import adam_step  # this import makes it overridable
from xgrad.optim.sgd import sgd_step
from xgrad_cupy import cuda_source
from xgrad_cupy.kernels import attention, convolution, recurrent
from xgrad_cupy.kernels.gelu import gelu_kernels
from xgrad_cupy.kernels.normalization import Normalization
from xgrad_cupy.kernels.pooling import Pooling
from xgrad_cupy.kernels.sums import Sums

_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_WARP, _WARPS = 32, 8  # threads of a warp, and warps of a block
_WARP_LENGTH = 1024  # rows up to this length belong to a warp
_ONE_BLOCK = 1 << 14  # elements of rows that one block handles in the time of a launch
_HUGE_LENGTH, _FEW_ROWS = 1 << 16, 64
_RANDOM_THREADS = 128  # threads of a block, in kernels on random bits
_EXACT = ("--fmad=false",)  # each operation is rounded, as in the generic rules: same bits


class Kernels:
    """The fused kernels, compiled by CuPy, the module `cp`, at their first calls.

    Generic rules run on `xp`.
    """

    def __init__(self, cp: Any, xp: Any) -> None:
        self._cp, self._xp = cp, xp
        self._elementwise = {
            name: cp.ElementwiseKernel(*parts, f"xgrad_{name}", options=_EXACT)
            for name, parts in cuda_source.ELEMENTWISE.items()
        }
        self._raw = cache(self._compile)
        self._total = Sums(cp, "const T *x, T divisor, ", ["x[at] / divisor"])

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Return the kernels by the names of the rules that they replace.

        ``Backend.kernels`` describes the table.
        """
        more = self._others()
        ops: Any = (
            sigmoid,
            floor_divide,
            remainder,
            _floor_quotient,
            softplus,
            softmax,
            log_softmax,
            _cross_entropy,
            _dropout,
        )
        generic = {op.function.name: op.function.forward for op in ops}
        generic |= {name: part.generic for name, part in OVERRIDABLE.items()}
        kernels: dict[str, Any] = self._elementwise | {
            "dropout": self.dropout,
            "cross_entropy": self.cross_entropy,
            "cross_entropy_gradient": self.cross_entropy_gradient,
            sgd_step.__name__: self.sgd_step,
            adam_step.__name__: self.adam_step,
        }
        for name in ("softmax", "log_softmax"):
            kernels[name] = partial(self._softmax, name)
            kernels[f"{name}_gradient"] = partial(self._softmax_gradient, f"{name}_gradient")
        table = {
            name: self._for_floats(kernels[name], generic[name])
            for name in generic
            if name in kernels
        }
        return table | more | {"uniform": self.uniform}

    def _others(self) -> dict[str, Callable[..., Any]]:
        cp, xp = self._cp, self._xp
        norms, pools = Normalization(cp), Pooling(cp, xp)
        own: dict[str, Any] = {
            "standardize": norms.standardize,
            "normalization_gradient": norms.gradient,
        }
        table: dict[str, Any] = {
            name: self._for_floats(kernel, OVERRIDABLE[name].generic)
            for name, kernel in (own | gelu_kernels(cp)).items()
        }
        table |= {
            name: getattr(pools, name)
            for name in ("maximum_pool", "maximum_pool_gradient", "sum_pool", "sum_pool_gradient")
        }
        composed: dict[str, Any] = {
            "attention_values": attention.values,
            "attention_gradient": attention.gradient,
            "lstm_steps": recurrent.lstm_steps,
            "lstm_gradient": recurrent.lstm_gradient,
            "gru_steps": recurrent.gru_steps,
            "gru_gradient": recurrent.gru_gradient,
            "convolution": convolution.convolution,
            "convolution_input": convolution.convolution_input,
            "convolution_weight": convolution.convolution_weight,
        }
        return table | {name: ComposedKernel(xp, function) for name, function in composed.items()}

    def _for_floats(
        self, kernel: Callable[..., Any], generic: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return a kernel that falls back to the generic rule.

        It does so for dtypes such as float16, and for arguments that the kernel declines.
        """

        def chosen(x: Any, *args: Any, **options: Any) -> Any:
            dtype = x.dtype if hasattr(x, "dtype") else args[0].dtype
            result = kernel(x, *args, **options) if dtype in _FLOATS else NotImplemented
            return generic(self._xp, x, *args, **options) if result is NotImplemented else result

        chosen.__name__ = generic.__name__.lstrip("_")
        if isinstance(kernel, self._cp.ElementwiseKernel):
            # captured steps fuse it
            chosen.elementwise = kernel  # type: ignore[attr-defined]
        return chosen

    # Random numbers

    def bits(self, seed: Any, call: Any, width: int, count: int) -> Any:
        """Return the integers of `Backend.random_bits`, on the current device."""
        blocks = -(-count * width // 256)
        words = self._cp.empty(4 * blocks, np.uint64)
        if blocks:
            self._launch_random("bits", "float32", blocks, seed, call, words, np.int64(blocks))
        return words.view(f"int{width}")[:count]

    def uniform(self, bits: Any, dtype: Any) -> Any:
        """Return the floats made from integers of 32 or 64 random bits: see `variates.uniform`."""
        return self._elementwise[f"uniform_float{8 * bits.dtype.itemsize}"](bits).astype(
            dtype, copy=False
        )

    def dropout(self, x: Any, *, seed: Any, call: Any, device: Any, p: float) -> tuple[Any, Any]:
        """Return `x` times a mask, and the mask, on the current device."""
        threshold, scale = dropout_scale(p)
        out, mask = (self._cp.empty(x.shape, x.dtype) for _ in range(2))
        if x.size:
            args = (
                self._cp.ascontiguousarray(x),
                out,
                mask,
                np.int32(threshold),
                np.float64(scale),
                np.int64(x.size),
            )
            self._launch_random("dropout", x.dtype.name, -(-x.size // 16), seed, call, *args)
        return out, mask

    def _launch_random(
        self, name: str, dtype: str, threads: int, seed: Any, call: Any, *args: Any
    ) -> None:
        """Run a kernel on the seed and the call number, then the other arguments.

        The seed and the call number are passed as an address and a value each.
        """
        counters: list[Any] = []
        for word in (seed, call):
            is_array = self._is_array(word)
            counters += (
                (word.astype(np.uint64, copy=False), np.uint64(0))
                if is_array
                else (None, np.uint64(word))
            )
        kernel = self._raw(name, dtype, "int64")
        kernel((-(-threads // _RANDOM_THREADS),), (_RANDOM_THREADS,), (*counters, *args))

    def _is_array(self, value: Any) -> bool:
        return isinstance(value, self._cp.ndarray)

    # Rows

    def _softmax(self, name: str, x: Any, *, axis: Any) -> Any:
        return self._by_rows(name, axis, x)

    def _softmax_gradient(self, name: str, g: Any, out: Any, axis: Any) -> Any:
        return self._by_rows(name, axis, g, out)

    def _by_rows(self, name: str, axis: Any, *arrays: Any) -> Any:
        """Run a kernel on the rows of arrays of one shape, along one axis or several.

        None stands for all axes.
        """
        cp, shape = self._cp, arrays[0].shape
        axes = (
            tuple(range(len(shape)))
            if axis is None
            else axis
            if isinstance(axis, tuple)
            else (axis,)
        )
        last = tuple(range(-len(axes), 0))
        in_place = bool(shape) and axes in ((-1,), (len(shape) - 1,))
        moved = arrays if in_place else [cp.moveaxis(x, axes, last) for x in arrays]
        length = math.prod([shape[i] for i in axes])
        if not length or _underuses_gpu(arrays[0].size // length, length):
            return NotImplemented
        out = cp.empty(moved[0].shape, moved[0].dtype)
        self._launch(name, out, np.dtype("int64"), (*map(cp.ascontiguousarray, moved), out), length)
        return out if in_place else cp.moveaxis(out, last, axes)

    def cross_entropy(
        self, input: Any, target: Any, *, reduction: str, label_smoothing: float
    ) -> Any:
        """Return the loss and, for the derivative, row maxima and sums of exponentials.

        The latter two are in one array.
        """
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if not classes and target.size:
            raise IndexError("expected classes, got none")
        if _underuses_gpu(target.size, classes):
            return NotImplemented
        x = cp.ascontiguousarray(self._moved(input, axis, -1))
        scale = cp.empty((2, target.size), x.dtype)
        parts = scale.reshape(2, *input.shape[:axis], 1, *input.shape[axis + 1 :])
        target, smoothing = cp.ascontiguousarray(target), np.float64(label_smoothing)
        divisor = x.dtype.type(target.size if reduction == "mean" else 1)
        if reduction != "none" and 0 < x.size <= _ONE_BLOCK and classes <= _WARP_LENGTH:
            loss, rows = cp.empty((), x.dtype), (np.int64(target.size), np.int64(classes))
            kernel = self._raw("cross_entropy_total", x.dtype.name, target.dtype.name)
            kernel((1,), (_WARP, _WARP), (x, target, loss, scale, smoothing, divisor, *rows))
            return loss, parts
        losses = cp.empty(target.shape, x.dtype)
        args = x, target, losses, scale, smoothing
        self._launch("cross_entropy", x, target.dtype, args, classes)
        if reduction == "none":
            return losses, parts
        return self._total((losses, divisor), x.dtype, (1, 1, target.size)).reshape(()), parts

    def cross_entropy_gradient(
        self, g: Any, input: Any, target: Any, reduction: str, label_smoothing: float, scale: Any
    ) -> Any:
        """Return the gradient of the logits."""
        cp, axis = self._cp, 0 if input.ndim == 1 else 1
        classes = input.shape[axis]
        if _underuses_gpu(target.size, classes):
            return NotImplemented
        arrays = g, self._moved(input, axis, -1), target, scale[0], scale[1]
        g, x, target, maxima, sums = map(cp.ascontiguousarray, arrays)
        result = cp.empty(x.shape, x.dtype)
        each = np.int32(reduction == "none")
        count = np.int64(target.size if reduction == "mean" else 1)
        args = g, each, x, target, maxima, sums, result, np.float64(label_smoothing), count
        self._launch("cross_entropy_gradient", x, target.dtype, args, classes)
        return self._moved(result, -1, axis)

    def _moved(self, x: Any, source: int, target: int) -> Any:
        """Return a view with an axis moved.

        `moveaxis` takes time even if the axis is already in place.
        """
        return x if (source - target) % x.ndim == 0 else self._cp.moveaxis(x, source, target)

    def _launch(self, name: str, x: Any, classes: Any, args: tuple[Any, ...], length: int) -> None:
        """Run a kernel on all rows of `x`, which have a given length."""
        if x.size:
            rows = x.size // length
            block = (_WARP, _WARPS) if length <= _WARP_LENGTH else (_WARP * _WARPS, 1)
            kernel = self._raw(name, x.dtype.name, classes.name)
            kernel((-(-rows // block[1]),), block, (*args, np.int64(rows), np.int64(length)))

    def _compile(self, name: str, dtype: str, classes: str) -> Any:
        types = (
            f"typedef {cuda_source.C_TYPES[dtype]} T;\ntypedef {cuda_source.C_TYPES[classes]} I;\n"
        )
        source = cuda_source.RANDOM if name in ("bits", "dropout") else cuda_source.ROWS
        return self._cp.RawKernel(types + source, name)

    # Optimizers

    def sgd_step(
        self,
        p: Any,
        g: Any,
        buffer: Any,
        lr: Any,
        decay: Any,
        momentum: Any,
        new: Any,
        nesterov: bool,
        maximize: bool,
    ) -> Any:
        """Update in place as `optim.SGD` does."""
        lr, decay = self._float64(lr), self._float64(decay)
        if not self._is_array(momentum) and not momentum:
            self._elementwise["sgd"](g, lr, decay, bool(maximize), p)
            return buffer
        begins, factors = buffer is None, (lr, decay, self._float64(momentum), self._float64(new))
        buffer = self._cp.empty_like(p) if begins else buffer
        self._elementwise["sgd_with_momentum"](
            g, *factors, bool(nesterov), bool(maximize), begins, p, buffer
        )
        return buffer

    def adam_step(self, p: Any, g: Any, m: Any, v: Any, largest: Any, *factors: Any) -> None:
        """Update in place as `optim.Adam` and `AdamW` do; the last of the factors is `maximize`."""
        name, state = ("adam", (m, v)) if largest is None else ("amsgrad", (m, v, largest))
        self._elementwise[name](g, *map(self._float64, factors[:-1]), bool(factors[-1]), p, *state)

    def _float64(self, value: Any) -> Any:
        return value.astype(np.float64, copy=False) if self._is_array(value) else float(value)


def _underuses_gpu(rows: int, length: int) -> bool:
    """Return whether one block per row leaves most of a GPU idle: the rows are few and long.

    The generic rule is then faster.
    """
    return length > _HUGE_LENGTH and rows < _FEW_ROWS
