"""`odeint` and `odeint_adjoint`, compared with closed forms, SciPy and finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor, nn, odeint, odeint_adjoint
from xgrad.autograd import grad
from xgrad.capture import CaptureWarning
from xgrad.integration.methods import METHODS
from xgrad.testing import gradcheck, gradgradcheck

integrate = pytest.importorskip("scipy.integrate", reason="needs SciPy")
linalg = pytest.importorskip("scipy.linalg", reason="needs SciPy")

BOTH = pytest.mark.parametrize("solver", [odeint, odeint_adjoint])
FIXED = [name for name, method in METHODS.items() if not method.error]
MATRIX = np.array([[-0.3, 2.0], [-1.0, -0.1]])
Y0 = np.array([1.0, -0.5])
PRECISE = {"rtol": 1e-11, "atol": 1e-12}


def linear(t: Tensor, y: Tensor, matrix: Tensor) -> Tensor:
    return matrix @ y


def pendulum(t: Tensor, y: dict[str, Tensor], length: Tensor) -> dict[str, Tensor]:
    return {"angle": y["speed"], "speed": -xgrad.sin(y["angle"]) / length + 0.1 * xgrad.cos(t)}


# Solutions


@BOTH
@pytest.mark.parametrize("ends", [(0.0, 3.0), (2.0, -1.0)])
def test_linear_system_has_the_solution_of_the_matrix_exponential(
    solver: Any, ends: tuple[float, float], device: str
) -> None:
    times = np.linspace(*ends, 7)
    got = solver(linear, on(device, Y0), on(device, times), args=(on(device, MATRIX),), **PRECISE)
    want = [linalg.expm(MATRIX * (t - ends[0])) @ Y0 for t in times]
    np.testing.assert_allclose(host(got), want, rtol=1e-9, atol=1e-10)
    assert str(got.device) == device


def test_solution_between_steps_is_accurate() -> None:
    """The error of the interpolation is of the size of the tolerance."""
    times = np.linspace(0, 20, 1001)
    for rtol in (1e-4, 1e-6, 1e-8):
        calls = []

        def f(t: Tensor, y: Tensor, calls: list[int] = calls) -> Tensor:
            calls.append(1)
            return xgrad.stack([y[1], -y[0]])

        got = host(odeint(f, on("cpu", [1.0, 0.0]), on("cpu", times), rtol=rtol, atol=rtol))
        error = np.abs(got[:, 0] - np.cos(times)).max()
        assert error < 100 * rtol
        theirs = integrate.solve_ivp(
            lambda t, y: [y[1], -y[0]], (0, 20), [1.0, 0.0], rtol=rtol, atol=rtol
        )
        assert len(calls) < 1.3 * theirs.nfev + 20  # the first slope of a step is reused


@BOTH
def test_tree_of_states_agrees_with_scipy(solver: Any, device: str) -> None:
    y0 = {"angle": on(device, np.array([0.5, 1.0])), "speed": on(device, np.array([0.0, 0.3]))}
    length, times = on(device, np.array(0.7)), np.array([0.5, 1.0, 2.5])
    got = solver(pendulum, y0, on(device, times), args=(length,), **PRECISE)
    assert list(got) == ["angle", "speed"] and got["angle"].shape == (3, 2)
    for i in range(2):
        want = integrate.solve_ivp(
            lambda t, y: [y[1], -np.sin(y[0]) / 0.7 + 0.1 * np.cos(t)],
            (0.5, 2.5),
            [host(y0["angle"])[i], host(y0["speed"])[i]],
            t_eval=times,
            method="DOP853",
            rtol=1e-12,
            atol=1e-12,
        )
        np.testing.assert_allclose(host(got["angle"])[:, i], want.y[0], rtol=1e-8)
        np.testing.assert_allclose(host(got["speed"])[:, i], want.y[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "order"), [("rk4", 4), ("heun2", 2), ("midpoint", 2), ("euler", 1)]
)
def test_errors_of_fixed_steps_fall_with_their_order(method: str, order: int) -> None:
    errors = []
    for steps in (20, 40):
        got = odeint(
            lambda t, y: t * y,
            on("cpu", [1.0]),
            [0.0, 0.5, 1.5],
            method=method,
            options={"steps": steps},
        )
        errors.append(abs(host(got)[2, 0] - math.exp(1.5**2 / 2)))
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.2


def test_tableaus_are_consistent() -> None:
    for method in METHODS.values():
        for node, weights in zip(method.nodes[1:], method.weights, strict=True):
            assert sum(weights) == pytest.approx(node, abs=1e-15)
        assert sum(method.solution) == pytest.approx(1)
        assert sum(method.error) == pytest.approx(0)
        for weight, row in zip(method.solution, method.interpolation, strict=False):
            assert sum(row) == pytest.approx(weight, abs=1e-14)
    theirs = integrate.RK45
    np.testing.assert_allclose(METHODS["dopri5"].interpolation, theirs.P, rtol=1e-14)
    np.testing.assert_allclose(METHODS["dopri5"].error, -theirs.E, rtol=1e-12)
    np.testing.assert_allclose(METHODS["dopri5"].solution[:6], theirs.B, rtol=1e-15)


def test_dtypes_and_complex_states() -> None:
    single = odeint(lambda t, y: -y, xgrad.ones(2), [0, 1])
    assert single.dtype == xgrad.float32
    np.testing.assert_allclose(host(single)[1], math.exp(-1), rtol=1e-5)
    rotated = odeint(lambda t, y: 1j * y, on("cpu", np.array([1.0 + 0j])), [0.0, 2.0])
    np.testing.assert_allclose(host(rotated)[1], np.exp(2j), rtol=1e-6)
    alone = odeint(lambda t, y: -y, xgrad.ones(2), [1.0])
    assert alone.tolist() == [[1.0, 1.0]]
    assert odeint(lambda t, y: -y, xgrad.zeros((0, 2)), [0.0, 1.0]).shape == (2, 0, 2)
    assert odeint(lambda t, y: xgrad.zeros_like(y), xgrad.ones(2), [0.0, 1.0]).tolist()[1] == [1, 1]


# Derivatives


@BOTH
@pytest.mark.parametrize("method", METHODS)
def test_gradients_agree_with_finite_differences(solver: Any, method: str, device: str) -> None:
    """By the state, the times, and the arguments; the adjoint has the error of fixed steps."""
    steps = {"options": {"steps": 4}} if method in FIXED else {"rtol": 1e-9, "atol": 1e-10}

    def solved(y0: Tensor, t: Tensor, matrix: Tensor) -> Tensor:
        return solver(linear, y0, t, args=(matrix,), method=method, **steps)

    inputs = [leaf64(Y0, device), leaf64([0.1, 0.4, 0.9], device), leaf64(MATRIX, device)]
    rough = {"euler": 0.15, "heun2": 0.02, "midpoint": 0.02, "rk4": 1e-4}.get(method, 1e-6)
    tolerance = rough if solver is odeint_adjoint else 1e-6
    if solver is odeint:
        assert gradcheck(solved, inputs)
    weights = on(device, uniform(3, 2))
    got = grad((solved(*inputs) * weights).sum(), inputs)
    exact = odeint(linear, inputs[0], inputs[1], args=(inputs[2],), **PRECISE)
    want = grad((exact * weights).sum(), inputs)
    for x, y in zip(got, want, strict=True):
        if solver is odeint_adjoint or method == "dopri5":
            np.testing.assert_allclose(host(x), host(y), rtol=tolerance, atol=tolerance)


def test_gradients_are_those_of_the_matrix_exponential(device: str) -> None:
    for solver in (odeint, odeint_adjoint):
        y0, t = leaf64(Y0, device), leaf64([0.5, 2.0], device)
        end = solver(linear, y0, t, args=(on(device, MATRIX),), rtol=1e-8, atol=1e-9)[1, ...]
        moved = linalg.expm(1.5 * MATRIX)
        for i in range(2):
            by_state, by_time = grad(end[i], [y0, t], retain_graph=True)
            np.testing.assert_allclose(host(by_state), moved[i], rtol=1e-6)
            slope = (MATRIX @ moved @ Y0)[i]
            np.testing.assert_allclose(host(by_time), [-slope, slope], rtol=1e-6)


def test_adjoint_finds_the_tensors_that_the_function_uses(device: str) -> None:
    xgrad.manual_seed(0)
    module = nn.MLP([3, 8, 2], dtype="float64", device=device, activation=nn.Tanh)

    def f(t: Tensor, y: Tensor) -> Tensor:
        return module(xgrad.concat([y, xgrad.broadcast_to(t, (4, 1))], axis=1)) * scale**2

    y0, scale = leaf64(uniform(4, 2), device), leaf64(1.3, device)
    results = []
    for solver in (odeint, odeint_adjoint):
        y = solver(f, y0, [0.0, 0.3, 1.0], rtol=1e-9, atol=1e-10)
        results.append(grad((y**2).sum(), [y0, scale, *module.parameters()]))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(host(got), host(want), rtol=1e-6, atol=1e-7)
    for p in module.parameters():
        p.grad = None
    (odeint_adjoint(f, y0, [0.0, 0.3, 1.0], rtol=1e-9, atol=1e-10) ** 2).sum().backward()
    for p, want in zip(module.parameters(), results[0][2:], strict=True):
        assert p.grad is not None
        np.testing.assert_allclose(host(p.grad), host(want), rtol=1e-6, atol=1e-7)


def test_module_is_a_function_of_time_and_state() -> None:
    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, t: Tensor, y: Tensor) -> Tensor:
            return xgrad.tanh(self.layer(y))

    field = Field()
    odeint_adjoint(field, xgrad.ones((3, 2)), [0.0, 1.0], method="rk4").sum().backward()
    assert all(p.grad is not None for p in field.parameters())


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_second_derivatives(method: str, device: str) -> None:
    """The adjoint's second derivatives are within the tolerance of the backward solution."""
    options = {"options": {"steps": 8}} if method == "rk4" else {"rtol": 1e-9, "atol": 1e-10}

    def solved(solver: Any) -> Any:
        def result(y0: Tensor, rate: Tensor, t: Tensor) -> Tensor:
            field = lambda t, y, rate: -rate * y**2 + xgrad.sin(t)  # noqa: E731
            return solver(field, y0, t, args=(rate,), method=method, **options)

        return result

    inputs = [leaf64([0.8, 1.5], device), leaf64(0.7, device), leaf64([0.0, 0.5, 1.0], device)]
    if device == "cpu" and method == "rk4":
        assert gradgradcheck(solved(odeint), inputs)
    results = []
    for solver in (odeint, odeint_adjoint):
        first = grad((solved(solver)(*inputs) ** 2).sum(), inputs, create_graph=True)
        results.append([*first, *grad(sum((g**2).sum() for g in first), inputs)])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(host(got), host(want), rtol=2e-4, atol=1e-5)


