"""Tensors in files of the safetensors format, which other libraries read, and which cannot run code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.devices import current_device
from xgrad.core.tensor import Tensor
from xgrad.ops import asarray
from xgrad.support.docstrings import documented
from xgrad.support.files import write
from xgrad.support.hints import shown

__all__ = ["load", "save"]


@documented()
def save(tensors: Mapping[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Save tensors by name, such as the ``state_dict()`` of a module, as a safetensors file.

    The file is written completely or not at all: after a failure, an earlier file is unchanged. Its mode is kept, and
    a symbolic link is followed. A device or a FIFO is written to, and not replaced.

    tensors : mapping of str to Tensor -- Tensors on any devices. Gradients, graphs and devices are not saved.
    path : str or os.PathLike -- Path of the file.
    raises TypeError -- If `tensors` is not a mapping of that kind, or has a tensor of complex128 or named
        ``__metadata__``, for which the format has no place.
    raises ValueError -- If a name has a lone surrogate, or the path a null character.
    raises OSError -- If the file cannot be written, such as on a full disk; FileNotFoundError if its folder does not
        exist, PermissionError if it is write-protected.

    >>> import tempfile, xgrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xgrad.save({"x": xgrad.ones(2)}, f"{folder}/x.safetensors")
    ...     xgrad.load(f"{folder}/x.safetensors")
    {'x': Tensor([1., 1.])}
    """
    target = os.fsdecode(path)
    if not target or os.path.isdir(target):
        raise IsADirectoryError(f"save: expected the path of a file, got the folder {target!r}: add a file name")
    if not os.path.isdir(folder := os.path.dirname(target) or "."):
        raise FileNotFoundError(f"save: expected an existing folder, got {folder}: make it first")
    write(target, serialized(tensors))


def serialized(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a safetensors file."""
    from safetensors.numpy import save as serialize  # not at the top: slow to import

    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"save: expected a mapping of names to tensors, got {type(tensors).__name__}: of a module, give "
            "its state_dict()"
        )
    host = {name: _to_host(name, tensor) for name, tensor in tensors.items()}
    return serialize(host, metadata={"format": "xgrad"})


def _to_host(name: Any, tensor: Any) -> np.ndarray:
    if not isinstance(name, str):
        raise TypeError(f"save: expected a str as the name of each tensor, got {shown(name)}")
    if name == "__metadata__":
        raise TypeError(f"save: the name {name!r} is taken by the format: choose another")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"save: expected a Tensor for {name!r}, got {type(tensor).__name__}: use xgrad.asarray")
    if tensor.dtype.name == "complex128":
        raise TypeError(f"save: {name!r} is complex128, which safetensors lacks: save its two parts")
    # In C order: safetensors would write the memory of other layouts as it is.
    return np.asarray(tensor.detach().cpu().numpy(), order="C")


@documented()
def load(path: str | os.PathLike[str], *, device: str | Device | None = None) -> dict[str, Tensor]:
    """Load the tensors of a safetensors file, of xgrad or any other library.

    path : str or os.PathLike -- The file.
    device
    returns dict of str to Tensor -- Tensors by name, in the dtypes of the file.
    raises FileNotFoundError, IsADirectoryError -- If there is no such file.
    raises PermissionError -- If it is read-protected.
    raises ValueError -- If the file is not of the format, or damaged.
    raises TypeError -- If a tensor has a dtype that this library lacks, such as bfloat16.
    raises DeviceError -- If the device is unknown or cannot be used.

    >>> xgrad.load("weights.safetensors")
    Traceback (most recent call last):
        ...
    FileNotFoundError: load: file not found: weights.safetensors: expected a safetensors file
    """
    from safetensors import SafetensorError, safe_open  # not at the top: slow to import

    source = os.fspath(path)
    if not os.path.isfile(source):
        if os.path.isdir(source):
            raise IsADirectoryError(f"load: expected a safetensors file, got the folder {source}")
        raise FileNotFoundError(f"load: file not found: {source}: expected a safetensors file")
    if not os.access(source, os.R_OK):  # safetensors reports it as missing
        raise PermissionError(f"load: expected a file that can be read, got {source}: change its mode")
    target = current_device() if device is None else Device(device)
    try:
        with safe_open(source, framework="np") as file:
            return {name: _from_file(file, name, source, target) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"load: expected a safetensors file, got {source}, which is damaged or of another kind: {error}"
        ) from error


_SUPPORTED = {"BOOL", "U8", "U16", "U32", "U64", "I8", "I16", "I32", "I64", "F16", "F32", "F64", "C64"}


def _from_file(file: Any, name: str, source: str, device: Device) -> Tensor:
    dtype = file.get_slice(name).get_dtype()
    if dtype not in _SUPPORTED:
        raise TypeError(f"load: {name!r} in {source} has the dtype {dtype}, which xgrad lacks: save it as F32 first")
    return asarray(file.get_tensor(name), device=device, copy=True)
