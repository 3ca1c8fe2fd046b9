"""Layers that undo maximum pooling, and that pool by norms."""

from __future__ import annotations

from typing import Any, ClassVar

from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.ops.lp_pooling import norm_type_of, pool_norm
from xgrad.ops.unpooling import unpool_maximum
from xgrad.ops.windows import Lengths, lengths


class _MaxUnpooling(Module):
    """The places of the largest elements of windows over `ndim` axes."""

    ndim: ClassVar[int]

    def __init__(
        self, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0
    ) -> None:
        super().__init__()
        name, ndim = type(self).__name__, self.ndim
        self.kernel_size = lengths(name, "kernel_size", kernel_size, ndim)
        self.stride = lengths(name, "stride", kernel_size if stride is None else stride, ndim)
        self.padding = lengths(name, "padding", padding, ndim, 0)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the elements of `input` at their `indices`, and zeros elsewhere.

        `output_size` is the shape of the result, where the window alone does not decide it.
        """
        options = self.kernel_size, self.stride, self.padding, output_size
        return unpool_maximum(type(self).__name__, input, indices, *options, self.ndim)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPooling(Module):
    """The norms of windows over `ndim` axes."""

    ndim: ClassVar[int]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        norm_type_of(name, norm_type)
        lengths(name, "kernel_size", kernel_size, self.ndim)
        lengths(name, "stride", kernel_size if stride is None else stride, self.ndim)
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norm of each window."""
        options = self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        return pool_norm(type(self).__name__, input, *options, self.ndim)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride},"
            f" ceil_mode={self.ceil_mode}"
        )


class MaxUnpool1d(_MaxUnpooling):
    """The results of `MaxPool1d` at their places, with zeros elsewhere.

    The layer is called with the two results of a `MaxPool1d` with ``return_indices=True``, of shape
    (N, C, L) or (C, L), and with an optional `output_size`: see `functional.max_unpool1d`.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling, by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shapes do not fit.
    TypeError, IndexError
        In the call, if an index is not the index of an element of the result.

    Examples
    --------
    >>> import xgrad
    >>> y, indices = xgrad.nn.MaxPool1d(2, return_indices=True)(xgrad.ones((4, 3, 8)))
    >>> xgrad.nn.MaxUnpool1d(2)(y, indices).shape
    (4, 3, 8)
    """

    ndim = 1


class MaxUnpool2d(_MaxUnpooling):
    """The results of `MaxPool2d` at their places, with zeros elsewhere.

    The layer is called with the two results of a `MaxPool2d` with ``return_indices=True``, of shape
    (N, C, H, W) or (C, H, W), and with an optional `output_size`: see `functional.max_unpool2d`.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling, by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shapes do not fit.
    TypeError, IndexError
        In the call, if an index is not the index of an element of the result.

    Examples
    --------
    >>> import xgrad
    >>> y, indices = xgrad.nn.MaxPool2d(2, return_indices=True)(xgrad.ones((4, 3, 8, 8)))
    >>> xgrad.nn.MaxUnpool2d(2)(y, indices).shape
    (4, 3, 8, 8)
    """

    ndim = 2


class MaxUnpool3d(_MaxUnpooling):
    """The results of `MaxPool3d` at their places, with zeros elsewhere.

    The layer is called with the two results of a `MaxPool3d` with ``return_indices=True``, of shape
    (N, C, D, H, W) or (C, D, H, W), and with an optional `output_size`: see
    `functional.max_unpool3d`.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling, by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shapes do not fit.
    TypeError, IndexError
        In the call, if an index is not the index of an element of the result.

    Examples
    --------
    >>> import xgrad
    >>> y, indices = xgrad.nn.MaxPool3d(2, return_indices=True)(xgrad.ones((4, 3, 8, 8, 8)))
    >>> xgrad.nn.MaxUnpool3d(2)(y, indices).shape
    (4, 3, 8, 8, 8)
    """

    ndim = 3


class LPPool1d(_LPPooling):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window over one axis.

    The input has shape (N, C, L) or (C, L), and the output has L' in place of L: see
    `functional.lp_pool1d`.

    Parameters
    ----------
    norm_type : float
        The power, not 0.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows, by default `kernel_size`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        If `norm_type` is not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LPPool1d(2, 2)(xgrad.ones((4, 3, 8))).shape
    (4, 3, 4)
    """

    ndim = 1


class LPPool2d(_LPPooling):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window over two axes.

    The input has shape (N, C, H, W) or (C, H, W), and the output has H', W' in place of H, W: see
    `functional.lp_pool2d`.

    Parameters
    ----------
    norm_type : float
        The power, not 0.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows, by default `kernel_size`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        If `norm_type` is not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LPPool2d(2, 2)(xgrad.ones((4, 3, 8, 8))).shape
    (4, 3, 4, 4)
    """

    ndim = 2


class LPPool3d(_LPPooling):
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window over three axes.

    The input has shape (N, C, D, H, W) or (C, D, H, W), and the output has D', H', W' in place of
    D, H, W: see `functional.lp_pool3d`.

    Parameters
    ----------
    norm_type : float
        The power, not 0.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows, by default `kernel_size`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        If `norm_type` is not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LPPool3d(2, 2)(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 3, 4, 4, 4)
    """

    ndim = 3
