"""Transforms nested in each other and within graphs, compared with derivatives by hand and loops.

The subjects are gradients, grad mode, side effects and memory.
"""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host
from xgrad import Tensor, grad, hessian, hvp, jacfwd, jacobian, jvp, value_and_grad, vjp, vmap
from xgrad.core.graph import Node


def test_nested_transform_differentiates_its_own_argument_alone() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(2.0).item() == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(x))(3.0).item() == 6
    assert grad(lambda x: jvp(lambda y: x * y, (x,), (x,))[1])(3.0).item() == 6
    assert jvp(lambda x: grad(lambda y: x * y * y)(x), (3.0,), (1.0,))[1].item() == 12
    x = Tensor(3.0, requires_grad=True)
    inner = grad(lambda z: z * x)(x)  # with respect to z alone
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
    assert grad(lambda p: hvp(lambda x: (p * x**3).sum(), xgrad.ones(2), p).sum())(p).tolist() == [
        24,
        36,
    ]


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


# vmap, checkpoint and scan


def test_jacfwd_of_functions_of_indices_nests_in_vmap(device: str) -> None:
    x = Tensor([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]], device=device)
    order = [[1, 2, 0], [0, 2, 1]]
    wanted = np.eye(3)[np.array(order)]
    assert vmap(jacfwd(xgrad.sort))(x).tolist() == wanted.tolist()
    assert vmap(jacobian(xgrad.sort))(x).tolist() == wanted.tolist()
    if device == "strict":
        return  # array-api-strict has no keys of integer arrays
    taken = vmap(jacfwd(lambda a: xgrad.take(a, xgrad.argsort(a), axis=0)))(x)
    assert taken.tolist() == wanted.tolist()
    assert jacfwd(vmap(xgrad.sort))(x)[1, :, 1].tolist() == wanted[1].tolist()


def checkpointed(x: Tensor) -> Tensor:
    return xgrad.autograd.checkpoint(lambda x: xgrad.max(x) * xgrad.sin(x), x).sum()


def scanned(x: Tensor) -> Tensor:
    return xgrad.scan(lambda state, e: (state * e + xgrad.max(x), state), x[0], x, checkpoint=2)[0]


@pytest.mark.parametrize(
    ("fn", "plain"),
    [
        (checkpointed, lambda x: (xgrad.max(x) * xgrad.sin(x)).sum()),
        (
            scanned,
            lambda x: xgrad.scan(lambda state, e: (state * e + xgrad.max(x), state), x[0], x)[0],
        ),
    ],
)
def test_checkpoint_and_scan_nest_in_any_transforms(fn: Any, plain: Any) -> None:
    x = xgrad.asarray([[0.5, 2.0, 1.0], [3.0, 0.25, 1.5]], dtype="float64")
    nests: list[Any] = [
        lambda f: vmap(grad(f)),
        lambda f: grad(lambda x: vmap(f)(x).sum()),
        lambda f: grad(lambda x: vmap(grad(f))(x).sum()),
        lambda f: lambda x: jacfwd(grad(f))(x[0, ...]),
        lambda f: vmap(jacfwd(grad(f))),
        lambda f: jacfwd(vmap(f)),
        lambda f: lambda x: grad(lambda x: vmap(lambda s: f(x) * s + f(x * s))(x).sum())(x[0, ...]),
        lambda f: lambda x: vmap(lambda s: grad(f)(x[0, ...]) * s)(x[1, ...]),
        lambda f: (
            lambda x: grad(lambda x: jacfwd(lambda x: vmap(lambda s: f(x * s))(x))(x).sum())(
                x[0, ...]
            )
        ),
        lambda f: lambda x: vmap(lambda u: vjp(grad(f), x[0, ...])[1](u)[0])(x),
    ]
    for nest in nests:
        np.testing.assert_allclose(
            nest(fn)(x).numpy(), nest(plain)(x).numpy(), rtol=1e-12, atol=1e-12
        )


def test_pullback_is_mapped_over_cotangents(device: str) -> None:
    """As `jacobian` does it in JAX.

    The graph is from outside of the vmap, and the gradients are of its batch.
    """
    x = Tensor([1.0, 3.0, 2.0], device=device)
    w = Tensor([1.0, 2.0, 5.0], device=device, requires_grad=True)

    def f(x: Tensor) -> Tensor:
        return xgrad.sin(xgrad.sort(x)) * xgrad.max(x) + xgrad.autograd.checkpoint(
            lambda x: x * x * w, x
        )

    def mapped(x: Tensor) -> Tensor:
        pull = vjp(f, x)[1]
        return vmap(lambda u: pull(u)[0])(xgrad.eye(3, device=x.device))

    def close(x: Tensor, y: Tensor) -> None:
        np.testing.assert_allclose(host(x), host(y), rtol=1e-5, atol=1e-6)

    close(mapped(x), jacobian(f)(x))
    close(grad(lambda x: (mapped(x) ** 2).sum())(x), grad(lambda x: (jacobian(f)(x) ** 2).sum())(x))
    mapped(x).sum().backward()
    close(w.grad, 2 * x)
    out = f(x)
    (by_w,) = vmap(lambda u: xgrad.autograd.grad(out, w, u, retain_graph=True))(
        xgrad.eye(3, device=x.device)
    )
    close(by_w, xgrad.eye(3, device=x.device) * x * x)
    assert not by_w.requires_grad
    if device != "strict":  # which has no keys of integer arrays
        index = xgrad.asarray([2, 0, 2], device=device)

        def of_rows(x: Tensor) -> Tensor:
            pull = vjp(lambda x: x[index] * x[[1, 1, 0]], x)[1]
            return vmap(lambda u: pull(u)[0])(xgrad.eye(3, device=x.device))

        rows = Tensor([[1.0, 3.0, 2.0], [0.5, 4.0, 1.0]], device=device)
        close(vmap(of_rows)(rows), vmap(jacobian(lambda x: x[index] * x[[1, 1, 0]]))(rows))


# Side effects


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

    x = Tensor([1.0, 2.0], device=device)
    assert grad(f)(x).tolist() == [0, 15]
    assert hessian(f)(x).tolist() == [[0, 0], [0, 6]]
    assert x.tolist() == [1, 2]
    values = np.array([1.0, 2.0])
    _, pullback = vjp(lambda x: x * x, values)
    values[:] = 0
    assert pullback(np.ones(2))[0].tolist() == [2, 4]


def test_gradient_of_backward_within_a_transform_is_a_constant() -> None:
    def f(x: Tensor) -> Tensor:
        weight = Tensor(2.0, requires_grad=True)
        (weight**2 * x).backward()
        return weight.grad * x  # 2wx is a constant here

    assert grad(f)(3.0).item() == 12
    assert grad(lambda x, y: f(x) * f(y), (0, 1))(3.0, 1.0)[1].item() == 36 * 4
    assert grad(lambda x: xgrad.autograd.grad(x**3, x, create_graph=True)[0])(3.0).item() == 18

    def freed(x: Tensor) -> Tensor:
        y = x * x
        y.backward()
        return y

    with pytest.raises(
        RuntimeError, match=r"graph behind 'multiply' was freed .* retain_graph=True"
    ):
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
    """The gradient within each step of a differentiated loop visits its own graph alone."""
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
        assert grad(lambda x, n=n: descend(x, n))(
            Tensor(1.0, dtype="float64")
        ).item() == pytest.approx(0.9**n)
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
    assert (
        result.item() == value.item()
        and gradient.tolist() == [8, 8, 8]
        and second[0].tolist() == [8, 0, 0]
    )
