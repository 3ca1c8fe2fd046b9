"""Counts, covariances, distances, and integrals and derivatives of sampled functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import xgrad
from xgrad import linalg as xlinalg
from xgrad.compat.torch.promotion import in_common_dtype
from xgrad.compat.torch.return_types import Histogram
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.arguments import front_axis
from xgrad.core.tensor import Tensor


@torch_function
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    """Return how often each integer occurs, or sums of weights: see `xgrad.bincount`."""
    if weights is not None:
        weights = weights.detach()
        if weights.dtype != "float32":
            weights = xgrad.astype(weights, "float64", copy=False)
    return xgrad.bincount(input, weights=weights, minlength=minlength)


@torch_function
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Return how many elements are in bins of equal widths: see `xgrad.histogram`."""
    x = input.detach()
    limits = None if min == max and x.size else (min, max)  # of the elements, if they are equal
    found = xgrad.histogram(x, bins=bins, range=limits).hist
    return xgrad.astype(found, x.dtype)


@torch_function
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return how many elements are in bins, and the edges of these: see `xgrad.histogram`."""
    x = input.detach()
    limits = None if range is None else tuple(range)
    if weight is None:
        weight = xgrad.ones_like(x)
    found = xgrad.histogram(
        x,
        bins=bins,
        range=limits,  # type: ignore[arg-type]
        weights=weight.detach(),
        density=density,
    )
    return Histogram(found.hist, xgrad.astype(found.bin_edges, x.dtype, copy=False))


@torch_function
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Any:
    """Return the covariance matrix of variables, one a row: see `xgrad.cov`."""
    return xgrad.cov(
        xgrad.reshape(input, (1,)) if not input.ndim else input,
        correction=correction,
        fweights=fweights,
        aweights=aweights,
    )


@torch_function
def corrcoef(input: Tensor) -> Any:
    """Return the matrix of correlation coefficients of variables: see `xgrad.corrcoef`."""
    return xgrad.corrcoef(xgrad.reshape(input, (1,)) if not input.ndim else input)


@torch_function
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Return the distances between all pairs of vectors: see `xgrad.cdist`."""
    return xgrad.cdist(x1, x2, p=p)


@torch_function
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """Return the tensor with slices along an axis scaled down to a largest norm."""
    axis = front_axis("renorm", input, dim, "dim")
    others = tuple([i for i in range(input.ndim) if i != axis])
    norms = xlinalg.vector_norm(input, axis=others, keepdims=True, ord=p)
    # the summand is PyTorch's
    return input * xgrad.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


@torch_function
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the integral along an axis by the trapezoidal rule: see `xgrad.trapezoid`."""
    if x is not None and x.ndim > 1:
        x = xgrad.broadcast_to(x, tuple(y.shape))
    return xgrad.trapezoid(y, x=x, dx=1.0 if dx is None else dx, axis=dim)


@torch_function
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Return the integrals up to each element by the trapezoidal rule."""
    rows = xgrad.moveaxis(y, dim, -1)
    widths: Any = 1.0 if dx is None else dx
    if x is not None:
        points = x if x.ndim == 1 else xgrad.moveaxis(x, dim, -1)
        widths = points[..., 1:] - points[..., :-1]
    areas = widths * (rows[..., 1:] + rows[..., :-1]) / 2
    return xgrad.moveaxis(xgrad.cumulative_sum(areas, axis=-1), -1, dim)


@torch_function
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """Return a matrix whose columns are powers of a vector, in descending order by default."""
    count = x.shape[-1] if N is None else N
    powers = xgrad.arange(count, dtype="int64", device=x.device)
    if not increasing:
        powers = count - 1 - powers
    base = xgrad.astype(x, "int64") if x.dtype.kind in "bui" else x
    return xgrad.pow(xgrad.expand_dims(base, axis=-1), powers)


@torch_function
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """Return the combinations of `r` elements of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.shape[0]), r))
    indices = xgrad.asarray(rows, dtype="int64", device=input.device)
    flat = xgrad.take(input, xgrad.reshape(indices, (-1,)))
    return xgrad.reshape(flat, (len(rows), r) if r else (0,))


@torch_function
def block_diag(*tensors: Tensor) -> Any:
    """Return a matrix with matrices on its diagonal, and zeros elsewhere."""
    blocks = [x if x.ndim == 2 else xgrad.reshape(x, (1, -1)) for x in in_common_dtype(tensors)]
    width = sum(x.shape[1] for x in blocks)
    rows, start = [], 0
    for x in blocks:
        sides = ((0, 0), (start, width - start - x.shape[1]))
        rows.append(xgrad.pad(x, sides))
        start += x.shape[1]
    return xgrad.concat(rows, axis=0)


@torch_function
def unravel_index(indices: Tensor, shape: Any) -> Any:
    """Return the indices along each axis that stand for indices into all elements."""
    sizes = shape.tolist() if isinstance(shape, xgrad.Tensor) else shape
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    found = []
    rest: Any = indices
    for n in sizes[::-1]:
        found.append(xgrad.remainder(rest, n))
        rest = xgrad.floor_divide(rest, n)
    return tuple(found[::-1])


#: Functions that are methods, too.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (bincount, corrcoef, cov, histc, histogram, renorm)
}
#: Functions alone.
PLAIN: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        block_diag, cdist, combinations, cumulative_trapezoid, trapezoid, unravel_index, vander,
    )
}  # fmt: skip
PLAIN["trapz"] = trapezoid
