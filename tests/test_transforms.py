"""Transforms, compared with closed forms and JAX; containers and refusals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xgrad
from helpers import host, on, uniform
from xgrad import (
    Tensor,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
)
from xgrad.support.trees import leaves


def assert_close(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    pairs = list(zip([x for _, x in leaves(got)], [x for _, x in leaves(wanted)], strict=True))
    assert pairs
    for a, b in pairs:
        assert isinstance(a, Tensor) and not a.requires_grad
        np.testing.assert_allclose(
            host(a), host(b) if isinstance(b, Tensor) else b, rtol=rtol, atol=1e-11
        )


# Closed forms, on every device


def test_nested_gradients_of_a_scalar(device: str) -> None:
    """The n-th derivative of sin(2x) is 2**n sin(2x + n pi / 2)."""
    x, f = on(device, 1.3), lambda x: xgrad.sin(2 * x)
    for n in range(1, 5):
        f = grad(f)
        assert_close(f(x), 2**n * math.sin(2.6 + n * math.pi / 2))
    assert f(x).device is x.device and f(x).dtype == xgrad.float64


def test_derivatives_of_a_quadratic_form_are_exact(device: str) -> None:
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
    u = on(device, uniform(3, seed=2))
    v = (on(device, uniform(3, 2, seed=3)), on(device, uniform(2, seed=4)))

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
    return xp.sum(y[1:, ::2] * xp.log(xp.sum(y, axis=0, keepdims=True))[:, ::2]) + xp.max(
        y
    ) / xp.prod(b)


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
    """Apply a transform of JAX to a loss, in float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jnp = jax.numpy
        jax.config.update("jax_enable_x64", True)
        p = jax.tree_util.tree_map(jnp.asarray, p)
        return jax.jit(transform(jax, lambda p: loss(jnp, p, jnp.asarray(X))))(p)


def direction(p: Any) -> Any:
    """Return a tangent for a tree of arrays, tensors or tracers."""
    if isinstance(p, dict):
        return {k: direction(v) for k, v in p.items()}
    if isinstance(p, (list, tuple)):
        return type(p)([direction(v) for v in p])
    return np.cos(np.arange(math.prod(np.shape(p)))).reshape(np.shape(p))


def slope(t: Any, f: Any) -> Any:
    """Return the directional derivative as a function."""
    return lambda p: t.jvp(f, (p,), (direction(p),))[1]


ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda t, f: t.grad(f),
    "value and grad": lambda t, f: t.value_and_grad(f),
    "hessian": lambda t, f: t.hessian(f),
    "jacobian": lambda t, f: t.jacobian(
        lambda p: {"both": (f(p), t.grad(f)(p)), "square": f(p) ** 2}
    ),
    "jvp": lambda t, f: lambda p: t.jvp(f, (p,), (direction(p),)),
    "jvp of grad": lambda t, f: slope(t, t.grad(f)),
    "grad of jvp": lambda t, f: t.grad(slope(t, f)),
    "third derivatives": lambda t, f: t.grad(slope(t, slope(t, f))),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("loss", "p"), LOSSES)
def test_transforms_agree_with_jax(loss: Any, p: Any, order: str, jax: Any) -> None:
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


def test_gradients_have_the_containers_of_arguments() -> None:
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
    assert (
        aux["twice"].tolist() == [2, 4]
        and not aux["twice"].requires_grad
        and aux["name"] == "f"
        and aux["n"] == 3
    )
    (value, aux), g = value_and_grad(f, has_aux=True)(x)
    assert (value.item(), g.tolist(), aux["n"]) == (5, [2, 4], 3)
    assert vjp(f, x, has_aux=True)[2]["n"] == jvp(f, (x,), (x,), has_aux=True)[2]["n"] == 3
    assert jacobian(f, has_aux=True)(x)[1]["n"] == hessian(f, has_aux=True)(x)[1]["n"] == 3
    assert hvp(f, x, x, has_aux=True)[0].tolist() == [2, 4]


def test_primals_of_hvp_keep_their_container() -> None:
    assert hvp(lambda x: x**3, 2.0, 1.0).item() == 12
    assert [type(hvp(lambda x: x**3, kind([2.0]), kind([1.0]))) for kind in (list, tuple)] == [
        list,
        tuple,
    ]
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
    with pytest.raises(
        TypeError, match=r"vjp: cotangent\[1\]: expected None for int64, which has no derivative"
    ):
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


