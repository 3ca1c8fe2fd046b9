"""Calls of a module as a function of its parameters: values, gradients, replacement and errors.

They are compared with a module that has these parameters, and with `backward`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import xgrad
from helpers import run_threads
from xgrad import Tensor, nn
from xgrad.nn.utils import functional_call


class Tied(nn.Module):
    """A module with each kind of reference to a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.listed = [self.a, {"a": (self.a,)}]
        self.method = self.a.forward
        self.parent = nn.Identity()
        self.parent.child = self  # a circle
        self.register_buffer("count", xgrad.asarray(0.0))
        self.log: list[int] = []

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        self.count = self.count + 1
        self.log.append(1)
        x = self.b(self.listed[0](x)) + self.listed[1]["a"][0](x) + self.method(x)
        penalty = sum(((p * p).sum() for p in self.parameters()), start=xgrad.asarray(0.0))
        return scale * (x + self.parent.child.a(x) + penalty)


def state(module: nn.Module) -> dict[str, Any]:
    return {name: value.tolist() for name, value in module.state_dict().items()}


def test_result_is_that_of_a_module_with_the_parameters(device: str) -> None:
    net, other = (nn.MLP([3, 4, 2]).to(device) for _ in range(2))
    x, before = xgrad.ones((5, 3), device=device), state(net)
    got = functional_call(net, other.state_dict(), (x,))
    np.testing.assert_array_equal(got.cpu().numpy(), other(x).detach().cpu().numpy())
    bias = {"2.bias": other.state_dict()["2.bias"]}
    assert functional_call(net, bias, x).requires_grad  # the rest are the net's own
    assert state(net) == before and all(p.is_leaf and p.grad is None for p in net.parameters())


def test_gradients_equal_those_of_backward(device: str) -> None:
    net = nn.MLP([3, 4, 2], activation=nn.Tanh).to(device)
    x, y = xgrad.ones((5, 3), device=device), xgrad.zeros((5, 2), device=device)
    loss = nn.MSELoss()
    params = {name: p.detach() for name, p in net.named_parameters()}
    gradient = xgrad.grad(lambda p: loss(functional_call(net, p, x), y))(params)
    assert all(p.grad is None for p in net.parameters())
    loss(net(x), y).backward()
    for name, p in net.named_parameters():
        assert p.grad is not None and not gradient[name].requires_grad
        np.testing.assert_allclose(gradient[name].cpu().numpy(), p.grad.cpu().numpy(), rtol=1e-6)


def test_each_reference_to_a_parameter_leads_to_the_replacement() -> None:
    module, x = Tied(), xgrad.asarray([[1.0, -2.0]])
    before = state(module)
    w = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]])
    got = functional_call(module, {"a.weight": w}, x, {"scale": 2.0})
    assert state(module) == before  # with the count that the call assigned
    assert module.log == [1] and module.parent.child is module and module.listed[0] is module.a
    module.a.weight.data = w
    expected = module(x, scale=2.0)
    assert got.tolist() == expected.tolist()
    (direct,) = xgrad.autograd.grad(expected.sum(), module.a.weight)
    ours = xgrad.grad(lambda w: functional_call(module, {"a.weight": w}, x, {"scale": 2.0}).sum())(
        w
    )
    assert ours.tolist() == direct.tolist()


class Pair(NamedTuple):
    inner: Any
    weight: Any


def functions_of(self: Any) -> dict[str, Any]:
    """Return functions and containers of them that use the weight of a module."""

    def twice(x: Tensor, n: int = 1) -> Tensor:  # recursive
        return twice(x, n - 1) if n else self.weight * x

    pair, ordered, group = Pair(self, self.weight), OrderedDict(a=self), frozenset([self])
    return {
        "partial": partial(type(self).times, self),
        "lambda": lambda x, *, by=1.0: self.weight * x * by,
        "recursive": twice,
        "holders": lambda x: (
            (pair.inner.weight + pair.weight + ordered["a"].weight + next(iter(group)).weight)
            * x
            / 4
        ),
        "nested": [lambda x: next(iter({self.weight})) * x],
    }


@pytest.mark.parametrize("kind", ["partial", "lambda", "recursive", "holders", "nested"])
def test_functions_in_a_module_use_the_replacement(kind: str) -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter([1.0])
            self.function = functions_of(self)[kind]

        def times(self, x: Tensor) -> Tensor:
            return self.weight * x

        def forward(self, x: Tensor) -> Tensor:
            function = self.function[0] if isinstance(self.function, list) else self.function
            return function(x)  # type: ignore[no-any-return]

    module = Scale()
    assert xgrad.grad(lambda w: functional_call(module, {"weight": w}, 3.0).sum())(
        xgrad.asarray([5.0])
    ).tolist() == [3]
    assert functional_call(module, {"weight": xgrad.asarray([5.0])}, 3.0).tolist() == [15]
    assert module(3.0).tolist() == [3]


def test_buffers_are_replaced_also_by_arrays() -> None:
    module = Tied()
    for count in (xgrad.asarray(5.0), np.float32(5), np.asarray(5.0, dtype="float32")):
        assert functional_call(module, {"count": count}, xgrad.ones((1, 2))).shape == (1, 2)
    assert module.count.item() == 0


def test_exceptions_and_threads_leave_the_module_unchanged() -> None:
    net = nn.Linear(2, 1)
    before, results = state(net), {}
    with pytest.raises(ValueError, match="linear"):
        functional_call(net, {"bias": xgrad.ones(1)}, xgrad.ones((1, 3)))
    gate = threading.Barrier(4)

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net

        def forward(self, x: Tensor) -> Tensor:
            gate.wait(10)
            out = self.inner(x)
            gate.wait(10)
            return out

    slow = Slow()

    def work(i: int) -> None:
        params = {"inner.weight": xgrad.full((1, 2), float(i)), "inner.bias": xgrad.zeros(1)}
        results[i] = functional_call(slow, params, xgrad.ones((1, 2))).item()

    run_threads(work, range(4))
    assert results == {i: 2 * i for i in range(4)}
    assert state(net) == before


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        (
            {"wieght": xgrad.ones((1, 2))},
            ValueError,
            r"expected names of \['weight', 'bias'\], got \['wieght'\]",
        ),
        (
            {"weight": xgrad.ones(2)},
            ValueError,
            r"expected shape \(1, 2\) for 'weight', got \(2,\)",
        ),
        ({"weight": "x"}, TypeError, "expected a tensor for 'weight'"),
    ],
)
def test_invalid_parameters_are_refused(params: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"functional_call: {text}"):
        functional_call(nn.Linear(2, 1), params, xgrad.ones((1, 2)))


def test_parameter_in_an_object_that_is_not_copied_is_refused() -> None:
    net = nn.Linear(2, 1)
    for held in (net, net.weight):
        outer = nn.Sequential(net)
        outer.helper = SimpleNamespace(held=held)
        with pytest.raises(
            TypeError,
            match="got one in 'held' of a SimpleNamespace, which is not copied: make that a",
        ):
            functional_call(outer, {"0.weight": xgrad.ones((1, 2))}, xgrad.ones((1, 2)))
        assert functional_call(
            outer, {"0.bias": xgrad.ones(1)} if held is net.weight else {}, xgrad.ones((1, 2))
        ).size


def test_op_as_an_attribute_is_no_hidden_parameter():
    net = xgrad.nn.Linear(2, 2)
    net.activation = xgrad.relu
    assert functional_call(net, dict(net.named_parameters()), xgrad.ones(2)).shape == (2,)
