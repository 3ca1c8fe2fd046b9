"""Parameters, their gradients and what is remembered of them, each side by side in one buffer that they are views of.

An update is then a handful of array calls, however many parameters there are. Nobody notices: an array that
somebody else can see is never written to, but left to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount
from typing import Any

from xgrad.device import Device
from xgrad.devices import transfer
from xgrad.graph import Leaf, clock
from xgrad.ops import astype
from xgrad.tensor import Tensor, wrap

Update = Callable[[Any, Any, Any, "State", Mapping[str, Any]], Any]


class State(dict[str, Any]):
    """What an optimizer remembers of parameters: numbers, and arrays of the device and dtype of the parameters."""

    __slots__ = ("device", "dtype")

    def __init__(self, device: Device, dtype: Any, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.device, self.dtype = device, dtype

    def is_array(self, key: str) -> bool:
        """Return whether what is remembered under a name is an array, not a number."""
        return isinstance(self[key], self.device.array_type)

    def moved(self, device: Device, dtype: Any) -> State:
        """Return this on another device or in another dtype, where a parameter went."""
        if device is self.device and dtype == self.dtype:
            return self
        new = State(device, dtype, self)
        with device.active():
            for key, value in self.items():
                if self.is_array(key):
                    new[key] = device.xp.astype(transfer(value, self.device, device), dtype)
        return new

    def tensors(self) -> dict[str, Any]:
        """Return a copy, with tensors for arrays."""
        return {
            key: astype(wrap(value, self.device), value.dtype) if self.is_array(key) else value
            for key, value in self.items()
        }


class Layout:
    """Where in a buffer arrays of some shapes lie: one behind the other, matrices transposed.

    Transposed, the weight of a linear layer lies as (in, out), which is what BLAS is fastest with.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any, device: Device) -> None:
        self.shapes, self.dtype, self.device = shapes, dtype, device
        self.size = sum(map(math.prod, shapes))

    def empty(self) -> Any:
        """Return a new buffer."""
        return self.device.xp.empty((self.size,), dtype=self.dtype, device=self.device.native)

    def views(self, buffer: Any) -> list[Any]:
        """Return the arrays in a buffer."""
        xp, views, start = self.device.xp, [], 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            view = xp.reshape(buffer[start:stop], shape[::-1] if len(shape) == 2 else shape)
            views.append(xp.matrix_transpose(view) if len(shape) == 2 else view)
            start = stop
        return views


class Gradients:
    """The gradients of some leaves. One that somebody has looked at is theirs: the next pass takes another buffer."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.renew()

    def renew(self) -> None:
        """Leave the buffer to whoever looks at it, and take another."""
        self.buffer, self.seen = self.layout.empty(), False
        self.views = self.layout.views(self.buffer)
        self.tensors = [wrap(view, self.layout.device) for view in self.views]


class Slot:
    """The place of a leaf's gradient among others. It does not know the leaf, so that there is no reference cycle."""

    __slots__ = ("gradients", "place", "reserved")

    def __init__(self, gradients: Gradients, place: int) -> None:
        self.gradients, self.place, self.reserved = gradients, place, False

    def holds(self, gradient: Tensor) -> bool:
        """Return whether a gradient is here, not an array from elsewhere."""
        mine = self.gradients.tensors[self.place]
        return gradient is mine and mine._data is self.gradients.views[self.place]

    def reserve(self, leaf: Leaf) -> Any:
        """Return the array that is to be the gradient, for one walk to write to; None if it cannot."""
        if self.reserved or leaf.grad is not None or not leaf.device.backend.writes:
            return None
        if self.gradients.seen:
            self.gradients.renew()
        self.reserved = True
        return self.gradients.views[self.place]

    def receive(self, leaf: Leaf, g: Any) -> None:
        """Add an array to the gradient of the leaf."""
        if leaf.device.guard is None:
            self._receive(leaf, g)
        else:
            with leaf.device.guard():
                self._receive(leaf, g)

    def _receive(self, leaf: Leaf, g: Any) -> None:
        gradients, place = self.gradients, self.place
        if leaf.grad is None:
            if gradients.seen:
                gradients.renew()
            if g is not gradients.views[place]:
                if self.reserved:  # by another thread's walk
                    leaf.grad = wrap(leaf.device.xp.asarray(g, copy=True), leaf.device)
                    return
                gradients.views[place][...] = g
            leaf.grad = gradients.tensors[place]
        elif self.holds(leaf.grad) and not gradients.seen:
            gradients.views[place][...] += g
        else:
            leaf.grad = leaf.grad + wrap(g, leaf.device)


