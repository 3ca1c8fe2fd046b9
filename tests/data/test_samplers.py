"""Samplers: orders and lengths compared with PyTorch, distributions with closed forms."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import xgrad
from helpers import check_error
from xgrad import data
from xgrad.random import Generator


def test_sequential_and_batch_samplers_equal_pytorch(torch):
    theirs = torch.utils.data
    assert list(data.SequentialSampler(range(7))) == list(theirs.SequentialSampler(range(7)))
    for size in (1, 3, 7, 9):
        for drop in (False, True):
            own, other = (
                m.BatchSampler(m.SequentialSampler(range(7)), size, drop) for m in (data, theirs)
            )
            assert list(own) == list(other)
            assert len(own) == len(other)


@pytest.mark.parametrize("size", [0, 1, 7, 8])
@pytest.mark.parametrize("replicas", [1, 2, 3, 10])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_sampler_in_order_equals_pytorch(size, replicas, drop_last, torch):
    if size and size < replicas and drop_last:  # where PyTorch fails
        assert list(data.DistributedSampler(range(size), replicas, 0, drop_last=True)) == []
        return
    for rank in range(replicas):
        own, other = (
            m.DistributedSampler(range(size), replicas, rank, shuffle=False, drop_last=drop_last)
            for m in (data, torch.utils.data)
        )
        assert list(own) == list(other)
        assert len(own) == len(other)


def test_distributed_sampler_shuffles_each_epoch_and_has_each_sample_once():
    samplers = [data.DistributedSampler(range(12), 3, rank, seed=5) for rank in range(3)]
    orders = []
    for epoch in (0, 1):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        orders.append([list(sampler) for sampler in samplers])
        assert sorted(i for order in orders[-1] for i in order) == list(range(12))
    assert orders[0] != orders[1]
    assert orders[1] == [list(sampler) for sampler in samplers]


@pytest.mark.parametrize("count", [None, 1, 5, 12])
def test_random_sampler_repeats_no_index_before_all_others(count, torch):
    sampler = data.RandomSampler(range(5), num_samples=count, generator=Generator(1))
    other = torch.utils.data.RandomSampler(range(5), num_samples=count)
    order = list(sampler)
    assert len(order) == len(sampler) == len(other) == len(list(other))
    counts = Counter(order)
    assert max(counts.values()) - min(counts[i] for i in range(5)) <= 1
    assert list(sampler) != order or count == 1  # the next epoch has another order


def test_random_sampler_has_the_order_of_shuffle():
    loaders = [
        data.DataLoader(range(50), 7, shuffle=True, generator=Generator(3)),
        data.DataLoader(
            range(50), 7, sampler=data.RandomSampler(range(50), generator=Generator(3))
        ),
    ]
    first, second = ([[x.tolist() for x in loader] for _ in range(2)] for loader in loaders)
    assert first == second


def test_random_sampler_with_replacement_is_uniform_and_independent():
    sampler = data.RandomSampler(range(6), True, 60_000, Generator(0))
    order = list(sampler)
    counts = np.bincount(order, minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-3
    table = np.zeros((6, 6))
    for i, j in pairwise(order):
        table[i, j] += 1
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_orders_of_random_samplers_are_uniform():
    samplers = (
        data.RandomSampler(range(3), generator=Generator(0)),
        data.SubsetRandomSampler([0, 1, 2], generator=Generator(1)),
    )
    for sampler in samplers:
        orders = Counter(tuple(sampler) for _ in range(3000))
        assert len(orders) == 6
        assert stats.chisquare(list(orders.values())).pvalue > 1e-3


def test_weighted_sampler_draws_in_proportion():
    weights = np.array([0.1, 0.0, 3.0, 0.9, 1.0])
    for given in (weights, weights.tolist(), xgrad.asarray(weights, dtype="float32")):
        sampler = data.WeightedRandomSampler(given, 50_000, generator=Generator(0))
        counts = np.bincount(list(sampler), minlength=5)
        assert counts[1] == 0
        kept = weights > 0
        expected = weights[kept] / weights.sum() * 50_000
        assert stats.chisquare(counts[kept], expected).pvalue > 1e-3


def test_weighted_sampler_without_replacement_draws_one_after_the_other():
    # Of weights 1, 2, 3, the first two are (i, j) with the probability w_i w_j / (6 (6 - w_i)).
    weights = [1.0, 2.0, 3.0]
    sampler = data.WeightedRandomSampler(weights, 2, replacement=False, generator=Generator(0))
    pairs = Counter(tuple(sampler) for _ in range(6000))
    expected = {
        (i, j): 6000 * a * b / (6 * (6 - a))
        for i, a in enumerate(weights)
        for j, b in enumerate(weights)
        if i != j
    }
    counts = [pairs[pair] for pair in expected]
    assert sum(counts) == 6000
    assert stats.chisquare(counts, list(expected.values())).pvalue > 1e-3


def test_samplers_draw_from_the_default_generator():
    for make in (
        lambda: data.RandomSampler(range(9)),
        lambda: data.SubsetRandomSampler(range(9)),
        lambda: data.WeightedRandomSampler([1.0] * 9, 9),
    ):
        xgrad.manual_seed(4)
        first = list(make())
        xgrad.manual_seed(4)
        assert list(make()) == first


SAMPLERS: dict[str, Any] = {
    "random": lambda g: {"sampler": data.RandomSampler(range(20), generator=g)},
    "repeated": lambda g: {
        "sampler": data.RandomSampler(range(20), num_samples=50, generator=g),
        "num_workers": 3,  # which read ahead, into the next order
    },
    "replacement": lambda g: {"sampler": data.RandomSampler(range(20), True, 25, g)},
    "weighted": lambda g: {"sampler": data.WeightedRandomSampler(np.arange(20.0), 25, generator=g)},
    "batches": lambda g: {
        "batch_sampler": data.BatchSampler(data.SubsetRandomSampler(range(20), g), 3, True)
    },
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tensors", [False, True])
def test_epoch_of_a_sampler_is_resumed_exactly(name, own, tensors):
    samples: Any = data.TensorDataset(xgrad.arange(20)) if tensors else list(range(20))

    def loader():
        options = SAMPLERS[name](Generator(7) if own else None)
        return data.DataLoader(
            samples, **({} if "batches" in name else {"batch_size": 4}), **options
        )

    def taken(batches):
        return [(x[0] if tensors else x).tolist() for x in batches]

    xgrad.manual_seed(1)
    first = loader()
    next(iter(loader()))
    list(first)  # an epoch before
    batches = iter(first)
    for _ in range(3):
        next(batches)
    state, default = first.state_dict(), xgrad.random.get_state()
    rest = taken(batches)
    following = taken(first)
    xgrad.manual_seed(99)
    second = loader()
    second.load_state_dict(state)
    xgrad.random.set_state(default)
    assert taken(second) == rest
    assert taken(second) == following


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "d.SequentialSampler(5)",
            "TypeError: SequentialSampler: expected an object with a length",
        ),
        ("d.RandomSampler([1], 1)", "TypeError: RandomSampler: expected True or False for replace"),
        (
            "d.RandomSampler([1], num_samples=0)",
            "ValueError: RandomSampler: expected an int of 1 or more for num_samples, got 0",
        ),
        ("d.RandomSampler([1], generator=5)", "TypeError: RandomSampler: "),
        (
            "list(d.RandomSampler([], num_samples=2))",
            "ValueError: RandomSampler: expected a dataset with samples for num_samples 2",
        ),
        (
            "d.WeightedRandomSampler([[1.0]], 1)",
            "ValueError: WeightedRandomSampler: expected one weight for each sample, got shape (1,",
        ),
        ("list(d.WeightedRandomSampler([-1.0], 1))", "ValueError: multinomial: "),
        ("list(d.WeightedRandomSampler([1.0], 2, False))", "ValueError: multinomial: "),
        (
            "d.WeightedRandomSampler([1.0], 1.5)",
            "ValueError: WeightedRandomSampler: expected an int of 1 or more for num_samples",
        ),
        ("d.BatchSampler(5, 1, False)", "TypeError: BatchSampler: expected an iterable of int"),
        ("d.BatchSampler([5], 0, False)", "ValueError: BatchSampler: expected an int of 1 or more"),
        (
            "d.BatchSampler([5], 1, None)",
            "TypeError: BatchSampler: expected True or False for drop",
        ),
        ("len(d.BatchSampler(iter([]), 1, False))", "TypeError: BatchSampler: expected an object"),
        ("d.DistributedSampler([1])", "ValueError: DistributedSampler: expected num_replicas and"),
        (
            "d.DistributedSampler([1], 2, 2)",
            "ValueError: DistributedSampler: expected a rank below",
        ),
        ("list(d.Sampler())", "NotImplementedError: Sampler: expected a subclass that defines"),
    ],
)
def test_invalid_arguments_of_samplers_are_refused(call, expected):
    check_error(call, expected, d=data)
