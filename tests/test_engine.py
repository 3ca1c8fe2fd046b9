"""The backward pass: gradients, hooks, modes, memory and refusals.

Gradients are compared with values by hand, and retained ones with PyTorch.
"""

from __future__ import annotations

import gc
import inspect
import math
import weakref
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, function, leaf, run_threads
from xgrad import Tensor
from xgrad.autograd import backward, grad

# Gradients


def test_gradients_of_several_passes_add_up_until_cleared() -> None:
    x = leaf()
    y = (x * x).sum()
    for retain_graph, expected in ((True, [2, 4]), (False, [4, 8])):
        y.backward(retain_graph=retain_graph)
        assert x.grad.tolist() == expected
    x.grad = None
    assert x.grad is None
    (x * x).backward(Tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]


def test_backward_of_several_results_visits_a_shared_graph_once() -> None:
    x = leaf()
    y = x * x
    backward([y.sum(), (3 * y).sum()])
    assert x.grad.tolist() == [8, 16]


def test_gradients_of_broadcast_inputs_are_summed_and_keep_their_dtypes(device: str) -> None:
    a = leaf(np.ones((2, 1, 3), np.float32), device=device)
    b = leaf(np.ones((4, 1)), device=device)
    out = a * b
    assert out.dtype == xgrad.float64
    out.sum().backward()
    assert (a.grad.shape, a.grad.dtype, b.grad.shape, b.grad.dtype) == (
        (2, 1, 3),
        xgrad.float32,
        (4, 1),
        xgrad.float64,
    )


def test_grad_of_computed_tensors_leaves_the_grad_of_leaves_alone() -> None:
    x = leaf()
    y = x * 3
    gy, gx = grad((y * y).sum(), [y, x])
    assert (gy.tolist(), gx.tolist(), x.grad) == ([6, 12], [18, 36], None)


@pytest.mark.parametrize("several", [False, True])
def test_graph_behind_computed_inputs_of_grad_stays_as_in_pytorch(
    several: bool, torch: Any
) -> None:
    """A loss is split at a computed tensor, as in PyTorch: `grad` to it, `backward` from it."""
    gradients = []
    for library in (xgrad, torch):
        x = library.ones(3, requires_grad=True)
        y = (2 * x).exp()
        z = y.sqrt() if several else y
        inputs = (z, y) if several else (y,)
        with_respect_to = library.autograd.grad((z * y).sum(), inputs)
        y.backward(with_respect_to[-1])
        gradients.append(x.grad.tolist())
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-6)


def test_freed_graph_behind_a_computed_input_is_no_obstacle_but_one_between_is() -> None:
    x = leaf(1.0)
    y = x.exp()
    y.backward()  # which frees what made y
    (g,) = xgrad.autograd.grad(y * y, y)
    assert g.item() == pytest.approx(2 * math.e)
    with pytest.raises(RuntimeError, match="was freed by an earlier backward pass"):
        xgrad.autograd.grad(y * y, [y, x])


def test_grad_runs_only_the_rules_between_outputs_and_inputs() -> None:
    x, y = leaf(), leaf()
    failing = function("Failing", lambda xp, x: +x, lambda xp, g: 1 / 0)
    assert grad((failing(x) * y).sum(), y)[0].tolist() == [1, 2]


def test_grad_of_an_unused_input_is_none_if_allowed() -> None:
    x, unused = leaf(), leaf()
    gx, none = grad((x * x).sum(), [x, unused], allow_unused=True)
    assert (gx.tolist(), none) == ([2, 4], None)


def test_create_graph_gives_gradients_that_can_be_differentiated() -> None:
    x = leaf(2.0)
    y = x**3
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True)
    (third,) = grad(second, x)
    assert first.requires_grad and second.requires_grad and not third.requires_grad
    assert (first.item(), second.item(), third.item(), grad(y, x)[0].item()) == (12, 12, 6, 12)


def test_saved_result_of_several_is_the_users_tensor_at_second_order() -> None:
    rule = lambda xp, g, x, out: g[0] * out[0] + g[1] * xp.cos(x)  # noqa: E731
    x = leaf(1.0, dtype=xgrad.float64)
    exp, _ = function("ExpSin", lambda xp, x: (xp.exp(x), xp.sin(x)), rule)(x)
    (first,) = grad(exp, x, create_graph=True)
    (total,) = grad(first + exp, x, retain_graph=True)
    (through,) = grad(first, exp, retain_graph=True)
    assert (total.item(), through.item()) == (pytest.approx(2 * np.e), 1)
    for _ in range(4):
        (exp,) = grad(exp, x, create_graph=True)
        assert exp.item() == pytest.approx(np.e)


