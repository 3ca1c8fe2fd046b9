"""Calls of modules: forward hooks, and errors with notes that name the layer by its path.

Hooks that change values are compared with PyTorch, and notes with the expected text.
"""

from __future__ import annotations

import copy
import pickle
import traceback
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import Tensor, nn
from xgrad.nn.utils import functional_call

HOOKS = ["register_forward_pre_hook", "register_forward_hook"]


class Scale(nn.Module):
    """A module with keyword arguments."""

    def forward(self, x: Any, *, by: float = 1.0) -> Any:
        return by * x


# Hooks


def test_hooks_are_called_in_order_around_the_call():
    net, calls = nn.Sequential(Scale(), Scale()), []

    def before(module, args):
        calls.append(("before", module, args))

    def after(module, args, output):
        calls.append(("after", module, args, output))

    for method in (net.register_forward_hook, net[1].register_forward_hook):
        method(after)
    for method in (net.register_forward_pre_hook, net[0].register_forward_pre_hook):
        method(before)
    assert net(2.0) == 2.0
    expected = [("before", net, (2.0,)), ("before", net[0], (2.0,))]
    assert calls == [*expected, ("after", net[1], (2.0,), 2.0), ("after", net, (2.0,), 2.0)]


def test_hooks_change_inputs_and_output(torch):
    def prepared(library: Any) -> Any:
        class Scaled(library.nn.Module):
            def forward(self, x: Any, *, by: float = 1.0) -> Any:
                return by * x

        net = Scaled()
        net.register_forward_pre_hook(lambda module, args: args[0] + 1)
        net.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
        net.register_forward_pre_hook(
            lambda module, args, kwargs: (args, {"by": 10 * kwargs["by"]}), with_kwargs=True
        )
        net.register_forward_pre_hook(lambda module, args: args[0] - 5, prepend=True)
        net.register_forward_hook(lambda module, args, output: output + args[0])
        net.register_forward_hook(
            lambda module, args, kwargs, output: output + kwargs["by"], with_kwargs=True
        )
        net.register_forward_hook(lambda module, args, output: output * 100, prepend=True)
        net.register_forward_hook(lambda module, args, output: None)
        return net

    assert prepared(xgrad)(7.0, by=2.0) == prepared(torch)(7.0, by=2.0) == 9 * 20 * 100 + 9 + 20


@pytest.mark.parametrize("method", HOOKS)
def test_removed_hooks_are_not_called(method):
    net, calls = nn.Identity(), []
    handles = [getattr(net, method)(lambda *args, name=name: calls.append(name)) for name in "abc"]
    handles[1].remove()
    handles[1].remove()
    net(1)
    assert calls == ["a", "c"]
    handles[0].remove()
    handles[2].remove()
    net(1)
    assert calls == ["a", "c"]


def test_hook_after_the_call_may_be_removed_or_added_before_it(torch):
    def called(nn: Any) -> list[str]:
        net, calls = nn.Identity(), []
        handle = net.register_forward_hook(lambda *args: calls.append("removed"))

        def change(*args: Any) -> None:
            handle.remove()
            net.register_forward_hook(lambda *args: calls.append("added"))

        net.register_forward_pre_hook(change)
        net(1)
        return calls

    assert called(nn) == called(torch.nn) == ["added"]


def test_hook_removes_itself():
    net, calls = nn.Identity(), []
    handle = net.register_forward_hook(
        lambda module, args, output: (calls.append(1), handle.remove())[1]
    )
    assert net(1) == net(1) == 1 and calls == [1]


def test_hooks_of_a_nested_chain_are_called():
    inner = nn.Sequential(nn.Identity())
    net = nn.Sequential(inner)
    inner.register_forward_hook(lambda module, args, output: 10 * output)
    assert net(2) == 20


def test_hooks_are_copied_with_the_module():
    net = nn.Identity()
    net.register_forward_hook(times_ten)
    for twin in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin(2) == 20
        twin.register_forward_hook(times_ten)
        assert twin(2) == 200 and net(2) == 20


def times_ten(module: nn.Module, args: Any, output: Any) -> Any:
    return 10 * output


def test_hooks_run_in_functional_calls_with_the_copy_of_the_module():
    layer, seen = nn.Linear(2, 2, bias=False), []
    layer.register_forward_hook(lambda module, args, output: seen.append(module.weight.tolist()))
    layer.register_forward_hook(lambda module, args, output: output + (layer.weight * 0).sum())
    weight = xgrad.ones((2, 2))
    assert functional_call(layer, {"weight": weight}, xgrad.ones((1, 2))).tolist() == [[2, 2]]
    assert seen == [weight.tolist()]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "net.register_forward_hook(3)",
            "TypeError: Identity.register_forward_hook: expected a function, got 3",
        ),
        (
            "net.register_forward_pre_hook(None)",
            "TypeError: Identity.register_forward_pre_hook: expected a function, got None",
        ),
        (
            "net.register_forward_pre_hook(lambda *args: (1, 2, 3), with_kwargs=True) and net(1)",
            (
                "TypeError: Identity: expected None or a pair (args, kwargs) from a forward"
                " pre-hook with kwargs, got (1, 2, 3)"
            ),
        ),
    ],
)
def test_invalid_hooks_are_refused(call, expected):
    check_error(call, expected, net=nn.Identity())


