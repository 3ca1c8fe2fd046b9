"""A recorded program as a function of Python: a flat list of NumPy's calls that write to memory planned beforehand."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xgrad.capturing.arrays import method
from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Call, Program, Storage, Value, replaced
from xgrad.capturing.recorder import getitem, setitem
from xgrad_numpy.memory import Place, Plan
from xgrad_numpy.statements import Blocks, Passed, Statement

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
_REDUCTIONS = ("axis", "dtype", "out", "keepdims", "initial", "where")
_BITS: dict[Any, Any] = {np.dtype("float32"): np.dtype("int32"), np.dtype("float64"): np.dtype("int64")}
_COMPARISONS: dict[Any, str] = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_PLACES: dict[Any, str] = {np.minimum: "argmin", np.maximum: "argmax"}
_FEW = 1 << 11  # elements up to which a branch at each is sooner done than three passes
_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_SMALL = 1 << 16  # elements up to which a constant, or a row, is written out in full: NumPy's inner loops then are long


class Replay:
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
        self.program = program
        self._scope: dict[str, Any] = {"empty": np.empty, "asarray": np.asarray, "Diverged": Diverged}
        self._names: dict[int, str] = {}  # of values, by number
        self._links: list[tuple[str, Callable[[], Any]]] = []  # how to find the arrays that stay, in order
        self._fixed: set[int] = set()  # the values of which they are
        self._objects: dict[int, str] = {}
        self._numbers: dict[Any, str] = {}
        self.numbers: list[Number] = []
        self._cells: dict[Any, str] = {}
        self._constants: dict[int, Any] = {}
        self._handed_out = {id(value.storage) for value in program.outputs}
        self._dynamic: set[int] = {id(value.storage) for value in found}
        self.statics = [value for value in program.inputs if value not in found]
        self._statements: list[Statement] = []
        self._first_write: int | None = None

        self._calls: list[Call] = []
        self._fold()
        self._calls = _forwarded(self._calls, self._handed_out)
        self._uses = Counter(value.number for call in self._calls for value in call.reads())
        self._items: dict[int, str] = {}  # code of numbers that need no array
        self._asked: dict[int, Call] = {}  # comparisons that are left to the check of what they give
        self._plan = Plan()
        self._passed: dict[str, Passed] = {}  # arrays that do not stay
        for value in found:
            self._passed[self._name(value)] = Passed(value.shape, _dense_in_order(value), ours=False)
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
        blocks = Blocks(self._scope, self._passed, self._plan.memory)
        first = len(self._statements) if self._first_write is None else self._first_write
        lines, rest = blocks.lines(self._statements[:first]), blocks.lines(self._statements[first:])
        if lines:  # an error before anything is changed lets the step run eagerly
            lines = ["try:", *("    " + line for line in lines), "except Exception as error:", "    return error"]
        lines += [*rest, f"return ({', '.join(self._results)}{',' if len(self._results) == 1 else ''})"]
        body = "\n    ".join(lines)
        self.source = f"def run({', '.join(self._parameters)}):\n    {body}\n"
        self._links += blocks.links
        self._scope.update((name, find()) for name, find in blocks.links)
        exec(compile(self.source, "<captured step>", "exec"), self._scope)
        self.run = self._scope["run"]

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

    # What there is to be told

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

    # Constants

    def _fold(self) -> None:
        """Compute now what depends on nothing, and is not changed."""
        self._calls = []
        for call in self.program.calls:
            known = self._constants.keys() >= {value.number for value in call.reads()}
            if not known or call.target is not None or call.check is not None:
                self._calls.append(call)
                continue
            if any(value.storage.writes for value in call.results) or any(call.numbers()):
                self._calls.append(call)
                continue
            args = replaced(call.args, self._constant)
            result = call.function(*args, **{k: replaced(v, self._constant) for k, v in call.options.items()})
            for value, array in zip(call.results, [result] if call.single else result, strict=True):
                self._constants[value.number] = array

    def _constant(self, arg: Any) -> Any:
        return self._constants[arg.number] if type(arg) is Value else arg

    def _lifetimes(self) -> dict[int, int]:
        """Return the number of the last call that needs each memory."""
        ends: dict[int, int] = {}
        for i, call in enumerate(self._calls):
            for value in call.reads():
                ends[id(value.storage)] = i
            for value in call.results:
                ends[id(value.storage)] = i
            if call.target is not None:
                ends[id(call.target.storage)] = i
        for value in self.program.outputs:
            ends[id(value.storage)] = len(self._calls)
        return ends

    # Names

    def _name(self, value: Value) -> str:
        name = self._names.get(value.number)
        if name is None:
            name = self._names[value.number] = f"v{value.number}"
        return name

    def _object(self, thing: Any, prefix: str = "c") -> str:
        """Return the name of something that stays the same."""
        if id(thing) not in self._objects:
            name = self._objects[id(thing)] = f"{prefix}{len(self._objects)}"
            self._scope[name] = thing
        return self._objects[id(thing)]

    def _text(self, arg: Any) -> str:
        """Return an argument as code."""
        kind = type(arg)
        if kind is Value:
            constant = self._constants.get(arg.number)
            return self._name(arg) if constant is None else self._object(constant)
        if kind is Number:
            return self._number(arg)
        if kind is tuple:
            return f"({', '.join(map(self._text, arg))}{',' if len(arg) == 1 else ''})"
        if kind is list:
            return f"[{', '.join(map(self._text, arg))}]"
        if arg is Ellipsis:
            return "..."
        if arg is None or kind in (bool, int, str) or (kind is float and math.isfinite(arg)):
            return repr(arg)
        return self._object(arg)

    def _number(self, number: Number) -> str:
        name = self._numbers.get(number.key)
        if name is None:
            name = self._numbers[number.key] = f"n{len(self._numbers)}"
            self.numbers.append(number)
        return name

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
        (result,), number = call.results, call.results[0].number
        checks = [c for c in self._calls if c.check is not None and c.args[0].number == number]
        return len(call.args) == 2 and result.shape == () and len(checks) == self._uses[number] == 1

    def _emit_check(self, call: Call) -> None:
        """Write the code that looks whether a check comes out as it did."""
        value = call.args[0]
        asked = self._asked.get(value.number)
        if asked is None:
            text = f"bool({self._text(value)})"
        else:
            texts = [self._item(arg) for arg in asked.args]
            text = f"bool({texts[0]} {_COMPARISONS[asked.function]} {texts[1]})"
        self._add(f"if {text} is not {call.check}: raise Diverged")

    def _item(self, arg: Any) -> str:
        """Return the code of a number that an array without axes holds."""
        return self._items.get(arg.number) or self._text(arg) if type(arg) is Value else self._text(arg)

    def _is_view(self, call: Call) -> bool:
        """Return whether a call returns but views of what it is given."""
        given = [value.storage for value in call.reads()]
        return bool(call.results) and all(value.storage in given for value in call.results)

    def _emit_view(self, call: Call) -> None:
        """Find a view of memory that stays once, of all other anew."""
        stays = all(v.number in self._fixed or v.number in self._constants for v in call.reads())
        if stays and call.single and not any(call.numbers()):
            (result,) = call.results
            self._fixed.add(result.number)
            self._links.append((self._name(result), _Found(self._scope, call, self._name, self._constants)))
        else:
            self._emit_plain(call)

    def _emit_plain(self, call: Call) -> None:
        """Call a function that makes the memory of its results."""
        names = [self._name(value) for value in call.results]
        for name, value in zip(names, call.results, strict=True):
            self._passed[name] = Passed(value.shape, _dense_in_order(value), ours=False)
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

    def _new(self, value: Value, reuse: tuple[Value, ...] = ()) -> str:
        """Return the name of memory for a new value: planned, or the user's if it is handed out."""
        name, storage = self._name(value), value.storage
        if id(storage) in self._handed_out:
            self._statements.append(Statement(f"{name} = {self._made(value)}", makes=name))
            self._passed[name] = Passed(value.shape, _dense_in_order(value), ours=True)
            return name
        place = self._plan.add(value, self._at, self._ends[id(storage)], reuse)
        self._fixed.add(value.number)
        self._links.append((name, place))
        return name

    def _made(self, value: Value) -> str:
        shape, dtype = value.shape, self._object(value.dtype, "d")
        if _in_order(value.strides, value.shape, value.dtype.itemsize):
            return f"empty({shape}, {dtype})"
        order = sorted(range(len(shape)), key=lambda axis: -value.strides[axis])
        back = tuple(order.index(axis) for axis in range(len(shape)))
        return f"empty({tuple(shape[axis] for axis in order)}, {dtype}).transpose({back})"

    def _emit_into(self, call: Call) -> bool:
        """Write the result to memory of ours, if the function can; return whether."""
        if not call.single or call.results[0].scalar or not _dense(call.results[0]):
            return False
        result, function = call.results[0], call.function
        if isinstance(function, np.ufunc):
            return function.nout == 1 and self._emit_elementwise(call, function, result)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc) and function.__name__ == "reduce" and not call.options.keys() - {*_REDUCTIONS}:
            given = dict(zip(_REDUCTIONS, call.args[1:], strict=False)) | call.options
            if self._emit_pair(call, owner, given):
                return True
            x, out = self._text(call.args[0]), self._new(result)
            parts = [given.get("axis", 0), given.get("dtype")]
            rest = "".join(f", {name}={self._text(given[name])}" for name in ("initial", "where") if name in given)
            keeps = self._text(given.get("keepdims", False))
            texts = ", ".join(map(self._text, parts))
            self._add(f"{self._object(function, 'f')}({x}, {texts}, {out}, {keeps}{rest})")
            return True
        if function is _DOT and _in_order(result.strides, result.shape, result.dtype.itemsize):
            a, b = self._text(call.args[0]), self._text(call.args[1])
            self._add(f"{a}.dot({b}, {self._new(result)})")
            return True
        if function is np.asarray and len(call.args) == 1:  # of a scalar
            if id(result.storage) in self._handed_out:
                return False
            x = self._text(call.args[0])
            self._add(f"{self._new(result)}[()] = {x}")
            return True
        if function is np.where and len(call.args) == 3 and self._emit_choice(call, result):
            return True
        if function in (_ASTYPE, _COPY):
            x = self._text(call.args[0])
            self._add_copy(self._new(result), x, result.shape)
            return True
        if not any(call.reads()) and not any(call.numbers()):  # what is made of nothing, and changed then
            value = np.asarray(call.function(*call.args, **call.options))
            self._add(f"{self._new(result)}[...] = {self._object(value)}")
            return True
        return False

    def _emit_extreme(self, call: Call) -> bool:
        """Find the least or largest of integers by its place, sooner known, if it is of use but to a check."""
        function = getattr(call.function, "__self__", None)
        if not isinstance(function, np.ufunc) or call.name not in ("minimum.reduce", "maximum.reduce"):
            return False
        given = dict(zip(_REDUCTIONS, call.args[1:], strict=False)) | call.options
        x, result = call.args[0], call.results[0]
        plain = not given.get("keepdims") and not given.keys() - {"axis", "keepdims", "dtype", "out"}
        every = given.get("axis", 0) is None or (given.get("axis", 0) == 0 and len(x.shape) == 1)
        if not plain or not every or given.get("dtype") is not None or type(x) is not Value or x.dtype.kind not in "iu":
            return False
        if function not in _PLACES or not math.prod(x.shape):
            return False
        name = self._text(x)
        asked = any(result in c.args for c in self._calls if self._comparison_asked(c))
        if not result.scalar or self._uses[result.number] > 1 or not asked:
            return False
        self._items[result.number] = f"{name}.item({name}.{_PLACES[function]}())"
        return True

    def _emit_pair(self, call: Call, function: np.ufunc, given: Mapping[str, Any]) -> bool:
        """Reduce an axis of two in one call for all pairs, not one for each; return whether."""
        x, result, axis = call.args[0], call.results[0], given.get("axis", 0)
        axis = axis[0] if type(axis) is tuple and len(axis) == 1 else axis
        plain = not given.keys() - {"axis", "keepdims", "dtype", "out"} and given.get("dtype") is None
        if not plain or type(axis) is not int or type(x) is not Value or x.number in self._constants:
            return False
        if x.dtype not in _FLOATS or x.shape[axis] != 2 or function not in (np.add, np.maximum, np.minimum):
            return False
        mine, axis = self._name(x), axis % len(x.shape)
        halves = [self._part(mine, x.number in self._fixed, axis, i) for i in range(2)]
        out = self._new(result)
        fixed = result.number in self._fixed
        out = self._part(out, fixed, axis, 0) if bool(given.get("keepdims")) else out
        calls = [(halves, out)]
        if function is np.add:  # NumPy begins with 0, which makes a difference to -0
            calls.append(([out, self._kept(np.zeros((), x.dtype))], out))
        for operands, target in calls:
            keyword = "" if function is np.add else "out="
            self._add(f"{self._object(function, 'f')}({', '.join(operands)}, {keyword}{target})")
        return True

    def _part(self, whole: str, fixed: bool, axis: int, i: int) -> str:
        """Return the name of what lies at a place of an axis."""
        key = (*[slice(None)] * axis, i, ...)
        name = self._names[-len(self._names) - 1] = f"h{len(self._names)}"
        if fixed:
            self._links.append((name, lambda: self._scope[whole][key]))
        else:
            self._add(f"{name} = {whole}[{self._object(key)}]")
        return name

    def _emit_choice(self, call: Call, result: Value) -> bool:
        """Choose between an array and 0 by its bits, where NumPy would branch at each element; return whether."""
        condition, *sides = call.args
        zeros = [type(side) in (int, float) and side == 0 and math.copysign(1, side) > 0 for side in sides]
        if sum(zeros) != 1:
            return False
        x = sides[zeros.index(False)]
        alike = all(type(v) is Value and v.shape == result.shape for v in (condition, x))
        if not alike or x.dtype != result.dtype or result.dtype not in _BITS or condition.dtype != bool:
            return False
        bits = _BITS[result.dtype]
        mine = id(result.storage) not in self._handed_out
        alone = self._replaceable(x, result) and self._plan.fills(x)
        if zeros[0] and mine and math.prod(result.shape) <= _FEW and alone:
            source = self._text(x)
            self._links.append(
                (self._name(result), self._plan.add(result, self._at, self._ends[id(result.storage)], (x,)))
            )
            self._fixed.add(result.number)
            zero = self._kept(np.zeros((), result.dtype))
            self._add(f"{self._object(np.putmask, 'f')}({source}, {self._text(condition)}, {zero})")
            return True
        mask = self._spare(result.shape, bits)
        source = self._bits(x, bits)
        self._new(result, (x,) if self._replaceable(x, result) else ())
        target = self._bits(result, bits)
        self._add_copy(mask, self._text(condition), result.shape)
        if zeros[0]:
            self._add_elementwise(np.subtract, [mask, self._kept(np.ones((), bits))], mask, result)
        else:
            self._add_elementwise(np.negative, [mask], mask, result)
        self._add_elementwise(np.bitwise_and, [source, mask], target, result)
        return True

    def _bits(self, value: Value, dtype: Any) -> str:
        """Return the name of a value as integers of its bits."""
        if value.number in self._constants:
            return self._kept(self._constants[value.number].view(dtype))
        name = f"b{len(self._names)}"
        self._names[-len(self._names) - 1] = name
        mine = self._name(value)
        if value.number in self._fixed:
            self._links.append((name, lambda: self._scope[mine].view(dtype)))
        else:
            self._add(f"{name} = {mine}.view({self._object(dtype, 'd')})")
            self._passed[name] = self._passed.get(mine, Passed(value.shape, _dense_in_order(value), ours=False))
        return name

    def _spare(self, shape: tuple[int, ...], dtype: Any) -> str:
        """Return the name of memory that is needed for one call only."""
        spare = Value(-len(self._names) - 1, Storage("temporary", -1), np.empty(shape, dtype))
        name = self._names[spare.number] = f"s{len(self._names)}"
        self._links.append((name, self._plan.add(spare, self._at, self._at, ())))
        return name

    def _emit_write(self, call: Call, target: Value) -> None:
        """Write the code of a call that changes what it is given."""
        if target.storage.kind != "temporary" and self._first_write is None:
            self._first_write = len(self._statements)
        function, name = call.function, self._text(target)
        if function in _IN_PLACE:
            if _IN_PLACE[function] in _ELEMENTWISE:
                args = self._operands(_IN_PLACE[function], call.args, target)
            else:
                args = [self._text(arg) for arg in call.args]
            self._add_elementwise(_IN_PLACE[function], args, name, target)
        elif function is setitem:
            x, key, value = call.args
            self._add(f"{self._text(x)}[{self._text(key)}] = {self._text(value)}")
        elif call.out:
            if function is _DOT:
                self._add(f"{self._text(call.args[0])}.dot({self._text(call.args[1])}, {name})")
            elif function in _ELEMENTWISE and not call.options:
                self._add_elementwise(function, self._operands(function, call.args, target), name, target)
            else:
                self._add(self._called(call, out=name))
        else:
            self._add(self._called(call))

    # Elementwise functions

    def _emit_elementwise(self, call: Call, function: np.ufunc, result: Value) -> bool:
        """Write the code of an elementwise function, or of a product of matrices."""
        elementwise = function.signature is None
        extra = set(call.options)
        if extra - {"dtype", "casting"}:
            return False
        reuse: tuple[Value, ...] = ()
        if elementwise and not call.options:
            texts = self._operands(function, call.args, result)
            reuse = tuple(arg for arg in call.args if type(arg) is Value and self._replaceable(arg, result))
        else:
            texts = [self._text(arg) for arg in call.args]
        out = self._new(result, reuse)
        options = "".join(f", {name}={self._text(value)}" for name, value in call.options.items())
        self._add_elementwise(function, texts, out, result, options)
        return True

    def _add_elementwise(
        self, function: np.ufunc, texts: list[str], out: str, result: Value, options: str = ""
    ) -> None:
        """Write the code of a call of an elementwise function, or of a product."""
        keyword = "out=" if options or function in (np.maximum, np.minimum) else ""  # which warn otherwise
        places = ", ".join(f"{{{i}}}" for i in range(len(texts)))
        code = f"{self._object(function, 'f')}({places}, {keyword}{{{len(texts)}}}{options})"
        if function in _ELEMENTWISE:
            self._statements.append(Statement(code, (*texts, out), result.shape))
        else:
            self._add(code.format(*texts, out))

    def _add(self, code: str) -> None:
        self._statements.append(Statement(code))

    def _add_copy(self, target: str, source: str, shape: tuple[int, ...]) -> None:
        """Write the code of a copy to all elements, of what may be shorter or of another dtype."""
        self._statements.append(Statement("{1}[...] = {0}", (source, target), shape))

    def _replaceable(self, arg: Value, result: Value) -> bool:
        """Return whether a result may take the place of an argument, which is needed no longer."""
        return (
            arg.number in self._fixed
            and arg.storage.kind == "temporary"
            and self._ends[id(arg.storage)] == self._at
            and (arg.shape, arg.strides, arg.dtype) == (result.shape, result.strides, result.dtype)
        )

    def _operands(self, function: np.ufunc, args: tuple[Any, ...], result: Value) -> list[str]:
        """Return the operands of an elementwise function, in a form in which NumPy is fast.

        Those are arrays of the dtype that it computes in, and as long as the result as far as that is small. Where one
        is reversed they stay as they are: NumPy then computes some functions otherwise, to the last bit.
        """
        if any(min(getattr(arg, "strides", None) or (0,)) < 0 for arg in args):
            return [self._text(arg) for arg in args]
        dtypes = _computes_in(function, args)
        return [self._operand(function, arg, dtype, result) for arg, dtype in zip(args, dtypes, strict=True)]

    def _operand(self, function: np.ufunc, arg: Any, dtype: Any, result: Value) -> str:
        kind = type(arg)
        count = math.prod(result.shape)
        if dtype is None:
            return self._text(arg)
        if kind is Number:
            return self._cell(arg, dtype)
        constant = self._constants.get(arg.number) if kind is Value else arg if isinstance(arg, np.ndarray) else None
        if kind in (int, float):
            constant = _exactly(arg, dtype)
            if constant is None:
                return self._text(arg)
        if isinstance(constant, np.generic):
            return self._kept(np.asarray(constant, dtype))
        if constant is not None:
            long = constant.size > 1 or function in (np.maximum, np.minimum)
            if constant.dtype != dtype or (constant.shape != result.shape and long and count <= _SMALL):
                shape = result.shape if count <= _SMALL else constant.shape
                constant = np.broadcast_to(constant, shape).astype(dtype, order="C")
                return self._kept(constant)
            return self._kept(constant) if kind in (int, float) else self._text(arg)
        if kind is not Value:
            return self._text(arg)
        long = math.prod(arg.shape) > 1 or function in (np.maximum, np.minimum)
        short = (
            arg.shape != result.shape and long and 0 < count <= _SMALL and len(result.shape) and result.shape[-1] <= 256
        )
        if arg.dtype == dtype and not short:
            return self._text(arg)
        spare = self._spare(result.shape if short else arg.shape, dtype)
        self._add_copy(spare, self._text(arg), result.shape if short else arg.shape)
        return spare

    def _kept(self, constant: np.ndarray) -> str:
        """Return the name of a constant, the same for equal ones."""
        key = (
            (constant.dtype, constant.shape, constant.strides, constant.tobytes())
            if constant.size <= _SMALL
            else id(constant)
        )
        if key not in self._cells:
            name = self._cells[key] = f"k{len(self._cells)}"
            self._scope[name] = constant
        return self._cells[key]

    def _cell(self, number: Number, dtype: Any) -> str:
        """Return the name of an array without axes that holds a number: NumPy takes it sooner than the number."""
        if type(number.value) not in (int, float) or dtype not in _FLOATS:
            return self._number(number)
        key = (number.key, dtype)
        if key not in self._cells:
            name = self._cells[key] = f"k{len(self._cells)}"
            self._scope[name] = np.empty((), dtype)
            self._add(f"{name}[()] = {self._number(number)}")
        return self._cells[key]

    # Results

    def _output(self, value: Value) -> str:
        constant = self._constants.get(value.number)
        if constant is not None:
            return f"{self._object(_copied, 'f')}({self._object(constant)})"
        if value.storage.kind != "temporary":
            return f"{self._name(value)}.view()"  # so that an optimizer sees that somebody looks
        return self._name(value)


