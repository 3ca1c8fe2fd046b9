"""The short way through the most frequent calls: ops of one tensor, or of two of one place.

What stands here is `function._caller` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, clock

if TYPE_CHECKING:
    from xgrad.device import Place
    from xgrad.function import Function


class Way:
    """What a function needs to know in a place where the long way was seen to keep the dtype of the inputs.

    That is its kernel, its plans by a bit mask of the inputs that need a gradient, and its options. Inputs of two
    dtypes go the long way, where they are promoted.
    """

    __slots__ = ("array_type", "count", "defaults", "kernel", "names", "plans", "tensor")

    def __init__(self, function: Function, place: Place, tensor: type) -> None:
        self.kernel, self.plans = function.kernel(place.device), function.plans_of(place)
        self.array_type, self.tensor = place.device.array_type, tensor
        self.defaults, self.names, self.count = function.defaults, function.positional, len(function.options)


_NOT_GIVEN: Any = object()
_numbers, _recording, _new = clock.numbers, grad_enabled.get, object.__new__


def for_one(name: str, find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of one input, of this name, which finds its function when it has to."""
    ways: dict[Any, Way] = {}  # by the key of a place

    def call_with_one(x: Any = _NOT_GIVEN, /, *more: Any, **given: Any) -> Any:
        try:
            a, place, edge = x._data, x._place, x._edge
            way = ways[place.key]
            options = way.defaults
            if more or given:
                if (more and given) or len(more) > len(way.names) or "dtype" in given:
                    raise LookupError
                options = {**options, **(given or dict(zip(way.names, more, strict=False)))}
            if len(options) != way.count:
                raise LookupError
            out = way.kernel(a, **options) if options else way.kernel(a)
            if options and out.dtype is not place.dtype:
                raise LookupError
            plan = None if edge is None or not _recording() else way.plans[1]
        except Exception:
            pass  # whatever it is, the long way meets it again, and explains
        else:
            if type(out) is not way.array_type:
                out = place.device.coerce(out)
            result: Any = _new(way.tensor)
            result._data, result._place = out, place
            if plan is None:
                result._edge = None
                return result
            result._edge = node = Node()
            node.plan = plan
            node.kept = (edge,) if plan.bare else plan.keep(out, (a,), (x,), options, None, (edge,))
            node.order, node.shape, node.place = next(_numbers), out.shape, place
            node.hooks, node.changed = None, 0
            return result
        return _long(find(), ways, () if x is _NOT_GIVEN else (x, *more), given)

    call_with_one.__name__ = call_with_one.__qualname__ = name
    return call_with_one


def for_two(name: str, find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of two inputs, of which the second may be a number."""
    ways: dict[Any, Way] = {}  # by the key of a place

    def call_with_two(x1: Any, x2: Any, /) -> Any:
        try:
            a, place, e1 = x1._data, x1._place, x1._edge
            way, kind = ways[place.key], type(x2)
            if kind is float or kind is int:
                b, e2 = x2, None
                out = way.kernel(a, b)
                if out.dtype is not place.dtype:
                    raise LookupError
            else:
                b, e2 = x2._data, x2._edge
                if x2._place is not place:
                    raise LookupError
                out = way.kernel(a, b)
            if (e1 is None and e2 is None) or not _recording():
                plan = None
            else:
                plan = way.plans[1 if e2 is None else 2 if e1 is None else 3]
        except Exception:
            pass
        else:
            shape = out.shape
            if not shape and type(out) is not way.array_type:
                out = place.device.coerce(out)
            result: Any = _new(way.tensor)
            result._data, result._place = out, place
            if plan is None:
                result._edge = None
                return result
            result._edge = node = Node()
            node.plan = plan
            node.kept = (e1, e2) if plan.bare else plan.keep(out, (a, b), (x1, x2), None, None, (e1, e2))
            node.order, node.shape, node.place = next(_numbers), shape, place
            node.hooks, node.changed = None, 0
            return result
        return _long(find(), ways, (x1, x2))

    call_with_two.__name__ = call_with_two.__qualname__ = name
    return call_with_two


def _long(function: Function, ways: dict[Any, Way], given: Sequence[Any], options: Mapping[str, Any] = {}) -> Any:
    """Call a function the long way, and remember the short one for the next time, if there is one."""
    result = function.call(*given, **options)
    place: Any = getattr(given[0], "_place", None) if given else None
    if place is not None and place not in ways and type(result) is not tuple and result._place is place:
        device, alike = place.device, all(getattr(x, "_place", place) is place for x in given)
        if alike and device.guard is None and device.key is device:  # while a step is recorded kernels are others
            ways[place] = Way(function, place, type(result))
    return result
