"""Shapes as PyTorch gives them: `torch.Size`, and the attribute ``Tensor.size``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, overload


class Size(tuple[int, ...]):
    """The shape of a tensor."""

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        return math.prod(self)

    @overload  # type: ignore[override]
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        return Size(part) if isinstance(part, tuple) else part

    def __add__(self, other: Any) -> Size:
        return Size(super().__add__(tuple(other)))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


class ElementCount(int):
    """The number of elements of a tensor, xgrad's ``x.size``.

    Called, it is PyTorch's method of the same name, ``x.size()`` or ``x.size(dim)``: functions of
    xgrad, and programs for PyTorch, each find what they expect.
    """

    _shape: Size

    def __new__(cls, shape: Iterable[int]) -> ElementCount:
        count = super().__new__(cls, math.prod(shape))
        count._shape = Size(shape)
        return count

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of one axis."""
        return self._shape if dim is None else self._shape[dim]
