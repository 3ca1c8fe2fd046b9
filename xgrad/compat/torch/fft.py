"""`torch.fft`: PyTorch's signatures over `xgrad.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from xgrad import fft as xfft
from xgrad.compat.torch.creation import checked_options
from xgrad.compat.torch.tensor import torch_function
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.core.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else xgrad.astype(x, xgrad.get_default_dtype())


def _of_one_axis(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``name(input, n=None, dim=-1, norm=None)``."""

    def function(input: Tensor, n: int | None = None, dim: int = -1, norm: Any = None) -> Any:
        return op(_floating(input), n=n, axis=dim, norm=norm or "backward")

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _of_axes(name: str, op: Callable[..., Any], default: Any = None) -> Callable[..., Any]:
    """Return the function ``name(input, s=None, dim=None, norm=None)``."""

    def function(input: Tensor, s: Any = None, dim: Any = default, norm: Any = None) -> Any:
        axes = dim if dim is None or isinstance(dim, int) else tuple(dim)
        axes = (axes,) if isinstance(axes, int) else axes
        lengths = s if s is None or isinstance(s, int) else tuple(s)
        lengths = (lengths,) if isinstance(lengths, int) else lengths
        if lengths is not None and axes is None:  # PyTorch takes the last axes
            axes = tuple(range(input.ndim - len(lengths), input.ndim))
        return op(_floating(input), s=lengths, axes=axes, norm=norm or "backward")

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


fft, ifft, rfft, irfft, hfft, ihfft = (
    _of_one_axis(f.__name__, f)
    for f in (xfft.fft, xfft.ifft, xfft.rfft, xfft.irfft, xfft.hfft, xfft.ihfft)
)
fftn, ifftn, rfftn, irfftn = (
    _of_axes(f.__name__, f) for f in (xfft.fftn, xfft.ifftn, xfft.rfftn, xfft.irfftn)
)
fft2, ifft2, rfft2, irfft2 = (
    _of_axes(name, f, (-2, -1))
    for name, f in (
        ("fft2", xfft.fftn), ("ifft2", xfft.ifftn), ("rfft2", xfft.rfftn), ("irfft2", xfft.irfftn)
    )
)  # fmt: skip


@torch_function
def fftshift(input: Tensor, dim: Any = None) -> Any:
    """Return a spectrum with the frequency 0 in the middle: see `xgrad.fft.fftshift`."""
    return xfft.fftshift(input, axes=tuple(dim) if isinstance(dim, list) else dim)


@torch_function
def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """Return the inverse of `fftshift`: see `xgrad.fft.ifftshift`."""
    return xfft.ifftshift(input, axes=tuple(dim) if isinstance(dim, list) else dim)


@torch_function
def fftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """Return the frequencies of a spectrum: see `xgrad.fft.fftfreq`."""
    return xfft.fftfreq(n, d=d, **checked_options("fftfreq", options))


@torch_function
def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """Return the frequencies of a spectrum of real numbers: see `xgrad.fft.rfftfreq`."""
    return xfft.rfftfreq(n, d=d, **checked_options("rfftfreq", options))


def __getattr__(name: str) -> Any:
    raise_missing("torch.fft", name)
