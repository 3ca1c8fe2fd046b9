"""Fast paths of the most frequent calls.

They are the calls of one tensor, of two or more with one placement, and of a tensor and a number:
`Function.__call__` without its general cases, with the same results. Other calls, and errors of
kernels, take the slow path. One path for any number of inputs would make an addition 7 % slower:
the paths of one and of two inputs are unrolled.

A call that leaves a fast path runs its kernel again. So what is found out after the kernel, such as
another dtype, must be rare. Within a `vmap`, whose interceptor sees all calls, there are no fast
paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.backend.device import intercepting
from xgrad.core.graph import Node, clock, record
from xgrad.core.modes import autocast_dtypes, grad_enabled
from xgrad.core.size import Size
from xgrad.core.tensor import from_placement
from xgrad.core.views import is_view, link

_numbers = clock.numbers
_records = grad_enabled.get
_intercepting = intercepting.get
_new = object.__new__
_casting = autocast_dtypes.get


#: In place of the specs of ops without rules, which are not recorded.
_NO_SPECS: Any = {1: None, 2: None, 3: None}


def unary_fast_path(function: Any) -> Callable[..., Any]:
    """Return the call of a function of one input."""
    views, autocast = function.views, bool(function.autocast)
    cache: dict[Any, Any] = {}  # by placement

    def call_unary(x: Any, /, *more: Any, **named: Any) -> Any:
        try:
            a, placement, edge = x._data, x._placement, x._edge
            kernel, specs, array_type, tensor, _ = cache[placement]
            if (mode := _intercepting()) is not None and placement.device is not mode.device:
                raise LookupError
            if autocast and _casting() is not None:
                raise LookupError
            options = function.defaults
            if more or named:
                if (more and named) or len(more) > len(function.positional) or "dtype" in named:
                    raise LookupError
                options = {
                    **options,
                    **(named or dict(zip(function.positional, more, strict=False))),
                }
            if len(options) != len(function.options):
                raise LookupError
            out = kernel(a, **options) if options else kernel(a)
            if out.dtype is not placement.dtype:
                raise LookupError
            spec = None if edge is None or not _records() else specs[1]
        except Exception:
            pass  # the slow path meets the error again, and explains it
        else:
            result = _new(tensor)
            if type(out) is not array_type:
                out = placement.device.as_array(out)
            result._data, result._placement, result._edge = out, placement, None
            if spec is not None:
                result._edge = node = Node()
                node.saved = (
                    spec.save(out, (a,), (x,), options, None, (edge,))
                    if spec.first_edge
                    else (edge,)
                )
                node.spec, node.shape, node.placement = spec, out.shape, placement
                node.order, node.hooks, node.changed = next(_numbers), None, 0
            if views and (views is True or is_view(x, out, function, options)):
                link(x, result, function, options)
            return result
        return _slow_path(function, cache, (x, *more), named)

    return call_unary


def binary_fast_path(function: Any) -> Callable[..., Any]:
    """Return the call of a function of two inputs, of which the second may be a number."""
    autocast = bool(function.autocast)
    cache: dict[Any, Any] = {}

    def call_binary(x1: Any, x2: Any, /) -> Any:
        try:
            a, placement, e1 = x1._data, x1._placement, x1._edge
            kernel, specs, array_type, tensor, dtype = cache[placement]
            if (mode := _intercepting()) is not None and placement.device is not mode.device:
                raise LookupError
            if autocast and _casting() is not None:
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
            if (e1 is None and e2 is None) or not _records():
                spec = None
            else:
                spec = specs[1 if e2 is None else 2 if e1 is None else 3]
        except Exception:
            pass  # as above
        else:
            result = _new(tensor)
            if type(out) is not array_type:
                out = placement.device.as_array(out)
            made = placement if specs is not _NO_SPECS else placement.device.placements[dtype]
            result._data, result._placement, result._edge = out, made, None
            if spec is not None:
                result._edge = node = Node()
                node.saved = (
                    spec.save(out, (a, b), (x1, x2), None, None, (e1, e2))
                    if spec.first_edge
                    else (e1, e2)
                )
                node.spec, node.shape, node.placement = spec, out.shape, placement
                node.order, node.hooks, node.changed = next(_numbers), None, 0
            return result
        if type(x2) is Size:  # as in x.sum() / x.size
            return call_binary(x1, int(x2))
        return _slow_path(function, cache, (x1, x2), {})

    return call_binary


def nary_fast_path(function: Any) -> Callable[..., Any]:
    """Return the call of a function of three inputs or more, all but the first also numbers."""
    autocast, count, nullable = bool(function.autocast), len(function.inputs), function.nullable
    cache: dict[Any, Any] = {}

    def call_nary(*inputs: Any, **named: Any) -> Any:
        try:
            placement = inputs[0]._placement
            kernel, specs, array_type, _, _ = cache[placement]
            if (mode := _intercepting()) is not None and placement.device is not mode.device:
                raise LookupError
            if named or len(inputs) != count or (autocast and _casting() is not None):
                raise LookupError
            arrays, edges, mask, bit = [], [], 0, 1
            for x in inputs:
                if x is None and nullable:
                    array, edge = None, None
                elif (type(x) is float or type(x) is int) and placement.floating:
                    array, edge = x, None
                elif x._placement is placement:
                    array, edge = x._data, x._edge
                else:
                    raise LookupError
                arrays.append(array)
                edges.append(edge)
                if edge is not None:
                    mask |= bit
                bit += bit
            out = kernel(*arrays)
            if out.dtype is not placement.dtype:
                raise LookupError
            spec = specs[mask] if mask and _records() else None
        except Exception:
            pass  # as above
        else:
            if type(out) is not array_type:
                out = placement.device.as_array(out)
            if spec is None:
                return from_placement(out, placement)
            saved = spec.save(out, arrays, inputs, None, None, edges)
            return from_placement(out, placement, record(Node(), spec, saved, out.shape, placement))
        return _slow_path(function, cache, inputs, named)

    return call_nary


def _slow_path(
    function: Any, cache: dict[Any, Any], inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Call a function, and add an entry to the cache if the next call may take the fast path.

    It may if the result has the placement of the inputs, or, for an op without rules, if no
    promotion precedes it.
    """
    result = function(*inputs, **options)
    placement: Any = getattr(inputs[0], "_placement", None) if inputs else None
    if placement is None or placement in cache or type(result) is tuple:
        return result
    device, made = placement.device, result._placement
    rules = any(function.rules)
    short = (
        made is placement
        if rules
        else placement.dtype in device.floats and (made is placement or not made.floating)
    )
    if (
        short
        and made.device is device
        and device.device_context is None
        and not (function.upcast and placement.half)
        and all(getattr(x, "_placement", placement) is placement for x in inputs)
    ):
        specs = function.specs[placement.complex and function.holomorphic] if rules else _NO_SPECS
        cache[placement] = (
            function.kernel(device, not placement.complex),
            specs,
            device.array_type,
            type(result),
            made.dtype,
        )
    return result
