"""Numbers of optimizers and generators, such as a learning rate, while a step is traced: expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol


class Sink(Protocol):
    """Interface of a trace for numbers: conditions and refusals."""

    def guard(self, number: Number) -> None:
        """Make the truth of a number a condition of the program."""

    def refuse(self, reason: str) -> None:
        """Note why the step cannot be replayed."""


class Number:
    """A Python number that may differ in the next call: its value now, and the expression that computes it.

    Arithmetic gives further expressions. The truth of one, as in ``if momentum:``, becomes a condition of the program.
    Conversion to a plain number, as in ``math.cos(lr)``, refuses the capture.

    Parameters
    ----------
    trace : Sink
        The trace that it belongs to.
    value : int, float or complex
        Its value now.
    function : str
        The name of a function of the module ``operator``, or "read", or "constant".
    operands : tuple
        Numbers and constants; of one that is read, where it is found: an owner, and a key for each further step.
    """

    __slots__ = ("function", "key", "operands", "trace", "value")

    def __init__(self, trace: Sink, value: Any, function: str, operands: tuple[Any, ...]) -> None:
        self.trace, self.value, self.function, self.operands = trace, value, function, operands
        self.key: Hashable
        if function == "read":
            self.key = "read", id(operands[0]), *operands[1:]
        else:
            self.key = function, *[n.key if type(n) is Number else (type(n), n) for n in operands]

    def __repr__(self) -> str:
        return f"Number({self.value})"

    def reads(self) -> Iterator[Number]:
        """Return the numbers that it is computed from, itself if it is read."""
        if self.function == "read":
            yield self
            return
        for operand in self.operands:
            if type(operand) is Number:
                yield from operand.reads()

    def _read(self, convert: Callable[..., Any], *args: Any) -> Any:
        self.trace.refuse("a number of an optimizer or a generator is read")
        return convert(self.value, *args)

    def __hash__(self) -> int:
        return hash(self._read(lambda value: value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in type(self).__slots__ or not hasattr(self.value, name):
            raise AttributeError(name)
        return getattr(self._read(lambda value: value), name)

    def __bool__(self) -> bool:
        truth = bool(self.value)
        self.trace.guard(Number(self.trace, truth, "truth", (self,)))
        return truth

    def __eq__(self, other: object) -> bool:
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> bool:
        return _compared("ne", self, other)

    def __float__(self) -> float:
        return float(self._read(float))

    def __int__(self) -> int:
        return int(self._read(int))

    def __index__(self) -> int:
        return int(self._read(operator.index))

    def __complex__(self) -> complex:
        return complex(self._read(complex))

    def __round__(self, digits: int | None = None) -> Any:
        return self._read(round, digits)

    def __format__(self, spec: str) -> str:
        return str(self._read(format, spec))

    def __str__(self) -> str:
        return str(self._read(str))


_PLAIN = frozenset({bool, int, float, complex})


def _computed(function: str, x: Any, y: Any) -> Any:
    values = [n.value if type(n) is Number else n for n in (x, y)]
    if not _PLAIN.issuperset(map(type, values)):
        return NotImplemented
    trace = x.trace if type(x) is Number else y.trace
    return Number(trace, getattr(operator, function)(*values), function, (x, y))


def _compared(function: str, x: Number, y: Any) -> bool:
    result = _computed(function, x, y)
    if result is NotImplemented:
        return bool(getattr(operator, function)(x._read(lambda value: value), y))
    x.trace.guard(result)
    return bool(result.value)


def _install() -> None:
    """Give `Number` the operators of Python's numbers."""
    for name in "add sub mul truediv floordiv mod pow".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _computed(name, x, y))
        setattr(Number, f"__r{name}__", lambda x, y, name=name: _computed(name, y, x))
    for name in "divmod trunc floor ceil and rand or ror xor rxor lshift rshift".split():
        method = f"__{name}__"
        setattr(Number, method, lambda x, *args, name=method: x._read(getattr(type(x.value), name), *args))
    for name in "lt le gt ge".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _compared(name, x, y))
    for name in "neg pos abs".split():
        setattr(
            Number, f"__{name}__", lambda x, name=name: Number(x.trace, getattr(operator, name)(x.value), name, (x,))
        )


_install()


def plain(value: Any) -> Any:
    """Return the value of a number, and anything else as it is."""
    return value.value if type(value) is Number else value
