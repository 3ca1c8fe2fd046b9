"""Signals, exceptions and threads: they leave the library and the state as they were before a step, or after it.

``INTERRUPTS=20000`` in the environment asks for 20 000, of which a quarter are signals at random times here.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xgrad
from capture import twins
from capture.twins import array, assert_concrete, batch, compare, eager, everything, snapshot, training
from interrupts import INTERRUPTS, Interrupt, call_with_signal
from xgrad import nn, optim
from xgrad.backend.device import tracing
from xgrad.backend.devices import current_device
from xgrad.capture import CaptureError

SIGNALS = INTERRUPTS // 4
LINES = 3 * SIGNALS // 10  # at which the step is interrupted


def begun() -> tuple[Any, Any, Any]:
    """Return a network and an optimizer that have taken a step, and the step."""
    model, optimizer, step = training(eager)
    step(*batch(0))
    return model, optimizer, step


def state_of(model: Any, optimizer: Any) -> Any:
    """Return all that a step changes, as it is compared."""
    return snapshot([everything(model, optimizer), xgrad.random.default_generator._state])


@pytest.fixture
def states(by_default: None) -> list[Any]:
    """The states of the training run after each of its first steps."""
    model, optimizer, step = begun()
    snapshots = [state_of(model, optimizer)]
    for i in range(1, 6):
        step(*batch(i))
        snapshots.append(state_of(model, optimizer))
    return snapshots


def check_goes_on(model: Any, optimizer: Any, captured: Any, states: list[Any], before: int) -> int:
    """Check that the state is that of `before` steps or of one more, and that the captured step goes on from there."""
    assert_concrete(model, optimizer)
    now = states.index(state_of(model, optimizer), before, before + 2)  # ValueError for any other state
    for i in range(now + 1, now + 3):
        captured(*batch(i))
        assert state_of(model, optimizer) == states[i]
    assert captured.refusal is None
    return now - before


def captured_after(calls: int) -> tuple[Any, Any, Any]:
    """Return a network, its optimizer, and its captured step, which was called so many times."""
    model, optimizer, step = begun()
    captured = xgrad.capture(step)
    for i in range(calls):
        captured(*batch(1 + i))
    return model, optimizer, captured


@twins.on_cpu
@pytest.mark.parametrize("calls", [0, 2], ids=["trace", "replay"])
def test_signal_at_any_time_leaves_the_state_before_or_after(calls: int, states: list[Any]) -> None:
    rng, outcomes, data = np.random.default_rng(calls), [0, 0], batch(1 + calls)
    _, _, captured = captured_after(calls)
    start = time.perf_counter()
    captured(*data)
    took = time.perf_counter() - start
    for _ in range(SIGNALS // 2):
        model, optimizer, captured = captured_after(calls)
        call_with_signal(rng.uniform(0, 2 * took), functools.partial(captured, *data))
        outcomes[check_goes_on(model, optimizer, captured, states, calls)] += 1
    assert min(outcomes) > 0


def lines_of(call: Callable[[], Any], last: int = 0) -> int:
    """Call a function, and return how many lines of the library it executes; at the `last`, raise `Interrupt`."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if not ("xgrad" in frame.f_code.co_filename or frame.f_code.co_filename.startswith("<")):
            return None  # not of the library, nor of code that it has written
        count += event == "line"
        if event == "line" and count == last:
            sys.settrace(None)
            raise Interrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        pass
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("calls", [0, 2], ids=["trace", "replay"])
def test_interrupt_at_a_line_leaves_the_state_before_or_after(calls: int, states: list[Any]) -> None:
    _, _, captured = captured_after(calls)
    outcomes, data = [0, 0], batch(1 + calls)
    total = lines_of(functools.partial(captured, *data))
    for line in np.unique(np.linspace(1, total + 1, min(total, LINES)).astype(int)):
        model, optimizer, captured = captured_after(calls)
        lines_of(functools.partial(captured, *data), line)
        try:
            outcomes[check_goes_on(model, optimizer, captured, states, calls)] += 1
        except BaseException as error:
            raise AssertionError(f"line {line} of {total}: {error}") from error
    assert min(outcomes) > 0


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
            optimizer.param_groups[0]["lr"] *= 0.9
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
def test_exception_of_a_check_before_or_after_an_update_leaves_what_eager_leaves(after: bool) -> None:
    def scenario(capture: Any) -> Iterator[Any]:
        model, optimizer, _ = begun()
        train = twins.training_step(model, optimizer, twins.mean_square if after else None)
        step = capture(lambda x, y: (train(x, y), nn.functional.cross_entropy(model(x), y).detach()))
        for i in range(9):
            x, y = batch(i)
            try:
                yield step(x, y + 5 if i in (0, 4, 7) else y)
            except IndexError as error:
                yield str(error)
            yield everything(model, optimizer)
            assert_concrete(model, optimizer)

    twins.compare_replays(scenario)


# Threads


def in_threads(*calls: Callable[[], Any]) -> None:
    """Run functions at once, and raise what one of them raises."""
    device = str(current_device())
    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(lambda call: xgrad.default_device(device)(call)(), call) for call in calls]:
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
            assert tracing.get() is None, turn

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


def test_other_thread_during_a_trace_works_on_unless_it_uses_the_tensors_of_the_step() -> None:
    model, optimizer, train = begun()
    seen = []

    def work() -> None:
        other = array(3)
        seen.append((tracing.get(), (2 * other + xgrad.zeros(3)).tolist(), type(other.device)))
        with pytest.raises(CaptureError, match="another thread"):
            model(batch(0)[0])

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        loss = train(x, y)
        if tracing.get() is not None:
            in_threads(work)
        return loss

    for i in range(3):
        step(*batch(i))
    assert step.recordings == len(seen) == 1 and step.refusal is None
    assert seen[0][0] is None and seen[0][2] is xgrad.Device
    assert seen[0][1] == (2 * array(3)).tolist()
    assert_concrete(model, optimizer)