def test_unused_results_of_several_have_zero_gradients(device: str) -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]], device=device)
    first, _ = xgrad.unstack(x * x)
    (g,) = grad(first.sum(), x, create_graph=True)
    assert g.tolist() == [[2, 4], [0, 0]]
    assert grad(g.sum(), x)[0].tolist() == [[2, 2], [0, 0]]


def test_gradients_of_two_leaves_share_no_memory() -> None:
    a, b, g = leaf(), leaf(), xgrad.ones(2)
    (a + b).backward(g, create_graph=True)
    a.grad[0] = 100
    assert (b.grad.tolist(), g.tolist()) == ([1, 1], [1, 1])


def test_writes_to_keys_and_arrays_after_their_use_do_not_reach_the_gradient() -> None:
    x, i, factor = leaf([1.0, 2.0, 3.0]), np.array([0, 1]), np.full(2, 10, np.float32)
    y = x[i] * factor
    i[0], factor[0] = 2, 0
    y.sum().backward()
    assert x.grad.tolist() == [10, 10, 0]


def test_write_of_a_rule_to_its_gradient_is_refused_and_spoils_no_other_pass() -> None:
    def rule(xp: Any, g: Any, x: Any) -> Any:
        g *= 2
        return xp.broadcast_to(g, x.shape)

    with pytest.raises(ValueError, match="read-only"):
        function("Writes", lambda xp, x: xp.sum(x), rule)(leaf(np.ones(2))).backward()
    y = leaf(3.0)
    y.backward()
    assert y.grad.item() == 1


def test_option_may_have_the_name_of_an_engine_argument() -> None:
    x = leaf(2.0)
    scale = function("Scale", lambda xp, x, *, into=5.0: x * into, lambda xp, g, into: g * into)
    scale(x, into=3.0).backward()
    assert x.grad.item() == 3


# Modes


def test_modes_nest_decorate_and_end_with_an_exception() -> None:
    x = leaf()

    @xgrad.no_grad()
    def recorded() -> bool:
        with xgrad.enable_grad():
            assert (x * 2).requires_grad
        return (x * 2).requires_grad

    assert not recorded() and not xgrad.no_grad(lambda: (x * 2).requires_grad)()
    with pytest.raises(KeyError), xgrad.no_grad():
        raise KeyError
    assert xgrad.is_grad_enabled() and (x * 2).requires_grad


def test_modes_belong_to_their_thread() -> None:
    seen: list[bool] = []
    with xgrad.no_grad():
        run_threads(lambda: seen.append(xgrad.is_grad_enabled()))
    assert seen == [True]


def test_detach_and_requires_grad_end_and_start_recording() -> None:
    x = leaf()
    assert not x.detach().requires_grad and (x.detach() * 2 + x).requires_grad
    assert Tensor([1.0]).requires_grad_().is_leaf
    y = (x * x).sum()
    y.backward(retain_graph=True)
    x.requires_grad_(False)
    assert x.grad is not None and not (x * x).requires_grad
    x.requires_grad_(True)
    y.backward()
    assert x.grad.tolist() == [4, 8]


# Hooks, retained gradients and grad_fn


def test_hooks_see_and_replace_the_complete_gradient() -> None:
    x = leaf()
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    double = lambda g: 2 * g  # noqa: E731
    first, second = y.register_hook(double), y.register_hook(double)
    first.remove()
    first.remove()
    (y.sum() + (3 * y).sum()).backward(retain_graph=True)
    assert (seen, x.grad.tolist()) == ([[4, 4]], [16, 16])
    second.remove()
    x.grad = None
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_hooks_in_a_recorded_pass_are_differentiable() -> None:
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * x)
    (first,) = grad(y, x, create_graph=True)  # 2x * x
    assert (first.item(), grad(first, x)[0].item()) == (18, 12)


def test_grad_of_a_computed_tensor_warns_at_the_line_of_the_user() -> None:
    y = leaf([[1.0, 2.0]]) * 2
    with pytest.warns(
        UserWarning, match=r"expected a leaf, got a computed tensor.*call retain_grad\(\)"
    ) as caught:
        assert y.grad is None
    assert caught[0].filename == __file__
    assert leaf().grad is None and y.detach().grad is None
    inspect.getmembers(y)  # looks at each attribute, and does not warn


def test_a_tensor_whose_hook_was_removed_has_no_gradient() -> None:
    y = 3 * xgrad.ones(2, requires_grad=True)
    y.register_hook(lambda g: None).remove()
    with pytest.warns(UserWarning, match="keeps no gradient"):
        assert y.grad is None
    with pytest.raises(RuntimeError, match="expected a leaf"):
        y.grad = xgrad.ones(2)


