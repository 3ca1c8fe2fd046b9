"""Captured steps with exceptions and in threads, compared with eager steps.

An exception leaves the same state as in the eager step, and threads do not affect each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xgrad
from capture import twins
from capture.twins import (
    array,
    assert_concrete,
    batch,
    compare,
    eager,
    everything,
    snapshot,
    training,
)
from xgrad import nn, optim
from xgrad.backend.devices import current_device
from xgrad.backend.recording import recording


def begun() -> tuple[Any, Any, Any]:
    """Return a network and an optimizer that have taken a step, and the step."""
    model, optimizer, step = training(eager)
    step(*batch(0))
    return model, optimizer, step


@pytest.mark.parametrize("at", range(5))
def test_exception_of_the_step_leaves_what_the_eager_step_leaves(at: int) -> None:
    def scenario(capture: Any) -> Iterator[Any]:
        model, optimizer, _ = begun()
        turn = 0

        def fail(place: int) -> None:
            if place == at and turn in (0, 3):
                raise ArithmeticError(f"at {place}")

        @capture
        def step(x: Any, y: Any, turn: int) -> Any:
            fail(0)
            optimizer.zero_grad()
            fail(1)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            fail(2)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            fail(3)
            optimizer.step()
            fail(4)
            return loss

        for turn in range(6):
            try:
                yield step(*batch(turn), turn)
            except ArithmeticError as error:
                yield str(error)
            yield (
                everything(model, optimizer),
                optimizer.param_groups[0]["lr"],
                xgrad.random.default_generator._state,
            )
            assert_concrete(model, optimizer)

    (captured,) = compare(scenario)
    assert captured.refusal is None


@twins.on_cpu  # checks of values
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_exception_of_a_check_before_or_after_an_update_leaves_what_eager_leaves(
    after: bool,
) -> None:
    def scenario(capture: Any) -> Iterator[Any]:
        model, optimizer, _ = begun()
        train = twins.training_step(model, optimizer, twins.mean_square if after else None)
        step = capture(
            lambda x, y: (train(x, y), nn.functional.cross_entropy(model(x), y).detach())
        )
        for i in range(9):
            x, y = batch(i)
            try:
                yield step(x, y + 5 if i in (0, 4, 7) else y)
            except IndexError as error:
                yield str(error)
            yield everything(model, optimizer)
            assert_concrete(model, optimizer)

    twins.compare_replays(scenario)


@twins.on_cpu
# CaptureWarning: without a compiler
@pytest.mark.filterwarnings("ignore:capture. native=True:xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("trains", [False, True], ids=["loss", "gradient"])
def test_a_step_may_be_called_by_a_handler_during_its_own_replay(
    trains: bool, native: bool
) -> None:
    """NumPy calls its error handler in the middle of a replay, while values are in buffers."""
    w = xgrad.ones(8, requires_grad=True)

    def step(x: xgrad.Tensor) -> Any:
        loss = (xgrad.exp(x * w) * 2 + x).sum()
        if not trains:
            return loss.detach(), x * 3
        loss.backward()
        gradient, w.grad = w.grad * 1, None
        return loss.detach(), gradient

    inputs = [
        xgrad.asarray(np.arange(8, dtype=np.float32) * scale) for scale in (0.1, 200, 0.2, 300)
    ]
    with np.errstate(all="ignore"):
        right = [snapshot(step(x)) for x in inputs]
        captured = xgrad.capture(step, native=native)
        for _ in range(3):
            captured(inputs[0])
    results, depth = list[bool](), 0

    def handle(error: str, flag: int) -> None:
        nonlocal depth
        if depth == 2:
            return
        depth += 1
        i = len(results) % 4
        results.append(snapshot(captured(inputs[i])) == right[i])
        depth -= 1

    for i in (1, 0, 3, 2, 1, 3):
        with np.errstate(all="call", call=handle):
            assert snapshot(captured(inputs[i])) == right[i]
    assert len(results) >= 4 and all(results)
    assert captured.refusal is None and captured.recordings == 1


# Threads


def in_threads(*calls: Callable[[], Any]) -> None:
    """Run functions at once, and raise what one of them raises."""
    device = str(current_device())
    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [
            pool.submit(lambda call: xgrad.default_device(device)(call)(), call) for call in calls
        ]:
            future.result()


def test_eight_threads_that_capture_replay_and_run_eagerly_give_the_bits_of_one() -> None:
    def run(capture: Any, seed: int) -> list[Any]:
        rng = xgrad.random.Generator(seed)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
        weights = {name: array(*x.shape, seed=seed) for name, x in model.state_dict().items()}
        model.load_state_dict(weights)
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        captured = capture(twins.training_step(lambda x: model(x + rng.rand(x.shape)), optimizer))
        shown = [snapshot(captured(*batch(i + seed, 4 + i % 2))) for i in range(12)]
        return [*shown, snapshot(everything(model, optimizer))]

    expected = [run(eager, seed) for seed in range(8)]
    got: list[Any] = [[] for _ in range(8)]

    def work(seed: int) -> None:
        for turn in range(5):
            got[seed].append(run(eager if seed % 4 == 3 else xgrad.capture, seed))
            assert recording.get() is None, turn

    in_threads(*[lambda seed=seed: work(seed) for seed in range(8)])  # type: ignore[misc]
    assert all(each == [one] * 5 for each, one in zip(got, expected, strict=True))


def test_captured_step_called_by_eight_threads_gives_the_bits_of_one() -> None:
    w = array(3)
    step = xgrad.capture(lambda x: xgrad.tanh(x * w) + x)
    expected = [(xgrad.tanh(array(3, seed=i) * w) + array(3, seed=i)).tolist() for i in range(50)]

    def call() -> None:
        for i in range(50):
            assert step(array(3, seed=i)).tolist() == expected[i]

    in_threads(*[call] * 8)
    assert step.recordings == 1 and step.refusal is None


def test_other_thread_during_a_recorded_step_works_on_with_its_tensors() -> None:
    model, optimizer, train = begun()
    seen = []

    def work() -> None:
        other = array(3)
        seen.append((recording.get(), (2 * other + xgrad.zeros(3)).tolist(), type(other.device)))
        seen.append(model(batch(0)[0]).tolist())

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        loss = train(x, y)
        if recording.get() is not None:
            in_threads(work)
        return loss

    for i in range(3):
        step(*batch(i))
    assert step.recordings == 1 and len(seen) == 2 and step.refusal is None
    assert seen[0][0] is None and seen[0][2] is xgrad.Device
    assert seen[0][1] == (2 * array(3)).tolist()
    assert_concrete(model, optimizer)