def _copied(x: Any) -> Any:
    """Return a copy that lies in memory as the array does."""
    steps = [(n - 1) * stride for n, stride in zip(x.shape, x.strides, strict=True)]
    if not x.size or not steps:
        return x.copy()
    first = -sum(step for step in steps if step < 0)
    memory = np.empty(first + sum(step for step in steps if step > 0) + x.itemsize, np.uint8)
    copy: np.ndarray = np.ndarray(x.shape, x.dtype, memory, first, x.strides)
    copy[...] = x
    return copy


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
        return call.function(*args, **{name: replaced(value, self._array) for name, value in call.options.items()})

    def _array(self, arg: Any) -> Any:
        if type(arg) is not Value:
            return arg
        constant = self.constants.get(arg.number)
        return self.scope[self.name(arg)] if constant is None else constant


_METHOD_TYPE = type(lambda: None)


def _is_method(function: Any) -> bool:
    return method(function.__name__) is function if function.__module__ == method.__module__ else False


def _dense(value: Value) -> bool:
    """Return whether the elements of a value fill a piece of memory, in whichever order of the axes."""
    steps = sorted((s, n) for s, n in zip(value.strides, value.shape, strict=True) if n > 1)
    expected = value.dtype.itemsize
    for stride, n in steps:
        if stride != expected:
            return False
        expected *= n
    return True


