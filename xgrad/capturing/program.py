"""What a recording writes down: values, the memory that they are in, and calls that make and change them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number


class Storage:
    """A piece of memory, in which one or several values are.

    Attributes
    ----------
    kind : str
        "temporary", made and forgotten within the step; "constant"; "input", found anew at each replay; or "memory",
        which was there before, stays where it is, and is changed in place.
    writes : int
        How often it has been changed in place.
    root : int
        The id of what owns it, by which arrays in it are known while there are such.
    """

    __slots__ = ("kind", "root", "writes")

    def __init__(self, kind: str, root: int) -> None:
        self.kind, self.root, self.writes = kind, root, 0


class Value:
    """An array of a program.

    Attributes
    ----------
    source : Source, optional
        Where to find one that was there before; None of what a call makes.
    whole : Value, optional
        What a call made it a view of.
    scalar : bool
        Whether it is a scalar of NumPy, which computes otherwise than with arrays.
    """

    __slots__ = ("dtype", "number", "scalar", "shape", "source", "storage", "strides", "whole")

    shape: tuple[int, ...]
    strides: Any

    def __init__(
        self, number: int, storage: Storage, array: Any, source: Source | None = None, whole: Value | None = None
    ) -> None:
        self.number, self.storage, self.source, self.whole, self.dtype = number, storage, source, whole, array.dtype
        if type(array) is np.ndarray:  # the most frequent
            self.scalar, self.shape, self.strides = False, array.shape, array.strides
        else:
            self.scalar, self.shape = isinstance(array, np.generic), tuple(array.shape)
            self.strides = getattr(array, "strides", None)

    @property
    def nbytes(self) -> int:
        """How many bytes its elements take."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def lies_as(self, other: Value) -> bool:
        """Return whether two values in the same place are alike."""
        return (self.shape, self.strides, self.dtype) == (other.shape, other.strides, other.dtype)

    def overlaps(self, other: Value) -> bool:
        """Return whether two values may have an element in common, as far as is known before a step is replayed."""
        if self.storage is not other.storage:
            return False
        if self.storage.kind != "memory":
            return True
        one, another = self._extent(), other._extent()
        return one is None or another is None or (one[0] < another[1] and another[0] < one[1])

    def _extent(self) -> tuple[int, int] | None:
        """Return between which addresses is what it is, or is a view of, if a tensor holds that all along."""
        value = self
        while value.whole is not None:
            value = value.whole
        array = value.source.holder._data if value.source is not None and value.source.kind == "tensor" else None
        about = getattr(array, "__array_interface__", None)
        if about is None:
            return None
        first = last = about["data"][0]
        for n, stride in zip(value.shape, value.strides, strict=True):
            if stride < 0:
                first += (n - 1) * stride
            else:
                last += (n - 1) * stride
        return first, last + int(value.dtype.itemsize)

    def __repr__(self) -> str:
        return f"%{self.number}"


class Source:
    """Where a value is found: the array of a tensor, which is an argument, the gradient of a leaf, or any other.

    Attributes
    ----------
    kind : str
        "argument", "gradient" or "tensor".
    holder : int, Leaf or Tensor
        The number of the argument, the leaf, or the tensor.
    """

    __slots__ = ("holder", "kind")

    def __init__(self, kind: str, holder: Any) -> None:
        self.kind, self.holder = kind, holder


