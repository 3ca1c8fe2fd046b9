"""The precision in which ops compute: casts in `xgrad.amp.autocast`, and float16 in float32.

Ops declared `upcast`, and compositions of ops, compute float16 in float32 and round the results:
squares of numbers above 255 overflow in float16, and sums of many numbers lose digits. The casts
are ops, so gradients pass through the same computation in float32, at any order, and a captured
step has the bits of the eager one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from xgrad.backend.device import Device
from xgrad.core import providers
from xgrad.core.dtypes import float16, float32, standard
from xgrad.core.function import Function
from xgrad.core.modes import autocast_dtypes
from xgrad.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def cast_inputs(
    inputs: tuple[Any, ...], dtypes: Mapping[str, Any], narrow: bool
) -> tuple[Any, ...]:
    """Return the inputs of an op in an autocast mode.

    A `narrow` op gets float32 inputs in the dtype of the device, any other op float16 inputs as
    float32.
    """
    return tuple([_cast(x, dtypes, narrow) if hasattr(x, "_placement") else x for x in inputs])


def _cast(x: Tensor, dtypes: Mapping[str, Any], narrow: bool) -> Tensor:
    target = dtypes.get(x.device.type)
    if target is None or x.dtype not in (float16, float32):
        return x
    target = target if narrow else float32
    return x if x.dtype == target else providers.module("functions").astype(x, target)


def widened(*inputs: Any) -> tuple[Any, ...]:
    """Return the inputs of a composition as a wide op gets them.

    In an autocast mode these are float16 inputs as float32.
    """
    dtypes = autocast_dtypes.get()
    return inputs if dtypes is None else cast_inputs(inputs, dtypes, False)


def is_cast(*tensors: Tensor) -> bool:
    """Return whether tensors of several dtypes are cast to one by ops."""
    dtypes = autocast_dtypes.get() or {}
    return all(x.device.type in dtypes and x.dtype in (float16, float32) for x in tensors)


# Float16 in float32


def upcast(function: F) -> F:
    """Return a composition of ops that computes float16 in float32, and rounds its result.

    Beside floats of another dtype the result has the dtype that they promote to; so it has in an
    autocast mode, which widens the inputs itself: see `widened`.
    """

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for x in (*args, *options.values()) if options else args:
            if (placement := getattr(x, "_placement", None)) is not None and placement.half:
                return _in_float32(function, args, options)
        return function(*args, **options)

    return call  # type: ignore[return-value]


def _in_float32(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    values = (*args, *options.values())
    if _is_autocast(values):
        return function(*args, **options)
    out = function(*map(_widen, args), **{name: _widen(value) for name, value in options.items()})
    return _narrow(out) if are_half(values) else out


def _is_autocast(values: Sequence[Any]) -> bool:
    """Return whether an autocast mode applies to the device of a tensor among values."""
    dtypes = autocast_dtypes.get()
    return dtypes is not None and any(
        x.device.type in dtypes for x in values if hasattr(x, "_placement")
    )


def computes_in_float32(
    function: Function, inputs: Sequence[Any], device: Device, mixed: bool
) -> bool:
    """Return whether an op declared `upcast` computes these inputs in float32.

    They are then of float16 alone, and `mixed` if there are numbers of several kinds among them.
    Matrix products stay in float16 where they are fast, or where `autocast` asks for it.
    """
    if not are_half(inputs) or (mixed and function.scipy_promotion):
        return False
    if function.autocast != "narrow":
        return True
    return not device.root.backend.fast_float16 and autocast_dtypes.get() is None


def are_half(values: Sequence[Any]) -> bool:
    """Return whether there are floating tensors among values, all of float16."""
    halves = [
        x._placement.half for x in values if hasattr(x, "_placement") and x._placement.floating
    ]
    return bool(halves) and all(halves)


def _widen(x: Any) -> Any:
    half = hasattr(x, "_placement") and x._placement.half
    return providers.module("functions").astype(x, float32) if half else x


def _narrow(out: Any) -> Any:
    """Round a result of float32, or each of several."""
    if isinstance(out, tuple):
        return tuple(map(_narrow, out))
    wide = out._placement.dtype == out.device.floats[0]
    return providers.module("functions").astype(out, float16) if wide else out


def call_in_float32(
    function: Callable[..., Any], inputs: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Call an op on float16 in float32.

    The result is of float16, unless the option `dtype` names another dtype.
    """
    dtype = options.get("dtype")
    if dtype is not None and standard(dtype) != float16:
        return function(*map(_widen, inputs), **options)
    options = {**options, "dtype": None} if dtype is not None else options
    return _narrow(function(*map(_widen, inputs), **options))
