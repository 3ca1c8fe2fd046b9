"""`torch.backends.cudnn`: settings of a library that xgrad does not use, which have no effect."""

from __future__ import annotations

__all__ = [
    "allow_tf32",
    "benchmark",
    "deterministic",
    "enabled",
    "is_available",
    "version",
]

allow_tf32 = True
benchmark = False
deterministic = True
enabled = False


def is_available() -> bool:
    """Return False: xgrad does not use cuDNN."""
    return False


def version() -> None:
    """Return None: there is no cuDNN."""
