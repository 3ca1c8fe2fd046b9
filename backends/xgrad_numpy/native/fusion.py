"""Fusion: runs of elementwise instructions on buffers become loops that read and write each element once.

A `Run` is what one call of C does: nests of loops, and calls of functions between them, such as matrix products. A
`Nest` is what C has as nested loops over the elements of arrays of one shape. It executes its statements one after the
other for each element, in place of each for all elements. That gives the same values because any two places that its
statements access, and one writes to, are the same for each element, or apart in memory: `_may_join` looks.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, takewhile
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import leaves
from xgrad_numpy.codegen import Instruction, Slot, is_planned
from xgrad_numpy.instructions import PUTMASK
from xgrad_numpy.native.calls import WRITE_LAST, NativeCall, call_of
from xgrad_numpy.native.expressions import MEMORY_TYPES, expression
from xgrad_numpy.native.places import Bounds, Place, array_in, distinct, is_within, overlap

_STREAMS = 12  # arrays that a loop reads or writes at most
_LARGE = 1 << 14  # elements from which a single statement is worth a call of C, whose threads share it out


@dataclass(slots=True, eq=False)
class Statement:
    """``out = expression(inputs)`` for each element, with the inputs converted to the dtypes `computed` before."""

    text: str
    inputs: list[Place]
    out: Place
    computed: list[np.dtype[Any]]
    private: bool = False  # whether the result is in a buffer or in new memory, which no input shares

    @property
    def moves(self) -> bool:
        """Whether it reads what is in other memory in each replay."""
        return any(place.moves for place in self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.out.array.shape

    @property
    def places(self) -> list[Place]:
        """The places that it reads, and the one that it writes to."""
        return [*self.inputs, self.out]


@dataclass(slots=True, eq=False)
class Nest:
    """Statements over one shape, and which of their results are needed afterwards."""

    statements: list[Statement]
    stored: list[Place] = field(default_factory=list)


Part = Nest | NativeCall


@dataclass(slots=True, eq=False)
class Run:
    """Instructions in a row that become one call."""

    parts: list[Part]


def fuse(
    parts: Sequence[Sequence[Instruction]], memory: np.ndarray, outputs: Sequence[Slot], *,
    products: bool = False, least: int = _LARGE,
) -> list[list[Any]]:  # fmt: skip
    """Return the parts of a program, with runs in the place of instructions that become several statements.

    Results in `memory`, where all buffers are, are stored only if an instruction reads them later, or they are outputs.
    Matrix products, indices and their checks are left to NumPy unless `products`, and so are single statements of fewer
    than `least` elements. The first part may end a replay, since it has changed nothing but buffers.
    """
    instructions = list(chain.from_iterable(parts))
    statements = [_statement_of(x) for x in instructions]
    accesses = [_Access.of(x, statement) for x, statement in zip(instructions, statements, strict=True)]
    buffers = byte_bounds(memory)
    for i, statement in enumerate(statements):
        if statement is not None:
            statement.private = statement.out.is_new or is_within(statement.out.bounds, buffers)
            if (statement.out.moves or statement.moves) and not statement.private:
                statements[i] = None
    kept = [byte_bounds(slot.array) for slot in outputs if isinstance(slot.array, np.ndarray)]
    for x, access in zip(instructions, accesses, strict=True):
        if x.results and not isinstance(x.function, np.ufunc):  # what it returns may be a view
            kept += access.reads
    members = [
        x or call_of(y, products=products, first=i < len(parts[0]))
        for i, (x, y) in enumerate(zip(statements, instructions, strict=True))
    ]
    fused, start = list[list[Any]](), 0
    for part in parts:
        end, new = start + len(part), list[Any]()
        while start < end:
            row = [x for x in takewhile(lambda x: x is not None, members[start:end]) if x is not None]
            if not _is_worth_a_call(row, least):
                new += instructions[start : start + max(len(row), 1)]
                start += max(len(row), 1)
                continue
            run = Run(_parts_of(row))
            for member in run.parts:
                start += len(member.statements) if isinstance(member, Nest) else 1
                if isinstance(member, Nest):
                    later, written = accesses[start:], distinct(y.out for y in member.statements)
                    member.stored = [y for y in written if not _is_dead(y.bounds, buffers, later, kept)]
            new.append(run)
        fused.append(new)
    return fused


def _is_worth_a_call(row: Sequence[Statement | NativeCall], least: int) -> bool:
    """Return whether C is to execute instructions: more than one, or one of many elements."""
    if len(row) != 1:
        return len(row) > 1
    (x,) = row
    return x.is_worth_a_call(least) if isinstance(x, NativeCall) else x.out.array.size >= least


def _parts_of(row: Sequence[Statement | NativeCall]) -> list[Part]:
    """Return nests of the statements, and the other parts, in their order."""
    parts: list[Part] = []
    for are_statements, group in groupby(row, lambda x: isinstance(x, Statement)):
        if are_statements:
            parts += _nests([x for x in group if isinstance(x, Statement)])
        else:
            parts += [x for x in group if isinstance(x, NativeCall)]
    return parts


def _statement_of(x: Instruction) -> Statement | None:
    """Return an instruction as a statement, None if it is none that C can make with the same bits."""
    if not is_planned(x):
        return None
    if x.function is operator.setitem:
        target, key, value = x.operands
        return _statement("{0}", [value], target) if key is Ellipsis else None
    if x.function is PUTMASK:
        target, mask, value = x.operands
        return _statement("{0} ? {1} : {2}", [mask, value, target], target, condition=True)
    function = x.function
    if not isinstance(function, np.ufunc) or function.signature is not None or x.options.keys() - {"out"}:
        return None
    operands = (*x.operands, *x.options.values())
    inputs, out = operands[:-1], operands[-1]
    arrays = [array_in(operand) for operand in inputs]
    if len(inputs) != function.nin or any(array is None for array in arrays):
        return None
    computed, *others = function.resolve_dtypes((*[array.dtype for array in arrays if array is not None], None))
    text = expression(function, computed)
    if text is None or any(dtype != computed for dtype in others[:-1]):
        return None
    statement = _statement(text, inputs, out, computed)
    return statement if statement is not None and statement.out.array.dtype == others[-1] else None


def _statement(
    text: str, inputs: Sequence[Any], out: Any, dtype: np.dtype[Any] | None = None, *, condition: bool = False
) -> Statement | None:
    """Return the statement of an expression, which computes in a dtype, by default the dtype of the result.

    The first input may be a `condition`, a bool. None if C has no type for a dtype or no cast between two, or if memory
    is not aligned, or overlaps with the result.
    """
    result = array_in(out)
    if result is None or not result.size:
        return None
    places = [_place(operand, result.shape) for operand in (*inputs, out)]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        return None
    *sources, target = known
    if any(n > 1 and not stride for n, stride in zip(result.shape, target.strides, strict=True)):
        return None  # the last of several elements remains
    computed = [dtype or result.dtype] * len(sources)
    if condition:
        computed[0] = np.dtype(np.bool)
    if not all(_is_cast(place.array.dtype, kind) for place, kind in zip(sources, computed, strict=True)):
        return None
    if not all(place.is_same(target) or place.is_apart(target) for place in sources):
        return None
    return Statement(text, sources, target, computed)


def _is_cast(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether C defines a cast as NumPy does. C does not define the cast of a large float to an integer."""
    return one.kind == other.kind or one.kind == "b"


