"""A program with fewer calls that does the same: without what is needed no more, is known, or is computed twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Call, Program, Storage, Value, replaced


class Unchecked(Exception):
    """A check of values comes too late to be repeated: the message is its line."""


def simplified(program: Program) -> Program:
    """Leave out what is computed for nothing, and check first what is to be checked.

    Raises
    ------
    Unchecked
        If a check needs what the step changes before.
    """
    return _checked_first(_without_dead(program))


def _without_dead(program: Program) -> Program:
    """Leave out calls whose results nobody uses; a change of memory that was there before is always of use."""
    needed = {value.storage for value in program.outputs}
    calls = []
    for call in reversed(program.calls):
        if call.check is None:
            for value in call.results if call.target is None else call.targets():
                if value.storage in needed or (call.target is not None and value.storage.kind != "temporary"):
                    break
            else:
                continue
        calls.append(call)
        for value in call.reads if call.target is None else (*call.targets(), *call.reads):
            needed.add(value.storage)
    inputs = [value for value in program.inputs if value.storage in needed]
    return Program(inputs, calls[::-1], program.outputs)


def _checked_first(program: Program) -> Program:
    """Let checks, and what they need, come before all else, so that nothing has changed if one comes out otherwise."""
    needed = [call for call in program.calls if call.check is not None]
    if not needed:
        return program
    makers, changed = {}, set()
    for call in program.calls:
        for value in call.results:
            makers[value] = call
        if call.target is not None:
            changed.update([value.storage for value in call.targets()])
    first = set(needed)
    for call in needed:  # which grows on the way
        for value in call.reads:
            if value.storage in changed:
                raise Unchecked(call.line)
            maker = makers.get(value)
            if maker is not None and maker not in first:
                first.add(maker)
                needed.append(maker)
    calls = [call for call in program.calls if call in first] + [call for call in program.calls if call not in first]
    return Program(program.inputs, calls, program.outputs)


def folded(program: Program) -> tuple[list[Call], dict[int, Any]]:
    """Compute now what depends on nothing and is not changed: return the other calls, and arrays by number of value."""
    calls: list[Call] = []
    constants: dict[int, Any] = {}

    def known(part: Any) -> Any:
        return constants[part.number] if type(part) is Value else part

    for call in program.calls:
        for value in call.reads:
            if value.number not in constants:
                calls.append(call)
                break
        else:
            changes = call.target is not None or call.check is not None or any(r.storage.writes for r in call.results)
            if changes or call.numbers:
                calls.append(call)
                continue
            options = {name: replaced(value, known) for name, value in call.options.items()}
            result = call.function(*replaced(call.args, known), **options)
            constants.update(zip([v.number for v in call.results], [result] if call.single else result, strict=True))
    return calls, constants


def without_repeated(program: Program) -> Program:
    """Compute the same of the same but once: gradients use much of what the step has computed before.

    Only results that nobody changes in place, and that are not handed out, can stand for each other.
    """
    kept = {value.storage for value in program.outputs}
    stands_for: dict[Value, Value] = {}
    known: dict[Any, Call] = {}
    writes: dict[Storage, int] = {}  # so far
    moved: dict[Storage, Storage] = {}  # where the memory of what is left out now is
    calls = []

    def current(part: Any) -> Any:
        return stands_for.get(part, part) if type(part) is Value else part

    for call in program.calls:
        if stands_for and not stands_for.keys().isdisjoint(call.reads):
            call.replace(current)
        if moved:
            for value in call.results:
                value.storage = moved.get(value.storage, value.storage)
        if call.target is not None:
            if stands_for:
                call.target, call.changes = current(call.target), tuple(map(current, call.changes))
            for value in call.targets():
                writes[value.storage] = writes.get(value.storage, 0) + 1
        elif call.check is None:
            for value in call.results:
                if value.storage.writes or value.storage in kept:
                    break
            else:
                try:
                    earlier = known.setdefault(_key(call, writes), call)
                except TypeError:  # of what cannot be hashed it cannot be told whether it is the same
                    earlier = call
                if earlier is not call:
                    for mine, theirs in zip(call.results, earlier.results, strict=True):
                        stands_for[mine] = theirs
                        moved[mine.storage] = theirs.storage
                    continue
        calls.append(call)
    return Program(program.inputs, calls, program.outputs)


def _key(call: Call, writes: Mapping[Storage, int]) -> Any:
    """Return what is equal of two calls that give the same."""
    key: list[Any] = [call.function]
    for arg in call.args:
        key.append(arg if type(arg) is Value and not arg.storage.writes else _part_of_key(arg, writes))
    for name, arg in call.options.items():
        key += name, _part_of_key(arg, writes)
    return tuple(key)


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
    if hasattr(arg, "shape") and hasattr(arg, "dtype"):
        return "constant", id(arg)
    return kind, arg if arg == arg and not (kind is float and arg == 0) else repr(arg)
