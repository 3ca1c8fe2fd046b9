"""`register_full_backward_hook`: calls and gradients, compared with PyTorch, and refusals."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf
from xgrad import nn

Pair = namedtuple("Pair", ["first", "second"])


class Scenario:
    """Modules, tensors and recorded calls of hooks of one library."""

    def __init__(self, library: Any) -> None:
        self.library, self.nn, self.calls = library, library.nn, list[Any]()
        self.x, self.y = (self.leaf([a, b]) for a, b in ((1.0, 2.0), (0.5, -1.0)))
        self.grad = library.autograd.grad

    def leaf(self, values: Any) -> Any:
        dtype = self.library.float64
        make = xgrad.asarray if self.library is xgrad else self.library.tensor
        return make(values, dtype=dtype).requires_grad_(True)

    def record(self, module: Any, grad_input: Any, grad_output: Any) -> None:
        self.calls.append((grad_input, grad_output))

    def module(self, forward: Any, *hooks: Any) -> Any:
        module = type("Custom", (self.nn.Module,), {"forward": forward})()
        for hook in hooks or (self.record,):
            module.register_full_backward_hook(hook)
        return module


def several(s: Scenario) -> None:
    module = s.module(lambda self, a, n, b, *, c: (a * b + n, c * a, "text", a.detach()))
    first, second, *_ = module(s.x, 3, s.y, c=s.leaf([4.0, 5.0]))
    first.sum().backward(retain_graph=True)
    second.sum().backward(retain_graph=True)
    (first * second).sum().backward()


def one_requires_a_gradient(s: Scenario) -> None:
    s.module(lambda self, a, b: a * b)(s.x, s.y.detach()).sum().backward()


def none_requires_a_gradient(s: Scenario) -> None:
    module = s.module(
        lambda self, a, b: (a * s.y, b), s.record, lambda module, *_: (None, None), s.record
    )
    module(s.x.detach(), 2)[0].sum().backward()


def named_tuple(s: Scenario) -> None:
    pair = s.module(lambda self, x: Pair(2 * x, 3 * x))(s.x)
    (pair.first * pair.second).sum().backward()


def replaced(s: Scenario) -> None:
    module = s.module(lambda self, a, b: a * b, lambda module, g, _: (10 * g[0], g[1]), s.record)
    module.register_full_backward_hook(s.record, prepend=True)
    removed = module.register_full_backward_hook(lambda module, g, _: (None, None))
    module.register_full_backward_hook(lambda module, g, _: [g[0], None])
    removed.remove()
    module(s.x, s.y).sum().backward()


def nested(s: Scenario) -> None:
    net = s.nn.Sequential(s.nn.Tanh(), s.nn.Sequential(s.nn.Sigmoid(), s.nn.Identity()))
    for module in (net, net[0], net[1], net[1][1]):
        module.register_full_backward_hook(s.record)
    net(s.x).sum().backward()


def called_twice(s: Scenario) -> None:
    module = s.module(lambda self, x: x**2)
    module(module(s.x) * s.y).sum().backward()


def same_input_twice(s: Scenario) -> None:
    s.module(lambda self, a, b: a * b)(s.x, s.x).sum().backward()


def with_forward_hooks(s: Scenario) -> None:
    module = s.module(lambda self, x: x**3)
    module.register_forward_pre_hook(lambda module, args: (2 * args[0],))
    module.register_forward_hook(lambda module, args, output: output * args[0])
    module(s.x).sum().backward()


def around_the_output(s: Scenario) -> None:
    def forward(self: Any, x: Any) -> Any:
        self.hidden = 2 * x
        return 3 * self.hidden

    module = s.module(forward)
    module(s.x)
    module.hidden.sum().backward()
    (module(s.x) + module.hidden).sum().backward()


def of_parameters_only(s: Scenario) -> None:
    module = s.module(lambda self, x: x * s.y)
    s.calls.append((s.grad(module(s.x).sum(), [s.y]), ()))


def second_order(s: Scenario) -> None:
    for hook in (s.record, lambda module, g, _: (g[0] ** 2,)):
        out = s.module(lambda self, x: x**3, hook)(s.x)
        (g,) = s.grad((out**2).sum(), s.x, create_graph=True)
        s.calls.append((s.grad(g.sum(), [s.x]), ()))


def without_gradients(s: Scenario) -> None:
    module = s.module(lambda self, x: x * s.y)
    with s.library.no_grad():
        assert not module(s.x).requires_grad
    s.module(lambda self, x: x + 1)(s.x.detach())


SCENARIOS = [
    several,
    one_requires_a_gradient,
    none_requires_a_gradient,
    named_tuple,
    replaced,
    nested,
    called_twice,
    same_input_twice,
    with_forward_hooks,
    around_the_output,
    of_parameters_only,
    second_order,
    without_gradients,
]


def outcome(scenario: Any, library: Any) -> list[list[np.ndarray]]:
    """Return all gradients that hooks see, and the leaves' gradients, with zeros for None."""
    s = Scenario(library)
    with warnings.catch_warnings():  # PyTorch warns where no input requires a gradient
        warnings.simplefilter("ignore")
        scenario(s)
    gradients = [list(part) for call in s.calls for part in call] + [[s.x.grad, s.y.grad]]
    return [[np.zeros(()) if x is None else x.detach().numpy() for x in part] for part in gradients]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_calls_and_gradients_are_those_of_pytorch(scenario, torch):
    got, expected = outcome(scenario, xgrad), outcome(scenario, torch)
    assert [len(part) for part in got] == [len(part) for part in expected]
    for part, reference in zip(got, expected, strict=True):
        for x, y in zip(part, reference, strict=True):
            np.testing.assert_allclose(x, y, 1e-12)


