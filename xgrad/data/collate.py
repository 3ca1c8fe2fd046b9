"""Collation of samples into a batch, and conversion of single samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xgrad.core.tensor import Tensor
from xgrad.ops import asarray, stack

_HINT = "give collate_fn, a function of the list of samples"
_ARRAY = np.ndarray | np.generic
_NUMBER = bool | int | float | complex
_TEXT = str | bytes
# arrays come before numbers, since np.float64 is both
_KINDS: tuple[Any, ...] = (Tensor, _ARRAY, _NUMBER, _TEXT, Mapping, Sequence)


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate a list of samples into a batch, with a new first axis.

    ==========================  ====================================================================
    samples                     their batch
    ==========================  ====================================================================
    tensors                     a tensor on their device
    NumPy arrays and scalars    a tensor of their dtype on the default device
    numbers, bools              a tensor of the default dtype of their kind: float32, int64, bool
    str, bytes                  a list
    tuples, named tuples        the same type, with the batches of their fields
    other sequences             a list, with the batches of their elements
    mappings                    a dict, with the batches of their values
    ==========================  ====================================================================

    This matches PyTorch's ``default_collate``, except that a tuple remains a tuple, and a float
    becomes float32.

    Parameters
    ----------
    batch : sequence
        At least one sample, all of one structure.

    Returns
    -------
    Tensor, list, tuple or dict
        The batch.

    Raises
    ------
    TypeError
        If samples are of none of these types, or of different types.
    ValueError
        If there is no sample, if shapes, lengths or keys differ, or if samples are nested too
        deeply.
    DeviceError
        If the tensors are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.default_collate([({"x": 1}, "a"), ({"x": 2}, "b")])
    ({'x': Tensor([1, 2])}, ['a', 'b'])
    """
    if not isinstance(batch, Iterable) or isinstance(batch, (Mapping, str)):
        raise TypeError(
            f"default_collate: expected a sequence of samples, got {type(batch).__name__}"
        )
    try:
        return _collate(batch)
    except RecursionError:
        raise ValueError(
            f"default_collate: expected samples not nested hundreds deep, or in themselves: {_HINT}"
        ) from None


def default_convert(data: Any) -> Any:
    """Return a sample with tensors in place of NumPy arrays, also in nested containers.

    Parameters
    ----------
    data : object
        The sample. Arrays of strings and anything that is not a container stay as they are.

    Returns
    -------
    object
        The sample, with arrays and NumPy's scalars as tensors on the default device; mappings as
        dicts, named tuples and tuples of their types, other sequences as lists.

    Raises
    ------
    ValueError
        If the sample is nested too deeply.

    Examples
    --------
    >>> import numpy as np
    >>> import xgrad
    >>> xgrad.data.default_convert({"x": np.arange(3), "name": "a"})
    {'x': Tensor([0, 1, 2]), 'name': 'a'}
    """
    try:
        return _converted(data)
    except RecursionError:
        raise ValueError(
            "default_convert: expected a sample not nested hundreds deep, or in itself"
        ) from None


def _converted(data: Any) -> Any:
    if isinstance(data, Tensor | _TEXT):
        return data
    if isinstance(data, _ARRAY):
        return asarray(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return {key: _converted(value) for key, value in data.items()}
    if not isinstance(data, Sequence):
        return data
    parts = [_converted(part) for part in data]
    if not isinstance(data, tuple):
        return parts
    return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)


def _collate(batch: Sequence[Any]) -> Any:
    if not batch:
        raise ValueError("default_collate: expected at least one sample, got none")
    first = batch[0]
    kind = next((kind for kind in _KINDS if isinstance(first, kind)), None)
    if kind is None:
        raise TypeError(
            "default_collate: expected tensors, arrays, numbers, strings, or tuples, sequences or"
            f" mappings of them, got {type(first).__name__}: {_HINT}"
        )
    for sample in batch:
        if not isinstance(sample, kind):
            raise TypeError(
                f"default_collate: expected samples of one type, got {type(first).__name__} and "
                f"{type(sample).__name__}: {_HINT}"
            )
    if kind is Tensor:
        _check_equal("shape", [x.shape for x in batch])
        return stack(batch)
    if kind is _ARRAY:
        _check_equal("shape", [x.shape for x in batch])
        return asarray(np.stack(batch))
    if kind is _NUMBER:
        return asarray(list(batch))
    if kind is _TEXT:
        return list(batch)
    if kind is Mapping:
        _check_equal("set of keys", [set(sample) for sample in batch])
        return {key: _collate([sample[key] for sample in batch]) for key in first}
    _check_equal("length", [len(sample) for sample in batch])
    fields = [_collate(field) for field in zip(*batch, strict=True)]
    if not isinstance(first, tuple):
        return fields
    return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)


def _check_equal(what: str, values: Sequence[Any]) -> None:
    for value in values:
        if value != values[0]:
            raise ValueError(
                f"default_collate: expected samples of one {what}, got {values[0]} and {value}:"
                f" {_HINT}"
            )
