"""The program of a traced step: values, the memory that they lie in, and calls in the order in which they ran."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number
from xgrad.capture.source_location import NOWHERE, Location, describe


class Storage:
    """A piece of memory with one or several values in it.

    Attributes
    ----------
    kind : str
        "temporary", allocated and freed within the step; "constant"; "input", given at each replay; or "state", which
        exists before and after the step and is updated in place.
    writes : int
        The number of calls that write to it.
    """

    __slots__ = ("kind", "writes")

    def __init__(self, kind: str) -> None:
        self.kind, self.writes = kind, 0


class Value:
    """An array of a program.

    Attributes
    ----------
    number : int
        Its number in the program.
    storage : Storage
        Its memory, shared with its views.
    shape, dtype, strides
        Those of the array; `strides` is None where the library has none.
    scalar : bool
        Whether it is a NumPy scalar, whose arithmetic differs from that of arrays.
    name : str
        The name of an input or of a tensor of the state, else "".
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


class Call:
    """A call of a program.

    Attributes
    ----------
    function : callable
        A function of the namespace, an operator of the module ``operator``, or a kernel, all for arrays.
    args, options
        Its arguments: values, numbers, constants, and tuples, lists and slices of them.
    results : list of Value
        What it returns; empty if it returns nothing new, as where it writes to an argument.
    single : bool
        Whether it returns one array rather than a tuple.
    writes : tuple of Value
        The arguments that it writes to, that of the option ``out`` included.
    check : bool, optional
        The expected truth of the only argument; such a call computes nothing.
    location : tuple of (code, int)
        The instruction of the user's code that led to it.
    """

    __slots__ = ("args", "check", "function", "location", "numbers", "options", "reads", "results", "single", "writes")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        writes: tuple[Value, ...] = (),
        check: bool | None = None,
    ) -> None:
        self.function, self.args, self.options, self.writes, self.check = function, args, options, writes, check
        self.results: list[Value] = []
        self.single = True
        self.location: Location = NOWHERE
        self._find_operands()

    @property
    def line(self) -> str:
        """The file and line of the user's code that led to it."""
        return describe(self.location)

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def substitute(self, new: Callable[[Any], Any]) -> None:
        """Apply a function to each value, number and constant among the arguments."""
        self.args = map_leaves(new, self.args)
        self.options = {name: map_leaves(new, value) for name, value in self.options.items()}
        self.writes = tuple(map(new, self.writes))
        self._find_operands()

    def _find_operands(self) -> None:
        operands = leaves((self.args, *self.options.values()) if self.options else self.args)
        self.reads = tuple([x for x in operands if type(x) is Value])
        self.numbers = tuple([x for x in operands if type(x) is Number])


def leaves(arg: Any) -> list[Any]:
    """Return what tuples, lists and slices hold, at any depth."""
    found: list[Any] = []
    pending = [arg]
    while pending:
        x = pending.pop()
        kind = type(x)
        if kind is tuple or kind is list:
            pending += x[::-1]
        elif kind is slice:
            pending += x.step, x.stop, x.start
        else:
            found.append(x)
    return found


def map_leaves(new: Callable[[Any], Any], arg: Any) -> Any:
    """Return an argument with the results of a function in the place of all that is no tuple, list or slice."""
    kind = type(arg)
    if kind is tuple or kind is list:
        return kind([map_leaves(new, part) for part in arg])
    if kind is slice:
        return slice(map_leaves(new, arg.start), map_leaves(new, arg.stop), map_leaves(new, arg.step))
    return new(arg)


class Program:
    """The calls of a step, and the values that come in and go out.

    Attributes
    ----------
    inputs : list of Value
        Arrays that each replay is given.
    state : list of Value
        Arrays that stay where they are from one replay to the next.
    calls : list of Call
        In order.
    outputs : list of Value
        What each replay returns, in new memory; an output that is a view of an input or of the state stays one.
    constants : dict of int to array
        Values that depend on no input, state or number, by number.
    """

    __slots__ = ("calls", "constants", "inputs", "outputs", "state")

    def __init__(
        self,
        inputs: list[Value],
        state: list[Value],
        calls: list[Call],
        outputs: list[Value],
        constants: dict[int, Any] | None = None,
    ) -> None:
        self.inputs, self.state, self.calls, self.outputs = inputs, state, calls, outputs
        self.constants: dict[int, Any] = constants or {}

    @property
    def numbers(self) -> list[Number]:
        """The distinct numbers among the arguments of its calls."""
        return list({number.key: number for call in self.calls for number in call.numbers}.values())

    def first_uses(self) -> dict[int, bool]:
        """Return the numbers of the values that it uses, and whether the first use overwrites them as a whole."""
        uses: dict[int, bool] = {}
        wholes: dict[int, int] = {}  # of views that show all elements, by number: the value that they show
        for call in self.calls:
            if not call.writes and all(any(r.storage is x.storage for x in call.reads) for r in call.results[:1]):
                (base, *others), view = call.reads or [None], call.results[:1]
                if base is not None and view and not others and base.nbytes == view[0].nbytes:
                    wholes[view[0].number] = wholes.get(base.number, base.number)
                    continue  # to make a view is no use
            target = call.options.get("out")
            if call.function is operator.setitem and call.args[1] is Ellipsis:
                target = call.args[0]
            for value in (*call.reads, *call.writes, *call.results):
                for number in (value.number, wholes.get(value.number, value.number)):
                    uses.setdefault(number, value is target)
        for value in self.outputs:
            uses.setdefault(value.number, False)
        return uses

    def with_calls(self, calls: list[Call]) -> Program:
        """Return the same program with other calls."""
        return Program(self.inputs, self.state, calls, self.outputs, self.constants)
