"""Parameters, their gradients and the optimizer's state, each packed into one buffer.

Each parameter, gradient and array of the state is a view of its buffer. An update is then a few
array calls, however many parameters there are. It writes to the buffer even if other objects share
the memory: tensors and arrays that view a parameter follow it, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.devices import transfer
from xgrad.backend.recording import active_recorder, assign, run_array_code
from xgrad.core.changes import mark_changed, updated
from xgrad.core.graph import clock
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.ops import astype
from xgrad.ops.writing import move, refresh
from xgrad.optim.buffers import BufferLayout, GradientBuffer, GradientSlot

Update = Callable[[Any, Any, Any, "State", Mapping[str, Any]], Any]

_PLAIN = frozenset({bool, int, float, list})


def plain_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with NumPy's numbers converted to Python's.

    NumPy's numbers would promote float32 to float64.
    """
    return {key: value if type(value) in _PLAIN else _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    return (
        tuple(map(_plain, value))
        if type(value) is tuple
        else value.item()
        if hasattr(value, "item")
        else value
    )


class State(dict[str, Any]):
    """The state of one or several parameters: numbers, and arrays.

    The arrays have the device and dtype of the parameters.
    """

    __slots__ = ("device", "dtype")

    def __init__(self, device: Device, dtype: Any, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.device, self.dtype = device, dtype

    def is_array(self, key: str) -> bool:
        """Return whether a value is an array, not a number."""
        return hasattr(self[key], "shape")

    def to(self, device: Device, dtype: Any) -> State:
        """Return the state for a parameter that moved to another device or dtype."""
        if device is self.device and dtype == self.dtype:
            return self
        new = State(device, dtype, self)
        with device.active():
            for key, value in self.items():
                if self.is_array(key):
                    new[key] = device.xp.astype(transfer(value, self.device, device), dtype)
        return new

    def tensors(self) -> dict[str, Any]:
        """Return a copy with tensors in place of arrays."""
        return {
            key: astype(from_array(value, self.device), value.dtype)
            if self.is_array(key)
            else value
            for key, value in self.items()
        }


class FlatParameters:
    """Parameters of one device and dtype that have always been updated together, with their state.

    All states have the same numbers and keys. If the rule is `elementwise`, it takes all parameters
    as one array, and likewise each array of their states; if not, there is only one parameter. The
    state is valid once the parameters have `stepped`.
    """

    def __init__(
        self, params: Sequence[Tensor], states: Sequence[State], elementwise: bool, stepped: bool
    ) -> None:
        self.params, self.elementwise, self.stepped = params, elementwise, stepped
        self.leaves: list[Any] = [p._leaf for p in params]
        self.layout = BufferLayout([p.shape for p in params], params[0]._placement)
        with self.device.active():
            self.gradients = GradientBuffer(self.layout)
            # The common state, with arrays as the update rule takes them
            self.numbers = {
                key: value for key, value in states[0].items() if not states[0].is_array(key)
            }
            self.arrays: dict[str, Tensor] = {}
            for key in [key for key in states[0] if key not in self.numbers]:
                # the state of a single parameter may have other shapes than it
                layout = (
                    self.layout
                    if elementwise
                    else BufferLayout([states[0][key].shape], self.layout.placement)
                )
                packed = layout.packed([state[key] for state in states])
                self.arrays[key] = from_array(
                    packed if elementwise else layout.views(packed)[0], self.device
                )
            # The buffer with all parameters, and the segment of each
            self.buffer, *self.segments = [
                from_placement(None, self.layout.placement) for _ in (None, *params)
            ]
            self.changed = 0  # the time of the last update
            self._take_memory()
            updated[id(self)] = self
            for index, leaf in enumerate(self.leaves):  # last: it makes this object reachable
                leaf.receiver = GradientSlot(self, self.gradients, index)

    @property
    def device(self) -> Device:
        """The device of the parameters."""
        return self.layout.placement.device

    # Layout of the parameters

    def packs(self, index: int) -> bool:
        """Return whether a parameter is still packed here.

        That ends when it moves to another device, dtype, shape or buffer.
        """
        leaf = self.leaves[index]
        slot = leaf.receiver
        return (
            self.params[index]._leaf is leaf
            and slot is not None
            and slot.gradients is self.gradients
        )

    def intact(self) -> bool:
        """Return whether all parameters are still packed here."""
        gradients = self.gradients
        # `packs`, inlined, since this runs at each step
        for p, leaf in zip(self.params, self.leaves, strict=True):
            slot = leaf.receiver
            if (
                (p._edge is not leaf and p._leaf is not leaf)
                or slot is None
                or slot.gradients is not gradients
            ):
                return False
        return True

    def _take_memory(self) -> None:
        """Move the parameters to a new buffer, unless they are already packed in the same way."""
        former = self._packed_alike()
        if former is not None:
            memory, views = former.buffer._data, [segment._data for segment in former.segments]
            self.changed = former.changed
            former.gather_parameters()
        else:
            memory = self.layout.packed([p._data for p in self.params])
            views = self.layout.views(memory)
        self.buffer._data = memory
        for p, segment, view in zip(self.params, self.segments, views, strict=True):
            segment._data = view
            if p._data is not view:
                move(p, view)

    def _packed_alike(self) -> FlatParameters | None:
        """Return the object that packs the same parameters in the same order now, or None."""
        slot = self.leaves[0].receiver
        flat: FlatParameters | None = slot and slot.flat()
        if flat is None or len(flat.params) != len(self.params) or not flat.intact():
            return None
        return flat if all(p is q for p, q in zip(self.params, flat.params, strict=True)) else None

    def gather_parameters(self) -> None:
        """Copy parameters whose arrays were replaced back to the buffer."""
        for i, (p, own) in enumerate(zip(self.params, self.segments, strict=True)):
            if p._data is not own._data and self.packs(i):
                self._write(i, p._data)
                move(p, own._data)

    def write(self, index: int, array: Any) -> Any:
        """Write a new value of a parameter to the buffer, and return the parameter's array."""
        own = self.segments[index]._data
        if array is not own:
            with self.device.active():
                self._write(index, array)
            self.changed = clock.last_change
        return own

    def _write(self, index: int, array: Any) -> None:
        run_array_code(self.device, _assign, self.segments[index]._data, array)

    # The state

    def states(self) -> list[State]:
        """Return the state of each parameter, with views of the arrays."""
        arrays = {
            key: self.layout.views(self.whole(array._data)) if self.elementwise else [array._data]
            for key, array in self.arrays.items()
        }
        return [
            State(
                self.device,
                self.layout.placement.dtype,
                self.numbers | {key: x[i] for key, x in arrays.items()},
            )
            for i in range(len(self.params))
        ]

    def whole(self, array: Any) -> Any:
        """Return an array of the state that covers all parameters."""
        return array

    def _store(self, state: Mapping[str, Any]) -> None:
        """Store the state after an update."""
        numbers: dict[str, Any] = {}
        arrays: dict[str, Tensor] = {}
        for key, value in state.items():
            if not hasattr(value, "shape"):
                numbers[key] = value
            elif key not in self.arrays:
                arrays[key] = from_array(value, self.device)
            else:
                arrays[key] = tensor = self.arrays[key]
                if value is not tensor._data:
                    tensor._data, tensor._placement = value, self.device.placements[value.dtype]
        if self.numbers.keys() != numbers.keys() or self.arrays.keys() != arrays.keys():
            self.numbers.clear()
            self.arrays.clear()
        self.numbers.update(numbers)
        self.arrays.update(arrays)
        self.stepped = True

    # The step

    def uniform(self) -> bool:
        """Return whether either all parameters have a gradient or none has."""
        return sum([leaf.grad is not None for leaf in self.leaves]) in (0, len(self.leaves))

    def step(self, update: Update, options: dict[str, Any]) -> None:
        """Update all parameters, if they have gradients."""
        if self.leaves[0].grad is None:
            return
        with self.layout.placement.device.active():
            self._gather_gradients()
            self.gather_parameters()
            viewed = self._note_change()
            try:
                numbers = plain_numbers(self.numbers)
                given = plain_numbers(options)
                recorder = active_recorder()
                if recorder is not None:
                    numbers = recorder.update_numbers(self.numbers, numbers)
                    given = recorder.update_numbers(options, given)
                state = self._update(update, numbers, given)
                self._store(
                    state if recorder is None else recorder.updated_numbers(self.numbers, state)
                )
            finally:  # also after an update that raises
                for param in viewed:
                    refresh(param)

    def _update(
        self, update: Update, numbers: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the state after an update."""
        arrays = {key: x._data for key, x in self.arrays.items()}
        whole = self.segments[0]._data, self.gradients.views[0]._data
        p, g = self.updated_arrays() if self.elementwise else whole
        state: dict[str, Any] = run_array_code(
            self.device, self._updated, update, p, g, arrays, numbers, options
        )
        return state

    def _updated(
        self,
        device: Device,
        update: Update,
        p: Any,
        g: Any,
        arrays: dict[str, Any],
        numbers: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the state after an update.

        A large buffer is updated in equal tiles that fit in a cache.
        """
        values = {**numbers, **arrays}
        tile, size = device.backend.tile_size, p.shape[0] if p.shape else 0
        if not self.elementwise or tile is None or size <= tile:
            return dict(self._update_tile(device, update, p, g, values, options))
        length = math.ceil(size / math.ceil(size / tile))
        for part in [slice(start, start + length) for start in range(0, size, length)]:
            tiles = {**values, **{key: arrays[key][part] for key in self.arrays}}
            state = self._update_tile(device, update, p[part], g[part], tiles, options)
            for key, value in state.items():
                if state.is_array(key) and value is not tiles.get(key):
                    if key not in arrays:
                        arrays[key] = device.xp.empty_like(p)
                    arrays[key][part] = value
        return {**state, **{key: arrays[key] for key in state if state.is_array(key)}}

    def updated_arrays(self) -> tuple[Any, Any]:
        """Return the parameters and the gradients of an elementwise update, as one array each."""
        return self.buffer._data, self.gradients.buffer._data

    def _update_tile(
        self,
        device: Device,
        update: Update,
        p: Any,
        g: Any,
        values: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> State:
        """Call the update rule, check and store its results, and return the new state."""
        state = State(device, self.layout.placement.dtype, values)
        update = self._upcast(update) if self.layout.placement.half else update
        new = update(device.xp, p, g, state, options)
        if new is not p:
            new = new if hasattr(new, "dtype") or new is None else device.as_array(new)
            if new is None or new.shape != p.shape or new.dtype != p.dtype:
                got = "None" if new is None else f"shape {tuple(new.shape)}, {new.dtype}"
                name = getattr(update, "__qualname__", "update")
                raise TypeError(
                    f"{name}: expected an array of shape {tuple(p.shape)}, {p.dtype}, got {got}"
                )
            p[...] = new
        for key, value in state.items():
            if value is g or value is p:
                state[key] = device.xp.asarray(value, copy=True)
        return state

    @staticmethod
    def _upcast(update: Update) -> Update:
        """Return an update rule for float16 that computes in float32.

        In float16, squares overflow and a small ε would be 0.
        """

        @wraps(update)
        def upcast(xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
            halves = {key: value for key, value in state.items() if state.is_array(key)}
            wide = State(state.device, xp.float32, state)
            wide.update({key: xp.astype(value, xp.float32) for key, value in halves.items()})
            new = update(xp, xp.astype(p, xp.float32), xp.astype(g, xp.float32), wide, options)
            for key, value in wide.items():
                if not wide.is_array(key):
                    state[key] = value
                elif key in halves:
                    halves[key][...] = xp.astype(value, p.dtype)
                else:
                    state[key] = xp.astype(value, p.dtype)
            return new if new is None or not hasattr(new, "dtype") else xp.astype(new, p.dtype)

        return upcast

    def take_gradients(self) -> Any:
        """Move all gradients to a buffer that is not exposed, and return it.

        The parameters then hold the gradients in this buffer.
        """
        arrays = [leaf.grad._data for leaf in self.leaves]
        if self.gradients.exposed:
            self.gradients.reallocate()
        gradients = self.gradients
        for leaf, array, view, tensor in zip(
            self.leaves, arrays, gradients.views, gradients.tensors, strict=True
        ):
            if array is not view._data:
                run_array_code(self.device, assign, view._data, array)
            leaf.grad = tensor
        return gradients.buffer._data

    def _gather_gradients(self) -> None:
        """Copy gradients outside the buffer, such as assigned ones, into it."""
        gradients = self.gradients
        # `GradientSlot.contains`, inlined
        kept = zip(self.leaves, gradients.tensors, gradients.views, strict=True)
        foreign = [
            i
            for i, (leaf, own, view) in enumerate(kept)
            if not (leaf.grad is own and own._data is view._data)
        ]
        if foreign and self.gradients.exposed:
            self.gradients.reallocate()
            foreign = list(range(len(self.leaves)))
        for index in foreign:
            run_array_code(
                self.device,
                assign,
                self.gradients.views[index]._data,
                self.leaves[index].grad._data,
            )

    def _note_change(self) -> list[Tensor]:
        """Record that the parameters change, and return the ones that may have views to refresh."""
        self.changed = when = clock.change()
        mark_changed(self.params, when)
        return [x for x, leaf in zip(self.params, self.leaves, strict=True) if leaf.viewed]


def _assign(device: Device, x: Any, value: Any) -> None:
    """Assign to an array a value that may share its memory, such as its transpose: array code."""
    if device.backend.shares_memory(x, value):  # only NumPy supports overlap
        value = device.xp.asarray(value, copy=True)
    x[...] = value
