"""Exchange of arrays with other libraries through DLPack, without a copy where possible."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.devices import transfer
from xgrad.backend.recording import refuse
from xgrad.core.tensor import Tensor, from_array
from xgrad.ops.tensor_conversion import native_dtype

__all__ = ["from_dlpack"]

# DLPack's device types: the memory of the host and of CUDA.
_CPU = 1
_DEVICE_TYPES = {_CPU: "cpu", 3: "cpu", 2: "cuda", 13: "cuda"}


def from_dlpack(
    x: Any, /, *, device: str | Device | None = None, copy: bool | None = None
) -> Tensor:
    """Return an array of another library as a tensor, in the same memory if possible.

    Parameters
    ----------
    x : object
        An array with ``__dlpack__`` and ``__dlpack_device__``, from NumPy, PyTorch, JAX, CuPy or
        another library.
    device : str or Device, optional
        The device of the result. By default the device of the memory: ``cpu`` for host memory,
        whatever the library, and ``cuda`` for GPU memory; for a tensor, its own device.
    copy : bool, optional
        True copies; False refuses to; None copies where it must.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`. No op writes to shared memory. Writes by other code change
        the tensor and are not detected: they must not happen while a graph needs the tensor.

    Raises
    ------
    AttributeError
        If `x` does not support DLPack.
    BufferError
        If `x` cannot be exported (for example, because it requires a gradient), if no device has
        its memory, or if ``copy=False`` and another device needs a copy.
    TypeError
        If the dtype of `x` is not supported.

    Notes
    -----
    Python array API standard, creation functions: ``from_dlpack``.

    Examples
    --------
    >>> import numpy as np
    >>> import xgrad
    >>> array = np.arange(3)
    >>> x = xgrad.from_dlpack(array)
    >>> array[0] = 5
    >>> x
    Tensor([5, 1, 2])
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        got = type(x).__name__
        raise AttributeError(
            f"from_dlpack: expected an array with __dlpack__ and __dlpack_device__, got {got}"
        )
    kind, number = map(int, x.__dlpack_device__())
    if isinstance(x, Tensor):
        _check_no_gradient(x)
    target = None if device is None else Device(device)
    raw, made = None, False
    if isinstance(x, Tensor) and target in (None, x.device):
        raw, target = x._data, x.device
    elif target is not None and _dlpack_device(target) == (kind, number):
        try:
            raw = _import_array(x, target)
        except BufferError:
            if copy is False:
                raise
    if raw is None:
        if kind not in _DEVICE_TYPES:
            raise BufferError(
                f"from_dlpack: expected memory of the host or of CUDA, got DLPack's device {kind}"
            )
        source = x.device if isinstance(x, Tensor) else Device(f"{_DEVICE_TYPES[kind]}:{number}")
        target = source if target is None else target
        made = target is not source
        if made and copy is False:
            raise BufferError(
                f"from_dlpack: copy=False, but to get from {source} to {target} needs a copy"
            )
        raw = transfer(
            x._data if isinstance(x, Tensor) else _import_array(x, source), source, target
        )
    assert target is not None
    native_dtype(raw.dtype, target)
    if copy and not made:
        with target.active():
            raw = target.xp.asarray(raw, copy=True)
    return from_array(raw, target)


def _import_array(x: Any, device: Device) -> Any:
    refuse("an array of another library is taken through DLPack: pass a tensor as an argument")
    with device.active():
        return device.backend.from_dlpack(x, device.index)


def _dlpack_device(device: Device) -> tuple[int, int]:
    """Return the DLPack type and number of a device."""
    with device.active():
        kind, number = device.xp.empty(
            (0,), dtype=device.floats[0], device=device.native
        ).__dlpack_device__()
    return int(kind), int(number)


def _check_no_gradient(x: Tensor) -> None:
    if x.requires_grad:
        raise BufferError(
            "DLPack: this tensor needs a gradient, which would be lost: use .detach()"
        )


def export(x: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Return the DLPack capsule of a tensor, read-only for consumers of DLPack 1.0 and later."""
    _check_no_gradient(x)
    if dl_device is not None and tuple(map(int, dl_device)) != tuple(
        map(int, x.__dlpack_device__())
    ):
        if int(dl_device[0]) != _CPU:
            raise BufferError(
                f"__dlpack__: expected where the tensor is, or the host, got dl_device={dl_device}"
            )
        if copy is False:
            raise BufferError(
                f"__dlpack__: copy=False, but to get from {x.device} to the host needs a copy"
            )
        x, stream, copy = x.to("cpu"), None, None
    backend, raw = x.device.backend, x._data
    refuse("the value of a tensor is read")
    signals = max_version is not None and max_version[0] >= 1
    with x.device.active():
        copied = x.device.xp.asarray(raw, copy=True) if copy else None
        exported = (
            backend.export_buffer(raw, read_only=signals, copy=copy is None)
            if copied is None
            else copied
        )
        if max_version is not None:
            try:
                return exported.__dlpack__(stream=stream, max_version=max_version)
            except (TypeError, NotImplementedError):  # older than DLPack 1.0, like NumPy 2.0
                exported = (
                    backend.export_buffer(raw, read_only=False, copy=copy is None)
                    if copied is None
                    else copied
                )
        return exported.__dlpack__(stream=stream)