def _place(operand: Any, shape: tuple[int, ...]) -> Place | None:
    """Return the place of an operand broadcast to a shape, None if C cannot access it."""
    array = array_in(operand)
    if array is None or array.ndim > len(shape):
        return None
    if not array.flags.aligned or array.dtype not in MEMORY_TYPES:
        return None
    missing = len(shape) - array.ndim
    lengths, strides = (1,) * missing + array.shape, (0,) * missing + array.strides
    if any(n not in (1, size) for n, size in zip(lengths, shape, strict=True)):
        return None
    return Place(operand, array, tuple([0 if n == 1 else s for n, s in zip(lengths, strides, strict=True)]))


def _nests(statements: Sequence[Statement]) -> list[Nest]:
    """Return nests with the statements in their order."""
    nests = [Nest([statements[0]])]
    for statement in statements[1:]:
        if _may_join(statement, nests[-1]):
            nests[-1].statements.append(statement)
        else:
            nests.append(Nest([statement]))
    return nests


def _may_join(statement: Statement, nest: Nest) -> bool:
    """Return whether a statement may be executed for each element together with those before it, and gains by it.

    It gains by elements that are at hand. Loops over many arrays are slow, since each is a stream from memory.
    """
    if statement.shape != nest.statements[0].shape:
        return False
    statements = [*nest.statements, statement]
    if any(x.moves for x in statements) and not all(x.private for x in statements):
        return False  # inputs may share memory with the state
    known = list(chain.from_iterable(earlier.places for earlier in nest.statements))
    if not any(x.is_same(y) and any(x.strides) for x in statement.inputs for y in known):
        return False
    if len(known) > _STREAMS and len(distinct([*known, *statement.places])) > _STREAMS:
        return False
    for earlier in nest.statements:
        pairs = [(earlier.out, place) for place in statement.places]
        pairs += [(place, statement.out) for place in earlier.inputs]
        if not all(x.is_same(y) or x.is_apart(y) for x, y in pairs):
            return False
    return True


