"""Outcome of a traced step: the state before and after, the arguments, and the result."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

from xgrad import trees
from xgrad.capture.arrays import TracedArray
from xgrad.capture.code_writer import CodeWriter
from xgrad.capture.slots import Slot, Slots
from xgrad.capture.state import State
from xgrad.capture.trace import Trace
from xgrad.device import Device, tracing
from xgrad.devices import _default
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Edge, Leaf
from xgrad.optim.flat import Flat
from xgrad.tensor import Tensor

_ABSENT: Any = object()


class Outcome:
    """A step as it was traced.

    Attributes
    ----------
    state, slots, trace
        What was found, where it is kept, and what was recorded.
    given : list of Tensor
        The tensors among the arguments; `given_arrays`, `places` and `edges` are what they had before.
    structure : object
        The containers and the other arguments: see `structure_of`.
    before, traced, after : list
        For each slot what it held, what stood for it, and what it held at the end of the step.
    result : object
        What the step returned.
    """

    def __init__(self, state: State, slots: Slots, trace: Trace, given: list[Tensor], structure: Any) -> None:
        self.state, self.slots, self.trace, self.given, self.structure = state, slots, trace, given, structure
        self.recording: bool = grad_enabled.get()
        self.default: Device | None = _default.get()
        self.given_arrays = [x._data for x in given]
        self.places, self.edges = [x._place for x in given], [x._edge for x in given]
        self.gradients = {id(x): leaf.grad for x, leaf, _ in slots.leaves.values()}
        self.old_gradients = set(map(id, self.gradients.values()))
        self.before = [slot.read() for slot in slots.all]
        arguments = set(map(id, given)) - state.tensors.keys()
        self.traced = [
            slot.substitute(trace, x, "input" if id(slot.owner) in arguments else "state")
            for slot, x in zip(slots.all, self.before, strict=True)
        ]
        self.after: list[Any] = []
        self.made: dict[int, Tensor] = {}  # what the step returned or left as a gradient, by id
        self.numbers: dict[int, int] = {}  # of their values
        self.result: Any = None
        self._index = {(id(slot.owner), slot.key): i for i, slot in enumerate(slots.all)}
        owners = [x for _, x in (*state.modules.values(), *state.optimizers.values())]
        self._attributes = [(x, dict(vars(x))) for x in owners]
        self._hooks = {i: list((leaf.hooks or {}).values()) for i, (_, leaf, _) in slots.leaves.items()}
        self._layouts = [(x, _layout(x)) for _, x in state.optimizers.values()]
        self._stamps = [(x, key, getattr(x, key, 0)) for x, key in slots.stamps()]

    # The state before

    def edge_of(self, tensor: Tensor) -> Edge | None:
        """Return the edge of a tensor before the step."""
        return self.before[self._index[id(tensor), "_edge"]]  # type: ignore[no-any-return]

    def number_of(self, tensor: Tensor) -> int:
        """Return the number of the value of a tensor of the state."""
        return int(self.traced[self._index[id(tensor), "_data"]].value.number)

    def is_identified(self, tensor: Tensor) -> bool:
        """Return whether an argument must be the same tensor in each call: one of the state, or a parameter."""
        leaf = tensor._leaf
        packed = leaf is not None and (leaf.slot is not None or type(tensor) is not Tensor)
        return id(tensor) in self.state.tensors or packed

    def argument_of(self, leaf: Leaf) -> int | None:
        """Return the index of the argument that a leaf belongs to, where each call may give another tensor."""
        for i, x in enumerate(self.given):
            if x._leaf is leaf and not self.is_identified(x):
                return i
        return None

    def source_of(self, writer: CodeWriter, tensor: Tensor) -> str:
        """Return an expression for a tensor of the state, an argument, or the gradient of one of these."""
        for i, x in enumerate(self.given):
            if x is tensor and not self.is_identified(x):
                return f"a{i}"
        if id(tensor) in self.old_gradients:
            for x, leaf, _ in self.slots.leaves.values():
                if self.gradients[id(x)] is tensor:
                    number = self.argument_of(leaf)
                    return f"{writer.name(leaf) if number is None else f'a{number}._leaf'}.grad"
        return writer.name(tensor)

    def arrays(self) -> Iterator[tuple[Slot, TracedArray]]:
        """Return the slots of arrays, each with what stood for it."""
        for slot, traced in zip(self.slots.all, self.traced, strict=True):
            if slot.kind == "array" and isinstance(traced, TracedArray):
                yield slot, traced

    # Use by the program

    def tensors(self, uses: Container[int], flats: Sequence[Flat]) -> Iterator[tuple[Tensor, Edge | None]]:
        """Return the tensors that the program uses, and packed parameters, each with its edge."""
        packed = {id(p) for flat in flats for p in flat.params}
        buffers = {id(x) for flat in self.slots.flats.values() for x in buffers_of(flat)}
        for slot, traced in self.arrays():
            x = slot.owner
            used = traced.value.number in uses or id(x) in packed
            if id(x) not in buffers and (used or id(x) in self.slots.leaves):
                yield x, self.edge_of(x)

    def flats(self, uses: Container[int]) -> list[Flat]:
        """Return the packed parameters whose buffers the program uses."""
        numbers = {id(slot.owner): traced.value.number for slot, traced in self.arrays()}
        found = {
            id(flat): flat
            for flat in self.slots.flats.values()
            if any(numbers.get(id(x)) in uses for x in buffers_of(flat))
            or any((id(leaf), "grad") in self.changed for leaf in flat.leaves)
        }
        return list(found.values())

    # The end

    def leaving(self, captured: bool) -> list[list[Any]]:
        """Return what is to be called so that all is as after the step without a trace.

        Results that are `captured` lose their history, as those of replays have none.
        """
        real, slots = self.trace.real, self.slots.all
        sets: list[Any] = []
        for slot, before, traced in zip(slots, self.before, self.traced, strict=True):
            now = slot.read()
            after = slot.restored(real, before, traced, now)
            if after is not now:
                sets.append(slot.writing(after))
        known = {id(slot.owner) for slot in slots if slot.kind == "array"}
        found = [*[x for _, x in trees.leaves(self.result)], *[leaf.grad for _, leaf, _ in self.slots.leaves.values()]]
        found = [x for x in found if isinstance(x, Tensor) and isinstance(x._data, TracedArray)]
        self.made = {id(x): x for x in found if id(x) not in known}
        for x in self.made.values() if captured else ():
            self.numbers[id(x)] = x._data.value.number
            place, edge = real.places[x._place.dtype], x._edge if type(x._edge) is Leaf else None
            sets += [partial(setattr, x, "_data", x._data.array), partial(setattr, x, "_place", place)]
            sets.append(partial(setattr, x, "_edge", edge))
            if edge is not None:
                sets.append(partial(setattr, edge, "place", place))
        modes = [partial(_default.set, real)] if _default.get() is self.trace.device else []
        return [sets, modes, [partial(tracing.set, None)]]

    def forget(self) -> None:
        """Drop what stands for arrays."""
        self.before, self.traced, self.after = [], [], []
        self.trace.forget()

    # Changes by the step

    def finish(self) -> None:
        """Read what the slots hold at the end of the step."""
        self.after = [slot.read() for slot in self.slots.all]
        self.changed = {(id(slot.owner), slot.key) for slot, _, _ in self.changes()}

    def changes(self) -> Iterator[tuple[Slot, Any, Any]]:
        """Return the slots that the step changed, each with what it held before and after."""
        for slot, before, traced, after in zip(self.slots.all, self.before, self.traced, self.after, strict=True):
            if after is not traced:
                yield slot, before, after

    def changed_attribute(self) -> str | None:
        """Return the name of an attribute of a module or optimizer that the step changed, modes excepted."""
        for x, before in self._attributes:
            now = vars(x)
            for key in before.keys() | now.keys() - {"_laid", "_apart", "training"}:
                if key not in ("_laid", "_apart", "training") and before.get(key, _ABSENT) is not now.get(key, _ABSENT):
                    return f"{type(x).__name__}.{key}"
        return None

    def modes(self) -> list[tuple[Any, bool]]:
        """Return the modules whose mode the step changed, with the new mode."""
        found = [(x, vars(x).get("training"), before.get("training")) for x, before in self._attributes]
        return [(x, bool(now)) for x, now, before in found if now is not before]

    def hooked(self) -> str | None:
        """Return the name of a tensor whose hooks the step changed, if there is one."""
        for i, (_, leaf, name) in self.slots.leaves.items():
            if list((leaf.hooks or {}).values()) != self._hooks[i]:
                return name
        return None

    def is_settled(self) -> bool:
        """Return whether optimizers keep parameters and moments as they did before the step."""
        return all(_layout(x) == before for x, before in self._layouts)

    def stamped(self) -> list[tuple[Any, str]]:
        """Return the tensors and leaves that the step changed, with the attribute that tells when."""
        return [(x, key) for x, key, before in self._stamps if getattr(x, key, 0) != before]


def buffers_of(flat: Flat) -> list[Tensor]:
    """Return the tensors that hold packed parameters, their gradients and moments."""
    gradients = flat.gradients
    return [
        *(flat.buffer, *flat.places, *flat.arrays.values()),
        *(gradients.buffer, *gradients.views, *gradients.tensors),
    ]


def _layout(optimizer: Any) -> Any:
    """Return how an optimizer keeps its parameters: equal as long as it keeps them so."""
    flats = [flat for _, laid in optimizer.laid() for flat in laid.flats]
    return (
        {key: id(laid) for key, laid in optimizer._laid.items()},
        list(map(id, optimizer._apart.values())),
        [(sorted(flat.arrays), sorted(flat.numbers), id(flat.gradients.tensors)) for flat in flats],
        [(id(group), sorted(group), list(map(id, group["params"]))) for group in optimizer.param_groups],
    )


def structure_of(args: Sequence[Any], kwargs: Any) -> tuple[Any, list[Any]]:
    """Return the containers of arguments, and what is in them that is no container."""
    contents: list[Any] = []
    return _containers((tuple(args), kwargs), contents), contents


def _containers(x: Any, contents: list[Any]) -> Any:
    if isinstance(x, dict):
        return type(x), *[(key, _containers(part, contents)) for key, part in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x), *[_containers(part, contents) for part in x]
    contents.append(x)
    return Tensor if isinstance(x, Tensor) else Other(x)


class Other:
    """An argument that is no tensor: equal to those that a step cannot tell from it."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = copy(value) if isinstance(value, (set, bytearray, deque)) else value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Other or type(other.value) is not type(self.value):
            return False
        one, two = self.value, other.value
        if one is two or isinstance(one, (float, complex)):
            return one is two or repr(one) == repr(two)
        if any(isinstance(part, Tensor) for part in getattr(one, "__dict__", {}).values()):
            return False  # equal objects may hold other tensors
        try:
            return bool(one == two)
        except Exception:
            return False
