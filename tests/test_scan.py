"""`scan`, compared with plain loops and JAX, its memory, random numbers, and refusals."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor, capture, grad, hvp, nn, optim, scan, vmap

SEGMENTS = [True, 1, 4, 100]


def recurrence(params: dict[str, Tensor], **how: Any) -> Tensor:
    """Return a loss of a recurrent network.

    Its steps also use a tensor computed before, and integers.
    """
    doubled = params["w"] * 2

    def step(state: dict[str, Tensor], x: Any) -> Any:
        value, index = x
        h = xgrad.tanh(
            state["h"] @ doubled * 0.3
            + value
            + xgrad.take(params["w"], index[None], axis=0)[0, ...]
        )
        return {"h": h, "count": state["count"] + 1}, (h * h).sum()

    init = {"h": params["h"], "count": xgrad.asarray(0, device=params["h"].device)}
    indices = xgrad.asarray(list(range(3)) * 3 + [1], device=params["h"].device)
    last, losses = scan(step, init, (params["x"], indices), **how)
    assert last["count"].dtype == xgrad.int64 and losses.shape == (10,)
    return losses.sum() + last["h"].sum() * losses[-1] * losses[0]


def arguments(device: str) -> dict[str, Tensor]:
    shapes = {"w": (3, 3), "x": (10, 3), "h": (3,)}
    return {
        name: on(device, uniform(*shape, seed=i) - 1)
        for i, (name, shape) in enumerate(shapes.items())
    }


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_do_not_depend_on_segments(device: str, reverse: bool) -> None:
    params = arguments(device)
    plain = grad(lambda p: recurrence(p, reverse=reverse))(params)
    second = hvp(lambda p: recurrence(p, reverse=reverse), params, params)
    for checkpoint in SEGMENTS:
        got = grad(lambda p, n=checkpoint: recurrence(p, reverse=reverse, checkpoint=n))(params)
        again = hvp(
            lambda p, n=checkpoint: recurrence(p, reverse=reverse, checkpoint=n), params, params
        )
        for name in params:
            np.testing.assert_allclose(host(got[name]), host(plain[name]), rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(host(again[name]), host(second[name]), rtol=1e-9, atol=1e-11)
    assert xgrad.testing.gradcheck(
        lambda h: recurrence({**params, "h": h}, checkpoint=True), leaf64(host(params["h"]), device)
    )


def test_results_are_those_of_a_loop_to_the_bit(device: str) -> None:
    x, w = on(device, uniform(7, 3)), leaf64(uniform(3), device)

    def step(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        h = xgrad.tanh(h * w + x)
        return h, h * x

    h, rows = xgrad.zeros_like(x[0, ...]), []
    for row in xgrad.unstack(x):
        h, y = step(h, row)
        rows.append(y)
    (h.sum() + xgrad.stack(rows).sum()).backward()
    wanted, w.grad = host(w.grad), None
    for checkpoint in (False, True):
        last, ys = scan(step, xgrad.zeros_like(h), x, checkpoint=checkpoint)
        np.testing.assert_array_equal(host(last), host(h))
        np.testing.assert_array_equal(host(ys), host(xgrad.stack(rows)))
    last, ys = scan(step, xgrad.zeros_like(h), x)
    (last.sum() + ys.sum()).backward()
    np.testing.assert_array_equal(host(w.grad), wanted)


def test_same_as_jax(jax: Any) -> None:
    def step(xp: Any) -> Any:
        return lambda h, x: (xp.sin(h) + x, {"y": h * x})

    x = uniform(5, 2).astype(np.float32)
    for reverse in (False, True):
        last, ys = jax.lax.scan(step(jax.numpy), jax.numpy.zeros(2), x, reverse=reverse)
        ours, stacked = scan(
            step(xgrad), xgrad.zeros(2), xgrad.asarray(x), reverse=reverse, checkpoint=2
        )
        np.testing.assert_allclose(host(ours), last, rtol=1e-5)
        np.testing.assert_allclose(host(stacked["y"]), ys["y"], rtol=1e-5)


def test_length_without_elements_and_results_of_none() -> None:
    assert scan(lambda s, x: (s * 2, None), xgrad.asarray(1.0), length=5)[0].tolist() == 32
    assert scan(lambda s, x: (s, s), 1.5, length=3)[1].tolist() == [1.5] * 3
    last, ys = scan(lambda s, x: (s + x, x), xgrad.zeros(2), xgrad.zeros((0, 2)), checkpoint=True)
    assert last.tolist() == [0, 0] and ys is None


def test_memory_of_a_backward_pass_grows_by_the_square_root() -> None:
    count, width = 256, 4096
    w, x = leaf64(0.5), xgrad.asarray(uniform(count))

    def peak(checkpoint: bool) -> float:
        tracemalloc.start()
        h, _ = scan(
            lambda h, x: (xgrad.sin(h * w + x), None),
            xgrad.zeros(width, dtype=xgrad.float64),
            x,
            checkpoint=checkpoint,
        )
        h.sum().backward()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most / (8 * width)  # in states

    without, within = peak(False), peak(True)
    assert without > 2 * count
    assert within < 6 * 16


def test_hooks_run_once_and_changed_parameters_are_refused() -> None:
    w, calls = leaf64(0.5), []
    w.register_hook(calls.append)
    x = xgrad.asarray(uniform(6))
    h, _ = scan(
        lambda h, x: (h * w + x, None), xgrad.asarray(1.0, dtype=xgrad.float64), x, checkpoint=2
    )
    h.backward()
    assert len(calls) == 1
    h, _ = scan(
        lambda h, x: (h * w + x, None), xgrad.asarray(1.0, dtype=xgrad.float64), x, checkpoint=2
    )
    w.data *= 2
    with pytest.raises(RuntimeError, match="changed"):
        h.backward()


def test_no_graph_without_need() -> None:
    x, w = xgrad.asarray(uniform(6)), leaf64(0.5)
    assert not scan(lambda h, x: (h + x, h), x[0], x, checkpoint=True)[0].requires_grad
    with xgrad.no_grad():
        assert not scan(lambda h, x: (h * w + x, h), x[0], x, checkpoint=True)[0].requires_grad


def training(checkpoint: bool | int, captured: bool) -> tuple[list[float], list[float]]:
    """Return losses of training with dropout in the steps, and random numbers drawn afterwards."""
    xgrad.manual_seed(0)
    linear, drop = nn.Linear(4, 4), nn.Dropout(0.3)
    optimizer = optim.SGD(linear.parameters(), lr=0.1)
    xs, h = xgrad.random.randn((9, 2, 4)), xgrad.zeros((2, 4))

    def step(xs: Tensor, h: Tensor) -> Tensor:
        def cell(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            h = xgrad.tanh(drop(linear(h)) + x)
            return h, h

        optimizer.zero_grad()
        _, ys = scan(cell, h, xs, checkpoint=checkpoint)
        loss = (ys * ys).mean()
        loss.backward()
        optimizer.step()
        return loss.detach() * 1

    run = capture(step) if captured else step
    return [float(run(xs, h)) for _ in range(4)], xgrad.random.rand(2).tolist()


def test_random_numbers_are_drawn_again() -> None:
    losses, after = training(checkpoint=False, captured=False)
    for captured in (False, True):
        got, drawn = training(checkpoint=4, captured=captured)
        np.testing.assert_allclose(got, losses, rtol=1e-6)
        assert drawn == after


def test_generators_of_a_seed_and_nested_scans() -> None:
    w = leaf64(0.5)

    def loss(checkpoint: bool) -> Tensor:
        generator = xgrad.random.Generator(3)

        def inner(h: Tensor, x: Any) -> tuple[Tensor, None]:
            return xgrad.sin(h * w) + generator.rand((), dtype=xgrad.float64), None

        def outer(h: Tensor, x: Any) -> tuple[Tensor, None]:
            return scan(inner, h, length=4, checkpoint=checkpoint)[0], None

        w.grad = None
        scan(outer, w * 1, length=4, checkpoint=checkpoint)[0].backward()
        assert w.grad is not None
        return w.grad

    assert float(loss(True)) == pytest.approx(float(loss(False)), rel=1e-12)


def test_within_vmap(device: str) -> None:
    if device == "strict":
        pytest.skip("array-api-strict takes no index arrays beside slices")
    params = arguments(device)
    batch = {**params, "x": on(device, uniform(4, 10, 3, seed=7))}
    axes = {"w": None, "x": 0, "h": None}
    wanted = vmap(grad(recurrence), in_axes=(axes,))(batch)
    got = vmap(grad(lambda p: recurrence(p, checkpoint=True)), in_axes=(axes,))(batch)
    one = grad(recurrence)({**params, "x": batch["x"][2, ...]})
    for name in params:
        np.testing.assert_allclose(host(got[name]), host(wanted[name]), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(host(got[name])[2], host(one[name]), rtol=1e-10, atol=1e-12)


ERRORS = [
    (
        "xp.scan(x, x)",
        "TypeError: scan: expected a function, got Tensor: write xgrad.scan(step, init, xs)",
    ),
    (
        "xp.scan(f, 0.0)",
        "ValueError: scan: expected xs, and length …, of one length, got neither xs nor length",
    ),
    (
        "xp.scan(f, 0.0, (x, x[1:]))",
        "ValueError: scan: expected xs, …, of one length, got lengths [1, 2]",
    ),
    (
        "xp.scan(f, 0.0, x, length=3)",
        "ValueError: scan: expected xs, …, of one length, got lengths [2, 3]",
    ),
    (
        "xp.scan(f, 0.0, x[0])",
        "ValueError: scan: expected xs with a first axis to go along, got shape ()",
    ),
    (
        "xp.scan(f, 0.0, x, checkpoint=0)",
        "ValueError: scan: expected checkpoint of True, False or a number …",
    ),
    (
        "xp.scan(lambda s, x: s, 0.0, x)",
        "TypeError: scan: expected (state, result) of the function, got Tensor",
    ),
    (
        "xp.scan(lambda s, x: ([s], x), 0.0, x)",
        "TypeError: scan: state: expected one Tensor, got a list of 1",
    ),
    (
        "xp.scan(lambda s, x: (1.0, x), 0.0, x)",
        "TypeError: scan: expected a tensor as the state, got float: …",
    ),
    (
        "xp.scan(lambda s, x: (s, 1.0), 0.0, x)",
        "TypeError: scan: expected a tensor as the result, got float: …",
    ),
    (
        "xp.scan(lambda s, x: (x[None], x), 0.0, x)",
        "ValueError: scan: expected a state of shape (), float32, as …",
    ),
]


@pytest.mark.parametrize(("call", "expected"), ERRORS, ids=[call for call, _ in ERRORS])
def test_refusal(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.asarray([1.0, 2.0]), f=lambda s, x: (s, x))
