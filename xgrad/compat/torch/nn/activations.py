"""Activations: PyTorch's signatures over `xgrad.nn`."""

from __future__ import annotations

from typing import Any

from xgrad import nn as xnn
from xgrad.compat.torch.nn import functional as F
from xgrad.compat.torch.nn.module import Module

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
    "RReLU",
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

_INPLACE = "inplace=False"


class ReLU(Module, xnn.ReLU, signature=_INPLACE):
    """`torch.nn.ReLU`."""


class ReLU6(Module, xnn.ReLU6, signature=_INPLACE):
    """`torch.nn.ReLU6`."""


class SELU(Module, xnn.SELU, signature=_INPLACE):
    """`torch.nn.SELU`."""


class SiLU(Module, xnn.SiLU, signature=_INPLACE):
    """`torch.nn.SiLU`."""


class Mish(Module, xnn.Mish, signature=_INPLACE):
    """`torch.nn.Mish`."""


class Hardsigmoid(Module, xnn.Hardsigmoid, signature=_INPLACE):
    """`torch.nn.Hardsigmoid`."""


class Hardswish(Module, xnn.Hardswish, signature=_INPLACE):
    """`torch.nn.Hardswish`."""


class ELU(Module, xnn.ELU, signature=f"alpha=1.0 {_INPLACE}"):
    """`torch.nn.ELU`."""


class CELU(Module, xnn.CELU, signature=f"alpha=1.0 {_INPLACE}"):
    """`torch.nn.CELU`."""


class LeakyReLU(Module, xnn.LeakyReLU, signature=f"negative_slope=0.01 {_INPLACE}"):
    """`torch.nn.LeakyReLU`."""


class Hardtanh(
    Module,
    xnn.Hardtanh,
    signature=f"min_val=-1.0 max_val=1.0 {_INPLACE} min_value!=None max_value!=None",
):
    """`torch.nn.Hardtanh`."""


class Threshold(Module, xnn.Threshold, signature=f"threshold value {_INPLACE}"):
    """`torch.nn.Threshold`."""


class RReLU(Module, xnn.RReLU, signature=f"lower=0.125 upper=0.3333333333333333 {_INPLACE}"):
    """`torch.nn.RReLU`."""


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


class Softmax2d(Module, xnn.Softmax2d, signature=""):
    """`torch.nn.Softmax2d`."""
