"""One way through a step: a program, on which conditions it holds, and what it leaves behind beside its results.

All that is known when it was recorded is written out as one function of Python, `Frame.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xgrad import trees
from xgrad.capturing.arrays import Recorded
from xgrad.capturing.left import Left
from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Unchecked, Value, simplified
from xgrad.capturing.recorder import Reading, Recorder, root_of
from xgrad.capturing.surroundings import ABSENT, Inside, Modules, Watched
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Leaf, Node, clock
from xgrad.nn.module import edits
from xgrad.optim.flat import Flat
from xgrad.random import Generator
from xgrad.tensor import Tensor, placed

#: What a frame returns when it is not the one for a call.
MISS: Any = type("Miss", (), {"__slots__": ()})()


class Unusable(Exception):
    """A recording cannot be replayed; the message says why, and `line` at which line of the user's, if known."""

    def __init__(self, why: str, line: str | None = None) -> None:
        super().__init__(why)
        self.line = line


class Frame:
    """A recorded way through a step.

    Parameters
    ----------
    recorder : Recorder
        What was written down.
    arguments : list of Tensor
        The tensors among the step's arguments.
    results : object
        What the step returned, containers of tensors and other things.
    last : dict of int to Recorded
        What the tensors that were made hold, by their id.
    backend : Backend
        Who runs programs.
    watched : sequence of Watched
        What must be as it is now.

    Attributes
    ----------
    run : Replay
        What runs the program.
    arguments : list of tuple
        The dtypes and shapes of the arguments.
    results : list of Value
        What of the program's outputs the step returns.
    left : Left
        What else is otherwise after it.
    outputs : dict of int to Value
        The program's outputs, by the number that they had before it was simplified.
    """

    def __init__(
        self,
        recorder: Recorder,
        arguments: list[Tensor],
        results: Any,
        last: dict[int, Recorded],
        backend: Any,
        watched: Sequence[Watched | Inside],
    ) -> None:
        self._recorder, self._device = recorder, recorder.device
        self.error: Exception | None = None  # of the last replay
        self._scope: dict[str, Any] = {
            "plain": _plain,
            "MISS": MISS,
            "Tensor": Tensor,
            "change": clock.change,
            "placed": placed,
            "failed": self._failed,
            "relink": self._relink,
            "changed": self._changed,
            "edits": edits,
        }
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._last = last
        self._arguments = {id(tensor): i for i, tensor in enumerate(arguments)}
        self._outputs: list[Value] = []
        self._effects: list[str] = []
        self._edges: list[tuple[Tensor, Leaf]] = []  # tensors that must have them, without hooks

        self._slots = recorder.slots()
        self._private = {
            id(tensor): f"{self._object(gradients)}.tensors[{i}]"
            for gradients in self._slots
            for i, tensor in enumerate(gradients.tensors)
        }
        returned = self._returned(results)
        returning = len(self._outputs)
        self._leave_behind()
        dynamic = self._dynamic()
        try:
            program = simplified(recorder.program(self._outputs))
        except Unchecked as error:
            raise Unusable(f"values that the step has changed before are checked at {error}") from error
        found = [value for value in program.inputs if value in dynamic or _is_dynamic(value, dynamic)]
        with self._device.active():
            self.run = import_module(backend.replays).Replay(program, found)
        self.program = self.run.program
        self._statics: list[tuple[Tensor, Value]] = [(v.source.holder, v) for v in self.run.statics if v.source]
        self._flats = list(recorder.flats.values())
        self.link()

        self._guard_arguments(arguments, watched)
        self._guard(arguments, found)
        numbers = self._computed()
        handed = [self._argument(value) for value in found] + numbers
        outputs = [f"o{i}" for i in range(len(self._outputs))]
        target = f"({', '.join(outputs)},) = " if outputs else ""
        self._lines.append(f"out = run({', '.join(handed)})")
        self._lines.append("if type(out) is not tuple: return failed(out)")
        if outputs:
            self._lines.append(f"{target}out")
        self._lines += self._effects
        self._lines.append(f"return {returned}")
        self._scope["run"] = self.run.run
        body = "\n    ".join(self._lines)
        self.source = f"def replay(args):\n    {body}\n"
        exec(compile(self.source, "<captured step>", "exec"), self._scope)
        self.replay: Callable[[Any], Any] = self._scope["replay"]
        self.arguments = [(tensor._data.dtype, tuple(tensor._data.shape)) for tensor in arguments]
        self.outputs = {v.number: new for v, new in zip(self._outputs, program.outputs, strict=True)}
        self.results = program.outputs[:returning]
        self.left = Left.by(recorder, last)
        del self._recorder, self._last, self._lines, self._effects, self._edges, self._outputs

    def _object(self, thing: Any, prefix: str = "x") -> str:
        """Return the name of an object."""
        if id(thing) not in self._names:
            name = self._names[id(thing)] = f"{prefix}{len(self._names)}"
            self._scope[name] = thing
        return self._names[id(thing)]

    def _text(self, thing: Any) -> str:
        return repr(thing) if thing is None or type(thing) in (bool, int, str) else self._object(thing)

    # Results

    def _returned(self, results: Any) -> str:
        """Return the code of what the step returned."""
        codes = [self._leaf(value) for _, value in trees.leaves(results)]
        if codes == ["None"] or results is None:
            return "None"
        if len(codes) == 1 and not isinstance(results, (dict, list, tuple)):
            return codes[0]
        if type(results) is tuple:
            return (
                f"({''.join(f'{code}, ' for code in codes)})"
                if all(not _container(r) for r in results)
                else self._rebuilt(results, codes)
            )
        return self._rebuilt(results, codes)

    def _rebuilt(self, results: Any, codes: list[str]) -> str:
        self._scope["rebuild"] = _Rebuild(results)
        return f"rebuild(({''.join(f'{code}, ' for code in codes)}))"

    def _leaf(self, value: Any) -> str:
        """Return the code of one thing that the step returned."""
        if isinstance(value, Tensor):
            if id(value) in self._arguments:
                return f"args[{self._arguments[id(value)]}]"
            if id(value) in self._private:
                return self._private[id(value)]
            if id(value) not in self._last:
                if self._recorder.is_gradient(value):
                    raise Unusable("a gradient from before the step is returned: return .detach() of it")
                return self._object(value)
            edge = value._edge
            if isinstance(edge, Node) and edge.kept is not None:
                raise Unusable(
                    f"a result has a graph behind it, from {edge.name!r}, which was not used: compute the gradient "
                    "inside the step, return .detach(), or use no_grad()"
                )
            return self._tensor(self._last[id(value)], type(value), type(edge) is Leaf)
        if type(value) is Recorded or type(value) is Number:
            raise Unusable("an array or number of the recording was returned")
        return self._text(value)

    def _tensor(self, array: Recorded, kind: type = Tensor, leaf: bool = False) -> str:
        """Return the code of a new tensor."""
        code = f"placed({self._output(array)}, {self._object(self._device.places[array.value.dtype])})"
        if kind is not Tensor:
            raise Unusable(f"a {kind.__name__} is made in the step: make it before")
        return f"{code}.requires_grad_()" if leaf else code

    def _output(self, array: Recorded) -> str:
        """Return the name of an array that the program hands out."""
        if array.value not in self._outputs:
            self._outputs.append(array.value)
        return f"o{self._outputs.index(array.value)}"

    # What is left behind

    def _leave_behind(self) -> None:
        """Write the code that does to tensors, leaves and numbers what the step did."""
        recorder, write = self._recorder, self._effects.append
        slots: dict[str, list[tuple[Leaf, int]]] = {}  # by the gradients among which they are
        for leaf in recorder.gradients.values():
            gradient, target = leaf.grad, self._leaf_code(leaf)
            if gradient is None:
                write(f"{target}.grad = None")
            elif leaf.slot is not None and leaf.slot.holds(gradient):
                gradients, place = self._object(leaf.slot.gradients), leaf.slot.place
                if target.startswith("args"):
                    write(f"{target}.grad = {gradients}.tensors[{place}]")
                else:
                    slots.setdefault(gradients, []).append((leaf, place))
            elif id(gradient) in self._last:
                write(f"{target}.grad = {self._tensor(self._last[id(gradient)])}")
            elif id(gradient) not in self._private:
                write(f"{target}.grad = {self._object(gradient)}")
        for name, leaves in slots.items():
            write(f"tensors = {name}.tensors")
            write(f"for leaf, i in {self._object(leaves)}: leaf.grad = tensors[i]")
        for gradients in self._slots:
            if gradients.seen:
                write(f"{self._object(gradients)}.seen = True")
        for tensor in recorder.rebound.values():
            if id(tensor) not in self._last:
                continue
            name = self._output(self._last[id(tensor)])
            number = self._arguments.get(id(tensor))
            holder = self._object(tensor) if number is None else f"args[{number}]"
            if (tensor._edge or tensor._leaf) is not None or hasattr(tensor, "_owner"):
                write(f"{holder}._change({name}, {self._object(tensor._place)})")
            else:
                write(f"{holder}._data, {holder}._place = {name}, {self._object(tensor._place)}")
        for flat in recorder.flats.values():
            for p in flat.owned:
                write(f"{self._object(p)}._change({self._object(p)}._data, {self._object(p)}._place)")
        for numbers, key, value in recorder.written.values():
            code = self._expression(value) if type(value) is Number else self._text(value)
            write(f"{self._object(numbers)}[{key!r}] = {code}")
        for generator, count in recorder.draws.values():
            name = self._object(generator)
            write(f"seed, count = {name}._state")
            write(f"{name}._state = seed, count + {count}")
        if recorder.flats:
            write("when = change()")
        for flat in recorder.flats.values():
            write(f"{self._object(flat)}.stepped = True")
            for p, leaf in zip(flat.params, flat.leaves, strict=True):
                if id(p) in self._arguments:
                    write(f"a{self._arguments[id(p)]}._changed = {self._object(leaf)}.changed = when")
            write(f"for p, leaf in {self._object(self._laid(flat))}: p._changed = leaf.changed = when")
        for module, mode in recorder.modes.values():
            write(f"{self._object(vars(module))}['training'] = {mode}")

    def _changed(self) -> bool:
        """Return whether a variable that the step names is another than it was."""
        return any(watch() != described for watch, described in self._watched)

    def _leaf_code(self, leaf: Leaf) -> str:
        for i, tensor in enumerate(self._tensors_of_arguments()):
            if tensor._leaf is leaf:
                return f"args[{i}]._leaf"
        return self._object(leaf)

    def _tensors_of_arguments(self) -> list[Tensor]:
        return self._recorder.arguments

    def _dynamic(self) -> set[Value]:
        """Return the inputs that are found anew at each replay: arguments, and what the step itself replaces."""
        rebound = self._recorder.rebound
        dynamic = set()
        for value in self._recorder.inputs:
            assert value.source is not None
            if value.source.kind != "tensor" or id(value.source.holder) in rebound:
                value.storage.kind = "input"
                dynamic.add(value)
        return dynamic

    # Conditions

    def _guard_arguments(self, arguments: list[Tensor], watched: Sequence[Watched | Inside]) -> None:
        """Write the code that finds out whether arguments, all of them tensors, are like those that were recorded."""
        default, write = self._text(_default.get()), self._lines.append
        write(
            f"if len(args) != {len(arguments)} or recording() is not {grad_enabled.get()} or default() is not "
            f"{default}: return MISS"
        )
        self._scope |= {"recording": grad_enabled.get, "default": _default.get}
        named = {}
        for value in self._recorder.inputs:
            if value.source is not None and value.source.kind == "argument":
                named[value.source.holder] = value
        for i, tensor in enumerate(arguments):
            raw: Any = named.get(i, tensor._data)
            name = self._argument(named[i]) if i in named else f"b{i}"
            kind = "Tensor" if type(tensor) is Tensor else self._object(type(tensor))
            edge = "is not" if tensor._edge is None else "is"
            write(f"a{i} = args[{i}]")
            place = self._object(self._device.places[raw.dtype])
            write(f"if type(a{i}) is not {kind} or a{i}._place is not {place} or a{i}._edge {edge} None: return MISS")
            write(f"{name} = a{i}._data")
            write(f"if {name}.shape != {raw.shape} or {name}.strides != {raw.strides}: return MISS")
            earlier = [f"a{i} is {'not ' if arguments[j] is tensor else ''}a{j}" for j in range(i)]
            if earlier:
                write(f"if {' or '.join(earlier)}: return MISS")
        self._watched = [(watch, watch()) for watch in watched]
        variables = [watch for watch in watched if type(watch) is Watched]
        cells = [(watch.holder, watch.read()) for watch in variables if watch.key is None]
        if cells:
            write(f"for cell, value in {self._object(cells)}:")
            write("    if cell.cell_contents is not value and changed(): return MISS")
        others = [(watch.holder, watch.key, watch.read()) for watch in variables if watch.key is not None]
        if others:
            write(f"for names, key, value in {self._object(others)}:")
            write(f"    if names.get(key, {self._object(ABSENT)}) is not value and changed(): return MISS")
        inside = [(watch, before) for watch, before in self._watched if type(watch) is Inside]
        if inside:
            write(f"for watch, before in {self._object(inside)}:")
            write("    if watch() != before: return MISS")

    def _guard(self, arguments: list[Tensor], found: list[Value]) -> None:
        """Write the code that finds out whether this is the way to go."""
        recorder, write = self._recorder, self._lines.append
        for value in found:
            if value.source is None or value.source.kind != "argument":
                write(f"{self._argument(value)} = {self._place(value)}")
            if value.source is None or value.source.kind != "argument":
                shape, dtype, strides = value.shape, self._object(value.dtype), value.strides
                name = self._argument(value)
                write(
                    f"if {name} is None or {name}.shape != {shape} or {name}.dtype is not {dtype} or "
                    f"{name}.strides != {strides}: return MISS"
                )
        wanted, asked = self._wanted(arguments), list[str]()
        followed, apart = {id(tensor): leaf for tensor, leaf in self._edges}, self._edges
        conditions = [f"{self._object(vars(m))}['training'] is {mode}" for m, mode in recorder.modules.values()]
        if recorder.called:
            modules = self._object(Modules(list(recorder.called.values())))
            conditions.append(f"({modules}.edits == edits.number or {modules}())")
        for leaf, had, inside in recorder.leaves.values():
            name = self._leaf_code(leaf)
            conditions.append(f"{name}.grad is {'not ' if had else ''}None")
            if had and leaf.slot is not None:
                conditions.append(f"{name}.slot is not None and {name}.slot.holds({name}.grad) is {inside}")
        conditions += [f"{self._object(g)}.seen is {seen}" for g, seen in recorder.looked_at.values()]
        for mapping, key, value in recorder.constants:
            conditions.append(f"{self._object(mapping)}[{key!r}] == {self._text(value)}")
        for optimizer in recorder.optimizers.values():
            name = self._object(optimizer)
            for group, laid in optimizer.laid():
                members = self._object(group["params"])
                conditions.append(f"{name}._laid.get({id(group)}) is {self._object(laid)}")
                conditions.append(f"{self._object(group)}['params'] is {members} and len({members}) == {len(laid.ids)}")
                pairs = [(p, followed.get(id(p))) for p in group["params"]]
                asked.append(f"for x, (p, leaf) in zip({members}, {self._object(pairs)}):")
                if all(leaf is not None for _, leaf in pairs):
                    apart = [pair for pair in apart if id(pair[0]) not in laid.ids]
                    asked.append("    if x is not p or x._edge is not leaf or leaf.hooks: return MISS")
                else:
                    asked.append("    if x is not p: return MISS")
                conditions += [f"{self._object(p)}._edge is None" for p in laid.waiting]
                for flat in laid.flats:
                    for p, leaf in zip(flat.params, flat.leaves, strict=True):
                        conditions += self._lies(p, leaf)
            conditions.append(f"len({name}.param_groups) == {len(optimizer.param_groups)}")
        conditions += [f"len({self._object(flat)}.arrays) == {len(flat.arrays)}" for flat in self._flats]
        conditions += wanted
        if conditions:
            write(f"if not ({' and '.join(conditions)}): return MISS")
        self._lines += asked
        if apart:
            write(f"for x, leaf in {self._object(apart)}:")
            write("    if x._edge is not leaf or leaf.hooks: return MISS")
        self._read_numbers()
        if recorder.conditions:
            answers = {n.key: self._answer(n) for n in recorder.conditions}
            write(f"if not ({' and '.join(answers.values())}): return MISS")
        self._renewable = [gradients for gradients in self._slots if id(gradients) not in recorder.looked_at]
        moved = [f"{self._object(flat)}.watchers() != {self._object(flat)}.private" for flat in self._flats]
        moved += [f"{self._object(gradients)}.seen" for gradients in self._renewable]
        write(f"moved = {' or '.join(moved) or False}")
        write("for x, raw in still:")
        write("    if x._data is not raw: moved = True")
        write("if moved:")
        write("    raw = None")  # for optimizers count who sees an array
        write("    if not relink(): return MISS")
        self._lines += [f"    {self._argument(value)} = {self._place(value)}" for value in found]  # which may move

    def _wanted(self, arguments: list[Tensor]) -> list[str]:
        """Return the code that finds out of whom gradients are wanted, and by whom they are changed on the way."""
        conditions, lying = [], {id(p) for flat in self._flats for p in flat.params}
        for i, tensor in enumerate(arguments):
            if tensor._leaf is not None:
                conditions += [f"a{i}._leaf is not None", _hooks_of(f"a{i}._leaf", self._object, tensor._leaf)]
        ours = {id(t) for flat in self._flats for t in (*flat.places, *flat.gradients.views, flat.gradients.buffer)}
        ours |= {id(t) for flat in self._flats for t in (flat.buffer, *flat.arrays.values())}
        for value in self._recorder.inputs:
            if value.source is None or value.source.kind != "tensor" or id(value.source.holder) in ours:
                continue
            tensor = value.source.holder
            name, leaf = self._object(tensor), self._recorder.edges.get(id(tensor))
            if type(leaf) is Leaf and not leaf.hooks and tensor._edge is leaf:
                self._edges.append((tensor, leaf))
                continue
            if id(tensor) not in lying:  # which is looked after
                conditions.append(f"{name}._edge is {'None' if leaf is None else self._object(leaf)}")
            if type(leaf) is Leaf:
                conditions.append(_hooks_of(self._object(leaf), self._object, leaf))
        return conditions

    def _laid(self, flat: Flat) -> list[tuple[Tensor, Leaf]]:
        """Return the parameters that are no arguments, with their leaves."""
        pairs = zip(flat.params, flat.leaves, strict=True)
        return [(p, leaf) for p, leaf in pairs if id(p) not in self._arguments]

    def _lies(self, p: Tensor, leaf: Leaf) -> list[str]:
        """Return the code that finds out whether a parameter is still where an optimizer has laid it."""
        number = self._arguments.get(id(p))
        name = self._object(p) if number is None else f"a{number}"
        edge = "_edge" if p._edge is not None else "_leaf"
        conditions = [f"{name}.{edge} is {self._object(leaf)}"]
        if p._edge is None:
            conditions.append(f"{name}._edge is None")
        if any(tensor is p for tensor, _ in self._edges):
            conditions = []
        if not any(tensor is p for tensor, _ in self._statics):  # whoever takes the slot moves the parameter
            conditions.append(f"{self._object(leaf)}.slot is {self._object(leaf.slot)}")
        return conditions

    def waits(self) -> bool:
        """Return whether parameters must be moved by the step itself, which computes with them before."""
        return any(flat.intact() and lies_otherwise(flat) for flat in self._flats)

    def _relink(self) -> bool:
        if self.waits():
            return False
        for gradients in self._renewable:
            if gradients.seen:
                gradients.renew()
        for flat in self._flats:
            flat.keep_private()
        try:
            return self.link()
        except Unusable as error:
            self.error = error
            return False

    def _place(self, value: Value) -> str:
        source = value.source
        assert source is not None
        if source.kind == "argument":
            return f"a{source.holder}._data"
        if source.kind == "gradient":
            leaf = self._leaf_code(source.holder)
            return f"None if {leaf}.grad is None else {leaf}.grad._data"
        return f"{self._object(source.holder)}._data"

    def _argument(self, value: Value) -> str:
        return f"d{value.number}"

    # Numbers

    def _read_numbers(self) -> None:
        """Write the code that reads the numbers that are needed."""
        written = [value for _, _, value in self._recorder.written.values() if type(value) is Number]
        needed = _read_for([*self._recorder.conditions, *written, *self.run.numbers])
        for number in self._recorder.reads():
            if id(number) not in needed:
                continue
            place: Reading = number.operands[0]
            name = self._reading(number)
            holder = self._object(place.holder)
            if isinstance(place.holder, Generator):
                self._lines.append(f"{name} = {holder}._state[{place.path[0]}]")
            else:
                path = "".join(f"[{key!r}]" for key in place.path)
                self._lines.append(f"{name} = {holder}{path}")
                kind = place.kind.__name__
                self._lines.append(
                    f"if type({name}) is not {kind} and type({name} := plain({name})) is not {kind}: return MISS"
                )

    def _answer(self, number: Number) -> str:
        """Return the code of what a question about numbers must be answered as it was."""
        if number.operator == "bool":
            return f"{'' if number.value else 'not '}{self._expression(number.operands[0])}"
        return f"{self._expression(number)} is {bool(number.value)}"

    def _expression(self, number: Any) -> str:
        """Return the code of a number."""
        if type(number) is not Number:
            return f"({number!r})" if type(number) in (int, float, bool, complex) else self._object(number)
        if number.operator == "read":
            return self._reading(number)
        parts = [self._expression(part) for part in number.operands]
        if len(parts) == 1:
            prefix = {"abs": "abs", "bool": "bool"}.get(number.operator, number.operator)
            return f"{prefix}({parts[0]})"
        return f"({parts[0]} {number.operator} {parts[1]})"

    def _reading(self, number: Number) -> str:
        return f"r{[id(n) for n in self._recorder.reads()].index(id(number))}"

    def _computed(self) -> list[str]:
        """Write the code of the numbers that the program takes, and return their names."""
        names = []
        for i, number in enumerate(self.run.numbers):
            if number.operator == "read":
                names.append(self._reading(number))
                continue
            self._lines.append(f"n{i} = {self._expression(number)}")
            names.append(f"n{i}")
        return names

    # Memory

    def link(self) -> bool:
        """Follow tensors to the memory where they are now; return whether they can be followed."""
        if not self._same():
            return False
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        self._follow()
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)
        return True

    def _seen(self) -> list[Flat]:
        """Return where optimizers keep what is linked, whether or not they take a step here."""
        slots = [getattr(tensor._leaf, "slot", None) for tensor, _ in self._statics]
        flats = [*self._flats, *(slot.flat() for slot in slots if slot is not None)]
        return list({id(flat): flat for flat in flats if flat is not None}.values())

    def _failed(self, error: Exception) -> Any:
        self.error = error
        return MISS

    def release(self) -> None:
        """Let go of the memory that is seen, for optimizers count who sees it."""
        flats = self._seen()
        before = [flat.watchers() for flat in flats]
        self._scope.clear()
        self.run.release()
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)

    def _same(self) -> bool:
        arrays = [tensor._data for tensor, _ in self._statics]
        roots: dict[int, int] = {}
        for (tensor, value), array in zip(self._statics, arrays, strict=True):
            same = array.shape == value.shape and array.dtype == value.dtype and array.strides == value.strides
            if not same or tensor.device is not self._device:
                return False
            if roots.setdefault(id(value.storage), id(root_of(array))) != id(root_of(array)):
                return False
        return len(set(roots.values())) == len(roots)

    def _follow(self) -> None:
        arrays = [tensor._data for tensor, _ in self._statics]
        self.run.link(arrays)
        # What an optimizer keeps for itself moves all at once.
        kept = {id(t) for flat in self._flats for t in (*flat.places, *flat.gradients.views)}
        wholes = {id(t): t for flat in self._flats for t in (flat.buffer, flat.gradients.buffer)}
        still = [(tensor, array) for (tensor, _), array in zip(self._statics, arrays, strict=True)]
        still = [(tensor, array) for tensor, array in still if id(tensor) not in kept and id(tensor) not in wholes]
        self._scope["still"] = still + [(tensor, tensor._data) for tensor in wholes.values()]