def test_retain_grad_keeps_the_gradient_as_pytorch_does(device: str, torch: Any) -> None:
    def gradients(x: Any) -> list[Any]:
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: 10 * g)
        y.retain_grad()
        x.retain_grad()  # of a leaf, without effect
        z, kept = (y * y).sum(), []
        for keep in (True, True, False):
            z.backward(retain_graph=keep)
            kept.append([*y.grad.tolist(), *x.grad.tolist()])
            if len(kept) == 2:
                y.grad = None
        return kept

    assert gradients(leaf(device=device)) == gradients(torch.tensor([1.0, 2.0], requires_grad=True))


def test_retain_grad_of_one_result_of_several_keeps_its_gradient() -> None:
    values, _ = xgrad.linalg.eigh(leaf([[2.0, 0.0], [0.0, 3.0]]))
    values.retain_grad()
    (values * values).sum().backward()
    assert values.grad.tolist() == [4, 6]


def test_grad_fn_names_the_op_and_its_inputs_until_freed() -> None:
    x = leaf()
    y = (x * 2).sum()
    assert (x.grad_fn, y.grad_fn.name, y.grad_fn.inputs["x"].name) == (None, "sum", "multiply")
    assert repr((x * 2).grad_fn) == "<multiply (2,): x1 from leaf>"
    assert xgrad.unstack(x * 2)[1].grad_fn.name.endswith("[1]")
    y.backward()
    assert y.grad_fn and (repr(y.grad_fn), y.grad_fn.inputs) == ("<sum (): freed>", {})


# Memory


@pytest.fixture
def no_collector() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_graph_has_no_reference_cycle() -> None:
    x = leaf()
    y = ((x.exp() * x).tanh() @ x + xgrad.concat([x, x])[0]).sum() + xgrad.unstack(x)[0]
    y.retain_grad()
    buffer = xgrad.zeros(2)
    buffer[0] = (x * buffer).sum()
    y.backward(retain_graph=True)
    alive = [weakref.ref(t) for t in (x, y, y.grad, buffer)]
    del x, y, buffer
    assert [ref() for ref in alive] == [None] * 4


@pytest.mark.usefixtures("no_collector")
def test_arrays_are_freed_during_the_pass() -> None:
    class Array(np.ndarray):
        """NumPy's arrays take no weak references; this one does."""

    def rule(xp: Any, g: Any, x: Any) -> Any:
        alive.append(sum(ref() is not None for ref in refs))
        return g

    refs: list[weakref.ref[Any]] = []
    alive: list[int] = []
    y = leaf(np.ones(3))
    for _ in range(4):
        y = y * 1
        y._data = y._data.view(Array)
        refs.append(weakref.ref(y._data))
        y = function("Keep", lambda xp, x: x * 1, rule)(y)
    y.sum().backward()
    assert alive == [4, 3, 2, 1]


@pytest.mark.usefixtures("no_collector")
def test_node_saves_only_what_its_rules_ask_for() -> None:
    x, constant = leaf(np.ones(5)), Tensor(np.ones(5))
    middle = x + 1
    alive = weakref.ref(middle)
    out = middle + constant  # the rules of add need nothing
    del middle
    assert alive() is None
    assert out.grad_fn.saved == out.grad_fn.edges
    product = x * constant  # the rule for x needs the constant, that for the constant is not run
    values = [part for part in product.grad_fn.saved if isinstance(part, np.ndarray)]
    assert values == [constant._data]


def test_deep_graph_neither_recurses_nor_overflows() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(200_000):
        y = y + 1.0
    y.backward()
    assert x.grad.item() == 1
    for _ in range(200_000):
        y = y * 1.0
    assert "grad_fn" in repr(y)
    del y  # freed without a pass


def test_graphs_of_several_threads_do_not_disturb_each_other() -> None:
    x = leaf(2.0)
    results: dict[int, float] = {}

    def work(n: int) -> None:
        for _ in range(200):
            results[n] = grad(x**n, x)[0].item()

    run_threads(work, (2, 3, 4, 5))
    assert results == {2: 4, 3: 12, 4: 32, 5: 80}


def test_gradients_of_several_threads_all_reach_a_shared_leaf() -> None:
    x = leaf(np.zeros(50_000, np.float32))
    run_threads(lambda _: [x.sum().backward() for _ in range(50)], range(4))
    assert x.grad[0, ...].item() == 200


# Refusals


def hooked(hook: Any) -> Tensor:
    x = leaf()
    x.register_hook(hook)
    return x.sum()


def generator() -> Any:
    yield 1


