"""On which conditions a recording can be replayed: what is as it was, and where arrays are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xgrad.capturing.arrays import Recorded
from xgrad.capturing.descriptions import ABSENT, unchanged
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Recorder
from xgrad.capturing.surroundings import Inside, Modules, Watched, filled
from xgrad.capturing.writing import Writing
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Leaf
from xgrad.tensor import Tensor


class Guards(Writing):
    """Code that finds out whether a recording is the way to go, and finds the arrays that it computes with."""

    _statics: list[tuple[Tensor, Value]]

    def __init__(self, recorder: Recorder, arguments: list[Tensor], last: dict[int, Recorded]) -> None:
        super().__init__(recorder, arguments, last)
        self._edges: list[tuple[Tensor, Leaf]] = []  # tensors that must have them, without hooks
        self._scope["changed"] = self._changed

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
        others = [(watch.holder, watch.key, watch.read()) for watch in variables if watch.key is not None]
        empty = [cell for cell, value in cells if value is ABSENT]
        cells = [(cell, value) for cell, value in cells if value is not ABSENT]
        if empty:
            write(f"if any(map(filled, {self._object(empty)})): return MISS")
        if cells:
            write("try:")
            write(f"    for cell, value in {self._object(cells)}:")
            write("        if cell.cell_contents is not value and changed(): return MISS")
            write("except ValueError: return MISS  # one was emptied")
        if others:
            write(f"for names, key, value in {self._object(others)}:")
            write(f"    if names.get(key, {self._object(ABSENT)}) is not value and changed(): return MISS")
        marks = [mark for watch in watched if type(watch) is Inside for mark in watch.marks()]
        if marks:
            write(f"if not unchanged({self._object(marks)}) and changed(): return MISS")
        self._scope |= {"unchanged": unchanged, "filled": filled}

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

    def _changed(self) -> bool:
        """Return whether a variable that the step names is another than it was."""
        return any(watch() != described for watch, described in self._watched)


def _hooks_of(name: str, named: Callable[[Any], str], leaf: Leaf) -> str:
    """Return the code that finds out whether the hooks of a leaf are what they were."""
    hooks = list((leaf.hooks or {}).values())
    return f"[*{name}.hooks.values()] == {named(hooks)}" if hooks else f"not {name}.hooks"
