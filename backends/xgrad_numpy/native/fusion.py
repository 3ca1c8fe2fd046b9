"""Fusion: runs of elementwise instructions on buffers become loops that read and write each element once.

A `Run` is what one call of C does: nests of loops, and matrix products between them. A `Nest` is what C has as nested
loops over the elements of arrays of one shape. It executes its statements one after the other for each element, in
place of each for all elements. That gives the same values because any two places that its statements access, and one
writes to, are the same for each element, or apart in memory: `_may_join` looks.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, takewhile
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import leaves
from xgrad_numpy import functions
from xgrad_numpy.codegen import Instruction, Slot, array_of, is_planned
from xgrad_numpy.lowering import PUTMASK
from xgrad_numpy.native.expressions import MEMORY_TYPES, expression
from xgrad_numpy.native.loops import Loop, loop_of
from xgrad_numpy.native.products import Product, product_of

_STREAMS = 12  # arrays that a loop reads or writes at most
_LARGE = 1 << 14  # elements from which a single statement is worth a call of C, whose threads share it out

Bounds = tuple[int, int]  # the address of the first byte of an array, and that after the last


@dataclass(slots=True, eq=False)
class Place:
    """The memory of an operand for a statement, with its strides for the shape of the result."""

    operand: Any  # a slot or an array
    array: np.ndarray
    strides: tuple[int, ...]
    bounds: Bounds = field(init=False)
    address: int = field(init=False)  # of the first element

    def __post_init__(self) -> None:
        self.bounds = byte_bounds(self.array)
        self.address = self.array.__array_interface__["data"][0]

    @property
    def moves(self) -> bool:
        """Whether it is in other memory in each replay: an input, or the result of a call in new memory."""
        return type(self.operand) is Slot and self.operand.dynamic

    @property
    def is_new(self) -> bool:
        """Whether it is in memory that the run makes for a result, which no input shares."""
        return type(self.operand) is Slot and self.operand.new

    def is_same(self, other: Place) -> bool:
        """Return whether both are the same memory for each element; their dtypes may differ."""
        same = self.address == other.address and self.strides == other.strides
        return same and self.array.itemsize == other.array.itemsize

    def is_apart(self, other: Place) -> bool:
        """Return whether they have no byte in common, by their bounds."""
        return not _overlap(self.bounds, other.bounds)


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


@dataclass(slots=True, eq=False)
class Multiplication:
    """A matrix product: its instruction, and the places of its operands and of its result."""

    instruction: Instruction
    product: Product
    places: list[Place]

    @classmethod
    def of(cls, x: Instruction) -> Multiplication | None:
        """Return an instruction as a multiplication, if it is one that C can call."""
        product = product_of(x)
        if product is None:
            return None
        arrays = map(array_of, x.operands)
        return cls(x, product, [Place(y, z, z.strides) for y, z in zip(x.operands, arrays, strict=True)])


@dataclass(slots=True, eq=False)
class LoopCall:
    """A function without an expression, by NumPy's inner loop: of contiguous operands of the dtype of the result."""

    function: np.ufunc
    loop: Loop
    places: list[Place]

    @classmethod
    def of(cls, x: Instruction) -> LoopCall | None:
        """Return an instruction as the call of a loop, if it is one."""
        if x.function not in LOOPS or not is_planned(x) or x.options or len(x.operands) != x.function.nargs:
            return None
        arrays = [array for array in map(_array, x.operands) if array is not None]
        if len(arrays) < len(x.operands) or not arrays[-1].size:
            return None
        out = arrays[-1]
        for array in arrays:
            if (array.shape, array.dtype, array.strides) != (out.shape, out.dtype, out.strides):
                return None
            if not array.flags.aligned:
                return None
        places = [Place(y, array, array.strides) for y, array in zip(x.operands, arrays, strict=True)]
        if not out.flags.forc or not all(place.is_same(places[-1]) or place.is_apart(places[-1]) for place in places):
            return None
        loop = loop_of(x.function, out.dtype)
        return None if loop is None else cls(x.function, loop, places)


@dataclass(slots=True, eq=False)
class Extremes:
    """The largest or the smallest element of each row of a contiguous matrix."""

    smallest: bool
    places: list[Place]

    @classmethod
    def of(cls, x: Instruction) -> Extremes | None:
        """Return an instruction as one, if it is."""
        if x.function not in (functions.largest_of_rows, functions.smallest_of_rows) or not is_planned(x):
            return None
        operand, out = (_array(y) for y in x.operands)
        if operand is None or out is None or operand.dtype != out.dtype or operand.dtype.kind != "f":
            return None
        if operand.dtype not in MEMORY_TYPES or not (operand.flags.c_contiguous and out.flags.c_contiguous):
            return None
        if not (operand.flags.aligned and out.flags.aligned and operand.size):
            return None
        pairs = zip(x.operands, (operand, out), strict=True)
        return cls(x.function is functions.smallest_of_rows, [Place(y, array, array.strides) for y, array in pairs])