def test_empty_arguments_and_results_are_accepted() -> None:
    x = xgrad.zeros((0, 3))
    assert jacobian(lambda x: 2 * x)(x).shape == (0, 3, 0, 3)
    assert hessian(lambda x: (x * x).sum())(x).shape == (0, 3, 0, 3)
    assert jacobian(lambda x: xgrad.zeros((2, 0)) * x)(2.0).shape == (2, 0)
    assert grad(lambda p: xgrad.asarray(1.0))({}) == {}


# Complex numbers: L = |z|^2 has the gradient 2z, and z^2 the derivative 2z


def test_complex_arguments_and_results_have_exact_derivatives() -> None:
    z = xgrad.asarray([1 + 2j, -0.5j], dtype=xgrad.complex128)

    def power(z: Tensor) -> Tensor:
        return xgrad.real(z * xgrad.conj(z)).sum()

    assert_close(grad(power)(z), 2 * z)
    assert_close(hvp(power, z, 1j * z), 2j * z)
    assert_close(jacobian(lambda z: xgrad.real(z * z))(z), xgrad.diag(2 * xgrad.conj(z)))
    assert_close(jvp(lambda z: z * z, (z,), (1j * z,))[1], 2j * z * z)
    assert_close(vjp(lambda z: z * z, z)[1](z)[0], 2 * xgrad.conj(z) * z)
    assert_close(jvp(lambda x: x * 1j, (2.0,), (3.0,))[1], 3j)


