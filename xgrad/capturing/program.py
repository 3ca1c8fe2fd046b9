"""What a recording writes down: values, the memory that they are in, and calls that make and change them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.whereabouts import NOWHERE, Where, line_of


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