# Hooks in captured steps


def test_hooks_run_during_the_trace_and_their_ops_are_replayed(capturing_device):
    net, calls = nn.MLP([3, 4, 2]).to(capturing_device), []
    offset = xgrad.ones(2, device=capturing_device)

    def hook(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        calls.append(1)
        return output + offset

    handle = net[2].register_forward_hook(hook)
    step, eager = xgrad.capture(lambda x: net(x).detach()), net.forward
    x = xgrad.ones((5, 3), device=capturing_device)

    def check(recordings: int) -> None:
        for _ in range(3):
            assert host(step(x)).tobytes() == host(eager(x)).tobytes()
        assert step.recordings == recordings and step.refusal is None

    check(1)
    assert len(calls) == 4  # one of the trace, and three of eager calls
    offset[...] = 5.0  # state of the step
    check(1)
    handle.remove()
    check(2)
    net[0].register_forward_pre_hook(lambda module, args: 2 * args[0])
    check(3)


# Errors


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(5, 4)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


UNREGISTERED = nn.Sequential(nn.Linear(5, 4))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Identity(), nn.Sequential(nn.Linear(4, 4), Block()))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 0:
            raise RuntimeError("empty")
        return self.features(x) if x.shape[0] == 1 else UNREGISTERED(x)


def notes_of(call: Any, *args: Any) -> list[str]:
    with pytest.raises((ValueError, RuntimeError, TypeError)) as caught:
        call(*args)
    return list(getattr(caught.value, "__notes__", []))


def test_error_names_the_innermost_layer_by_its_path():
    net, x = Net(), xgrad.ones((1, 4))
    note = "in layer 'features.1.1.layers.1' (Linear) of Net"
    assert notes_of(net, x) == [note]
    assert notes_of(net.features[1], x) == ["in layer '1.layers.1' (Linear) of Sequential"]
    assert notes_of(net.features[1][1], x) == ["in layer 'layers.1' (Linear) of Block"]
    assert notes_of(net.features[1][1].layers[1], x) == []  # the message names it
    assert notes_of(nn.Sequential(net), x) == [
        "in layer '0.features.1.1.layers.1' (Linear) of Sequential"
    ]
    with pytest.raises(ValueError, match="Linear") as caught:
        net(x)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert traceback.format_exception(error)[-2:] == [
            f"ValueError: {caught.value}\n",
            f"{note}\n",
        ]


def test_error_of_a_module_itself_names_it_within_others():
    assert notes_of(Net(), xgrad.ones((0, 4))) == []
    assert notes_of(nn.Sequential(Net()), xgrad.ones((0, 4))) == [
        "in layer '0' (Net) of Sequential"
    ]


def test_error_of_a_layer_that_is_not_registered_is_named_by_the_module_that_has_it():
    assert notes_of(Net(), xgrad.ones((2, 4))) == ["in layer '0' (Linear) of Sequential"]


def test_other_notes_are_kept():
    class Noted(nn.Module):
        def forward(self, x: Any) -> Any:
            error = ValueError("no")
            error.add_note("a note")
            raise error

    assert notes_of(nn.Sequential(nn.Sequential(), nn.ModuleDict({"a": Noted()})["a"]), 1) == [
        "a note",
        "in layer '1' (Noted) of Sequential",
    ]


def test_error_that_is_raised_again_from_a_hook_has_the_last_path():
    net = nn.Sequential(nn.Identity(), nn.Tanh())
    error = ValueError("saved")

    def fail(module: nn.Module, args: Any) -> Any:
        raise error

    for i in (0, 1):
        handle = net[i].register_forward_pre_hook(fail)
        assert (
            notes_of(net, xgrad.ones(1))[-1]
            == f"in layer '{i}' ({type(net[i]).__name__}) of Sequential"
        )
        handle.remove()
        error.__traceback__ = None


def test_error_in_functional_calls_and_captured_steps_names_the_layer():
    net, x = Net(), xgrad.ones((1, 4))
    note = "in layer 'features.1.1.layers.1' (Linear) of Net"
    assert note in notes_of(functional_call, net, net.state_dict(), x)
    step = xgrad.capture(net)
    for _ in range(2):
        assert note in notes_of(step, x)
    assert note in notes_of(xgrad.grad(lambda x: net(x).sum()), x)


def test_error_of_endless_recursion_ends():
    class Endless(nn.Module):
        def forward(self, x: Any) -> Any:
            return self(x)

    with pytest.raises(RecursionError):
        nn.Sequential(Endless())(1)


def test_modules_that_raise_work_afterwards():
    net = nn.MLP([3, 2])
    for _ in range(2):
        notes_of(net, xgrad.ones((1, 4)))
        np.testing.assert_array_equal(
            host(net(xgrad.ones((1, 3)))), host(net[0](xgrad.ones((1, 3))))
        )
