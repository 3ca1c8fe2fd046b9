"""Pooling layers of volumes."""

from __future__ import annotations

from xgrad.nn.pooling import (
    AdaptiveAvgPooling,
    AdaptiveMaxPooling,
    MaxPooling,
    WeightedAvgPooling,
)


class MaxPool3d(MaxPooling):
    """The largest element of each window over three axes.

    The input has shape (N, C, D, H, W) or (C, D, H, W), and the output has D', H', W' in place of
    D, H, W, with H' = ⌊(H + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1. On ties, the
    first element gets the gradient.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows, by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of elements to add before and after each axis; they are never the largest.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too, for `MaxUnpool3d`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MaxPool3d(2)(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 3, 4, 4, 4)
    """

    ndim = 3


class AvgPool3d(WeightedAvgPooling):
    """The average of each window over three axes.

    The input has shape (N, C, D, H, W) or (C, D, H, W), and the output has D', H', W' in place of
    D, H, W, with H' = ⌊(H + 2 padding - kernel_size) / stride⌋ + 1.

    Parameters
    ----------
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows, by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of zeros to add before and after each axis.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.
    count_include_pad : bool, default True
        Whether the zeros of the padding count as elements.
    divisor_override : int, optional
        The divisor of the sums; by default the number of elements.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.AvgPool3d(2)(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 3, 4, 4, 4)
    """

    ndim = 3


class AdaptiveAvgPool3d(AdaptiveAvgPooling):
    """The average of each of `output_size` bins along three axes.

    The input has shape (N, C, D, H, W) or (C, D, H, W). Bin i of n holds the elements from ⌊i L /
    n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L: bins may overlap.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        The number of bins; None for one bin per element.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.AdaptiveAvgPool3d((5, 1, 2))(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 3, 5, 1, 2)
    """

    ndim = 3


class AdaptiveMaxPool3d(AdaptiveMaxPooling):
    """The largest element of each of `output_size` bins along three axes.

    The input has shape (N, C, D, H, W) or (C, D, H, W). Bin i of n holds the elements from ⌊i L /
    n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L: bins may overlap.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        The number of bins; None for one bin per element.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.AdaptiveMaxPool3d((5, 1, 2))(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 3, 5, 1, 2)
    """

    ndim = 3
