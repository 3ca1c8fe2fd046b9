"""Maximum pooling of integers, and unpooling, with PyTorch's results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.signatures import Signature, adapted
from xgrad.compat.torch.tensor import as_torch
from xgrad.nn import functional as F
from xgrad.ops.embedding import with_gradient_share
from xgrad.ops.indexing import put_along_axis

#: Integers up to this size are the same in float64, in which xgrad compares them.
_EXACT = 2**53


def max_pool(name: str, signature: str, ndim: int) -> Callable[..., Any]:
    """Return a maximum pooling over `ndim` axes, which also takes integers, as PyTorch's does."""
    pool, bound = getattr(F, name), Signature(name, signature)
    of_floats = adapted(f"torch.nn.functional.{name}", signature, pool)

    def call(*args: Any, **options: Any) -> Any:
        (x, *sizes), chosen = bound.bind(args, options)
        if not isinstance(x, xgrad.Tensor) or x.dtype.kind not in "iu":
            return of_floats(*args, **options)
        if x.dtype.itemsize == 8 and bool(xgrad.any((x > _EXACT) | (x < -_EXACT))):
            raise NotImplementedError(
                f"{name}: integers beyond 2**53 are not available in xgrad.compat.torch"
            )
        with_indices = chosen.pop("return_indices")
        floats = xgrad.astype(x, xgrad.float64)
        _, indices = pool(floats, *sizes, **chosen, return_indices=True)
        flat = xgrad.reshape(x, (*x.shape[:-ndim], math.prod(x.shape[-ndim:])))
        places = xgrad.reshape(indices, (*flat.shape[:-1], -1)) if indices.size else indices
        largest = xgrad.take_along_axis(flat, places) if indices.size else indices
        largest = xgrad.astype(xgrad.reshape(largest, indices.shape), x.dtype)
        return as_torch((largest, indices) if with_indices else largest)

    call.__name__ = call.__qualname__ = name
    return call


def max_unpool(name: str, signature: str, ndim: int) -> Callable[..., Any]:
    """Return an unpooling whose elements each get the whole gradient of their place, as PyTorch's.

    xgrad's has the mean of the elements of a place, which share its gradient.
    """
    unpool, bound = getattr(F, name), Signature(name, signature)
    of_floats = adapted(f"torch.nn.functional.{name}", signature, unpool)

    def call(*args: Any, **options: Any) -> Any:
        out = of_floats(*args, **options)
        if not out.requires_grad:
            return out
        (x, indices, *more), chosen = bound.bind(args, options)
        rows = math.prod(x.shape[:-ndim])
        places = xgrad.reshape(xgrad.astype(indices, xgrad.int64), (rows, -1))
        ones = xgrad.ones(places.shape, dtype=x.dtype, device=x.device)
        shape = rows, math.prod(out.shape[-ndim:])
        counts = put_along_axis(ones, places, axis=1, shape=shape)
        share = xgrad.reshape(xgrad.take_along_axis(counts, places), x.shape)
        return as_torch(unpool(with_gradient_share(x, share), indices, *more, **chosen))

    call.__name__ = call.__qualname__ = name
    return call
