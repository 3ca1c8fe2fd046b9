"""`gradcheck` and `gradgradcheck` pass right rules, and find and name planted faults; refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import function, uniform
from xgrad import Tensor
from xgrad.testing import gradcheck, gradgradcheck


def random_leaf(
    *shape: int, dtype: Any = xgrad.float64, device: str = "cpu", seed: int = 0
) -> Tensor:
    values = uniform(*shape, seed=seed)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * uniform(*shape, seed=seed + 1)
    return Tensor(values, dtype=dtype, device=device, requires_grad=True)


def rule(
    backward: Callable[..., Any], forward: Callable[..., Any] = lambda xp, x: x * x * x
) -> xgrad.Function:
    """Return a function of one input, by default the cube, with a derivative rule."""
    return function("Ruled", forward, backward)


RIGHT = rule(lambda xp, g, x: 3 * g * x * x)
DOUBLED = rule(lambda xp, g, x: 6 * g * x * x)


@pytest.fixture(params=[True, False], ids=["fast", "full"])
def fast_mode(request: pytest.FixtureRequest) -> bool:
    return request.param


# Right rules


def test_right_rules_pass(fast_mode: bool, device: str) -> None:
    x, y = random_leaf(3, 2, device=device), random_leaf(2, device=device, seed=1)

    def several(x: Tensor, y: Tensor) -> Any:
        return {
            "product": x * y,
            "sums": (RIGHT(x).sum(), xgrad.argmax(y)),
            "constant": y.detach() * 0,
        }

    for fn, inputs in [
        (RIGHT, x),
        (lambda x, y: xgrad.divide(x, y), [x, y]),
        (several, (x, y)),
        (lambda x, y: (x * y, x.sum(), y**2), [random_leaf(0, 2), random_leaf()]),
    ]:
        assert gradcheck(fn, inputs, fast_mode=fast_mode) and gradgradcheck(
            fn, inputs, fast_mode=fast_mode
        )
    assert gradcheck(lambda x, n, y: x**n * y, [x, 2, y.detach()], fast_mode=fast_mode)
    assert x.grad is None and y.grad is None


def test_inputs_may_be_the_same_or_depend_on_one_another(fast_mode: bool) -> None:
    x = random_leaf(3)
    for inputs in ([x, x], [x, 2 * x], [{"a": x}, [x]]):
        fn = (
            (lambda x, y: x * x * y)
            if isinstance(inputs[0], Tensor)
            else (lambda d, v: d["a"] ** 2 * v[0])
        )
        assert gradcheck(fn, inputs, fast_mode=fast_mode) and gradgradcheck(
            fn, inputs, fast_mode=fast_mode
        )
    with pytest.raises(AssertionError, match=r"by inputs\[0\]"):
        gradcheck(lambda x, y: DOUBLED(x) * y, [x, x], fast_mode=fast_mode)


def test_complex_inputs_and_results_are_checked(fast_mode: bool) -> None:
    z, x = random_leaf(3, dtype=xgrad.complex128), random_leaf(3, seed=5)
    for fn in (
        lambda z, x: z * z / x,
        lambda z, x: xgrad.real(z * x),
        lambda z, x: xgrad.conj(z) * x * 1j,
    ):
        assert gradcheck(fn, [z, x], fast_mode=fast_mode)
        assert gradgradcheck(fn, [z, x], fast_mode=fast_mode)
    wrong = rule(lambda xp, g, z: g * z, lambda xp, z: z * z)
    with pytest.raises(AssertionError, match=r"by inputs\[0\]\(\d,\).* by backward"):
        gradcheck(wrong, z, fast_mode=fast_mode)
    unconjugated = rule(lambda xp, g, z: 2 * xp.conj(g) * z, lambda xp, z: z * z)
    with pytest.raises(AssertionError, match="by backward"):
        gradcheck(unconjugated, z, fast_mode=fast_mode)


def test_complex_step_is_exact(fast_mode: bool) -> None:
    def fn(x: Tensor) -> Any:
        return RIGHT(x) / (1 + x), (x * x).sum()

    tight = {"rtol": 1e-13, "atol": 1e-14, "fast_mode": fast_mode}
    assert gradcheck(fn, random_leaf(3), complex_step=True, **tight)
    assert not gradcheck(fn, random_leaf(3), raise_exception=False, **tight)
    assert gradcheck(
        fn, random_leaf(3, dtype=xgrad.float32), complex_step=True, rtol=1e-5, fast_mode=fast_mode
    )
    with pytest.raises(
        AssertionError, match=r"is 0\.\d+ by backward, .* by the complex step"
    ) as caught:
        gradcheck(
            lambda x: rule(lambda xp, g, x: g * 1e-6 + 3 * g * x * x)(x) / 40,
            random_leaf(),
            complex_step=True,
            **tight,
        )
    assert "1 of 1 entries" in str(caught.value)


def test_inputs_in_containers_are_checked(fast_mode: bool) -> None:
    params = {"scale": random_leaf(2), "layers": [(random_leaf(2, 2, seed=1), None)], "power": 2}

    def fn(p: Any, x: Tensor) -> Tensor:
        ((weight, bias),) = p["layers"]
        assert bias is None
        return p["scale"] ** p["power"] * (x @ weight)

    for check in (gradcheck, gradgradcheck):
        assert check(fn, (params, random_leaf(3, 2)), fast_mode=fast_mode)
        assert check(lambda p: fn(p, random_leaf(3, 2)), params, fast_mode=fast_mode)
    with pytest.raises(AssertionError, match=r"by inputs\[0\]\['layers'\]\[0\]\[0\]\(\d, \d\) is"):
        gradcheck(lambda p: DOUBLED(p["layers"][0][0]) * p["scale"], params, fast_mode=fast_mode)


# Faults


def test_broken_rule_is_found_and_named(fast_mode: bool, device: str) -> None:
    x = random_leaf(2, 2, device=device)
    y = Tensor([[2.0]], dtype=xgrad.float64, device=device, requires_grad=True)
    message = (
        r"gradcheck: the derivative of result\['b'\]\[0\]\(0, 0\) by inputs\[1\]\(0, 0\) is 24 by"
        r" backward, "
        r"12 by differences: off by 12, tolerated are 0.012; 1 of 1 entries are off$"
    )
    with pytest.raises(AssertionError, match=message):
        gradcheck(
            lambda x, y: {"a": RIGHT(x), "b": [DOUBLED(y), x * 1]}, [x, y], fast_mode=fast_mode
        )
    assert gradcheck(DOUBLED, x, raise_exception=False, fast_mode=fast_mode) is False


@pytest.mark.parametrize("entry", [(0, 0), (4, 6), (2, 3)])
def test_one_wrong_entry_of_many_is_found(entry: tuple[int, int]) -> None:
    factor = np.ones((5, 7))
    factor[entry] = 1.05
    wrong = rule(lambda xp, g, x: 3 * g * x * x * factor)
    with pytest.raises(
        AssertionError, match=rf"by inputs\[0\]\({entry[0]}, {entry[1]}\) is .*; 1 of 1225 entries"
    ):
        gradcheck(wrong, random_leaf(5, 7))


def detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


CONSTANT = rule(lambda xp, g, x: 3 * g * x * detached(x))  # right at first order only
LOST = rule(lambda xp, g, x: 3 * detached(g) * x * x)


@pytest.mark.parametrize(
    ("check", "fn", "message"),
    [
        (
            gradcheck,
            lambda x: x.detach() ** 2,
            r"result\(\d,\) by inputs\[0\]\(\d,\) is 0 by backward",
        ),
        (
            gradgradcheck,
            CONSTANT,
            r"gradgradcheck: the derivative of result\[0\]\(\d,\) by inputs\[0\]",
        ),
        (gradgradcheck, LOST, r"result\[0\]\(\d,\) by grad_outputs\[0\]\(\d,\) is 0 by backward"),
    ],
)
def test_lost_history_is_found(check: Any, fn: Any, message: str, fast_mode: bool) -> None:
    with pytest.raises(AssertionError, match=message):
        check(fn, random_leaf(3), fast_mode=fast_mode)
    assert check(fn, random_leaf(3), raise_exception=False, fast_mode=fast_mode) is False
    assert check is gradcheck or gradcheck(fn, random_leaf(3), fast_mode=fast_mode)


def test_kink_is_named(fast_mode: bool) -> None:
    x = Tensor([1.0, 0.0], dtype=xgrad.float64, requires_grad=True)
    message = (
        r"result\(1,\) by inputs\[0\]\(1,\).* 1 of 4 entries are off; the function has a kink or a"
        r" jump there, for "
        "its slope is 1 on the right, 0 on the left"
    )
    for fn, text in ((xgrad.relu, message), (lambda x: x + xgrad.floor(x), "a kink or a jump")):
        with pytest.raises(AssertionError, match=text):
            gradcheck(fn, x, fast_mode=fast_mode)
    with pytest.raises(AssertionError) as caught:
        gradcheck(DOUBLED, x, fast_mode=fast_mode)
    assert "kink" not in str(caught.value)


def test_derivative_off_along_a_direction_alone_is_found() -> None:
    """The function has both partial derivatives at the origin, and is not differentiable there."""

    def fn(x: Tensor) -> Tensor:
        return x[0] * x[1] ** 2 / (x[0] ** 2 + x[1] ** 2 + 1e-300)

    origin = Tensor([0.0, 0.0], dtype=xgrad.float64, requires_grad=True)
    assert gradcheck(fn, origin, fast_mode=False)
    message = (
        r"the derivative of result, weighted at random, by inputs\[0\] in a random direction is 0"
        r" by backward, .*"
        ": each entry by itself is within the tolerance"
    )
    with pytest.raises(AssertionError, match=message):
        gradcheck(fn, origin)


def test_function_without_a_floating_result_is_refused(fast_mode: bool) -> None:
    for check, fn in [
        *[(gradcheck, fn) for fn in (lambda x: None, lambda x: [], xgrad.argmax)],
        (gradgradcheck, Tensor.detach),
    ]:
        with pytest.raises(
            TypeError, match=f"{check.__name__}: expected a floating result of the function, got"
        ):
            check(fn, random_leaf(3), fast_mode=fast_mode)


def test_values_too_large_for_the_differences_are_named(fast_mode: bool) -> None:
    x = Tensor([3e9], dtype=xgrad.float64, requires_grad=True)
    with pytest.raises(
        AssertionError,
        match="the values are too large for differences over 1e-06: give a larger eps",
    ):
        gradcheck(lambda x: x * x, x, fast_mode=fast_mode)
    assert gradcheck(lambda x: x * x, x, eps=1e3, fast_mode=fast_mode)


def test_random_function_is_found(fast_mode: bool) -> None:
    generator, lengths = np.random.default_rng(0), itertools.count(2)
    hidden = rule(lambda xp, g, x: 3 * g * x * x * generator.normal(1, 1e-9))
    for fn, x, message in (
        (
            lambda x: x * generator.normal(),
            random_leaf(3),
            "gradcheck: the function is not deterministic: result differs by",
        ),
        (hidden, random_leaf(3), r"the gradient of inputs\[0\] differs by .* tolerated are 0.0: "),
        (lambda x: xgrad.broadcast_to(x, (next(lengths),)), random_leaf(), "differs by inf"),
    ):
        with pytest.raises(AssertionError, match=message):
            gradcheck(fn, x, fast_mode=fast_mode)
    assert gradcheck(hidden, random_leaf(3), nondet_tol=1e-6, fast_mode=fast_mode)


def test_seed_chooses_the_direction() -> None:
    seen: list[list[float]] = []

    def fn(x: Tensor) -> Tensor:
        seen.append(x.detach().tolist())
        return x * x

    x = random_leaf(3)
    for seed in (0, 0, 1):
        assert gradcheck(fn, x, seed=seed)
    count = len(seen) // 3
    assert seen[:count] == seen[count : 2 * count] != seen[2 * count :]


def test_grad_outputs_may_be_given() -> None:
    assert gradgradcheck(RIGHT, random_leaf(3), xgrad.ones(3, dtype=xgrad.float64))


def test_checks_work_under_no_grad() -> None:
    with xgrad.no_grad():
        assert gradcheck(RIGHT, random_leaf(3)) and gradgradcheck(RIGHT, random_leaf(3))
        assert not gradcheck(DOUBLED, random_leaf(3), raise_exception=False)
        assert not xgrad.is_grad_enabled()


def test_transforms_are_checked_as_any_function() -> None:
    def fn(x: Tensor) -> Tensor:
        return xgrad.hvp(lambda y: (x * y**3).sum(), (x,), (xgrad.sin(x).detach() + x,))[0]

    assert gradcheck(lambda x: xgrad.grad(lambda y: (y**3 * x).sum())(x), random_leaf(3))
    assert gradgradcheck(lambda x: xgrad.grad(lambda y: (y**4 * x).sum())(x), random_leaf(3))
    assert not gradcheck(fn, random_leaf(3), raise_exception=False)  # it detaches


# Refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: gradcheck(RIGHT, random_leaf(3).detach()),
            TypeError,
            "gradcheck: expected an input that requires a gradient, got none",
        ),
        (
            lambda: gradcheck(RIGHT, random_leaf(3, dtype=xgrad.float32)),
            TypeError,
            r"inputs\[0\], got float32, too coarse for differences: use dtype=xgrad.float64",
        ),
        (
            lambda: gradgradcheck(RIGHT, random_leaf(3, dtype=xgrad.complex64)),
            TypeError,
            r"gradgradcheck: .* got complex64, too coarse",
        ),
        (
            lambda: gradcheck(lambda x: (x, 3.0), random_leaf(3)),
            TypeError,
            r"expected tensors of the function, got float for result\[1\]",
        ),
        (
            lambda: gradgradcheck(RIGHT, random_leaf(3), [random_leaf(3)] * 2),
            TypeError,
            "gradgradcheck: expected grad_outputs for 1 results, got 2",
        ),
        (
            lambda: gradcheck(lambda x: (x.astype(xgrad.float32) ** 3) * 1000, random_leaf(3)),
            AssertionError,
            r"the result is float32, too coarse for differences$",
        ),
        (
            lambda: gradcheck(xgrad.real, random_leaf(3), complex_step=True),
            TypeError,
            "complex_step: expected a complex result of a complex input, got float64",
        ),
        (
            lambda: gradcheck(RIGHT, random_leaf(3, dtype=xgrad.complex128), complex_step=True),
            TypeError,
            r"expected float32 or float64 for inputs\[0\], got complex128: complex_step is",
        ),
    ],
)
def test_calls_that_cannot_be_checked_are_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
