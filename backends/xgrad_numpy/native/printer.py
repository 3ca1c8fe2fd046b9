"""The printer of fused loops as functions of C, each of a table of addresses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from xgrad_numpy.native.expressions import MEMORY_TYPES
from xgrad_numpy.native.fusion import Nest, Place, Run, Statement, loops_of

_HEAD = """\
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The exceptions of floating point arithmetic of all calls, since Python has read them. */
enum { INVALID = 1, DIVIDED = 2, OVERFLOWN = 4 };
int32_t raised = 0;

#if defined(__SSE2__)
#include <xmmintrin.h>
static inline void clear_exceptions(void) { _mm_setcsr(_mm_getcsr() & ~0x3fu); }
static inline int32_t exceptions(void) {
    const uint32_t x = _mm_getcsr();
    return (x & 1 ? INVALID : 0) | (x & 4 ? DIVIDED : 0) | (x & 8 ? OVERFLOWN : 0);
}
#else
#include <fenv.h>
static inline void clear_exceptions(void) { feclearexcept(FE_ALL_EXCEPT); }
static inline int32_t exceptions(void) {
    const int x = fetestexcept(FE_ALL_EXCEPT);
    return (x & FE_INVALID ? INVALID : 0) | (x & FE_DIVBYZERO ? DIVIDED : 0) | (x & FE_OVERFLOW ? OVERFLOWN : 0);
}
#endif
"""
#: The function that returns the bits of a value as another type, by that type.
_SAME_BITS = {
    other: f"static inline {other} as_{other}({one} x) {{ {other} y; memcpy(&y, &x, sizeof y); return y; }}"
    for one, other in (("int32_t", "float"), ("float", "int32_t"), ("int64_t", "double"), ("double", "int64_t"))
}
_FENCE = '__asm__ volatile("" ::: "memory");'  # or arithmetic could move across


class Source:
    """A source of C: equal loops are one function. `text` is the whole of it."""

    def __init__(self) -> None:
        self._functions: dict[str, str] = {}  # names by body

    def add(self, run: Run) -> tuple[str, list[Place]] | None:
        """Add a function for a run; return its name, and the places of which it is given the addresses.

        None if nothing reads its results.
        """
        places: list[Place] = []
        body = "".join([_nest(nest, places) for nest in run.nests])
        if not places:
            return None
        name = f"run_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
        return self._functions.setdefault(body, name), places

    @property
    def count(self) -> int:
        """The number of functions."""
        return len(self._functions)

    @property
    def text(self) -> str:
        functions = [
            f"void {name}(char **p) {{\n    clear_exceptions();\n    {_FENCE}\n{body}    {_FENCE}\n"
            "    raised |= exceptions();\n}\n"
            for body, name in self._functions.items()
        ]
        helpers = [text for kind, text in _SAME_BITS.items() if any(f"as_{kind}(" in body for body in self._functions)]
        return "\n".join([_HEAD, *helpers, *functions])


def _nest(nest: Nest, table: list[Place]) -> str:
    """Return the loops of a nest; the places that it uses are appended to the table."""
    lengths, strides, places = loops_of(nest)
    body = _Body(nest, places, [of[-1] if of else 0 for of in strides])
    lines, indent = ["    {"], "        "
    for i in sorted(body.used):
        lines.append(f"{indent}char *restrict p{i} = p[{len(table)}];")
        table.append(places[i])
    for level, length in enumerate(lengths[:-1]):
        lines.append(f"{indent}for (int64_t i{level} = 0; i{level} < {length}; i{level}++) {{")
        indent += "    "
    for i in sorted(body.used):
        outer = "".join([f" + i{level} * {stride}" for level, stride in enumerate(strides[i][:-1]) if stride])
        lines.append(f"{indent}char *restrict q{i} = p{i}{outer};")
    lines += [indent + line for line in body.constant]
    if lengths:
        lines.append(f"{indent}for (int64_t i = 0; i < {lengths[-1]}; i++) {{")
        lines += [f"{indent}    {line}" for line in body.lines]
        lines.append(f"{indent}}}")
    else:
        lines += [indent + line for line in body.lines]
    while len(indent) > 8:
        indent = indent[4:]
        lines.append(f"{indent}}}")
    return "\n".join([*lines, "    }"]) + "\n"


class _Body:
    """The lines of an innermost loop: each place is read at most once, and written at most once, at the end.

    `constant` are those before the loop, of places that are the same in all of its steps, and `used` the indices of
    the places that are read or written in memory.
    """

    def __init__(self, nest: Nest, places: Sequence[Place], strides: Sequence[int]) -> None:
        self._places, self._strides = places, strides
        self._values: dict[int, tuple[str, Any]] = {}  # the variable with the value of each place, and its dtype
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
        """Return the statements on which a stored result depends."""
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
        """Return the expression of the value of a place, in the dtype that a function computes in."""
        dtype, i = place.array.dtype, self._index(place)
        if i not in self._values:
            self._values[i] = f"x{i}", dtype
            steady = self._strides[i] == 0 and i not in self._written
            (self.constant if steady else self.lines).append(f"const {_local(dtype)} x{i} = {self._element(i, dtype)};")
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
    """Return the type of a variable: a bool is an int, since compilers do not vectorize loops with bytes and floats."""
    return "int32_t" if dtype == np.bool else MEMORY_TYPES[dtype]