def test_adjoint_of_trees_equals_the_direct_derivative(device: str) -> None:
    y0 = {"angle": leaf64([0.5, 1.0], device), "speed": leaf64([0.0, 0.3], device)}
    length, t = leaf64(0.7, device), leaf64([2.0, 1.0, 0.2], device)
    inputs = [*y0.values(), length, t]
    results = []
    for solver in (odeint, odeint_adjoint):
        y = solver(pendulum, y0, t, args=(length,), rtol=1e-8, atol=1e-9)
        results.append(grad((y["angle"] * y["speed"]).sum(), inputs))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(host(got), host(want), rtol=1e-5, atol=1e-6)


def test_adjoint_saves_only_the_solution() -> None:
    def held(solver: Any, steps: int) -> int:
        y0 = xgrad.ones(1000).requires_grad_()
        y = solver(lambda t, y: -(y**3), y0, [0.0, 1.0], method="rk4", options={"steps": steps})
        nodes, stack = set(), [y.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in nodes:
                nodes.add(node)
                stack += node.edges
        return len(nodes)

    assert held(odeint, 8) > 100
    assert held(odeint_adjoint, 8) == held(odeint_adjoint, 80) < 6


def test_no_graph_without_gradients() -> None:
    for solver in (odeint, odeint_adjoint):
        assert not solver(lambda t, y: -y, xgrad.ones(2), [0.0, 1.0]).requires_grad
        with xgrad.no_grad():
            x = xgrad.ones(2).requires_grad_()
            assert not solver(lambda t, y, x: -x * y, x, [0.0, 1.0], args=(x,)).requires_grad


# Captured steps, vmap


@BOTH
@pytest.mark.parametrize("method", FIXED)
def test_captured_fixed_steps_equal_eager_ones(solver: Any, method: str) -> None:
    w = leaf64(MATRIX)

    def step(y0: Tensor) -> tuple[Tensor, ...]:
        y = solver(
            lambda t, y: xgrad.tanh(y @ w),
            y0,
            [0.0, 0.5, 1.0],
            method=method,
            options={"steps": 2},
        )
        return (y, *grad((y**2).sum(), [w]))

    captured = xgrad.capture(step)
    for seed in range(4):
        y0 = on("cpu", uniform(3, 2, seed=seed))
        for got, want in zip(captured(y0), step(y0), strict=True):
            assert host(got).tobytes() == host(want).tobytes()


def test_steps_with_control_run_eagerly_in_a_captured_step() -> None:
    captured = xgrad.capture(lambda y: odeint(lambda t, y: -y, y, [0.0, 1.0]))
    with pytest.warns(CaptureWarning, match="the value of a tensor is read"):
        first = captured(xgrad.ones(2))
    np.testing.assert_allclose(host(first)[1], math.exp(-1), rtol=1e-5)


def test_fixed_steps_map_over_a_batch(device: str) -> None:
    def solved(y0: Tensor) -> Tensor:
        return odeint(lambda t, y: -(y**2), y0, [0.0, 0.5, 1.0], method="rk4")

    x = on(device, uniform(5, 2))
    np.testing.assert_allclose(host(xgrad.vmap(solved, out_axes=1)(x)), host(solved(x)), rtol=1e-14)
    jacobians = xgrad.vmap(xgrad.jacobian(solved))(x)
    want = np.stack([host(xgrad.jacobian(solved)(row)) for row in x])
    np.testing.assert_allclose(host(jacobians), want, rtol=1e-12)
    with pytest.raises(TypeError, match="vmap"):
        xgrad.vmap(lambda y0: odeint(lambda t, y: -y, y0, [0.0, 1.0]))(x)


def over_states(solve: Any, w: Tensor, x: Tensor, b: Tensor) -> Tensor:
    return xgrad.vmap(lambda y: solve(lambda t, y: xgrad.tanh(w @ y), y, [0.0, 1.0]))(x)


def over_arguments(solve: Any, w: Tensor, x: Tensor, b: Tensor) -> Tensor:
    return xgrad.vmap(
        lambda s: solve(lambda t, y, s: -s * xgrad.tanh(w @ y), x[0, ...], [0.0, 1.0], args=(s,))
    )(b)


def over_closures(solve: Any, w: Tensor, x: Tensor, b: Tensor) -> Tensor:
    return xgrad.vmap(lambda s: solve(lambda t, y: -s * xgrad.tanh(w @ y), x[0, ...], [0.0, 1.0]))(
        b
    )


def over_gradients(solve: Any, w: Tensor, x: Tensor, b: Tensor) -> Tensor:
    def loss(y: Tensor) -> Tensor:
        return (solve(lambda t, y: xgrad.tanh(w @ y), y, [0.0, 1.0]) ** 2).sum()

    return xgrad.vmap(xgrad.grad(loss))(x)


def of_jacobians(solve: Any, w: Tensor, x: Tensor, b: Tensor) -> Tensor:
    def end(y: Tensor) -> Tensor:
        return solve(lambda t, y: xgrad.tanh(w @ y), y, [0.0, 1.0])[1, ...]

    return xgrad.jacobian(end)(x[0, ...]) + xgrad.jacfwd(end)(x[1, ...])


@pytest.mark.parametrize(
    "function", [over_states, over_arguments, over_closures, over_gradients, of_jacobians]
)
def test_adjoint_in_transforms_equals_the_direct_derivative(function: Any, device: str) -> None:
    """Values, and gradients by a tensor from outside, with many steps of fixed size."""
    w, x = leaf64(uniform(2, 2, low=-1, high=1), device), on(device, uniform(3, 2))
    b, results = on(device, uniform(4)), []
    for solver in (odeint, odeint_adjoint):

        def solve(*args: Any, solver: Any = solver, **options: Any) -> Tensor:
            return solver(*args, method="rk4", options={"steps": 10}, **options)

        out = function(solve, w, x, b)
        results.append([out, *grad((out**2).sum(), [w])])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(host(got), host(want), rtol=1e-5, atol=1e-6)


# Refusals


def test_failures_of_steps_name_the_time() -> None:
    with (
        np.errstate(all="ignore"),
        pytest.raises(RuntimeError, match=r"odeint: .* at t = 1: .*may be stiff, or its solution"),
    ):
        odeint(lambda t, y: y**2, on("cpu", [1.0]), [0.0, 2.0])  # infinite at 1
    with pytest.raises(RuntimeError, match=r"odeint: expected at most 50 steps, got to t = 0\.0"):
        odeint(
            lambda t, y: -1e5 * (y - xgrad.cos(t)),
            on("cpu", [1.0]),
            [0.0, 10.0],
            options={"max_num_steps": 50},
        )
    with pytest.raises(RuntimeError, match="at t = 0: the equation may be stiff"):
        odeint(lambda t, y: y * xgrad.nan, on("cpu", [1.0]), [0.0, 2.0])


@pytest.mark.parametrize("slope", ["infinite", "not a number"])
def test_slope_that_is_not_finite_at_the_start_is_refused(slope: str) -> None:
    value = np.inf if slope == "infinite" else np.nan
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="at t = 0: the equation"):
        odeint(lambda t, y: y * value, on("cpu", [1.0]), [0.0, 2.0])