def _read_for(numbers: list[Any]) -> set[int]:
    """Return the ids of the numbers that are read in order to compute some."""
    found, waiting = set(), list(numbers)
    while waiting:
        number = waiting.pop()
        if type(number) is Number:
            if number.operator == "read":
                found.add(id(number))
            else:
                waiting += number.operands
    return found


class _Rebuild:
    """Put tensors into containers like those that the step returned."""

    def __init__(self, results: Any) -> None:
        self.marks = trees.rebuild(results, [_LEAF] * sum(1 for _ in trees.leaves(results)))

    def __call__(self, values: Any) -> Any:
        return trees.rebuild(self.marks, values)


_LEAF = object()


def lies_otherwise(flat: Flat) -> bool:
    """Return whether parameters were given arrays of another layout, with which NumPy may compute other bits."""
    return any(p._data.strides != place._data.strides for p, place in zip(flat.params, flat.places, strict=True))


def _hooks_of(name: str, named: Callable[[Any], str], leaf: Leaf) -> str:
    """Return the code that finds out whether the hooks of a leaf are what they were."""
    hooks = list((leaf.hooks or {}).values())
    return f"[*{name}.hooks.values()] == {named(hooks)}" if hooks else f"not {name}.hooks"


def _container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) or value is None


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _is_dynamic(value: Value, dynamic: set[Value]) -> bool:
    return value.storage.kind == "input"
