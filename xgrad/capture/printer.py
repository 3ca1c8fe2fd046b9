"""Text of a cached program: its inputs and state, its calls, and what a replay leaves behind."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from textwrap import wrap
from typing import Any

from xgrad import trees
from xgrad.capture.cached_program import CachedProgram
from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Value, leaves
from xgrad.random import Generator

_WIDTH, _CALL, _SHORT = 120, 48, 8  # columns of a line and of a call; elements of a constant shown in full

#: Signs of functions of the module ``operator``, and their precedence.
_SIGNS = {
    "lt": ("<", 0), "le": ("<=", 0), "gt": (">", 0), "ge": (">=", 0), "eq": ("==", 0), "ne": ("!=", 0),
    "or": ("|", 1), "xor": ("^", 2), "and": ("&", 3), "lshift": ("<<", 4), "rshift": (">>", 4),
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "matmul": ("@", 6), "truediv": ("/", 6),
    "floordiv": ("//", 6), "mod": ("%", 6), "neg": ("-", 7), "pos": ("+", 7), "invert": ("~", 7), "pow": ("**", 8),
}  # fmt: skip
#: The standard's names of functions that NumPy calls by others.
_STANDARD = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arcsinh": "asinh", "right_shift": "bitwise_right_shift",
    "arccosh": "acosh", "arctan2": "atan2", "arctanh": "atanh", "invert": "bitwise_invert", "transpose": "permute_dims",
    "arctan": "atan", "left_shift": "bitwise_left_shift", "conjugate": "conj", "concatenate": "concat", "power": "pow",
}  # fmt: skip


def listing(program: CachedProgram) -> str:
    """Return the text of a program."""
    return "\n".join(_Printer(program).lines())


class _Name(str):
    """A text that is printed without quotes in containers."""

    __repr__ = str.__str__


class _Printer:
    """The lines of a program, and the names of its values and numbers."""

    def __init__(self, cached: CachedProgram) -> None:
        self.program, self.effects = cached.program, cached.effects
        self.nbytes: int = getattr(cached.executor, "nbytes", 0)
        self.names = {number: f"c{i}" for i, number in enumerate(self.program.constants)}
        numbers = [*self.program.numbers, *leaves(tuple(x for _, x in self.effects.descriptions))]
        reads = {read.key: self.name_read(read) for n in numbers if type(n) is Number for read in n.reads()}
        short = [name for name, _ in reads.values()]
        self.reads = {key: (name if short.count(name) == 1 else full, full) for key, (name, full) in reads.items()}

    def name_read(self, number: Number) -> tuple[str, str]:
        """Return the short and the full name of a number that is read."""
        owner, key, *index = number.operands
        full = self.effects.number_names.get((id(owner), key), str(key))
        if isinstance(owner, Generator):
            name = ("seed", "draws")[index[0]]
            return name, f"{full}.{name}"
        part = "".join(f"[{i}]" for i in index)
        return f"{key}{part}", f"{full}{part}"

    def lines(self) -> Iterator[str]:
        program, (result, *effects) = self.program, self.effects.descriptions
        counts = f"calls: {len(program.calls)}, inputs: {len(program.inputs)}, state: {len(program.state)}"
        yield f"program    {counts}, temporaries: {self.nbytes:,} bytes"
        for title, values in ("inputs", program.inputs), ("state", program.state):
            yield from _section(title, [f"{value.name}: {_type(value)}" for value in values])
        yield from _section("numbers", [x if x == full else f"{x}: {full}" for x, full in self.reads.values()])
        yield from _section("constants", [f"{self.names[i]}: {_constant(x)}" for i, x in program.constants.items()])
        rows = [self.row(call) for call in program.calls]
        width = max((len(text) for text, _ in rows), default=0)
        yield from ["", *[f"{text:{width}}  {line}" for text, line in rows], ""]
        written = dict.fromkeys(value.storage for call in program.calls for value in call.writes)
        known = sorted((*program.state, *program.inputs), key=lambda value: (value.nbytes, -value.number))
        buffers = {value.storage: value.name for value in known}  # of views, the name of the whole
        yield from _section("updates", [buffers[storage] for storage in written if storage in buffers])
        yield from dict.fromkeys(f"{name} = {self.text(x)}" for name, x in effects)
        returned = [_Name(self.text(x)) if type(x) is Value else x for _, x in trees.leaves(result[1])]
        yield f"return {trees.rebuild(result[1], returned)}"

    def row(self, call: Call) -> tuple[str, str]:
        """Return a call with the dtypes and shapes of its results, and its line."""
        if call.check is not None:
            return f"check {self.text(call.args[0])} is {call.check}", call.line
        names, shared = ", ".join(map(self.text, call.results)), {value.storage for value in call.reads}
        kinds = [f"{_type(value)}{' view' if value.storage in shared else ''}" for value in call.results]
        text = f"{names} = {self.call(call)}" if names else self.call(call)
        return f"{text:{_CALL}}  {', '.join(kinds)}".rstrip(), call.line

    def call(self, call: Call) -> str:
        """Return a call without its results."""
        name, args = call.name.rstrip("_"), call.args
        if call.function is operator.getitem or call.function is operator.setitem:
            key = ", ".join(map(self.text, args[1])) if type(args[1]) is tuple and args[1] else self.text(args[1])
            return f"{self.text(args[0])}[{key}]" + (f" = {self.text(args[2])}" if len(args) == 3 else "")
        if call.function is getattr(operator, call.name, None):
            if name in _SIGNS:
                return self.operation(name, args)
            if name[1:] in _SIGNS:
                return f"{self.text(args[0])} {_SIGNS[name[1:]][0]}= {self.text(args[1])}"
        if isinstance(call.function, partial):  # the copy of a constant that is written to
            name, args = call.function.func.__name__.strip("_"), call.function.args[1:]
        options = [f"{key}={self.text(x)}" for key, x in call.options.items() if x is not None and key != "device"]
        return f"{_STANDARD.get(name, name)}({', '.join([*map(self.text, args), *options])})"

    def operation(self, function: str, operands: tuple[Any, ...], outer: int = -1) -> str:
        """Return an operator with its operands, in brackets if the operator around it has higher precedence."""
        sign, precedence = _SIGNS[function]
        power = function == "pow"
        texts = [self.text(x, precedence + (power is (i == 0))) for i, x in enumerate(operands)]
        text = f" {sign} ".join(texts) if len(texts) == 2 else f"{sign}{texts[0]}"
        return f"({text})" if precedence < outer else text

    def text(self, x: Any, outer: int = -1) -> str:
        """Return an operand, given the precedence of the operator around it."""
        kind = type(x)
        if kind is Value:
            temporaries = len(self.names) - len(self.program.constants)
            return x.name or self.names.setdefault(x.number, f"%{temporaries}")
        if kind is Number:
            return self.number(x, outer)
        if kind is tuple or kind is list:
            return repr(kind([_Name(self.text(part)) for part in x]))
        if kind is slice:
            parts = ["" if part is None else self.text(part) for part in (x.start, x.stop, x.step)]
            return ":".join(parts if parts[2] else parts[:2])
        if hasattr(x, "dtype") and hasattr(x, "shape") and kind is not type:
            return repr(x.item()) if x.shape == () else f"<{_type(x)}>"
        if kind is float or kind is int:
            text = f"{x:.7g}" if kind is float else f"{x}"
            return f"({text})" if x < 0 and outer > 8 else text
        return "..." if x is Ellipsis else repr(x) if kind is str else str(getattr(x, "__name__", x))

    def number(self, x: Number, outer: int) -> str:
        """Return the expression of a number."""
        if x.function == "read":
            return self.reads[x.key][0]
        if x.function not in _SIGNS:
            return self.text(x.value, outer) if x.function == "constant" else f"{x.function}({self.text(*x.operands)})"
        return self.operation(x.function, _sum(*x.operands) if x.function == "add" else x.operands, outer)


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands of a sum; several integers that are added to a number, as ``n + 1 + 1``, are one."""
    if type(x) is Number and x.function == "add" and type(x.operands[1]) is type(y) is int:
        return _sum(x.operands[0], x.operands[1] + y)
    return x, y


def _type(x: Any) -> str:
    """Return the dtype and the shape of a value or an array."""
    return f"{str(x.dtype).rpartition('.')[2]} {tuple(x.shape)}"


def _constant(x: Any) -> str:
    """Return the type of an array, and its elements if these are few."""
    return f"{_type(x)} = {' '.join(str(x).split())}" if x.size <= _SHORT else _type(x)


def _section(title: str, items: list[str]) -> list[str]:
    """Return the lines of a title with items side by side; none without items."""
    text = ", ".join([item.replace(" ", "\0") for item in items])  # so that no item is broken
    lines = wrap(text, _WIDTH, initial_indent=f"{title:11}", subsequent_indent=" " * 11, break_long_words=False)
    return [line.replace("\0", " ") for line in lines]
