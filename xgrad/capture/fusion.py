"""Fusion of elementwise calls over arrays of one size into groups, each executed by one kernel.

A call that computes each element of its result from one element of each operand is a `Statement`. A
`Group` executes all its statements for one element before the next element, instead of each
statement for all elements. A value that only statements of the group read is not stored. The pass
knows values and memory; the backend decides which calls are statements, and what they compute.

The calls form a list of items, each a call or a group. Three rules preserve the meaning:

- The order of two items matters if one writes to memory that the other reads or writes to; making a
  result is a write. A statement joins an earlier group, and a group a later one, only across items
  for which the order does not matter.
- The statements of a group access memory that the group writes to only as one value, in the order
  of its elements.
- Views access no memory: each is made directly after the array that it is a view of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from xgrad.capture.program import Call, Program, Storage, Value

# the most other calls across which a statement joins an earlier group: beyond that, its result
# would be stored for too long
_REACH = 8
_SEARCHED = 64  # the most items that are searched for a group to join
_ARRAYS = 32  # the most arrays a group accesses in memory: kernel parameters are limited to 4 KB
_STATEMENTS = 64  # the most statements in a group


class Statement(NamedTuple):
    """``out = operation(operands)`` for each element.

    Operands are numbers, and values, which are broadcast.
    """

    call: Call
    operation: Any
    operands: tuple[Any, ...]
    out: Value

    @property
    def values(self) -> list[Value]:
        """The operands that are values."""
        return [x for x in self.operands if type(x) is Value]


class Access(NamedTuple):
    """A value as a group reads it from memory.

    The strides, in bytes, are over the shape of the group.
    """

    value: Value
    strides: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Group:
    """Statements over one shape.

    `operands` holds the operands of each statement: accesses of memory, values that are variables
    of the kernel, and numbers. `outs` holds the results, all variables. `loads` are variables that
    the kernel reads from memory first. The kernel makes arrays for `results`, and stores the
    variables `writes`.
    """

    shape: tuple[int, ...]
    statements: list[Statement] = field(default_factory=list)
    operands: list[tuple[Any, ...]] = field(default_factory=list)
    outs: list[Value] = field(default_factory=list)
    loads: list[Access] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Item:
    """A call or statements, with the storages that they read, and those they write or make."""

    call: Call | None = None
    statements: list[Statement] = field(default_factory=list)
    reads: set[Storage] = field(default_factory=set)
    writes: set[Storage] = field(default_factory=set)
    views: list[Call] = field(default_factory=list)  # made directly after it
    #: The values through which the statements access each storage
    values: dict[Storage, set[Value]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.statements[0].out.shape

    def add(self, other: _Item) -> None:
        """Append the statements of another item."""
        self.statements += other.statements
        self.reads |= other.reads
        self.writes |= other.writes
        for storage, values in other.values.items():
            self.values.setdefault(storage, set()).update(values)

    def precedes(self, other: _Item) -> bool:
        """Return whether the order of two items matters."""
        return not (
            self.writes.isdisjoint(other.reads)
            and self.writes.isdisjoint(other.writes)
            and self.reads.isdisjoint(other.writes)
        )


def fuse(
    program: Program,
    statement_of: Callable[[Call], Statement | None],
    is_group: Callable[[Call], bool] = lambda call: False,
) -> list[Call | Group]:
    """Return the calls of a program with groups in place of statements.

    A statement alone remains a call, unless `is_group` is true for it.
    """
    return _Fusion(program, statement_of).result(is_group)


class _Fusion:
    def __init__(self, program: Program, statement_of: Callable[[Call], Statement | None]) -> None:
        self._program = program
        # for each value, the first one that has the same elements in the same memory
        self._originals: dict[Value, Value] = {}
        self._first = _Item()  # holds the views of what exists before the step
        self._items: list[_Item] = []
        #: The number of calls, other than views, that access a storage; existing before or after
        #: the step counts as one more
        self._uses = Counter(
            [x for call in program.calls if not _is_view(call) for x in _storages(call)]
        )
        outside = [x.storage for x in (*program.inputs, *program.state, *program.outputs)]
        self._uses.update({*outside, *[x for x in self._uses if x.kind != "temporary"]})
        makers: dict[Value, _Item] = {}
        for call in program.calls:
            if _is_view(call):
                self._note_original(call)
                item = makers.get(call.reads[0], self._first)
                item.views.append(call)
            else:
                item = self._place(call, statement_of(call))
            makers.update(dict.fromkeys(call.results, item))
        self._merge()

    def _note_original(self, call: Call) -> None:
        """Record a view, such as a reshape, that has all elements of its operand in order."""
        x = call.reads[0]
        for view in call.results:
            if (
                view.dtype == x.dtype
                and size(view) == size(x)
                and is_contiguous(view)
                and is_contiguous(x)
            ):
                self._originals[view] = self._original(x)

    def _original(self, x: Value) -> Value:
        return self._originals.get(x, x)

    # Items

    def _place(self, call: Call, statement: Statement | None) -> _Item:
        """Add a call to a group before it, or as a new item."""
        item = self._item(call, statement)
        others = 0
        for earlier in islice(reversed(self._items if item.statements else ()), _SEARCHED):
            if earlier.statements and self._may_join(earlier, item, others):
                earlier.add(item)
                return earlier
            others += not earlier.statements
            if others > _REACH or earlier.precedes(item) or _is_check(earlier):
                break
        self._items.append(item)
        return item

    def _item(self, call: Call, statement: Statement | None) -> _Item:
        written = {x.storage for x in (*call.writes, *call.results)}
        if statement is None:
            return _Item(call, reads={x.storage for x in call.reads}, writes=written)
        item = _Item(call, [statement], {x.storage for x in statement.values}, written)
        for x in (*statement.values, statement.out):
            item.values.setdefault(x.storage, set()).add(self._original(x))
        return (
            item
            if size(statement.out) and self._fits(item, statement.out.shape)
            else self._item(call, None)
        )

    def _merge(self) -> None:
        """Join groups to later ones."""
        for i in reversed(range(len(self._items))):
            item, others = self._items[i], 0
            if not item.statements or not item.writes:
                continue
            for j in range(i + 1, min(i + _SEARCHED, len(self._items))):
                later = self._items[j]
                if later.statements and self._may_join(item, later, others):
                    item.add(later)
                    item.views += later.views
                    self._items[j] = item
                    del self._items[i]
                    break
                others += not later.statements
                if others > _REACH or item.precedes(later) or _is_check(later):
                    break

    def _may_join(self, group: _Item, item: _Item, others: int) -> bool:
        """Return whether statements may follow a group in one kernel, `others` calls later.

        Across calls, the statements have to read what the group writes; if not, a result would be
        stored for longer without any gain.
        """
        if size(group.statements[0].out) != size(item.statements[0].out):
            return False
        if others and group.writes.isdisjoint(item.reads):
            return False
        for x in group.values.keys() & item.values.keys():
            if (x in group.writes or x in item.writes) and len(
                group.values[x] | item.values[x]
            ) > 1:
                return False
        statements = group.statements + item.statements
        return (
            len(statements) <= _STATEMENTS
            and self._arrays(statements) <= _ARRAYS
            and self._fits(item, group.shape)
        )

    def _arrays(self, statements: Sequence[Statement]) -> int:
        """Return the number of arrays in memory that statements access."""
        uses = Counter([x for statement in statements for x in _storages(statement.call)])
        values = {
            self._original(x)
            for statement in statements
            for x in (*statement.values, statement.out)
        }
        return sum([uses[x.storage] < self._uses[x.storage] for x in values])

    def _fits(self, item: _Item, shape: tuple[int, ...]) -> bool:
        """Return whether each statement can access its arrays by strides over a shape.

        An operand in the memory of the result also has to be the same value as the result.
        """
        for statement in item.statements:
            out = statement.out
            if any(
                x.storage is out.storage and self._original(x) is not self._original(out)
                for x in statement.values
            ):
                return False
            if any(self._strides(x, statement, shape) is None for x in (*statement.values, out)):
                return False
            if statement.call.results and not is_contiguous(out):
                return False
            if any(
                n > 1 and not stride for n, stride in zip(out.shape, out.strides or (), strict=True)
            ):
                return False
        return True

    def _strides(
        self, x: Value, statement: Statement, shape: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the strides of a statement's operand over a shape, or None if there are none."""
        strides = x.strides
        if strides is None:
            return None
        full, lengths = statement.out.shape, x.shape
        strides = tuple(
            [0 if n == 1 else stride for n, stride in zip(lengths, strides, strict=True)]
        )
        return reshaped_strides(full, (0,) * (len(full) - len(strides)) + strides, shape)

    # Result

    def result(self, is_group: Callable[[Call], bool]) -> list[Call | Group]:
        """Return calls and groups in order, with only the views that are needed."""
        touched: dict[Storage, int] = {}  # the last item that accesses a storage
        for i, item in enumerate(self._items):
            for x in item.reads | item.writes:
                touched[x] = i
        kept = {x.storage for x in self._program.outputs}
        parts: list[tuple[Call | Group | None, _Item]] = [(None, self._first)]
        for i, item in enumerate(self._items):
            part: Call | Group | None = item.call
            if len(item.statements) > 1 or (item.statements and is_group(item.statements[0].call)):
                alive = {
                    x for x in item.writes if x.kind != "temporary" or x in kept or touched[x] > i
                }
                part = self._group(item, alive)
            parts.append((part, item))
        needed = set(self._program.outputs)
        for part, _ in parts:
            if isinstance(part, Group):
                needed.update([x.value for x in (*part.loads, *part.writes)])
            elif part is not None:
                needed.update((*part.reads, *part.writes))
        result: list[Call | Group] = []
        for part, item in reversed(parts):
            for view in reversed(item.views):
                if not needed.isdisjoint(view.results):
                    needed.update(view.reads)
                    result.append(view)
            if part is not None and not (
                isinstance(part, Group) and not part.results and not part.writes
            ):
                result.append(part)
        return result[::-1]

    def _group(self, item: _Item, alive: set[Storage]) -> Group:
        """Return the group of an item, which stores only what is in `alive` storages."""
        group = Group(item.shape, item.statements)
        variables: set[Value] = set()
        results = dict[Value, None]()
        written = dict[Value, Access]()
        for statement in item.statements:
            operands = []
            for x in statement.operands:
                if type(x) is Value:
                    x = self._operand(x, statement, group, item.writes, variables)
                operands.append(x)
            group.operands.append(tuple(operands))
            out = self._original(statement.out)
            group.outs.append(out)
            variables.add(out)
            if statement.call.results:
                results[out] = None
            elif out not in results:
                written[out] = Access(
                    out, self._strides(statement.out, statement, group.shape) or ()
                )
        group.results = [x for x in results if x.storage in alive]
        group.writes = [access for x, access in written.items() if x.storage in alive]
        return group

    def _operand(
        self,
        x: Value,
        statement: Statement,
        group: Group,
        writes: set[Storage],
        variables: set[Value],
    ) -> Value | Access:
        """Return a variable if the group writes to the operand's memory, and an access if not."""
        strides = self._strides(x, statement, group.shape) or ()
        original = self._original(x)
        if x.storage in writes:
            if original not in variables:
                variables.add(original)
                group.loads.append(Access(original, strides))
            return original
        if size(x) == size(statement.out):
            x = original
        access = Access(x, strides)
        if access not in group.loads:
            group.loads.append(access)
        return access


