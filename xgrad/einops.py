"""A backend of einops: `einops.rearrange` and its other functions take tensors of any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import xgrad
from xgrad.core.tensor import Tensor

__all__ = ["register"]


@cache
def register() -> type:
    """Let the functions of einops take tensors; return the class of the backend.

    The first tensor that a program makes does this if einops was imported before. Only a program
    that imports einops later calls it.

    Raises
    ------
    ModuleNotFoundError
        If einops is missing (``pip install einops``).

    Examples
    --------
    >>> import xgrad, xgrad.einops
    >>> x = xgrad.reshape(xgrad.arange(6), (2, 3))
    >>> import einops  # doctest: +SKIP
    >>> _ = xgrad.einops.register()  # doctest: +SKIP
    >>> einops.rearrange(x, "row column -> column row").tolist()  # doctest: +SKIP
    [[0, 3], [1, 4], [2, 5]]
    """
    base = import_module("einops._backends").AbstractBackend
    return type("TensorBackend", (_Operations, base), {})  # einops looks at the subclasses


class _Operations:
    """The operations on tensors that einops needs."""

    framework_name = "xgrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Return whether an object is a tensor."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        """Return a tensor with the values of an array."""
        return xgrad.asarray(x)

    def to_numpy(self, x: Tensor) -> Any:
        """Return the values as an array of NumPy."""
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Return the integers from `start` to `stop`, which is left out."""
        return xgrad.arange(start, stop)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the elements in another shape."""
        return _like(x, xgrad.reshape(x, tuple(shape)))

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """Return a tensor with its axes in another order."""
        return _like(x, xgrad.permute_dims(x, tuple(axes)))

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        """Reduce axes by the function of that name."""
        return _like(x, getattr(xgrad, operation)(x, axis=tuple(axes)))

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        """Join tensors along a new first axis."""
        return _like(tensors[0], xgrad.stack(tensors))

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """Insert an axis of length 1."""
        return _like(x, xgrad.expand_dims(x, axis=new_position))

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        """Repeat the tensor along each of its axes."""
        return _like(x, xgrad.tile(x, tuple(repeats)))

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        return _like(tensors[0], xgrad.concat(tensors, axis=axis))

    def is_float_type(self, x: Tensor) -> bool:
        """Return whether the dtype is real floating or complex, so that there is a mean."""
        return bool(xgrad.isdtype(x.dtype, ("real floating", "complex floating")))

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Sum products by the letters of a pattern."""
        return _like(x[0], xgrad.einsum(pattern, *x))


def _like(x: Tensor, result: Tensor) -> Tensor:
    """Return a result in the namespace of a tensor: one with other methods converts it."""
    convert: Callable[[Tensor], Tensor] | None = getattr(type(x), "_in_namespace", None)
    return result if convert is None else convert(result)
