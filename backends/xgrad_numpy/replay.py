"""A recorded program as a function of Python: a flat list of NumPy's calls that write to memory planned beforehand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xgrad.capturing.arrays import method
from xgrad.capturing.operators import getitem, setitem
from xgrad.capturing.program import Call, Program, Storage, Value, folded, replaced
from xgrad_numpy.forms import ELEMENTWISE, REDUCTIONS, Forms
from xgrad_numpy.forwarding import forwarded
from xgrad_numpy.layout import copied, dense, in_order, lies_in_order
from xgrad_numpy.memory import Place
from xgrad_numpy.statements import Lines, Passed, Statement

#: Operators in place, and what they call.
_IN_PLACE: dict[Any, np.ufunc] = {
    operator.iadd: np.add,
    operator.isub: np.subtract,
    operator.imul: np.multiply,
    operator.itruediv: np.divide,
    operator.ifloordiv: np.floor_divide,
    operator.imod: np.remainder,
    operator.ipow: np.power,
    operator.iand: np.bitwise_and,
    operator.ior: np.bitwise_or,
    operator.ixor: np.bitwise_xor,
    operator.ilshift: np.left_shift,
    operator.irshift: np.right_shift,
    operator.imatmul: np.matmul,
}
_DOT, _ASTYPE, _COPY = method("dot"), method("astype"), method("copy")
_COMPARISONS: dict[Any, str] = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_PLACES: dict[Any, str] = {np.minimum: "argmin", np.maximum: "argmax"}


class Replay(Forms):
    """What runs a program.

    Parameters
    ----------
    program : Program
        The calls, and what is wanted of them.
    found : list of Value
        The inputs that are given to `run`, in this order; all others are given to `link`.

    Attributes
    ----------
    run : callable
        Takes the arrays of `found`, then the numbers that `numbers` lists, and returns the outputs; or an
        error, such as that a check came out otherwise: then nothing has been changed, and the step is to run eagerly.
    numbers : list of Number
        What is computed before.
    source : str
        The function, to be read.
    nbytes : int
        How much memory it has of its own.
    """

    def __init__(self, program: Program, found: list[Value]) -> None:
        super().__init__({value.storage for value in program.outputs})
        self.program = program
        self._scope["Diverged"] = Diverged
        self.statics = [value for value in program.inputs if value not in found]
        self._first_write: int | None = None

        calls, self._constants = folded(program)
        self._calls = forwarded(calls, self._handed_out)
        self._items: dict[int, str] = {}  # code of numbers that need no array
        self._asked: dict[int, Call] = {}  # comparisons that are left to the check of what they give
        for value in found:
            self._passed[self._name(value)] = Passed(value.shape, lies_in_order(value), ours=False)
        for value in self.statics:
            self._fixed.add(value.number)
            self._name(value)
        self._ends = self._lifetimes()
        for i, call in enumerate(self._calls):
            self._at = i
            self._emit(call)
            self._plan.release(i)
        self._results = [self._output(value) for value in program.outputs]
        self._plan.allocate()
        self.nbytes = self._plan.nbytes
        self._parameters = [self._name(value) for value in found] + list(self._numbers.values())
        self.source = ""
        self.run: Callable[..., Any] = _not_linked

    def _write(self) -> None:
        """Write the function, now that it is known where arrays lie."""
        written = Lines(self._scope, self._passed, self._plan.memory)
        first = len(self._statements) if self._first_write is None else self._first_write
        lines, rest = written.of(self._filled + self._statements[:first]), written.of(self._statements[first:])
        if lines:  # an error before anything is changed lets the step run eagerly
            lines = ["try:", *("    " + line for line in lines), "except Exception as error:", "    return error"]
        lines += [*rest, f"return ({', '.join(self._results)}{',' if len(self._results) == 1 else ''})"]
        body = "\n    ".join(lines)
        self.source = f"def run({', '.join(self._parameters)}):\n    {body}\n"
        self._links += written.links
        self._scope.update((name, find()) for name, find in written.links)
        exec(compile(self.source, "<captured step>", "exec"), self._scope)
        self.run = self._scope["run"]
        self._statements, self._filled, self._ends, self._asked, self._items = [], [], {}, {}, {}  # used up

    def link(self, arrays: list[np.ndarray]) -> None:
        """Take the arrays of `statics`, and find all others that stay where they are."""
        for value, array in zip(self.statics, arrays, strict=True):
            self._scope[self._name(value)] = array
        for name, find in self._links:
            self._scope[name] = find()
        if not self.source:
            self._write()

    def release(self) -> None:
        """Let go of all arrays."""
        self._scope.clear()
        self._links.clear()

    # What it does, to be looked at

    @property
    def calls(self) -> list[Call]:
        """The calls that are made, some of them once and for all."""
        return self._calls

    @property
    def constants(self) -> Mapping[int, np.ndarray]:
        """The values that are known, by number."""
        return self._constants

    @property
    def places(self) -> dict[int, Place]:
        """Where values lie in the planned memory, by number; numbers below 0 are of what a single call needs."""
        return {find.value.number: find for _, find in self._links if isinstance(find, Place)}

    @property
    def found(self) -> set[int]:
        """The numbers of views of memory that stays, which are found once and for all."""
        return {value.number for _, find in self._links if isinstance(find, _Found) for value in find.call.results}

    # Calls, as they are written

    def _lifetimes(self) -> dict[Storage, int]:
        """Return the number of the last call that needs each memory."""
        ends: dict[Storage, int] = {}
        for i, call in enumerate(self._calls):
            for value in call.reads:
                ends[value.storage] = i
            for value in call.results:
                ends[value.storage] = i
            if call.target is not None:
                ends[call.target.storage] = i
        for value in self.program.outputs:
            ends[value.storage] = len(self._calls)
        return ends

    def _uses(self, value: Value) -> int:
        """Return how often a value is given to a call."""
        return sum(call.reads.count(value) for call in self._calls)

    # Calls

    def _emit(self, call: Call) -> None:
        """Write the code of a call."""
        if call.check is not None:
            self._emit_check(call)
        elif self._comparison_asked(call):
            self._asked[call.results[0].number] = call
        elif call.target is not None:
            self._emit_write(call, call.target)
        elif self._is_view(call):
            self._emit_view(call)
        elif not self._emit_extreme(call) and not self._emit_into(call):
            self._emit_plain(call)

    def _comparison_asked(self, call: Call) -> bool:
        return call.single and call.function in _COMPARISONS and self._is_asked(call)

    def _is_asked(self, call: Call) -> bool:
        """Return whether a comparison of single numbers is of use but to a check."""
        if not call.results:
            return False
        (result,) = call.results
        checks = [c for c in self._calls if c.check is not None and c.args[0] is result]
        return len(call.args) == 2 and result.shape == () and len(checks) == self._uses(result) == 1

    def _emit_check(self, call: Call) -> None:
        """Write the code that looks whether a check comes out as it did."""
        value = call.args[0]
        asked = self._asked.get(value.number)
        if asked is None:
            text = self._text(value)
        else:
            texts = [self._item(arg) for arg in asked.args]
            text = f"({texts[0]} {_COMPARISONS[asked.function]} {texts[1]})"
        self._add(f"if {'not ' if call.check else ''}{text}: raise Diverged")

    def _item(self, arg: Any) -> str:
        """Return the code of a number that an array without axes holds."""
        return self._items.get(arg.number) or self._text(arg) if type(arg) is Value else self._text(arg)

    def _is_view(self, call: Call) -> bool:
        """Return whether a call returns but views of what it is given."""
        given = [value.storage for value in call.reads]
        for value in call.results:
            if value.storage not in given:
                return False
        return bool(call.results)

    def _emit_view(self, call: Call) -> None:
        """Find a view of memory that stays once, of all other anew."""
        moving = [v for v in call.reads if v.number not in self._fixed and v.number not in self._constants]
        if call.single and not moving and not call.numbers:
            (result,) = call.results
            self._fixed.add(result.number)
            self._links.append((self._name(result), _Found(self._scope, call, self._name, self._constants)))
        else:
            self._emit_plain(call)

    def _emit_plain(self, call: Call) -> None:
        """Call a function that makes the memory of its results."""
        names = [self._name(value) for value in call.results]
        for name, value in zip(names, call.results, strict=True):
            self._passed[name] = Passed(value.shape, lies_in_order(value), ours=False)
        code = self._called(call)
        target = names[0] if call.single else f"({', '.join(names)},)"
        self._add(f"{target} = {code}")

    def _called(self, call: Call, **more: str) -> str:
        """Return the code of a call as it was made."""
        function, args = call.function, [self._text(arg) for arg in call.args]
        if function is getitem:
            return f"{args[0]}[{args[1]}]"
        given = call.options
        if call.name.endswith(".reduce") and len(args) == 1:  # of which NumPy reads names slowly
            args.append(self._text(given.get("axis", 0)))
            ordinary = {"axis": given.get("axis"), "dtype": None, "keepdims": False}
            given = {name: value for name, value in given.items() if name not in ordinary or value != ordinary[name]}
        options = [f"{name}={self._text(value)}" for name, value in given.items()]
        options += [f"{name}={value}" for name, value in more.items()]
        if isinstance(function, _METHOD_TYPE) and _is_method(function):
            return f"{args[0]}.{function.__name__}({', '.join(args[1:] + options)})"
        return f"{self._object(function, 'f')}({', '.join(args + options)})"

    def _emit_into(self, call: Call) -> bool:
        """Write the result to memory of ours, if the function can; return whether."""
        if not call.single or call.results[0].scalar or not dense(call.results[0]):
            return False
        result, function = call.results[0], call.function
        if isinstance(function, np.ufunc):
            return function.nout == 1 and self._emit_elementwise(call, function, result)
        if self._emit_reduction(call, result):
            return True
        if function is _DOT and in_order(result.strides, result.shape, result.dtype.itemsize):
            self._add_dot(call, self._new(result))
            return True
        if function is np.asarray and len(call.args) == 1:  # of a scalar
            if result.storage in self._handed_out:
                return False
            self._add_copy(self._new(result), self._text(call.args[0]))
            return True
        if function is np.where and len(call.args) == 3 and self._emit_choice(call, result):
            return True
        if function in (_ASTYPE, _COPY):
            x = self._text(call.args[0])
            self._add_copy(self._new(result), x, result.shape)
            return True
        if not call.reads and not call.numbers:  # what is made of nothing, and changed then
            value = np.asarray(call.function(*call.args, **call.options))
            self._add_copy(self._new(result), self._object(value))
            return True
        return False

    def _add_dot(self, call: Call, out: str) -> None:
        self._statements.append(Statement("dot", (*map(self._text, call.args), out)))

    def _emit_extreme(self, call: Call) -> bool:
        """Find the least or largest of integers by its place, sooner known, if it is of use but to a check."""
        function = getattr(call.function, "__self__", None)
        if not isinstance(function, np.ufunc) or call.name not in ("minimum.reduce", "maximum.reduce"):
            return False
        given = dict(zip(REDUCTIONS, call.args[1:], strict=False)) | call.options
        x, result = call.args[0], call.results[0]
        plain = not given.get("keepdims") and not given.keys() - {"axis", "keepdims", "dtype", "out"}
        every = given.get("axis", 0) is None or (given.get("axis", 0) == 0 and len(x.shape) == 1)
        if not plain or not every or given.get("dtype") is not None or type(x) is not Value or x.dtype.kind not in "iu":
            return False
        if function not in _PLACES or not math.prod(x.shape):
            return False
        name = self._text(x)
        asked = any(result in c.args for c in self._calls if self._comparison_asked(c))
        if not result.scalar or self._uses(result) > 1 or not asked:
            return False
        self._items[result.number] = f"{name}.item({name}.{_PLACES[function]}())"
        return True

    def _emit_write(self, call: Call, target: Value) -> None:
        """Write the code of a call that changes what it is given."""
        if target.storage.kind != "temporary" and self._first_write is None:
            self._first_write = len(self._statements)
        function, name = call.function, self._text(target)
        if function in _IN_PLACE:
            if _IN_PLACE[function] in ELEMENTWISE:
                args = self._operands(_IN_PLACE[function], call.args, target)
            else:
                args = [self._text(arg) for arg in call.args]
            self._add_elementwise(_IN_PLACE[function], args, name, target)
        elif function is setitem:
            self._statements.append(Statement("setitem", tuple(map(self._text, call.args))))
        elif call.out:
            if function is _DOT:
                self._add_dot(call, name)
            elif function in ELEMENTWISE and not call.options:
                self._add_elementwise(function, self._operands(function, call.args, target), name, target)
            else:
                self._add(self._called(call, out=name))
        else:
            self._add(self._called(call))

    # Results

    def _output(self, value: Value) -> str:
        constant = self._constants.get(value.number)
        if constant is not None:
            return f"{self._object(copied, 'f')}({self._object(constant)})"
        if value.storage.kind != "temporary":
            return f"{self._name(value)}.view()"  # so that an optimizer sees that somebody looks
        return self._name(value)


class Diverged(Exception):
    """A check of values came out otherwise than when the program was recorded."""


class _Found:
    """Find a view once more, of arrays that have moved."""

    def __init__(
        self, scope: dict[str, Any], call: Call, name: Callable[[Value], str], constants: Mapping[int, np.ndarray]
    ) -> None:
        self.scope, self.call, self.name, self.constants = scope, call, name, constants

    def __call__(self) -> Any:
        call = self.call
        args = replaced(call.args, self._array)
        if not call.options:
            return call.function(*args)
        return call.function(*args, **{name: replaced(value, self._array) for name, value in call.options.items()})

    def _array(self, arg: Any) -> Any:
        if type(arg) is not Value:
            return arg
        constant = self.constants.get(arg.number)
        return self.scope[self.name(arg)] if constant is None else constant


_METHOD_TYPE = type(lambda: None)


def _is_method(function: Any) -> bool:
    return method(function.__name__) is function if function.__module__ == method.__module__ else False


def _not_linked(*_: Any) -> None:
    raise RuntimeError("Replay: expected link before run")