def _is_view(call: Call) -> bool:
    """Return whether a call makes views of one array, and nothing else."""
    if call.writes or not call.results or len(set(call.reads)) != 1:
        return False
    return all(x.storage is call.reads[0].storage for x in call.results)


def _storages(call: Call) -> set[Storage]:
    return {x.storage for x in (*call.reads, *call.writes, *call.results)}


def _is_check(item: _Item) -> bool:
    return item.call is not None and item.call.check is not None


def size(x: Value) -> int:
    """Return the number of elements of a value."""
    return math.prod(x.shape)


def is_contiguous(x: Value) -> bool:
    """Return whether the elements of a value lie in memory in order, without gaps."""
    if x.strides is None:
        return False
    step = int(x.dtype.itemsize)
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def reshaped_strides(
    shape: Iterable[int], strides: Iterable[int], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of an array reshaped without a copy, or None if that is impossible.

    >>> reshaped_strides((12, 6), (0, 4), (3, 4, 6))
    (0, 0, 4)
    """
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    length, step = 1, 0  # what remains of the axes used so far, as one axis
    for n in reversed(new):
        while length % n:
            if not axes:
                return None
            more, stride = axes.pop()
            if length == 1:
                length, step = more, stride
            elif stride == step * length:
                length *= more
            else:
                return None
        result.append(0 if n == 1 else step)
        length, step = length // n, step * n
    return tuple(reversed(result))
