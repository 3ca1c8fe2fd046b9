"""Numbers of optimizers and generators, such as a learning rate: values with expressions.

Update rules and random kernels compute with them while a step is recorded.
"""

from __future__ import annotations

import operator
import re
from typing import Any

#: The signs of the functions in the module ``operator``.
SIGNS = {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "or": "|",
    "xor": "^",
    "and": "&",
    "lshift": "<<",
    "rshift": ">>",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "neg": "-",
    "pos": "+",
    "invert": "~",
    "pow": "**",
}


def operation(function: str, *operands: str) -> str:
    """Return the expression of an operator applied to expressions, in parentheses."""
    sign = SIGNS[function]
    return (
        f"({operands[0]} {sign} {operands[1]})" if len(operands) == 2 else f"({sign}{operands[0]})"
    )


class Number:
    """A Python number that may differ in the next call: its current value and its expression.

    Update rules receive it in place of the number. Arithmetic gives further expressions. Testing
    its truth, as in ``if momentum:``, adds a condition to the program. Converting it, as in
    ``math.cos(lr)``, refuses the capture.
    """

    __slots__ = ("recorder", "text", "value")

    def __init__(self, recorder: Any, value: Any, text: str) -> None:
        self.recorder, self.value, self.text = recorder, value, text

    @property
    def reads(self) -> list[str]:
        """The names of the numbers that it is computed from; none for a constant."""
        return re.findall(r"\bn\d+", self.text)

    def _read(self) -> Any:
        self.recorder.refuse("a number of an optimizer is read by its update rule")
        return self.value

    def __bool__(self) -> bool:
        return bool(self.recorder.conditions.setdefault(f"bool({self.text})", bool(self.value)))

    # fmt: off
    def __float__(self) -> float: return float(self._read())
    def __int__(self) -> int: return int(self._read())
    def __complex__(self) -> complex: return complex(self._read())
    def __index__(self) -> int: return operator.index(self._read())
    def __hash__(self) -> int: return hash(self._read())
    # fmt: on

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.value, name):
            raise AttributeError(name)
        return getattr(self._read(), name)


def _computed(name: str, *operands: Any) -> Any:
    values = [plain(x) for x in operands]
    if not {bool, int, float, complex}.issuperset(map(type, values)):
        return NotImplemented
    recorder = next(x.recorder for x in operands if type(x) is Number)
    texts = [x.text if type(x) is Number else f"({x!r})" for x in operands]
    text = f"abs({texts[0]})" if name == "abs" else operation(name, *texts)
    return Number(recorder, getattr(operator, name)(*values), text)


def _compared(name: str, x: Number, y: Any) -> Any:
    result = _computed(name, x, y)
    if result is NotImplemented:
        return result
    return x.recorder.conditions.setdefault(result.text, result.value)


def _converted(name: str, x: Number, *operands: Any) -> Any:
    return getattr(type(x.value), name)(x._read(), *map(plain, operands))


def _install() -> None:
    """Give `Number` the operators and conversions of Python's numbers."""
    for name in "add sub mul truediv floordiv mod pow".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _computed(name, x, y))
        setattr(Number, f"__r{name}__", lambda x, y, name=name: _computed(name, y, x))
    for name in "neg pos abs".split():
        setattr(Number, f"__{name}__", lambda x, name=name: _computed(name, x))
    for name in "lt le gt ge eq ne".split():
        setattr(Number, f"__{name}__", lambda x, y, name=name: _compared(name, x, y))
    bitwise = [
        f"{side}{name}" for name in ("and", "or", "xor", "lshift", "rshift") for side in ("", "r")
    ]
    for name in ["round", "format", "str", "divmod", "rdivmod", "trunc", "floor", "ceil", *bitwise]:
        method = f"__{name}__"
        setattr(
            Number,
            method,
            lambda x, *args, name=method: getattr(type(x.value), name)(
                x._read(), *map(plain, args)
            ),
        )


_install()


class SymbolicInt(int):
    """The seed or the count of a generator, as passed to random kernels.

    It is an int that also refers to its number in the program.
    """

    number: Number

    @classmethod
    def of(cls, x: Any) -> Any:
        """Return a number as an int of this type, and a constant as it is."""
        if type(x) is not Number:
            return x
        made = cls(x.value)
        made.number = x
        return made


def plain(x: Any) -> Any:
    """Return the value of a number, the values of a tuple of numbers, or anything else as it is."""
    if type(x) is tuple:
        return tuple(map(plain, x))
    return x.value if type(x) is Number else x


def is_symbolic(x: Any) -> bool:
    """Return whether `x` is a number of a step, or a tuple that contains one."""
    return any(map(is_symbolic, x)) if type(x) is tuple else type(x) is Number
