"""Numbers of optimizers and generators, such as a learning rate, while a step is traced: values and expressions."""

from __future__ import annotations

import operator
import re
from typing import Any

#: Signs of functions of the module ``operator``, and the precedence of what they give.
SIGNS = {
    "lt": ("<", 0), "le": ("<=", 0), "gt": (">", 0), "ge": (">=", 0), "eq": ("==", 0), "ne": ("!=", 0),
    "or": ("|", 1), "xor": ("^", 2), "and": ("&", 3), "lshift": ("<<", 4), "rshift": (">>", 4),
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "matmul": ("@", 6), "truediv": ("/", 6),
    "floordiv": ("//", 6), "mod": ("%", 6), "neg": ("-", 7), "pos": ("+", 7), "invert": ("~", 7), "pow": ("**", 8),
}  # fmt: skip
ATOM = 9  # the precedence of names and calls


def operation(function: str, *operands: tuple[str, int]) -> tuple[str, int]:
    """Return the expression of an operator of expressions, each with its precedence."""
    sign, rank = SIGNS[function]
    power = function == "pow"
    texts = [
        text if inner >= rank + (power is (i == 0)) else f"({text})"
        for i, (text, inner) in enumerate(operands, start=0 if len(operands) > 1 else 1)
    ]
    return f" {sign} ".join(texts) if len(texts) == 2 else sign + texts[0], rank


class Number:
    """A Python number that may differ in the next call: its value now, and the expression that computes it.

    Arithmetic gives further expressions. The truth of one, as in ``if momentum:``, becomes a condition of the program.
    Conversion to a plain number, as in ``math.cos(lr)``, refuses the capture.
    """

    __slots__ = ("rank", "text", "trace", "value")

    def __init__(self, trace: Any, value: Any, text: str, rank: int = ATOM) -> None:
        self.trace, self.value, self.text, self.rank = trace, value, text, rank

    @property
    def reads(self) -> list[str]:
        """The names of the numbers that it is computed from; a constant has none."""
        return re.findall(r"\bn\d+", self.text)

    def _read(self) -> Any:
        self.trace.refuse("a number of an optimizer or a generator is read")
        return self.value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.value, name):
            raise AttributeError(name)
        return getattr(self._read(), name)

    def __bool__(self) -> bool:
        return bool(self.trace.conditions.setdefault(f"bool({self.text})", bool(self.value)))

    def __index__(self) -> int:
        return operator.index(self._read())

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.value)


_PYTHON = frozenset({bool, int, float, complex})


def _computed(name: str, *operands: Any) -> Any:
    values = [plain(x) for x in operands]
    if not _PYTHON.issuperset(map(type, values)):
        return NotImplemented
    trace = next(x.trace for x in operands if type(x) is Number)
    texts = [(x.text, x.rank) if type(x) is Number else (repr(x), 7 if repr(x)[0] == "-" else ATOM) for x in operands]
    text, rank = (f"abs({texts[0][0]})", ATOM) if name == "abs" else operation(name, *texts)
    return Number(trace, getattr(operator, name)(*values), text, rank)


def _compared(name: str, x: Number, y: Any) -> Any:
    result = _computed(name, x, y)
    if result is NotImplemented:
        return getattr(operator, name)(x._read(), y)
    return x.trace.conditions.setdefault(result.text, result.value)


def _install() -> None:
    """Give `Number` the operators and conversions of Python's numbers."""
    for name in "add sub mul truediv floordiv mod pow".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _computed(name, x, y))
        setattr(Number, f"__r{name}__", lambda x, y, name=name: _computed(name, y, x))
    for name in "neg pos abs".split():
        setattr(Number, f"__{name}__", lambda x, name=name: _computed(name, x))
    for name in "lt le gt ge eq ne".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _compared(name, x, y))
    bitwise = [f"{side}{name}" for name in ("and", "or", "xor", "lshift", "rshift") for side in ("", "r")]
    for name in ["float", "int", "round", "format", "str", "hash", "divmod", "trunc", "floor", "ceil", *bitwise]:
        method = f"__{name}__"
        setattr(Number, method, lambda x, *args, name=method: getattr(type(x.value), name)(x._read(), *args))


_install()


def plain(x: Any) -> Any:
    """Return the value of a number, or those of a tuple of numbers, and anything else as it is."""
    if type(x) is tuple:
        return tuple(map(plain, x))
    return x.value if type(x) is Number else x
