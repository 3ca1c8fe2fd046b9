"""The short way through the most frequent calls: ops of one floating tensor, or two of one device and dtype.

What stands here is `function._caller` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, clock

if TYPE_CHECKING:
    from xgrad.device import Device
    from xgrad.function import Function


class Way:
    """What a function needs to know on a device: its kernel and its plans there, and what is ordinary.

    A result of float32, `usual`, comes of ordinary inputs: where others have led to it, they were promoted as they are
    to be. One of the other `floats` could be what a library makes of integers.
    """

    __slots__ = ("array_type", "floats", "kernel", "plans", "tensor", "usual")

    def __init__(self, function: Function, device: Device, tensor: type) -> None:
        self.kernel, self.plans, self.tensor = function.kernel(device), function.plans, tensor
        self.array_type, self.floats, self.usual = device.array_type, device.floats, device.floats[0]

    def ordinary(self, dtype: Any, *raws: Any) -> bool:
        """Return whether a result of that dtype is what the long way would have come to."""
        return dtype in self.floats and all(getattr(raw, "dtype", dtype) is dtype for raw in raws)


_NOT_GIVEN: Any = object()
_numbers, _recording, _new = clock.numbers, grad_enabled.get, object.__new__


def for_one(find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of one input, which finds its function when it has to."""
    ways: dict[Device, Way] = {}

    def call_with_one(x: Any = _NOT_GIVEN, /) -> Any:
        try:
            a, device, edge = x._data, x._device, x._edge
            way = ways[device]
            out = way.kernel(a)
            dtype = out.dtype
            if dtype is not way.usual and not way.ordinary(dtype, a):
                return find().call(x)
            plan = None if edge is None or not _recording() else way.plans[1]
        except Exception:  # which the long way meets again, and explains
            return _long(find(), ways, [x])
        if type(out) is not way.array_type:
            out = device.coerce(out)
        result: Any = _new(way.tensor)
        result._data, result._device = out, device
        if plan is None:
            result._edge = None
            return result
        result._edge = node = Node()
        node.plan = plan
        node.kept = (edge,) if plan.bare else plan.keep(out, (a,), (x,), None, None, (edge,))
        node.order, node.shape, node.dtype = next(_numbers), out.shape, dtype
        node.device, node.hooks, node.changed = device, None, 0
        return result

    return call_with_one


def for_two(find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of two inputs, of which the second may be a number."""
    ways: dict[Device, Way] = {}

    def call_with_two(x1: Any = _NOT_GIVEN, x2: Any = _NOT_GIVEN, /) -> Any:
        try:
            a, device, e1 = x1._data, x1._device, x1._edge
            kind = type(x2)
            if kind is float or kind is int:
                b, e2 = x2, None
            else:
                b, e2 = x2._data, x2._edge
                if x2._device is not device:
                    return find().call(x1, x2)
            way = ways[device]
            out = way.kernel(a, b)
            dtype = out.dtype
            if dtype is not way.usual and not way.ordinary(dtype, a, b):
                return find().call(x1, x2)
            if (e1 is None and e2 is None) or not _recording():
                plan = None
            else:
                plan = way.plans[1 if e2 is None else 2 if e1 is None else 3]
        except Exception:
            return _long(find(), ways, [x1, x2])
        if type(out) is not way.array_type:
            out = device.coerce(out)
        result: Any = _new(way.tensor)
        result._data, result._device = out, device
        if plan is None:
            result._edge = None
            return result
        result._edge = node = Node()
        node.plan = plan
        node.kept = (e1, e2) if plan.bare else plan.keep(out, (a, b), (x1, x2), None, None, (e1, e2))
        node.order, node.shape, node.dtype = next(_numbers), out.shape, dtype
        node.device, node.hooks, node.changed = device, None, 0
        return result

    return call_with_two


def for_options(function: Function) -> Callable[..., Any]:
    """Return a call of one input and options, of which one of a dtype is left to the long way."""
    ways: dict[Device, Way] = {}
    defaults, names, count = function.defaults, function.positional, len(function.options)

    def call_with_options(x: Any = _NOT_GIVEN, /, *more: Any, **given: Any) -> Any:
        try:
            a, device, edge = x._data, x._device, x._edge
            way, dtype, options = ways[device], a.dtype, defaults
            if given or more:
                if (given and more) or len(more) > len(names) or "dtype" in given:
                    return function.call(x, *more, **given)
                options = {**defaults, **(given or dict(zip(names, more, strict=False)))}
            if len(options) != count or dtype not in way.floats:
                return function.call(x, *more, **given)
            out = way.kernel(a, **options)
            if out.dtype is not dtype:
                return function.call(x, *more, **given)
            plan = None if edge is None or not _recording() else way.plans[1]
        except Exception:
            return _long(function, ways, [x, *more], given)
        if type(out) is not way.array_type:
            out = device.coerce(out)
        result: Any = _new(way.tensor)
        result._data, result._device = out, device
        if plan is None:
            result._edge = None
            return result
        result._edge = node = Node()
        node.plan = plan
        node.kept = (edge,) if plan.bare else plan.keep(out, (a,), (x,), options, None, (edge,))
        node.order, node.shape, node.dtype = next(_numbers), out.shape, dtype
        node.device, node.hooks, node.changed = device, None, 0
        return result

    return call_with_options


def _long(function: Function, ways: dict[Device, Way], inputs: list[Any], options: Mapping[str, Any] = {}) -> Any:
    """Call a function the long way, and remember the short one for the next time, if there is one."""
    result = function.call(*[x for x in inputs if x is not _NOT_GIVEN], **options)
    device: Any = getattr(inputs[0], "_device", None)
    if device is not None and device.guard is None and device not in ways:
        ways[device] = Way(function, device, type(result))
    return result
