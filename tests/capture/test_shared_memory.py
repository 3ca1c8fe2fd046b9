"""Captured steps whose arguments, state and results share memory, compared with eager steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xgrad
from capture.twins import Capture, array, compare, compare_replays, on_cpu, replayed
from xgrad import nn, optim


def play(step: Callable[..., Any], build: Callable[[], list[Any]]) -> Callable[[Capture], Any]:
    """Return a scenario that calls a step, and yields its results, its arguments and other tensors.

    `build` returns the arguments of each call, and last the other tensors.
    """

    def scenario(capture: Capture) -> Iterator[Any]:
        captured = capture(step)
        *calls, watched = build()
        for args in calls:
            try:
                result = captured(*args)
            except (KeyError, ValueError) as error:
                result = type(error).__name__
            yield result, [x.detach() for x in args], [x.detach() for x in watched]

    return scenario


def scale_both(a: Any, b: Any) -> Any:
    a *= 10
    b *= 10
    return a + b


def scale_first(a: Any, b: Any) -> Any:
    a *= 10
    return b.sum()


def raise_after_write(a: Any, b: Any) -> None:
    a *= 10
    raise KeyError("after a write")


def write_through_reshape(a: Any, b: Any) -> Any:
    flat = xgrad.reshape(a, (-1,))
    flat[...] = 7
    return a.sum() + b.sum()


def write_twice(a: Any, b: Any) -> Any:
    a += 1
    xgrad.reshape(a, (-1,))[...] = 7
    return a.sum() + b.sum()


def apart() -> list[Any]:
    x, y = array(4), array(4, seed=1)
    return [*[(x[1:], y[1:])] * 3, (x, y)]


def overlapping() -> list[Any]:
    x, y, z = array(4), array(3, seed=1), array(3, seed=2)
    return [*[(y, z)] * 2, *[(x[1:], x[:-1])] * 2, (y, z), (x, y, z)]


def overlapping_first() -> list[Any]:
    x = array(4)
    return [*[(x[:2], x[1:3])] * 3, (x,)]


def nested() -> list[Any]:
    x, y = array(4), array(3, seed=1)
    return [*[(y, array(4))] * 2, (x[1:], x), (x[1:], x), (x, y)]


def reversed_twice() -> list[Any]:
    x = array(4)
    return [*[(x[::-1], x)] * 3, (x,)]


def single() -> list[Any]:
    x, y = array(3, 4), array(1)
    return [*[(x[1:], y)] * 3, *[(x[:, :2], y)] * 3, (x, y)]


def middle() -> list[Any]:
    x = array(6)
    row = x[1:5]
    return [*[(row[1:], x)] * 3, (x, row)]


def broadcast() -> list[Any]:
    x = array(3)
    return [*[(xgrad.broadcast_to(x, (2, 3)), x)] * 3, (x,)]


STEPS = (scale_both, scale_first, raise_after_write, write_through_reshape, write_twice)
ARGUMENTS = (
    apart,
    overlapping,
    overlapping_first,
    nested,
    reversed_twice,
    middle,
    single,
    broadcast,
)


@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("build", ARGUMENTS, ids=lambda build: build.__name__)
def test_step_of_arguments_that_share_memory_leaves_what_eager_leaves(
    step: Any, build: Any
) -> None:
    compare(play(step, build))


def test_arguments_of_separate_bases_are_both_written_by_replays() -> None:
    compare_replays(play(scale_both, apart))


# State and arguments


def logged(capture: Capture, take: Callable[[Any], Any]) -> Iterator[Any]:
    """Play a training run that writes the loss to a slot of a log: an argument, or state."""
    xgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer, log, x = optim.SGD(model.parameters(), lr=0.1), xgrad.zeros(5), array(6, 3)

    @capture
    def step(slot: Any) -> None:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        slot[...] = loss.detach()

    for i in range(5):
        step(take(log[i : i + 1]))
        yield log, model.state_dict()


def test_slot_of_a_log_is_written_beside_an_optimizer_and_running_statistics() -> None:
    compare_replays(lambda capture: logged(capture, lambda slot: slot))


@replayed
def test_slot_in_the_state_is_written_beside_running_statistics(capture: Capture) -> Iterator[Any]:
    norm, log = nn.BatchNorm1d(2), xgrad.zeros((4, 2))
    slot, other = log[1], log[2:]

    @capture
    def step(x: Any) -> Any:
        y = norm(x)
        slot[...] = y.detach().sum(axis=0)
        other[...] = slot * 2
        return slot

    for i in range(4):
        yield step(array(5, 2, seed=i)), log, slot, other, norm.state_dict()


VIEWS = {
    "itself": lambda w: w,
    "slice": lambda w: w[1:],
    "row": lambda w: w[None],
    "reversed": lambda w: w[::-1],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
def test_argument_that_is_state_or_a_view_of_it_is_told_from_others(name: str) -> None:
    take = VIEWS[name]

    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(3)

        @capture
        def step(a: Any) -> Any:
            a *= 10
            return w.sum()

        other = take(array(3, seed=1))
        for a in (other, other, take(w), take(w), other, take(w)):
            yield step(a), w, other

    captures = compare(scenario)
    if name != "reversed":  # whose strides need its base, which is no argument
        assert captures[0].refusal is None


def test_argument_is_state_that_the_step_writes_to() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(3)

        @capture
        def step(a: Any) -> Any:
            nonlocal w
            w *= 10
            return a.sum()

        other = array(3, seed=1)
        for a in (other, other, w, w[:], other):
            yield step(a), w, other

    compare_replays(scenario)


only_returned: Any = None


@replayed
def test_global_that_is_only_returned_is_followed(capture: Capture) -> Iterator[Any]:
    global only_returned
    only_returned = array(2)
    step = capture(lambda x: (only_returned, x * 2))
    for i in range(4):
        if i > 1:
            only_returned = array(2, seed=i)
        yield step(array(2))


# Exceptions


def counted(step: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Return a step, and the list of its runs, to which each eager run and each trace adds."""
    runs: list[int] = []

    def counting(*args: Any) -> Any:
        runs.append(len(runs))
        return step(*args)

    return counting, runs