def test_steps_in_float16_are_controlled_where_squares_of_errors_overflow() -> None:
    y0 = xgrad.asarray([10.0], dtype="float16")
    y = odeint(lambda t, y: -100 * y, y0, [0.0, 0.02], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(y[1].tolist(), [10 * np.exp(-2)], rtol=2e-2)


F = "lambda t, y: -y"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("xp.odeint(3, xp.ones(2), [0.0, 1.0])", "TypeError: odeint: expected a function … int"),
        (f"xp.odeint({F}, [1.0], [0.0, 1.0])", "TypeError: odeint: expected a tensor for y0[0]"),
        (f"xp.odeint({F}, (), [0.0])", "ValueError: odeint: expected a tensor or containers"),
        (f"xp.odeint({F}, xp.asarray([1]), [0.0, 1.0])", "TypeError: odeint: … y0, got int64"),
        (
            f"xp.odeint({F}, (xp.ones(1), xp.ones(1, dtype='float64')), [0.0, 1.0])",
            "ValueError: odeint: expected tensors of one dtype and device in y0",
        ),
        (f"xp.odeint({F}, xp.ones(2), 1.0)", "TypeError: odeint: expected times in a tensor"),
        (f"xp.odeint({F}, xp.ones(2), [])", "ValueError: odeint: expected real times of shape"),
        (f"xp.odeint({F}, xp.ones(2), [0.0, 1.0, 1.0])", "ValueError: odeint: … that increase or"),
        (f"xp.odeint({F}, xp.ones(2), [0.0, xp.inf])", "ValueError: odeint: expected finite times"),
        (f"xp.odeint({F}, xp.ones(2), [xp.nan])", "ValueError: odeint: expected finite times"),
        (
            f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], method=['rk4'])",
            "ValueError: odeint: expected a method of dopri5, rk4, … got ['rk4']",
        ),
        (
            f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], method='rk45')",
            "ValueError: odeint: expected a method of dopri5, rk4, … got 'rk45'",
        ),
        (
            f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], options={{'steps': 2}})",
            "ValueError: odeint: expected options among first_step, max_num_steps for dopri5",
        ),
        (
            f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], method='rk4', options={{'steps': 0}})",
            "ValueError: odeint: expected steps of 1 or more, got 0",
        ),
        (f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], rtol=0)", "ValueError: odeint: … rtol above 0"),
        (f"xp.odeint({F}, xp.ones(2), [0.0, 1.0], args=3)", "TypeError: odeint: expected a tuple"),
        (
            "xp.odeint(lambda t, y: y[0], xp.ones(2), [0.0, 1.0])",
            "ValueError: odeint: expected dy/dt of shape (2,), float32, as y, got shape ()",
        ),
        (
            "xp.odeint(lambda t, y: (y,), xp.ones(2), [0.0, 1.0])",
            "TypeError: odeint: the function's result: expected one Tensor, got a tuple",
        ),
        (
            "xp.odeint(lambda t, y: 1.0, xp.ones(2), [0.0, 1.0])",
            "TypeError: odeint: expected a tensor of the function, got float",
        ),
        (
            "xp.odeint_adjoint(lambda t, y: y, xp.ones(2) * 1j, [0.0, 1.0])",
            "TypeError: odeint_adjoint: expected real states",
        ),
    ],
)
def test_invalid_calls_are_refused(call: str, expected: str) -> None:
    check_error(call, expected)
