"""The program of a captured step: values, the memory that they lie in, and calls in the order in
which they ran.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number


class Diverged(Exception):
    """The outcome of a check of values differs from that of the trace."""


class Unusable(Exception):
    """A program that cannot be replayed; the message says why, `line` where in the user's code, if
    that is known.
    """

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.line = line


_NESTED = frozenset({tuple, list, slice})


@dataclass(slots=True, eq=False)
class Storage:
    """A piece of memory with one or several values in it, and the number of calls that write to it.

    Its kind is "temporary", "constant", "input" (passed to each replay) or "state" (updated in
    place).
    """

    kind: str
    writes: int = 0


class Value:
    """An array of a program: in a storage that its views share, with a name if it is an input or of
    the state.

    Its `strides` are None where the library has none. A `scalar` is one of NumPy, with another
    arithmetic than arrays.
    """

    __slots__ = ("dtype", "name", "number", "scalar", "shape", "storage", "strides")

    def __init__(self, number: int, storage: Storage, array: Any, name: str = "") -> None:
        self.number, self.storage, self.name, self.dtype = number, storage, name, array.dtype
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.scalar, self.strides = isinstance(array, np.generic), getattr(array, "strides", None)

    @property
    def nbytes(self) -> int:
        """The number of bytes of its elements."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def __repr__(self) -> str:
        return self.name or f"%{self.number}"

    def fits(self, array: Any) -> bool:
        """Return whether an array is like it."""
        return bool(
            array.shape == self.shape
            and array.dtype == self.dtype
            and array.strides == self.strides
        )


@dataclass(slots=True, eq=False)
class Call:
    """A call of a function of the namespace, an operator of the module ``operator``, or a kernel.

    Its arguments are values, numbers, constants, and tuples, lists and slices of them; `writes` are
    those that it writes to. It returns a `single` array or a tuple; no `results` are new where it
    writes. A `check` is the expected truth of the only argument, and computes nothing. The `line`
    is that of the user's code, with the file.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    writes: tuple[Value, ...] = ()
    results: Sequence[Value] = ()
    single: bool = True
    check: bool | None = None
    line: str = ""
    reads: tuple[Value, ...] = field(init=False)
    numbers: tuple[Number, ...] = field(init=False)

    def __post_init__(self) -> None:
        operands = leaves((*self.args, *self.options.values()) if self.options else self.args)
        self.reads = tuple([x for x in operands if type(x) is Value])
        self.numbers = tuple([x for x in operands if type(x) is Number])

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def overwrites(self) -> bool:
        """Return whether it writes to all elements of what it writes to, and does not read them."""
        if self.function is operator.setitem:
            return self.args[1] is Ellipsis and self.args[0] not in leaves(self.args[2:])
        operands = leaves((*self.args, *[x for name, x in self.options.items() if name != "out"]))
        return "out" in self.options and not any(x is y for x in self.writes for y in operands)

    def substitute(self, new: Callable[[Any], Any]) -> None:
        """Apply a function to each value, number and constant among the arguments."""
        self.args, self.options = map_leaves(new, self.args), map_leaves(new, self.options)
        self.writes = tuple(map(new, self.writes))
        self.__post_init__()


def leaves(args: Sequence[Any]) -> list[Any]:
    """Return the leaves of arguments in tuples, lists and slices, at any depth."""
    if _NESTED.isdisjoint(map(type, args)):
        return list(args)
    parts = [(x.start, x.stop, x.step) if type(x) is slice else x for x in args]
    return [leaf for part in parts for leaf in (leaves(part) if type(part) in _NESTED else (part,))]


def map_leaves(new: Callable[[Any], Any], arg: Any) -> Any:
    """Return arguments with the results of a function in the place of all that is no tuple, list,
    slice or dict.
    """
    kind = type(arg)
    if kind is tuple or kind is list:
        return kind([map_leaves(new, part) for part in arg])
    if kind is slice:
        return slice(
            map_leaves(new, arg.start), map_leaves(new, arg.stop), map_leaves(new, arg.step)
        )
    if kind is dict:
        return {name: map_leaves(new, part) for name, part in arg.items()}
    return new(arg)


@dataclass(slots=True, eq=False)
class Program:
    """The calls of a step in order, its inputs, the arrays of its state, its outputs, and its
    constants by number.

    Each replay is given inputs and numbers. Outputs are in new memory, except views of an input or
    of the state.
    """

    inputs: list[Value]
    state: list[Value]
    calls: list[Call]
    outputs: list[Value]
    constants: dict[int, Any]

    @property
    def numbers(self) -> list[Number]:
        """The distinct numbers among the arguments of its calls."""
        return list(
            {number.text: number for call in self.calls for number in call.numbers}.values()
        )

    def reads_first(self, part: Container[int | None], whole: int | None) -> bool:
        """Return whether the calls read memory before they write all of it.

        The memory is given by the numbers of values that are exactly it, and of one that it is a
        part of.
        """
        origins: dict[int, int] = {}  # of views, the numbers of the values from before the step
        for call in self.calls:
            for x in call.writes:
                number = origins.get(x.number, x.number)
                if number in part or number == whole:
                    return not call.overwrites()
            for x in call.reads:
                number = origins.get(x.number, x.number)
                if number not in part and number != whole:
                    continue
                views = [y for y in call.results if y.storage is x.storage]
                if not views or not all(_is_whole(x, y) for y in views):
                    return True  # also by a view of a part: later calls on that are not looked at
                origins.update({y.number: number for y in views})
        return False


def _is_whole(x: Value, view: Value) -> bool:
    return math.prod(x.shape) == math.prod(view.shape)