#: Functions whose loops have the same bits however the elements are shared out: a test looks.
LOOPS = frozenset({np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.tanh, np.sin, np.cos})

Part = Nest | Multiplication | LoopCall | Extremes


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
    Matrix products are left to NumPy unless `products`, and so are single statements of fewer than `least` elements.
    """
    instructions = list(chain.from_iterable(parts))
    statements = [_statement_of(x) for x in instructions]
    accesses = [_Access.of(x, statement) for x, statement in zip(instructions, statements, strict=True)]
    buffers = byte_bounds(memory)
    for i, statement in enumerate(statements):
        if statement is not None:
            statement.private = statement.out.is_new or _is_within(statement.out.bounds, buffers)
            if (statement.out.moves or statement.moves) and not statement.private:
                statements[i] = None
    kept = [byte_bounds(slot.array) for slot in outputs if isinstance(slot.array, np.ndarray)]
    for x, access in zip(instructions, accesses, strict=True):
        if x.results and not isinstance(x.function, np.ufunc):  # what it returns may be a view
            kept += access.reads
    members = [x or _call_of(y, products) for x, y in zip(statements, instructions, strict=True)]
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
                    later, written = accesses[start:], _distinct(y.out for y in member.statements)
                    member.stored = [y for y in written if not _is_dead(y.bounds, buffers, later, kept)]
            new.append(run)
        fused.append(new)
    return fused


def _call_of(x: Instruction, products: bool) -> Multiplication | LoopCall | Extremes | None:
    """Return an instruction as the call of a function of C, None if it is none."""
    return LoopCall.of(x) or Extremes.of(x) or (Multiplication.of(x) if products else None)


def _is_worth_a_call(row: Sequence[Statement | Multiplication | LoopCall | Extremes], least: int) -> bool:
    """Return whether C is to execute instructions: more than one, or one of many elements."""
    if len(row) != 1:
        return len(row) > 1
    (x,) = row
    return x.product.work > 1 << 17 if isinstance(x, Multiplication) else x.places[-1].array.size >= least


def _parts_of(row: Sequence[Statement | Multiplication | LoopCall | Extremes]) -> list[Part]:
    """Return nests of the statements, and the other parts, in their order."""
    parts: list[Part] = []
    for kind, group in groupby(row, type):
        if kind is Statement:
            parts += _nests([x for x in group if isinstance(x, Statement)])
        else:
            parts += [x for x in group if not isinstance(x, Statement)]
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
    arrays = [_array(operand) for operand in inputs]
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
    result = _array(out)
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


def _array(operand: Any) -> np.ndarray | None:
    """Return the array of an operand, None for other things, such as numbers."""
    array = array_of(operand)
    return array if isinstance(array, np.ndarray) else None


def _place(operand: Any, shape: tuple[int, ...]) -> Place | None:
    """Return the place of an operand broadcast to a shape, None if C cannot access it."""
    array = _array(operand)
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
    if len(known) > _STREAMS and len(_distinct([*known, *statement.places])) > _STREAMS:
        return False
    for earlier in nest.statements:
        pairs = [(earlier.out, place) for place in statement.places]
        pairs += [(place, statement.out) for place in earlier.inputs]
        if not all(x.is_same(y) or x.is_apart(y) for x, y in pairs):
            return False
    return True


def _distinct(places: Iterable[Place]) -> list[Place]:
    """Return places, each once."""
    distinct: list[Place] = []
    for place in places:
        if not any(place.is_same(other) for other in distinct):
            distinct.append(place)
    return distinct


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
        out = _array(operands.pop()) if x.result is None and x.function in _WRITE_LAST else None
        reads = [byte_bounds(array) for array in map(_array, operands) if array is not None]
        if out is not None and not out.flags.forc:
            return cls([*reads, byte_bounds(out)], None)
        return cls(reads, None if out is None else byte_bounds(out))


#: Functions that write all of their last operand, and do not read it.
_WRITE_LAST = LOOPS | {np.ndarray.dot, np.matmul, np.vecdot, functions.largest_of_rows, functions.smallest_of_rows}


def _is_dead(place: Bounds, buffers: Bounds, later: Sequence[_Access], kept: Sequence[Bounds]) -> bool:
    """Return whether what was written to a place is not read again."""
    if not _is_within(place, buffers):
        return False
    for access in later:
        if any(_overlap(place, read) for read in access.reads):
            return False
        if access.overwrites is not None and _is_within(place, access.overwrites):
            return True
    return not any(_overlap(place, other) for other in kept)


def _is_within(inner: Bounds, outer: Bounds) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _overlap(one: Bounds, other: Bounds) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def loops_of(nest: Nest) -> tuple[list[int], list[list[int]], list[Place]]:
    """Return the lengths of the loops of a nest, the strides of its places in them, and the places, each once.

    Loops are ordered by the strides of the first result, the innermost last, and joined where all places allow it.
    """
    places = _distinct(chain.from_iterable(statement.places for statement in nest.statements))
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
