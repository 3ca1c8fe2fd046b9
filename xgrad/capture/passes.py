"""Passes over the program of a step: each returns an equivalent program with fewer calls, or in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.capture.errors import Unusable
from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Storage, Value, map_leaves


def optimize(program: Program) -> Program:
    """Apply all passes.

    Raises
    ------
    Unusable
        If a check needs what the step has overwritten before.
    """
    program = eliminate_dead_code(program)
    program = fold_constants(program)
    program = eliminate_common_subexpressions(program)
    return hoist_checks(program)


def eliminate_dead_code(program: Program) -> Program:
    """Drop calls whose results nothing needs. Writes to inputs and state are always needed, and so are checks."""
    needed = {value.storage for value in program.outputs}
    calls = []
    for call in reversed(program.calls):
        if call.check is None:
            touched = (*call.results, *call.writes)
            if not any(v.storage in needed or (v in call.writes and v.storage.kind != "temporary") for v in touched):
                continue
        calls.append(call)
        needed.update([value.storage for value in (*call.reads, *call.writes)])
    used = {value.number for call in calls for value in (*call.reads, *call.writes)}
    used |= {value.number for value in program.outputs}
    inputs = [value for value in program.inputs if value.number in used]
    state = [value for value in program.state if value.number in used]
    constants = {number: array for number, array in program.constants.items() if number in used}
    return Program(inputs, state, calls[::-1], program.outputs, constants)


def fold_constants(program: Program) -> Program:
    """Compute now what depends on no input, state or number, and is not written to."""
    constants = dict(program.constants)
    calls: list[Call] = []

    def known(part: Any) -> Any:
        return constants[part.number] if type(part) is Value else part

    for call in program.calls:
        folds = not (call.writes or call.numbers or call.check is not None or not call.results)
        if folds and all(v.number in constants for v in call.reads) and not any(r.storage.writes for r in call.results):
            options = {name: map_leaves(known, value) for name, value in call.options.items()}
            result = call.function(*map_leaves(known, call.args), **options)
            constants.update(zip([r.number for r in call.results], [result] if call.single else result, strict=True))
            for value in call.results:
                value.storage.kind = "constant"
        else:
            calls.append(call)
    used = {v.number for call in calls for v in call.reads} | {v.number for v in program.outputs}
    constants = {number: array for number, array in constants.items() if number in used}
    return Program(program.inputs, program.state, calls, program.outputs, constants)


def eliminate_common_subexpressions(program: Program) -> Program:
    """Compute the same of the same once: gradients use much of what the step has computed before.

    Only results that nothing writes to, and that are not handed out, stand for each other.
    """
    kept = {value.storage for value in program.outputs}
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
        for value in call.results:
            value.storage = moved.get(value.storage, value.storage)
        for value in call.writes:
            writes[value.storage] = writes.get(value.storage, 0) + 1
        pure = not call.writes and call.check is None
        if pure and not any(value.storage.writes or value.storage in kept for value in call.results):
            try:
                earlier = known.setdefault(_key(call, writes), call)
            except TypeError:  # an argument without a hash
                earlier = call
            if earlier is not call:
                for mine, theirs in zip(call.results, earlier.results, strict=True):
                    stands_for[mine] = theirs
                    moved[mine.storage] = theirs.storage
                continue
        calls.append(call)
    return program.with_calls(calls)


def _key(call: Call, writes: Mapping[Storage, int]) -> Any:
    """Return what is equal of two calls that give the same."""
    options = [(name, _part_of_key(x, writes)) for name, x in call.options.items()]
    return call.function, *[_part_of_key(x, writes) for x in call.args], *options


def _part_of_key(arg: Any, writes: Mapping[Storage, int]) -> Any:
    kind = type(arg)
    if kind is Value:
        return arg, writes.get(arg.storage, 0)
    if kind is int or kind is bool or kind is str or arg is None:
        return kind, arg
    if kind is Number:
        return kind, arg.key
    if kind is tuple or kind is list:
        return (kind, *[_part_of_key(part, writes) for part in arg])
    if kind is slice:
        return kind, *[_part_of_key(part, writes) for part in (arg.start, arg.stop, arg.step)]
    return kind, repr(arg) if kind is float or kind is complex else arg


def hoist_checks(program: Program) -> Program:
    """Move checks, and what they need, before all else: nothing is written to when one fails.

    Raises
    ------
    Unusable
        If a check needs what the step has overwritten before.
    """
    needed = [call for call in program.calls if call.check is not None]
    if not needed:
        return program
    makers = {value: call for call in program.calls for value in call.results}
    written = {value.storage for call in program.calls for value in call.writes}
    first = set(needed)
    for call in needed:  # which grows
        for value in call.reads:
            if value.storage in written:
                raise Unusable("a value is checked that the step has overwritten", call.line)
            maker = makers.get(value)
            if maker is not None and maker not in first:
                first.add(maker)
                needed.append(maker)
    return program.with_calls(
        [call for call in program.calls if call in first] + [call for call in program.calls if call not in first]
    )
