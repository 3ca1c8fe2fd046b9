"""The short way through the most frequent of all calls: an op of two floating tensors of one device and dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xgrad.device import Device
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, clock
from xgrad.plan import Plan
from xgrad.tensor import Tensor

_NOT_GIVEN = object()


def for_two_tensors(
    call: Callable[..., Any], kernels: Mapping[Device, Callable[..., Any]], plans: Mapping[int, Plan]
) -> Callable[[Any, Any], Any]:
    """Return what does the same as `call` of a function with two inputs, sooner: `call` unrolled.

    Whatever is out of the ordinary, an error of the kernel included, is left to `call`.
    """
    tick, recording, new = clock.tick, grad_enabled.get, object.__new__

    def call_with_two(x1: Any = _NOT_GIVEN, x2: Any = _NOT_GIVEN, /, *more: Any) -> Any:
        if not isinstance(x1, Tensor) or not isinstance(x2, Tensor) or more:
            return call(*[x for x in (x1, x2, *more) if x is not _NOT_GIVEN])
        a, b, device = x1._data, x2._data, x1._device
        dtype = a.dtype
        if x2._device is not device or b.dtype is not dtype or dtype not in device.floats or device.guard is not None:
            return call(x1, x2)
        try:
            out = kernels[device](a, b)
        except Exception:
            return call(x1, x2)
        if type(out) is not device.array_type:
            out = device.coerce(out)

        result: Any = new(Tensor)
        result._data, result._device, result._edge = out, device, None
        e1, e2 = x1._edge, x2._edge
        if (e1 is None and e2 is None) or not recording():
            return result
        plan = plans[3 if e1 is not None and e2 is not None else 1 if e2 is None else 2]
        node = result._edge = Node()
        node.kept = (e1, e2) if plan.bare else plan.keep(out, (a, b), (x1, x2), None, None, (e1, e2))
        node.plan, node.device, node.order, node.shape, node.dtype = plan, device, tick(), out.shape, dtype
        node.hooks, node.changed = None, 0
        return result

    return call_with_two
