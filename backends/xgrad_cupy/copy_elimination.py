"""Elimination of copies, such as copies of gradients to the buffers of optimizers.

``r = sum(g); buffer[...] = r`` becomes ``sum(g, out=buffer)``, one launch instead of two. The
remaining small copies share launches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xgrad.capture.fusion import is_contiguous
from xgrad.capture.program import Call, Value
from xgrad_cupy.calls import Uses, is_view
from xgrad_cupy.kernels.copies import MAX_ARRAYS, JointCopies

_MAX_BYTES = 1 << 20  # bytes of an array whose copy waits for others


def write_to_targets(
    calls: Sequence[Call], sum: Callable[..., Any], outputs: Sequence[Value], uses: Uses
) -> list[Call]:
    """Return calls in which sums write directly to the arrays that their results are copied to.

    Outputs of the program stay where they are. `sum` has the option `out`.
    """
    result: list[Call | None] = list(calls)
    kept = {x.storage for x in outputs}
    for i, copy in enumerate(calls):
        if not _copies_whole(copy):
            continue
        target, _, value = copy.args
        first, *touching = uses.of(value)
        maker = calls[first]
        fits = (
            maker.function is sum
            and value.storage.kind == "temporary"
            and value.storage not in kept
            and bool(maker.results)
            and maker.results[0].shape == target.shape
            and maker.results[0].dtype == target.dtype
            and all(is_contiguous(x) for x in (target, value, *maker.results))
            and all(calls[j] is copy or is_view(calls[j]) for j in touching)
        )
        if not fits or uses.between(target, first, i):
            continue
        options = {**maker.options, "out": target}
        result[first] = Call(maker.function, maker.args, options, (target,), line=maker.line)
        for j in touching:
            result[j] = None
    return [x for x in result if x is not None]


def join_copies(cp: Any, calls: Sequence[Call], uses: Uses) -> list[Call]:
    """Return calls in which one launch makes several copies of small contiguous arrays.

    A copy waits for later ones, as long as no call in between reads or writes its memory.
    """
    result: list[Call] = []
    waiting: list[Call] = []

    def flush() -> None:
        if len(waiting) > 1:
            result.append(_joint_call(cp, waiting))
        else:
            result.extend(waiting)
        waiting.clear()

    for call in calls:
        small = _copies_whole(call) and _is_small_copy(call)
        if any(_conflict(copy, call, uses) for copy in waiting):
            flush()
        if small and waiting and waiting[0].args[0].dtype != call.args[0].dtype:
            flush()
        if small:
            waiting.append(call)
            if len(waiting) == MAX_ARRAYS:
                flush()
        else:
            result.append(call)
    flush()
    return result


def _joint_call(cp: Any, copies: Sequence[Call]) -> Call:
    """Return one call in place of copies."""
    targets = tuple([copy.args[0] for copy in copies])
    sources = tuple([copy.args[2] for copy in copies])
    return Call(JointCopies(cp), (sources, targets), {}, targets, line=copies[0].line)


def _conflict(copy: Call, call: Call, uses: Uses) -> bool:
    """Return whether a copy may not be made after a call instead of before it."""
    target, _, source = copy.args
    if uses.accesses(call, target):
        return True
    written = {x.storage for x in call.writes}
    return source.storage in written and uses.accesses(call, source)


def _copies_whole(call: Call) -> bool:
    """Return whether a call copies all elements of a value to another of its shape and dtype."""
    if call.function is not operator.setitem or call.args[1] is not Ellipsis:
        return False
    target, _, value = call.args
    return type(value) is Value and value.shape == target.shape and value.dtype == target.dtype


def _is_small_copy(copy: Call) -> bool:
    """Return whether a call copies a small contiguous array to other memory.

    A copy to memory that overlaps its source remains CuPy's, which keeps the source's elements.
    """
    target, _, value = copy.args
    apart = target.storage is not value.storage
    return apart and target.nbytes <= _MAX_BYTES and is_contiguous(target) and is_contiguous(value)