def test_gradients_are_none_without_requires_grad_and_zeros_where_nothing_depends_on_a_result():
    s = Scenario(xgrad)
    s.module(lambda self, a, b, n: (a * b, b + a, n))(s.x, s.y.detach(), 3)[0].sum().backward()
    ((grad_input, grad_output),) = s.calls
    assert [None if g is None else g.tolist() for g in grad_input] == [[0.5, -1.0], None, None]
    assert [None if g is None else g.tolist() for g in grad_output] == [
        [1.0, 1.0],
        [0.0, 0.0],
        None,
    ]


WRONG_COUNT = (
    "expected a hook to return None or a tuple of 1 gradients, one for each positional argument"
)


@pytest.mark.parametrize(
    ("layer", "call", "expected"),
    [
        ("Tanh", "register(3)", "TypeError: NAME: expected a function, got 3"),
        ("Tanh", "backward(3)", f"TypeError: NAME: {WRONG_COUNT}, got 3"),
        ("Tanh", "backward(())", f"TypeError: NAME: {WRONG_COUNT}, got ()"),
        (
            "Tanh",
            "backward((2.0,))",
            "TypeError: NAME, argument 0: expected a tensor for a gradient, got float: use …",
        ),
        (
            "Tanh",
            "backward((xp.ones(3),))",
            (
                "ValueError: NAME, argument 0: expected a gradient of shape (2,), float32 on cpu,"
                " got shape (3,), …"
            ),
        ),
        (
            "Linear",
            "backward((x,))",
            (
                "TypeError: NAME: expected None for argument 0, which has no gradient, got"
                " Tensor([1., 1.])"
            ),
        ),
    ],
)
def test_invalid_hooks_and_gradients_are_refused(layer, call, expected):
    module = nn.Linear(2, 1) if layer == "Linear" else nn.Tanh()
    x = xgrad.ones(2, requires_grad=layer == "Tanh")
    register = module.register_full_backward_hook

    def backward(new):
        register(lambda *args: new)
        module(x).sum().backward()

    name = f"{layer}.register_full_backward_hook"
    check_error(call, expected.replace("NAME", name), register=register, backward=backward, x=x)


@pytest.mark.parametrize("write", ["x += 1", "x[0] = y", "x[:1] *= 2"])
def test_call_that_writes_to_an_argument_is_refused_as_by_pytorch(write, torch):
    for library, module in ((xgrad, "Custom"), (torch, "Output")):
        s = Scenario(library)
        writing = s.module(lambda self, y, x: (exec(write, {"x": x, "y": y[0]}), x)[1])
        with pytest.raises(
            RuntimeError, match=f"^{module}.* (argument 1: write to a copy|modified inplace)"
        ):
            writing(s.y, s.x * 2)


def test_output_without_tensors_warns_at_the_call():
    module = Scenario(xgrad).module(lambda self, x: [x])
    with pytest.warns(
        UserWarning,
        match="^Custom: expected a tensor or a tuple of them for backward hooks, got list:",
    ) as w:
        nn.Sequential(module)(leaf([1.0]))
    assert w[0].filename == __file__


def triple(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
    return (3 * grad_input[0],)


def test_hooks_are_copied_with_the_module():
    layer, x = nn.Identity(), leaf([1.0])
    layer.register_full_backward_hook(triple)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert xgrad.autograd.grad(twin(x).sum(), x)[0].tolist() == [3.0]


def test_hooks_run_in_captured_and_recomputed_steps(capturing_device):
    net = nn.MLP([3, 4, 2]).to(capturing_device)
    scale = xgrad.ones((), device=capturing_device)
    x = xgrad.random.randn((5, 3), device=capturing_device)

    def step(x):
        net.zero_grad()
        net(x).sum().backward()
        return net[0].weight.grad

    captured, plain = xgrad.capture(step), host(step(x))
    net[2].register_full_backward_hook(lambda module, g, _: (scale * g[0],))
    for factor in (2.0, 2.0, 4.0):
        scale[...] = factor  # state of the step
        assert host(captured(x)).tobytes() == host(step(x)).tobytes() == (factor * plain).tobytes()
    assert captured.recordings == 1 and captured.refusal is None
    net.zero_grad()
    xgrad.autograd.checkpoint(net, x).sum().backward()
    assert host(net[0].weight.grad).tobytes() == (4.0 * plain).tobytes()
