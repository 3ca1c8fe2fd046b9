"""Sequences of several lengths: padded, or packed for recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from xgrad.backend.device import Device
from xgrad.core.arguments import as_int, as_tensor, check_tensors
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops import (
    arange,
    argsort,
    asarray,
    astype,
    cumulative_sum,
    expand_dims,
    moveaxis,
    reshape,
    searchsorted,
    stack,
    sum,
    take,
    where,
)
from xgrad.ops.padding import pad
from xgrad.support import hints
from xgrad.support.hints import shown

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
hints.install(__name__)


class PackedSequence(NamedTuple):
    """Sequences of several lengths without padding, as recurrent layers take and return them.

    `pack_padded_sequence` and `pack_sequence` make it, and `pad_packed_sequence` and
    `unpack_sequence` are their inverses.

    Attributes
    ----------
    data : Tensor
        The elements, of shape (elements, ...): the first element of all sequences, the longest
        sequence first, then the second element of the sequences that have one, and so on.
    batch_sizes : Tensor
        The number of sequences that have an element at each time: integers of shape (time,).
    sorted_indices : Tensor or None
        The index of each sequence in the batch, in the order of `data`; None if the batch is in
        this order.
    unsorted_indices : Tensor or None
        The inverse permutation.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([xgrad.asarray([1.0, 2.0, 3.0]), xgrad.asarray([7.0, 8.0])])
    >>> packed.data, packed.batch_sizes
    (Tensor([1., 7., 2., 8., 3.]), Tensor([2, 2, 1]))
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, device: str | Device | None = None, dtype: Any = None) -> PackedSequence:
        """Return the sequences on another device, or `data` in another dtype."""
        others = [
            x if x is None or device is None else x.to(device)
            for x in (self.batch_sizes, self.sorted_indices, self.unsorted_indices)
        ]
        return PackedSequence(self.data.to(device, dtype=dtype), *others)  # type: ignore[arg-type]


