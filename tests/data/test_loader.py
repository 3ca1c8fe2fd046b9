import threading
import time

import numpy as np
import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.data import DataLoader, Dataset, Subset, TensorDataset


def pairs(n: int, device: str = "cpu") -> TensorDataset:
    """Samples whose two tensors say which sample they are."""
    numbers = np.arange(n)
    images = np.stack([numbers, -numbers], axis=1).astype(np.float32)
    return TensorDataset(xgrad.asarray(images, device=device), xgrad.asarray(numbers, device=device))


def batches(loader: DataLoader) -> list[list[int]]:
    found = []
    for images, labels in loader:
        assert images.dtype == xgrad.float32 and images.shape == (len(labels), 2)
        assert images.device is labels.device is loader.dataset.tensors[0].device
        assert images.cpu().numpy().tolist() == [[n, -n] for n in labels.tolist()]
        found.append(labels.tolist())
    assert len(found) == len(loader)
    return found


def test_batches_follow_the_order_of_the_dataset(device):
    assert batches(DataLoader(pairs(5, device), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert batches(DataLoader(pairs(5, device))) == [[0], [1], [2], [3], [4]]
    assert batches(DataLoader(pairs(3, device), batch_size=8)) == [[0, 1, 2]]


def test_a_short_last_batch_can_be_left_out(device):
    assert batches(DataLoader(pairs(5, device), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert batches(DataLoader(pairs(4, device), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert batches(DataLoader(pairs(3, device), batch_size=8, drop_last=True)) == []
    shuffled = batches(DataLoader(pairs(5, device), 2, shuffle=True, drop_last=True))
    assert len({n for batch in shuffled for n in batch}) == 4


def test_nothing_comes_of_no_samples(device):
    assert batches(DataLoader(pairs(0, device), batch_size=2, shuffle=True)) == []


def test_a_shuffled_pass_has_every_sample_once_in_another_order_each_time(device):
    loader = DataLoader(pairs(50, device), batch_size=8, shuffle=True)
    xgrad.manual_seed(0)
    passes = [[n for batch in batches(loader) for n in batch] for _ in range(3)]
    assert all(sorted(seen) == list(range(50)) for seen in passes)
    assert passes[0] != passes[1] != passes[2] != list(range(50))


def test_equal_seeds_give_equal_batches_on_every_device(device):
    xgrad.manual_seed(7)
    expected = [batches(DataLoader(pairs(20), 3, shuffle=True)) for _ in range(2)]
    xgrad.manual_seed(7)
    assert [batches(DataLoader(pairs(20, device), 3, shuffle=True)) for _ in range(2)] == expected
    xgrad.manual_seed(8)
    assert batches(DataLoader(pairs(20, device), 3, shuffle=True)) != expected[0]


def test_a_generator_of_its_own_leaves_the_default_one_alone(device):
    loader = DataLoader(pairs(20, device), 3, shuffle=True, generator=xgrad.random.Generator(7))
    first = batches(loader)
    xgrad.manual_seed(0)
    expected = xgrad.random.rand(3).tolist()
    xgrad.manual_seed(0)
    second = batches(loader)
    assert xgrad.random.rand(3).tolist() == expected
    again = DataLoader(pairs(20, device), 3, shuffle=True, generator=xgrad.random.Generator(7))
    assert [batches(again), batches(again)] == [first, second] and first != second


def test_two_passes_at_once_do_not_disturb_each_other():
    loader = DataLoader(pairs(4), batch_size=2)
    assert [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        ([0, 1],) * 2,
        ([2, 3],) * 2,
    ]


def test_datasets_are_read_by_sample_slice_and_indices(device):
    dataset = pairs(5, device)
    assert len(dataset) == 5
    assert [x.tolist() for x in dataset[3]] == [[3.0, -3.0], 3]
    assert [x.tolist() for x in dataset[1:3]] == [[[1.0, -1.0], [2.0, -2.0]], [1, 2]]
    assert dataset[xgrad.asarray([4, 0], device=device)][1].tolist() == [4, 0]


def test_gradients_flow_through_a_batch():
    x = xgrad.Tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(x), 2, shuffle=True)))
    batch.sum().backward()
    assert x.grad is not None and sorted(x.grad.numpy().ravel()) == [0, 1, 1]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ((), r"TensorDataset: expected one or more tensors .* got shapes \[\]"),
        ((xgrad.zeros(3), xgrad.zeros(4)), r"one length, got shapes \[\(3,\), \(4,\)\]: give each a row"),
        ((xgrad.zeros(()),), r"got shapes \[\(\)\]"),
    ],
)
def test_datasets_need_tensors_of_one_length(tensors, message):
    with pytest.raises(ValueError, match=message):
        TensorDataset(*tensors)


def test_datasets_need_tensors():
    with pytest.raises(TypeError, match=r"TensorDataset: expected tensors, got ndarray: make one with xgrad.asarray"):
        TensorDataset(np.zeros(3))


def test_datasets_need_tensors_of_one_device():
    pytest.importorskip("array_api_strict")
    with pytest.raises(DeviceError, match="expected tensors of one device, got cpu, strict: move them"):
        TensorDataset(xgrad.zeros(3), xgrad.zeros(3, device="strict"))


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", True])
def test_batches_need_a_size(size):
    with pytest.raises(ValueError, match="DataLoader: expected a batch_size of 1 or more, got"):
        DataLoader(pairs(3), batch_size=size)


@pytest.mark.parametrize("dataset", [3, None, {"images": [1, 2]}, lambda: 3])
def test_loaders_need_a_dataset(dataset):
    message = r"DataLoader: expected a dataset with __len__ and __getitem__\(number\), or an iterable, got "
    with pytest.raises(TypeError, match=message + type(dataset).__name__):
        DataLoader(dataset)


def test_loaders_need_a_generator_of_ours():
    with pytest.raises(TypeError, match=r"expected an xgrad\.random\.Generator, got Generator"):
        next(iter(DataLoader(pairs(3), shuffle=True, generator=np.random.default_rng())))


# Other datasets than tensors


class Images(Dataset):
    """Samples that are tuples of an array and a number, and say which sample they are."""

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


def labels(loader) -> list[list[int]]:
    found = []
    for images, numbers in loader:
        assert images.dtype == xgrad.float32 and numbers.dtype == xgrad.int64
        assert images.tolist() == [[n, n] for n in numbers.tolist()]
        found.append(numbers.tolist())
    return found


WORKERS = pytest.mark.parametrize("workers", [0, 1, 3])


@WORKERS
def test_samples_of_any_dataset_are_stacked(workers):
    assert labels(DataLoader(Images(7), 3, num_workers=workers)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert labels(DataLoader(Images(7), 3, num_workers=workers, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert labels(DataLoader(Images(0), 3, num_workers=workers, shuffle=True)) == []
    for dataset in (Plain(), [0.0, 1.0, 2.0, 3.0, 4.0], np.arange(5.0, dtype=np.float32), xgrad.arange(5.0)):
        loader = DataLoader(dataset, 3, num_workers=workers)
        got = list(loader)
        assert [x.tolist() for x in got] == [[0, 1, 2], [3, 4]] and len(loader) == 2
        assert all(isinstance(x, xgrad.Tensor) and x.dtype == xgrad.float32 for x in got)


@WORKERS
def test_equal_seeds_give_equal_batches_of_all_kinds_of_datasets(workers):
    xgrad.manual_seed(7)
    expected = batches(DataLoader(pairs(20), 3, shuffle=True))
    xgrad.manual_seed(7)
    assert labels(DataLoader(Images(20), 3, shuffle=True, num_workers=workers)) == expected
    generator = xgrad.random.Generator(7)
    loader = DataLoader(Images(20), 3, shuffle=True, num_workers=workers, generator=generator)
    assert labels(loader) == expected != labels(loader)


def test_random_numbers_of_a_dataset_do_not_depend_on_the_workers():
    class Noise(Images):
        def __getitem__(self, index):
            return xgrad.random.rand(2), super().__getitem__(index)[1]

    def noise(workers, seed=3):
        xgrad.manual_seed(seed)
        return [[x.tolist() for x, _ in DataLoader(Noise(9), 2, num_workers=workers)] for _ in range(2)]

    expected = noise(0)
    assert noise(1) == noise(4) == expected != noise(0, 4)
    numbers = [row for epoch in expected for batch in epoch for row in batch]
    assert len({tuple(row) for row in numbers}) == 18  # no sample of either pass has the numbers of another


@WORKERS
def test_workers_have_the_context_of_the_loop(workers):
    loader = DataLoader([1.0, 2.0], collate_fn=lambda x: (xgrad.zeros(1), xgrad.is_grad_enabled()), num_workers=workers)
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
    with pytest.raises(TypeError, match="DataLoader: expected a length, which Stream has not"):
        len(loader)


@WORKERS
def test_iterables_may_hold_a_context(workers):
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
        found = list(DataLoader(Stream(5), 2, num_workers=workers))
        assert [(str(x.device), len(x)) for x in found] == [("strict", 2), ("strict", 2), ("strict", 1)]
        return [x.tolist() for x in found]

    assert values(workers) == values(0)
    closed.clear()
    for _ in DataLoader(Stream(1000), 2, num_workers=workers):  # too long to be read to its end by then
        break
    assert closed == [threading.active_count()]  # the workers were stopped before


@WORKERS
def test_an_iterator_is_not_silently_empty_at_the_second_pass(workers):
    loader = DataLoader((n for n in range(3)), 2, num_workers=workers)
    assert [x.tolist() for x in loader] == [[0, 1], [2]]
    with pytest.raises(ValueError, match="an iterator that an earlier iteration used up: give a list"):
        list(loader)
    loader = DataLoader(pairs(3), sampler=iter([2, 0]))
    assert [x.tolist() for _, x in loader] == [[2], [0]]
    with pytest.raises(ValueError, match="used up"):
        list(loader)


@WORKERS
def test_a_sampler_chooses_the_samples(workers):
    order = [4, 0, 4, 1, 2]
    for dataset in (pairs(5), Images(5)):
        loader = DataLoader(dataset, 2, sampler=order, num_workers=workers)
        assert [x.tolist() for _, x in loader] == [[4, 0], [4, 1], [2]] and len(loader) == 3
        assert len(list(DataLoader(dataset, 2, sampler=order, drop_last=True, num_workers=workers))) == 2
        with pytest.raises(IndexError):
            list(DataLoader(dataset, sampler=[5], num_workers=workers))


def test_a_mask_is_no_sampler():
    for dataset in (pairs(2), Images(2)):
        with pytest.raises(TypeError, match="DataLoader: expected numbers of samples from the sampler, got bools"):
            list(DataLoader(dataset, sampler=[True, False]))


def test_a_sampler_stays_on_the_device(device):
    loader = DataLoader(pairs(5, device), 2, sampler=xgrad.asarray([4, 0, 1]))
    assert [(x.tolist(), str(x.device)) for _, x in loader] == [([4, 0], device), ([1], device)]
    with pytest.raises(IndexError, match="DataLoader: sampler: expected indices from 0 to 4, got -1"):
        list(DataLoader(pairs(5, device), sampler=[-1]))


def test_subsets_of_tensors_are_gathered_on_the_device(device):
    part = Subset(Subset(pairs(9, device), [8, 6, 4, 2, 0]), [1, 2, 3])
    assert batches_of(part, 2) == [[6, 4], [2]]
    xgrad.manual_seed(7)
    shuffled = batches_of(part, 2, shuffle=True)
    xgrad.manual_seed(7)
    order = [n for batch in batches_of(TensorDataset(xgrad.arange(3)), 2, shuffle=True) for n in batch]
    assert [n for batch in shuffled for n in batch] == [[6, 4, 2][i] for i in order]
    assert batches_of(part, 2, sampler=[2, 0]) == [[2, 6]]


def batches_of(dataset, *arguments, **options) -> list[list[int]]:
    return [batch[-1].tolist() for batch in DataLoader(dataset, *arguments, **options)]


def test_tensors_that_a_subclass_changes_are_read_one_by_one():
    class Doubled(TensorDataset):
        def __getitem__(self, key):
            (x,) = super().__getitem__(key)
            return x * 2

    assert [x.tolist() for x in DataLoader(Doubled(xgrad.arange(3)), 2)] == [[0, 2], [4]]


@WORKERS
def test_collate_fn_makes_the_batches(workers):
    loader = DataLoader([[1], [2, 3], []], 2, collate_fn=lambda samples: [*map(sum, samples)], num_workers=workers)
    assert list(loader) == [[1, 5], [0]]
    loader = DataLoader(pairs(3), 2, collate_fn=len, num_workers=workers)
    assert list(loader) == [2, 1]


@WORKERS
def test_errors_are_raised_at_their_batch_with_the_number_of_the_sample(workers):
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
    assert caught.value.__notes__ == ["DataLoader: raised by the iterator of the dataset, in batch 1"]


def test_workers_load_ahead_but_not_without_bound():
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
    assert sorted(loaded) == list(range(7))  # that of the loop, and three for each worker
    assert sum(thread.name.startswith("xgrad-data_") for thread in threading.enumerate()) == 2
    iterator.close()
    assert threading.active_count() == running
    for _ in DataLoader(Counted(1000), 1, num_workers=2):
        break
    assert threading.active_count() == running


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_workers": -1}, ValueError, "expected a num_workers of 0 or more, got -1"),
        ({"num_workers": True}, ValueError, "expected a num_workers of 0 or more, got True"),
        ({"prefetch_factor": 0}, ValueError, "expected a prefetch_factor of 1 or more, got 0"),
        ({"shuffle": True, "sampler": [0]}, ValueError, "expected either shuffle or a sampler, got both"),
        ({"shuffle": [0, 1]}, TypeError, r"expected True or False for shuffle, got \[0, 1\]"),
        ({"drop_last": "no"}, TypeError, "expected True or False for drop_last, got 'no'"),
        ({"sampler": 3}, TypeError, "expected an iterable of int as sampler, got int"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error, message):
    with pytest.raises(error, match=f"DataLoader: {message}"):
        DataLoader(Images(3), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0]}])
def test_an_iterable_has_no_order_to_choose(options):
    with pytest.raises(ValueError, match=f"for {next(iter(options))}, got an iterable, set: make it a list"):
        DataLoader({1, 2}, **options)
