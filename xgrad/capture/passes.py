"""Passes over the program of a step: each leaves an equivalent program with fewer calls, or in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Storage, Unusable, Value, map_leaves


def optimize(program: Program) -> None:
    """Apply all passes; raise `Unusable` if a check needs what the step has overwritten before."""
    eliminate_dead_code(program)
    fold_constants(program)
    eliminate_common_subexpressions(program)
    hoist_checks(program)
    used = {x.number for call in program.calls for x in (*call.reads, *call.writes)}
    used |= {x.number for x in program.outputs}
    program.inputs = [x for x in program.inputs if x.number in used]
    program.state = [x for x in program.state if x.number in used]
    program.constants = {number: array for number, array in program.constants.items() if number in used}


def eliminate_dead_code(program: Program) -> None:
    """Drop calls whose results nothing needs. Writes to inputs and state are always needed, and so are checks."""
    needed = {x.storage for x in program.outputs}
    calls = []
    for call in reversed(program.calls):
        dead = call.check is None and all(x.storage.kind == "temporary" for x in call.writes)
        if dead and needed.isdisjoint([x.storage for x in (*call.results, *call.writes)]):
            continue
        calls.append(call)
        needed.update([x.storage for x in (*call.reads, *call.writes)])
    program.calls = calls[::-1]


def fold_constants(program: Program) -> None:
    """Compute now what depends on no input, state or number, and is not written to."""
    calls, constants = [], program.constants

    def known(part: Any) -> Any:
        return constants[part.number] if type(part) is Value else part

    for call in program.calls:
        folds = not (call.writes or call.numbers or call.check is not None or not call.results)
        if folds and all(x.number in constants for x in call.reads) and not any(x.storage.writes for x in call.results):
            result = call.function(*map_leaves(known, call.args), **map_leaves(known, call.options))
            constants.update(zip([x.number for x in call.results], [result] if call.single else result, strict=True))
            for x in call.results:
                x.storage.kind = "constant"
        else:
            calls.append(call)
    program.calls = calls


def eliminate_common_subexpressions(program: Program) -> None:
    """Compute the same of the same once: gradients use much of what the step has computed before.

    Only results that nothing writes to, and that are not handed out, stand for each other.
    """
    kept = {x.storage for x in program.outputs}
    stands_for: dict[Value, Value] = {}
    known: dict[Any, Call] = {}
    writes: dict[Storage, int] = {}  # so far
    moved: dict[Storage, Storage] = {}  # the memory of what is dropped, by that of what stands for it
    calls = []

    def current(part: Any) -> Any:
        return stands_for.get(part, part) if type(part) is Value else part

    for call in program.calls:
        if stands_for and not stands_for.keys().isdisjoint((*call.reads, *call.writes)):
            call.substitute(current)
        for x in call.results:
            x.storage = moved.get(x.storage, x.storage)
        for x in call.writes:
            writes[x.storage] = writes.get(x.storage, 0) + 1
        pure = not call.writes and call.check is None
        if pure and not any(x.storage.writes or x.storage in kept for x in call.results):
            try:
                earlier = known.setdefault(_key((call.function, call.args, *call.options.items()), writes), call)
            except TypeError:  # an argument without a hash
                earlier = call
            if earlier is not call:
                for value, known_value in zip(call.results, earlier.results, strict=True):
                    stands_for[value] = known_value
                    moved[value.storage] = known_value.storage
                continue
        calls.append(call)
    program.calls = calls


def _key(arg: Any, writes: Mapping[Storage, int]) -> Any:
    """Return what is equal of arguments that are the same."""
    kind = type(arg)
    if kind is Value:
        return arg, writes.get(arg.storage, 0)
    if kind is tuple or kind is list:
        return (kind, *[_key(part, writes) for part in arg])
    if kind is slice:
        return kind, *[_key(part, writes) for part in (arg.start, arg.stop, arg.step)]
    return kind, arg.text if kind is Number else repr(arg) if kind is float or kind is complex else arg


def hoist_checks(program: Program) -> None:
    """Move checks, and what they need, before all else: nothing is written to when one fails."""
    needed = [call for call in program.calls if call.check is not None]
    makers = {x: call for call in program.calls for x in call.results}
    written = {x.storage for call in program.calls for x in call.writes} if needed else ()
    first = set(needed)
    for call in needed:  # which grows
        if any(x.storage in written for x in call.reads):
            raise Unusable("a value is checked that the step has overwritten", call.line)
        new = {makers[x] for x in call.reads if x in makers} - first
        first |= new
        needed += new
    if first:
        program.calls.sort(key=lambda call: call not in first)
