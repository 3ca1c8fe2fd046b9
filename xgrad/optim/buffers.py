"""Buffers: the layout of several arrays in one, and the gradients of parameters in a buffer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate
from typing import Any
from weakref import ref

from xgrad.backend.device import Device, Placement
from xgrad.backend.recording import add_to, assign, copy_of, run_array_code
from xgrad.core.graph import GradientReceiver, Leaf
from xgrad.core.tensor import Tensor, from_placement

_NO_CONTEXT = nullcontext()
_ALIGNED = 8  # elements: 16 bytes in float16


class BufferLayout:
    """The layout of several arrays in a buffer: one after the other, matrices transposed.

    The weight of a linear layer is stored as (in, out), the fastest order for BLAS. The fastest
    kernels of cuBLAS need rows that start at multiples of 16 bytes, so sizes that are multiples of
    8 come first, then multiples of 4, and so on: arrays whose rows are multiples of 16 bytes long
    then start at a multiple of 16 bytes. There are no gaps between arrays: an update by NaN, or a
    division by an ``eps`` of zero, would turn the zeros there into NaN, and sums over the buffer
    would include them.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], placement: Placement) -> None:
        self.shapes, self.placement = shapes, placement
        sizes = list(map(math.prod, shapes))
        order = sorted(range(len(sizes)), key=lambda i: -math.gcd(sizes[i], _ALIGNED))
        starts = dict(zip(order, accumulate([sizes[i] for i in order], initial=0), strict=False))
        self._parts = [slice(starts[i], starts[i] + size) for i, size in enumerate(sizes)]
        self.size = sum(sizes)

    @property
    def device(self) -> Device:
        """The device of the buffer."""
        return self.placement.device

    def empty(self) -> Any:
        """Return a new buffer."""
        return run_array_code(self.device, self._empty)

    def views(self, buffer: Any) -> list[Any]:
        """Return views of the arrays in a buffer."""
        views: list[Any] = run_array_code(self.device, self._views, buffer)
        return views

    def _empty(self, device: Device) -> Any:
        return device.xp.empty((self.size,), dtype=self.placement.dtype, device=device.native)

    def _views(self, device: Device, buffer: Any) -> list[Any]:
        xp, views = device.xp, []
        for shape, part in zip(self.shapes, self._parts, strict=True):
            view = xp.reshape(buffer[part], shape[::-1] if len(shape) == 2 else shape)
            views.append(xp.matrix_transpose(view) if len(shape) == 2 else view)
        return views

    def packed(self, arrays: Sequence[Any]) -> Any:
        """Return a new buffer with the values of some arrays."""
        buffer = self.empty()
        for view, array in zip(self.views(buffer), arrays, strict=True):
            run_array_code(self.device, assign, view, array)
        return buffer


class GradientBuffer:
    """The gradients of some leaves, packed into one buffer.

    Leaves hold the `tensors`, which share their arrays with `views`. Once a user has seen a
    gradient, the buffer is `exposed`: the next backward pass allocates another one.
    """

    def __init__(self, layout: BufferLayout) -> None:
        self.layout = layout
        self.buffer, *self.views = [
            from_placement(None, layout.placement) for _ in (None, *layout.shapes)
        ]
        self.reallocate()

    def reallocate(self) -> None:
        """Allocate another buffer, and leave the former one to other references."""
        buffer, placement = self.layout.empty(), self.layout.placement
        arrays = self.layout.views(buffer)
        for view, array in zip(self.views, arrays, strict=True):
            view._data = array
        tensors = [from_placement(array, placement) for array in arrays]
        self.tensors, self.buffer._data, self.exposed = tensors, buffer, False


class GradientSlot(GradientReceiver):
    """The position of a leaf's gradient in a buffer.

    It has a weak reference to the `FlatParameters` of the leaf, and none to the leaf itself, which
    would be a cycle.
    """

    __slots__ = ("flat", "gradients", "index", "reserved")

    def __init__(self, flat: Any, gradients: GradientBuffer, index: int) -> None:
        self.flat, self.gradients, self.index = ref(flat), gradients, index
        # Not empty while a backward pass may write to the gradient
        self.reserved: Sequence[bool] = ()

    def expose(self) -> None:
        """Note that a user has seen the gradient, and may keep it."""
        self.gradients.exposed = True

    def contains(self, gradient: Tensor) -> bool:
        """Return whether a gradient is the one in the buffer, not an array from elsewhere."""
        own = self.gradients.tensors[self.index]
        return gradient is own and own._data is self.gradients.views[self.index]._data

    def write(self, array: Any) -> Any:
        """Write a new value of the leaf to the parameters' buffer, and return the leaf's array.

        Return `array` itself if the parameters are no longer packed.
        """
        flat = self.flat()
        return array if flat is None else flat.write(self.index, array)

    def lend(self, leaf: Leaf, running: Sequence[bool]) -> Any:
        """Lend the gradient's array to a backward pass as output; None if unavailable.

        The loan ends when `running` is empty.
        """
        if self.reserved or leaf.grad is not None or not leaf.placement.device.backend.supports_out:
            return None
        if self.gradients.exposed:
            self.gradients.reallocate()
        self.reserved = running
        return self.gradients.views[self.index]._data

    def receive(self, leaf: Leaf, g: Any) -> None:
        """Add an array to the gradient of the leaf."""
        gradients, index = self.gradients, self.index
        if g is gradients.views[index]._data and leaf.grad is None and not gradients.exposed:
            # A derivative rule wrote the gradient to the array that `lend` returned.
            leaf.grad = gradients.tensors[index]
            return
        context = leaf.placement.device.device_context
        with _NO_CONTEXT if context is None else context():
            if leaf.grad is not None:
                if self.contains(leaf.grad) and not gradients.exposed:
                    run_array_code(leaf.placement.device, add_to, gradients.views[index]._data, g)
                else:
                    leaf.grad = leaf.grad + from_placement(g, leaf.placement)
                return
            if gradients.exposed:
                gradients.reallocate()
            if g is not gradients.views[index]._data:
                if self.reserved:  # for a backward pass in another thread
                    raw = run_array_code(leaf.placement.device, copy_of, g)
                    leaf.grad = from_placement(raw, leaf.placement)
                    return
                run_array_code(leaf.placement.device, assign, gradients.views[index]._data, g)
            leaf.grad = gradients.tensors[index]
