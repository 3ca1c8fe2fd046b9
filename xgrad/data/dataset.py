"""Datasets: samples by index or in a stream, subsets, combinations, random splits."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import accumulate
from operator import index
from typing import Any, Generic, Protocol, TypeVar

from xgrad.backend import DeviceError
from xgrad.core.tensor import Tensor
from xgrad.ops import take
from xgrad.random import Generator, randperm

T_co = TypeVar("T_co", covariant=True)


class SizedDataset(Protocol[T_co]):
    """A dataset that is read by index, such as a `Dataset` with a length, a list or an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """Base class of datasets with samples read by index.

    A subclass defines ``__getitem__(index)`` and ``__len__()``. A `DataLoader` accepts any object
    with these two methods. ``a + b`` is a `ConcatDataset`.

    Examples
    --------
    >>> import xgrad
    >>> class Squares(xgrad.data.Dataset):
    ...     def __len__(self):
    ...         return 5
    ...
    ...     def __getitem__(self, index):
    ...         return float(index), index**2
    >>> [y.tolist() for x, y in xgrad.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9], [16]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a subclass that defines __getitem__(index)"
        )

    def __add__(self, other: Dataset[T_co] | SizedDataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of datasets that are read in order, such as a stream.

    A subclass defines ``__iter__()``, and ``__len__()`` if a `DataLoader` needs a length. A
    `DataLoader` also accepts any other iterable. ``a + b`` is a `ChainDataset`.

    Examples
    --------
    >>> import xgrad
    >>> class Countdown(xgrad.data.IterableDataset):
    ...     def __iter__(self):
    ...         yield from (3, 2, 1)
    >>> [x.tolist() for x in xgrad.data.DataLoader(Countdown(), batch_size=2)]
    [[3, 2], [1]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a subclass that defines __iter__()"
        )

    def __getitem__(self, index: Any) -> T_co:
        raise TypeError(f"{type(self).__name__}: expected iteration, got an index: it is a stream")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[T_co]):
    """Several iterable datasets, one after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset or iterable
        The datasets.

    Raises
    ------
    TypeError
        If a dataset is not iterable.

    Examples
    --------
    >>> import xgrad
    >>> list(xgrad.data.ChainDataset(["ab", range(2)]))
    ['a', 'b', 0, 1]
    """

    def __init__(self, datasets: Iterable[Iterable[T_co]]) -> None:
        self.datasets = list(datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, Iterable):
                raise TypeError(
                    f"ChainDataset: expected iterables, got {type(dataset).__name__}: a dataset"
                    " with __getitem__ belongs in a ConcatDataset"
                )

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        """Return the number of samples; raise TypeError if a dataset has no length."""
        sizes: list[Any] = self.datasets
        return sum(map(len, sizes))


class StackDataset(Dataset[Any]):
    """Samples that consist of one sample from each of several datasets.

    Parameters
    ----------
    *datasets : Dataset or sequence
        Datasets of one length; samples are tuples.
    **named : Dataset or sequence
        Datasets by name, in place of `datasets`; samples are dicts.

    Raises
    ------
    TypeError
        If a dataset has no length.
    ValueError
        If there is no dataset, lengths differ, or only some have names.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.StackDataset("abc", [1, 2, 3])[1]
    ('b', 2)
    >>> xgrad.data.StackDataset(image="abc", label=[1, 2, 3])[-1]
    {'image': 'c', 'label': 3}
    """

    def __init__(self, *datasets: SizedDataset[Any], **named: SizedDataset[Any]) -> None:
        if bool(datasets) == bool(named):
            raise ValueError(
                "StackDataset: expected datasets, all with names or all without, got"
                f" {len(datasets)} without and {len(named)} with names"
            )
        self.datasets: Any = datasets or named
        parts = list(named.values()) or list(datasets)
        for dataset in parts:
            check_sized("StackDataset", dataset)
        if len(sizes := {len(dataset) for dataset in parts}) > 1:
            raise ValueError(f"StackDataset: expected datasets of one length, got {sorted(sizes)}")
        self._length = len(parts[0])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples along the first axes of tensors.

    Parameters
    ----------
    *tensors : Tensor
        At least one tensor; all have equal lengths and are on one device.

    Raises
    ------
    ValueError
        If there is no tensor, or lengths differ.
    DeviceError
        If the tensors are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> pairs = xgrad.data.TensorDataset(xgrad.arange(3), xgrad.asarray([5, 0, 4]))
    >>> len(pairs), pairs[2]
    (3, (Tensor(2), Tensor(4)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        for x in tensors:
            if not isinstance(x, Tensor):
                raise TypeError(
                    f"TensorDataset: expected tensors, got {type(x).__name__}: make one with"
                    " xgrad.asarray"
                )
        shapes = [x.shape for x in tensors]
        if not tensors or () in shapes or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(
                "TensorDataset: expected one or more tensors with first axes of one length, got"
                f" shapes {shapes}: give each a row for every sample"
            )
        if len({x.device for x in tensors}) > 1:
            devices = ", ".join(str(x.device) for x in tensors)
            raise DeviceError(
                f"TensorDataset: expected tensors of one device, got {devices}: move them with"
                " .to(device)"
            )
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, key: int | slice | Tensor) -> tuple[Tensor, ...]:
        """Return the rows of each tensor for one sample, a slice, or a tensor of indices."""
        if isinstance(key, Tensor):
            return tuple([take(x, key, axis=0) for x in self.tensors])
        return tuple([x[key, ...] for x in self.tensors])


class Subset(Dataset[T_co]):
    """The samples of a dataset at some indices.

    Parameters
    ----------
    dataset : Dataset or sequence
        The source of the samples.
    indices : sequence of int
        The index in `dataset` of each sample of the subset, from 0 to ``len(dataset) - 1``.

    Raises
    ------
    TypeError
        If the dataset has no length, or an index is not an integer.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import xgrad
    >>> list(xgrad.data.Subset("abcde", [4, 0]))
    ['e', 'a']
    """

    def __init__(self, dataset: SizedDataset[T_co], indices: Sequence[int]) -> None:
        check_sized("Subset", dataset)
        self.dataset = dataset
        self.indices = [check_index("Subset", i, len(dataset)) for i in indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> T_co:
        return self.dataset[self.indices[index]]


class ConcatDataset(Dataset[T_co]):
    """Several datasets, one after the other.

    Parameters
    ----------
    datasets : iterable of Dataset or sequence
        At least one dataset, each with a length.

    Raises
    ------
    TypeError
        If a dataset has no length.
    ValueError
        If there is no dataset.

    Examples
    --------
    >>> import xgrad
    >>> both = xgrad.data.ConcatDataset(["abc", "de"])
    >>> len(both), both[3]
    (5, 'd')
    """

    def __init__(self, datasets: Iterable[Dataset[T_co] | SizedDataset[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one dataset, got none")
        for dataset in self.datasets:
            check_sized("ConcatDataset", dataset)
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(
                f"ConcatDataset: expected an index below its length {len(self)}, got {index}"
            )
        which = bisect_right(self.cumulative_sizes, position)
        sample: T_co = self.datasets[which][
            position - (self.cumulative_sizes[which - 1] if which else 0)
        ]
        return sample


def random_split(
    dataset: SizedDataset[T_co], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """Split a dataset at random into subsets that share no sample.

    Parameters
    ----------
    dataset : Dataset or sequence
        The dataset to split.
    lengths : sequence of int or float
        Numbers of samples that add up to ``len(dataset)``, or fractions that add up to 1. Fractions
        give numbers that are rounded down; the remaining samples go to the first subsets, one each.
    generator : xgrad.random.Generator, optional
        The source of the random order; by default the generator of `xgrad.manual_seed`. Equal seeds
        give equal subsets.

    Returns
    -------
    list of Subset
        One for each length.

    Raises
    ------
    TypeError
        If the dataset has no length, or `generator` is not an xgrad generator.
    ValueError
        If the lengths are negative or do not add up.

    Examples
    --------
    >>> import xgrad
    >>> train, test = xgrad.data.random_split(
    ...     range(10), [0.8, 0.2], xgrad.random.Generator(0)
    ... )
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    check_sized("random_split", dataset)
    size, wanted = len(dataset), list(lengths)
    if math.isclose(sum(wanted), 1) and min(wanted) >= 0:
        sizes = [math.floor(size * fraction) for fraction in wanted]
        for i in range(size - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [n for n in wanted if isinstance(n, int) and n >= 0]
    if len(sizes) < len(wanted) or sum(sizes) != size:
        raise ValueError(
            f"random_split: expected numbers of samples that add up to {size}, the length of the"
            f" dataset, or fractions that add up to 1, got {wanted}"
        )
    order = randperm(size, device="cpu", generator=generator).tolist()
    return [
        Subset(dataset, order[end - n : end])
        for n, end in zip(sizes, accumulate(sizes), strict=True)
    ]


def check_sized(caller: str, dataset: Any) -> None:
    """Raise TypeError unless a dataset has a length and can be read by index."""
    indexed = isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")
    if not indexed or isinstance(dataset, IterableDataset):
        raise TypeError(
            f"{caller}: expected a dataset with __len__ and __getitem__, got"
            f" {type(dataset).__name__}"
        )


def check_index(caller: str, i: Any, size: int) -> int:
    """Return a sample's index as an int; raise if a dataset of this size has no such sample."""
    if isinstance(i, bool):
        raise TypeError(
            f"{caller}: expected indices of samples, got {i}: give indices in place of a mask"
        )
    number = index(i)
    if not 0 <= number < size:
        raise IndexError(f"{caller}: expected indices from 0 to {size - 1}, got {number}")
    return number
