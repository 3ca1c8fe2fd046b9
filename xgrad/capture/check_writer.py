"""The check of a program: a generated function that tests its guards and collects its inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import inf, nan
from types import CodeType
from typing import Any

from xgrad.capture.numbers import Number
from xgrad.capture.recorder import Recorder


class CheckWriter:
    """A writer of the function that checks a program.

    Guards are expressions with ``{}`` for objects; the program may be replayed if all are true.
    Guards that differ only in their objects are written as a loop, because compiling a line takes
    longer than running it a hundred times.
    """

    def __init__(self, recorder: Recorder, count: int, **scope: Any) -> None:
        self.scope: dict[str, Any] = {
            "__name__": "xgrad",
            "plain": _plain,
            "inf": inf,
            "nan": nan,
            **scope,
        }
        self._recorder, self._count = recorder, count  # `count` tensors among the arguments
        self._guards: dict[str, list[tuple[Any, ...]]] = {}
        self._names: dict[int, str] = {}  # by the id of an object
        self._differing: set[int] = set()  # objects that differ from call to call

    def name(self, x: Any) -> str:
        """Return an expression for an object."""
        if x is None or type(x) in (bool, int, str):
            return repr(x)
        if id(x) not in self._names:
            self._names[id(x)] = name = f"x{len(self._names)}"
            self.scope[name] = x
        return self._names[id(x)]

    def bind(self, x: Any, expression: str) -> None:
        """Name an object that differs from call to call by an expression."""
        if x is not None:
            self._names.setdefault(id(x), expression)
            self._differing.add(id(x))

    def guard(self, text: str, *objects: Any) -> None:
        """Add a condition on which the program holds."""
        self._guards.setdefault(text, []).append(objects)

    def check(self, arrays: list[str], numbers: list[Any], stored: list[Any]) -> Callable[..., Any]:
        """Return the check: a function of the tensors among the arguments of a call.

        The check returns None if the program does not hold. If it holds, the check returns three
        tuples: the arrays and the numbers that are passed to the program, and the numbers that the
        effects of a replay store.
        """
        texts = [
            [x.text if type(x) is Number else self.name(x) for x in part]
            for part in (numbers, stored)
        ]
        tests = [
            _unless(f"({text}) is {truth}") for text, truth in self._recorder.conditions.items()
        ]
        used = dict.fromkeys(re.findall(r"\bn\d+", " ".join([*tests, *texts[0], *texts[1]])))
        lines = ["".join([f"a{i}, " for i in range(self._count)]) + "= args"] if self._count else []
        for text, objects in self._guards.items():
            lines += self._lines(text, objects)
        lines += [line for name in used for line in self._read(name)]
        lines += [*tests, f"return {', '.join(map(_tuple, (arrays, *texts)))}"]
        exec(_compiled("\n    ".join(["def check(args):", *lines])), self.scope)
        check: Callable[..., Any] = self.scope.pop("check")
        return check

    def _lines(self, text: str, objects: list[tuple[Any, ...]]) -> Iterable[str]:
        if len(objects) == 1 or any(id(x) in self._differing for row in objects for x in row):
            return dict.fromkeys([_unless(text.format(*map(self.name, row))) for row in objects])
        names = [f"y{i}" for i in range(len(objects[0]))]
        return f"for {', '.join(names)}, in {self.name(objects)}:", "    " + _unless(
            text.format(*names)
        )

    def _read(self, name: str) -> list[str]:
        """Return the lines that read a number; NumPy scalars become Python numbers."""
        owner, key, index, kind = self._recorder.reads[int(name[1:])]
        place = (
            f"{self.name(owner)}[{key!r}]"
            if isinstance(owner, dict)
            else f"{self.name(owner)}.{key}"
        )
        is_kind = f"is {kind.__name__}"
        return [
            f"{name} = {place}" + ("" if index is None else f"[{index}]"),
            _unless(f"type({name}) {is_kind} or type({name} := plain({name})) {is_kind}"),
        ]


def _unless(condition: str) -> str:
    return f"if not ({condition}): return None"


def _tuple(parts: list[str]) -> str:
    return f"({''.join([f'{part}, ' for part in parts])})"


@lru_cache(256)
def _compiled(source: str) -> CodeType:
    """Return the code of a source, compiled once: programs for other shapes often share it."""
    return compile(source, "<captured step>", "exec")


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, and anything else as it is."""
    return value.item() if hasattr(value, "item") and not hasattr(value, "_data") else value
