"""Batches of `DataLoader`: order, shuffling, seeds, workers, samplers, positions, errors.

Samples hold their indices, so that the batches show the order. Batches of workers are compared with
batches of the loop's own thread.
"""

from __future__ import annotations

import threading
import time
from collections import namedtuple

import numpy as np
import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    get_worker_info,
)

WORKERS = pytest.mark.parametrize("workers", [0, 1, 3])


def pairs(n: int, device: str = "cpu") -> TensorDataset:
    """Return samples of two tensors that both hold the index of the sample."""
    indices = np.arange(n)
    images = np.stack([indices, indices], axis=1).astype(np.float32)
    return TensorDataset(
        xgrad.asarray(images, device=device), xgrad.asarray(indices, device=device)
    )


class Images(Dataset):
    """Samples of an array and a number that both hold the index of the sample."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(index)
        time.sleep(0.002 * (index % 3))  # later samples are ready before earlier ones
        return np.full((2,), index, np.float32), index


class Plain:
    """Neither a `Dataset` nor an iterable."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return float(index)


def batches(dataset, *args, **options) -> list[list[int]]:
    """Return the indices of the samples in each batch of `pairs` or `Images`."""
    result, loader = [], DataLoader(dataset, *args, **options)
    for images, labels in loader:
        assert images.dtype == xgrad.float32 and labels.dtype == xgrad.int64
        assert images.tolist() == [[n, n] for n in labels.tolist()]
        if isinstance(dataset, TensorDataset):
            assert images.device is labels.device is dataset.tensors[0].device
        result.append(labels.tolist())
    assert len(result) == len(loader)
    return result


@pytest.mark.parametrize(
    ("size", "options", "expected"),
    [
        (5, {"batch_size": 2}, [[0, 1], [2, 3], [4]]),
        (3, {}, [[0], [1], [2]]),
        (3, {"batch_size": 8}, [[0, 1, 2]]),
        (5, {"batch_size": 2, "drop_last": True}, [[0, 1], [2, 3]]),
        (4, {"batch_size": 2, "drop_last": True}, [[0, 1], [2, 3]]),
        (3, {"batch_size": 8, "drop_last": True}, []),
        (0, {"batch_size": 2, "shuffle": True}, []),
        (5, {"batch_size": 2, "sampler": [4, 0, 4, 1, 2]}, [[4, 0], [4, 1], [2]]),
        (5, {"batch_size": 2, "sampler": [4, 0, 4, 1, 2], "drop_last": True}, [[4, 0], [4, 1]]),
    ],
)
def test_batches_follow_dataset_or_sampler(size, options, expected, device):
    assert batches(pairs(size, device), **options) == expected
    for workers in (0, 1, 3):
        assert batches(Images(size), num_workers=workers, **options) == expected
        assert batches(pairs(size), num_workers=workers, collate_fn=default, **options) == expected


def default(samples):
    return xgrad.data.default_collate(samples)


def test_shuffled_epochs_have_every_sample_once_in_different_orders(device):
    loader = DataLoader(pairs(50, device), batch_size=8, shuffle=True)
    xgrad.manual_seed(0)
    epochs = [[n for _, labels in loader for n in labels.tolist()] for _ in range(3)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != list(range(50))
    shuffled = batches(pairs(5, device), 2, shuffle=True, drop_last=True)
    assert len({n for batch in shuffled for n in batch}) == 4


def test_equal_seeds_give_equal_batches_on_all_devices_with_any_workers(device):
    xgrad.manual_seed(7)
    expected = [batches(pairs(20), 3, shuffle=True) for _ in range(2)]
    xgrad.manual_seed(7)
    assert [batches(pairs(20, device), 3, shuffle=True) for _ in range(2)] == expected
    xgrad.manual_seed(8)
    assert batches(pairs(20, device), 3, shuffle=True) != expected[0]
    for workers in (0, 1, 3):
        generator = xgrad.random.Generator(7)
        options = {"shuffle": True, "num_workers": workers, "generator": generator}
        assert batches(Images(20), 3, **options) == expected[0] != batches(Images(20), 3, **options)


def test_custom_generator_leaves_the_default_one_alone(device):
    options = {"shuffle": True, "generator": xgrad.random.Generator(7)}
    first = batches(pairs(20, device), 3, **options)
    xgrad.manual_seed(0)
    expected = xgrad.random.rand(3).tolist()
    xgrad.manual_seed(0)
    assert batches(pairs(20, device), 3, **options) != first
    assert xgrad.random.rand(3).tolist() == expected


def test_concurrent_iterations_are_independent():
    loader = DataLoader(pairs(4), batch_size=2)
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        ([0, 1],) * 2,
        ([2, 3],) * 2,
    ]


