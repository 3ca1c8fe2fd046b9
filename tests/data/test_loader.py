import numpy as np
import pytest

import xgrad
from xgrad.backend import DeviceError
from xgrad.data import DataLoader, TensorDataset


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


def test_loaders_need_a_dataset():
    with pytest.raises(TypeError, match="DataLoader: expected a TensorDataset, got Tensor: make one with"):
        DataLoader(xgrad.zeros(3))


def test_loaders_need_a_generator_of_ours():
    with pytest.raises(TypeError, match=r"expected an xgrad\.random\.Generator, got Generator"):
        next(iter(DataLoader(pairs(3), shuffle=True, generator=np.random.default_rng())))
