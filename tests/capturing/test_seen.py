"""Arrays that somebody looks at between captured steps are left to them, as by eager steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim

LOOKS = {
    "state_dict": lambda model: list(model.state_dict().values()),
    "detach": lambda model: [p.detach() for p in model.parameters()],
    "numpy": lambda model: [p.detach().numpy() for p in model.parameters()],
    "data": lambda model: [p.data for p in model.parameters()],
    "row": lambda model: [p.detach()[0] for p in model.parameters()],
    "grad": lambda model: [p.grad for p in model.parameters()],
}


def trained(look, when, capture, hidden=False):
    """Return the weights and gradients after some steps, what was seen on the way with copies of it, and the step."""
    xgrad.manual_seed(0)
    model = nn.MLP([7, 5, 2])
    made = optim.Adam(model.parameters(), lr=0.1)

    def find():
        return made

    def named(x, y):
        return take(made, x, y)

    def unnamed(x, y):
        return take(find(), x, y)

    def take(optimizer, x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = unnamed if hidden else named
    step = xgrad.capture(step) if capture else step
    x, y = xgrad.random.randn((4, 7)), xgrad.asarray([0, 1, 0, 1])
    seen = []
    for i in range(9):
        step(x, y)
        if i in when:
            found = LOOKS[look](model)
            seen += [(array, np.array(np.asarray(array), copy=True)) for array in found]
    learnt = [x.detach().numpy().copy() for p in model.parameters() for x in (p, p.grad)]
    return learnt, seen, step


@pytest.mark.parametrize("when", [(0,), (1,), (2,), (3,), (4,), (1, 2), (0, 1, 2, 3), (2, 5), tuple(range(9))])
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("hidden", [False, True], ids=["named", "hidden"])
def test_what_is_seen_stays(look, when, hidden):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eager, _, _ = trained(look, when, False, hidden)
        captured, seen, step = trained(look, when, True, hidden)
    for array, before in seen:
        np.testing.assert_array_equal(np.asarray(array), before)
    for got, expected in zip(captured, eager, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert step.refusal is None
    assert " params " in step.program()  # which are changed where they are
