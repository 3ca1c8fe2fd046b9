"""Code generation: instructions, and a Python function that executes them."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, groupby, starmap
from typing import Any, NamedTuple

from xgrad.capture.program import leaves, map_leaves

# From this number on, static calls run in a C loop, which saves compiling their lines; a call takes
# 25 ns longer there.
_MANY = 32
_LITERALS = frozenset({bool, int, type(None)})


@dataclass(slots=True, eq=False)
class ArraySlot:
    """An operand for an array or a number.

    A dynamic slot is a variable of the run, `early` if it is known before the first instruction. A
    static one keeps its array between calls of `link`; `find` computes it from earlier slots in the
    `order`, which have it among their `dependents`. An `example` is an array like those that a
    dynamic slot will hold. If the slot is `new`, the run allocates its memory, and no input or
    state shares it.
    """

    dynamic: bool = False
    early: bool = False
    find: Callable[[], Any] = lambda: None
    order: int = 0
    array: Any = None
    example: Any = None
    new: bool = False
    dependents: list[ArraySlot] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Instruction:
    """A call with slots, constants, and tuples, lists and slices of them.

    `result` consists of dynamic slots.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    options: dict[str, Any]
    result: ArraySlot | tuple[ArraySlot, ...] | None = None
    slots: list[ArraySlot] = field(init=False)  # slots among the operands

    def __post_init__(self) -> None:
        self.slots = slots_in(
            (*self.operands, *self.options.values()) if self.options else self.operands
        )

    @property
    def results(self) -> tuple[ArraySlot, ...]:
        """The slots of the result."""
        return (
            self.result if isinstance(self.result, tuple) else (self.result,) if self.result else ()
        )

    def example(self) -> Any:
        """Return the result of the call for the examples of its slots."""
        return self.function(
            *map_leaves(array_of, self.operands), **map_leaves(array_of, self.options)
        )

    def entry(self) -> tuple[Any, ...]:
        """Return arguments with which ``operator.call`` makes this call of static slots."""
        operands: Any = (self.function, *map_leaves(_resolve, self.operands))
        return (
            (partial(*operands, **map_leaves(_resolve, self.options)),)
            if self.options
            else operands
        )


def _resolve(operand: Any) -> Any:
    return operand.array if type(operand) is ArraySlot else operand


def array_of(operand: Any) -> Any:
    """Return the array of a slot, or its example; other operands are returned unchanged."""
    return (
        operand
        if type(operand) is not ArraySlot
        else operand.example
        if operand.dynamic
        else operand.array
    )


def slots_in(operands: Sequence[Any]) -> list[ArraySlot]:
    """Return the slots among operands."""
    return [operand for operand in leaves(operands) if type(operand) is ArraySlot]


class Parts(NamedTuple):
    """The instructions of a program, in order, and the ones that undo the tentative writes."""

    before: Sequence[Instruction]
    tentative: Sequence[Instruction]
    after: Sequence[Instruction]
    restore: Sequence[Instruction]


