"""The ops as PyTorch spells them: an oracle that is not ours, loaded when it is first asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np


class _PyTorch:
    """PyTorch, imported at the first look at an attribute: the table is used without it, too."""

    def __getattr__(self, name: str) -> Any:
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
    axis = 0 if axis is None else axis
    out = torch.cumsum(x, axis)
    if include_initial:
        first = (
            torch.zeros_like(x.narrow(axis, 0, 1))
            if x.shape[axis]
            else x.new_zeros([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)])
        )
        out = torch.cat([first, out], axis)
    return out


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


def scatter(x: Any, key: Any) -> Any:
    """Add into four zeros."""
    return torch.zeros(4, dtype=x.dtype).index_add(0, torch.as_tensor(key[0]), x)