def test_tensor_dataset_is_read_by_index_slice_and_tensor(device):
    dataset = pairs(5, device)
    assert len(dataset) == 5 and isinstance(dataset, Dataset)
    assert [x.tolist() for x in dataset[3]] == [[3.0, 3.0], 3]
    assert [x.tolist() for x in dataset[1:3]] == [[[1.0, 1.0], [2.0, 2.0]], [1, 2]]
    assert dataset[xgrad.asarray([4, 0], device=device)][1].tolist() == [4, 0]


def test_gradients_flow_through_a_batch():
    x = xgrad.Tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(x), 2, shuffle=True)))
    batch.sum().backward()
    assert x.grad is not None and sorted(x.grad.numpy().ravel()) == [0, 1, 1]


@WORKERS
def test_samples_of_sequences_and_arrays_are_stacked(workers):
    for dataset in (
        Plain(),
        [0.0, 1.0, 2.0, 3.0, 4.0],
        np.arange(5.0, dtype=np.float32),
        xgrad.arange(5.0),
    ):
        loader = DataLoader(dataset, 3, num_workers=workers)
        loaded = list(loader)
        assert [x.tolist() for x in loaded] == [[0, 1, 2], [3, 4]] and len(loader) == 2
        assert all(isinstance(x, xgrad.Tensor) and x.dtype == xgrad.float32 for x in loaded)


def test_random_numbers_of_a_dataset_do_not_depend_on_workers():
    class Noise(Images):
        def __getitem__(self, index):
            return xgrad.random.rand(2), super().__getitem__(index)[1]

    def noise(workers, seed=3):
        xgrad.manual_seed(seed)
        return [
            [x.tolist() for x, _ in DataLoader(Noise(9), 2, num_workers=workers)] for _ in range(2)
        ]

    expected = noise(0)
    assert noise(1) == noise(4) == expected != noise(0, 4)
    rows = [row for epoch in expected for batch in epoch for row in batch]
    assert len({tuple(row) for row in rows}) == 18  # samples of both epochs have different numbers


@WORKERS
def test_workers_have_the_context_of_the_loop(workers):
    loader = DataLoader(
        [1.0, 2.0],
        collate_fn=lambda x: (xgrad.zeros(1), xgrad.is_grad_enabled()),
        num_workers=workers,
    )
    with xgrad.default_device("strict"), xgrad.no_grad():
        assert [(str(x.device), grad) for x, grad in loader] == [("strict", False)] * 2


@WORKERS
@pytest.mark.parametrize("drop_last", [False, True])
def test_iterables_are_read_in_order(workers, drop_last):
    class Stream:
        def __iter__(self):
            yield from range(5)

    loader = DataLoader(Stream(), 2, num_workers=workers, drop_last=drop_last)
    expected = [[0, 1], [2, 3], [4]][: 2 if drop_last else 3]
    assert [x.tolist() for x in loader] == [x.tolist() for x in loader] == expected
    with pytest.raises(TypeError, match="DataLoader: Stream has no length"):
        len(loader)


@WORKERS
def test_iterable_may_hold_a_context_and_is_closed_after_the_workers(workers):
    closed = []

    class Stream:
        def __init__(self, size):
            self.size = size

        def __iter__(self):
            try:
                with xgrad.default_device("strict"):
                    for _ in range(self.size):
                        yield xgrad.random.rand(2)
            finally:
                closed.append(threading.active_count())

    def values(workers):
        xgrad.manual_seed(3)
        loaded = list(DataLoader(Stream(5), 2, num_workers=workers))
        assert [(str(x.device), len(x)) for x in loaded] == [
            ("strict", 2),
            ("strict", 2),
            ("strict", 1),
        ]
        return [x.tolist() for x in loaded]

    assert values(workers) == values(0)
    closed.clear()
    for _ in DataLoader(Stream(1000), 2, num_workers=workers):  # too long to be exhausted
        break
    assert closed == [threading.active_count()]


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda workers=n: DataLoader((n for n in range(3)), 2, num_workers=workers)
            for n in (0, 1, 3)
        ),
        lambda: DataLoader(pairs(3), sampler=iter([2, 0])),
    ],
)
def test_exhausted_iterator_is_refused_at_the_second_epoch(make):
    loader = make()
    assert len(list(loader)) == 2
    with pytest.raises(
        ValueError, match="an iterator that an earlier iteration exhausted: give a list"
    ):
        list(loader)


