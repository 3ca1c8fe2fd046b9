"""Lookup of the rows of a matrix by index."""

from __future__ import annotations

import math

from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_int, as_tensor, is_below, is_not_negative
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.indexing import take
from xgrad.ops.manipulation import expand_dims, reshape
from xgrad.ops.searching import where
from xgrad.ops.tensor_conversion import astype


def check_numbers(op: str, name: str, numbers: Tensor, count: int) -> None:
    """Raise IndexError unless all integers are from 0 to ``count - 1``.

    Not checked on a GPU, where the check would synchronize.
    """
    raw, backend, xp = numbers._data, numbers.device.backend, numbers.device.xp
    if backend.asynchronous or 0 in raw.shape:
        return
    with numbers.device.active():
        if not run_array_code(numbers.device, is_not_negative, raw):
            wrong = xp.min(raw)
        elif not run_array_code(numbers.device, is_below, raw, count):
            wrong = xp.max(raw)
        else:
            return
        got = "others" if numbers.device.level else int(wrong)
        raise IndexError(f"{op}: expected {name} from 0 to {count - 1}, got {got}")


def front_index(op: str, index: int | None, count: int) -> int | None:
    """Return a `padding_idx` counted from the front."""
    if index is None:
        return None
    if not -count <= as_int(op, "padding_idx", index) < count:
        raise ValueError(f"{op}: expected padding_idx from {-count} to {count - 1}, got {index}")
    return index % count


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Return the rows of a matrix at given indices.

    Parameters
    ----------
    input : Tensor
        The indices of rows, counted from 0: integers, of any shape.
    weight : Tensor
        Of shape (rows, features).
    padding_idx : int, optional
        The index of a row that gets no gradient.

    Returns
    -------
    Tensor
        Of the shape of `input`, with the features as a new last axis.

    Raises
    ------
    IndexError
        If there is no such row; not checked on ``cuda``, where the check would synchronize.
    TypeError
        If `input` does not hold integers.
    ValueError
        If `weight` is not a matrix, or `padding_idx` is not the index of a row.

    Examples
    --------
    >>> import xgrad
    >>> weight = xgrad.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> xgrad.nn.functional.embedding(xgrad.asarray([2, 0]), weight)
    Tensor([[3., 4.],
            [0., 0.]])
    """
    input, weight = as_tensor("embedding", "input", input), as_tensor("embedding", "weight", weight)
    if input.dtype.kind not in "iu":
        raise TypeError(
            f"embedding: expected input of integers, got {input.dtype}: use .astype(int64)"
        )
    if weight.ndim != 2:
        raise ValueError(
            f"embedding: expected weight of shape (rows, features), got {weight.shape}"
        )
    count, features = weight.shape
    padding = front_index("embedding", padding_idx, count)
    # The range of uint8 may be too short for the rows.
    numbers = astype(reshape(input, (math.prod(input.shape),)), int64, copy=False)
    check_numbers("embedding", "input", numbers, count)
    rows = take(weight, numbers, axis=0)
    if padding is not None:
        rows = where(expand_dims(numbers == padding, axis=1), rows.detach(), rows)
    return rows if input.ndim == 1 else reshape(rows, (*input.shape, features))
