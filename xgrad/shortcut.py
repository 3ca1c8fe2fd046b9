"""The short way through the most frequent calls: ops of one tensor, or of two of one device and dtype.

What stands here is `function._caller` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, clock

if TYPE_CHECKING:
    from xgrad.device import Device
    from xgrad.function import Function
    from xgrad.plan import Plan

Plans = Mapping[int, "Plan"]  # by a bit mask of the inputs that need a gradient


class Way:
    """What a function needs to know on a device: its kernel there, its options, and the plans for each dtype.

    `learnt` are those of dtypes that the long way was seen to keep. Of `usual`, which is float32 and always kept, no
    entry is needed: an attribute is found sooner. Inputs of two dtypes go the long way, where they are promoted.
    """

    __slots__ = ("array_type", "count", "defaults", "kernel", "learnt", "names", "plans", "tensor", "usual")

    def __init__(self, function: Function, device: Device, tensor: type) -> None:
        self.kernel, self.plans, self.tensor = function.kernel(device), function.plans, tensor
        self.array_type, self.usual = device.array_type, device.floats[0]
        self.defaults, self.names, self.count = function.defaults, function.positional, len(function.options)
        self.learnt: dict[Any, Plans] = {}


_NOT_GIVEN: Any = object()
_numbers, _recording, _new = clock.numbers, grad_enabled.get, object.__new__


def for_one(name: str, find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of one input, of this name, which finds its function when it has to."""
    ways: dict[Any, Way] = {}  # by the key of a device

    def call_with_one(x: Any = _NOT_GIVEN, /, *more: Any, **given: Any) -> Any:
        try:
            a, device, edge = x._data, x._device, x._edge
            way, dtype = ways[device.key], a.dtype
            plans, options = way.learnt[dtype], way.defaults
            if more or given:
                if (more and given) or len(more) > len(way.names) or "dtype" in given:
                    raise LookupError
                options = {**options, **(given or dict(zip(way.names, more, strict=False)))}
            if len(options) != way.count:
                raise LookupError
            out = way.kernel(a, **options) if options else way.kernel(a)
            if out.dtype is not dtype:
                raise LookupError
            plan = None if edge is None or not _recording() else plans[1]
        except Exception:
            pass  # whatever it is, the long way meets it again, and explains
        else:
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
        return _long(find(), ways, () if x is _NOT_GIVEN else (x, *more), given)

    call_with_one.__name__ = call_with_one.__qualname__ = name
    return call_with_one


def for_two(name: str, find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of two inputs, of which the second may be a number."""
    ways: dict[Any, Way] = {}  # by the key of a device

    def call_with_two(x1: Any, x2: Any, /) -> Any:
        try:
            a, device, e1 = x1._data, x1._device, x1._edge
            way, dtype = ways[device.key], a.dtype
            plans = way.plans if dtype is way.usual else way.learnt[dtype]
            kind = type(x2)
            if kind is float or kind is int:
                b, e2 = x2, None
                out = way.kernel(a, b)
                if out.dtype is not dtype:
                    raise LookupError
            else:
                b, e2 = x2._data, x2._edge
                if x2._device is not device or b.dtype is not dtype:
                    raise LookupError
                out = way.kernel(a, b)
            if (e1 is None and e2 is None) or not _recording():
                plan = None
            else:
                plan = plans[1 if e2 is None else 2 if e1 is None else 3]
        except Exception:
            pass
        else:
            shape = out.shape
            if not shape and type(out) is not way.array_type:
                out = device.coerce(out)
            result: Any = _new(way.tensor)
            result._data, result._device = out, device
            if plan is None:
                result._edge = None
                return result
            result._edge = node = Node()
            node.plan = plan
            node.kept = (e1, e2) if plan.bare else plan.keep(out, (a, b), (x1, x2), None, None, (e1, e2))
            node.order, node.shape, node.dtype = next(_numbers), shape, dtype
            node.device, node.hooks, node.changed = device, None, 0
            return result
        return _long(find(), ways, (x1, x2))

    call_with_two.__name__ = call_with_two.__qualname__ = name
    return call_with_two


def _long(function: Function, ways: dict[Any, Way], given: Sequence[Any], options: Mapping[str, Any] = {}) -> Any:
    """Call a function the long way, and remember the short one for the next time, if there is one."""
    result = function.call(*given, **options)
    device: Any = getattr(given[0], "_device", None) if given else None
    if device is not None and device.guard is None and type(result) is not tuple:
        way, dtype = ways.get(device.key), result._data.dtype
        if dtype is given[0]._data.dtype and (way is None or dtype not in way.learnt):
            way = ways[device.key] = way or Way(function, device, type(result))
            way.learnt[dtype] = function.plans_of(result._data)
    return result
