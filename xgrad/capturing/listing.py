"""A recorded step as text: what goes in, each call with its memory, and what is left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xgrad.capturing.frame import Frame
from xgrad.capturing.numbers import Number
from xgrad.capturing.operators import IN_PLACE, getitem, same, setitem
from xgrad.capturing.program import Call, Value
from xgrad.random import Generator
from xgrad.tensor import Tensor

WIDTH = 120  # columns
_SIGNS = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**="}
_SIGNS |= {"iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=", "imatmul": "@="}
_BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 3}
_OPERANDS = 3  # of an expression, from which on it gets a line of its own


def listing(frame: Frame) -> str:
    """Return the calls of a recording, a line each, between what they are given and what they leave behind."""
    return "\n".join(_Listing(frame).lines())


class _Listing:
    """The names of what a recording is about, and the lines in which they stand."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.program = frame, frame.program
        run: Any = frame.run  # that of another backend than `cpu` may tell less
        self.made = set(map(id, getattr(run, "calls", self.program.calls)))
        self.constants: Mapping[int, Any] = getattr(run, "constants", {})
        self.places: Mapping[int, Any] = getattr(run, "places", {})
        self.found: set[int] = getattr(run, "found", set())
        self.planned: int | None = getattr(run, "nbytes", None)
        self.names: dict[int, str] = {}  # of values, by number
        self.leaves: dict[int, str] = {}  # of leaves, by id
        self.numbers: dict[Any, str] = {}  # of expressions that have a line of their own, by key
        self.read: dict[tuple[str, int], str] = {}  # of numbers that are read, by kind and the id of the holder
        self.makers: dict[Any, Value] = {}  # the first value in a piece of memory; all others are views of it
        self.inputs = list(self._inputs())

    # Names

    def _inputs(self) -> Iterator[Value]:
        """Give what was there before a name, and return it in the order of the names."""
        optimizers = self._of_optimizers()
        counts = {"param": 0, "memory": 0}
        for value in self.program.inputs:
            source = value.source
            assert source is not None
            if source.kind == "argument":
                name = f"arg{source.holder}"
            elif source.kind == "gradient":
                name = f"{self._leaf(source.holder)}.grad"
            else:
                name = optimizers.get(id(source.holder), "")
                if not name and source.holder._edge is not None and id(source.holder._edge) in self.leaves:
                    name = self.leaves[id(source.holder._edge)]
                if not name:
                    kind = "memory" if source.holder._edge is None else "param"
                    name = f"{kind}{counts[kind]}" if kind == "memory" else self._leaf(source.holder._edge)
                    counts[kind] += 1
            self.names[value.number] = name
        yield from sorted(self.program.inputs, key=lambda value: _order(self.names[value.number]))

    def _leaf(self, leaf: Any) -> str:
        return self.leaves.setdefault(id(leaf), f"param{len(self.leaves)}")

    def _of_optimizers(self) -> dict[int, str]:
        """Return the names of the buffers of optimizers and of what lies in them, by the ids of their tensors."""
        names, flats = {}, self.frame.left.flats
        for value in self.program.inputs:  # parameters are numbered as the step comes to them
            if value.source and value.source.kind == "tensor" and value.source.holder._edge is not None:
                self._leaf(value.source.holder._edge)
        for i, flat in enumerate(flats):
            mark = str(i) if len(flats) > 1 else ""
            names[id(flat.buffer)], names[id(flat.gradients.buffer)] = f"params{mark}", f"grads{mark}"
            names |= {id(array): f"{key}{mark}" for key, array in flat.arrays.items()}
            for leaf, view, place in zip(flat.leaves, flat.gradients.views, flat.places, strict=True):
                names[id(view)], names[id(place)] = f"{self._leaf(leaf)}.grad", self._leaf(leaf)
        return names

    def _name(self, value: Value) -> str:
        if value.number not in self.names:
            self.names[value.number] = f"%{sum(name[0] == '%' for name in self.names.values())}"
        return self.names[value.number]

    def _tensor(self, tensor: Tensor | int) -> str:
        """Return the name of a tensor that was there before."""
        if type(tensor) is int:
            return f"arg{tensor}"
        for value in self.inputs:
            if value.source is not None and value.source.holder is tensor:
                return self.names[value.number]
        return "a tensor"

    # Numbers

    def _number(self, number: Any, outer: int = 0, right: bool = False) -> str:
        """Return an expression, in brackets where it stands within one that binds more tightly."""
        if type(number) is not Number:
            return f"{number!r}"
        if number.key in self.numbers:
            return self.numbers[number.key]
        if number.operator == "read":
            return self._reading(number.operands[0])
        if len(number.operands) == 1:
            return f"{number.operator.replace('bool', '')}({self._number(number.operands[0])})"
        binding = _BINDING.get(number.operator, 0)
        x, y = number.operands
        power = number.operator == "**"
        text = f"{self._number(x, binding, power)} {number.operator} {self._number(y, binding, not power)}"
        return f"({text})" if binding < outer or (binding == outer and right) else text

    def _reading(self, place: Any) -> str:
        """Return the name of a number that is read: an option's, with a mark if several optimizers have it."""
        if isinstance(place.holder, Generator):
            key, rest = ("seed", "draws")[place.path[0]], ""
        else:
            key, rest = place.path[0], "".join(f"[{part}]" for part in place.path[1:])
        holders = [holder for name, holder in self.read if name == key]
        if id(place.holder) not in holders:
            holders.append(id(place.holder))
            self.read[key, id(place.holder)] = key + (f"_{len(holders)}" if len(holders) > 1 else "")
        return self.read[key, id(place.holder)] + rest

    def _long_numbers(self) -> Iterator[tuple[str, str]]:
        """Give long expressions names, and return them."""
        every = [number for call in self.program.calls for number in call.numbers]
        for number in every:
            if _size(number) >= _OPERANDS and number.key not in self.numbers:
                text = self._number(number)
                self.numbers[number.key] = f"n{len(self.numbers)}"
                yield self.numbers[number.key], text

    # Lines

    def lines(self) -> Iterator[str]:
        """Return all lines."""
        calls = [call for call in self.program.calls if id(call) in self.made or self._is_constant(call)]
        free = [call for call in calls if self._is_free(call)]
        yield f"calls      {len(calls) - len(free)}, and {len(free)} in brackets that cost nothing"
        if self.planned is not None:
            alone = sum(place.nbytes for place in self.places.values())
            apart = f"; {alone:,} if each value had memory of its own" if hasattr(self.frame.run, "places") else ""
            yield f"memory     {self.planned:,} bytes{apart}"
        used = {v.source.holder: v for v in self.inputs if v.source and v.source.kind == "argument"}
        arguments = [
            f"arg{i} {_described(dtype, shape)}{'' if i in used else ', not used'}"
            for i, (dtype, shape) in enumerate(self.frame.arguments)
        ]
        yield from _folded("arguments", arguments)
        others = [v for v in self.inputs if v.source and v.source.kind != "argument"]
        yield from _folded("before", [f"{self._name(v)} {_described(v.dtype, v.shape)}" for v in others])
        for i, (name, text) in enumerate(self._long_numbers()):
            yield f"{'' if i else 'numbers':11}{name} = {text}"
        yield ""
        yield from _columns([self._row(call) for call in calls])
        yield ""
        yield from _folded("returns", [self._result(value) for value in self.frame.results] or ["no new tensor"])
        yield from _folded("changes", list(self._changed()))
        yield from _folded("leaves", list(self._left()) or ["nothing else"])

    def _is_constant(self, call: Call) -> bool:
        return bool(call.results) and all(value.number in self.constants for value in call.results)

    def _is_free(self, call: Call) -> bool:
        return self._is_constant(call) or (
            bool(call.results) and all(value.number in self.found for value in call.results)
        )

    def _row(self, call: Call) -> tuple[str, str, str, str, str]:
        """Return what stands in the columns: results, the call, where the results lie, their bytes, the line."""
        results = ", ".join(f"{self._name(v)} {_described(v.dtype, v.shape)}" for v in call.results)
        if self._is_constant(call):
            text = "constant" if call.function is same else self._called(call)
            return results, f"= {text}", "[constant]", "", call.line
        if call.check is not None:
            return "", f"check that {self._text(call.args[0])} is {call.check}", "", "", call.line
        if call.target is not None:
            return self._name(call.target), self._change(call, call.target), "in place", "", call.line
        where, nbytes = zip(*map(self._where, call.results), strict=True) if call.results else ([""], [""])
        return results, f"= {self._called(call)}", ", ".join(where), ", ".join(filter(None, nbytes)), call.line

    def _where(self, value: Value) -> tuple[str, str]:
        """Return where a result lies, and the bytes that it takes there."""
        place = self.places.get(value.number)
        if place is not None:
            return f"at {place.offset}", f"{value.nbytes:,}"
        if value.number in self.found:
            return "[view]", ""
        if self.makers.setdefault(value.storage, value) is not value or value.storage.kind != "temporary":
            return "view", ""
        return "scalar" if value.scalar else "new", f"{value.nbytes:,}"

    def _called(self, call: Call) -> str:
        args = [self._text(arg) for arg in call.args]
        if call.function is getitem:
            return f"{args[0]}[{self._key(call.args[1])}]"
        shown = {name: value for name, value in call.options.items() if name != "device"}
        options = [f"{name}={self._text(v)}" for name, v in shown.items() if v is not None and v is not False]
        return f"{call.name}({', '.join(args + options)})"

    def _change(self, call: Call, target: Value) -> str:
        if call.function is setitem:
            key = "" if call.args[1] is Ellipsis else f"[{self._key(call.args[1])}] "
            return f"{key}:= {self._text(call.args[2])}"
        if call.function in IN_PLACE.values():
            return f"{_SIGNS[call.function.__name__]} {self._text(call.args[1])}"
        return f"{':=' if call.out else 'by'} {self._called(call)}"

    def _key(self, key: Any) -> str:
        return ", ".join(map(self._text, key)) if type(key) is tuple else self._text(key)

    def _text(self, arg: Any) -> str:
        """Return an operand."""
        kind = type(arg)
        if kind is Value:
            return self._name(arg)
        if kind is Number:
            return self._number(arg)
        if kind is tuple:
            return f"({', '.join(map(self._text, arg))}{',' if len(arg) == 1 else ''})"
        if kind is list:
            return f"[{', '.join(map(self._text, arg))}]"
        if kind is slice:
            start, stop, step = ("" if part is None else self._text(part) for part in (arg.start, arg.stop, arg.step))
            return f"{start}:{stop}" + (f":{step}" if step else "")
        if arg is Ellipsis:
            return "..."
        if not isinstance(arg, type) and hasattr(arg, "shape") and hasattr(arg, "dtype"):
            return repr(arg.item()) if arg.shape == () else f"<{_described(arg.dtype, tuple(arg.shape))}>"
        if kind is float:
            return f"{arg:.7g}"
        name = getattr(arg, "__name__", None)
        return str(name) if name else f"{arg}"

    # What comes of it

    def _result(self, value: Value) -> str:
        name = self._name(value)
        return f"{name} {_described(value.dtype, value.shape)}"

    def _changed(self) -> Iterator[str]:
        """Return the memory from before that is written to, each piece by the largest that is known of it."""
        written = dict.fromkeys(call.target.storage for call in self.program.calls if call.target is not None)
        for storage in written:
            known = [value for value in self.inputs if value.storage is storage]
            if known:
                yield self._name(max(known, key=lambda value: value.nbytes))

    def _left(self) -> Iterator[str]:
        """Return what is left behind."""
        left = self.frame.left
        for leaf, value, there in left.gradients:
            name = f"{self._leaf(leaf)}.grad"
            if value is not None:
                yield f"{name} = {self._name(self.frame.outputs[value.number])}"
            else:
                yield name if there else f"no {name}"
        for tensor, value in left.tensors:
            yield f"{self._tensor(tensor)} = {self._name(self.frame.outputs[value.number])}"
        for numbers, key, value in left.numbers:
            text = self._number(value)
            yield f"{self.read.get((key, id(numbers)), key)} = {text}"
        for generator, count in left.draws:
            yield f"{self.read.get(('draws', id(generator)), 'draws')} += {count}"
        for module, mode in left.modes:
            yield f"{type(module).__name__}.training = {mode}"


