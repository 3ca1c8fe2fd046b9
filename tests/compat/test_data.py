"""`torch.utils.data`: batches as PyTorch makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.compat.compared import check_close
from xgrad.compat import torch as compat

data = compat.utils.data


class Point(NamedTuple):
    x: Any
    y: Any


#: Samples, made with the name ``torch``
SAMPLES = """
list(range(5))
[0.5, 1.5, 2.5]
[(torch.tensor([1.0, 2.0]), 3)] * 3
[{'a': 1.0, 'b': 'text'}] * 3
[Point(1, 2.0), Point(3, 4.0)]
[[np.ones(2), True]] * 3
""".strip().splitlines()


def flat(value: Any) -> list[Any]:
    """Return the tensors and strings in a batch, with the types of its containers."""
    if isinstance(value, dict):
        return ["dict", *(part for key in value for part in [key, *flat(value[key])])]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(part for item in value for part in flat(item))]
    return [value]


@pytest.mark.parametrize("text", SAMPLES)
@pytest.mark.parametrize("options", [{}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}])
def test_batches(torch: Any, text: str, options: dict[str, Any]) -> None:
    results = []
    for library in (compat, torch):
        samples = eval(text, {"torch": library, "np": np, "Point": Point})
        loader = library.utils.data.DataLoader(samples, **options)
        results.append([len(loader), *(part for batch in loader for part in flat(batch))])
    assert len(results[0]) == len(results[1])
    for mine, theirs in zip(*results, strict=True):
        if isinstance(mine, compat.Tensor):
            check_close(mine, theirs)
        else:
            assert mine == theirs


def test_tensor_dataset_shuffled() -> None:
    x = compat.arange(10)
    loader = data.DataLoader(data.TensorDataset(x, x * 2), 4, shuffle=True, num_workers=2)
    batches = list(loader)
    assert [len(a) for a, _ in batches] == [4, 4, 2]
    assert all(type(a) is compat.Tensor and (b == 2 * a).all() for a, b in batches)
    assert sorted(n for a, _ in batches for n in a.tolist()) == list(range(10))


def test_samplers_and_batch_sampler() -> None:
    source = list(range(7))
    order = list(data.RandomSampler(source))
    assert sorted(order) == source
    batches = data.BatchSampler(data.SequentialSampler(source), 3, drop_last=True)
    assert list(batches) == [[0, 1, 2], [3, 4, 5]]
    loader = data.DataLoader(source, batch_sampler=batches)
    assert [b.tolist() for b in loader] == [[0, 1, 2], [3, 4, 5]]
    assert len(loader) == 2
    assert len(list(data.RandomSampler(source, replacement=True, num_samples=20))) == 20
    assert sorted(data.SubsetRandomSampler([4, 2])) == [2, 4]


def test_collate_fn_and_single_samples() -> None:
    loader = data.DataLoader([1, 2, 3], 2, collate_fn=lambda batch: compat.tensor(batch) * 10)
    assert [b.tolist() for b in loader] == [[10, 20], [30]]
    assert list(data.DataLoader([1, 2], batch_size=None)) == [1, 2]


class Counting(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


def test_iterable_dataset() -> None:
    assert [b.tolist() for b in data.DataLoader(Counting(), batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_random_split_and_subset() -> None:
    train, test = data.random_split(range(10), [0.8, 0.2])
    assert (len(train), len(test)) == (8, 2)
    assert list(data.Subset("abc", [2, 0])) == ["c", "a"]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="expected a timeout of 0"):
        data.DataLoader([1], timeout=3)
    with pytest.raises(ValueError, match="expected batch_sampler without batch_size"):
        data.DataLoader([1], 2, batch_sampler=[[0]])


def test_further_data_sets_and_samplers() -> None:
    assert list(data.ChainDataset([Counting(), Counting()])) == [0, 1, 2, 3, 4] * 2
    x = compat.arange(3)
    first = data.StackDataset(data.TensorDataset(x), [4, 5, 6])[1]
    assert type(first[0][0]) is compat.Tensor
    assert first[1] == 5
    drawn = list(data.WeightedRandomSampler([0.0, 1.0], 4))
    assert drawn == [1] * 4
    sampler = data.distributed.DistributedSampler(range(6), 2, 1, shuffle=False)
    assert list(sampler) == [1, 3, 5]
    assert data.get_worker_info() is None


class Even(data.Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(0, len(self.data_source), 2))


def test_own_sampler() -> None:
    loader = data.DataLoader(range(5), 2, sampler=Even(range(5)))
    assert [b.tolist() for b in loader] == [[0, 2], [4]]


def test_arrays_become_tensors_without_batches() -> None:
    (x,) = data.DataLoader([np.ones(2)], batch_size=None)
    assert type(x) is compat.Tensor
