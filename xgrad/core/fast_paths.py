"""The short way through the most frequent calls: of one tensor, of two of one place, or of one and a number.

What stands here is `Function.__call__` unrolled, and does the same. Whatever is out of the ordinary, an error of the
kernel included, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.backend.device import tracing
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.graph import Node, clock
from xgrad.core.views import Views, is_view, link

_numbers, _recording, _tracing, _new = clock.numbers, grad_enabled.get, tracing.get, object.__new__


_NONE: Any = {1: None, 2: None, 3: None}  # plans of ops without rules, which are not recorded


def unary_fast_path(name: str, find: Callable[[], Any], views: Views = False) -> Callable[..., Any]:
    """Return a call of one input, of this name, which finds its function when it has to."""
    ways: dict[Any, Any] = {}  # what is to be known in a place

    def call_with_one(x: Any, /, *more: Any, **given: Any) -> Any:
        try:
            a, placement, edge = x._data, x._placement, x._edge
            kernel, specs, array_type, tensor, function = ways[placement]
            if (trace := _tracing()) is not None and placement.device is not trace.device:
                raise LookupError
            options = function.defaults
            if more or given:
                if (more and given) or len(more) > len(function.positional) or "dtype" in given:
                    raise LookupError
                options = {**options, **(given or dict(zip(function.positional, more, strict=False)))}
            if len(options) != len(function.options):
                raise LookupError
            out = kernel(a, **options) if options else kernel(a)
            if out.dtype is not placement.dtype:
                raise LookupError
            spec = None if edge is None or not _recording() else specs[1]
        except Exception:
            pass  # whatever it is, the long way meets it again, and explains
        else:
            result = _new(tensor)
            if type(out) is not array_type:
                out = placement.device.as_array(out)
            result._data, result._placement, result._edge = out, placement, None
            if spec is not None:
                result._edge = node = Node()
                node.saved = spec.save(out, (a,), (x,), options, None, (edge,)) if spec.first else (edge,)
                node.spec, node.shape, node.placement = spec, out.shape, placement
                node.order, node.hooks, node.changed = next(_numbers), None, 0
            if views and (views is True or is_view(x, out)):
                link(x, result, function, options)
            return result
        return _slow_path(find(), ways, (x, *more), given)

    call_with_one.__name__ = call_with_one.__qualname__ = name
    return call_with_one


def binary_fast_path(name: str, find: Callable[[], Any]) -> Callable[..., Any]:
    """Return a call of two inputs, of which the second may be a number."""
    ways: dict[Any, Any] = {}

    def call_with_two(x1: Any, x2: Any, /) -> Any:
        try:
            a, placement, e1 = x1._data, x1._placement, x1._edge
            kernel, specs, array_type, tensor, dtype = ways[placement]
            if (trace := _tracing()) is not None and placement.device is not trace.device:
                raise LookupError
            kind = type(x2)
            if kind is float or kind is int:
                b, e2 = x2, None
                out = kernel(a, b)
                if out.dtype is not dtype:
                    raise LookupError
            else:
                b, e2 = x2._data, x2._edge
                if x2._placement is not placement:
                    raise LookupError
                out = kernel(a, b)
            if (e1 is None and e2 is None) or not _recording():
                spec = None
            else:
                spec = specs[1 if e2 is None else 2 if e1 is None else 3]
        except Exception:
            pass
        else:
            result = _new(tensor)
            if type(out) is not array_type:
                out = placement.device.as_array(out)
            made = placement if specs is not _NONE else placement.device.placements[dtype]
            result._data, result._placement, result._edge = out, made, None
            if spec is not None:
                result._edge = node = Node()
                node.saved = spec.save(out, (a, b), (x1, x2), None, None, (e1, e2)) if spec.first else (e1, e2)
                node.spec, node.shape, node.placement = spec, out.shape, placement
                node.order, node.hooks, node.changed = next(_numbers), None, 0
            return result
        return _slow_path(find(), ways, (x1, x2), {})

    call_with_two.__name__ = call_with_two.__qualname__ = name
    return call_with_two


def _slow_path(function: Any, ways: dict[Any, Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function the long way, and remember the short one for the next time.

    There is one if the result is in the place of the inputs, or, of an op without rules, if no promotion precedes it.
    What is remembered has no place in it, for capture replaces those of a trace in any tuple.
    """
    result = function(*inputs, **options)
    placement: Any = getattr(inputs[0], "_placement", None)
    if placement is None or placement in ways or type(result) is tuple:
        return result
    device, made = placement.device, result._placement
    rules = any(function.rules)
    short = (
        made is placement if rules else placement.dtype in device.floats and (made is placement or not made.floating)
    )
    if (
        short
        and made.device is device
        and device.device_context is None
        and all(getattr(x, "_placement", placement) is placement for x in inputs)
    ):
        specs = function.specs[placement.complex and function.holomorphic] if rules else _NONE
        last = function if len(function.inputs) == 1 else made.dtype
        ways[placement] = function.kernel(device, not placement.complex), specs, device.array_type, type(result), last
    return result
