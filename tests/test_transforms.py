"""The transforms: against closed forms, against JAX, nested, and what they leave alone and refuse."""

from __future__ import annotations

import gc
import math
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xgrad
from xgrad import Tensor, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from xgrad.core.graph import Node
from xgrad.support.trees import leaves


def array(*shape: int, seed: int = 0, low: float = 0.5, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape)


def on(device: str, x: Any) -> Tensor:
    return xgrad.asarray(x, dtype=xgrad.float64, device=device)


def assert_close(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    ours, theirs = [x for _, x in leaves(got)], [x for _, x in leaves(wanted)]
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        assert isinstance(a, Tensor) and not a.requires_grad
        b = b.cpu().numpy() if isinstance(b, Tensor) else np.asarray(b)
        np.testing.assert_allclose(a.cpu().numpy(), b, rtol=rtol, atol=1e-11)


# Closed forms, on every device


def test_a_scalar_to_the_third_order(device: str) -> None:
    x = on(device, 1.3)

    def f(x: Tensor) -> Tensor:
        return xgrad.sin(x) * x**3

    first, second, third = grad(f), grad(grad(f)), grad(grad(grad(f)))
    s, c = math.sin(1.3), math.cos(1.3)
    assert_close(first(x), c * 1.3**3 + 3 * s * 1.3**2)
    assert_close(second(x), -s * 1.3**3 + 6 * c * 1.3**2 + 6 * s * 1.3)
    assert_close(third(x), -c * 1.3**3 - 9 * s * 1.3**2 + 18 * c * 1.3 + 6 * s)
    assert first(x).device is x.device and third(x).dtype == xgrad.float64


def test_quadratic_form(device: str) -> None:
    a, x, v = (on(device, array(*shape, seed=i)) for i, shape in enumerate([(4, 4), (4,), (4,)]))
    both = (a + a.T).cpu().numpy()

    def f(x: Tensor) -> Tensor:
        return x @ a @ x

    assert_close(grad(f)(x), both @ x.cpu().numpy())
    assert_close(hessian(f)(x), both)
    assert_close(hvp(f, (x,), (v,)), (both @ v.cpu().numpy(),))
    assert_close(jvp(f, (x,), (v,)), (f(x), v.cpu().numpy() @ both @ x.cpu().numpy()))
    assert_close(jvp(grad(f), (x,), (v,))[1], both @ v.cpu().numpy())
    assert_close(jacobian(lambda x: a @ x)(x), a)


def test_vjp_is_the_transpose_of_jvp(device: str) -> None:
    x, y = on(device, array(3, 2)), on(device, array(2, seed=1))
    u, v = on(device, array(3, seed=2)), (on(device, array(3, 2, seed=3)), on(device, array(2, seed=4)))

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


def pieces(xp: Any, p: Any, x: Any) -> Any:
    a, b = p
    y = xp.where(a > 1, a**3, xp.divide(1, a)) ** b
    return xp.sum(y[1:, ::2] * xp.log(xp.sum(y, axis=0, keepdims=True))[:, ::2]) + xp.max(y) / xp.prod(b)


def written(xp: Any, p: Any, x: Any) -> Any:
    a, b = p
    y = a * a
    if xp is xgrad:
        y[1] = b**3
        y[:, 0] *= y[:, 1]
    else:
        y = y.at[1].set(b**3)
        y = y.at[:, 0].set(y[:, 0] * y[:, 1])
    return xp.sum(xp.exp(-y) * y)


def parameters() -> Any:
    layers = [  # with the keys in the order that JAX gives them
        {"bias": array(5, seed=2), "weight": array(3, 5, seed=1, low=-1)},
        {"bias": array(2, seed=4), "weight": array(5, 2, seed=3, low=-1)},
    ]
    return {"layers": layers, "scale": 0.7}


JAX_CASES = [
    pytest.param(mlp, parameters(), id="mlp"),
    pytest.param(pieces, (array(3, 4), array(4, seed=1)), id="pieces"),
    pytest.param(written, (array(3, 4), array(4, seed=1)), id="assignment"),
]


def by_jax(jax: Any, transform: Callable[[Any, Any], Any], loss: Any, p: Any) -> Any:
    """Return what a transform of JAX makes of a loss, in float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jnp = jax.numpy
        jax.config.update("jax_enable_x64", True)
        p = jax.tree_util.tree_map(jnp.asarray, p)
        return jax.jit(transform(jax, lambda p: loss(jnp, p, jnp.asarray(X))))(p)


X = array(6, 3, seed=9, low=-1)


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
    "jvp": lambda t, f: lambda p: t.jvp(f, (p,), (direction(p),)),
    "jvp of grad": lambda t, f: slope(t, t.grad(f)),
    "grad of jvp": lambda t, f: t.grad(slope(t, f)),
    "third derivatives": lambda t, f: t.grad(slope(t, slope(t, f))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("loss", "p"), JAX_CASES)
def test_agreement_with_jax(loss: Any, p: Any, order: str, jax: Any) -> None:
    wanted = by_jax(jax, ORDERS[order], loss, p)
    p = {**p, "scale": on("cpu", p["scale"])} if isinstance(p, dict) else p
    assert_close(ORDERS[order](xgrad, lambda p: loss(xgrad, p, on("cpu", X)))(p), wanted)


def test_hvp_and_jacobian_agree_with_jax(jax: Any) -> None:
    p = (array(3, 4), array(4, seed=1))
    product = by_jax(jax, lambda t, f: lambda p: t.jvp(t.grad(f), (p,), (direction(p),))[1], pieces, p)
    assert_close(hvp(lambda p: pieces(xgrad, p, None), (p,), (direction(p),)), (product,))

    def several(xp: Any, p: Any, x: Any) -> Any:
        return {"product": p[0] * p[1], "sums": (xp.sum(p[0] ** 2, axis=1), xp.sum(p[1]))}

    wanted = by_jax(jax, lambda t, f: t.jacobian(f), several, p)
    assert_close(jacobian(lambda p: several(xgrad, p, None))(p), wanted)


def test_rows_of_a_hessian_cost_the_same_each() -> None:
    """Each walk runs the same rules once, whatever the number of rows; counted, not timed."""
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

    counted = Counted()

    def loss(p: dict[str, Tensor]) -> Tensor:
        return (counted(counted(on("cpu", X) @ p["a"]) @ p["b"]) ** 2).sum()

    found = []
    for width in (5, 10, 20):
        calls = 0
        p = {"a": array(3, width), "b": array(width, 4)}
        hessian(loss)(p)
        found.append((7 * width, calls))
    (rows, few), *more = found
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
    assert grad(energy, np.int64(1))(state, 2.0).item() == 2.5  # type: ignore[arg-type]


def test_aux_is_whatever_the_function_says() -> None:
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


def test_none_for_zeros() -> None:
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
    (_, place), tangent = jvp(f, (x,), (x,))
    assert place.item() == 1 and tangent[0].tolist() == [2, 18] and tangent[1].item() == 0
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


def test_a_transform_sees_only_its_own_argument() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(2.0).item() == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(x))(3.0).item() == 6
    assert grad(lambda x: jvp(lambda y: x * y, (x,), (x,))[1])(3.0).item() == 6
    assert jvp(lambda x: grad(lambda y: x * y * y)(x), (3.0,), (1.0,))[1].item() == 12
    x = Tensor(3.0, requires_grad=True)
    inner = grad(lambda z: z * x)(x)  # by z alone
    assert inner.item() == 3
    inner.backward()
    assert x.grad is not None and x.grad.item() == 1


def test_a_loss_of_second_derivatives_is_differentiated() -> None:
    def penalty(p: Tensor) -> Tensor:
        return (hessian(lambda x: (p * x**3).sum())(xgrad.asarray([1.0, 2.0])) ** 2).sum()

    # 36 p0^2 + 144 p1^2
    p = xgrad.asarray([2.0, 3.0])
    assert penalty(p).item() == 36 * 4 + 144 * 9
    assert grad(penalty)(p).tolist() == [144, 864]
    leaf = Tensor([2.0, 3.0], requires_grad=True)
    penalty(leaf).backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [144, 864]
    assert grad(lambda p: hvp(lambda x: (p * x**3).sum(), xgrad.ones(2), p).sum())(p).tolist() == [24, 36]


def test_a_pullback_can_be_differentiated() -> None:
    out, pullback = vjp(lambda x: x**3, 2.0)
    assert not out.requires_grad
    assert jvp(lambda u: pullback(u)[0], (1.0,), (5.0,))[1].item() == 60
    assert grad(lambda u: pullback(u * u)[0])(3.0).item() == 72
    weight = Tensor(3.0, requires_grad=True)
    pullback(weight * 2)[0].backward()
    assert weight.grad is not None and weight.grad.item() == 24


def test_tensors_with_a_graph_outside() -> None:
    w, x = Tensor(3.0, requires_grad=True), Tensor(2.0, requires_grad=True)
    value, g = value_and_grad(lambda x: w * x * x)(x * 1)
    assert (value.item(), g.item()) == (12, 12)
    (value + g).backward()
    assert w.grad is not None and x.grad is not None
    assert w.grad.item() == 4 + 4  # x^2 + 2x
    assert x.grad.item() == 12 + 6  # 2wx + 2w
    value, g = value_and_grad(lambda x: x * x)(2.0)
    assert not value.requires_grad and not g.requires_grad


def test_only_what_depends_on_the_outside_has_a_graph() -> None:
    w = Tensor(3.0, requires_grad=True)
    g = grad(lambda p: p["a"] * w + p["b"] ** 2)({"a": 1.0, "b": 2.0})
    assert g["a"].requires_grad and not g["b"].requires_grad
    a, b = vjp(lambda x: (x * w, x * 2), 1.0)[0]
    assert a.requires_grad and not b.requires_grad


def test_aux_may_depend_on_the_outside_by_way_of_the_result() -> None:
    w = Tensor(2.0, requires_grad=True)

    def f(x: Tensor, w: Tensor) -> Any:
        y = x * x
        return y, {"scaled": y * w}

    aux = grad(lambda x: f(x, w), has_aux=True)(3.0)[1]
    aux["scaled"].backward()
    assert w.grad is not None and w.grad.item() == 9
    assert grad(lambda w: grad(lambda x: f(x, w), has_aux=True)(3.0)[1]["scaled"])(2.0).item() == 9


def test_no_grad_is_left_on_either_side() -> None:
    w = Tensor(3.0, requires_grad=True)
    with xgrad.no_grad():
        value, g = value_and_grad(lambda x: w * x * x)(Tensor(2.0, requires_grad=True))
        assert g.item() == 12 and not g.requires_grad and not value.requires_grad
        assert hessian(lambda x: w * x * x)(2.0).item() == 6
        assert not xgrad.is_grad_enabled()
        out, pullback = vjp(lambda x: w * x, 2.0)
        assert not out.requires_grad and not pullback(w)[0].requires_grad
    u = Tensor(5.0, requires_grad=True)
    pullback(u)[0].backward()  # it is linear in u, whose history counts here
    assert u.grad is not None and u.grad.item() == 3
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


def test_a_function_may_assign_to_its_argument(device: str) -> None:
    def f(x: Tensor) -> Tensor:
        x[0] = x[1] ** 2
        x *= 3
        return x.sum()

    x = on(device, [1.0, 2.0])
    assert grad(f)(x).tolist() == [0, 15]
    assert hessian(f)(x).tolist() == [[0, 0], [0, 6]]
    assert x.tolist() == [1, 2]
    given = np.array([1.0, 2.0])
    _, pullback = vjp(lambda x: x * x, given)
    given[:] = 0
    assert pullback(np.ones(2))[0].tolist() == [2, 4]


def test_a_function_may_go_backward_itself() -> None:
    def f(x: Tensor) -> Tensor:
        weight = Tensor(2.0, requires_grad=True)
        (weight**2 * x).backward()
        assert weight.grad is not None
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


def test_an_exception_leaves_no_state() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with xgrad.no_grad():
        for transform in (grad(fails), jacobian(fails), grad(grad(fails)), lambda x: vjp(fails, x)):
            with pytest.raises(KeyError, match="mine"):
                transform(1.0)
            assert not xgrad.is_grad_enabled()


def test_threads_do_not_disturb_each_other() -> None:
    found: dict[int, Any] = {}
    gate = threading.Barrier(4)

    def work(i: int) -> None:
        def f(x: Tensor) -> Tensor:
            gate.wait(10)
            return grad(lambda y: x * y**3)(x) * i

        found[i] = grad(f)(2.0).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: 36 * i for i in range(4)}


def test_a_long_history_outside_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
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

    found = []
    for n in (25, 50, 100):
        looked = 0
        assert grad(lambda x, n=n: descend(x, n))(on("cpu", 1.0)).item() == pytest.approx(0.9**n)
        found.append(looked)
    assert found[2] - found[1] == 2 * (found[1] - found[0])


def test_memory_goes_with_the_pullback() -> None:
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

    np.testing.assert_allclose(grad(power)(z).numpy(), 2 * z.numpy())
    np.testing.assert_allclose(hvp(power, z, 1j * z).numpy(), 2j * z.numpy())
    np.testing.assert_allclose(jacobian(lambda z: xgrad.real(z * z))(z).numpy(), np.diag(2 * z.numpy().conj()))
    _, tangent = jvp(lambda z: z * z, (z,), (1j * z,))
    np.testing.assert_allclose(tangent.numpy(), 2j * z.numpy() ** 2)
    np.testing.assert_allclose(vjp(lambda z: z * z, z)[1](z)[0].numpy(), 2 * z.numpy().conj() * z.numpy())
    np.testing.assert_allclose(jvp(lambda x: x * 1j, (2.0,), (3.0,))[1].numpy(), 3j)
    with pytest.raises(TypeError, match="grad: expected a real floating result of the function, got complex128"):
        grad(lambda z: z.sum())(z)
    with pytest.raises(TypeError, match=r"jacobian: expected a real floating result.*complex128: take real and imag"):
        jacobian(lambda z: z * z)(z)


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
        (lambda: xgrad.nn.utils.functional_call(xgrad.exp, {}), TypeError, "functional_call: expected a module, got function"),  # type: ignore[arg-type]
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


def test_the_transforms_are_names_of_xgrad() -> None:
    for name in ("grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "hvp"):
        assert name in xgrad.__all__ and getattr(xgrad, name).__module__ == "xgrad.transforms"
    assert set(xgrad.__all__) <= set(dir(xgrad))
