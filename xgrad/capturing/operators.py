"""What Python's operators on recorded arrays call: functions that a replay recognises."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

#: What operators call where all operands are scalars: these compute otherwise than arrays, to the last bit.
ON_SCALARS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "matmul": operator.matmul,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "negative": operator.neg,
    "positive": operator.pos,
    "bitwise_invert": operator.invert,
    "abs": abs,
}

#: What operators such as ``+=`` call.
IN_PLACE: dict[str, Callable[..., Any]] = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
    "bitwise_and": operator.iand,
    "bitwise_or": operator.ior,
    "bitwise_xor": operator.ixor,
    "bitwise_left_shift": operator.ilshift,
    "bitwise_right_shift": operator.irshift,
    "matmul": operator.imatmul,
}


def getitem(x: Any, key: Any) -> Any:
    """Return the elements at a key."""
    return x[key]


def setitem(x: Any, key: Any, value: Any) -> None:
    """Write to the elements at a key."""
    x[key] = value


def same(x: Any) -> Any:
    """Return what is given: a constant, or what is checked."""
    return x
