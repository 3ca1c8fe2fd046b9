"""Functions of the namespace that are about settings, or are also methods of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.backend.devices import current_device, set_tf32
from xgrad.compat.torch import conversions, shapes
from xgrad.compat.torch.shape import Size
from xgrad.compat.torch.tensor import as_torch, torch_function
from xgrad.core.tensor import Tensor


@torch_function
def clone(input: Tensor, *, memory_format: Any = None) -> Any:
    """Return a copy; differentiable."""
    return xgrad.asarray(input, copy=True)


def detach(input: Any) -> Any:
    """Return a view of the values without history."""
    return as_torch(input.data)


@torch_function
def cartesian_prod(*tensors: Tensor) -> Any:
    """Return the rows of all combinations of the elements of vectors: see `meshgrid`."""
    if len(tensors) == 1:
        return tensors[0]
    return xgrad.stack([xgrad.reshape(x, (-1,)) for x in shapes.meshgrid(*tensors)], axis=1)


@torch_function
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """Return a matrix with the elements on a diagonal: see `xgrad.diag`."""
    return xgrad.diag(xgrad.reshape(input, (-1,)), k=offset)


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape of tensors of these shapes, broadcast: see `xgrad.broadcast_shapes`."""
    found = xgrad.broadcast_shapes(*[(x,) if isinstance(x, int) else tuple(x) for x in shapes])
    return Size(found)


def resolve(input: Any) -> Any:
    """Return the tensor: conjugates and negatives are never lazy."""
    return input


def never(input: Any) -> bool:
    """Return False: conjugates and negatives are never lazy, and all tensors can be trained."""
    return False


def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return input.dtype.kind in "ifc"


def get_num_threads() -> int:
    """Return the number of threads: see `xgrad.get_num_threads`."""
    return xgrad.get_num_threads()


def get_default_device() -> Any:
    """Return the device of new tensors: see `xgrad.default_device`."""
    return current_device()


def set_float32_matmul_precision(precision: str) -> None:
    """Choose the precision of matrix products on a GPU: see `xgrad.set_tf32`."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            "set_float32_matmul_precision: expected 'highest', 'high' or 'medium', got"
            f" {precision!r}"
        )
    set_tf32(precision != "highest")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept a setting, which has no effect: equal programs give equal results on the CPU."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: equal programs give equal results on the CPU."""
    return True


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        are_deterministic_algorithms_enabled, broadcast_shapes, cartesian_prod, clone, detach,
        diagflat, get_default_device, get_num_threads, is_signed, set_float32_matmul_precision,
        use_deterministic_algorithms,
    )
}  # fmt: skip
FUNCTIONS |= {
    "is_conj": never,
    "is_inference": never,
    "is_neg": never,
    "is_same_size": conversions.is_same_size,
    "resolve_conj": resolve,
    "resolve_neg": resolve,
}
METHODS = {
    name: FUNCTIONS[name]
    for name in "diagflat is_conj is_inference is_neg is_signed resolve_conj resolve_neg".split()
}
