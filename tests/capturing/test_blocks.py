"""Elementwise calls on large arrays, which a replay makes block by block: to the last bit what they give as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.tensor import Tensor
from xgrad_numpy import planned

ROWS, COLUMNS = 600, 500  # more elements than are done at once, in blocks that do not divide them

ELEMENT = xgrad.Tensor([[1.5]])

Step = Callable[[Tensor, Tensor], Any]


def shifted(x: Tensor, y: Tensor) -> Tensor:
    a, b, c, d = x[1:], y[:-1], x[:-1], y[1:]
    return (a * b + c) - d


STEPS: dict[str, Step] = {
    "one result": lambda x, y: xgrad.exp(x * 2) + y,
    "several results": lambda x, y: (x * 2, xgrad.tanh(x * y) - 1, y + 0.5),
    "results of results": lambda x, y: (z := x * y, z + x, xgrad.maximum(z, y)),
    "a row": lambda x, y: (x + y[0]) * x - y[1],
    "a column": lambda x, y: x * (column := y[:, :1]) + column,
    "one element": lambda x, y: (x * y[0, 0] + x) / y[:1, :1],
    "one element with axes, from before": lambda x, y: (x * ELEMENT + y) / ELEMENT,
    "other dtypes": lambda x, y: xgrad.where(x > y, x * 2, y - x) + xgrad.astype(x > 0, xgrad.float64),
    "transposed": lambda x, y: (x.mT * y.mT + 1) * 3 - x.mT,
    "mixed orders": lambda x, y: xgrad.reshape(y, (COLUMNS, ROWS)).mT * x + 1,
    "every other": lambda x, y: (x[:, ::2] * y[:, ::2] + 1) * x[:, 1::2],
    "backwards": lambda x, y: (x[::-1] * y + x) * 2,
    "shifted": shifted,
    "two axes less": lambda x, y: xgrad.reshape(x * 2 + y, (-1,)) * 0.5 + 1,
    "a view, and a row of it": lambda x, y: (z := xgrad.reshape(x * y, (COLUMNS, ROWS))) * z[0] + 1,
    "a view, and it backwards": lambda x, y: (z := xgrad.reshape(x * y, (-1,))) * z[::-1] + 1,
    "a part, and it transposed": lambda x, y: (z := (x * y)[:COLUMNS]) * z.mT + 1,
    "a product between": lambda x, y: (x * 2 + y) @ (y.mT * 0.5 - 1) * 1e-3,
}  # fmt: skip
#: In which one block would read what another has written.
WHOLE = ("a view, and a row of it", "a view, and it backwards")


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether anything was cut into blocks, plan by plan."""
    found, in_blocks = [], planned.in_blocks

    def noted(actions: Iterable[Any], *args: Any) -> list[Any]:
        before = list(actions)
        after = in_blocks(before, *args)
        found.append(len(after) > len(before))
        return after

    monkeypatch.setattr(planned, "in_blocks", noted)
    return found


def arrays(seed: int, dtype: str) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    x, y = (xgrad.Tensor(rng.standard_normal((ROWS, COLUMNS)).astype(dtype)) for _ in range(2))
    return x, y


def values(results: Any) -> list[np.ndarray]:
    return [result.numpy() for result in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", STEPS)
def test_replays_in_blocks_are_the_same_bits(name: str, dtype: str, blocks: list[bool]) -> None:
    step = STEPS[name]
    captured = xgrad.capture(step)
    kept = []
    for seed in range(4):
        x, y = arrays(seed, dtype)
        kept.append((values(captured(x, y)), values(step(x, y)), [x.numpy(), y.numpy()], arrays(seed, dtype)))
    assert captured.refusal is None and captured.recordings == 1
    assert any(blocks) is (name not in WHOLE)
    for mine, expected, given, before in kept:  # at the end: no replay may write to what another has returned
        for a, b in zip([*mine, *given], [*expected, *(t.numpy() for t in before)], strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("name", STEPS)
def test_gradients_in_blocks_are_the_same_bits(name: str) -> None:
    def gradients(x: Tensor, y: Tensor) -> Any:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        results = STEPS[name](x, y)
        total = sum(xgrad.sum(result * result) for result in (results if isinstance(results, tuple) else (results,)))
        total.backward()
        return x.grad, y.grad

    captured = xgrad.capture(gradients)
    for seed in range(3):
        x, y = arrays(seed, "float32")
        for a, b in zip(values(captured(x, y)), values(gradients(x, y)), strict=True):
            np.testing.assert_array_equal(a, b)
    assert captured.refusal is None and captured.recordings == 1


@pytest.mark.parametrize(
    "shape", [(1, ROWS * COLUMNS), (1, 1, ROWS * COLUMNS), (ROWS * COLUMNS, 1), (1, ROWS, COLUMNS)]
)
def test_axes_of_one_are_cut_like_others(shape: tuple[int, ...], blocks: list[bool]) -> None:
    def step(x: Tensor, y: Tensor) -> Any:
        z = xgrad.sum(xgrad.stack([x, y, x]), axis=0) * 0.5 + y  # which take the place of the sum
        return xgrad.cumulative_sum(z, axis=0), (x * y[..., :1, :1] + x) * ELEMENT

    captured = xgrad.capture(step)
    for seed in range(4):
        x, y = (xgrad.reshape(t, shape) for t in arrays(seed, "float32"))
        for a, b in zip(values(captured(x, y)), values(step(x, y)), strict=True):
            np.testing.assert_array_equal(a, b)
    assert captured.refusal is None and captured.recordings == 1 and any(blocks)


@pytest.mark.parametrize("look", ["nobody looks", "gradients", "parameters"])
def test_updates_in_blocks_follow_memory_that_moves(look: str) -> None:
    def training(capture: Callable[[Any], Any]) -> tuple[Any, nn.Linear]:
        layer = nn.Linear(COLUMNS, ROWS)
        with xgrad.no_grad():
            layer.weight *= 0.1
        optimizer = optim.AdamW(layer.parameters(), lr=1e-3)

        @capture
        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, layer

    found = []
    for capture in (xgrad.capture, lambda step: step):
        xgrad.manual_seed(0)
        step, layer = training(capture)
        seen = []
        for seed in range(6):
            x, _ = arrays(seed, "float32")
            seen.append(step(x).detach())
            if look == "gradients":
                seen.append(layer.weight.grad.detach())
            elif look == "parameters":
                seen.append(layer.weight.detach())
        found.append([x.numpy() for x in (*seen, layer.weight.detach())])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
