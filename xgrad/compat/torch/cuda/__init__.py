"""`torch.cuda`: questions about GPUs, and the calls that need no action."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.cuda import amp
from xgrad.compat.torch.random import get_rng_state, manual_seed, set_rng_state
from xgrad.compat.torch.unavailable import raise_missing

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_rng_state",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "synchronize",
]

manual_seed_all = manual_seed


def device_count() -> int:
    """Return the number of GPUs that can be used: see `xgrad.devices`."""
    return sum(device.type == "cuda" for device in xgrad.devices())


def is_available() -> bool:
    """Return whether there is a GPU that can be used."""
    return device_count() > 0


def is_initialized() -> bool:
    """Return whether there is a GPU that can be used."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: xgrad has no bfloat16."""
    return False


def current_device() -> int:
    """Return the index of the GPU that ``"cuda"`` stands for."""
    return xgrad.Device("cuda").index


def set_device(device: Any) -> None:
    """Accept the GPU that ``"cuda"`` stands for; another one must be named, as ``"cuda:1"``."""
    index = device if isinstance(device, int) else xgrad.Device(device).index
    if index != current_device():
        raise NotImplementedError(
            "torch.cuda.set_device is not available in xgrad.compat.torch: name the device, as in"
            f" .to('cuda:{index}'), or set CUDA_VISIBLE_DEVICES"
        )


def get_device_name(device: Any = None) -> str:
    """Return the name of a GPU, as xgrad calls it."""
    return str(xgrad.Device(device or "cuda"))


def synchronize(device: Any = None) -> None:
    """Wait until all queued work on a GPU is done."""
    if is_available():
        xgrad.Device(device or "cuda").synchronize()


def empty_cache() -> None:
    """Do nothing: the memory pool stays."""


def memory_allocated(device: Any = None) -> int:
    """Return the bytes in use on a GPU, 0 without one."""
    return int(xgrad.Device(device or "cuda").memory().get("used", 0)) if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """Return the bytes in use on a GPU: peaks are not recorded."""
    return memory_allocated(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: peaks are not recorded."""


def __getattr__(name: str) -> Any:
    raise_missing("torch.cuda", name)
