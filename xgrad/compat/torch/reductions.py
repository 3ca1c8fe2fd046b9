"""Reductions, with ``dim=`` and ``keepdim=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad import linalg as xlinalg
from xgrad.compat.torch import elementwise
from xgrad.compat.torch.promotion import as_operands, cast
from xgrad.compat.torch.return_types import MinAndMax, ValuesAndIndices
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor

Dim = int | tuple[int, ...] | list[int] | None


def axis_of(x: Any, dim: Any) -> Any:
    """Return reduced axes as xgrad takes them.

    PyTorch takes lists, an empty one for all axes, and axis 0 of a tensor without axes.
    """
    if isinstance(dim, (list, tuple)):
        axes = tuple(dim)
        return None if not axes or (not x.ndim and set(axes) <= {0, -1}) else axes
    return None if not x.ndim and dim in (0, -1) else dim


def _as_int64(x: Any, dtype: Any) -> Any:
    """Return integers as PyTorch sums them: as int64, unsigned ones too."""
    return x if dtype is not None or x.dtype.kind not in "bui" else xgrad.astype(x, xgrad.int64)


@torch_function
def sum(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum over axes, or over all: see `xgrad.sum`."""
    x = _as_int64(cast(input, dtype), dtype)
    out = xgrad.sum(x, axis=axis_of(x, dim), keepdims=keepdim)
    return cast(out, dtype)


@torch_function
def nansum(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum over axes, with NaNs as 0: see `xgrad.nansum`."""
    x = _as_int64(cast(input, dtype), dtype)
    return xgrad.nansum(x, axis=axis_of(x, dim), keepdims=keepdim)


@torch_function
def mean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean over axes, or over all: see `xgrad.mean`."""
    x = cast(input, dtype)
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"mean: expected a floating dtype, got {x.dtype}: use .float() or dtype="
        )
    return xgrad.mean(x, axis=axis_of(x, dim), keepdims=keepdim)


