"""The program of a captured step: values, their memory, and calls in execution order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number


class Diverged(Exception):
    """Raised if the outcome of a check of values differs from its outcome in the trace."""


class Unusable(Exception):
    """Raised if a program cannot be replayed.

    The message says why; `line` is the line of the user's code, if known.
    """

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.line = line


_NESTED = frozenset({tuple, list, slice})


@dataclass(slots=True, eq=False)
class Storage:
    """A piece of memory that holds one or several values, and the number of calls that write to it.

    Its kind is "temporary", "constant", "input" (passed to each replay) or "state" (updated in
    place).
    """

    kind: str
    writes: int = 0


class Value:
    """An array of a program, in a storage that its views share.

    It has a name if it is an input or part of the state. Its `strides` are None if the library has
    none. A `scalar` is a NumPy scalar, whose arithmetic differs from array arithmetic.
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
        """Return whether an array has this shape, dtype and strides."""
        return bool(
            array.shape == self.shape
            and array.dtype == self.dtype
            and array.strides == self.strides
        )


@dataclass(slots=True, eq=False)
class Call:
    """A call of a function of the namespace, an operator of the module ``operator``, or a kernel.

    Its arguments are values, numbers, constants, and tuples, lists and slices of them; it writes to
    the arguments in `writes`. It returns a `single` array or a tuple. A call that writes has no new
    `results`. A call with a `check`, the expected truth of its only argument, computes nothing. A
    call `may_raise` an error for some values; after `optimize`, this is true only of calls that
    follow a write to an input or the state. `line` is the line of the user's code, with the file.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]
    writes: tuple[Value, ...] = ()
    results: Sequence[Value] = ()
    single: bool = True
    check: bool | None = None
    line: str = ""
    may_raise: bool = False
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

    @property
    def may_end_replay(self) -> bool:
        """Whether the call ends a replay for some values; the state is then as before the step."""
        return self.check is not None or self.may_raise

    def overwrites(self) -> bool:
        """Return whether the call overwrites all elements of `writes` without reading them."""
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
    """Return arguments with `new` applied to everything but tuples, lists, slices and dicts."""
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
    """The calls of a step in order, its inputs, state arrays, outputs, and constants by number.

    Inputs and numbers are passed to each replay. Outputs are in new memory, unless they are views
    of an input or of the state.
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

        The memory is given by the numbers of the values that cover it exactly (`part`), and of a
        value that contains it (`whole`).
        """
        origins: dict[int, int] = {}  # from views to the values from before the step, by number
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
                    return True  # also for a view of a part: later calls on it are not examined
                origins.update({y.number: number for y in views})
        return False


def _is_whole(x: Value, view: Value) -> bool:
    return math.prod(x.shape) == math.prod(view.shape)
