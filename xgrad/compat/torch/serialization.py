"""`torch.save` and `torch.load` in xgrad's format, in which nothing is executed."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.serialization import serialized


def save(obj: Any, f: Any, **options: Any) -> None:
    """Save tensors, numbers, strings, and dicts, lists and tuples of them: see `xgrad.save`."""
    known = {"_use_new_zipfile_serialization", "pickle_module", "pickle_protocol"}
    if unknown := set(options) - known:
        raise TypeError(f"torch.save: unknown arguments {sorted(unknown)}")
    if hasattr(f, "write"):
        f.write(serialized(obj))
    else:
        xgrad.save(obj, f)


def load(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Load the state from a file of `save`, or from any safetensors file: see `xgrad.load`."""
    if unknown := set(options) - {"weights_only", "mmap", "pickle_module", "encoding"}:
        raise TypeError(f"torch.load: unknown arguments {sorted(unknown)}")
    if hasattr(f, "read"):  # the reader of the format takes a path
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "content of a file object")
            with open(path, "wb") as file:
                file.write(f.read())
            return load(path, map_location, **options)
    device = None if map_location is None else _device(map_location)
    return as_torch(xgrad.load(f, device=device))


def _device(map_location: Any) -> Any:
    if isinstance(map_location, (str, xgrad.Device)):
        return map_location
    if callable(map_location):
        storage = object()
        with suppress(AttributeError):  # which methods of storages raise
            if map_location(storage, "cpu") is storage:  # the tensors stay on the CPU
                return "cpu"
    raise NotImplementedError(
        "torch.load: expected a device as map_location in xgrad.compat.torch, got"
        f" {type(map_location).__name__}"
    )