class Call:
    """A call of a program.

    Attributes
    ----------
    function : callable
        What is called, with arrays in the place of values.
    args, options
        Of values, numbers, constants, and tuples and lists of such.
    reads, numbers : tuple of Value, tuple of Number
        Those among them; `reads` can be given if there are no numbers.
    results : list of Value
        What it makes, in the order in which they come; empty if it writes.
    single : bool
        Whether it returns one array, not a tuple.
    target : Value, optional
        What it changes in place.
    changes : tuple of Value
        What else it changes in place, of its arguments.
    out : bool
        Whether the target is given as ``out``; otherwise it is among the arguments.
    check : bool, optional
        What the value of a check was.
    where : tuple of (code, int)
        The user's code that it comes from, and the place of the instruction in it.
    """

    __slots__ = (
        "args",
        "changes",
        "check",
        "function",
        "numbers",
        "options",
        "out",
        "reads",
        "results",
        "single",
        "target",
        "where",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        reads: tuple[Value, ...] | None = None,
        *,
        target: Value | None = None,
        changes: tuple[Value, ...] = (),
        out: bool = False,
        check: bool | None = None,
    ) -> None:
        self.function, self.args, self.options = function, args, options
        self.target, self.changes, self.out, self.check = target, changes, out, check
        self.results: list[Value] = []
        self.single = True
        self.where: Where = NOWHERE
        self.reads: tuple[Value, ...] = reads or ()
        self.numbers: tuple[Number, ...] = ()
        if reads is None:
            self._look()

    @property
    def line(self) -> str:
        """Where in the user's code it comes from, as text."""
        return line_of(self.where)

    @property
    def name(self) -> str:
        """The name of the function, with its method if that is one of an elementwise function."""
        owner: Any = getattr(self.function, "__self__", None)
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        return f"{owner.__name__}.{name}" if hasattr(owner, "__name__") and hasattr(owner, "nin") else name

    def targets(self) -> tuple[Value, ...]:
        """Return all values that it changes in place."""
        return () if self.target is None else (self.target, *self.changes)

    def replace(self, new: Callable[[Any], Any]) -> None:
        """Let `new` replace what the arguments are made of."""
        self.args = replaced(self.args, new)
        if self.options:
            self.options = {name: replaced(value, new) for name, value in self.options.items()}
        self._look()

    def _look(self) -> None:
        values: list[Value] = []
        numbers: list[Number] = []
        _gather(self.args, values, numbers)
        if self.options:
            _gather(self.options.values(), values, numbers)
        self.reads, self.numbers = tuple(values), tuple(numbers)


Where = tuple[CodeType | None, int]
NOWHERE: Where = (None, 0)


def line_of(where: Where) -> str:
    """Return the file and line of an instruction as messages name it."""
    code, instruction = where
    if code is None:
        return "?:0"
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return f"{os.path.basename(code.co_filename)}:{lines[0] if lines else code.co_firstlineno}"


def _gather(args: Any, values: list[Value], numbers: list[Number]) -> None:
    """Add the values and numbers among arguments to those that are known."""
    for arg in args:
        kind = type(arg)
        if kind is Value:
            values.append(arg)
        elif kind is Number:
            numbers.append(arg)
        elif kind is tuple or kind is list:
            _gather(arg, values, numbers)
        elif kind is slice:
            _gather((arg.start, arg.stop, arg.step), values, numbers)


def replaced(arg: Any, new: Callable[[Any], Any]) -> Any:
    """Return an argument in which `new` has replaced what is no tuple or list."""
    kind = type(arg)
    return kind([replaced(part, new) for part in arg]) if kind is tuple or kind is list else new(arg)


class Program:
    """All that a step does with arrays.

    Attributes
    ----------
    inputs : list of Value
        Those that were there before, in the order of their first use.
    calls : list of Call
        What is called, in order.
    outputs : list of Value
        What is handed out, each time in memory of its own unless it is a view of an input.
    """

    __slots__ = ("calls", "inputs", "outputs")

    def __init__(self, inputs: list[Value], calls: list[Call], outputs: list[Value]) -> None:
        self.inputs, self.calls, self.outputs = inputs, calls, outputs


def simplified(program: Program) -> Program:
    """Leave out what is computed for nothing, and check first what is to be checked."""
    return _checked_first(_without_dead(program))


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


def _checked_first(program: Program) -> Program:
    """Let checks, and what they need, come before all else, so that nothing has changed if one comes out otherwise.

    Raises
    ------
    Unchecked
        If a check needs what the step changes before.
    """
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


class Unchecked(Exception):
    """A check of values comes too late to be repeated: the message is its line."""


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
