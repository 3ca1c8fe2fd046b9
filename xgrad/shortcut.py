"""The short way through the most frequent calls: of one tensor, of two of one place, or of one and a number.

What stands here is `Function.__call__` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, record

if TYPE_CHECKING:
    from xgrad.function import Function

_NOT_GIVEN: Any = object()
_recording, _new = grad_enabled.get, object.__new__


def short(name: str, find: Callable[[], Function]) -> Callable[..., Any]:
    """Return a call of this name, of one input with options or of two inputs, which finds its function when it has to.

    It goes the short way where the long one was seen to keep the place of its inputs.
    """
    ways: dict[Any, Any] = {}  # what is to be known in a place, by its key

    def call(x1: Any = _NOT_GIVEN, x2: Any = _NOT_GIVEN, /, *more: Any, **given: Any) -> Any:
        try:
            a, place, e1 = x1._data, x1._place, x1._edge
            kernel, plans, array_type, tensor, options, bind = ways[place.key]
            b = e2 = None
            if bind is not None:
                if given or x2 is not _NOT_GIVEN:
                    if "dtype" in given:
                        raise LookupError
                    options = bind((x1,) if x2 is _NOT_GIVEN else (x1, x2, *more), given)[1]
                out = kernel(a, **options) if options else kernel(a)
                edges: Any = (e1,)
            else:
                if type(x2) is float or type(x2) is int:
                    b = x2
                else:
                    b, e2 = x2._data, x2._edge
                if more or given or (b is not x2 and x2._place is not place):
                    raise LookupError
                out = kernel(a, b)
                edges = e1, e2
            if out.dtype is not place.dtype:
                raise LookupError
            if type(out) is not array_type:
                out = place.device.coerce(out)
            node: Any = None
            if (e1 is not None or e2 is not None) and _recording():
                plan = plans[1 if e2 is None else 2 if e1 is None else 3]
                kept = edges if plan.bare else plan.keep(out, (a, b), (x1, x2), options, None, edges)
                node = record(Node(), plan, kept, out.shape, place)
        except Exception:
            pass  # whatever it is, the long way meets it again, and explains
        else:
            result = _new(tensor)
            result._data, result._place, result._edge = out, place, node
            return result
        function, inputs = find(), [x for x in (x1, x2, *more) if x is not _NOT_GIVEN]
        result = function(*inputs, **given)
        place = getattr(inputs[0], "_place", None) if inputs else None
        if place is None or place in ways or type(result) is tuple or result._place is not place:
            return result
        device, alike = place.device, all(getattr(x, "_place", place) is place for x in inputs)
        if alike and device.guard is None and device.key is device:  # while a step is recorded kernels are others
            kernel, bind = function.kernel(device), function.bind if len(function.inputs) == 1 else None
            ways[place] = kernel, function.plans(place), device.array_type, type(result), function.defaults, bind
        return result

    call.__name__ = call.__qualname__ = name
    return call
