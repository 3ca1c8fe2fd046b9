"""What a recording keeps: the memory that it has planned, and no array that the step made while it was recorded."""

from __future__ import annotations

import gc

import xgrad
from xgrad import nn, optim
from xgrad.capturing.arrays import Recorded


def test_no_array_of_the_recording_is_kept():
    before = {id(thing) for thing in gc.get_objects() if type(thing) is Recorded}
    model = nn.MLP([30, 20, 10])
    optimizer = optim.Adam(model.parameters())

    @xgrad.capture
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(xgrad.ones((4, 30)), xgrad.asarray([0, 1, 2, 3]))
    assert step.refusal is None and step.program().startswith("1 recording")
    gc.collect()
    assert [t for t in gc.get_objects() if type(t) is Recorded and id(t) not in before] == []
