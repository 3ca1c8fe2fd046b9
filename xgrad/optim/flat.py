"""Parameters, their gradients and what is remembered of them, each side by side in one buffer that they are views of.

An update is then a handful of array calls, however many parameters there are. Nobody notices: an array that
somebody else can see is never written to, but left to them.

Arrays to compute with are held in tensors, as everywhere in `xgrad`: who follows the tensors follows all.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from operator import call
from sys import getrefcount
from typing import Any
from weakref import ref

import numpy as np

from xgrad.backend.device import Device, Placement, tracing
from xgrad.backend.devices import transfer
from xgrad.core.graph import Leaf, clock
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.core.views import has_family, with_views
from xgrad.ops import astype
from xgrad.ops.writing import refresh

Update = Callable[[Any, Any, Any, "State", Mapping[str, Any]], Any]


def read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers and options as an update is to see them: numbers of NumPy would make float64 of everything."""
    return {key: value if type(value) in _PLAIN else _plain(value) for key, value in values.items()}


_PLAIN = frozenset({bool, int, float, list})


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if type(value) is tuple else value.item() if hasattr(value, "item") else value


def at_once(*calls: tuple[Any, ...]) -> None:
    """Make calls of functions of C, given with their arguments: signal handlers run before all of them or after."""
    deque(starmap(call, calls), 0)


_array = np.empty(0)
_HELD_ONCE = sum(map(getrefcount, [_array]))  # of an array that one tensor holds, in a list: not alike in all Pythons


class State(dict[str, Any]):
    """What an optimizer remembers of parameters: numbers, and arrays of the device and dtype of the parameters."""

    __slots__ = ("device", "dtype")

    def __init__(self, device: Device, dtype: Any, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.device, self.dtype = device, dtype

    def is_array(self, key: str) -> bool:
        """Return whether what is remembered under a name is an array, not a number."""
        return hasattr(self[key], "shape")

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
            key: astype(from_array(value, self.device), value.dtype) if self.is_array(key) else value
            for key, value in self.items()
        }


