"""Datasets, subsets, concatenation and random splits, compared with lists of their samples.

The sizes of random splits are compared with PyTorch.
"""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    random_split,
)


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index**2


class Empty(Dataset):
    def __len__(self):
        return 1


class Endless(Dataset):
    def __getitem__(self, index):
        return index


def test_subset_has_the_samples_at_its_indices():
    part = Subset(Squares(), np.array([3, 1, 1]))
    assert len(part) == 3 and [part[i] for i in range(3)] == [9, 1, 1] and part[-1] == 1
    assert [x.tolist() for x in DataLoader(part, 2)] == [[9, 1], [1]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Subset(Squares(), [0, 4]),
            IndexError,
            "Subset: expected indices from 0 to 3, got 4",
        ),
        (
            lambda: Subset(Squares(), [0, -1]),
            IndexError,
            "Subset: expected indices from 0 to 3, got -1",
        ),
        (lambda: Subset(Squares(), [0.5]), TypeError, "float"),
        (
            lambda: Subset(Squares(), [True]),
            TypeError,
            "expected indices of samples, got True: give indices in place",
        ),
        (
            lambda: Subset(iter("ab"), [0]),
            TypeError,
            "Subset: expected a dataset with __len__ and __getitem__, got ",
        ),
        (
            lambda: ConcatDataset([]),
            ValueError,
            "ConcatDataset: expected at least one dataset, got none",
        ),
        (
            lambda: ConcatDataset([[1], iter([2])]),
            TypeError,
            "ConcatDataset: expected a dataset with __len__",
        ),
        (
            lambda: ConcatDataset(["abc"])[3],
            IndexError,
            "ConcatDataset: expected an index below its length 3, got 3",
        ),
        (
            lambda: ConcatDataset(["abc"])[-4],
            IndexError,
            "ConcatDataset: expected an index below its length 3, got -4",
        ),
        (
            lambda: list(DataLoader(Empty())),
            NotImplementedError,
            "Empty: expected a subclass that defines __getitem__",
        ),
        (lambda: DataLoader(Endless()), TypeError, "DataLoader: expected a dataset with __len__"),
    ],
)
def test_invalid_datasets_and_indices_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_concatenated_datasets_follow_each_other():
    both = Squares() + range(20, 22) + Subset(Squares(), [2])
    assert isinstance(both, ConcatDataset) and len(both) == 7
    assert [both[i] for i in range(7)] == [0, 1, 4, 9, 20, 21, 4] == [both[i - 7] for i in range(7)]
    assert [x.tolist() for x in DataLoader(both, 4)] == [[0, 1, 4, 9], [20, 21, 4]]
    assert ConcatDataset([[], [1], [], [2]])[1] == 2


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([7, 3], [7, 3]),
        ([0.7, 0.3], [7, 3]),
        ([0.5, 0.25, 0.25], [6, 2, 2]),
        ([10, 0], [10, 0]),
        ([1 / 3] * 3, [4, 3, 3]),
    ],
)
def test_random_split_has_each_sample_once_and_depends_on_the_seed(lengths, sizes):
    parts = random_split(range(10), lengths, xgrad.random.Generator(1))
    assert [len(part) for part in parts] == sizes
    samples = [x for part in parts for x in part]
    assert sorted(samples) == list(range(10)) != samples
    again = random_split(range(10), lengths, generator=xgrad.random.Generator(1))
    assert [part.indices for part in again] == [part.indices for part in parts]
    other = random_split(range(10), lengths, xgrad.random.Generator(2))
    assert [part.indices for part in other] != [part.indices for part in parts]


def test_random_split_is_seeded_by_manual_seed():
    xgrad.manual_seed(3)
    first = [part.indices for part in random_split(range(10), [5, 5])]
    xgrad.manual_seed(3)
    with xgrad.default_device("strict"):
        assert [part.indices for part in random_split(range(10), [5, 5])] == first


@pytest.mark.parametrize(
    "lengths", [[7, 2], [-1, 11], [0.5, 0.4], [5.0, 5.0], [], [2, -1.0], [float("nan")]]
)
def test_lengths_that_do_not_add_up_are_refused(lengths):
    with pytest.raises(
        ValueError, match=r"random_split: expected numbers of samples that add up to 10"
    ):
        random_split(range(10), lengths)


def test_sizes_of_a_random_split_are_those_of_pytorch(torch):
    for size, lengths in (
        (10, [1 / 3] * 3),
        (11, [0.5, 0.5]),
        (7, [0.1, 0.2, 0.7]),
        (1, [1]),
        (5, [1]),
    ):
        expected = [len(part) for part in torch.utils.data.random_split(range(size), lengths)]
        assert [len(part) for part in random_split(range(size), lengths)] == expected


class Stream(IterableDataset):
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        return iter(self.values)


def test_chained_and_stacked_datasets_equal_pytorch(torch):
    theirs = torch.utils.data
    streams = [range(3), "ab", [], (7.5,)]
    assert list(ChainDataset(streams)) == [x for part in streams for x in part]
    assert len(ChainDataset(streams)) == 6
    assert list(Stream(1, 2) + Stream(3) + [4]) == [1, 2, 3, 4]
    for parts, named in (((range(4), "abcd"), {}), ((), {"x": range(4), "y": "abcd"})):
        own = StackDataset(*parts, **named)
        other = theirs.StackDataset(*parts, **named)
        assert len(own) == len(other) == 4
        assert [own[i] for i in range(4)] == [other[i] for i in range(4)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Chain([5])", "TypeError: ChainDataset: expected iterables, got int"),
        ("len(Chain([iter([])]))", "TypeError: … has no len()"),
        ("Stack()", "ValueError: StackDataset: expected datasets, all with names or all without"),
        ("Stack('ab', x='ab')", "ValueError: StackDataset: expected datasets, all with names"),
        (
            "Stack('ab', 'c')",
            "ValueError: StackDataset: expected datasets of one length, got [1, 2]",
        ),
        ("Stack(iter('ab'))", "TypeError: StackDataset: expected a dataset with __len__ and"),
        ("Concat([Stream(1)])", "TypeError: ConcatDataset: expected a dataset with __len__ and"),
        ("Stream(1)[0]", "TypeError: Stream: expected iteration, got an index: it is a stream"),
        ("iter(Iterable())", "NotImplementedError: IterableDataset: expected a subclass"),
    ],
)
def test_invalid_combinations_of_datasets_are_refused(call, expected):
    check_error(
        call,
        expected,
        Chain=ChainDataset,
        Stack=StackDataset,
        Concat=ConcatDataset,
        Stream=Stream,
        Iterable=IterableDataset,
    )
