"""The short way through the most frequent calls: ops of one or two floating tensors of one device and dtype.

What stands here is `function._caller` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xgrad.device import Device
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, clock
from xgrad.plan import Plan
from xgrad.tensor import Tensor

Kernels = Mapping[Device, Callable[..., Any]]
Plans = Mapping[int, Plan | None]  # by a bit mask of the inputs that need a gradient; None where none does
_NOT_GIVEN: Any = object()
_tick, _recording, _new = clock.tick, grad_enabled.get, object.__new__


def for_one(call: Callable[..., Any], kernels: Kernels, plans: Plans) -> Callable[..., Any]:
    """Return the short way of a function with one input."""

    def call_with_one(x: Any = _NOT_GIVEN, /) -> Any:
        if not isinstance(x, Tensor):
            return call() if x is _NOT_GIVEN else call(x)
        a, device, edge = x._data, x._device, x._edge
        dtype = a.dtype
        if dtype not in device.quick:
            return call(x)
        try:
            plan = plans[0 if edge is None or not _recording() else 1]
            out = kernels[device](a)
        except Exception:  # which `call` meets again, and explains
            out = None
        if type(out) is not device.array_type:
            if out is None:
                return call(x)
            out = device.coerce(out)
        result: Any = _new(Tensor)
        result._data, result._device, result._edge = out, device, None
        if plan is None:
            return result
        result._edge = node = Node()
        node.plan = plan
        node.kept = (edge,) if plan.bare else plan.keep(out, (a,), (x,), None, None, (edge,))
        node.order, node.shape, node.dtype = _tick(), out.shape, dtype
        node.device, node.hooks, node.changed = device, None, 0
        return result

    return call_with_one


def for_two(call: Callable[..., Any], kernels: Kernels, plans: Plans) -> Callable[..., Any]:
    """Return the short way of a function with two inputs, of which the second may be a number."""

    def call_with_two(x1: Any = _NOT_GIVEN, x2: Any = _NOT_GIVEN, /) -> Any:
        if not isinstance(x1, Tensor):
            return call(*[x for x in (x1, x2) if x is not _NOT_GIVEN])
        a, device, e1 = x1._data, x1._device, x1._edge
        dtype = a.dtype
        if isinstance(x2, Tensor):
            b, e2 = x2._data, x2._edge
            if x2._device is not device or b.dtype is not dtype:
                return call(x1, x2)
        elif type(x2) is float or type(x2) is int:
            b, e2 = x2, None
        else:
            return call(x1) if x2 is _NOT_GIVEN else call(x1, x2)
        if dtype not in device.quick:
            return call(x1, x2)
        mask = (0 if e2 is None else 2) if e1 is None else (1 if e2 is None else 3)
        try:
            plan = plans[mask if mask and _recording() else 0]
            out = kernels[device](a, b)
        except Exception:
            out = None
        if type(out) is not device.array_type:
            if out is None:
                return call(x1, x2)
            out = device.coerce(out)
        result: Any = _new(Tensor)
        result._data, result._device, result._edge = out, device, None
        if plan is None:
            return result
        result._edge = node = Node()
        node.plan = plan
        node.kept = (e1, e2) if plan.bare else plan.keep(out, (a, b), (x1, x2), None, None, (e1, e2))
        node.order, node.shape, node.dtype = _tick(), out.shape, dtype
        node.device, node.hooks, node.changed = device, None, 0
        return result

    return call_with_two
