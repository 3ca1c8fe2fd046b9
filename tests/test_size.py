"""`x.size` is the number of elements, an int, and a call of it returns the shape."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error


def test_size_is_an_int() -> None:
    n = xgrad.ones((2, 3)).size
    assert isinstance(n, int) and n == 6 and hash(n) == hash(6) and {6: "six"}[n] == "six"
    assert (repr(n), str(n), f"{n:,}", json.dumps([n])) == ("6", "6", "6", "[6]")
    for same in (pickle.loads(pickle.dumps(n)), copy.copy(n), copy.deepcopy(n), n + 0, +n, abs(n)):
        assert type(same) is int and same == 6
    assert np.zeros(n).shape == (6,) and list(range(n))[-1] == 5 and [7] * n == [7] * 6


def test_size_called_gives_the_shape_and_lengths_of_axes(torch: Any) -> None:
    x, y = xgrad.ones((2, 3, 0)), torch.ones((2, 3, 0))
    assert x.size() == tuple(y.size()) == (2, 3, 0) and type(x.size()) is tuple
    for dim in range(-3, 3):
        assert x.size(dim) == x.size(dim=dim) == y.size(dim) and type(x.size(dim)) is int
    assert xgrad.ones(()).size() == ()
    assert xgrad.nn.Linear(2, 3).weight.size(0) == 3


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "x.size(2)",
            "IndexError: size: expected dim from -2 to 1 for x of shape (2, 3), got 2, out of"
            " range",
        ),
        ("x.size(-3)", "IndexError: size: expected dim from -2 to 1 … got -3"),
        ("x.sum().size(0)", "IndexError: size: expected x with at least one axis, got shape ()"),
        ("x.size('a')", "TypeError: size: expected an int for dim, got 'a'"),
        ("x.size(True)", "TypeError: size: expected an int for dim, got True"),
        ("x.size(1.0)", "TypeError: size: expected an int for dim, got 1.0"),
    ],
)
def test_size_refuses_wrong_axes(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.ones((2, 3)))


CALLS = """x / n
n - x
x ** n
x.sum() / n
x.add(n)
x.clip(0, n)
x.fill_(n)
xp.where(x > 0, n, x)
xp.maximum(x, n)
xp.asarray(n)
xp.asarray([n, 1])
xp.zeros(n)
xp.full((2,), n)
xp.arange(n)
xp.isclose(x, n)
x.reshape(n)
x.view(n)
x.tile(n)
xp.repeat(x, n)
xp.arange(9)[n]
xp.arange(9)[:n]
xp.arange(9)[n - 1 : n]
xp.searchsorted(xp.arange(9), n)
xp.ops.setitem(xp.arange(9), n, n)
xp.capture(lambda x, n: x * n)(x, n)
xp.vmap(lambda row: row * n)(x)
xp.random.randperm(n).shape"""


@pytest.mark.parametrize("call", CALLS.splitlines())
def test_size_is_taken_wherever_an_int_is(call: str) -> None:
    values = [
        eval(call, {"xp": xgrad, "x": xgrad.ones((2, 3)), "n": n})
        for n in (xgrad.zeros((2, 3)).size, 6)
    ]
    assert str(values[0]) == str(values[1])
    assert getattr(values[0], "dtype", None) == getattr(values[1], "dtype", None)


def test_size_in_a_captured_step_is_the_size_of_the_argument() -> None:
    mean = xgrad.capture(lambda x: x.sum() / x.size * x.size(-1))
    for shape in ((2, 3), (4, 5)):
        assert mean(xgrad.ones(shape)).item() == shape[1]
