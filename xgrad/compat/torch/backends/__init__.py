"""`torch.backends`: settings of PyTorch's libraries, which may be set and have no effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xgrad.backend.devices import set_tf32
from xgrad.compat.torch.backends import cudnn
from xgrad.compat.torch.unavailable import raise_missing

__all__ = ["cuda", "cudnn", "mkl", "mps"]


class _MatrixProducts:
    """Settings of matrix products on GPUs."""

    _allow_tf32 = False

    @property
    def allow_tf32(self) -> bool:
        """Whether matrix products may use TF32: see `xgrad.set_tf32`."""
        return self._allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        self._allow_tf32 = bool(value)
        set_tf32(bool(value))


cuda: Any = SimpleNamespace(is_built=lambda: True, matmul=_MatrixProducts())
mps: Any = SimpleNamespace(is_available=lambda: False, is_built=lambda: False)
mkl: Any = SimpleNamespace(is_available=lambda: False)


def __getattr__(name: str) -> Any:
    raise_missing("torch.backends", name)
