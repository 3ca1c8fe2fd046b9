"""Collation of samples into batches, compared with PyTorch."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import xgrad
from xgrad.data import default_collate, default_convert

Pair = namedtuple("Pair", "image label")


def plain(x):
    """Return values and structure of a batch, with lists as all sequences."""
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    return x if isinstance(x, str | bytes) else x.tolist()


SAMPLES = [
    [1, 2],
    [1.5, 2.5],
    [True, False],
    [np.float64(1), np.float64(2)],
    [np.ones((2, 3), np.uint8), np.zeros((2, 3), np.uint8)],
    ["a", "b"],
    [(1, 2.5, "a"), (3, 4.5, "b")],
    [[1, 2], [3, 4]],
    [{"x": 1, "y": np.ones(2)}, {"y": np.zeros(2), "x": 2}],
    [{"x": (1, [2.0])}, {"x": (3, [4.0])}],
    [Pair(np.ones(2), 3), Pair(np.zeros(2), 4)],
]


@pytest.mark.parametrize("samples", SAMPLES, ids=str)
def test_batches_equal_those_of_pytorch(samples, torch):
    assert plain(default_collate(samples)) == plain(torch.utils.data.default_collate(samples))


@pytest.mark.parametrize("sample", [x for samples in SAMPLES for x in samples], ids=str)
def test_converted_samples_equal_those_of_pytorch(sample, torch):
    def known(x):
        if isinstance(x, dict):
            return {key: known(value) for key, value in x.items()}
        if isinstance(x, list | tuple):
            return [known(value) for value in x]
        return x.tolist() if hasattr(x, "tolist") else x

    assert known(default_convert(sample)) == known(torch.utils.data.default_convert(sample))


def test_conversion_keeps_containers_and_dtypes_and_all_but_arrays():
    sample = Pair((np.ones(2, np.float32), "a"), [np.int16(3), None, b"b", 2.5])
    converted = default_convert(sample)
    assert type(converted) is Pair and type(converted.image) is tuple
    assert converted.image[0].dtype == xgrad.float32
    assert converted.label[0].dtype == xgrad.int16 and converted.label[1:] == [None, b"b", 2.5]
    assert default_convert(np.array(["a"])).tolist() == ["a"]
    assert default_convert(x := xgrad.ones(2)) is x
    nested: list = []
    nested.append(nested)
    with pytest.raises(ValueError, match="default_convert: expected a sample not nested hundreds"):
        default_convert(nested)


def test_batches_have_the_dtype_and_the_container_of_their_samples():
    for sample, dtype in (
        (1.5, "float32"),
        (1, "int64"),
        (True, "bool"),
        (np.float64(1), "float64"),
    ):
        assert default_collate([sample, sample]).dtype.name == dtype
    assert default_collate([np.ones(2, np.uint8)] * 3).dtype == xgrad.uint8
    batch = default_collate([Pair(1, "a"), Pair(2, "b")])
    assert type(batch) is Pair and batch.image.tolist() == [1, 2] and batch.label == ["a", "b"]
    assert (
        type(default_collate([(1,), (2,)])) is tuple and type(default_collate([[1], [2]])) is list
    )
    assert type(default_collate([OrderedDict(x=1)])) is dict


def test_tensors_stay_on_their_device_and_arrays_move_to_the_default_device(device):
    x = xgrad.ones(2, device=device, requires_grad=True)
    batch = default_collate([x, 2 * x])
    assert batch.device is x.device and batch.tolist() == [[1, 1], [2, 2]]
    batch.sum().backward()
    assert x.grad.tolist() == [3, 3]
    with xgrad.default_device(device):
        assert (
            str(default_collate([np.ones(2)]).device) == str(default_collate([1]).device) == device
        )


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([], ValueError, "expected at least one sample, got none"),
        (
            [np.ones(2), np.ones(3)],
            ValueError,
            r"of one shape, got \(2,\) and \(3,\): give collate_fn",
        ),
        ([xgrad.ones(2), xgrad.ones(())], ValueError, r"of one shape, got \(2,\) and \(\)"),
        ([(1, 2), (1,)], ValueError, "of one length, got 2 and 1"),
        ([{"x": 1}, {}], ValueError, r"of one set of keys, got \{'x'\} and set\(\)"),
        ([1, None], TypeError, "of one type, got int and NoneType"),
        ([xgrad.ones(1), 0], TypeError, "of one type, got Tensor and int"),
        (["a", 0], TypeError, "of one type, got str and int"),
        ([None, None], TypeError, "expected tensors, arrays, .* got NoneType: give collate_fn"),
        ([np.array("x")], TypeError, "dtype"),
    ],
)
def test_incompatible_samples_are_refused(samples, error, message):
    with pytest.raises(error, match=message):
        default_collate(samples)