class Code:
    """A function, `run`, of the parameters, with its `scope`: see `Executor`.

    An error calls `on_error` first.
    """

    def __init__(
        self,
        parameters: list[ArraySlot],
        parts: Parts,
        outputs: list[ArraySlot],
        on_error: Callable[[], Any] = lambda: None,
    ) -> None:
        consume = deque[Any](maxlen=0).extend
        self.scope = dict[str, Any](
            __name__="xgrad", call=operator.call, starmap=starmap, consume=consume
        )
        self.scope["on_error"] = on_error
        self._names: dict[int, tuple[str, Any]] = {}  # name and operand by id
        # uses of static slots in loops
        self._entries: dict[ArraySlot, list[tuple[list[Any], int, Instruction]]] = {}
        instructions = chain(parts.before, parts.tentative, parts.after)
        self._last = {id(slot): id(x) for x in instructions for slot in (*x.slots, *x.results)}
        for slot in outputs:
            self._last.pop(id(slot), None)
        lines = self._attempt(parts.before, [])
        lines += self._attempt(parts.tentative, parts.restore)
        if late := self._lines(parts.after):
            lines += [
                "try:",
                *["    " + line for line in late],
                "except BaseException:",
                "    on_error()",
                "    raise",
            ]
        head = f"def run({', '.join(map(self._text, parameters))}):"
        exec(
            _compiled("\n    ".join([head, *lines, f"return {self._text(tuple(outputs))}"])),
            self.scope,
        )
        self.run: Callable[..., Any] = self.scope.pop("run")  # avoids a reference cycle

    def update(self, slots: Iterable[ArraySlot]) -> None:
        """Use the current arrays of static slots."""
        for slot in slots:
            if id(slot) in self._names:
                self.scope[self._names[id(slot)][0]] = slot.array
            for entries, i, instruction in self._entries.get(slot, ()):
                entries[i] = instruction.entry()

    def _attempt(
        self, instructions: Sequence[Instruction], restore: Sequence[Instruction]
    ) -> list[str]:
        """Return the lines of instructions, whose errors are returned once `restore` has run."""
        lines = self._lines(instructions)
        if not lines:
            return []
        return [
            "try:",
            *["    " + line for line in lines],
            "except BaseException as error:",
            "    on_error()",
            *["    " + self._line(x) for x in restore],
            "    if not isinstance(error, Exception):",
            "        raise",
            "    return error.with_traceback(None)",
        ]

    def _lines(self, instructions: Iterable[Instruction]) -> list[str]:
        lines: list[str] = []
        for static, group in groupby(instructions, is_static):
            members = list(group)
            if static and len(members) >= _MANY:
                lines.append(f"consume(starmap(call, {self._loop(members)}))")
                continue
            for x in members:
                lines.append(self._line(x))
                slots = dict.fromkeys([slot for slot in (*x.results, *x.slots) if slot.dynamic])
                dead = [
                    self._text(slot)
                    for slot in slots
                    if not slot.early and self._last.get(id(slot)) == id(x)
                ]
                if dead:  # releases memory as early as in eager mode
                    lines.append(f"del {', '.join(dead)}")
        return lines

    def _loop(self, instructions: Sequence[Instruction]) -> str:
        """Return the name of a list of static calls."""
        entries = [instruction.entry() for instruction in instructions]
        for i, instruction in enumerate(instructions):
            for slot in instruction.slots:
                self._entries.setdefault(slot, []).append((entries, i, instruction))
        return self._text(entries)

    def _line(self, x: Instruction) -> str:
        function, *arguments = self._arguments(x)
        if x.function is operator.setitem:
            return f"{arguments[0]}[{arguments[1]}] = {arguments[2]}"
        text = f"{function}({', '.join(arguments)})"
        return text if x.result is None else f"{self._text(x.result)} = {text}"

    def _arguments(self, x: Instruction) -> list[str]:
        options = [f"{name}={self._text(value)}" for name, value in x.options.items()]
        return [self._text(x.function), *map(self._text, x.operands), *options]

    def _text(self, operand: Any) -> str:
        """Return the expression of an operand."""
        kind = type(operand)
        if kind in _LITERALS:
            return repr(operand)
        if kind in (tuple, list, slice) and slots_in((operand,)):
            members = (operand.start, operand.stop, operand.step) if kind is slice else operand
            parts = "".join([f"{self._text(member)}, " for member in members])
            return (
                f"[{parts}]"
                if kind is list
                else f"slice({parts})"
                if kind is slice
                else f"({parts})"
            )
        if id(operand) not in self._names:
            name = f"x{len(self._names)}"
            self._names[id(operand)] = name, operand
            if kind is not ArraySlot or not operand.dynamic:
                self.scope[name] = _resolve(operand)
        return self._names[id(operand)][0]


def is_planned(x: Instruction) -> bool:
    """Return whether an instruction writes no dynamic slot, and has examples of those it reads."""
    return x.result is None and not any(slot.dynamic and slot.example is None for slot in x.slots)


def is_static(x: Instruction) -> bool:
    """Return whether an instruction writes to static slots only, and reads no dynamic ones."""
    return x.result is None and not any(slot.dynamic for slot in x.slots)


@lru_cache(256)
def _compiled(source: str) -> Any:
    """Return the compiled code of a source; programs for other shapes often have the same one."""
    return compile(source, "<captured step>", "exec")
