"""Errors that name the op and its arguments: what was expected, what was got, and what to do.

The module is loaded at the first error, or call with tensors of several devices: see `providers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.core import providers
from xgrad.core.arguments import axis_error
from xgrad.core.dtypes import SCALARS
from xgrad.core.op import Op
from xgrad.core.tensor import Tensor
from xgrad.support.hints import shown


def _describe(op: Op, inputs: Sequence[Any]) -> str:
    return ", ".join(
        f"{name} of shape {x.shape}, {x.dtype}" if isinstance(x, Tensor) else f"{name} {x!r}"
        for name, x in op.named(inputs)
    )


def on_one_device(op: Op, inputs: Sequence[Any]) -> Sequence[Any]:
    """Raise DeviceError, or return inputs on one device.

    In a `vmap` the tensors from outside are the same for the whole batch.
    """
    top = max([x.device for x in inputs if isinstance(x, Tensor)], key=lambda device: device.level)
    if top.level:
        return [top.lift(x) if isinstance(x, Tensor) and x.device is not top else x for x in inputs]  # type: ignore[attr-defined]
    devices = [f"{name} on {x.device}" for name, x in op.named(inputs) if isinstance(x, Tensor)]
    raise DeviceError(
        f"{op.name}: expected tensors of one device, got {', '.join(devices)}: move them with"
        " .to(device)"
    )


def _takes_several_axes(op: Op, name: str) -> bool:
    """Return whether an option that names axes may be a tuple: its annotation in the rule says."""
    annotation = op.forward.__annotations__.get(name, "int")
    return str(annotation) not in ("int", "int | None")


def _wrong_axis(
    op: Op, error: Exception, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Exception | None:
    """Return a better error if the cause is an option that names axes of the first input."""
    x = next((x for x in inputs if isinstance(x, Tensor)), None)
    if x is None or op.name == "tensordot":  # whose axes are a number, or a pair of sequences
        return None
    # a function of the user, whose axis may be anything
    if getattr(op, "_presets", None) is not None:
        return None
    if not isinstance(error, (IndexError, TypeError)) and (
        not x.shape or op.name in ("cross", "vecdot")
    ):
        return None  # the op itself says that it requires axes, or one of both inputs
    of, view = op.named(inputs)[0][0], op
    if op.name == "put":  # with the options of a view
        view, options = options["view"], options["options"]
    for name in ("axis", "axes"):
        if (axis := options.get(name)) is not None:
            several = _takes_several_axes(view, name)
            axes = axis if several and isinstance(axis, (tuple, list)) else (axis,)
            added = {"stack": 1, "expand_dims": len(axes)}.get(view.name, 0)
            if (wrong := axis_error(op.name, name, axis, x.shape, added, several, of)) is not None:
                return wrong
            if view.name == "permute_dims" and len(axes) != x.ndim:
                return ValueError(
                    f"{op.name}: expected axes of length {x.ndim} for {of} of shape {x.shape}, got"
                    f" {shown(axis)}"
                )
            if view.name == "squeeze" and any(x.shape[a] != 1 for a in axes):
                return ValueError(
                    f"{op.name}: expected axes of length 1, got axis {shown(axis)} of {of} of shape"
                    f" {x.shape}"
                )
    return None


_SAME = (
    ": to look for a tensor itself, compare with `is`, as in any(p is q for q in tensors) for p in"
    " tensors"
)


def explain(
    op: Op, error: Exception, inputs: Sequence[Any], options: Mapping[str, Any]
) -> Exception:
    """Return the error of an array library as one that names the op, its inputs and the cause."""
    if isinstance(error, (IndexError, TypeError, ValueError)) and (
        wrong := _wrong_axis(op, error, inputs, options)
    ):
        return wrong
    got = _describe(op, inputs)
    shapes = [x.shape for x in inputs if isinstance(x, Tensor)]
    if op.broadcasts:
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            return ValueError(
                f"{op.name}: expected shapes that broadcast, each length equal or 1 from the last"
                f" axis on, got {got}{_SAME if op.name in ('equal', 'not_equal') else ''}"
            )
    if isinstance(error, AttributeError) and any(x is None or type(x) in SCALARS for x in inputs):
        return TypeError(f"{op.name}: expected tensors, got {got}: make them with xgrad.asarray")
    if type(error).__name__.lstrip("_") == "LinAlgError":  # NumPy's, or PyTorch's own of that name
        return np.linalg.LinAlgError(f"{op.name}: {error} (got {got})")
    family = type(error).__module__.partition(".")[0]
    kinds = [
        k
        for k in (IndexError, TypeError, ValueError, OverflowError, RuntimeError)
        if isinstance(error, k)
    ]
    libraries = {x.device.backend.library for x in inputs if isinstance(x, Tensor)}
    if not kinds or family not in ("builtins", "numpy", *libraries):  # CuPy raises errors of NumPy
        error.add_note(f"in {op.name}, applied to {got}")
        note_memory(error, next((x.device for x in inputs if isinstance(x, Tensor)), None))
        return error
    kind = type(error) if type(error) in (*kinds, NotImplementedError) else kinds[0]
    text = str(error).removeprefix(f"{op.name}: ")
    return kind(f"{op.name}: {text} (got {got})")


def note_memory(error: Exception, device: Device | None) -> None:
    """Add to a MemoryError a note of what holds the memory of the device."""
    known = any(note.startswith("held on") for note in getattr(error, "__notes__", ()))
    if isinstance(error, MemoryError) and device is not None and not known:
        error.add_note(providers.module("memory").report(device))