def _order(name: str) -> tuple[int, str, int]:
    """Return by which inputs are sorted: parameters, their gradients, and what optimizers and others have."""
    stem = name.removesuffix(".grad").rstrip("0123456789")
    number = name.removesuffix(".grad")[len(stem) :]
    return 0 if stem == "param" and "." not in name else 1 if "." in name else 2, stem, int(number or 0)


def _size(number: Any) -> int:
    return sum(map(_size, number.operands)) if type(number) is Number and number.operator != "read" else 1


def _described(dtype: Any, shape: tuple[int, ...]) -> str:
    return f"{str(dtype).rpartition('.')[2]} {shape}"


def _folded(title: str, items: list[str]) -> Iterator[str]:
    """Return items side by side, as many as there is room for."""
    line = f"{title:11}"
    for i, item in enumerate(items):
        more = item + (", " if i + 1 < len(items) else "")
        if len(line) + len(more.rstrip()) > WIDTH and line.strip():
            yield line.rstrip()
            line = " " * 11
        line += more
    if items:
        yield line.rstrip()


def _columns(rows: list[tuple[str, str, str, str, str]]) -> Iterator[str]:
    """Return rows as lines: the calls, which are longest, get what the others leave."""
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    widths[0] = min(widths[0], 40)
    rest = WIDTH - (widths[0] + 1) - sum(widths[2:]) - 2 * 3
    widths[1] = min(widths[1], max(rest, 24))
    for result, call, where, nbytes, line in rows:
        call = call if len(call) <= widths[1] else call[: widths[1] - 3] + "..."
        head = f"{result:{widths[0]}} {call:{widths[1]}}"
        yield f"{head}  {where:{widths[2]}}  {nbytes:>{widths[3]}}  {line}".rstrip()