def test_gradient_of_one_element_in_any_shape_equals_backward(device: str) -> None:
    for shape in ((), (1,), (1, 1)):
        x = on(device, np.full(shape, 3.0))
        value, g = value_and_grad(lambda x: x**2)(x)
        leaf = x.detach().requires_grad_()
        (leaf**2).backward()
        assert leaf.grad is not None and host(g).tolist() == host(leaf.grad).tolist()
        assert (value.shape, g.shape) == (shape, shape)
        assert_close(grad(lambda x: x**2)(x), g)
        assert_close(hvp(lambda x: x**2, x, x), 2 * host(x))


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (1, 0), [0, 2], (0, -1)])
@pytest.mark.parametrize("transform", [jacobian, jacrev, jacfwd, hessian])
def test_argnums_and_aux_of_transforms_follow_jax(
    transform: Any, argnums: Any, device: str
) -> None:
    """A sequence gives a tuple in its order; the derivatives equal the ones by single arguments."""
    args = [on(device, uniform(2, seed=i)) for i in range(3)]

    def f(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return (x * y * y + z * x).sum()

    got, aux = transform(lambda *xs: (f(*xs), {"n": 3}), argnums, has_aux=True)(*args)
    single = isinstance(argnums, int)
    chosen = [i % 3 for i in ([argnums] if single else argnums)]
    assert aux["n"] == 3

    def first(i: int) -> Any:
        return lambda *xs: grad(f, i)(*xs)

    if transform is hessian:
        wanted = [[jacobian(first(i), j)(*args) for j in chosen] for i in chosen]
        rows = [[got]] if single else got
    else:
        wanted, rows = (
            [[first(i)(*args)] for i in chosen],
            [[got]] if single else [[g] for g in got],
        )
        assert single or isinstance(got, tuple)
    for row, wanted_row in zip(rows, wanted, strict=True):
        assert_close(list(row), wanted_row)


# Refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: grad(lambda x: x)(3),
            TypeError,
            "grad: expected a floating dtype for argument 0, .* got int64: give",
        ),
        (lambda: grad(lambda x, y: x, 1)(3.0, True), TypeError, "for argument 1, .* got bool"),
        (
            lambda: grad(lambda p: p)({"a": [xgrad.asarray([1])]}),
            TypeError,
            r"argument 0\['a'\]\[0\], .* int64",
        ),
        (
            lambda: jvp(lambda x: x, (1,), (1,)),
            TypeError,
            "jvp: expected a floating dtype for argument 0",
        ),
        (
            lambda: grad(lambda x: x)("a"),
            TypeError,
            "grad: expected a tensor, an array or a number for argument 0, got str",
        ),
        (
            lambda: grad(lambda x: x)(xgrad.nn.Linear(2, 1)),
            TypeError,
            "got Linear: .* and nn.utils.functional_call",
        ),
        (
            lambda: grad(lambda x: 3.0)(1.0),
            TypeError,
            "grad: expected a tensor of the function, got float: a number has",
        ),
        (lambda: grad(lambda x: x.item())(1.0), TypeError, "got float"),
        (
            lambda: grad(lambda x: None)(1.0),
            TypeError,
            "grad: expected a tensor of the function, got NoneType",
        ),
        (
            lambda: grad(lambda x: (x, x))(1.0),
            TypeError,
            "got tuple: .* jacobian or vjp.* has_aux=True",
        ),
        (
            lambda: grad(lambda x: x)(np.ones(2)),
            ValueError,
            r"grad: expected a scalar of the function, or one element .*, got shape \(2,\)",
        ),
        (
            lambda: grad(lambda x: xgrad.argmax(x))(np.ones(2)),
            TypeError,
            "real floating result .* got int64: cast it",
        ),
        (
            lambda: value_and_grad(lambda x: x)(np.ones(2)),
            ValueError,
            "value_and_grad: expected a scalar",
        ),
        (lambda: hvp(lambda x: x, np.ones(2), np.ones(2)), ValueError, "hvp: expected a scalar"),
        (
            lambda: hessian(lambda x: {"a": "no"})(1.0),
            TypeError,
            r"hessian: expected a tensor of the function at \['a'\], got str",
        ),
        (
            lambda: jacobian(lambda x: xgrad.argmax(x))(np.ones(2)),
            TypeError,
            "jacobian: expected a real floating result",
        ),
        (
            lambda: grad(lambda z: z.sum())(np.array([1j])),
            TypeError,
            "grad: expected a real floating result of the function, got complex128",
        ),
        (
            lambda: jacobian(lambda z: z * z)(np.array([1j])),
            TypeError,
            "jacobian: expected a real floating result.*complex128: take real and imag",
        ),
        (
            lambda: grad(lambda x: x, 1)(1.0),
            ValueError,
            "grad: expected argnums among the 1 positional arguments, .* got 1",
        ),
        (lambda: grad(lambda x: x, (0, -1))(1.0), ValueError, r"each once, got \(0, -1\)"),
        (
            lambda: grad(lambda x: x, has_aux=True)(1.0),
            TypeError,
            r"grad: expected \(result, aux\) of a function with",
        ),
        (
            lambda: jvp(lambda x: x, (1.0,), (1.0, 2.0)),
            TypeError,
            "jvp: tangent: expected a tuple of 1, got a tuple of 2",
        ),
        (
            lambda: jvp(lambda x: x, (np.ones(2),), (1.0,)),
            ValueError,
            r"jvp: tangent\[0\]: expected shape \(2,\) on cpu, got \(\)",
        ),
        (
            lambda: jvp(lambda x: x, (1.0,), (on("cpu", 1.0),)),
            TypeError,
            r"jvp: tangent\[0\]: expected float32, got float64",
        ),
        (
            lambda: vjp(lambda x: x, 1.0)[1](1j),
            TypeError,
            "vjp: cotangent: expected float32, got complex64",
        ),
        (
            lambda: vjp(lambda x: {"a": x}, 1.0)[1](1.0),
            TypeError,
            r"vjp: cotangent: expected a dict with the keys \['a'\]",
        ),
        (
            lambda: grad(lambda x: x, "0")(1.0),
            TypeError,
            "grad: expected argnums of an int or a sequence of them, got '0'",
        ),
        (
            lambda: grad(lambda x: x, 0.0)(1.0),
            TypeError,
            "grad: expected argnums of an int or a sequence of them, got 0.0",
        ),
        (
            lambda: xgrad.nn.utils.functional_call(xgrad.exp, {}),
            TypeError,
            "functional_call: expected a module, got function",
        ),
        (
            lambda: vjp(lambda x: {"a": x}, 1.0)[1]({"a": [1.0]}),
            TypeError,
            r"vjp: cotangent: expected one Tensor at \['a'\], got a list",
        ),
    ],
)
def test_invalid_calls_of_transforms_are_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
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
