"""Activations: functions of each element as modules."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.functional import relu, sigmoid, tanh
from xgrad.nn.module import Module


class ReLU(Module):
    """The positive part of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU()(xgrad.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return relu(input)


class Sigmoid(Module):
    """The logistic function of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Sigmoid()(xgrad.asarray([0.0]))
    Tensor([0.5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanh()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return tanh(input)
