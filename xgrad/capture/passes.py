"""Passes over the program of a step: each leaves an equivalent program.

The result has fewer calls, or its calls are in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Storage, Value, map_leaves


def optimize(program: Program) -> None:
    """Apply all passes."""
    eliminate_dead_code(program)
    number_values(program)
    hoist_checks(program)
    used = {x.number for call in program.calls for x in (*call.reads, *call.writes)}
    used |= {x.number for x in program.outputs}
    program.inputs = [x for x in program.inputs if x.number in used]
    program.state = [x for x in program.state if x.number in used]
    program.constants = {
        number: array for number, array in program.constants.items() if number in used
    }


def eliminate_dead_code(program: Program) -> None:
    """Drop calls whose results nothing needs.

    Writes to inputs and state are always needed, and so are checks.
    """
    needed = {x.storage for x in program.outputs}
    calls = []
    for call in reversed(program.calls):
        useless = call.check is None and needed.isdisjoint(
            [x.storage for x in (*call.results, *call.writes)]
        )
        if useless and all(x.storage.kind == "temporary" for x in call.writes):
            continue
        calls.append(call)
        needed.update([x.storage for x in (*call.reads, *call.writes)])
    program.calls = calls[::-1]


def number_values(program: Program) -> None:
    """Fold constants and eliminate common subexpressions.

    Gradients repeat much of what the step has computed before. A value is constant if it depends on
    no input, state or number. A result may replace another only if nothing writes to either, and
    the replaced one is not an output.
    """
    constants, kept = program.constants, {x.storage for x in program.outputs}
    stands_for: dict[Value, Value] = {}
    known: dict[Any, Call] = {}
    writes: dict[Storage, int] = {}  # the number of writes so far
    moved: dict[Storage, Storage] = {}  # from the memory of a dropped result to its replacement's
    calls = []

    def current(part: Any) -> Any:
        return stands_for.get(part, part) if type(part) is Value else part

    def constant(part: Any) -> Any:
        return constants[part.number] if type(part) is Value else part

    for call in program.calls:
        if stands_for and not stands_for.keys().isdisjoint((*call.reads, *call.writes)):
            call.substitute(current)
        for x in call.results:
            x.storage = moved.get(x.storage, x.storage)
        for x in call.writes:
            writes[x.storage] = writes.get(x.storage, 0) + 1
        earlier = call
        if (
            not call.writes
            and call.check is None
            and not any(x.storage.writes for x in call.results)
        ):
            if not call.numbers and all(x.number in constants for x in call.reads):
                result = call.function(
                    *map_leaves(constant, call.args), **map_leaves(constant, call.options)
                )
                for x, array in zip(call.results, [result] if call.single else result, strict=True):
                    constants[x.number], x.storage.kind = array, "constant"
                continue
            if kept.isdisjoint([x.storage for x in call.results]):
                with suppress(TypeError):  # an argument may be unhashable
                    earlier = known.setdefault(
                        _key((call.function, call.args, *call.options.items()), writes), call
                    )
        if earlier is call:
            calls.append(call)
        for value, other in (
            zip(call.results, earlier.results, strict=True) if earlier is not call else ()
        ):
            stands_for[value], moved[value.storage] = other, other.storage
    program.calls = calls


def _key(arg: Any, writes: Mapping[Storage, int]) -> Any:
    """Return a key that equal arguments share."""
    kind = type(arg)
    if kind is Value:
        return arg, writes.get(arg.storage, 0)
    if kind is tuple or kind is list:
        return (kind, *[_key(part, writes) for part in arg])
    if kind is slice:
        return kind, *[_key(part, writes) for part in (arg.start, arg.stop, arg.step)]
    return kind, arg.text if kind is Number else repr(
        arg
    ) if kind is float or kind is complex else arg


def hoist_checks(program: Program) -> None:
    """Move checks, and all that their values depend on, to the start.

    A write to the state or an input precedes a check only where the check depends on it. Executors
    undo the write if the check fails. A call that may raise an error counts as a check if it
    follows a write, or if a write that is moved would precede it.
    """
    calls = program.calls
    is_write = [any(x.storage.kind != "temporary" for x in call.writes) for call in calls]
    first_write = is_write.index(True) if True in is_write else len(calls)
    values: set[Value] = set()  # read by calls that are moved, as `read` and `written` are
    read: set[Storage] = set()
    written: set[Storage] = set()
    first: set[Call] = set()
    for i, call in reversed(list(enumerate(calls))):
        storages = {x.storage for x in call.reads}
        follows = i > first_write or any(x.kind != "temporary" for x in written)
        call.may_raise = call.may_raise and follows
        if (
            call.may_end_replay
            or not values.isdisjoint(call.results)
            or not (read | written).isdisjoint([x.storage for x in call.writes])
            or not written.isdisjoint(storages)  # the moved call would write too early
        ):
            first.add(call)
            values.update(call.reads)
            read |= storages
            written.update([x.storage for x in call.writes])
    if first:
        calls.sort(key=lambda call: call not in first)
