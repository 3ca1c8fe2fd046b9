"""Text of a cached program: its inputs and state, its calls, and the effects of a replay."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from xgrad.capture.cached_program import CachedProgram
from xgrad.capture.numbers import SIGNS, Number, operation
from xgrad.capture.program import Call, Value, leaves
from xgrad.support import trees

# columns of a line and of a call; the most elements of a constant that is shown in full
_WIDTH, _CALL, _SHORT = 120, 48, 8

#: The standard's names of functions that have other names in NumPy.
_STANDARD = {
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "right_shift": "bitwise_right_shift",
    "arccosh": "acosh",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "invert": "bitwise_invert",
    "transpose": "permute_dims",
    "arctan": "atan",
    "left_shift": "bitwise_left_shift",
    "conjugate": "conj",
    "concatenate": "concat",
    "power": "pow",
}


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
        used = dict.fromkeys([key for x in numbers if type(x) is Number for key in x.reads])
        short = [cached.number_names[key][0] for key in used]
        known = {key: cached.number_names[key] for key in used}
        self.reads = {
            key: (name if short.count(name) == 1 else full, full)
            for key, (name, full) in known.items()
        }

    def lines(self) -> Iterator[str]:
        program, (result, *effects) = self.program, self.effects.descriptions
        counts = (
            f"calls: {len(program.calls)}, inputs: {len(program.inputs)}, state:"
            f" {len(program.state)}"
        )
        yield f"program    {counts}, temporaries: {self.nbytes:,} bytes"
        for title, values in ("inputs", program.inputs), ("state", program.state):
            yield from _section(title, [f"{value.name}: {_type(value)}" for value in values])
        yield from _section(
            "numbers", [x if x == full else f"{x}: {full}" for x, full in self.reads.values()]
        )
        yield from _section(
            "constants", [f"{self.names[i]}: {_constant(x)}" for i, x in program.constants.items()]
        )
        rows = [self.row(call) for call in program.calls]
        width = max((len(text) for text, _ in rows), default=0)
        yield from ["", *[f"{text:{width}}  {line}" for text, line in rows], ""]
        written = dict.fromkeys(value.storage for call in program.calls for value in call.writes)
        known = sorted(
            (*program.state, *program.inputs), key=lambda value: (value.nbytes, -value.number)
        )
        buffers = {value.storage: value.name for value in known}  # views have the name of the whole
        yield from _section(
            "updates", [buffers[storage] for storage in written if storage in buffers]
        )
        yield from dict.fromkeys(f"{name} = {self.text(x)}" for name, x in effects)
        returned = [
            _Name(self.text(x)) if type(x) is Value else x for _, x in trees.leaves(result[1])
        ]
        yield f"return {trees.rebuild(result[1], returned)}"

    def row(self, call: Call) -> tuple[str, str]:
        """Return a call with the dtypes and shapes of its results, and its line."""
        if call.check is not None:
            return f"check {self.text(call.args[0])} is {call.check}", call.line
        names = ", ".join(map(self.text, call.results))
        shared = {value.storage for value in call.reads}
        kinds = [
            f"{_type(value)}{' view' if value.storage in shared else ''}" for value in call.results
        ]
        text = f"{names} = {self.call(call)}" if names else self.call(call)
        return f"{text:{_CALL}}  {', '.join(kinds)}".rstrip(), call.line

    def call(self, call: Call) -> str:
        """Return the text of a call without its results."""
        name, args, texts = call.name.rstrip("_"), call.args, [self.text(x) for x in call.args]
        if call.function in (operator.getitem, operator.setitem):
            key = texts[1][1:-1].rstrip(",") if type(args[1]) is tuple and args[1] else texts[1]
            return f"{texts[0]}[{key}]" + (f" = {texts[2]}" if len(args) == 3 else "")
        # `pow` may be a kernel
        if call.function is getattr(operator, call.name, None) or call.name == "pow":
            known = {Number: lambda x: x.text, int: "({})".format, float: "({:.7g})".format}
            operands = [
                known[type(x)](x) if type(x) in known else f"_{i}" for i, x in enumerate(args)
            ]
            if name in SIGNS:
                return self.expression(operation(name, *operands), texts)
            if name[1:] in SIGNS:
                return self.expression(f"{operands[0]} {SIGNS[name[1:]]}= {operands[1]}", texts)
        options = [
            f"{key}={self.text(x)}"
            for key, x in call.options.items()
            if x is not None and key != "device"
        ]
        return f"{_STANDARD.get(name, name)}({', '.join([*texts, *options])})"

    def text(self, x: Any) -> str:
        """Return the expression of an argument."""
        kind = type(x)
        if kind is Value:
            return x.name or self.names.setdefault(
                x.number, f"%{len(self.names) - len(self.program.constants)}"
            )
        if kind is Number:
            return self.expression(x.text)
        if kind is tuple or kind is list:
            return repr(kind([_Name(self.text(part)) for part in x]))
        if kind is slice:
            parts = ["" if part is None else self.text(part) for part in (x.start, x.stop, x.step)]
            return ":".join(parts if parts[2] else parts[:2])
        if hasattr(x, "dtype") and hasattr(x, "shape") and kind is not type:
            return repr(x.item()) if x.shape == () else f"<{_type(x)}>"
        if kind is float:
            return f"{x:.7g}"
        return (
            "..." if x is Ellipsis else repr(x) if kind is str else str(getattr(x, "__name__", x))
        )

    def expression(self, text: str, operands: Sequence[str] = ()) -> str:
        """Return an expression without needless parentheses, with names filled in.

        Numbers get their names, and ``_0``, ``_1`` and so on the texts of the operands.
        """
        names = {key: name for key, (name, _) in self.reads.items()}
        names |= {f"_{i}": operand for i, operand in enumerate(operands)}
        return re.sub(r"\b(n|_)\d+", lambda match: names[match[0]], ast.unparse(ast.parse(text)))


def _type(x: Any) -> str:
    """Return the dtype and the shape of a value or an array."""
    return f"{str(x.dtype).rpartition('.')[2]} {tuple(x.shape)}"


def _constant(x: Any) -> str:
    """Return the type of an array, and its elements if there are only a few."""
    return f"{_type(x)} = {' '.join(str(x).split())}" if x.size <= _SHORT else _type(x)


def _section(title: str, items: list[str]) -> list[str]:
    """Return the lines of a title with items side by side; no lines without items."""
    text = ", ".join([item.replace(" ", "\0") for item in items])  # so that no item is split
    lines = wrap(
        text,
        _WIDTH,
        initial_indent=f"{title:11}",
        subsequent_indent=" " * 11,
        break_long_words=False,
    )
    return [line.replace("\0", " ") for line in lines]
