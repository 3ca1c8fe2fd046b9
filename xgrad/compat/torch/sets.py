"""Sets of elements, and of slices along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor


def _chosen(values: Any, inverse: Any, counts: Any, wants_inverse: bool, wants_counts: bool) -> Any:
    """Return the values, alone or with what a caller wants besides."""
    if not (wants_inverse or wants_counts):
        return values
    return (values, *[inverse][: int(wants_inverse)], *[counts][: int(wants_counts)])


def _rows(x: Any, dim: int) -> Any:
    """Return the slices along an axis as rows."""
    front = xgrad.moveaxis(x, dim, 0)
    return xgrad.reshape(front, (front.shape[0], math.prod(front.shape[1:])))


def _labels(rows: Any) -> Any:
    """Return an integer for each row: equal ones for equal rows, in lexicographic order."""
    labels = xgrad.zeros((rows.shape[0],), dtype="int64", device=rows.device)
    for column in range(rows.shape[1]):
        found = xgrad.unique_inverse(rows[:, column])
        keys = labels * found.values.shape[0] + found.inverse_indices
        labels = xgrad.unique_inverse(keys).inverse_indices
    return labels


@torch_function
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements or slices, in ascending order: see `xgrad.unique_all`."""
    x = input.detach()
    if dim is None:
        if not (return_inverse or return_counts):
            return xgrad.unique_values(x)
        found = xgrad.unique_all(x)
        values = found.values
    else:
        rows = _rows(x, dim)
        if not rows.shape[1]:
            raise RuntimeError(f"unique: expected slices with elements, got {tuple(x.shape)}")
        found = xgrad.unique_all(_labels(rows))
        values = xgrad.take(x, found.indices, axis=dim)
    return _chosen(values, found.inverse_indices, found.counts, return_inverse, return_counts)


@torch_function
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the elements or slices without those that repeat the one before."""
    x = input.detach()
    flat = xgrad.reshape(x, (-1,)) if dim is None else x
    rows = xgrad.reshape(x, (-1, 1)) if dim is None else _rows(x, dim)
    is_new = xgrad.any(rows[1:] != rows[:-1], axis=1)
    first = xgrad.ones((min(rows.shape[0], 1),), dtype="bool", device=x.device)
    is_new = xgrad.concat([first, is_new])
    (starts,) = xgrad.nonzero(is_new)
    inverse = xgrad.cumulative_sum(xgrad.astype(is_new, "int64"), axis=0) - 1
    end = xgrad.asarray([rows.shape[0]], dtype="int64", device=x.device)
    counts = xgrad.diff(xgrad.concat([starts, end]))
    if dim is None:
        inverse = xgrad.reshape(inverse, tuple(x.shape))
    values = xgrad.take(flat, starts, axis=0 if dim is None else dim)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


@torch_function
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """Return whether elements are among others: see `xgrad.isin`."""
    return xgrad.isin(elements, test_elements, invert=invert)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (isin, unique, unique_consecutive)
}
