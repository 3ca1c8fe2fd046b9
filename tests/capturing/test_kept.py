"""What a recording keeps: the memory that it has planned, and no array that the step made while it was recorded."""

from __future__ import annotations

import gc

import pytest

import xgrad
from capturing.twins import array, batch, learning, training
from xgrad import nn, optim
from xgrad.capturing.arrays import Recorded
from xgrad.optim.flat import Layout


def test_no_array_of_the_recording_is_kept():
    before = {id(thing) for thing in gc.get_objects() if type(thing) is Recorded}
    model = nn.MLP([30, 20, 10])
    step = xgrad.capture(learning(model, optim.Adam(model.parameters())))
    for _ in range(3):
        step(xgrad.ones((4, 30)), xgrad.asarray([0, 1, 2, 3]))
    assert step.refusal is None and step.program().startswith("1 recording")
    gc.collect()
    assert [t for t in gc.get_objects() if type(t) is Recorded and id(t) not in before] == []


def test_results_that_lead_to_a_graph_which_the_step_has_walked_keep_none():
    w = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()

    @xgrad.capture
    def step(x):
        first, second = xgrad.unstack(w * x)
        loss = first.sum()
        loss.backward()
        return loss, first, second

    for i in range(1, 4):
        w.grad = None
        loss, first, second = step(xgrad.full((2, 2), float(i)))
        assert (loss.tolist(), first.tolist(), second.tolist()) == (3.0 * i, [i, 2.0 * i], [3.0 * i, 4.0 * i])
        assert w.grad is not None and w.grad.tolist() == [[i, i], [0, 0]]
    assert step.refusal is None


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 8])
def test_a_step_that_is_dropped_lets_go_of_all_arrays_at_once(calls):
    """What it held longer would pass for somebody who looks at parameters, and hide one who does so later."""
    model = nn.MLP([30, 20, 10])
    optimizer = optim.Adam(model.parameters())
    step = learning(model, optimizer)
    given = xgrad.ones((4, 30)), xgrad.asarray([0, 1, 2, 3])
    step(*given)
    gc.collect()
    gc.disable()
    try:
        captured = xgrad.capture(step)
        for _ in range(calls):
            captured(*given)
        flats = [flat for _, laid in optimizer.laid() for flat in laid.flats]
        assert captured.recordings == 1
        assert flats and [flat.watchers() for flat in flats] == [flat.private for flat in flats]
        del captured
        dropped = [flat.watchers() for flat in flats]
        gc.collect()
        assert [flat.watchers() for flat in flats] == dropped == [flat.private for flat in flats]
    finally:
        gc.enable()


@pytest.mark.parametrize("why", ["an error", "other arguments", "a plan"])
def test_what_is_let_go_of_is_no_longer_counted(why):
    _, optimizer, step = training(lambda step: xgrad.capture(step, limit=1))
    for i in range({"an error": 6, "other arguments": 30, "a plan": 2}[why]):
        step(*batch(i))
    if why == "an error":
        x, y = batch(0)
        with pytest.raises(IndexError):
            step(x, y + 3)
    elif why == "other arguments":
        with pytest.warns(xgrad.capturing.CaptureWarning, match="more than 1 kind"):
            step(*batch(0, 7))
        assert step.recordings == 2  # which replays have paid for: the first has gone
    else:
        step.program()
    gc.collect()
    flats = [flat for _, laid in optimizer.laid() for flat in laid.flats]
    assert flats
    for flat in flats:  # or what somebody holds then would be taken for ours, and written to
        assert flat.watchers() == flat.private


def test_a_recording_may_be_collected_while_parameters_are_laid_anew(monkeypatch):
    _, optimizer, step = training(xgrad.capture)
    for i in range(4):
        step(*batch(i))
    (frame,) = step._ways
    empty = Layout.empty

    def collecting(layout):
        frame.release()
        return empty(layout)

    monkeypatch.setattr(Layout, "empty", collecting)
    optimizer.add_param_group({"params": [array(2).requires_grad_()]})
    step._step(*batch(4))
    flats = [flat for _, laid in optimizer.laid() for flat in laid.flats]
    assert flats and [flat.watchers() for flat in flats] == [flat.private for flat in flats]
