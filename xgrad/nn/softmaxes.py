"""Softmax and its relatives as modules."""

from __future__ import annotations

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.activations import Activation
from xgrad.nn.module import Module
from xgrad.support.hints import explained


class Softmax(Activation):
    r"""Exponentials scaled to a sum of 1 along an axis.

    Parameters
    ----------
    axis : int, default -1
        The axis along which the results sum to 1.

    Raises
    ------
    IndexError
        In the call, if the axis does not exist.

    Notes
    -----
    .. math:: y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softmax()(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """

    function = staticmethod(F.softmax)
    options = ("axis",)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis


class LogSoftmax(Activation):
    r"""The logarithm of `Softmax`, computed so that small probabilities are not lost.

    Parameters
    ----------
    axis : int, default -1
        The axis along which probabilities sum to 1.

    Raises
    ------
    IndexError
        In the call, if the axis does not exist.

    Notes
    -----
    .. math:: y_i = x_i - \ln\left(\sum_j e^{x_j}\right)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LogSoftmax()(xgrad.asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """

    function = staticmethod(F.log_softmax)
    options = ("axis",)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis


class Softmin(Activation):
    r"""The softmax of the negative input: the smallest element has the largest share.

    Parameters
    ----------
    axis : int, default -1
        The axis along which the results sum to 1.

    Raises
    ------
    IndexError
        In the call, if the axis does not exist.

    Notes
    -----
    .. math:: y_i = \frac{e^{-x_i}}{\sum_j e^{-x_j}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softmin()(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """

    function = staticmethod(F.softmin)
    options = ("axis",)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis


class Softmax2d(Module):
    """Softmax over the channels of each place of images.

    The input has shape (N, C, H, W) or (C, H, W).

    Raises
    ------
    ValueError
        In the call, if the input has another number of axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softmax2d()(xgrad.zeros((1, 2, 1, 2))).tolist()
    [[[[0.5, 0.5]], [[0.5, 0.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        input = as_tensor("Softmax2d", "input", input)
        if input.ndim not in (3, 4):
            raise ValueError(
                "Softmax2d: expected input of shape (N, C, H, W) or (C, H, W), got shape"
                f" {input.shape}"
            )
        return F.softmax(input, axis=-3)