def _dense_in_order(value: Value) -> bool:
    return _in_order(value.strides, value.shape, value.dtype.itemsize)


def _not_linked(*_: Any) -> None:
    raise RuntimeError("Replay: expected link before run")


def _in_order(strides: Any, shape: Any, itemsize: int) -> bool:
    """Return whether elements lie in C order."""
    expected = itemsize
    for stride, n in zip(reversed(strides), reversed(shape), strict=True):
        if n > 1 and stride != expected:
            return False
        expected *= max(n, 1)
    return True


_ELEMENTWISE = frozenset(u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None)


def _computes_in(function: np.ufunc, args: tuple[Any, ...]) -> list[Any]:
    """Return the dtype in which an elementwise function takes each operand; None where it is left alone."""
    given = []
    for arg in args:
        value = arg.value if type(arg) is Number else arg
        if type(value) in (int, float, complex):
            given.append(type(value))
        elif hasattr(value, "dtype"):
            given.append(value.dtype)
        else:
            return [None] * len(args)
    try:
        resolved = function.resolve_dtypes((*given, *[None] * function.nout))
    except TypeError:
        return [None] * len(args)
    return list(resolved[: len(args)])


def _exactly(value: Any, dtype: Any) -> np.ndarray | None:
    """Return a number as an array without axes that gives the same results; None if it may not."""
    if dtype in _FLOATS:
        with np.errstate(all="ignore"):
            cell = np.asarray(value, dtype)
        return cell if np.isfinite(cell) == math.isfinite(value) else None
    if type(value) is int and dtype.kind in "iu" and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return np.asarray(value, dtype)
    return None