NO_GRADIENT = "expected a tensor for a gradient, got"
REFUSED = [
    ("grad(x.sum(), [x, leaf()])", "RuntimeError: grad: the outputs do not depend on inputs [1]"),
    ("grad(x.sum(), [xp.ones(1)])", "RuntimeError: grad: inputs[0] needs no gradient"),
    ("xp.ones(()).backward()", "RuntimeError: backward: this tensor has no graph"),
    ("xp.no_grad(x.sum)().backward()", "RuntimeError: … no_grad"),
    (
        "(x * 2).backward()",
        "ValueError: … expected a scalar or a gradient, got a tensor of shape (2,)",
    ),
    (
        "x.backward(xp.ones(3))",
        "ValueError: … expected a gradient of shape (2,), float32 on cpu, got shape (3,)",
    ),
    ("x.backward(xp.ones(2, dtype='float64'))", "ValueError: … float64"),
    ("x.backward(np.ones(2))", f"TypeError: backward: {NO_GRADIENT} ndarray"),
    ("x.backward(1.0)", f"TypeError: backward: {NO_GRADIENT} float"),
    ("setattr(x, 'grad', np.ones(2))", f"TypeError: grad: {NO_GRADIENT} ndarray"),
    ("setattr(x, 'grad', 1.0)", f"TypeError: grad: {NO_GRADIENT} float"),
    (
        "setattr(x, 'grad', xp.ones(3))",
        "ValueError: grad: … gradient of shape (2,), float32 on cpu, got shape (3,)",
    ),
    ("setattr(x.detach(), 'grad', x)", "RuntimeError: grad: expected a leaf"),
    (
        "hooked(lambda g: g.sum()).backward()",
        "ValueError: register_hook: … shape (2,), float32 on cpu, got shape ()",
    ),
    (
        "hooked(lambda g: g.astype('float64')).backward()",
        "ValueError: register_hook: … got … float64",
    ),
    ("hooked(lambda g: 1.0).backward()", f"TypeError: register_hook: {NO_GRADIENT} float"),
    (
        "x.detach().register_hook(print)",
        "RuntimeError: register_hook: this tensor needs no gradient",
    ),
    (
        "x.detach().retain_grad()",
        "RuntimeError: retain_grad: this tensor needs no gradient: call requires_grad_",
    ),
    ("(x * 2).requires_grad_(False)", "RuntimeError: … expected a leaf"),
    (
        "xp.no_grad()(generator)",
        "TypeError: no_grad: expected a plain function to decorate, got generator",
    ),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_wrong_call_names_what_was_expected(call: str, error: str) -> None:
    check_error(
        call, error, x=leaf(), leaf=leaf, hooked=hooked, generator=generator, grad=grad, np=np
    )


def test_second_pass_over_a_freed_graph_is_refused() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(
        RuntimeError, match=r"'sum' was freed by an earlier backward pass: give retain_graph=True"
    ):
        y.backward()
    h = x + 1
    h.sum().backward()
    with pytest.raises(RuntimeError, match=r"'add' was freed"):
        (h * 2).sum().backward()
    for outputs in ((h + x).sum(), h.sum()):
        with pytest.raises(RuntimeError, match="was freed by an earlier backward pass"):
            grad(outputs, x, allow_unused=True)


def product(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a * b * c


@pytest.mark.parametrize(
    ("f", "change", "message"),
    [
        (
            product,
            lambda a, b, c: setattr(a, "data", a.data * 2),
            r"multiply needs .* its 'x1' \(a leaf",
        ),
        (
            product,
            lambda a, b, c: a.data.__setitem__(0, 5.0),
            r"multiply needs .* its 'x1' \(a leaf",
        ),
        (
            product,
            lambda a, b, c: setattr(b, "data", b.data + 1),
            r"multiply needs .* its 'x2' \(from exp",
        ),
        (
            product,
            lambda a, b, c: b.data.__setitem__(slice(None), 0.0),
            r"multiply needs .* its 'x2' \(from exp",
        ),
        (
            product,
            lambda a, b, c: setattr(c, "data", c.data + 1),
            r"multiply needs .* its 'x2' \(a constant",
        ),
        (
            lambda a, b, c: b + 1,
            lambda a, b, c: setattr(b, "data", b.data * 2),
            "exp needs the value that its 'result'",
        ),
    ],
)
def test_pass_that_needs_a_changed_value_is_refused(f: Any, change: Any, message: str) -> None:
    a, c = leaf(), Tensor([3.0, 4.0])
    b = a.exp()
    out = f(a, b, c).sum()
    change(a, b, c)
    with pytest.raises(RuntimeError, match=message):
        out.backward()


def test_changes_of_values_that_no_rule_needs_are_allowed() -> None:
    x = leaf()
    out = (x + 1).sum()
    x.data += 1
    out.backward()
    assert x.grad.tolist() == [1, 1]
    for _ in range(3):
        (x * x).sum().backward()
        x.data -= 0.1 * x.grad
    assert x.requires_grad and x.is_leaf
