"""The ops as PyTorch spells them: an oracle that is not ours, loaded when it is first asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np


class _PyTorch:
    """PyTorch, imported when a function of it is first used: the table is also used without it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # introspection, as by doctest, which must not need PyTorch
            raise AttributeError(name)
        return getattr(import_module("torch"), name)


torch: Any = _PyTorch()


@cache
def installed() -> bool:
    """Return whether PyTorch can be imported."""
    try:
        import_module("torch")
    except ImportError:
        return False
    return True


def spelled(name: str) -> Callable[..., Any]:
    """Return a function of PyTorch's, such as ``nn.functional.linear``."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


# What is not a function of one name there. `axis` and `keepdims` it takes as they are.


def binary(name: str) -> Callable[..., Any]:
    """Give PyTorch 0-d tensors for scalars, which few of its functions take on either side."""

    def call(x1: Any, x2: Any) -> Any:
        dtype = x1.dtype if torch.is_tensor(x1) else x2.dtype
        return spelled(name)(*[x if torch.is_tensor(x) else torch.tensor(x, dtype=dtype) for x in (x1, x2)])

    return call


def axes(x: Any, axis: Any) -> Any:
    """Return the axes to reduce, all of them for None."""
    return tuple(range(x.ndim)) if axis is None else axis


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Multiply along several axes, of which PyTorch takes one."""
    where = sorted(i % x.ndim for i in ((axis,) if isinstance(axis, int) else axes(x, axis))) if x.ndim else []
    for i in reversed(where):
        x = torch.prod(x, dim=i, keepdim=keepdims)
    return x


def extremum(name: str) -> Callable[..., Any]:
    """Return ``amax`` or ``amin``, which share the gradient of a tie as ours do."""
    return lambda x, axis=None, keepdims=False: spelled(name)(x, dim=axes(x, axis) if x.ndim else (), keepdim=keepdims)


def reduction(name: str) -> Callable[..., Any]:
    """Return a function that reduces; the correction of its variances is ours."""

    def call(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
        options = {"correction": correction} if name in ("var", "std") else {}
        return spelled(name)(x, dim=axes(x, axis) if x.ndim else 0, keepdim=keepdims, **options)

    return call


def cumulative_sum(x: Any, axis: Any = None, include_initial: bool = False) -> Any:
    """Add up, with or without the zero at the start."""
    return _cumulative(torch.cumsum, 0, x, axis or 0, include_initial)


def cumulative_prod(x: Any, axis: Any = None, include_initial: bool = False) -> Any:
    """Multiply, with or without the one at the start."""
    return _cumulative(torch.cumprod, 1, x, axis or 0, include_initial)


def _cumulative(of: Any, start: float, x: Any, axis: int, include_initial: bool) -> Any:
    first = x.new_full([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)], start)
    return torch.cat([first, of(x, axis)], axis) if include_initial else of(x, axis)


def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the values alone."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    """Return the stable permutation."""
    return torch.argsort(x, dim=axis, descending=descending, stable=True)


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Roll by one number along several axes, too."""
    return torch.roll(x, (shift,) * len(axis) if isinstance(axis, tuple) and isinstance(shift, int) else shift, axis)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Count by a sum, which can keep axes."""
    return torch.sum(x != 0, dim=axes(x, axis), keepdim=keepdims)


def searchsorted(x1: Any, x2: Any, side: str = "left", sorter: Any = None) -> Any:
    """Search among numbers of another kind, too."""
    x2 = torch.as_tensor(x2)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    sorter = None if sorter is None else torch.as_tensor(sorter)
    return torch.searchsorted(x1.to(dtype), x2.to(dtype), side=side, sorter=sorter)


def unique_all(x: Any) -> Any:
    """Return what PyTorch says of values, NaNs as one each, and the first places and their elements."""
    flat = x.reshape(-1)
    _, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    numbers = torch.arange(len(flat))
    indices = torch.full_like(counts, len(flat)).scatter_reduce(0, inverse, numbers, "amin")
    return flat[indices], indices, inverse.reshape(x.shape), torch.clamp(counts, min=1)


def round(x: Any) -> Any:
    """Round each part of complex numbers."""
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.is_complex() else torch.round(x)


def sign(x: Any) -> Any:
    """Return the sign, of complex numbers too."""
    return torch.sgn(x) if x.is_complex() else torch.sign(x)


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Clip to tensors and scalars, which PyTorch does not take together."""
    if torch.is_tensor(min) or torch.is_tensor(max):
        like = [v if v is None or torch.is_tensor(v) else torch.tensor(v, dtype=x.dtype) for v in (min, max)]
        return torch.clamp(x, *like)
    return x + 0 if min is None and max is None else torch.clamp(x, min, max)