def _forwarded(calls: list[Call], handed_out: set[int]) -> list[Call]:
    """Let calls write their result where it is copied to, if it is needed nowhere else."""
    uses = Counter(value.number for call in calls for value in call.reads())
    made = {call.results[0].number: call for call in calls if call.single and call.results}
    dropped = set()
    for i, call in enumerate(calls):
        if call.function is not setitem or call.args[1] is not Ellipsis or type(call.args[2]) is not Value:
            continue
        target, _, value = call.args
        maker = made.get(value.number)
        if maker is None or uses[value.number] != 1 or value.storage.writes or id(value.storage) in handed_out:
            continue
        if not _takes_out(maker, target):
            continue
        if (target.shape, target.dtype) != (value.shape, value.dtype) or value.storage is not maker.results[0].storage:
            continue
        between = calls[calls.index(maker) : i]
        if any(target.overlaps(v) for c in between for v in (*c.reads(), *([c.target] if c.target else []))):
            continue
        maker.target, maker.out, maker.results = target, True, []
        dropped.add(id(call))
    return [call for call in calls if id(call) not in dropped]


def _takes_out(call: Call, target: Value) -> bool:
    if call.function is _DOT:
        return _in_order(target.strides, target.shape, target.dtype.itemsize)
    if any(min(value.strides or (0,)) < 0 for value in (target, *call.reads())):
        return False
    return isinstance(call.function, np.ufunc) and call.function.nout == 1 and not call.options
