"""The transforms: against closed forms, against JAX, nested, side effects, and refusals."""

from __future__ import annotations

import gc
import math
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest

import xgrad
from helpers import host, uniform
from xgrad import Tensor, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from xgrad.core.graph import Node
from xgrad.support.trees import leaves


def on(device: str, x: Any) -> Tensor:
    return xgrad.asarray(x, dtype=xgrad.float64, device=device)


def assert_close(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    for a, b in zip([x for _, x in leaves(got)], [x for _, x in leaves(wanted)], strict=True):
        assert isinstance(a, Tensor) and not a.requires_grad
        np.testing.assert_allclose(host(a), host(b) if isinstance(b, Tensor) else b, rtol=rtol, atol=1e-11)


# Closed forms, on every device


def test_nested_gradients_of_a_scalar(device: str) -> None:
    """The n-th derivative of sin(2x) is 2**n sin(2x + n pi / 2)."""
    x, f = on(device, 1.3), lambda x: xgrad.sin(2 * x)
    for n in range(1, 5):
        f = grad(f)
        assert_close(f(x), 2**n * math.sin(2.6 + n * math.pi / 2))
    assert f(x).device is x.device and f(x).dtype == xgrad.float64


def test_quadratic_form(device: str) -> None:
    a, x, v = (on(device, uniform(*shape, seed=i)) for i, shape in enumerate([(4, 4), (4,), (4,)]))
    both = host(a + a.T)

    def f(x: Tensor) -> Tensor:
        return x @ a @ x

    assert_close(grad(f)(x), both @ host(x))
    assert_close(hessian(f)(x), both)
    assert_close(hvp(f, (x,), (v,)), (both @ host(v),))
    assert_close(jvp(f, (x,), (v,)), (f(x), host(v) @ both @ host(x)))
    assert_close(jvp(grad(f), (x,), (v,))[1], both @ host(v))
    assert_close(jacobian(lambda x: a @ x)(x), a)


def test_vjp_is_the_transpose_of_jvp(device: str) -> None:
    x, y = on(device, uniform(3, 2)), on(device, uniform(2, seed=1))
    u, v = on(device, uniform(3, seed=2)), (on(device, uniform(3, 2, seed=3)), on(device, uniform(2, seed=4)))

    def f(x: Tensor, y: Tensor) -> Tensor:
        return xgrad.exp(xgrad.divide(x, y)).sum(axis=1) * y[0]

    result, pullback = vjp(f, x, y)
    also, tangent = jvp(f, (x, y), v)
    assert_close(result, f(x, y))
    assert_close(also, f(x, y))
    pulled = pullback(u)
    assert_close((u * tangent).sum(), (pulled[0] * v[0]).sum() + (pulled[1] * v[1]).sum())
    assert_close(pullback(2 * u)[0], 2 * pulled[0])  # again


# JAX


def mlp(xp: Any, p: Any, x: Any) -> Any:
    for layer in p["layers"]:
        x = xp.tanh(x @ layer["weight"] + layer["bias"])
    return xp.mean((x * p["scale"]) ** 2)


def piecewise(xp: Any, p: Any, x: Any) -> Any:
    a, b = p
    y = xp.where(a > 1, a**3, xp.divide(1, a)) ** b
    return xp.sum(y[1:, ::2] * xp.log(xp.sum(y, axis=0, keepdims=True))[:, ::2]) + xp.max(y) / xp.prod(b)


def assigned(xp: Any, p: Any, x: Any) -> Any:
    a, b = p
    y = a * a
    if xp is xgrad:
        y[1] = b**3
        y[:, 0] *= y[:, 1]
    else:
        y = y.at[1].set(b**3)
        y = y.at[:, 0].set(y[:, 0] * y[:, 1])
    return xp.sum(xp.exp(-y) * y)


X = uniform(6, 3, seed=9, low=-1)
LAYERS = [  # with the keys in the order that JAX gives them
    {"bias": uniform(5, seed=2), "weight": uniform(3, 5, seed=1, low=-1)},
    {"bias": uniform(2, seed=4), "weight": uniform(5, 2, seed=3, low=-1)},
]
LOSSES = [
    (mlp, {"layers": LAYERS, "scale": 0.7}),
    (piecewise, (uniform(3, 4), uniform(4, seed=1))),
    (assigned, (uniform(3, 4), uniform(4, seed=1))),
]


def by_jax(jax: Any, transform: Callable[[Any, Any], Any], loss: Any, p: Any) -> Any:
    """Return what a transform of JAX makes of a loss, in float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jnp = jax.numpy
        jax.config.update("jax_enable_x64", True)
        p = jax.tree_util.tree_map(jnp.asarray, p)
        return jax.jit(transform(jax, lambda p: loss(jnp, p, jnp.asarray(X))))(p)


def direction(p: Any) -> Any:
    """Return a direction for a tree of arrays, tensors or tracers."""
    if isinstance(p, dict):
        return {k: direction(v) for k, v in p.items()}
    if isinstance(p, (list, tuple)):
        return type(p)([direction(v) for v in p])
    return np.cos(np.arange(math.prod(np.shape(p)))).reshape(np.shape(p))


def slope(t: Any, f: Any) -> Any:
    """Return the derivative of a function in the direction, as a function."""
    return lambda p: t.jvp(f, (p,), (direction(p),))[1]


ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda t, f: t.grad(f),
    "value and grad": lambda t, f: t.value_and_grad(f),
    "hessian": lambda t, f: t.hessian(f),
    "jacobian": lambda t, f: t.jacobian(lambda p: {"both": (f(p), t.grad(f)(p)), "square": f(p) ** 2}),
    "jvp": lambda t, f: lambda p: t.jvp(f, (p,), (direction(p),)),
    "jvp of grad": lambda t, f: slope(t, t.grad(f)),
    "grad of jvp": lambda t, f: t.grad(slope(t, f)),
    "third derivatives": lambda t, f: t.grad(slope(t, slope(t, f))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("loss", "p"), LOSSES)
def test_agreement_with_jax(loss: Any, p: Any, order: str, jax: Any) -> None:
    wanted = by_jax(jax, ORDERS[order], loss, p)
    p = {**p, "scale": on("cpu", p["scale"])} if isinstance(p, dict) else p
    assert_close(ORDERS[order](xgrad, lambda p: loss(xgrad, p, on("cpu", X)))(p), wanted)


def test_rows_of_a_hessian_cost_the_same() -> None:
    """Each backward pass runs the same rules once, whatever the number of rows."""
    calls = 0

    class Counted(xgrad.Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return xp.tanh(x)

        @staticmethod
        def backward(xp: Any, g: Any, out: Any) -> Any:
            nonlocal calls
            calls += 1
            return g * (1 - out * out)

    counted, counts = Counted(), []
    for width in (5, 10, 20):
        calls = 0
        p = {"a": uniform(3, width), "b": uniform(width, 4)}
        hessian(lambda p: (counted(counted(on("cpu", X) @ p["a"]) @ p["b"]) ** 2).sum())(p)
        counts.append((7 * width, calls))
    (rows, few), *more = counts
    assert all(n - few == 2 * (r - rows) for r, n in more)


# Containers, argnums, aux


class State(NamedTuple):
    position: Any
    speed: Any


def energy(state: State, mass: Any = 1.0, power: int = 2) -> Any:
    return (mass * state.speed**power).sum() / 2 + state.position["height"]


def test_containers_and_argnums() -> None:
    state = State({"height": 3.0, "unused": xgrad.ones(2), "none": None}, np.array([1.0, 2.0]))
    g = grad(energy)(state, 2.0)
    assert type(g) is State and g.position["none"] is None
    assert g.speed.tolist() == [2, 4] and g.speed.dtype == np.float64
    assert g.position["height"].item() == 1 and g.position["unused"].tolist() == [0, 0]
    assert grad(energy, 1)(state, 2.0).item() == 2.5
    assert grad(energy, -1)(state, 2.0).item() == 2.5
    gs = grad(energy, (1, 0))(state, 2.0, power=3)
    assert isinstance(gs, tuple) and gs[0].item() == 4.5 and gs[1].speed.tolist() == [3, 12]
    assert isinstance(grad(energy, (1,))(state, 2.0), tuple)
    assert grad(energy, np.int64(1))(state, 2.0).item() == 2.5


def test_aux_is_returned_without_a_graph() -> None:
    def f(x: Tensor) -> Any:
        return (x * x).sum(), {"twice": 2 * x, "name": "f", "n": 3}

    x = xgrad.asarray([1.0, 2.0])
    g, aux = grad(f, has_aux=True)(x)
    assert g.tolist() == [2, 4]
    assert aux["twice"].tolist() == [2, 4] and not aux["twice"].requires_grad and aux["name"] == "f" and aux["n"] == 3
    (value, aux), g = value_and_grad(f, has_aux=True)(x)
    assert (value.item(), g.tolist(), aux["n"]) == (5, [2, 4], 3)
    assert vjp(f, x, has_aux=True)[2]["n"] == jvp(f, (x,), (x,), has_aux=True)[2]["n"] == 3
    assert jacobian(f, has_aux=True)(x)[1]["n"] == hessian(f, has_aux=True)(x)[1]["n"] == 3
    assert hvp(f, x, x, has_aux=True)[0].tolist() == [2, 4]


def test_primals_of_hvp_keep_their_container() -> None:
    assert hvp(lambda x: x**3, 2.0, 1.0).item() == 12
    assert [type(hvp(lambda x: x**3, kind([2.0]), kind([1.0]))) for kind in (list, tuple)] == [list, tuple]
    assert hvp(lambda p: p["x"] ** 3, {"x": 2.0}, {"x": 1.0})["x"].item() == 12


def test_none_stands_for_zeros() -> None:
    def f(p: dict[str, Tensor]) -> Any:
        return {"a": p["x"] ** 2, "b": p["x"] * p["y"]}

    p = {"x": 3.0, "y": 5.0}
    assert jvp(f, (p,), ({"x": None, "y": 1.0},))[1]["b"].item() == 3
    _, pullback = vjp(f, p)
    assert pullback({"a": None, "b": 1.0})[0]["x"].item() == 5
    assert pullback(None)[0]["x"].item() == 0
    assert hvp(lambda p: f(p)["b"], (p,), ({"x": 1.0, "y": None},))[0]["y"].item() == 1


def test_integer_results_have_no_derivative() -> None:
    def f(x: Tensor) -> Any:
        return x**2, xgrad.argmax(x)

    x = xgrad.asarray([1.0, 3.0])
    (_, index), tangent = jvp(f, (x,), (x,))
    assert index.item() == 1 and tangent[0].tolist() == [2, 18] and tangent[1].item() == 0
    pullback = vjp(f, x)[1]
    assert pullback((x, None))[0].tolist() == [2, 18]
    with pytest.raises(TypeError, match=r"vjp: cotangent\[1\]: expected None for int64, which has no derivative"):
        pullback((x, 1))


def test_constant_results_give_zeros() -> None:
    x, c = xgrad.asarray([1.0, 2.0]), xgrad.asarray(3.0)
    assert grad(lambda x: c)(x).tolist() == [0, 0]
    assert grad(lambda x: x.detach().sum())(x).tolist() == [0, 0]
    assert jvp(lambda x: c, (x,), (x,))[1].item() == 0
    assert hvp(lambda x: x.sum(), x, x).tolist() == [0, 0]
    assert jacobian(lambda x: c)(x).tolist() == [0, 0]
    assert hessian(lambda x: x.sum())(x).tolist() == [[0, 0], [0, 0]]
    assert vjp(lambda x: c, x)[1](1.0)[0].tolist() == [0, 0]


def test_empty_arguments_and_results() -> None:
    x = xgrad.zeros((0, 3))
    assert jacobian(lambda x: 2 * x)(x).shape == (0, 3, 0, 3)
    assert hessian(lambda x: (x * x).sum())(x).shape == (0, 3, 0, 3)
    assert jacobian(lambda x: xgrad.zeros((2, 0)) * x)(2.0).shape == (2, 0)
    assert grad(lambda p: xgrad.asarray(1.0))({}) == {}


# Nesting, and what is outside


def test_nested_transform_differentiates_its_own_argument_alone() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(2.0).item() == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(x))(3.0).item() == 6
    assert grad(lambda x: jvp(lambda y: x * y, (x,), (x,))[1])(3.0).item() == 6
    assert jvp(lambda x: grad(lambda y: x * y * y)(x), (3.0,), (1.0,))[1].item() == 12
    x = Tensor(3.0, requires_grad=True)
    inner = grad(lambda z: z * x)(x)  # by z alone
    assert inner.item() == 3
    inner.backward()
    assert x.grad.item() == 1


def test_loss_of_second_derivatives_has_a_gradient() -> None:
    def penalty(p: Tensor) -> Tensor:
        return (hessian(lambda x: (p * x**3).sum())(xgrad.asarray([1.0, 2.0])) ** 2).sum()

    # 36 p0^2 + 144 p1^2
    p = xgrad.asarray([2.0, 3.0])
    assert penalty(p).item() == 36 * 4 + 144 * 9
    assert grad(penalty)(p).tolist() == [144, 864]
    leaf = Tensor([2.0, 3.0], requires_grad=True)
    penalty(leaf).backward()
    assert leaf.grad.tolist() == [144, 864]
    assert grad(lambda p: hvp(lambda x: (p * x**3).sum(), xgrad.ones(2), p).sum())(p).tolist() == [24, 36]


def test_pullback_is_differentiable() -> None:
    out, pullback = vjp(lambda x: x**3, 2.0)
    assert not out.requires_grad
    assert jvp(lambda u: pullback(u)[0], (1.0,), (5.0,))[1].item() == 60
    assert grad(lambda u: pullback(u * u)[0])(3.0).item() == 72
    weight = Tensor(3.0, requires_grad=True)
    pullback(weight * 2)[0].backward()
    assert weight.grad.item() == 24


def test_gradient_reaches_tensors_of_an_outer_graph() -> None:
    w, x = Tensor(3.0, requires_grad=True), Tensor(2.0, requires_grad=True)
    value, g = value_and_grad(lambda x: w * x * x)(x * 1)
    assert (value.item(), g.item()) == (12, 12)
    (value + g).backward()
    assert w.grad.item() == 4 + 4  # x^2 + 2x
    assert x.grad.item() == 12 + 6  # 2wx + 2w
    value, g = value_and_grad(lambda x: x * x)(2.0)
    assert not value.requires_grad and not g.requires_grad


def test_results_that_depend_on_an_outer_graph_alone_require_a_gradient() -> None:
    w = Tensor(3.0, requires_grad=True)
    g = grad(lambda p: p["a"] * w + p["b"] ** 2)({"a": 1.0, "b": 2.0})
    assert g["a"].requires_grad and not g["b"].requires_grad
    a, b = vjp(lambda x: (x * w, x * 2), 1.0)[0]
    assert a.requires_grad and not b.requires_grad


def test_aux_of_the_result_reaches_an_outer_graph() -> None:
    w = Tensor(2.0, requires_grad=True)

    def f(x: Tensor, w: Tensor) -> Any:
        y = x * x
        return y, {"scaled": y * w}

    aux = grad(lambda x: f(x, w), has_aux=True)(3.0)[1]
    aux["scaled"].backward()
    assert w.grad.item() == 9
    assert grad(lambda w: grad(lambda x: f(x, w), has_aux=True)(3.0)[1]["scaled"])(2.0).item() == 9


def test_no_grad_inside_and_outside_of_a_transform() -> None:
    w = Tensor(3.0, requires_grad=True)
    with xgrad.no_grad():
        value, g = value_and_grad(lambda x: w * x * x)(Tensor(2.0, requires_grad=True))
        assert g.item() == 12 and not g.requires_grad and not value.requires_grad
        assert hessian(lambda x: w * x * x)(2.0).item() == 6
        assert not xgrad.is_grad_enabled()
        out, pullback = vjp(lambda x: w * x, 2.0)
        assert not out.requires_grad and not pullback(w)[0].requires_grad
    u = Tensor(5.0, requires_grad=True)
    pullback(u)[0].backward()  # linear in u, which has a graph
    assert u.grad.item() == 3
    out, pullback = vjp(lambda x: w * x, 2.0)
    with xgrad.no_grad():
        assert out.requires_grad and not pullback(1.0)[0].requires_grad

    def f(x: Tensor) -> Tensor:
        with xgrad.no_grad():
            constant = x * x
        return x * constant

    assert grad(f)(3.0).item() == 9


def test_leaves_keep_their_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.grad = xgrad.ones(2)
    grad(lambda y: (x * y).sum())(x)
    jvp(lambda y: x * y, (x,), (x,))
    hessian(lambda y: (x * y).sum())(x)
    vjp(lambda y: x * y, x)[1](x)
    assert x.grad.tolist() == [1, 1] and x.is_leaf


def test_assignment_to_an_argument_is_differentiated(device: str) -> None:
    def f(x: Tensor) -> Tensor:
        x[0] = x[1] ** 2
        x *= 3
        return x.sum()

    x = on(device, [1.0, 2.0])
    assert grad(f)(x).tolist() == [0, 15]
    assert hessian(f)(x).tolist() == [[0, 0], [0, 6]]
    assert x.tolist() == [1, 2]
    values = np.array([1.0, 2.0])
    _, pullback = vjp(lambda x: x * x, values)
    values[:] = 0
    assert pullback(np.ones(2))[0].tolist() == [2, 4]


def test_backward_within_a_transform() -> None:
    def f(x: Tensor) -> Tensor:
        weight = Tensor(2.0, requires_grad=True)
        (weight**2 * x).backward()
        return weight.grad * x  # 2wx, which is a number here, times x

    assert grad(f)(3.0).item() == 12
    assert grad(lambda x, y: f(x) * f(y), (0, 1))(3.0, 1.0)[1].item() == 36 * 4
    assert grad(lambda x: xgrad.autograd.grad(x**3, x, create_graph=True)[0])(3.0).item() == 18

    def freed(x: Tensor) -> Tensor:
        y = x * x
        y.backward()
        return y

    with pytest.raises(RuntimeError, match=r"graph behind 'multiply' was freed .* retain_graph=True"):
        grad(freed)(3.0)


def test_exception_restores_the_grad_mode() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("key")

    with xgrad.no_grad():
        for transform in (grad(fails), jacobian(fails), grad(grad(fails)), lambda x: vjp(fails, x)):
            with pytest.raises(KeyError, match="key"):
                transform(1.0)
            assert not xgrad.is_grad_enabled()


def test_transforms_in_threads_are_independent() -> None:
    gate = threading.Barrier(4)

    def work(i: int) -> float:
        def f(x: Tensor) -> Tensor:
            gate.wait(10)
            return grad(lambda y: x * y**3)(x) * i

        return grad(f)(2.0).item()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [36 * i for i in range(4)]


def test_outer_history_is_not_traversed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner gradient at each step of a long loop, itself differentiated, looks at its own graph alone."""
    looked, edges = 0, Node.edges.fget

    def counted(node: Node) -> Any:
        nonlocal looked
        looked += 1
        return edges(node)

    monkeypatch.setattr(Node, "edges", property(counted))

    def descend(x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x - 0.1 * grad(lambda y: y * y / 2)(x)
        return x

    counts = []
    for n in (25, 50, 100):
        looked = 0
        assert grad(lambda x, n=n: descend(x, n))(on("cpu", 1.0)).item() == pytest.approx(0.9**n)
        counts.append(looked)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def test_memory_is_freed_with_the_pullback() -> None:
    seen: list[Any] = []

    class Watched(xgrad.Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            out = x * 2
            seen.append(weakref.ref(out))
            return out

        @staticmethod
        def backward(xp: Any, g: Any, out: Any) -> Any:
            return g * 2 + 0 * out

    watched = Watched()

    def f(x: Tensor) -> Tensor:
        return (watched(x) ** 2).sum()

    gc.collect()
    gc.disable()
    try:
        x = xgrad.ones(3)
        result, pullback = vjp(f, x)
        pullback(1.0)
        assert seen[0]() is not None
        value, gradient = value_and_grad(f)(x)
        second = hessian(f)(x)
        assert [ref() is None for ref in seen] == [False, True, True]
        del pullback
        assert seen[0]() is None
    finally:
        gc.enable()
    assert result.item() == value.item() and gradient.tolist() == [8, 8, 8] and second[0].tolist() == [8, 0, 0]


# Complex numbers: L = |z|^2 has the gradient 2z, and z^2 the derivative 2z


def test_complex_arguments_and_results() -> None:
    z = xgrad.asarray([1 + 2j, -0.5j], dtype=xgrad.complex128)

    def power(z: Tensor) -> Tensor:
        return xgrad.real(z * xgrad.conj(z)).sum()

    assert_close(grad(power)(z), 2 * z)
    assert_close(hvp(power, z, 1j * z), 2j * z)
    assert_close(jacobian(lambda z: xgrad.real(z * z))(z), xgrad.diag(2 * xgrad.conj(z)))
    assert_close(jvp(lambda z: z * z, (z,), (1j * z,))[1], 2j * z * z)
    assert_close(vjp(lambda z: z * z, z)[1](z)[0], 2 * xgrad.conj(z) * z)
    assert_close(jvp(lambda x: x * 1j, (2.0,), (3.0,))[1], 3j)


# Refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: grad(lambda x: x)(3), TypeError, "grad: expected a floating dtype for argument 0, .* got int64: give"),
        (lambda: grad(lambda x, y: x, 1)(3.0, True), TypeError, "for argument 1, .* got bool"),
        (lambda: grad(lambda p: p)({"a": [xgrad.asarray([1])]}), TypeError, r"argument 0\['a'\]\[0\], .* int64"),
        (lambda: jvp(lambda x: x, (1,), (1,)), TypeError, "jvp: expected a floating dtype for argument 0"),
        (lambda: grad(lambda x: x)("a"), TypeError, "grad: expected a tensor, an array or a number for argument 0, got str"),
        (lambda: grad(lambda x: x)(xgrad.nn.Linear(2, 1)), TypeError, "got Linear: .* and nn.utils.functional_call"),
        (lambda: grad(lambda x: 3.0)(1.0), TypeError, "grad: expected a tensor of the function, got float: a number has"),
        (lambda: grad(lambda x: x.item())(1.0), TypeError, "got float"),
        (lambda: grad(lambda x: None)(1.0), TypeError, "grad: expected a tensor of the function, got NoneType"),
        (lambda: grad(lambda x: (x, x))(1.0), TypeError, "got tuple: .* jacobian or vjp.* has_aux=True"),
        (lambda: grad(lambda x: x)(np.ones(2)), ValueError, r"grad: expected a scalar of the function, got shape \(2,\)"),
        (lambda: grad(lambda x: xgrad.argmax(x))(np.ones(2)), TypeError, "real floating result .* got int64: cast it"),
        (lambda: value_and_grad(lambda x: x)(np.ones(2)), ValueError, "value_and_grad: expected a scalar"),
        (lambda: hvp(lambda x: x, np.ones(2), np.ones(2)), ValueError, "hvp: expected a scalar"),
        (lambda: hessian(lambda x: {"a": "no"})(1.0), TypeError, r"hessian: expected a tensor of the function at \['a'\], got str"),
        (lambda: jacobian(lambda x: xgrad.argmax(x))(np.ones(2)), TypeError, "jacobian: expected a real floating result"),
        (lambda: grad(lambda z: z.sum())(np.array([1j])), TypeError, "grad: expected a real floating result of the function, got complex128"),
        (lambda: jacobian(lambda z: z * z)(np.array([1j])), TypeError, "jacobian: expected a real floating result.*complex128: take real and imag"),
        (lambda: grad(lambda x: x, 1)(1.0), ValueError, "grad: expected argnums among the 1 positional arguments, .* got 1"),
        (lambda: grad(lambda x: x, (0, -1))(1.0), ValueError, r"each once, got \(0, -1\)"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), TypeError, r"grad: expected \(result, aux\) of a function with"),
        (lambda: jvp(lambda x: x, (1.0,), (1.0, 2.0)), TypeError, "jvp: tangent: expected a tuple of 1, got a tuple of 2"),
        (lambda: jvp(lambda x: x, (np.ones(2),), (1.0,)), ValueError, r"jvp: tangent\[0\]: expected shape \(2,\) on cpu, got \(\)"),
        (lambda: jvp(lambda x: x, (1.0,), (on("cpu", 1.0),)), TypeError, r"jvp: tangent\[0\]: expected float32, got float64"),
        (lambda: vjp(lambda x: x, 1.0)[1](1j), TypeError, "vjp: cotangent: expected float32, got complex64"),
        (lambda: vjp(lambda x: {"a": x}, 1.0)[1](1.0), TypeError, r"vjp: cotangent: expected a dict with the keys \['a'\]"),
        (lambda: grad(lambda x: x, "0")(1.0), TypeError, "grad: expected argnums of an int or a sequence of them, got '0'"),
        (lambda: grad(lambda x: x, 0.0)(1.0), TypeError, "grad: expected argnums of an int or a sequence of them, got 0.0"),
        (lambda: xgrad.nn.utils.functional_call(xgrad.exp, {}), TypeError, "functional_call: expected a module, got function"),
        (lambda: vjp(lambda x: {"a": x}, 1.0)[1]({"a": [1.0]}), TypeError, r"vjp: cotangent: expected one Tensor at \['a'\], got a list"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# Names


def test_transformed_functions_keep_their_name() -> None:
    def loss(x: Tensor) -> Tensor:
        """Return a loss."""
        return x

    assert grad(loss).__name__ == "loss" and grad(loss).__doc__ == "Return a loss."

    @grad
    def slope(x: Tensor) -> Tensor:
        return x**2

    assert slope(3.0).item() == 6
    assert grad(xgrad.nn.MSELoss())(xgrad.ones(2), xgrad.zeros(2)).tolist() == [1, 1]