class Layout:
    """Where in a buffer arrays of some shapes lie: one behind the other, matrices transposed.

    Transposed, the weight of a linear layer lies as (in, out), which is what BLAS is fastest with.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], placement: Placement) -> None:
        self.shapes, self.placement, self.device = shapes, placement, placement.device
        self.size = sum(map(math.prod, shapes))

    def empty(self) -> Any:
        """Return a new buffer."""
        return self.device.xp.empty((self.size,), dtype=self.placement.dtype, device=self.device.native)

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
        self.buffer, *self.views = [from_placement(None, layout.placement) for _ in (None, *layout.shapes)]
        self.renew()

    def renew(self) -> None:
        """Leave the buffer to whoever looks at it, and take another."""
        buffer, placement = self.layout.empty(), self.layout.placement
        views = self.layout.views(buffer)
        for mine, view in zip(self.views, views, strict=True):
            mine._data = view
        tensors = [from_placement(view, placement) for view in views]
        self.tensors, self.buffer._data, self.seen = tensors, buffer, False  # last: who is stopped before does it again


class Slot:
    """The index of a leaf's gradient in the buffer. It does not know the leaf, so that there is no reference cycle."""

    __slots__ = ("flat", "gradients", "index", "reserved")

    def __init__(self, flat: Flat, gradients: Gradients, index: int) -> None:
        self.flat, self.gradients, self.index = ref(flat), gradients, index
        self.reserved: Sequence[bool] = ()  # not empty while a walk may write to the gradient

    def holds(self, gradient: Tensor) -> bool:
        """Return whether a gradient is here, not an array from elsewhere."""
        mine = self.gradients.tensors[self.index]
        return gradient is mine and mine._data is self.gradients.views[self.index]._data

    def reserve(self, leaf: Leaf, walk: Sequence[bool]) -> Any:
        """Return the array that is to be the gradient, for a walk to write to until it is empty; None if it cannot."""
        if self.reserved or leaf.grad is not None or not leaf.placement.device.backend.supports_out:
            return None
        if self.gradients.seen:
            self.gradients.renew()
        self.reserved = walk
        return self.gradients.views[self.index]._data

    def receive(self, leaf: Leaf, g: Any) -> None:
        """Add an array to the gradient of the leaf."""
        guard = leaf.placement.device.device_context
        if guard is None:
            self._receive(leaf, g)
        else:
            with guard():
                self._receive(leaf, g)

    def _receive(self, leaf: Leaf, g: Any) -> None:
        gradients, index = self.gradients, self.index
        if leaf.grad is None:
            if gradients.seen:
                gradients.renew()
            if g is not gradients.views[index]._data:
                if self.reserved:  # by another thread's walk
                    leaf.grad = from_placement(leaf.placement.device.xp.asarray(g, copy=True), leaf.placement)
                    return
                gradients.views[index]._data[...] = g
            leaf.grad = gradients.tensors[index]
        elif self.holds(leaf.grad) and not gradients.seen:
            held = gradients.views[index]._data
            held += g
        else:
            leaf.grad = leaf.grad + from_placement(g, leaf.placement)


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
        self.params, self.elementwise, self.device = params, elementwise, first.device
        self.leaves: list[Any] = [p._leaf for p in params]
        self.layout = Layout([p.shape for p in params], first._placement)
        with self.device.active():
            self.gradients = Gradients(self.layout)
            # What is remembered: numbers, and arrays as an update sees them
            self.numbers = {key: value for key, value in states[0].items() if not states[0].is_array(key)}
            self.arrays: dict[str, Tensor] = {}
            for key in [key for key in states[0] if key not in self.numbers]:
                arrays = [state[key] for state in states]
                self.arrays[key] = from_array(self._filled(arrays) if elementwise else arrays[0], self.device)
            self.buffer, *self.segments = [from_placement(None, first._placement) for _ in (None, *params)]
            self._settle()
            for index, leaf in enumerate(self.leaves):  # when all is there for who finds it by a leaf
                leaf.slot = Slot(self, self.gradients, index)

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
        memory = self._filled([p._data for p in self.params])
        views = self.layout.views(memory)
        # None until all are there: who is stopped before does it again
        self.private, self._memory, self._views, self.buffer._data = None, memory, views, memory
        del memory, views
        watchers = self.watchers()  # while nobody else can see them
        for p, segment, view in zip(self.params, self.segments, self._views, strict=True):
            p._data = segment._data = view
        self.private = watchers and (watchers[0], watchers[1] + 2 * len(self._views))

    def watchers(self) -> tuple[int, int] | None:
        """Return how many references there are to the memory and to the views: more than `private`, if others look."""
        memory = self.device.backend.buffer_refcount(self._memory)
        return None if memory is None else (memory, sum(map(getrefcount, self._views)))

    def is_private(self) -> bool:
        """Return whether nothing sees the parameters but the optimizer and their views, which follow them."""
        now, private = self.watchers(), self.private
        if now == private or now is None or private is None:
            return now == private is not None
        shares, ours = partial(self.device.backend.shares_memory, self._memory), set(map(id, self._views))
        views = [view for p in self.params if has_family(p) for view in with_views(p)[1:]]
        same = sum([id(view._data) in ours for view in views])  # those of .data
        arrays = [view._data for view in views if id(view._data) not in ours and shares(view._data)]
        held_once = sum(map(getrefcount, arrays)) == len(arrays) * _HELD_ONCE
        return held_once and now == (private[0] + len(arrays), private[1] + same)

    def states(self) -> list[State]:
        """Return what is remembered of each parameter, as views."""
        apart = {
            key: self.layout.views(array._data) if self.elementwise else [array._data]
            for key, array in self.arrays.items()
        }
        return [
            State(
                self.device, self.layout.placement.dtype, self.numbers | {key: views[i] for key, views in apart.items()}
            )
            for i in range(len(self.params))
        ]

    def intact(self) -> bool:
        """Return whether the parameters are still what they were here."""
        for p, leaf in zip(self.params, self.leaves, strict=True):
            slot, same = leaf.slot, p._leaf is leaf  # a leaf that went to another device, dtype or shape has no slot
            if not same or slot is None or slot.gradients is not self.gradients:
                return False
        return True

    def even(self) -> bool:
        """Return whether all parameters have a gradient, or none."""
        return sum([leaf.grad is not None for leaf in self.leaves]) in (0, len(self.leaves))

    def step(self, update: Update, options: Mapping[str, Any]) -> None:
        """Update all parameters, if they have gradients."""
        if self.leaves[0].grad is not None:
            with self.device.active():
                self._step(update, options)

    def _step(self, update: Update, options: Mapping[str, Any]) -> None:
        self._gather()
        self.keep_private()
        viewed = self._stamp()
        p, g = self._whole(self.buffer._data), self._whole(self.gradients.buffer._data)
        numbers, options = read(self.numbers), read(options)
        arrays = {key: x._data for key, x in self.arrays.items()}
        size, piece = self.layout.size, self.device.backend.tile_size
        try:
            if not self.elementwise or piece is None or size <= piece:
                state = self._updated(update, p, g, numbers | arrays, options)
            else:  # in pieces that fit in a cache
                wholes: dict[str, Any] = {}
                for start in range(0, size, piece):
                    part = slice(start, start + piece)
                    given = {key: x[part] for key, x in arrays.items()}
                    state = self._updated(update, p[part], g[part], numbers | given, options)
                    for key, value in state.items():
                        if state.is_array(key):
                            if key not in wholes:
                                wholes[key] = arrays[key] if key in given else self.layout.empty()
                            if value is not given.get(key):
                                wholes[key][part] = value
                state.update({key: x for key, x in wholes.items() if key in state})
            self._remember(state, arrays)
        finally:  # also of an update that a signal handler has stopped
            for param in viewed:
                refresh(param)

    def _updated(self, update: Update, p: Any, g: Any, given: Mapping[str, Any], options: Mapping[str, Any]) -> State:
        """Run the rule, see that what it returns is good, and return what is to be remembered."""
        state = State(self.device, self.layout.placement.dtype, given)
        new = update(self.device.xp, p, g, state, options)
        if new is not p:
            new = new if hasattr(new, "dtype") or new is None else self.device.as_array(new)
            if new is None or new.shape != p.shape or new.dtype != p.dtype:
                got = "None" if new is None else f"shape {tuple(new.shape)}, {new.dtype}"
                name = getattr(update, "__qualname__", "update")
                raise TypeError(f"{name}: expected an array of shape {tuple(p.shape)}, {p.dtype}, got {got}")
            p[...] = new
        for key, value in state.items():
            if value is g or value is p:
                state[key] = self.device.xp.asarray(value, copy=True)
        return state

    def _remember(self, state: State, given: Mapping[str, Any]) -> None:
        """Keep what an update has left in the state, of which it was given these arrays: all of it, or nothing."""
        numbers: dict[str, Any] = {}
        new: dict[str, Tensor] = {}
        changes: list[tuple[Any, ...]] = []
        for key, value in state.items():
            if not hasattr(value, "shape"):
                numbers[key] = value
            elif key not in given:
                new[key] = from_array(value, self.device)
            elif value is not given[key]:
                changes.append((setattr, self.arrays[key], "_data", value))
                changes.append((setattr, self.arrays[key], "_placement", self.device.placements[value.dtype]))
        changes += [(self.numbers.pop, key) for key in self.numbers if key not in numbers]
        changes += [(self.arrays.pop, key) for key in given if key in numbers or key not in state]
        if new or changes:
            changes += (self.numbers.update, numbers), (self.arrays.update, new)
            at_once(*changes, (setattr, self, "stepped", True))
        else:
            self.stepped = True
            self.numbers.update(numbers)

    def keep_private(self) -> bool:
        """See that the parameters are views of a buffer that nobody else sees; return whether they moved."""
        trace = tracing.get()
        if trace is not None:
            if trace.is_private(self):
                return False
        elif self.is_private():
            for p, segment in zip(self.params, self.segments, strict=True):
                if p._data is not segment._data:
                    break
            else:
                return False
        self._settle()
        return True

    def allow(self, earlier: tuple[int, int] | None) -> None:
        """Count those who have come to see the parameters since `watchers` told how many there were, as of us."""
        now = self.watchers()
        if earlier and now and self.private:
            self.private = (self.private[0] + now[0] - earlier[0], self.private[1] + now[1] - earlier[1])

    def _stamp(self) -> list[Tensor]:
        """Note that the parameters change, and return those that may have views, which are to follow."""
        viewed, when = [], clock.change()
        for param, leaf in zip(self.params, self.leaves, strict=True):
            param._changed = leaf.changed = when
            if leaf.viewed:
                viewed.append(param)
        return viewed

    def _gather(self) -> None:
        """Bring the gradients here that came from elsewhere, such as from before, or set by hand."""
        strangers = [(index, leaf.grad) for index, leaf in enumerate(self.leaves) if not leaf.slot.holds(leaf.grad)]
        if strangers and self.gradients.seen:
            strangers = [(index, leaf.grad) for index, leaf in enumerate(self.leaves)]
            self.gradients.renew()
        for index, gradient in strangers:
            self.gradients.views[index]._data[...] = gradient._data
