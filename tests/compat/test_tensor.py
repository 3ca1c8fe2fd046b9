"""The tensor of `xgrad.compat.torch`: its class, attributes, and what it shares with xgrad's."""

from __future__ import annotations

import subprocess
import sys

import pytest

import xgrad
from xgrad.compat import torch


def test_import_of_xgrad_loads_nothing_of_it() -> None:
    code = "import sys, xgrad; print([name for name in sys.modules if 'compat.torch' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_results_of_functions_methods_and_operators_are_its_tensors() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    for y in (x + 1, 1 - x, x[0], x.T, x.sum(), torch.exp(x), x @ x.T, -x, x.max(1).values, x.data):
        assert type(y) is torch.Tensor
    (x * x).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert x.grad is x.grad


def test_size_is_a_count_and_a_method() -> None:
    x = torch.zeros(2, 3)
    assert x.size == 6
    assert x.size() == torch.Size([2, 3]) == x.shape
    assert x.size(-1) == 3
    assert repr(x.shape) == "torch.Size([2, 3])"
    assert x.shape.numel() == 6


def test_missing_name_says_what_to_do() -> None:
    with pytest.raises(AttributeError, match=r"torch\.bfloat16 is not available in xgrad\.compat"):
        torch.bfloat16  # noqa: B018
    assert not hasattr(torch, "nothing_of_this_name")


def test_tensor_of_xgrad_keeps_its_class_in_functions_of_xgrad() -> None:
    assert type(xgrad.ones(2) * 2) is xgrad.Tensor
