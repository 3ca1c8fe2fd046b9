"""The text of captured programs, compared with the expected text.

The subjects are names, operators, numbers, and the effects of a replay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import xgrad
from capture.twins import on_cpu, training_step
from xgrad import nn, optim

pytestmark = on_cpu


def parts(text: str) -> tuple[list[str], list[str]]:
    """Return the calls of a program, without shapes and lines of code, and the effects."""
    _, calls, effects = text.split("\n\n")
    return [call.partition("  ")[0] for call in calls.splitlines()], effects.splitlines()


def listing(
    step: Any, *args: Any, times: int = 2, between: Callable[[], Any] = lambda: None
) -> str:
    """Return the listing of the last program of a step after some calls."""
    captured = xgrad.capture(step)
    for _ in range(times):
        between()
        captured(*args)
    assert captured.refusal is None
    text = captured.program()
    return text[text.rindex("program  ") :]


@pytest.fixture(scope="module")
def training() -> str:
    """Return the listing of a step of a network with Adam and dropout."""
    model = nn.MLP([20, 16, 12, 4], "relu", 0.1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    step = training_step(model, optimizer)
    return listing(
        step,
        xgrad.ones((8, 20)),
        xgrad.asarray([0, 1, 2, 3] * 2),
        times=4,
        between=optimizer.zero_grad,
    )


def test_header_lists_counts_bytes_arguments_state_and_numbers(training: str) -> None:
    count, header = len(parts(training)[0]), training.split("\n\n")[0]
    assert re.match(
        rf"program    calls: {count}, inputs: 2, state: 16, temporaries: [1-9][\d,]* bytes\n",
        training,
    )
    assert "\ninputs     arg0: float32 (8, 20), arg1: int64 (8,)\n" in training
    for name in ("params", "grads", "exp_avg", "exp_avg_sq"):
        assert re.search(rf"[ ]{name}: float32 \(592,\)[,\n]", training)
    assert "params[0]: float32 (16, 20), grads[0]: float32 (16, 20)" in training
    assert (
        "lr: optimizer.param_groups[0]['lr']" in training
        and max(map(len, header.splitlines())) <= 120
    )


def test_temporaries_are_numbered_in_order_and_defined_before_use(training: str) -> None:
    known: list[str] = []
    for call in parts(training)[0]:
        result, _, operands = (
            call.rpartition(" = ") if call[0] == "%" and " = " in call else ("", "", call)
        )
        assert set(re.findall(r"%\d+", operands)) <= set(known)
        known += [result] if result else []
    assert known == [f"%{i}" for i in range(len(known))]


def test_calls_and_effects_of_training_read_as_python(training: str) -> None:
    for pattern in (
        r"%\d+ = matmul\(arg0, %\d+\) +float32 \(8, 16\) +twins.py:\d+",
        r"%\d+ = matrix_transpose\(params\[0\]\) +float32 \(20, 16\) view +twins.py:\d+",
        r"%\d+ \+= params\[1\] +twins.py:\d+",
        r"%\d+ = random_bits\(seed, draws \+ 1, .*",
        r"check %\d+ is True +twins.py:\d+",
        r"grads\[1\]\[\.\.\.\] = %\d+ +twins.py:\d+",
        r"exp_avg \*= betas\[0\] +twins.py:\d+",
        r"%\d+ = \(1 - betas\[0\]\) \* grads .*",
        (
            r"%\d+ \*= lr \* \(1 - betas\[1\] \*\* \(step \+ 1\)\) \*\* 0\.5 / \(1 - betas\[0\]"
            r" \*\* \(step \+ 1\)\)  .*"
        ),
        r"params -= %\d+ +twins.py:\d+",
    ):
        assert re.search(rf"^{pattern}$", training, re.MULTILINE), pattern
    first, *effects, last = parts(training)[1]
    assert first == "updates    grads, exp_avg, exp_avg_sq, params" and re.fullmatch(
        r"return %\d+", last
    )
    assert {
        "step = step + 1",
        "xgrad.random = (seed, draws + 1 + 1)",
        "model.0.bias.grad = grads[1]",
    } < set(effects)


def test_operators_keys_and_constants_read_as_python() -> None:
    def step(x: Any) -> Any:
        y = xgrad.concat(
            [x[:-1, ..., None][:, 0] ** 2, x**-3, ~(xgrad.astype(x, xgrad.int64) << 1) % 3]
        )
        return (
            y,
            (-2.0) ** x,
            xgrad.acos(x[::-1] / 10),
            x[xgrad.asarray([0, 2])],
            x + xgrad.zeros((20, 3)),
        )

    text = listing(step, xgrad.asarray([1.0, 2.0, 3.0]))
    assert "\nconstants  c0: int64 (2,) = [0 2], c1: float32 (20, 3)\n" in text
    for part in (
        "arg0[:-1, ..., None]",
        "[:, 0]",
        "= arg0[::-1]",
        "(-2) ** arg0",
        " ** 2 ",
        "arg0 ** (-3)",
        "concat([%",
        "acos(%",
        "arg0[c0]",
    ):
        assert part in text


def test_numbers_of_several_optimizers_have_full_names() -> None:
    a, b = (xgrad.Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    first, second = optim.SGD([a], lr=0.1), optim.SGD([b], lr=0.1)

    def step() -> None:
        (a * b).sum().backward()
        first.step()
        second.step()

    text = listing(step, times=4)
    rates = [f"{name}.param_groups[0]['lr']" for name in ("first", "second")]
    assert f" = {rates[0]} * grads" in text and f" = {rates[1]} * grads1" in text


def test_rebound_state_gradients_draws_modes_and_containers_are_listed() -> None:
    generator, model = xgrad.random.Generator(3), nn.Linear(2, 2)
    w = xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True)

    def step(x: Any) -> Any:
        model.eval()
        w.grad = None
        (w * x).sum().backward()
        with xgrad.no_grad():
            w.data = w - w.grad * generator.rand(3) * generator.rand(3) * xgrad.random.rand(3)
        return {"rows": [x[::-1], x[0]], "x": x, "text": "%0", "none": None}

    text = listing(step, xgrad.ones(3), times=1)
    assert "random_bits(generator.seed, generator.draws + 1, " in text
    *effects, result = parts(text)[1]
    assert {
        "generator = (generator.seed, generator.draws + 1 + 1)",
        "model.training = False",
    } < set(effects)
    assert [line.partition(" = %")[0] for line in effects if " = %" in line] == ["w", "w.grad"]
    assert re.fullmatch(
        r"return \{'rows': \[%\d+, %\d+\], 'x': arg0, 'text': '%0', 'none': None\}", result
    )


def test_each_program_is_listed_once() -> None:
    double = xgrad.capture(lambda x: 2 * x)
    for n in (1, 2, 3):
        double(xgrad.ones(n))
    assert re.findall(r"arg0: float32 (\S+)", double.program()) == ["(1,)", "(2,)", "(3,)"]