@on_cpu
def test_step_with_a_failing_check_at_every_other_call_is_traced_once() -> None:
    classes = xgrad.asarray([0, 1])
    step = xgrad.capture(lambda x, y: nn.functional.cross_entropy(x, y))
    scores = array(2, 3)
    expected = step(scores, classes).item()
    for _ in range(6):
        with pytest.raises(IndexError, match="expected target from 0 to 2"):
            step(scores, classes + 5)
        assert step(scores, classes).item() == expected
    assert step.recordings == 1
    assert step.refusal is None


def test_step_that_raises_for_some_arguments_is_not_traced_for_them_without_end() -> None:
    def raising(x: Any, mode: str) -> Any:
        if mode == "bad":
            raise KeyError(mode)
        return x * 2

    counting, runs = counted(raising)
    traces: list[bool] = []

    def watching(*args: Any) -> Any:
        traces.append(xgrad.backend.recording.recording.get() is not None)
        return counting(*args)

    step, x = xgrad.capture(watching), array(2)
    for _ in range(10):
        with pytest.raises(KeyError, match="bad"):
            step(x, "bad")
        step(x, "good")
    assert step.recordings == 1  # of a good call, which is replayed
    assert len(runs) == 11
    assert sum(traces) <= 6
    assert not traces[-1]


def test_step_that_raises_at_first_is_traced_once_it_succeeds() -> None:
    calls = 0

    def failing(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 9:
            raise KeyError(calls)
        return x * 2

    step, x = xgrad.capture(failing), array(2)
    for _ in range(8):
        with pytest.raises(KeyError):
            step(x)
    assert [step(x).tolist() for _ in range(4)] == [(x * 2).tolist()] * 4
    assert step.recordings == 1
    assert calls == 10  # eagerly, and for the trace
    assert step.refusal is None


# Verification


def verified(capture: Capture) -> Capture:
    return lambda step: capture(step, verify=1)


@pytest.mark.parametrize("build", [apart, single, overlapping], ids=lambda build: build.__name__)
@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
def test_verified_step_writes_to_bases_of_arguments_once(build: Callable[[], list[Any]]) -> None:
    scenario = play(scale_both, build)
    compare(lambda capture: scenario(verified(capture)))


def test_verified_step_of_a_broadcast_argument_is_restored() -> None:
    scenario = play(lambda a, b: a.sum() * b, broadcast)
    compare_replays(lambda capture: scenario(verified(capture)))


def test_write_to_a_view_of_what_became_a_leaf_raises_as_the_eager_step_does() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        base, log = array(4), array(2)
        view = base[1:]

        @capture
        def step(x: Any) -> Any:
            x[...] = x * 2
            log[...] = log + 1
            return x.sum()

        for turn in range(5):
            if turn == 2:
                base.requires_grad_()
            try:
                yield step(view)
            except RuntimeError as error:
                yield str(error)
            yield base.detach(), log

    compare(scenario)


def test_write_to_an_element_raises_as_the_eager_step_does() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(3)
        step = capture(lambda x: (operator.setitem(x, ..., 2.0), x * 1)[1])
        for x in (w.sum(), w.sum(), w[1], w.sum()):
            try:
                yield step(x), x
            except TypeError as error:
                yield str(error)

    compare(scenario)


def test_data_of_an_argument_that_is_a_view_of_a_whole_tensor() -> None:
    step = xgrad.capture(lambda x: x.data[0] * 2)
    base = xgrad.ones((2, 3))
    for _ in range(3):
        assert step(base.data).tolist() == [2.0, 2.0, 2.0]
    base += 1
    assert step(base.data).tolist() == [4.0, 4.0, 4.0]
    assert step.refusal is None
    assert step.recordings == 1
