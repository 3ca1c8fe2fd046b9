"""Results of a program that are copied to other memory, computed there at once.

Gradients are results that an optimizer's buffer takes: ``r = sum(g); buffer[...] = r`` becomes
``sum(g, out=buffer)``, one launch in place of two.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xgrad.capture.fusion import is_contiguous
from xgrad.capture.program import Call, Storage, Value


def place(
    calls: Sequence[Call],
    functions: Sequence[Callable[..., Any]],
    outputs: Sequence[Value],
    overlap: Callable[[Value, Value], bool],
) -> list[Call]:
    """Return calls in which functions of the given ones write to where their result is copied.

    These functions have the option `out`, an array of the shape and dtype of their result. The
    outputs of the program stay where they are. `overlap` tells whether two parts of the state share
    memory.
    """
    result: list[Call | None] = list(calls)
    uses, kept = _uses(calls), {x.storage for x in outputs}
    # the first value in the same memory, for each view
    viewed = {view: x.reads[0] for x in calls if _is_view(x) for view in x.results}

    def origin(x: Value) -> Value:
        while x in viewed:
            x = viewed[x]
        return x

    def is_used(target: Value, call: Call) -> bool:
        return not _is_view(call) and any(
            x.storage is target.storage and overlap(origin(x), origin(target))
            for x in (*call.reads, *call.writes, *call.results)
        )

    for i, copy in enumerate(calls):
        if not _copies_whole(copy):
            continue
        target, _, value = copy.args
        first, *touching = uses[value.storage]
        maker = calls[first]
        fits = (
            maker.function in functions
            and value.storage.kind == "temporary"
            and value.storage not in kept
            and bool(maker.results)
            and maker.results[0].shape == target.shape
            and maker.results[0].dtype == target.dtype
            and all(is_contiguous(x) for x in (target, value, *maker.results))
            and all(calls[j] is copy or _is_view(calls[j]) for j in touching)
        )
        # the target exists before, and nothing else uses it between the result and the copy
        between = calls[first:i]
        if not fits or any(target in x.results or is_used(target, x) for x in between):
            continue
        options = {**maker.options, "out": target}
        result[first] = Call(maker.function, maker.args, options, (target,), line=maker.line)
        for j in touching:
            result[j] = None
    return [x for x in result if x is not None]


def _uses(calls: Sequence[Call]) -> dict[Storage, list[int]]:
    """Return the indices of the calls that access each storage, in order."""
    uses: dict[Storage, list[int]] = {}
    for i, call in enumerate(calls):
        for storage in {x.storage for x in (*call.reads, *call.writes, *call.results)}:
            uses.setdefault(storage, []).append(i)
    return uses


def _copies_whole(call: Call) -> bool:
    """Return whether a call copies all elements of a value to another of its shape and dtype."""
    if call.function is not operator.setitem or call.args[1] is not Ellipsis:
        return False
    target, _, value = call.args
    return type(value) is Value and value.shape == target.shape and value.dtype == target.dtype


def _is_view(call: Call) -> bool:
    """Return whether a call only makes views of an array."""
    storages = {x.storage for x in (*call.reads, *call.results)}
    return bool(call.reads and call.results) and not call.writes and len(storages) == 1
