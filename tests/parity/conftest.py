import dataclasses
from typing import Any

import pytest

import xgrad
import xgrad.cli.parity
from xgrad.ops.declare import elementwise
from xgrad.parity.row import Op
from xgrad.parity.table import OPS, find


@pytest.fixture
def parity(capsys, monkeypatch):
    """The command, on rows that may be other than those of the table."""

    def call(*argv: Any, rows: list[Op] | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(xgrad.cli.parity, "OPS", OPS if rows is None else rows)
        capsys.readouterr()
        return xgrad.cli.main(["parity", *map(str, argv)]), *capsys.readouterr()

    return call


@pytest.fixture
def broken_multiply() -> Op:
    """Return a multiplication whose rule for its second input is off by a millionth, on every device alike."""
    rules = lambda g, x2: g * x2, lambda g, x1: g * x1 * (1 + 1e-6)
    fn = elementwise("multiply", *rules, doc="Multiply.", example="[1.0], 3.0 -> [3.]")
    return dataclasses.replace(find("multiply"), fn=fn)


@pytest.fixture
def faulty_exp(monkeypatch) -> None:
    """The device strict has a kernel that is wrong in the sixth digit."""
    backend = xgrad.Device("strict").backend
    monkeypatch.setattr(backend, "kernels", {"exp": lambda x: backend.xp.exp(x) * (1 + 1e-6)})
    monkeypatch.setattr(xgrad.ops, "exp", elementwise("exp", lambda g, out: g * out, doc="E.", example="[0.0] -> [1.]"))
