import dataclasses

import pytest

import xgrad
from xgrad.ops.declare import elementwise
from xgrad.parity.cases import find
from xgrad.parity.op_case import OpCase


@pytest.fixture
def broken_multiply() -> OpCase:
    """Return a multiplication with a derivative for its second input that is off by 1e-6, on every device."""
    rules = lambda g, x2: g * x2, lambda g, x1: g * x1 * (1 + 1e-6)
    fn = elementwise("multiply", *rules, doc="Multiply.", example="[1.0], 3.0 -> [3.]")
    return dataclasses.replace(find("multiply"), fn=fn)


@pytest.fixture
def faulty_exp(monkeypatch, strict) -> None:
    """Give the device strict a kernel that is wrong in the sixth digit."""
    backend = strict.backend
    monkeypatch.setattr(backend, "kernels", {"exp": lambda x: backend.xp.exp(x) * (1 + 1e-6)})
    monkeypatch.setattr(xgrad.ops, "exp", elementwise("exp", lambda g, out: g * out, doc="E.", example="[0.0] -> [1.]"))