class Flat:
    """Parameters of one device and dtype that have always been updated together, and their common state.

    Parameters
    ----------
    params : sequence of Parameter
        What to lay side by side.
    states : sequence of State
        What is remembered of each: alike in numbers and names.
    elementwise : bool
        Whether an update may see them as one array; else there is one, in its own shape.
    stepped : bool
        Whether they were updated before.
    """

    def __init__(self, params: Sequence[Tensor], states: Sequence[State], elementwise: bool, stepped: bool) -> None:
        first, self.stepped = params[0], stepped
        self.params, self.elementwise, self.device = params, elementwise, first._device
        self.leaves: list[Any] = [p._leaf for p in params]
        self.layout = Layout([p.shape for p in params], first._data.dtype, self.device)
        with self.device.active():
            self.gradients = Gradients(self.layout)
            self.state = State(self.device, self.layout.dtype, states[0])
            for key in states[0]:
                if states[0].is_array(key):
                    arrays = [state[key] for state in states]
                    self.state[key] = self._filled(arrays) if elementwise else arrays[0]
            for place, leaf in enumerate(self.leaves):
                leaf.slot = Slot(self.gradients, place)
            self._settle()

    def _whole(self, buffer: Any) -> Any:
        """Return what an update sees of a buffer."""
        return buffer if self.elementwise else self.layout.views(buffer)[0]

    def _filled(self, arrays: Sequence[Any]) -> Any:
        buffer = self.layout.empty()
        for view, array in zip(self.layout.views(buffer), arrays, strict=True):
            view[...] = array
        return buffer

    def _settle(self) -> None:
        """Give the parameters a new buffer, and leave the arrays that they had to whoever sees them."""
        self.buffer = self.layout.empty()
        self.views = self.layout.views(self.buffer)
        watchers = self._watchers()  # while nobody else can see them
        self._private = watchers and (watchers[0], watchers[1] + len(self.views))
        for p, view in zip(self.params, self.views, strict=True):
            view[...] = p._data
            p._data = view

    def _watchers(self) -> tuple[int, int] | None:
        """Return how many references there are to the memory and to the views: more than `_private`, if others look."""
        memory = self.device.backend.references(self.buffer)
        return None if memory is None else (memory, sum(map(getrefcount, self.views)))

    def states(self) -> list[State]:
        """Return what is remembered of each parameter, as views."""
        apart = {
            key: self.layout.views(self.state[key]) if self.elementwise else [self.state[key]]
            for key in self.state
            if self.state.is_array(key)
        }
        return [
            State(self.device, self.layout.dtype, self.state | {key: views[i] for key, views in apart.items()})
            for i in range(len(self.params))
        ]

    def intact(self) -> bool:
        """Return whether the parameters are still what they were here, and all of them have a gradient, or none."""
        found = 0
        for p, leaf in zip(self.params, self.leaves, strict=True):
            slot, same = leaf.slot, p._leaf is leaf  # a leaf that went to another device, dtype or shape has no slot
            if not same or slot is None or slot.gradients is not self.gradients:
                return False
            found += leaf.grad is not None
        return found in (0, len(self.params))

    def step(self, update: Update, options: Mapping[str, Any]) -> None:
        """Update all parameters, if they have gradients."""
        if self.leaves[0].grad is not None:
            with self.device.active():
                self._step(update, options)

    def _step(self, update: Update, options: Mapping[str, Any]) -> None:
        self._gather()
        moved = any(p._data is not view for p, view in zip(self.params, self.views, strict=True))
        if moved or self._private is None or self._watchers() != self._private:
            self._settle()
        p, g, state = self._whole(self.buffer), self._whole(self.gradients.buffer), self.state
        size, piece = self.layout.size, self.device.backend.piece
        if not self.elementwise or piece is None or size <= piece:
            self._apply(update, p, g, state, options)
        else:  # in pieces that fit in a cache
            before = State(state.device, state.dtype, state)
            for start in range(0, size, piece):
                part = slice(start, start + piece)
                self._apply_to_part(update, p[part], g[part], before, part, options)
        self.stepped, when = True, clock.change()
        for param, leaf in zip(self.params, self.leaves, strict=True):
            param._changed = leaf.changed = when
            if hasattr(param, "_owner"):
                param._change(param._data, self.device)

    def _apply(self, update: Update, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> None:
        """Run the rule, and see that what it returns is good and what it remembers its own."""
        new = update(self.device.xp, p, g, state, options)
        if new is not p:
            new = new if type(new) is self.device.array_type or new is None else self.device.coerce(new)
            if new is None or new.shape != p.shape or new.dtype != p.dtype:
                got = "None" if new is None else f"shape {tuple(new.shape)}, {new.dtype}"
                name = getattr(update, "__qualname__", "update")
                raise TypeError(f"{name}: expected an array of shape {tuple(p.shape)}, {p.dtype}, got {got}")
            p[...] = new
        for key, value in state.items():
            if value is g or value is p:
                state[key] = self.device.xp.asarray(value, copy=True)

    def _apply_to_part(
        self, update: Update, p: Any, g: Any, before: State, part: slice, options: Mapping[str, Any]
    ) -> None:
        """Run the rule on a part, with its part of the state, and keep what the state then is."""
        state = State(before.device, before.dtype)
        for key, value in before.items():
            state[key] = value[part] if before.is_array(key) else value
        given = dict(state)
        self._apply(update, p, g, state, options)
        for key in given.keys() - state.keys():
            self.state.pop(key, None)
        for key, value in state.items():
            if not state.is_array(key):
                self.state[key] = value
            elif value is not given.get(key):
                if part.start == 0 and (key not in before or not before.is_array(key)):
                    self.state[key] = self.layout.empty()
                self.state[key][part] = value

    def _gather(self) -> None:
        """Bring the gradients here that came from elsewhere, such as from before, or set by hand."""
        strangers = [(place, leaf.grad) for place, leaf in enumerate(self.leaves) if not leaf.slot.holds(leaf.grad)]
        if strangers and self.gradients.seen:
            strangers = [(place, leaf.grad) for place, leaf in enumerate(self.leaves)]
            self.gradients.renew()
        for place, gradient in strangers:
            self.gradients.views[place][...] = gradient._data
