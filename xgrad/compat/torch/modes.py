"""Gradient modes, default dtype and device, and limits of dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import xgrad
from xgrad.compat.torch.promotion import promote_types, result_type
from xgrad.core.dtypes import standard
from xgrad.core.modes import enable_grad, grad_enabled, is_grad_enabled, no_grad
from xgrad.support.scopes import Mode

__all__ = [
    "can_cast",
    "enable_grad",
    "finfo",
    "get_default_dtype",
    "iinfo",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "promote_types",
    "result_type",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
]


class set_grad_enabled(Mode[bool]):
    """Record the graph or not: from the call on, and until the end of a ``with`` block of it."""

    def __init__(self, mode: bool) -> None:
        super().__init__(grad_enabled, bool(mode))
        super().__enter__()

    def __enter__(self) -> bool:
        return self._value


class inference_mode(Mode[bool]):
    """Record no graph: the same as `no_grad`."""

    def __new__(cls, mode: Any = True) -> Any:
        """Return a context, or a function that is decorated without parentheses."""
        return no_grad()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(grad_enabled, not mode)


@dataclass(frozen=True)
class finfo:
    """Limits of a floating dtype, as Python floats."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, type: Any = None) -> None:
        dtype = standard(xgrad.get_default_dtype() if type is None else type)
        limits = np.finfo(dtype)
        vars(self).update(
            dtype=str(dtype),
            bits=limits.bits,
            tiny=float(limits.tiny),
            **{
                name: float(getattr(limits, name))
                for name in ("eps", "max", "min", "smallest_normal", "resolution")
            },
        )


@dataclass(frozen=True)
class iinfo:
    """Limits of an integer dtype, as Python ints."""

    dtype: str
    bits: int
    max: int
    min: int

    def __init__(self, type: Any) -> None:
        limits = np.iinfo(standard(type))
        vars(self).update(
            dtype=str(limits.dtype), bits=limits.bits, max=int(limits.max), min=int(limits.min)
        )


def get_default_dtype() -> np.dtype:
    """Return the dtype of floats for which none is given: see `xgrad.get_default_dtype`."""
    return xgrad.get_default_dtype()


def set_default_dtype(d: Any) -> None:
    """Set the dtype of floats for which none is given: see `xgrad.set_default_dtype`."""
    xgrad.set_default_dtype(d)


def set_default_device(device: Any) -> None:
    """Refuse to set a device for good: `xgrad.default_device` is a context manager."""
    if str(device) not in ("cpu", "None"):
        raise NotImplementedError(
            "torch.set_default_device is not available in xgrad.compat.torch: use"
            " with xgrad.default_device(...):, or .to(device)"
        )


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether PyTorch casts a dtype to another in a write: not to a lower kind."""
    order = "b iu f c".split()
    kinds = [
        next(i for i, part in enumerate(order) if standard(x).kind in part) for x in (from_, to)
    ]
    return kinds[0] <= kinds[1]


def set_num_threads(num: int) -> None:
    """Set the number of threads: see `xgrad.set_num_threads`."""
    xgrad.set_num_threads(num)


def set_printoptions(**options: Any) -> None:
    """Accept options of printing, which have no effect."""