def test_sampler_of_tensors_is_checked_and_gathered_on_the_device(device):
    loader = DataLoader(pairs(5, device), 2, sampler=xgrad.asarray([4, 0, 1]))
    assert [(x.tolist(), str(x.device)) for _, x in loader] == [([4, 0], device), ([1], device)]
    with pytest.raises(
        IndexError, match="DataLoader: sampler: expected indices from 0 to 4, got -1"
    ):
        list(DataLoader(pairs(5, device), sampler=[-1]))
    for dataset in (pairs(5), Images(5)):
        with pytest.raises(IndexError):
            list(DataLoader(dataset, sampler=[5], num_workers=1))
        with pytest.raises(
            TypeError, match="DataLoader: expected indices of samples from the sampler, got bools"
        ):
            list(DataLoader(dataset, sampler=[True, False]))


def test_subsets_of_tensors_are_gathered_on_the_device(device):
    part = Subset(Subset(pairs(9, device), [8, 6, 4, 2, 0]), [1, 2, 3])
    assert batches(part, 2) == [[6, 4], [2]]
    xgrad.manual_seed(7)
    shuffled = batches(part, 2, shuffle=True)
    xgrad.manual_seed(7)
    order = [n for batch in batches(pairs(3), 2, shuffle=True) for n in batch]
    assert [n for batch in shuffled for n in batch] == [[6, 4, 2][i] for i in order]
    assert batches(part, 2, sampler=[2, 0]) == [[2, 6]]


def test_subclass_of_tensor_dataset_is_read_sample_by_sample():
    class Doubled(TensorDataset):
        def __getitem__(self, key):
            (x,) = super().__getitem__(key)
            return x * 2

    assert [x.tolist() for x in DataLoader(Doubled(xgrad.arange(3)), 2)] == [[0, 2], [4]]


@WORKERS
def test_collate_fn_makes_the_batches(workers):
    loader = DataLoader(
        [[1], [2, 3], []], 2, collate_fn=lambda samples: [*map(sum, samples)], num_workers=workers
    )
    assert list(loader) == [[1, 5], [0]]
    assert list(DataLoader(pairs(3), 2, collate_fn=len, num_workers=workers)) == [2, 1]


