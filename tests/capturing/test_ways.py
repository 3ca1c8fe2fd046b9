"""Steps that go several ways by turns: each way is recorded once, and a way that is over is let go of."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import xgrad
from capturing.twins import Scenario, all_of, array, batch, network, training, twice
from xgrad import optim
from xgrad.capturing import CaptureWarning
from xgrad.nn import functional


def accumulating(in_step: bool) -> Scenario:
    """Return a training that updates its parameters at each fourth step only."""

    def scenario(capture: Callable[..., Any]) -> Iterator[Any]:
        xgrad.manual_seed(3)
        model = network()
        optimizer = optim.Adam(model.parameters(), lr=0.01)

        def update() -> None:
            optimizer.step()
            optimizer.zero_grad()

        @capture
        def step(x: Any, y: Any, last: bool) -> Any:
            loss = functional.cross_entropy(model(x), y) / 4
            loss.backward()
            if last and in_step:
                update()
            return loss

        for i in range(40):
            yield step(*batch(i), i % 4 == 3)
            if i % 4 == 3 and not in_step:
                update()
            yield all_of(model, optimizer)

    return scenario


def accumulating_by_hand(capture: Callable[..., Any]) -> Iterator[Any]:
    p = array(4, 3).requires_grad_()

    @capture
    def step(x: Any) -> Any:
        loss = (xgrad.tanh(x @ p) ** 2).sum()
        loss.backward()
        return loss

    for i in range(20):
        yield step(array(2, 4, seed=i)), p.grad
        if i % 3 == 2:
            with xgrad.no_grad():
                p -= 0.1 * p.grad
            p.grad = None


def training_and_evaluating(capture: Callable[..., Any]) -> Iterator[Any]:
    xgrad.manual_seed(3)
    model = network()
    run = capture(lambda x: model(x).detach())
    for i in range(20):
        model.train(i % 3 > 0)
        yield run(array(6, 5, seed=i))


def decaying_at_times(capture: Callable[..., Any]) -> Iterator[Any]:
    model, optimizer, step = training(capture, lambda params: optim.SGD(params, lr=0.1, momentum=0.9))
    for i in range(20):
        optimizer.param_groups[0]["weight_decay"] = 0.1 if i % 3 else 0.0
        yield step(*batch(i))
        yield all_of(model, optimizer)


def frozen_at_times(capture: Callable[..., Any]) -> Iterator[Any]:
    xgrad.manual_seed(3)
    model = network()

    @capture
    def slopes(x: Any, y: Any) -> Any:
        for p in model.parameters():
            p.grad = None
        functional.cross_entropy(model(x), y).backward()
        return [p.grad * 2 for p in model.parameters() if p.grad is not None]

    for i in range(20):
        next(model.parameters()).requires_grad_(i % 4 < 2)
        yield slopes(*batch(i))


@pytest.mark.parametrize(
    ("scenario", "most"),
    [
        # With and without gradients, seen or not, and at last; before and after parameters are laid.
        pytest.param(accumulating(False), 7, id="accumulating, updated outside"),
        pytest.param(accumulating(True), 7, id="accumulating, updated inside"),
        pytest.param(accumulating_by_hand, 2, id="accumulating by hand"),
        pytest.param(training_and_evaluating, 2, id="training and evaluating"),
        pytest.param(decaying_at_times, 4, id="decaying at times"),
        pytest.param(frozen_at_times, 3, id="frozen at times"),
    ],
)
def test_each_way_is_recorded_once(scenario: Scenario, most: int) -> None:
    for captured in twice(scenario):
        assert captured.refusal is None and captured.recordings <= most


def test_a_way_that_is_over_is_let_go_of() -> None:
    _, optimizer, step = training(xgrad.capture)
    for i in range(4):
        step(*batch(i))
    former = [weakref.ref(flat) for _, laid in optimizer.laid() for flat in laid.flats]
    optimizer.add_param_group({"params": [array(2).requires_grad_()]})
    for i in range(4):
        step(*batch(i))
    gc.collect()
    assert former
    now = [flat for _, laid in optimizer.laid() for flat in laid.flats]
    assert [flat() for flat in former if flat() is not None and all(flat() is not other for other in now)] == []


def test_there_are_at_most_a_few_ways_of_a_kind() -> None:
    parameters = [array(3, seed=i).requires_grad_() for i in range(8)]

    @xgrad.capture
    def slopes(x: Any) -> Any:
        y = sum((x * p).sum() for p in parameters) + x.detach().requires_grad_().sum()
        y.backward()
        return [p.grad for p in parameters if p.requires_grad]

    x, kept = array(3), []
    for i, p in enumerate(parameters):
        for _ in range(3):
            for other in parameters:
                other.grad = None
            assert [slope.tolist() for slope in slopes(x)] == [x.tolist()] * (8 - i)
        kept += [weakref.ref(way) for way in slopes._ways]
        p.requires_grad_(False)
        assert slopes.recordings == i + 1
    gc.collect()
    assert len({id(way()) for way in kept if way() is not None}) == 4


def test_recordings_beyond_the_limit_must_have_been_paid_for() -> None:
    step = xgrad.capture(lambda x: x * 2 + 1, limit=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 30):
            assert step(xgrad.ones(n)).tolist() == [3] * n
        assert step.recordings == 2 and len(caught) == 1
        for _ in range(20):
            step(xgrad.ones(2))
        for n in (40, 40, 41):
            assert step(xgrad.ones(n)).tolist() == [3] * n
        assert step.recordings == 3 and len(caught) == 1
        assert step(xgrad.ones(2)).tolist() == [3, 3] and step.recordings == 3  # that of 1 has gone
    assert caught[0].category is CaptureWarning and "more than 2 kinds" in str(caught[0].message)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_none_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=f"limit of at least 1, got {limit}"):
        xgrad.capture(lambda x: x, limit=limit)
