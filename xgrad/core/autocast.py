"""Casts of the inputs of ops in mixed precision: see `xgrad.amp.autocast`."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from xgrad.core.dtypes import float16, float32
from xgrad.core.namespace import namespace

if TYPE_CHECKING:
    from xgrad.core.namespace import Tensor

#: Ops that lose most in float16, and are in float32 in PyTorch, too. Losses and normalization declare it themselves.
WIDE = frozenset(
    "acos asin cosh cumulative_prod cumulative_sum erfinv exp expm1 log log10 log1p log2 pow prod reciprocal sinh "
    "softplus sum tan vector_norm".split()
)
#: The dtype of matrix products by type of device, in this thread or task; None without any.
autocast_dtypes: ContextVar[Mapping[str, Any] | None] = ContextVar("xgrad_autocast", default=None)


@cache
def autocast_mode(types: frozenset[tuple[str, Any]]) -> Mapping[str, Any] | None:
    """Return a value of `autocast_dtypes`, the same object for equal settings, since captured steps compare it."""
    return dict(types) or None


def cast_inputs(inputs: tuple[Any, ...], dtypes: Mapping[str, Any], narrow: bool) -> tuple[Any, ...]:
    """Return the inputs of an op: float32 in the dtype of the device if the op is `narrow`, else float16 as float32."""
    return tuple([_cast(x, dtypes, narrow) if hasattr(x, "_placement") else x for x in inputs])


def _cast(x: Tensor, dtypes: Mapping[str, Any], narrow: bool) -> Tensor:
    target = dtypes.get(x.device.type)
    if target is None or x.dtype not in (float16, float32):
        return x
    target = target if narrow else float32
    return x if x.dtype == target else namespace.astype(x, target)


def widened(*inputs: Any) -> tuple[Any, ...]:
    """Return the inputs of a composition as those of a wide op: in an autocast mode float16 as float32."""
    dtypes = autocast_dtypes.get()
    return inputs if dtypes is None else cast_inputs(inputs, dtypes, False)


def is_cast(*tensors: Tensor) -> bool:
    """Return whether tensors of several dtypes are cast to one by ops."""
    dtypes = autocast_dtypes.get() or {}
    return all(x.device.type in dtypes and x.dtype in (float16, float32) for x in tensors)
