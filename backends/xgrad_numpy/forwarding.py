"""Results that are but copied to another place: they are written there at once."""

from __future__ import annotations

from collections import Counter

import numpy as np

from xgrad.capturing.arrays import method
from xgrad.capturing.operators import setitem
from xgrad.capturing.program import Call, Storage, Value
from xgrad_numpy.layout import in_order

_DOT = method("dot")


def forwarded(calls: list[Call], handed_out: set[Storage]) -> list[Call]:
    """Let calls write their result where it is copied to, if it is needed nowhere else."""
    uses = Counter([value for call in calls for value in call.reads])
    made = {call.results[0]: call for call in calls if call.single and call.results}
    dropped = set[Call]()
    for i, call in enumerate(calls):
        if call.function is not setitem or call.args[1] is not Ellipsis or type(call.args[2]) is not Value:
            continue
        target, _, value = call.args
        maker = made.get(value)
        if maker is None or uses[value] != 1 or value.storage.writes or value.storage in handed_out:
            continue
        if not _takes_out(maker, target):
            continue
        if (target.shape, target.dtype) != (value.shape, value.dtype) or value.storage is not maker.results[0].storage:
            continue
        between = calls[calls.index(maker) : i]
        touched = [v for c in between for v in (*c.reads, c.target) if v is not None and v.storage is target.storage]
        if any(target.overlaps(v) for v in touched):
            continue
        maker.target, maker.out, maker.results = target, True, []
        dropped.add(call)
    return [call for call in calls if call not in dropped]


def _takes_out(call: Call, target: Value) -> bool:
    if call.function is _DOT:
        return in_order(target.strides, target.shape, target.dtype.itemsize)
    if any(min(value.strides or (0,)) < 0 for value in (target, *call.reads)):
        return False
    return isinstance(call.function, np.ufunc) and call.function.nout == 1 and not call.options