def pack_padded_sequence(
    input: Tensor,
    lengths: Sequence[int] | Tensor,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Return padded sequences without their padding; differentiable.

    Parameters
    ----------
    input : Tensor
        Of shape (time, batch, ...), or (batch, time, ...) with `batch_first`.
    lengths : sequence of int, or Tensor
        The length of each sequence, from 1 to the number of times. The values of a tensor are
        read, which a captured step cannot do: there, give a list.
    batch_first : bool, default False
        Whether the first axis of `input` is the batch instead of time.
    enforce_sorted : bool, default True
        Whether the lengths must be in descending order; if not, the sequences are sorted by length
        for the result, and functions and layers return them in the original order.

    Returns
    -------
    PackedSequence
        The elements of all sequences.

    Raises
    ------
    ValueError
        If the shapes do not fit, a length is out of range, or the lengths are not in descending
        order with `enforce_sorted`.
    TypeError
        If a length is not an int.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pack_padded_sequence
    >>> x = xgrad.asarray([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    >>> packed = pack_padded_sequence(x, [2, 3], batch_first=True, enforce_sorted=False)
    >>> packed.data, packed.sorted_indices
    (Tensor([3., 1., 4., 2., 5.]), Tensor([1, 0]))
    """
    name = "pack_padded_sequence"
    x = as_tensor(name, "input", input)
    if x.ndim < 2:
        raise ValueError(f"{name}: expected input of at least two axes, got shape {x.shape}")
    x = moveaxis(x, 0, 1) if batch_first else x
    counts = _lengths(name, lengths, x.shape[1], x.shape[0])
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    if enforce_sorted and order != list(range(len(counts))):
        raise ValueError(
            f"{name}: expected lengths in descending order, got {counts}: sort the sequences, or"
            " set enforce_sorted=False"
        )
    here: dict[str, Any] = {"dtype": int64, "device": x.device}
    times = expand_dims(arange(max(counts), device=x.device), axis=1)
    batch_sizes = sum(astype(asarray(counts, **here) > times, int64), axis=1)
    sorted_indices = None if enforce_sorted else asarray(order, **here)
    inverse = None if sorted_indices is None else argsort(sorted_indices)
    empty = PackedSequence(x, batch_sizes, sorted_indices, inverse)
    return empty._replace(data=_packed_rows(empty, x, math.fsum(counts)))


def _lengths(name: str, lengths: Any, batch: int, longest: int) -> list[int]:
    """Return the lengths of all sequences as ints; ValueError if one is out of range."""
    if isinstance(lengths, Tensor) or hasattr(lengths, "tolist"):
        lengths = lengths.tolist()
    if not isinstance(lengths, (list, tuple)):
        raise TypeError(f"{name}: expected a list of ints for lengths, got {shown(lengths)}")
    counts = [as_int(name, "lengths", n) for n in lengths]
    if not counts or len(counts) != batch or min(counts) < 1 or max(counts) > longest:
        raise ValueError(
            f"{name}: expected lengths of {batch} sequences, from 1 to {longest}, got {counts}"
        )
    return counts


def _packed_rows(packed: PackedSequence, x: Tensor, count: float) -> Tensor:
    """Return the elements of `x`, of shape (time, batch, ...), in the order of a packed sequence.

    Only the structure of `packed` is used.
    """
    ends = cumulative_sum(packed.batch_sizes)
    numbers = arange(int(count), device=x.device)
    times = searchsorted(ends, numbers, side="right")
    columns = numbers - take(ends - packed.batch_sizes, times, axis=0)
    if packed.sorted_indices is not None:
        columns = take(packed.sorted_indices, columns, axis=0)
    return take_steps(x, times, columns)


def take_steps(x: Tensor, times: Tensor, columns: Tensor) -> Tensor:
    """Return the elements of `x`, of shape (time, batch, ...), at times of sequences.

    `times` and `columns` are integers of one shape.
    """
    rest = x.shape[2:]
    flat = reshape(x, (x.shape[0] * x.shape[1], *rest))
    numbers = times * x.shape[1] + columns
    return reshape(take(flat, reshape(numbers, (-1,)), axis=0), (*numbers.shape, *rest))


def packed_like(packed: PackedSequence, x: Tensor) -> PackedSequence:
    """Return a padded tensor, of shape (time, batch, ...), packed like other sequences."""
    return packed._replace(data=_packed_rows(packed, x, packed.data.shape[0]))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences with padding, and their lengths; differentiable.

    Parameters
    ----------
    sequence : PackedSequence
        The sequences.
    batch_first : bool, default False
        Whether the first axis of the result is the batch instead of time.
    padding_value : float, default 0
        The value after the end of each sequence.
    total_length : int, optional
        The number of times; by default the length of the longest sequence.

    Returns
    -------
    padded : Tensor
        Of shape (time, batch, ...), or (batch, time, ...) with `batch_first`, in the order in which
        the sequences were packed.
    lengths : Tensor
        The length of each sequence, of shape (batch,).

    Raises
    ------
    ValueError
        If `total_length` is below the length of the longest sequence.
    TypeError
        If `sequence` is not a packed sequence.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([xgrad.asarray([1.0, 2.0, 3.0]), xgrad.asarray([7.0, 8.0])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (Tensor([[1., 2., 3.],
            [7., 8., 0.]]), Tensor([3, 2]))
    """
    name = "pad_packed_sequence"
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"{name}: expected a PackedSequence, got {shown(sequence)}")
    data, sizes, order, inverse = sequence
    longest = sizes.shape[0]
    time = longest if total_length is None else as_int(name, "total_length", total_length)
    if time < longest:
        raise ValueError(
            f"{name}: expected total_length of at least {longest}, the length of the longest"
            f" sequence, got {time}"
        )
    batch = int(sizes[0]) if order is None else order.shape[0]
    columns = arange(batch, device=data.device)
    if order is not None:
        columns = argsort(order) if inverse is None else inverse
    sizes = pad(sizes, ((0, time - longest),))
    starts = expand_dims(cumulative_sum(sizes) - sizes, axis=1)
    inside = columns < expand_dims(sizes, axis=1)
    rows = where(inside, starts + columns, 0)
    rest = data.shape[1:]
    padded = reshape(take(data, reshape(rows, (-1,)), axis=0), (time, batch, *rest))
    padded = where(reshape(inside, (time, batch) + (1,) * len(rest)), padded, padding_value)
    lengths = sum(astype(inside, int64), axis=0)
    return moveaxis(padded, 0, 1) if batch_first else padded, lengths


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: Literal["right", "left"] = "right",
) -> Tensor:
    """Return sequences of several lengths, padded to one length, as one tensor; differentiable.

    Parameters
    ----------
    sequences : sequence of Tensor
        At least one, of shapes (length, ...), which differ only in the length.
    batch_first : bool, default False
        Whether the first axis of the result is the batch instead of time.
    padding_value : float, default 0
        The value of the padding.
    padding_side : {"right", "left"}, default "right"
        Whether the padding is after or before each sequence.

    Returns
    -------
    Tensor
        Of shape (time, batch, ...), or (batch, time, ...) with `batch_first`.

    Raises
    ------
    ValueError
        If there are no sequences, their shapes do not fit, or `padding_side` is unknown.
    TypeError
        If the sequences are not tensors.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pad_sequence
    >>> pad_sequence([xgrad.asarray([1.0]), xgrad.asarray([2.0, 3.0])], batch_first=True)
    Tensor([[1., 0.],
            [2., 3.]])
    """
    name = "pad_sequence"
    tensors = check_tensors(name, "sequences", sequences)
    if padding_side not in ("right", "left"):
        raise ValueError(
            f"{name}: expected a padding_side of 'right' or 'left', got {shown(padding_side)}"
        )
    shapes = [x.shape for x in tensors]
    if not shapes or not all(shapes) or any(shape[1:] != shapes[0][1:] for shape in shapes):
        raise ValueError(
            f"{name}: expected sequences of shapes (length, ...) that differ only in the length,"
            f" got {shapes}"
        )
    longest = max(shape[0] for shape in shapes)
    padded = []
    for x in tensors:
        missing = longest - x.shape[0]
        widths = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(
            pad(x, (widths, *((0, 0),) * (x.ndim - 1)), constant_values=padding_value)
            if missing
            else x
        )
    return stack(padded, axis=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Sequence[int] | Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences of a padded tensor, each without its padding: see `pad_sequence`.

    Parameters
    ----------
    padded_sequences : Tensor
        Of shape (time, batch, ...), or (batch, time, ...) with `batch_first`.
    lengths : sequence of int, or Tensor
        The length of each sequence, from 1 to the number of times.
    batch_first : bool, default False
        Whether the first axis is the batch instead of time.

    Returns
    -------
    list of Tensor
        Sequences of shapes (length, ...).

    Raises
    ------
    ValueError
        If the shapes do not fit, or a length is out of range.
    TypeError
        If a length is not an int.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(xgrad.asarray([[1.0, 0.0], [2.0, 3.0]]), [1, 2], batch_first=True)
    [Tensor([1.]), Tensor([2., 3.])]
    """
    name = "unpad_sequence"
    x = as_tensor(name, "padded_sequences", padded_sequences)
    if x.ndim < 2:
        raise ValueError(
            f"{name}: expected padded_sequences of at least two axes, got shape {x.shape}"
        )
    x = x if batch_first else moveaxis(x, 0, 1)
    counts = _lengths(name, lengths, x.shape[0], x.shape[1])
    return [x[i, :n, ...] for i, n in enumerate(counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths: see `pack_padded_sequence`.

    Parameters
    ----------
    sequences : sequence of Tensor
        At least one, of shapes (length, ...), which differ only in the length.
    enforce_sorted : bool, default True
        Whether the lengths must be in descending order.

    Returns
    -------
    PackedSequence
        The elements of all sequences.

    Raises
    ------
    ValueError
        If the shapes do not fit, a sequence is empty, or the lengths are not in descending order
        with `enforce_sorted`.
    TypeError
        If the sequences are not tensors.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> packed = pack_sequence([xgrad.ones(1), xgrad.zeros(2)], enforce_sorted=False)
    >>> unpack_sequence(packed)
    [Tensor([1.]), Tensor([0., 0.])]
    """
    tensors = check_tensors("pack_sequence", "sequences", sequences)
    padded = pad_sequence(tensors)
    return pack_padded_sequence(
        padded, [x.shape[0] for x in tensors], enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed sequence: the inverse of `pack_sequence`.

    Parameters
    ----------
    packed_sequences : PackedSequence
        The sequences.

    Returns
    -------
    list of Tensor
        Sequences of shapes (length, ...), in the order in which they were packed.

    Raises
    ------
    TypeError
        If the argument is not a packed sequence.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([xgrad.zeros(2), xgrad.ones(1)]))
    [Tensor([0., 0.]), Tensor([1.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
