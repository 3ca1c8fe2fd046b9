"""`autograd.checkpoint` has the gradients of plain calls at any order, with less memory.

They are also compared with finite differences.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor, amp, capture, nn, optim
from xgrad.autograd import checkpoint, checkpoint_sequential

Apply = Callable[..., Any]


def plain(function: Apply, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def loss(apply: Apply, w: Tensor, x: Tensor, drop: nn.Module) -> Tensor:
    """Return a loss by a function with all kinds of arguments.

    These are containers, options, an integer, and a tensor from outside; the function has dropout.
    """
    doubled = 2 * w

    def part(
        inputs: dict[str, Any], power: int, *, scale: Tensor
    ) -> tuple[dict[str, Tensor], Tensor]:
        h = drop(xgrad.tanh(inputs["x"] @ doubled)) * scale
        return {"h": h**power}, xgrad.take(h, inputs["rows"][0], axis=0)

    first, rows = apply(
        part, {"x": x, "rows": [xgrad.asarray([2, 0, 2], device=x.device)]}, 3, scale=w[0, ...]
    )
    return (first["h"] * x).sum() + (rows * rows).sum()


def test_gradients_are_those_of_a_plain_call_at_first_and_second_order(device: str) -> None:
    drop = nn.Dropout(0.4)

    def gradients(apply: Apply) -> list[np.ndarray]:
        w, x = leaf64(uniform(3, 3), device), leaf64(uniform(5, 3, seed=1), device)
        xgrad.manual_seed(3)
        loss(apply, w, x, drop).backward()
        assert w.grad is not None and x.grad is not None
        after = xgrad.random.rand(2)
        first = xgrad.autograd.grad(loss(apply, w, x, drop), [w, x], create_graph=True)
        second = xgrad.autograd.grad((first[0] ** 2).sum() + (first[1] ** 3).sum(), [w, x])
        return [host(t) for t in (w.grad, x.grad, after, *first, *second)]

    for got, wanted in zip(gradients(checkpoint), gradients(plain), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_derivatives_agree_with_finite_differences() -> None:
    drop = nn.Dropout(0.0)
    inputs = leaf64(uniform(3, 3)), leaf64(uniform(5, 3, seed=1))
    assert xgrad.testing.gradcheck(lambda w, x: loss(checkpoint, w, x, drop), inputs)
    assert xgrad.testing.gradgradcheck(lambda w, x: loss(checkpoint, w, x, drop), inputs)


def mlp(activation: Any, width: int = 16) -> tuple[nn.Module, Tensor]:
    """Return an MLP of 50 layers, and inputs.

    Activations take more memory than weights.
    """
    xgrad.manual_seed(0)
    return nn.MLP([width] * 51, activation=activation), xgrad.random.randn((4096, width))


def halved(steps: list[Any], x: Tensor) -> Tensor:
    """Call functions one after the other; the first half is recomputed, in the same way."""
    if len(steps) <= 2:
        for step in steps:
            x = step(x)
        return x
    half = (len(steps) + 1) // 2
    return halved(steps[half:], checkpoint(halved, steps[:half], x))


@pytest.mark.parametrize(
    ("activation", "apply"),
    [
        (nn.GELU, lambda model, x: checkpoint_sequential(model, 10, x)),
        (nn.ReLU, lambda model, x: halved([*model], x)),
    ],
    ids=["segments", "nested"],
)
def test_peak_memory_of_50_layers_is_a_quarter_with_equal_gradients(
    activation: Any, apply: Apply
) -> None:
    model, x = mlp(activation)

    def run(apply: Apply) -> tuple[int, list[np.ndarray]]:
        model.zero_grad()
        tracemalloc.start()
        apply(model, x).sum().backward()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak, [host(p.grad) for p in model.parameters() if p.grad is not None]

    (most, wanted), (least, got) = run(plain), run(apply)
    assert most > 4 * least
    for x1, x2 in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(x1, x2)


def test_captured_training_has_the_same_losses_in_less_memory() -> None:
    def training(segments: int) -> tuple[list[float], int]:
        xgrad.manual_seed(0)
        model = nn.Sequential(
            *[nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.1)) for _ in range(16)]
        )
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        x = xgrad.random.randn((256, 8))

        @capture
        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            value = (checkpoint_sequential(model, segments, x) ** 2).mean()
            value.backward()
            optimizer.step()
            return value

        losses = [float(step(x)) for _ in range(4)]
        assert step.refusal is None
        memory = step.program().split("temporaries: ")[1].split(" bytes")[0]
        return losses, int(memory.replace(",", ""))

    (wanted, most), (got, least) = training(1), training(4)
    assert got == wanted and most > 2 * least


def test_autocast_of_the_first_call_holds_in_the_backward_pass() -> None:
    layer, seen = nn.Linear(2, 2), []

    def call(x: Tensor) -> Tensor:
        y = layer(x)
        seen.append(y.dtype)
        return y.astype(xgrad.float32)

    with amp.autocast("cpu"):
        y = checkpoint(call, xgrad.ones((3, 2)))
    y.sum().backward()
    assert seen == [xgrad.float16, xgrad.float16]


def test_result_without_need_of_a_gradient_has_no_graph(device: str) -> None:
    x, w = on(device, uniform(3)), leaf64(uniform(3), device)
    assert not checkpoint(lambda x: x * 2, x).requires_grad
    with xgrad.no_grad():
        assert not checkpoint(lambda x: x * w, x).requires_grad
    assert checkpoint(lambda: None) is None
    assert checkpoint(lambda: w * 2).requires_grad


ERRORS = [
    (
        "xp.autograd.checkpoint(1, x)",
        "TypeError: checkpoint: expected a function, got int: write checkpoint(f, x)",
    ),
    (
        "xp.autograd.checkpoint(lambda x: 1.0, x)",
        "TypeError: checkpoint: expected a tensor of the function, got flo…",
    ),
    (
        "xp.autograd.checkpoint_sequential([xp.sin], 2, x)",
        "ValueError: checkpoint_sequential: expected 1 to 1 segments, got 2",
    ),
]


@pytest.mark.parametrize(("call", "expected"), ERRORS, ids=[call for call, _ in ERRORS])
def test_refusal(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.ones(2, requires_grad=True))