def expand_dims(x: Any, axis: Any) -> Any:
    """Insert several axes one after the other."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in sorted(a % (x.ndim + len(axes)) for a in axes):
        x = torch.unsqueeze(x, a)
    return x


def flip(x: Any, axis: Any = None) -> Any:
    """Reverse all axes, or some."""
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis)


def getitem(x: Any, key: Any) -> Any:
    """Index with negative steps through flips, which PyTorch has and slices of them it has not."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [p for p in parts if not isinstance(p, np.ndarray)]:
        i = next(i for i, p in enumerate(parts) if p is Ellipsis)
        used = sum(p is not None and p is not Ellipsis for p in parts)
        parts[i : i + 1] = [slice(None)] * (x.ndim - used)
    axis = 0
    for n, part in enumerate(parts):
        if part is None:
            continue
        if isinstance(part, slice) and (part.step or 1) < 0:
            picked = torch.tensor(list(range(*part.indices(x.shape[axis]))), dtype=torch.int64)
            x, parts[n] = x.index_select(axis, picked), slice(None)
        axis += 1
    return x[tuple(torch.as_tensor(p) if isinstance(p, np.ndarray) else p for p in parts)]


def setitem(x: Any, value: Any, key: Any) -> Any:
    """Assign to a copy."""
    x = x * 1
    x[key] = value
    return x


def index_add(x: Any, value: Any, key: Any) -> Any:
    """Add where indices may repeat."""
    return torch.index_put(x, tuple(map(torch.as_tensor, key)), value, accumulate=True)


def scatter(x: Any, key: Any) -> Any:
    """Add into four zeros."""
    return torch.zeros(4, dtype=x.dtype).index_add(0, torch.as_tensor(key[0]), x)


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Any:
    """Give the axes by its name."""
    return torch.tensordot(x1, x2, dims=axes)


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Give the axis by its name."""
    return torch.linalg.vecdot(x1, x2, dim=axis)


def cross(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Broadcast before, since it adds no axes."""
    return torch.linalg.cross(*torch.broadcast_tensors(x1, x2), dim=axis)


def matrix_power(x: Any, n: int) -> Any:
    """Keep the power of 0, too, in the graph."""
    return torch.linalg.matrix_power(x, n) if n else torch.linalg.matrix_power(x, 0) + 0 * x


def solve(x1: Any, x2: Any) -> Any:
    """Leave no doubt of what is a vector."""
    if x2.ndim == 1:
        return torch.linalg.solve(x1, x2[:, None])[..., 0]
    return torch.linalg.solve(x1, x2[None] if x2.ndim < x1.ndim else x2)


def matrix_norm(x: Any, ord: Any = "fro", keepdims: bool = False) -> Any:
    """Give the options by their names."""
    return torch.linalg.matrix_norm(x, ord, keepdim=keepdims)


def vector_norm(x: Any, axis: Any = None, ord: float = 2, keepdims: bool = False) -> Any:
    """Give the options by their names."""
    return torch.linalg.vector_norm(x, ord, dim=axis, keepdim=keepdims)


def det3(x: Any) -> Any:
    """Expand 3 by 3 determinants: PyTorch's own have the gradient 0 where they are exactly 0, which is wrong."""
    return (x[..., 0, :] * torch.linalg.cross(x[..., 1, :], x[..., 2, :])).sum(-1)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Any:
    """Pad with a constant by its own function, and else by the indices that NumPy's gives: its own has limits."""
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        return torch.nn.functional.pad(x, [n for pair in reversed(widths) for n in pair], value=constant_values)
    for axis, pair in enumerate(widths):
        if any(pair):
            indices: Any = np.pad(np.arange(x.shape[axis]), pair, mode)  # type: ignore[call-overload]
            x = torch.index_select(x, axis, torch.as_tensor(indices))
    return x


def solve_triangular(x1: Any, x2: Any, upper: bool, unitriangular: bool = False) -> Any:
    """Take a vector as a column."""
    out = torch.linalg.solve_triangular(
        x1, x2[:, None] if x2.ndim == 1 else x2, upper=upper, unitriangular=unitriangular
    )
    return out[..., 0] if x2.ndim == 1 else out


def cholesky_solve(x: Any, factor: Any, upper: bool = False) -> Any:
    """Take a vector as a column, and give the triangle alone a gradient."""
    factor = torch.triu(factor) if upper else torch.tril(factor)
    out = torch.cholesky_solve(x[:, None] if x.ndim == 1 else x, factor, upper)
    return out[..., 0] if x.ndim == 1 else out


def lstsq(x1: Any, x2: Any) -> Any:
    """Return the solution, and the squared distance in a graph."""
    columns = x2[:, None] if x2.ndim == 1 else x2
    out = torch.linalg.pinv(x1) @ columns
    residuals = torch.sum(torch.abs(x1 @ out - columns) ** 2, -2)
    return (out[..., 0], residuals[..., 0]) if x2.ndim == 1 else (out, residuals)


def sqrtm(x: Any) -> Any:
    """Take the roots of eigenvalues: there is no such function."""
    values, vectors = torch.linalg.eig(x)
    out = vectors @ torch.diag_embed(torch.sqrt(values)) @ torch.linalg.inv(vectors)
    return out if x.is_complex() else out.real
