"""Activations: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import InPlace, Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

_INPLACE = "inplace~=False"


class ReLU(InPlace, xnn.ReLU, signature=_INPLACE):
    """`torch.nn.ReLU`."""


class ReLU6(InPlace, xnn.ReLU6, signature=_INPLACE):
    """`torch.nn.ReLU6`."""


class SELU(InPlace, xnn.SELU, signature=_INPLACE):
    """`torch.nn.SELU`."""


class SiLU(InPlace, xnn.SiLU, signature=_INPLACE):
    """`torch.nn.SiLU`."""


class Mish(InPlace, xnn.Mish, signature=_INPLACE):
    """`torch.nn.Mish`."""


class Hardsigmoid(InPlace, xnn.Hardsigmoid, signature=_INPLACE):
    """`torch.nn.Hardsigmoid`."""


class Hardswish(InPlace, xnn.Hardswish, signature=_INPLACE):
    """`torch.nn.Hardswish`."""


class ELU(InPlace, xnn.ELU, signature=f"alpha=1.0 {_INPLACE}"):
    """`torch.nn.ELU`."""


class CELU(InPlace, xnn.CELU, signature=f"alpha=1.0 {_INPLACE}"):
    """`torch.nn.CELU`."""


class LeakyReLU(InPlace, xnn.LeakyReLU, signature=f"negative_slope=0.01 {_INPLACE}"):
    """`torch.nn.LeakyReLU`."""


class Hardtanh(
    InPlace,
    xnn.Hardtanh,
    signature=f"min_val=-1.0 max_val=1.0 {_INPLACE} min_value!=None max_value!=None",
):
    """`torch.nn.Hardtanh`."""


class Threshold(InPlace, xnn.Threshold, signature=f"threshold value {_INPLACE}"):
    """`torch.nn.Threshold`."""


class Sigmoid(Module, xnn.Sigmoid, signature=""):
    """`torch.nn.Sigmoid`."""


class Tanh(Module, xnn.Tanh, signature=""):
    """`torch.nn.Tanh`."""


class LogSigmoid(Module, xnn.LogSigmoid, signature=""):
    """`torch.nn.LogSigmoid`."""


class Softsign(Module, xnn.Softsign, signature=""):
    """`torch.nn.Softsign`."""


class Tanhshrink(Module, xnn.Tanhshrink, signature=""):
    """`torch.nn.Tanhshrink`."""


class GELU(Module, xnn.GELU, signature="approximate='none'"):
    """`torch.nn.GELU`."""


class GLU(Module, xnn.GLU, signature="dim>axis=-1"):
    """`torch.nn.GLU`."""


class Hardshrink(Module, xnn.Hardshrink, signature="lambd=0.5"):
    """`torch.nn.Hardshrink`."""


class Softshrink(Module, xnn.Softshrink, signature="lambd=0.5"):
    """`torch.nn.Softshrink`."""


class Softplus(Module, xnn.Softplus, signature="beta=1.0 threshold=20.0"):
    """`torch.nn.Softplus`."""


class PReLU(Module, xnn.PReLU, signature="num_parameters=1 init=0.25 device=None dtype=None"):
    """`torch.nn.PReLU`."""


class _Softmax(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Softmax):
    """`torch.nn.Softmax`."""

    def forward(self, input: Any) -> Any:
        """Return the softmax along ``dim``."""
        return F.softmax(input, self.dim)


class LogSoftmax(_Softmax):
    """`torch.nn.LogSoftmax`."""

    def forward(self, input: Any) -> Any:
        """Return the logarithm of the softmax along ``dim``."""
        return F.log_softmax(input, self.dim)


class Softmin(_Softmax):
    """`torch.nn.Softmin`."""

    def forward(self, input: Any) -> Any:
        """Return the softmax of the negative values along ``dim``."""
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """`torch.nn.Softmax2d`."""

    def forward(self, input: Any) -> Any:
        """Return the softmax over channels."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 axes, got shape {tuple(input.shape)}")
        return F.softmax(input, -3)
