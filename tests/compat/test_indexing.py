"""Reads and writes by ``x[key]``, with PyTorch's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xgrad.compat import torch as compat

#: Keys for a tensor ``x`` of shape (2, 3, 4).
KEYS = """
0 | -1 | (0, 1) | (0, 1, 2) | slice(1) | (0, slice(None), [0, 2]) | (slice(None), 1, [0, 2])
(0, [0, 2]) | ([0, 1], 0) | ([0, 1], slice(None), 1) | (0, ..., [0, 2]) | (..., 0, [0, 1])
None | (None, 0) | (0, None, [1]) | (slice(None), None, 1) | ... | (..., 1) | [0, 1] | [1]
([0, 1], [1, 2]) | ([0, 1], slice(None), [1, 2]) | (slice(None), [0, 1], [1, 2])
(0, slice(None, None, 2), [3, 0, 1]) | (1, [[0, 2], [1, 1]]) | ([[0], [1]], 1, [0, 3])
torch.tensor(1) | (torch.tensor(1), slice(None), torch.tensor([0, 2])) | torch.tensor([1, 0])
torch.tensor([True, False]) | (slice(None), torch.tensor([True, False, True]))
(0, torch.tensor([True, False, True])) | (torch.tensor([True, False]), slice(None), 1)
(slice(None), torch.tensor([True, False, True]), 0) | (1, slice(None), torch.tensor([1, 1]))
torch.ones(2, 3) > 0 | torch.ones(2, 3, 4) > 0
(0, slice(None), None, [1, 2]) | (0, None, slice(None), [1, 2]) | True | (0, True)
"""
CASES = [key.strip() for line in KEYS.strip().splitlines() for key in line.split("|")]


OF_BYTES = "torch.tensor([1, 0], dtype=torch.uint8)"


def example(library: Any) -> Any:
    return library.arange(24.0).reshape(2, 3, 4)


def key_of(library: Any, text: str) -> Any:
    return eval(text, {"torch": library})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", [*CASES, OF_BYTES])
def test_reads_match_pytorch(torch: Any, text: str) -> None:
    expected = example(torch)[key_of(torch, text)].numpy()
    got = example(compat)[key_of(compat, text)].numpy()
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", CASES)
def test_gradients_of_reads_match_pytorch(torch: Any, text: str) -> None:
    gradients = []
    for library in (torch, compat):
        x = example(library).requires_grad_()
        (x[key_of(library, text)] ** 2).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(gradients[1], gradients[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("of_tensors", [False, True])
def test_writes_match_pytorch(torch: Any, text: str, of_tensors: bool) -> None:
    results = []
    for library in (torch, compat):
        x, key = example(library), key_of(library, text)
        shape = tuple(example(torch)[key_of(torch, text)].shape)
        count = int(np.prod(shape))
        x[key] = library.arange(count).reshape(shape) + 0.5 if of_tensors else 7
        results.append(x.numpy())
    np.testing.assert_array_equal(results[1], results[0])


def test_integers_select_before_arrays_of_indices() -> None:
    x = compat.zeros(2, 3, 4)
    assert x[0, :, [0, 2]].shape == (3, 2)
    assert x[:, 0, [0, 2]].shape == (2, 2)


def test_an_element_is_a_view() -> None:
    x = compat.zeros(2, 2)
    element = x[0, 1]
    x.fill_(3)
    assert element.item() == 3
    element.zero_()
    assert x.tolist() == [[3, 0], [3, 3]]


def test_writes_cast_to_the_dtype_of_the_tensor() -> None:
    x = compat.zeros(3, dtype=compat.int64)
    x[0], x[1:] = 1.7, compat.tensor([2.5, -3.5])
    assert x.tolist() == [1, 2, -3]
    mask = compat.zeros(2, dtype=compat.bool)
    mask[0] = 2
    assert mask.tolist() == [True, False]


def test_write_of_a_value_with_leading_axes_of_length_1() -> None:
    x = compat.zeros(2, 3)
    x[0] = compat.ones(1, 1, 3)
    assert x.sum().item() == 3
