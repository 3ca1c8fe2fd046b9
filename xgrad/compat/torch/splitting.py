"""Parts of tensors along an axis: views, and their forms that copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xgrad
from xgrad.compat.torch import shapes
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor
from xgrad.ops import torch_indexing


def _listed(x: Any) -> Any:
    """Return a tensor of indices as a list, or as a number if it has no axes."""
    return x.tolist() if isinstance(x, xgrad.Tensor) else x


@torch_function
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> Any:
    """Return views of parts of one length, or of given ones, along an axis."""
    return torch_indexing.split(tensor, split_size_or_sections, dim)


@torch_function
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Return views of parts of given lengths along an axis."""
    return torch_indexing.split(input, list(split_sizes), dim)


@torch_function
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """Return views of up to `chunks` parts along an axis, of one length but for the last."""
    return torch_indexing.chunk(input, chunks, dim)


@torch_function
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **other: Any) -> Any:
    """Return views of parts along an axis: nearly equal ones, or split at indices."""
    for name in ("indices", "sections"):
        indices_or_sections = other.pop(name, indices_or_sections)
    if other or indices_or_sections is None:
        raise TypeError(f"tensor_split: expected indices or sections, got {sorted(other)}")
    return torch_indexing.tensor_split(input, _listed(indices_or_sections), dim)


def _split_along(name: str, least: int, axis: Callable[[Any], int]) -> Callable[..., Any]:
    def function(input: Tensor, indices_or_sections: Any) -> Any:
        if input.ndim < least:
            raise RuntimeError(
                f"{name}: expected a tensor with at least {least} axes, got shape"
                f" {tuple(input.shape)}"
            )
        dim = axis(input)
        if isinstance(indices_or_sections, int) and (
            indices_or_sections < 1 or input.shape[dim] % indices_or_sections
        ):
            raise RuntimeError(
                f"{name}: expected sections that divide {input.shape[dim]}, the length of axis"
                f" {dim}, got {indices_or_sections}"
            )
        return tensor_split(input, indices_or_sections, dim)

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


#: ``hsplit(input, indices_or_sections)`` and the like.
hsplit = _split_along("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda x: 0)
dsplit = _split_along("dsplit", 3, lambda x: 2)


@torch_function
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Any:
    """Return a view of `length` elements along an axis, from `start` on."""
    return torch_indexing.narrow(input, dim, _listed(start), length)


@torch_function
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Any:
    """Return the windows that slide along an axis, as a new last axis; a copy, not a view."""
    if input.ndim:
        return torch_indexing.unfold(input, dimension, size, step)
    windows = torch_indexing.unfold(xgrad.reshape(input, (1,)), dimension, size, step)
    return xgrad.reshape(windows[0] if size else windows[0, :], (size,))


def _copying(name: str, function: Any) -> Callable[..., Any]:
    """Return a function whose results are copies of the views that another one returns."""

    def copy(input: Tensor, *args: Any, **options: Any) -> Any:
        found = function(input, *args, **options)
        if isinstance(found, tuple):
            return tuple([xgrad.asarray(x, copy=True) for x in found])
        return xgrad.asarray(found, copy=True)

    copy.__name__ = copy.__qualname__ = name
    return torch_function(copy)


#: Functions that are methods, too.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chunk": chunk,
    "dsplit": dsplit,
    "hsplit": hsplit,
    "narrow": narrow,
    "narrow_copy": _copying("narrow_copy", narrow),
    "split_with_sizes": split_with_sizes,
    "tensor_split": tensor_split,
    "unsafe_chunk": chunk,
    "unsafe_split": split,
    "unsafe_split_with_sizes": split_with_sizes,
    "vsplit": vsplit,
}
#: Functions alone.
PLAIN: dict[str, Callable[..., Any]] = {
    "split": split,
    **{
        f"{name}_copy": _copying(f"{name}_copy", function)
        for name, function in {
            "alias": lambda x: x,
            "diagonal": shapes.diagonal,
            "expand": shapes.expand,
            "permute": shapes.permute,
            "select": shapes.select,
            "split": split,
            "split_with_sizes": split_with_sizes,
            "squeeze": shapes.squeeze,
            "t": shapes.t,
            "transpose": shapes.transpose,
            "unbind": shapes.unbind,
            "unfold": unfold,
            "unsqueeze": shapes.unsqueeze,
            "view": shapes.view,
        }.items()
    },
}
#: Methods alone.
METHODS: dict[str, Callable[..., Any]] = {"unfold": unfold}
