"""The tensor of `xgrad.compat.torch`: its class, attributes, and what it shares with xgrad's."""

from __future__ import annotations

import subprocess
import sys

import pytest

import xgrad
from xgrad.compat import torch
from xgrad.einops import register


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


#: Calls that return or keep ``x``, a tensor of xgrad.
CALLS_WITH_XGRAD_TENSORS = """
torch.positive(x)
torch.as_tensor(x)
torch.asarray(x)
torch.resolve_conj(torch.real(x))
torch.nn.functional.dropout(x, training=False)
torch.nn.Identity()(x)
torch.nn.Linear(3, 2)(x)
torch.nn.Linear(3, 2)(input=x)
torch.nn.Flatten()(x)
"""


@pytest.mark.parametrize("call", CALLS_WITH_XGRAD_TENSORS.strip().splitlines())
def test_tensors_of_xgrad_keep_their_class(call: str) -> None:
    for x in (xgrad.ones((2, 3), requires_grad=True), xgrad.nn.Parameter(xgrad.ones((2, 3)))):
        kind = type(x)
        y = eval(call, {"torch": torch, "x": x})
        assert type(x) is kind
        assert type(y) is torch.Tensor
        y.sum().backward()
        assert x.grad is not None


def test_layer_in_place_writes_to_a_tensor_of_xgrad() -> None:
    x = xgrad.asarray([-1.0, 2.0])
    torch.nn.ReLU(inplace=True)(x)
    assert type(x) is xgrad.Tensor
    assert x.tolist() == [0, 2]


#: Calls of einops.
EINOPS_CALLS = """
rearrange(x, "a b c -> b (a c)")
rearrange([x, x], "n a b c -> a (n b c)")
repeat(x[0], "b c -> r b c", r=2)
reduce(x, "a b c -> a b", "max")
reduce(x, "a b c -> c", "mean")
einsum(x, x, "a b c, a b d -> a c d")
pack([x, x[:, 0]], "a * c")[0]
unpack(x[:, :, 0], [[1], [2]], "a *")[1]
"""


@pytest.mark.parametrize("call", EINOPS_CALLS.strip().splitlines())
def test_einops_returns_its_tensors_like_pytorch(call: str) -> None:
    einops = pytest.importorskip("einops")
    theirs = pytest.importorskip("torch")
    register()
    results = [
        eval(call, vars(einops) | {"x": library.arange(24.0).reshape(2, 3, 4)})
        for library in (torch, theirs)
    ]
    assert type(results[0]) is torch.Tensor
    assert results[0].tolist() == results[1].tolist()
