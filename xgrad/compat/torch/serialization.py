"""`torch.save` and `torch.load` in xgrad's format, in which nothing is executed."""

from __future__ import annotations

import os
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch


def save(obj: Any, f: Any, **options: Any) -> None:
    """Save tensors, numbers, strings, and dicts, lists and tuples of them: see `xgrad.save`."""
    if not isinstance(f, (str, os.PathLike)):
        raise NotImplementedError(
            "torch.save: a file object is not available in xgrad.compat.torch: give a path"
        )
    if ignored := set(options) - {"_use_new_zipfile_serialization", "pickle_protocol"}:
        raise TypeError(f"torch.save: unknown arguments {sorted(ignored)}")
    xgrad.save(obj, f)


def load(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Load the state from a file of `save`, or from any safetensors file: see `xgrad.load`."""
    if not isinstance(f, (str, os.PathLike)):
        raise NotImplementedError(
            "torch.load: a file object is not available in xgrad.compat.torch: give a path"
        )
    if ignored := set(options) - {"weights_only", "mmap", "pickle_module", "encoding"}:
        raise TypeError(f"torch.load: unknown arguments {sorted(ignored)}")
    if os.path.isfile(f) and _is_pickle(f):
        raise ValueError(
            f"torch.load: {os.fspath(f)} is a file of PyTorch, whose pickle could run any code, so"
            " it is not read: convert it where PyTorch is installed, with"
            " safetensors.torch.save_file(torch.load(path, weights_only=True), 'new.safetensors')"
        )
    device = None if map_location is None else _device(map_location)
    return as_torch(xgrad.load(f, device=device))


def _device(map_location: Any) -> Any:
    if isinstance(map_location, (str, xgrad.Device)):
        return map_location
    raise NotImplementedError(
        "torch.load: map_location must be a device in xgrad.compat.torch, got"
        f" {type(map_location).__name__}"
    )


def _is_pickle(path: Any) -> bool:
    """Return whether a file is a zip archive or a pickle, as PyTorch writes them."""
    with open(path, "rb") as file:
        start = file.read(4)
    return start[:2] in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05")
