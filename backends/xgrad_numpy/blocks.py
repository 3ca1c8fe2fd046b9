"""Runs of elementwise actions on large arrays, done block by block: what one writes, the next finds in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import getitem
from typing import Any

import numpy as np

from xgrad_numpy.actions import Action, Slot

_LARGE = 1 << 17  # elements from which a run is done in blocks: two float32 arrays no longer fit in a usual L2 cache
_BLOCK = 1 << 18  # bytes of an array in a block, which takes ten times as long as to call a function


def in_blocks(actions: Iterable[Action], planned: np.ndarray, lies: Callable[..., Slot]) -> list[Action]:
    """Return actions in which runs of some are replaced by others, on blocks of their arrays.

    Parameters
    ----------
    actions : iterable of Action
        The slots of what stays have their arrays.
    planned : array
        The memory that only these actions see.
    lies : callable
        What makes a slot of an array that stays, given how to find it, and what it is part of.
    """
    found: list[Action] = []
    run: list[Action] = []
    made: list[Action] = []  # among the run
    for action in actions:
        if run and action.makes:
            made.append(action)
        elif run and action.shape == run[0].shape:
            run.append(action)
        else:
            found += [*made, *_cut(run, planned, lies)]
            run, made = [], []
            if action.shape is not None and math.prod(action.shape) >= _LARGE:
                run = [action]
            else:
                found.append(action)
    return [*found, *made, *_cut(run, planned, lies)]


def _cut(run: list[Action], planned: np.ndarray, lies: Callable[..., Slot]) -> list[Action]:
    """Return a run block by block, as it is if it cannot be cut."""
    if len(run) < 2:
        return run
    arrays = {id(x): x for action in run for x in (*action.operands, *action.options.values()) if _is_array(x)}
    cuts = _cuts(run, list(arrays.values()), planned)
    if cuts is None:
        return run
    slices, flat = cuts
    shape: Any = run[0].shape
    found: list[Action] = []

    def part(of: Any, function: Callable[..., Any], arg: Any) -> Any:
        if not _moves(of):
            return lies(lambda: function(_now(of), arg), *([of] if type(of) is Slot else []))
        slot = Slot(moves=True)
        found.append(Action(function, (of, arg), into=slot))
        return slot

    if flat:
        rows = {key: part(x, np.ndarray.reshape, -1) for key, x in arrays.items() if _shape(x) == shape}
        single = {
            key: part(x, np.ndarray.reshape, ())
            for key, x in arrays.items()
            if 1 == math.prod(_shape(x)) < len(_shape(x))
        }
    else:
        rows = {key: x for key, x in arrays.items() if len(_shape(x)) == len(shape) and _shape(x)[0] == shape[0]}
        single = {}
    for block in slices:
        parts = {**single, **{key: part(x, getitem, block) for key, x in rows.items()}}
        for action in run:
            operands = tuple([parts.get(id(x), x) for x in action.operands])
            options = {name: parts.get(id(x), x) for name, x in action.options.items()}
            found.append(Action(action.function, operands, options))
    return found


def _cuts(run: list[Action], arrays: list[Any], planned: np.ndarray) -> tuple[list[slice], bool] | None:
    """Return the pieces into which a run is cut, and whether all axes count as one; None if it cannot be."""
    shape = run[0].shape or ()
    if not shape or not _apart(run, arrays, planned):
        return None
    single = [x for x in arrays if math.prod(_shape(x)) == 1]
    whole = [x for x in arrays if _shape(x) == shape]
    flat = len(whole) + len(single) == len(arrays) and all(map(_in_order, whole))
    length = math.prod(shape) if flat else shape[0]
    count = _BLOCK // max([_now(x).itemsize for x in arrays if not _moves(x)], default=4)
    step = count if flat else max(1, count * shape[0] // math.prod(shape))
    if 2 * step > length:
        return None
    return [slice(start, start + step) for start in range(0, length, step)], flat


def _apart(run: list[Action], arrays: Sequence[Any], planned: np.ndarray) -> bool:
    """Return whether what is written in one block is not what another block reads."""
    fixed = [_now(x) for x in arrays if not _moves(x)]
    shared = any(not x.ours for x in arrays if _moves(x))
    for written in {id(_now(x)): _now(x) for x in (action.written for action in run) if not _moves(x)}.values():
        if shared and not np.may_share_memory(written, planned):
            return False
        for other in fixed:
            same = _place(written) == _place(other) and written.itemsize == other.itemsize
            if not same and np.may_share_memory(written, other):
                return False
    return True


def _is_array(x: Any) -> bool:
    """Return whether an operand is an array; a slot may also be one of a number."""
    return x.shape is not None if _moves(x) else isinstance(_now(x), np.ndarray)


def _moves(x: Any) -> bool:
    return type(x) is Slot and x.moves


def _now(x: Any) -> Any:
    return x.now if type(x) is Slot else x


def _shape(x: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = x.shape if _moves(x) else _now(x).shape
    return shape


def _in_order(x: Any) -> bool:
    return x.in_order if _moves(x) else bool(_now(x).flags.c_contiguous)


def _place(array: np.ndarray) -> tuple[Any, ...]:
    return array.ctypes.data, array.shape, array.strides
