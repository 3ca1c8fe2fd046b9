"""PyTorch's functions and derivatives, an independent reference; imported at first use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np


class _PyTorch:
    """The module ``torch``, imported at the first use of an attribute."""

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


def function(name: str) -> Any:
    """Return a function by name, such as ``nn.functional.linear``.

    It is array-api-compat's function if there is one, else PyTorch's.
    """
    with suppress(AttributeError):
        return attrgetter(name)(import_module("array_api_compat.torch"))
    return attrgetter(name)(torch)


# PyTorch's functions with the behaviour of the standard, of SciPy or of xgrad.


def with_scalars(name: str) -> Callable[..., Any]:
    """Return a function of two inputs that takes scalars on either side."""
    return lambda x1, x2: function(name)(like(x1, x2), like(x2, x1))


def like(x: Any, other: Any) -> Any:
    """Return a tensor as it is, and a scalar as a tensor of the dtype of another tensor."""
    return x if torch.is_tensor(x) else torch.tensor(x, dtype=other.dtype)


def all_axes(x: Any, axis: Any) -> Any:
    """Return the axes of a reduction, all of them for None."""
    return tuple(range(x.ndim)) if axis is None else axis


def logsumexp(x: Any, b: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the logarithm of a sum of exponentials, weighted by `b` if it is given."""
    if b is None:
        return torch.logsumexp(x, all_axes(x, axis), keepdim=keepdims)
    terms = b * torch.exp(x)
    return torch.log(torch.sum(terms, dim=all_axes(terms, axis), keepdim=keepdims))


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Roll, also by one shift along several axes."""
    return torch.roll(
        x,
        (shift,) * len(axis) if isinstance(axis, tuple) and isinstance(shift, int) else shift,
        axis,
    )


def searchsorted(x1: Any, x2: Any, side: str = "left", sorter: Any = None) -> Any:
    """Search a sorted array, with promotion of dtypes."""
    x2 = torch.as_tensor(x2)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    sorter = None if sorter is None else torch.as_tensor(sorter)
    return torch.searchsorted(x1.to(dtype), x2.to(dtype), side=side, sorter=sorter)


def unique_all(x: Any) -> Any:
    """Return unique values with the first index of each; each NaN is a value of its own."""
    flat = x.reshape(-1)
    _, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    numbers = torch.arange(len(flat))
    indices = torch.full_like(counts, len(flat)).scatter_reduce(0, inverse, numbers, "amin")
    return flat[indices], indices, inverse.reshape(x.shape), torch.clamp(counts, min=1)


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Clip, also to a tensor as one limit and a scalar as the other."""
    if min is None and max is None:
        return x + 0
    return torch.clamp(x, *[limit if limit is None else like(limit, x) for limit in (min, max)])


def expand_dims(x: Any, axis: Any) -> Any:
    """Insert one or several axes."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for i in sorted(i % (x.ndim + len(axes)) for i in axes):
        x = torch.unsqueeze(x, i)
    return x


def getitem(x: Any, key: Any) -> Any:
    """Index, also with negative steps."""
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
            indices = torch.tensor(list(range(*part.indices(x.shape[axis]))), dtype=torch.int64)
            x, parts[n] = x.index_select(axis, indices), slice(None)
        axis += 1
    return x[tuple(torch.as_tensor(p) if isinstance(p, np.ndarray) else p for p in parts)]


def solve(x1: Any, x2: Any) -> Any:
    """Solve, with the standard's distinction of vectors and matrices."""
    if x2.ndim == 1:
        return torch.linalg.solve(x1, x2[:, None])[..., 0]
    return torch.linalg.solve(x1, x2[None] if x2.ndim < x1.ndim else x2)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Any:
    """Pad in any mode; except for constants, by the indices that NumPy's function gives."""
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        return torch.nn.functional.pad(
            x, [n for pair in reversed(widths) for n in pair], value=constant_values
        )
    for axis, pair in enumerate(widths):
        if any(pair):
            indices: Any = np.pad(  # type: ignore[call-overload]
                np.arange(x.shape[axis]), pair, mode
            )
            x = torch.index_select(x, axis, torch.as_tensor(indices))
    return x


def solve_triangular(x1: Any, x2: Any, **options: bool) -> Any:
    """Solve a triangular system, also for a vector."""
    if x2.ndim == 1:
        return torch.linalg.solve_triangular(x1, x2[:, None], **options)[..., 0]
    return torch.linalg.solve_triangular(x1, x2, **options)


def cholesky_solve(x: Any, factor: Any, upper: bool = False) -> Any:
    """Solve by a Cholesky factor, also for a vector; the gradient is of the triangle alone."""
    factor = torch.triu(factor) if upper else torch.tril(factor)
    out = torch.cholesky_solve(x[:, None] if x.ndim == 1 else x, factor, upper)
    return out[..., 0] if x.ndim == 1 else out


def lstsq(x1: Any, x2: Any) -> Any:
    """Return a least-squares solution and differentiable residuals."""
    columns = x2[:, None] if x2.ndim == 1 else x2
    out = torch.linalg.pinv(x1) @ columns
    residuals = torch.sum(torch.abs(x1 @ out - columns) ** 2, -2)
    return (out[..., 0], residuals[..., 0]) if x2.ndim == 1 else (out, residuals)


def sqrtm(x: Any) -> Any:
    """Return the matrix square root by eigenvalues; PyTorch has no function for it."""
    values, vectors = torch.linalg.eig(x)
    out = vectors @ torch.diag_embed(torch.sqrt(values)) @ torch.linalg.inv(vectors)
    return out if x.is_complex() else out.real
