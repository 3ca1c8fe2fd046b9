"""Faults for the tests of `xgrad.parity`: a wrong derivative rule, and a wrong kernel."""

import dataclasses
from typing import Any

import pytest

import xgrad
from xgrad.ops.declare import elementwise
from xgrad.parity.cases import find
from xgrad.parity.op_case import OpCase


def multiply(xp: Any, x1: Any, x2: Any, /) -> Any:
    return xp.multiply(x1, x2)


def exp(xp: Any, x: Any, /) -> Any:
    return xp.exp(x)


@pytest.fixture
def broken_multiply() -> OpCase:
    """Return a multiplication with a wrong derivative.

    The derivative for the second input is off by 1e-6, on every device.
    """
    rules = lambda g, x2: g * x2, lambda g, x1: g * x1 * (1 + 1e-6)
    fn = elementwise(*rules)(multiply)
    return dataclasses.replace(find("multiply"), fn=fn)


@pytest.fixture
def faulty_exp(monkeypatch, strict) -> None:
    """Give the device strict a kernel that is wrong in the sixth digit."""
    backend = strict.backend
    monkeypatch.setattr(backend, "kernels", {"exp": lambda x: backend.xp.exp(x) * (1 + 1e-6)})
    monkeypatch.setattr(xgrad.ops, "exp", elementwise(lambda g, out: g * out)(exp))