@WORKERS
def test_errors_are_raised_at_their_batch_with_a_note(workers):
    class Damaged(Images):
        def __getitem__(self, index):
            if index == 5:
                raise OSError("truncated file")
            return super().__getitem__(index)

    iterator = iter(DataLoader(Damaged(9), 2, num_workers=workers))
    assert [next(iterator)[1].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(OSError, match="truncated file") as caught:
        next(iterator)
    assert caught.value.__notes__ == ["DataLoader: raised by dataset[5], of batch 2"]
    with pytest.raises(TypeError, match="expected samples of one type, got int and str") as caught:
        list(DataLoader([1, 2, 3, "x"], 2, num_workers=workers))
    assert caught.value.__notes__ == ["DataLoader: raised by collate_fn, of batch 1"]
    with pytest.raises(ZeroDivisionError) as caught:
        list(DataLoader((1 // (2 - n) for n in range(9)), 2, num_workers=workers))
    assert caught.value.__notes__ == [
        "DataLoader: raised by the iterator of the dataset, in batch 1"
    ]


def test_workers_load_a_bounded_number_of_batches_ahead():
    loaded = []

    class Counted(Images):
        def __getitem__(self, index):
            loaded.append(index)
            return super().__getitem__(index)

    running = threading.active_count()
    iterator = iter(DataLoader(Counted(1000), 1, num_workers=2, prefetch_factor=3))
    assert not loaded
    assert next(iterator)[1].tolist() == [0]
    deadline = time.monotonic() + 30
    while len(loaded) < 7 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert sorted(loaded) == list(range(7))  # the batch of the loop, and three for each worker
    assert sum(thread.name.startswith("xgrad-data_") for thread in threading.enumerate()) == 2
    iterator.close()
    assert threading.active_count() == running
    for _ in DataLoader(Counted(1000), 1, num_workers=2):
        break
    assert threading.active_count() == running


Record = namedtuple("Record", "x label")


class Mixed(Dataset):
    """Samples of all kinds, as datasets for PyTorch return them."""

    def __len__(self):
        return 5

    def __getitem__(self, i):
        pair = Record(np.full((2, 3), i, np.float32), i)
        return {"pair": pair, "tensor": xgrad.full(2, float(i)), "name": f"n{i}", "y": (i, i / 2)}


@WORKERS
def test_samples_of_all_kinds_are_batched_as_by_pytorch(workers, torch):
    class Theirs(Mixed):
        def __getitem__(self, i):
            return super().__getitem__(i) | {"tensor": torch.full((2,), float(i))}

    def plain(x):
        if isinstance(x, dict):
            return {key: plain(value) for key, value in x.items()}
        if isinstance(x, list | tuple):
            return [plain(value) for value in x]
        return x if isinstance(x, str) else x.tolist()

    ours = list(DataLoader(Mixed(), 2, num_workers=workers))
    assert [plain(x) for x in ours] == [
        plain(x) for x in torch.utils.data.DataLoader(Theirs(), batch_size=2)
    ]
    assert type(ours[0]["pair"]) is Record and ours[0]["pair"].x.shape == (2, 2, 3)


@WORKERS
def test_batch_sampler_chooses_the_batches(workers, device):
    order = [[3, 1], [0], [4, 2, 2]]
    loader = DataLoader(Images(5), batch_sampler=order, num_workers=workers)
    assert [labels.tolist() for _, labels in loader] == order
    assert len(loader) == 3 and loader.batch_size is None
    rows = DataLoader(pairs(5, device), batch_sampler=order)
    assert [x.tolist() for _, x in rows] == order
    for wrong, error in (([3], "lists of int from batch_sampler, got 3"), ([[True]], "got bools")):
        with pytest.raises(TypeError, match=error):
            list(DataLoader(Images(5), batch_sampler=wrong))


@WORKERS
def test_loader_without_a_batch_size_returns_single_samples(workers):
    samples = [(np.full(2, i), i, "a") for i in range(3)]
    for dataset in (samples, iter(samples)):
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        got = [(x.tolist(), i, name) for x, i, name in loader]
        assert got == [([i, i], i, "a") for i in range(3)]
    assert len(DataLoader(samples, batch_size=None)) == 3
    rows = list(DataLoader(pairs(3), batch_size=None, shuffle=True))
    assert sorted(label.item() for _, label in rows) == [0, 1, 2]
    doubled = DataLoader([1, 2], None, collate_fn=lambda x: 2 * x, num_workers=workers)
    assert list(doubled) == [2, 4]
    state = loader.state_dict()
    assert state["batch_size"] is None


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_are_initialized_once_and_know_their_numbers(workers):
    begun, seen = [], []

    class Asked(Images):
        def __getitem__(self, i):
            seen.append(get_worker_info())
            time.sleep(0.001)
            return i

    dataset = Asked(20)
    loader = DataLoader(dataset, 2, num_workers=workers, worker_init_fn=begun.append)
    assert [x.tolist() for x in loader] == [[i, i + 1] for i in range(0, 20, 2)]
    assert sorted(begun) == list(range(len(begun))) and 1 <= len(begun) <= workers
    assert {info.id for info in seen} == set(begun)
    assert all(info.num_workers == workers and info.dataset is dataset for info in seen)
    assert get_worker_info() is None
    list(DataLoader(dataset, 2, worker_init_fn=begun.append))
    assert seen[-1] is None


@WORKERS
def test_iterable_dataset_that_is_divided_among_workers_is_read_once(workers):
    class Divided(IterableDataset):
        def __iter__(self):
            worker = get_worker_info()
            number, of = (0, 1) if worker is None else (worker.id, worker.num_workers)
            return iter(range(number, 7, of))

        def __len__(self):
            return 7

    begun = []
    loader = DataLoader(Divided(), 3, num_workers=workers, worker_init_fn=begun.append)
    assert [x.tolist() for x in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(loader) == 3 and begun == ([0] if workers else [])
    assert get_worker_info() is None


def test_error_of_worker_init_fn_is_raised_with_a_note():
    for dataset in (Images(5), iter(range(5))):
        with pytest.raises(ZeroDivisionError) as caught:
            list(DataLoader(dataset, num_workers=2, worker_init_fn=lambda i: 1 // 0))
        assert caught.value.__notes__ == ["DataLoader: raised by worker_init_fn(0)"] or (
            caught.value.__notes__ == ["DataLoader: raised by worker_init_fn(1)"]
        )


def test_hints_of_pytorch_have_no_effect():
    options = {"pin_memory": True, "persistent_workers": True, "timeout": 0, "shuffle": None}
    loader = DataLoader(Images(4), 2, num_workers=1, prefetch_factor=None, **options)
    assert [labels.tolist() for _, labels in loader] == [[0, 1], [2, 3]]


NO_DATASET = (
    r"DataLoader: expected a dataset with __len__ and __getitem__\(index\), or an iterable, got "
)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *[
            ({"batch_size": n}, ValueError, "expected a batch_size of 1 or more, got")
            for n in (0, -1, 2.0, "2", True)
        ],
        (
            {"num_workers": -1},
            ValueError,
            "DataLoader: expected a num_workers of 0 or more, got -1",
        ),
        (
            {"num_workers": True},
            ValueError,
            "DataLoader: expected a num_workers of 0 or more, got True",
        ),
        (
            {"prefetch_factor": 0},
            ValueError,
            "DataLoader: expected a prefetch_factor of 1 or more, got 0",
        ),
        (
            {"shuffle": True, "sampler": [0]},
            ValueError,
            "DataLoader: expected either shuffle or a sampler, got both",
        ),
        (
            {"shuffle": [0, 1]},
            TypeError,
            r"DataLoader: expected True or False for shuffle, got \[0, 1\]",
        ),
        (
            {"drop_last": "no"},
            TypeError,
            "DataLoader: expected True or False for drop_last, got 'no'",
        ),
        *[
            (
                {"batch_sampler": [[0]], name: value},
                ValueError,
                f"DataLoader: expected batch_sampler without {name}, got both: leave out {name}",
            )
            for name, value in (
                ("batch_size", 2),
                ("shuffle", True),
                ("sampler", [0]),
                ("drop_last", True),
            )
        ],
        ({"batch_sampler": 3}, TypeError, "expected an iterable of lists of int as batch_sampler"),
        (
            {"batch_size": None, "drop_last": True},
            ValueError,
            "DataLoader: expected a batch_size for drop_last, got None, for single samples",
        ),
        ({"timeout": 5}, ValueError, "DataLoader: expected a timeout of 0, got 5: workers are"),
        (
            {"persistent_workers": True},
            ValueError,
            "DataLoader: expected num_workers of 1 or more for persistent_workers, got 0",
        ),
        ({"pin_memory": 1}, TypeError, "DataLoader: expected True or False for pin_memory, got 1"),
        ({"worker_init_fn": 1}, TypeError, "DataLoader: expected a function for worker_init_fn"),
        (
            {
                "sampler": RandomSampler([1], generator=xgrad.random.Generator(1)),
                "generator": xgrad.random.Generator(1),
            },
            ValueError,
            "DataLoader: expected the generator of the sampler, got another one: leave it out",
        ),
        (
            {"dataset": {1, 2}, "batch_sampler": BatchSampler([0], 1, False)},
            ValueError,
            "for batch_sampler, got an iterable, set: make it a list",
        ),
        ({"sampler": 3}, TypeError, "DataLoader: expected an iterable of int as sampler, got int"),
        (
            {"dataset": {1, 2}, "shuffle": True},
            ValueError,
            "for shuffle, got an iterable, set: make it a list",
        ),
        (
            {"dataset": {1, 2}, "sampler": [0]},
            ValueError,
            "for sampler, got an iterable, set: make it a list",
        ),
        *[
            ({"dataset": x}, TypeError, NO_DATASET + type(x).__name__)
            for x in (3, None, {"images": [1, 2]}, default)
        ],
    ],
)
def test_invalid_arguments_of_a_loader_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(**{"dataset": Images(3), **options})


@pytest.mark.parametrize("dataset", [[1, 2], TensorDataset(xgrad.ones(2))])
def test_empty_batch_is_refused(dataset):
    with pytest.raises(ValueError, match="at least one index in each batch of batch_sampler"):
        list(DataLoader(dataset, batch_sampler=[[0], []]))


def test_generator_of_numpy_is_refused():
    with pytest.raises(TypeError, match=r"expected an xgrad\.random\.Generator, got Generator"):
        next(iter(DataLoader(pairs(3), shuffle=True, generator=np.random.default_rng())))


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        (lambda: [], ValueError, r"TensorDataset: expected one or more tensors .* got shapes \[\]"),
        (
            lambda: [xgrad.zeros(3), xgrad.zeros(4)],
            ValueError,
            r"got shapes \[\(3,\), \(4,\)\]: give each a row",
        ),
        (lambda: [xgrad.zeros(())], ValueError, r"got shapes \[\(\)\]"),
        (
            lambda: [np.zeros(3)],
            TypeError,
            "expected tensors, got ndarray: make one with xgrad.asarray",
        ),
        (
            lambda: [xgrad.zeros(3), xgrad.zeros(3, device="strict")],
            DeviceError,
            "expected tensors of one device, got cpu, strict: move them",
        ),
    ],
)
def test_invalid_tensors_of_a_dataset_are_refused(tensors, error, message):
    with pytest.raises(error, match=message):
        TensorDataset(*tensors())


# Position


class Noisy(Images):
    """Images beside random numbers of the sample."""

    def __getitem__(self, index):
        return float(xgrad.random.rand(())), super().__getitem__(index)[1]


class Numbers:
    """An iterable of random numbers and the integers up to a size."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        for n in range(self.size):
            yield float(xgrad.random.rand(())), n


@WORKERS
@pytest.mark.parametrize("own", [False, True], ids=["default generator", "own generator"])
@pytest.mark.parametrize(
    ("make", "shuffle"),
    [
        (pairs, False),
        (pairs, True),
        (lambda n: Subset(pairs(9), range(n)), True),
        (Noisy, True),
        (Numbers, False),
    ],
    ids=["in order", "tensors", "subset", "indices", "iterable"],
)
def test_epoch_continues_after_any_batch(make, shuffle, own, workers):
    def loader():
        generator = xgrad.random.Generator(3) if own else None
        return DataLoader(make(7), 3, shuffle, num_workers=workers, generator=generator)

    def rows(batches):
        """Return the batches, with a number drawn after each, as dropout does."""
        return [[*(x.tolist() for x in batch), float(xgrad.random.rand(()))] for batch in batches]

    for seen in range(1, 4):
        xgrad.manual_seed(5)
        first = loader()
        rows(first)
        batches = iter(first)
        rows(next(batches) for _ in range(seen))
        state, drawn = first.state_dict(), xgrad.random.get_state()
        expected = [rows(batches), rows(first)]

        xgrad.manual_seed(9)
        second = loader()
        second.load_state_dict(state)
        assert second.state_dict() == state
        xgrad.random.set_state(drawn)
        assert [rows(second), rows(second)] == expected and len(expected[0]) == 3 - seen


def test_state_between_epochs_has_no_position():
    loader, generator = DataLoader(pairs(4), 2, True), xgrad.random.Generator(3)
    between = loader.state_dict()
    assert between == {
        "batches": 0,
        "start": None,
        "generator": None,
        "batch_size": 2,
        "samples": 4,
    }
    next(batches := iter(loader))
    loader.load_state_dict(between)
    assert len(list(loader)) == 2 and loader.state_dict() == between
    assert len(list(batches)) == 1 and loader.state_dict() == between
    own = DataLoader(pairs(4), 2, True, generator=generator)
    assert own.state_dict() == between | {"generator": generator.get_state()}


def test_reading_of_skipped_samples_is_left_out():
    read = []
    dataset = Images(9)
    loader = DataLoader(dataset, 2)
    loader.load_state_dict(loader.state_dict() | {"batches": 3, "start": {"seed": 1, "calls": 0}})
    dataset.__class__ = type(
        "Logged", (Images,), {"__getitem__": lambda self, i: read.append(i) or Images(9)[i]}
    )
    assert [labels.tolist() for _, labels in loader] == [[6, 7], [8]] and read == [6, 7, 8]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            None,
            TypeError,
            r"DataLoader.load_state_dict: expected a mapping with \['batch_size', .*, got NoneType",
        ),
        ({"more": 1}, TypeError, "expected a mapping with .*, got .*'more'"),
        (
            {"batch_size": 3},
            ValueError,
            "expected batch_size 2, got 3: give the loader the arguments and the dataset",
        ),
        ({"samples": 5}, ValueError, "expected samples 4, got 5"),
        ({"batches": 1}, ValueError, "expected a number of batches, 0 without a start, got 1"),
        (
            {"batches": -1, "start": {"seed": 1, "calls": 0}},
            ValueError,
            "expected a number of batches",
        ),
        (
            {"batches": 1, "start": {"seed": 1}},
            TypeError,
            "expected a mapping with 'seed' and 'calls'",
        ),
        (
            {"generator": {"seed": 1, "calls": 0}},
            ValueError,
            "a generator of its own in both runs, or in none",
        ),
    ],
)
def test_invalid_positions_are_refused(change, error, text):
    loader = DataLoader(pairs(4), 2)
    before = loader.state_dict()
    with pytest.raises(error, match=text):
        loader.load_state_dict(change if change is None else before | change)
    assert loader.state_dict() == before
