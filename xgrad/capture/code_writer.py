"""The lines of a function that is written for one program, and the names of the objects in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.capture.numbers import Number

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "neg": "-", "pos": "+", "abs": "abs",
    "truth": "bool",
}  # fmt: skip


class CodeWriter:
    """The parts of a function: guards, then lines that compute numbers, then effects.

    Guards and effects are texts with ``{}`` for objects. What differs in its objects alone is written as a loop, for
    to compile a line takes longer than to run it a hundred times.
    """

    def __init__(self, **scope: Any) -> None:
        self.scope = {"plain": _plain, **scope}
        self.numbers: list[str] = []
        self.passed: list[str] = []  # variables of numbers that the effects need
        self._guards: dict[str, list[tuple[Any, ...]]] = {}
        self._effects: dict[str, list[tuple[Any, ...]]] = {}
        self._names: dict[Any, str] = {}  # by the key of a number, or the id of an object

    def name(self, x: Any) -> str:
        """Return an expression for an object."""
        if x is None or type(x) in (bool, int, str):
            return repr(x)
        if id(x) not in self._names:
            self._names[id(x)] = name = f"x{len(self._names)}"
            self.scope[name] = x
        return self._names[id(x)]

    def guard(self, text: str, *objects: Any) -> None:
        """Add an expression that is true where the program does not hold."""
        self._guards.setdefault(text, []).append(objects)

    def effect(self, text: str, *objects: Any) -> None:
        """Add a line that changes the state once the program has run."""
        self._effects.setdefault(text, []).append(objects)

    def guards(self) -> list[str]:
        """Return the lines of the guards."""
        return self._lines({f"if {text}: return MISS": objects for text, objects in self._guards.items()})

    def effects(self) -> list[str]:
        """Return the lines of the effects."""
        return self._lines(self._effects)

    def _lines(self, texts: dict[str, list[tuple[Any, ...]]]) -> list[str]:
        lines = []
        for text, objects in texts.items():
            if len(objects) == 1 or not objects[0]:
                lines.append(text.format(*map(self.name, objects[0])))
            else:
                names = [f"y{i}" for i in range(len(objects[0]))]
                lines += [f"for {', '.join(names)}, in {self.name(objects)}:", "    " + text.format(*names)]
        return lines

    def number(self, x: Any) -> str:
        """Return an expression for a number, which is computed once, or for a constant."""
        if type(x) is not Number:
            return f"({self.name(x)})" if type(x) is int else self.name(x)  # -1 ** n is -(1 ** n)
        if x.function == "constant":
            return repr(x.value)
        if x.key not in self._names:
            if x.function == "read":
                owner, key, *index = x.operands
                text = f"{self.name(owner)}[{key!r}]" if isinstance(owner, dict) else f"{self.name(owner)}.{key}"
                text += "".join([f"[{i}]" for i in index])
            else:
                operands, symbol = [self.number(operand) for operand in x.operands], _SYMBOLS[x.function]
                text = f" {symbol} ".join(operands) if len(operands) > 1 else f"{symbol}({operands[0]})"
            self._names[x.key] = name = f"n{len(self._names)}"
            self.numbers.append(f"{name} = {text}")
            if x.function == "read":
                kind = type(x.value).__name__
                other = f"type({name}) is not {kind}"
                self.numbers.append(f"if {other} and type({name} := plain({name})) is not {kind}: return MISS")
        return self._names[x.key]

    def condition(self, x: Number) -> None:
        """Add that the truth of a number is what it is now."""
        line = f"if {self.number(x)} is not {bool(x.value)}: return MISS"
        if line not in self.numbers:
            self.numbers.append(line)

    def function(self, head: str, lines: list[str]) -> Callable[..., Any]:
        """Return the function with some lines."""
        source = "\n    ".join([f"def {head}:", *lines])
        exec(compile(source, "<captured step>", "exec"), self.scope)
        return self.scope.pop(head.partition("(")[0])  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as a number of Python."""
    return value.item() if hasattr(value, "item") and not hasattr(value, "_data") else value
