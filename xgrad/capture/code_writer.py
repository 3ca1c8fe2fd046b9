"""The lines of the functions that are written for one program, and the names of the objects in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import inf, nan
from types import CodeType
from typing import Any

from xgrad.capture.numbers import Number
from xgrad.capture.trace import Trace


class CodeWriter:
    """Guards, expressions of numbers, and effects, written as functions.

    Guards and effects are texts with ``{}`` for objects. What differs in its objects alone is written as a loop, for
    to compile a line takes longer than to run it a hundred times.
    """

    def __init__(self, trace: Trace, **scope: Any) -> None:
        self.scope: dict[str, Any] = {"__name__": "xgrad", "plain": _plain, "inf": inf, "nan": nan, **scope}
        self.passed: dict[str, Any] = {}  # expressions of numbers that the effects need, and their values in the trace
        self._trace = trace
        self._guards: dict[str, list[tuple[Any, ...]]] = {}
        self._effects: list[tuple[str, list[tuple[Any, ...]]]] = []  # in order
        self._names: dict[int, str] = {}  # by the id of an object
        self._bound: set[int] = set()  # objects that differ from call to call

    def name(self, x: Any) -> str:
        """Return an expression for an object."""
        if x is None or type(x) in (bool, int, str):
            return repr(x)
        if id(x) not in self._names:
            self._names[id(x)] = name = f"x{len(self._names)}"
            self.scope[name] = x
        return self._names[id(x)]

    def place(self, owner: Any, key: Any) -> str:
        """Return an expression for an attribute, or an item of a dict."""
        return f"{self.name(owner)}[{key!r}]" if isinstance(owner, dict) else f"{self.name(owner)}.{key}"

    def bind(self, x: Any, expression: str) -> None:
        """Name an object that differs from call to call by an expression."""
        if x is not None:
            self._names.setdefault(id(x), expression)
            self._bound.add(id(x))

    def guard(self, text: str, *objects: Any) -> None:
        """Add an expression that is true where the program does not hold."""
        self._guards.setdefault(f"if {text}: return MISS", []).append(objects)

    def effect(self, text: str, *objects: Any) -> None:
        """Add a line that changes the state once the program has run, after all lines before it."""
        if self._effects and self._effects[-1][0] == text:
            self._effects[-1][1].append(objects)
        else:
            self._effects.append((text, [objects]))

    def number(self, x: Number) -> str:
        """Return the expression of a number in the code of an effect."""
        self.passed[x.text] = x.value
        return f"numbers[{list(self.passed).index(x.text)}]"

    def check(self, arguments: str, arrays: list[str], numbers: list[str]) -> Callable[..., Any]:
        """Return the function that checks the guards, and returns the arguments of the program and of the effects."""
        tests = [f"if ({text}) is not {truth}: return MISS" for text, truth in self._trace.conditions.items()]
        used = re.findall(r"\bn\d+", " ".join([*tests, *numbers, *self.passed]))
        reads = [line for name in dict.fromkeys(used) for line in self._read(name)]
        values = f"return {_tuple([*arrays, *numbers])}, {_tuple(list(self.passed))}"
        guards = self._lines(self._guards.items())
        return self._function("check(args)", [arguments, *guards, *reads, *tests, values])

    def leave(self, arguments: str, result: str) -> Callable[..., Any]:
        """Return the function of the effects, and of the result."""
        lines = [arguments, *self._lines(self._effects), f"return {result}"]
        return self._function("leave(outputs, args, numbers)", lines)

    def _read(self, name: str) -> list[str]:
        """Return the lines that read a number: those of NumPy become those of Python."""
        owner, key, index, kind = self._trace.reads[int(name[1:])]
        other = f"is not {kind.__name__}"
        return [
            f"{name} = {self.place(owner, key)}" + ("" if index is None else f"[{index}]"),
            f"if type({name}) {other} and type({name} := plain({name})) {other}: return MISS",
        ]

    def _lines(self, texts: Iterable[tuple[str, list[tuple[Any, ...]]]]) -> list[str]:
        lines: list[str] = []
        for text, objects in texts:
            if len(objects) == 1 or not objects[0] or any(id(x) in self._bound for row in objects for x in row):
                lines += dict.fromkeys([text.format(*map(self.name, row)) for row in objects])
            else:
                names = [f"y{i}" for i in range(len(objects[0]))]
                lines += [f"for {', '.join(names)}, in {self.name(objects)}:", "    " + text.format(*names)]
        return lines

    def _function(self, head: str, lines: list[str]) -> Callable[..., Any]:
        source = "\n    ".join([f"def {head}:", *lines])
        exec(compiled(source), self.scope)
        return self.scope.pop(head.partition("(")[0])  # type: ignore[no-any-return]


@lru_cache(256)
def compiled(source: str) -> CodeType:
    """Return the code of a source, compiled once: programs for other shapes often have the same."""
    return compile(source, "<captured step>", "exec")


def _tuple(parts: list[str]) -> str:
    return f"({''.join([f'{part}, ' for part in parts])})"


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as a number of Python."""
    return value.item() if hasattr(value, "item") and not hasattr(value, "_data") else value
