"""Printer of fused loops as C functions, each with a table of addresses as its argument."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.native.calls import Multiplication, NativeCall
from xgrad_numpy.native.expressions import MEMORY_TYPES
from xgrad_numpy.native.fusion import Nest, Part, Run, loops_of
from xgrad_numpy.native.loops import Loop
from xgrad_numpy.native.places import Place
from xgrad_numpy.native.runtime import source_of
from xgrad_numpy.native.statements import Statement

_CHUNK = 1 << 13  # approximate maximum number of elements that a thread takes at once
_SHARED = 1 << 14  # elements of a nest from which threads share it out
_HEAD = "const struct runtime *runtime;\n"
#: The function that returns the bits of a value as another type, by that type.
_SAME_BITS = {
    other: (
        f"static inline {other} as_{other}({one} x) {{ {other} y; memcpy(&y, &x, sizeof y); return"
        " y; }"
    )
    for one, other in (
        ("int32_t", "float"),
        ("float", "int32_t"),
        ("int64_t", "double"),
        ("double", "int64_t"),
    )
}


class Function(NamedTuple):
    """A C function: its name, the places whose addresses it takes, and whether it may fail.

    A function that may fail returns whether it did.
    """

    name: str
    places: list[Place]
    may_fail: bool


class Source:
    """A C source: equal nests are one function, and so are equal runs.

    `text` is the whole source.
    """

    def __init__(self) -> None:
        self._nests: dict[str, str] = {}  # names by body
        self._runs: dict[str, str] = {}
        self._failing: set[str] = set()
        self.loops: dict[str, Loop] = {}  # NumPy's loops by the name of the variable

    def add(self, run: Run) -> Function | None:
        """Add a function for a run, and return it; None if nothing reads its results."""
        places: list[Place] = []
        multiplies = any(type(part) is Multiplication for part in run.parts)
        body = "".join([self._call(part, places) for part in run.parts])
        if not places:
            return None
        begin, end = "    runtime->begin_products();\n", "    runtime->end_products();\n"
        if multiplies:
            body = begin + body + end
        may_fail = any(isinstance(part, NativeCall) and part.may_fail for part in run.parts)
        if may_fail:
            body += f"    return 0;\nfailed:\n{end if multiplies else ''}    return 1;\n"
        name = self._runs.setdefault(body, _name("run", body))
        if may_fail:
            self._failing.add(name)
        return Function(name, places, may_fail)

    def _call(self, part: Part, table: list[Place]) -> str:
        """Return the call of a part; append the places that it uses to the table."""
        first = len(table)
        if isinstance(part, NativeCall):
            table += part.places
            self.loops |= part.loops
            text = part.text(first)
            return f"    if ({text}) goto failed;\n" if part.may_fail else f"    {text}\n"
        body, total, chunk = _nest(part, table)
        if len(table) == first:
            return ""
        name = self._nests.setdefault(body, _name("nest", body))
        if chunk < total:
            return f"    runtime->parallel({name}, p + {first}, {total}, {chunk});\n"
        return f"    {name}(p + {first}, 0, {total});\n"

    @property
    def count(self) -> int:
        """The number of runs."""
        return len(self._runs)

    @property
    def text(self) -> str:
        nests = [
            f"static void {name}(void *argument, int64_t begin, int64_t end) {{\n    char **p ="
            f" argument;\n    clear_exceptions();\n    FENCE();\n{body}    FENCE();\n    if"
            " (exceptions()) runtime->note(exceptions());\n}\n"
            for body, name in self._nests.items()
        ]
        runs = [
            f"{'int32_t' if name in self._failing else 'void'} {name}(char **p) {{\n{body}}}\n"
            for body, name in self._runs.items()
        ]
        helpers = [
            text
            for kind, text in _SAME_BITS.items()
            if any(f"as_{kind}(" in body for body in self._nests)
        ]
        loops = [f"struct loop {name};\n" for name in self.loops]
        return "\n".join([source_of("runtime.h"), _HEAD, *loops, *helpers, *nests, *runs])


def _name(kind: str, body: str) -> str:
    return f"{kind}_{hashlib.sha256(body.encode()).hexdigest()[:16]}"


def _nest(nest: Nest, table: list[Place]) -> tuple[str, int, int]:
    """Return the loops of a nest, the length of the outermost, and how much of it a thread takes.

    The outermost loop goes from `begin` to `end`. The places used are appended to the table.
    """
    lengths, strides, places = loops_of(nest)
    body = _Body(nest, places, [of[-1] if of else 0 for of in strides])
    used, indent, lines = sorted(body.used), "    ", list[str]()
    for number, i in enumerate(used):
        lines.append(f"{indent}char *const restrict p{i} = p[{number}];")
        table.append(places[i])
    for level in range(len(lengths) - 1):
        start, stop = ("begin", "end") if level == 0 else ("0", str(lengths[level]))
        lines.append(f"{indent}for (int64_t i{level} = {start}; i{level} < {stop}; i{level}++) {{")
        indent += "    "
    for i in used:
        outer = "".join(
            [f" + i{level} * {stride}" for level, stride in enumerate(strides[i][:-1]) if stride]
        )
        lines.append(f"{indent}char *const restrict q{i} = p{i}{outer};")
    lines += [indent + line for line in body.constant]
    start, stop = ("begin", "end") if len(lengths) < 2 else ("0", str(lengths[-1]))
    lines.append(f"{indent}INDEPENDENT for (int64_t i = {start}; i < {stop}; i++) {{")
    lines += [f"{indent}    {line}" for line in body.lines]
    lines.append(f"{indent}}}")
    while len(indent) > 4:
        indent = indent[4:]
        lines.append(f"{indent}}}")
    total, size = (lengths or [1])[0], math.prod(lengths)
    chunk = max(1, _CHUNK * total // size) if size >= _SHARED else total
    return "\n".join(lines) + "\n", total, chunk


class _Body:
    """The lines of an innermost loop: each place is read and written at most once, the latter last.

    `constant` are lines before the loop, for places that are the same in all of its steps. `used`
    are the indices of the places that are read or written in memory.
    """

    def __init__(self, nest: Nest, places: Sequence[Place], strides: Sequence[int]) -> None:
        self._places, self._strides = places, strides
        # variable with the value, and its dtype, by place
        self._values: dict[int, tuple[str, Any]] = {}
        self._written = {self._index(statement.out) for statement in nest.statements}
        self.constant, self.lines, self.used = list[str](), list[str](), set[int]()
        stored = [self._index(place) for place in nest.stored]
        for number, statement in enumerate(self._needed(nest.statements, stored)):
            inputs = list(map(self._converted, statement.inputs, statement.computed))
            dtype, name = statement.out.array.dtype, f"v{number}"
            self.lines.append(f"const {_local(dtype)} {name} = {statement.text.format(*inputs)};")
            self._values[self._index(statement.out)] = name, dtype
        for i in stored:
            name, dtype = self._values[i]
            self.lines.append(f"{self._element(i, dtype)} = {name};")

    def _needed(self, statements: Sequence[Statement], stored: Sequence[int]) -> list[Statement]:
        """Return the statements that a stored result depends on."""
        live, needed = set(stored), list[Statement]()
        for statement in reversed(statements):
            out = self._index(statement.out)
            if out in live:
                live.remove(out)
                live |= {self._index(place) for place in statement.inputs}
                needed.append(statement)
        return needed[::-1]

    def _index(self, place: Place) -> int:
        return next(i for i, other in enumerate(self._places) if other.is_same(place))

    def _converted(self, place: Place, computed: Any) -> str:
        """Return the expression of a place's value, in the dtype that a function computes in."""
        dtype, i = place.array.dtype, self._index(place)
        if i not in self._values:
            self._values[i] = f"x{i}", dtype
            steady = self._strides[i] == 0 and i not in self._written
            (self.constant if steady else self.lines).append(
                f"const {_local(dtype)} x{i} = {self._element(i, dtype)};"
            )
        name, known = self._values[i]
        text = name if known == dtype else f"as_{MEMORY_TYPES[dtype]}({name})"  # the same bits
        return text if dtype == computed else f"({_local(computed)}){text}"

    def _element(self, i: int, dtype: Any) -> str:
        kind, stride = MEMORY_TYPES[dtype], self._strides[i]
        self.used.add(i)
        if stride == dtype.itemsize:
            return f"(({kind} *)q{i})[i]"
        return f"*({kind} *)(q{i} + i * {stride})" if stride else f"*({kind} *)q{i}"


def _local(dtype: Any) -> str:
    """Return the C type of a variable.

    A bool is an int, because compilers do not vectorize loops with both bytes and floats.
    """
    return "int32_t" if dtype == np.bool else MEMORY_TYPES[dtype]