@dataclass(slots=True)
class _Access:
    """The memory that an instruction may read, and the memory that it overwrites entirely, by their bounds."""

    reads: list[Bounds]
    overwrites: Bounds | None

    @classmethod
    def of(cls, x: Instruction, statement: Statement | None) -> _Access:
        if statement is not None:
            reads = [place.bounds for place in statement.inputs]
            whole = statement.out.array.flags.forc
            return cls(reads, statement.out.bounds) if whole else cls([*reads, statement.out.bounds], None)
        operands = leaves((*x.operands, *x.options.values()))
        out = array_in(operands.pop()) if x.result is None and x.function in WRITE_LAST else None
        reads = [byte_bounds(array) for array in map(array_in, operands) if array is not None]
        if out is not None and not out.flags.forc:
            return cls([*reads, byte_bounds(out)], None)
        return cls(reads, None if out is None else byte_bounds(out))


def _is_dead(place: Bounds, buffers: Bounds, later: Sequence[_Access], kept: Sequence[Bounds]) -> bool:
    """Return whether what was written to a place is not read again."""
    if not is_within(place, buffers):
        return False
    for access in later:
        if any(overlap(place, read) for read in access.reads):
            return False
        if access.overwrites is not None and is_within(place, access.overwrites):
            return True
    return not any(overlap(place, other) for other in kept)


def loops_of(nest: Nest) -> tuple[list[int], list[list[int]], list[Place]]:
    """Return the lengths of the loops of a nest, the strides of its places in them, and the places, each once.

    Loops are ordered by the strides of the first result, the innermost last, and joined where all places allow it.
    """
    places = distinct(chain.from_iterable(statement.places for statement in nest.statements))
    shape, out = nest.statements[0].shape, nest.statements[0].out
    order = sorted((i for i, n in enumerate(shape) if n > 1), key=lambda i: -abs(out.strides[i]))
    lengths: list[int] = []
    strides: list[list[int]] = [[] for _ in places]
    for axis in order:
        new = [place.strides[axis] for place in places]
        if lengths and all(of[-1] == stride * shape[axis] for of, stride in zip(strides, new, strict=True)):
            lengths[-1] *= shape[axis]
            for of, stride in zip(strides, new, strict=True):
                of[-1] = stride
        else:
            lengths.append(shape[axis])
            for of, stride in zip(strides, new, strict=True):
                of.append(stride)
    return lengths, strides, places