@torch_function
def nanmean(input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean over axes of the elements that are not NaN: see `xgrad.nanmean`."""
    x = cast(input, dtype)
    return xgrad.nanmean(x, axis=axis_of(x, dim), keepdims=keepdim)


@torch_function
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the product over an axis, or over all: see `xgrad.prod`."""
    x = _as_int64(cast(input, dtype), dtype)
    return cast(xgrad.prod(x, axis=axis_of(x, dim), keepdims=keepdim), dtype)


def _spread(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    def function(
        input: Tensor,
        dim: Any = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        if isinstance(dim, bool):  # std(x, unbiased)
            dim, unbiased = None, dim
        if input.dtype.kind not in "fc":
            raise RuntimeError(f"{name}: expected a floating dtype, got {input.dtype}")
        correction = int(unbiased) if correction is None else correction
        return op(input, axis_of(input, dim), correction, keepdim)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    return xgrad.mean(x, axis=axis, keepdims=keepdims)


def _variance(x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    return xgrad.var(x, axis=axis, correction=correction, keepdims=keepdims)


def _deviation(x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    return xgrad.std(x, axis=axis, correction=correction, keepdims=keepdims)


#: ``std(input, dim=None, unbiased=True, keepdim=False, *, correction=1)`` and the like.
std = _spread("std", _deviation)
var = _spread("var", _variance)
std_mean = _spread("std_mean", lambda x, *args: (_deviation(x, *args), _mean(x, args[0], args[2])))
var_mean = _spread("var_mean", lambda x, *args: (_variance(x, *args), _mean(x, args[0], args[2])))


def _extremum(
    name: str, op: Callable[..., Any], arg: Callable[..., Any], pair: Callable[..., Any]
) -> Callable[..., Any]:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, **other: Any) -> Any:
        if isinstance(dim, xgrad.Tensor) or "other" in other:
            return pair(input, other.get("other", dim))
        if other:
            raise TypeError(f"{name}: unknown arguments {sorted(other)}")
        if dim is None:
            return op(input)
        return at_index(input, arg(_with_axis(input), axis=dim, keepdims=True), dim, keepdim)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _with_axis(x: Any) -> Any:
    """Return a tensor without axes as one with one axis."""
    return x if x.ndim else xgrad.reshape(x, (1,))


def at_index(x: Any, indices: Any, dim: int, keepdim: bool) -> ValuesAndIndices:
    """Return the elements at indices that have length 1 along an axis, and the indices.

    The gradient goes to these elements alone, where `xgrad.max` shares it among equal ones.
    """
    values = xgrad.take_along_axis(_with_axis(x), indices, axis=dim)
    if not keepdim or not x.ndim:
        values, indices = xgrad.squeeze(values, axis=dim), xgrad.squeeze(indices, axis=dim)
    return ValuesAndIndices(values, indices)


#: ``max(input)``, ``max(input, dim, keepdim=False)`` with indices, and ``max(input, other)``.
max = _extremum("max", xgrad.max, xgrad.argmax, elementwise.FUNCTIONS["maximum"])
min = _extremum("min", xgrad.min, xgrad.argmin, elementwise.FUNCTIONS["minimum"])


@torch_function
def amax(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Any:
    """Return the maximum over axes, or over all: see `xgrad.max`."""
    return xgrad.max(input, axis=axis_of(input, dim), keepdims=keepdim)


@torch_function
def amin(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Any:
    """Return the minimum over axes, or over all: see `xgrad.min`."""
    return xgrad.min(input, axis=axis_of(input, dim), keepdims=keepdim)


@torch_function
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the minimum and the maximum over an axis, or over all."""
    return MinAndMax(amin(input, dim, keepdim), amax(input, dim, keepdim))


@torch_function
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the maximum along an axis, or of all: see `xgrad.argmax`."""
    return xgrad.argmax(input, axis=axis_of(input, dim), keepdims=keepdim)


@torch_function
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the minimum along an axis, or of all: see `xgrad.argmin`."""
    return xgrad.argmin(input, axis=axis_of(input, dim), keepdims=keepdim)


@torch_function
def any(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Any:
    """Return whether any element is nonzero: see `xgrad.any`."""
    out = xgrad.any(input, axis=axis_of(input, dim), keepdims=keepdim)
    return xgrad.astype(out, xgrad.uint8) if input.dtype == xgrad.uint8 else out


@torch_function
def all(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Any:
    """Return whether all elements are nonzero: see `xgrad.all`."""
    out = xgrad.all(input, axis=axis_of(input, dim), keepdims=keepdim)
    return xgrad.astype(out, xgrad.uint8) if input.dtype == xgrad.uint8 else out


@torch_function
def logsumexp(input: Tensor, dim: Dim, keepdim: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials over axes: see `xgrad.logsumexp`."""
    return xgrad.logsumexp(input, axis=axis_of(input, dim), keepdims=keepdim)


@torch_function
def count_nonzero(input: Tensor, dim: Dim = None) -> Any:
    """Return the number of nonzero elements: see `xgrad.count_nonzero`."""
    return xgrad.count_nonzero(input, axis=axis_of(input, dim))


@torch_function
def norm(
    input: Tensor, p: Any = "fro", dim: Dim = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return a norm over axes, or of all elements: see `xgrad.linalg.vector_norm`."""
    x, axis = cast(input, dtype), axis_of(input, dim)
    if p == "nuc":
        axis = (-2, -1) if axis is None else axis
        moved = xgrad.moveaxis(x, axis, (-2, -1))
        out = xlinalg.matrix_norm(moved, ord="nuc", keepdims=keepdim)
        return xgrad.moveaxis(out, (-2, -1), axis) if keepdim else out
    order = 2 if p in (None, "fro") else p
    return xlinalg.vector_norm(x, axis=axis, keepdims=keepdim, ord=order)


@torch_function
def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    """Return the norm of the difference: see `xgrad.linalg.vector_norm`."""
    x1, x2 = as_operands(input, other)
    return xlinalg.vector_norm(x1 - x2, ord=p)


@torch_function
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """Return exponentials divided by their sum along an axis: see `xgrad.ops.softmax`."""
    x = cast(input, dtype)
    return xgrad.ops.softmax(x, axis=dim) if x.ndim else xgrad.exp(x - x)


@torch_function
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Any:
    """Return the logarithm of `softmax`: see `xgrad.ops.log_softmax`."""
    x = cast(input, dtype)
    return xgrad.ops.log_softmax(x, axis=dim) if x.ndim else x - x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, dist, log_softmax, logsumexp,
        max, mean, min, nanmean, nansum, norm, prod, softmax, std, std_mean, sum, var, var_mean,
    )
}  # fmt: skip
