"""The outcome of a sample: whether two libraries agree on a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

import xgrad.compat.torch as compat

KINDS = ("agrees", "refused", "differs", "error", "missing")
#: Errors that refuse a call; others come from a fault.
REFUSALS = (TypeError, ValueError, NotImplementedError, RuntimeError, AttributeError, IndexError)
TOLERANCES = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3, "complex64": 1e-3}
#: How far values may be apart where PyTorch's own are less accurate than its dtype.
LESS_ACCURATE = 1e-6


class Outcome(NamedTuple):
    """The outcome of a sample: one of `KINDS`, with a reason unless it agrees."""

    kind: str
    reason: str = ""


def array(t: Any) -> np.ndarray:
    """Return the values of a tensor of either library."""
    if isinstance(t, torch.Tensor):
        return t.numpy(force=True)
    values: np.ndarray = t.detach().numpy()
    return values


class Arguments:
    """Copies of a sample's arguments for a library: its tensors, dtypes and devices.

    A tensor that occurs twice is one tensor, and one that requires a gradient is a leaf.
    """

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self._tensors: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return a nested value with PyTorch's tensors and dtypes replaced by the library's."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self._tensors:
                made = self._lib.tensor(array(value))
                self._tensors[id(value)] = made.requires_grad_(value.requires_grad)
            return self._tensors[id(value)]
        if isinstance(value, torch.dtype):
            return getattr(self._lib, str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self.of(item) for item in value])
        if isinstance(value, (list, tuple)):
            kind = tuple if isinstance(value, torch.Size) else type(value)
            return kind([self.of(item) for item in value])
        return value


def compare(
    expected: Callable[[], Any], got: Callable[[], Any], is_less_accurate: bool = False
) -> Outcome:
    """Call both libraries' functions, and compare their results, or the gradients they return."""
    try:
        wanted = expected()
    except Exception as error:
        try:
            got()
        except REFUSALS:
            return Outcome("agrees")
        except Exception as other:
            return Outcome("error", _shortened(other))
        return Outcome("differs", f"PyTorch raises {_shortened(error)}")
    try:
        found = got()
    except REFUSALS as error:
        return Outcome("refused", _shortened(error))
    except Exception as error:
        return Outcome("error", _shortened(error))
    difference = unequal(wanted, found, LESS_ACCURATE if is_less_accurate else 0.0)
    return Outcome("differs", difference) if difference else Outcome("agrees")


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


def unequal(wanted: Any, found: Any, least_tolerance: float = 0.0) -> str:
    """Return how two results differ, "" if they agree."""

    def first_difference(pairs: Iterable[tuple[Any, Any]]) -> str:
        return next(filter(None, (unequal(a, b, least_tolerance) for a, b in pairs)), "")

    if isinstance(wanted, torch.Tensor):
        return _unequal_tensors(wanted, found, least_tolerance)
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(wanted) != len(found):
            return f"expected {len(wanted)} results, got {_described(found)}"
        return first_difference(zip(wanted, found, strict=True))
    if isinstance(wanted, dict):
        if not isinstance(found, dict) or list(wanted) != list(found):
            return f"expected keys {list(wanted)}, got {_described(found)}"
        return first_difference(zip(wanted.values(), found.values(), strict=True))
    if isinstance(wanted, torch.dtype):
        name = str(wanted).removeprefix("torch.")
        return "" if name == str(found) else f"expected {name}, got {found}"
    if isinstance(wanted, (int, float, complex)) and not isinstance(wanted, bool):
        return "" if np.allclose(wanted, found, equal_nan=True) else f"{wanted}, got {found}"
    return "" if wanted == found or wanted is found else f"expected {wanted}, got {found}"


def _described(value: Any) -> str:
    return f"{len(value)} results" if isinstance(value, (list, tuple)) else type(value).__name__


def _unequal_tensors(wanted: torch.Tensor, found: Any, least_tolerance: float) -> str:
    if not isinstance(found, compat.Tensor):
        return f"expected a tensor, got {type(found).__name__}"
    dtype, its_dtype = (str(t.dtype).removeprefix("torch.") for t in (wanted, found))
    if dtype != its_dtype or tuple(wanted.shape) != tuple(found.shape):
        return (
            f"expected shape {tuple(wanted.shape)}, {dtype}, got {tuple(found.shape)}, {its_dtype}"
        )
    if wanted.is_sparse or wanted.dtype == torch.bfloat16:
        return "expected a sparse tensor"
    a, b = array(wanted), array(found)
    tolerance = max(TOLERANCES.get(dtype, 0.0), least_tolerance)
    if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        largest = np.max(np.abs(a.astype(complex) - b.astype(complex)), initial=0.0)
    return f"values of shape {a.shape} differ by up to {largest:.1e}"
