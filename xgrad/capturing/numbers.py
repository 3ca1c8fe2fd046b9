"""Numbers that change from step to step, such as a learning rate: written down as expressions, read at each replay."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xgrad.capturing.recorder import Recorder

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_BINARY = _OPERATORS | _COMPARISONS
_UNARY: dict[str, Callable[..., Any]] = {"-": operator.neg, "+": operator.pos, "abs": abs, "bool": bool}


class Number:
    """A number of Python while a step is recorded: it has a value, and knows how to compute it anew.

    Arithmetic gives expressions. To ask whether one is true, as ``if momentum:`` does, makes the answer a condition of
    the program; to ask for its value as such cannot be followed, and ends the recording.

    Parameters
    ----------
    recorder : Recorder
        Who records.
    value : int, float or complex
        What it is now.
    operator : str
        What it was computed by, or "" for one that is read.
    operands : tuple
        Numbers and constants; of one that is read, what finds it: a callable without arguments.
    """

    __slots__ = ("key", "operands", "operator", "recorder", "value")

    def __init__(self, recorder: Recorder, value: Any, operator: str, operands: tuple[Any, ...]) -> None:
        self.recorder, self.value, self.operator, self.operands = recorder, value, operator, operands
        parts = [n.key if isinstance(n, Number) else (type(n), n) for n in operands]
        self.key: Hashable = (operator, *parts)  # equal for what is computed alike

    def __repr__(self) -> str:
        return f"Number({self.value})"

    @property
    def function(self) -> Callable[..., Any]:
        """What computes it from its operands, if it is not read."""
        return _UNARY[self.operator] if len(self.operands) == 1 else _BINARY[self.operator]

    def _answer(self, value: bool, operator: str, *operands: Any) -> bool:
        self.recorder.readings.condition(Number(self.recorder, value, operator, operands))
        return value

    def __bool__(self) -> bool:
        return self._answer(bool(self.value), "bool", self)

    def __eq__(self, other: object) -> bool:
        return _compared("==", self, other)

    def __ne__(self, other: object) -> bool:
        return _compared("!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def _read(self, how: str) -> Any:
        self.recorder.refuse(f"a number that changes from step to step is read by {how}")
        return self.value

    def __float__(self) -> float:
        return float(self._read("float()"))

    def __int__(self) -> int:
        return int(self._read("int()"))

    def __index__(self) -> int:
        return operator.index(self._read("an index"))

    def __complex__(self) -> complex:
        return complex(self._read("complex()"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._read("round()"), digits)

    def __format__(self, spec: str) -> str:
        return format(self._read("formatting"), spec)


def _computed(symbol: str, x: Any, y: Any) -> Any:
    recorder = x.recorder if isinstance(x, Number) else y.recorder
    values = [n.value if isinstance(n, Number) else n for n in (x, y)]
    if not all(type(value) in (int, float, complex, bool) for value in values):
        return NotImplemented
    return Number(recorder, _OPERATORS[symbol](*values), symbol, (x, y))


def _compared(symbol: str, x: Number, y: Any) -> bool:
    value = y.value if isinstance(y, Number) else y
    return x._answer(bool(_COMPARISONS[symbol](x.value, value)), symbol, x, y)


def _install() -> None:
    """Give `Number` the operators of Python's numbers."""
    names = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}
    for symbol, name in names.items():
        setattr(Number, f"__{name}__", lambda x, y, symbol=symbol: _computed(symbol, x, y))
        setattr(Number, f"__r{name}__", lambda x, y, symbol=symbol: _computed(symbol, y, x))
    for symbol, name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items():
        setattr(Number, f"__{name}__", lambda x, y, symbol=symbol: _compared(symbol, x, y))
    for symbol, name in {"-": "neg", "+": "pos", "abs": "abs"}.items():
        setattr(
            Number,
            f"__{name}__",
            lambda x, symbol=symbol: Number(x.recorder, _UNARY[symbol](x.value), symbol, (x,)),
        )


_install()


def plain(value: Any) -> Any:
    """Return the value of a number, anything else as it is."""
    return value.value if type(value) is Number else value
