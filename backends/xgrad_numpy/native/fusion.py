"""Fusion: runs of elementwise instructions on buffers become loops.

The loops read and write each element once. A `Run` is one call of C: nests of loops, and between
them calls of functions, such as matrix products. A `Nest` is nested loops over the elements of
arrays of one shape. For each element it executes its statements one after the other, instead of
each statement for all elements. The values are the same because any two places that its statements
access, one of them to write, are the same for each element, or apart in memory: `_may_join` checks
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, product, takewhile
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import leaves
from xgrad_numpy.codegen import ArraySlot, Instruction
from xgrad_numpy.native.calls import WRITE_LAST, NativeCall, call_of
from xgrad_numpy.native.copy_propagation import propagate_copies
from xgrad_numpy.native.places import Bounds, Place, array_in, distinct, is_within, overlap, without
from xgrad_numpy.native.statements import Statement, statement_of

_STREAMS = 12  # maximum number of arrays that a loop reads or writes
# elements from which a single statement is worth a C call, whose threads share it out
_LARGE = 1 << 14


@dataclass(slots=True, eq=False)
class Nest:
    """Statements over one shape, and the results that are needed afterwards."""

    statements: list[Statement]
    stored: list[Place] = field(default_factory=list)


Part = Nest | NativeCall


@dataclass(slots=True, eq=False)
class Run:
    """Consecutive instructions that become one call."""

    parts: list[Part]


def fuse(
    parts: Sequence[Sequence[Instruction]], memory: np.ndarray, outputs: Sequence[ArraySlot], *,
    products: bool = False, least: int = _LARGE,
) -> list[list[Any]]:  # fmt: skip
    """Return the parts of a program, with runs in place of the instructions that C executes.

    Results in `memory`, which holds all buffers, are stored only if a later instruction reads them,
    or they are outputs. Matrix products, indices and their checks are left to NumPy unless
    `products`, and so are single statements of fewer than `least` elements. All parts but the last
    may end a replay, because their writes to the state, if there are any, can be undone.
    """
    instructions = list(chain.from_iterable(parts))
    statements = [statement_of(x) for x in instructions]
    buffers = byte_bounds(memory)
    for i, statement in enumerate(statements):
        if statement is not None:
            statement.private = statement.out.is_new or is_within(statement.out.bounds, buffers)
            if (statement.out.moves or statement.moves) and not statement.private:
                statements[i] = None
    copies = propagate_copies(instructions, statements, buffers)  # by index of the instruction
    accesses = [
        _Access.of(x, statement) for x, statement in zip(instructions, statements, strict=True)
    ]
    kept = [byte_bounds(slot.array) for slot in outputs if isinstance(slot.array, np.ndarray)]
    for x, access in zip(instructions, accesses, strict=True):
        if x.results and not isinstance(x.function, np.ufunc):  # the result may be a view
            kept += access.reads
    unread = {
        i for i, x in copies.items() if _is_dead(x.out.bounds, buffers, accesses[i + 1 :], kept)
    }
    fused, start, last = list[list[Any]](), 0, max(len(parts) - 1, 1)
    for number, part in enumerate(parts):
        may_end = number < last
        end, new = start + len(part), list[Any]()
        left = [i for i in range(start, end) if i not in unread]
        members = [
            statements[i] or call_of(instructions[i], buffers, products=products, first=may_end)
            for i in left
        ]
        at = 0
        while at < len(left):
            row = [x for x in takewhile(lambda x: x is not None, members[at:]) if x is not None]
            if not _is_worth_a_call(row, least):
                count = max(len(row), 1)
                new += [instructions[i] for i in left[at : at + count]]
                at += count
                continue
            run = Run(_parts_of(row))
            for member in run.parts:
                at += len(member.statements) if isinstance(member, Nest) else 1
                if isinstance(member, Nest):
                    later = accesses[left[at - 1] + 1 :]
                    written = distinct(y.out for y in member.statements)
                    member.stored = [
                        y for y in written if not _is_dead(y.bounds, buffers, later, kept)
                    ]
            new.append(run)
        fused.append(new)
        start = end
    return fused


def _is_worth_a_call(row: Sequence[Statement | NativeCall], least: int) -> bool:
    """Return whether C should execute instructions: several, or one of many elements."""
    if len(row) != 1:
        return len(row) > 1
    (x,) = row
    if isinstance(x, NativeCall):
        return x.is_worth_a_call(least)
    return x.rewritten or x.out.array.size >= least  # the interpreter would read a copy


def _parts_of(row: Sequence[Statement | NativeCall]) -> list[Part]:
    """Return the parts in order: nests of the statements, and all others."""
    parts: list[Part] = []
    for are_statements, group in groupby(row, lambda x: isinstance(x, Statement)):
        if are_statements:
            parts += _nests([x for x in group if isinstance(x, Statement)])
        else:
            parts += [x for x in group if isinstance(x, NativeCall)]
    return parts


def _nests(statements: Sequence[Statement]) -> list[Nest]:
    """Return nests with the statements in order."""
    nests: list[Nest] = []
    for statement in statements:
        nest = Nest([statement])
        while nests and _may_join(nests[-1], nest):
            nest = Nest([*nests.pop().statements, *nest.statements])
        nests.append(nest)
    return nests


def _may_join(nest: Nest, later: Nest) -> bool:
    """Return whether two nests may be executed together for each element, and gain by it.

    They gain if they share elements. Loops over many arrays are slow, because each array is a
    stream from memory.
    """
    if nest.statements[0].shape != later.statements[0].shape:
        return False
    statements = [*nest.statements, *later.statements]
    if any(x.moves for x in statements) and not all(x.private for x in statements):
        return False  # inputs may share memory with the state
    known = list(chain.from_iterable(x.places for x in nest.statements))
    read = list(chain.from_iterable(x.inputs for x in later.statements))
    if not any(x.is_same(y) and any(x.strides) for x in read for y in known):
        return False
    if (
        len(known) > _STREAMS
        and len(distinct(chain.from_iterable(x.places for x in statements))) > _STREAMS
    ):
        return False
    for one, other in product(nest.statements, later.statements):
        pairs = [(one.out, place) for place in other.places]
        pairs += [(place, other.out) for place in one.inputs]
        if not all(x.is_same(y) or x.is_apart(y) for x, y in pairs):
            return False
    return True


@dataclass(slots=True)
class _Access:
    """Bounds of the memory that an instruction may read, and of what it overwrites entirely."""

    reads: list[Bounds]
    overwrites: Bounds | None

    @classmethod
    def of(cls, x: Instruction, statement: Statement | None) -> _Access:
        if statement is not None:
            reads = [place.bounds for place in statement.inputs]
            whole = statement.out.array.flags.forc
            return (
                cls(reads, statement.out.bounds)
                if whole
                else cls([*reads, statement.out.bounds], None)
            )
        operands = leaves((*x.operands, *x.options.values()))
        out = array_in(operands.pop()) if x.result is None and x.function in WRITE_LAST else None
        reads = [byte_bounds(array) for array in map(array_in, operands) if array is not None]
        if out is not None and not out.flags.forc:
            return cls([*reads, byte_bounds(out)], None)
        return cls(reads, None if out is None else byte_bounds(out))


def _is_dead(
    place: Bounds, buffers: Bounds, later: Sequence[_Access], kept: Sequence[Bounds]
) -> bool:
    """Return whether the values written to a place are not read again."""
    if not is_within(place, buffers):
        return False
    left = [place]  # parts that have not been overwritten
    for access in later:
        if any(overlap(part, read) for part in left for read in access.reads):
            return False
        if access.overwrites is not None and overlap(place, access.overwrites):
            left = [rest for part in left for rest in without(part, access.overwrites)]
            if not left:
                return True
    return not any(overlap(part, other) for part in left for other in kept)


def loops_of(nest: Nest) -> tuple[list[int], list[list[int]], list[Place]]:
    """Return the loops of a nest: their lengths, the strides of its places in them, and the places.

    Each place is listed once. Loops are ordered by the strides of the first result, the innermost
    last, and joined if all places allow it.
    """
    places = distinct(chain.from_iterable(statement.places for statement in nest.statements))
    shape, out = nest.statements[0].shape, nest.statements[0].out
    order = sorted((i for i, n in enumerate(shape) if n > 1), key=lambda i: -abs(out.strides[i]))
    lengths: list[int] = []
    strides: list[list[int]] = [[] for _ in places]
    for axis in order:
        new = [place.strides[axis] for place in places]
        if lengths and all(
            of[-1] == stride * shape[axis] for of, stride in zip(strides, new, strict=True)
        ):
            lengths[-1] *= shape[axis]
            for of, stride in zip(strides, new, strict=True):
                of[-1] = stride
        else:
            lengths.append(shape[axis])
            for of, stride in zip(strides, new, strict=True):
                of.append(stride)
    return lengths, strides, places
