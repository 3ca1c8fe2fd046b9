"""Pooling of sequences and images: the largest element or the average of each window."""

from __future__ import annotations

from typing import Any, Literal, overload

from xgrad.core.tensor import Tensor
from xgrad.ops.pooling import adapt_average, adapt_maximum, pool_average, pool_maximum
from xgrad.ops.windows import Lengths


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    r"""Return the largest element of each window over one axis.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of elements added before and after each axis; they are never the largest.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too, for `max_unpool1d`.

    Returns
    -------
    Tensor, or a tuple of two tensors
        Of shape (N, C, L') or (C, L'); with `return_indices`, also the indices in the
        spatial axes, flattened, as int64.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_p = \max_k\, x_{s p + d k - a}

    - Gradient for `input`: :math:`\bar x_q = \sum_p \bar y_p\, [q = q_p]`, with the first largest
      element :math:`q_p` of the window :math:`p`

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    On ties, the first element gets the gradient.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.max_pool1d(xgrad.asarray([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[3., 2.]])
    """
    options = kernel_size, stride, padding, dilation, ceil_mode, return_indices
    return pool_maximum("max_pool1d", input, *options, 1)


def avg_pool1d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    r"""Return the average of each window over one axis.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of zeros added before and after each axis.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too.
    count_include_pad : bool, default True
        Whether the zeros of the padding count as elements.

    Returns
    -------
    Tensor
        Of shape (N, C, L') or (C, L').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_p = \frac{1}{K} \sum_k x_{s p + k - a}

    - Gradient for `input`: :math:`\bar x_q = \frac{1}{K} \sum_{p, k:\, s p + k - a = q} \bar y_p`

    Here, :math:`s` is the stride, :math:`a` the padding, and :math:`K` the number of elements that
    count.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.avg_pool1d(xgrad.asarray([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[2., 1.]])
    """
    return pool_average(
        "avg_pool1d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, 1
    )


def adaptive_avg_pool1d(input: Tensor, output_size: int | None) -> Tensor:
    r"""Return the average of each of `output_size` bins of one axis.

    Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L, so bins
    may overlap.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    output_size : int or None
        The number of bins; None for one bin per element.

    Returns
    -------
    Tensor
        Of shape (N, C, L') or (C, L').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_i = \frac{1}{|B_i|} \sum_{q \in B_i} x_q

    :math:`B_i` are the elements of bin :math:`i`.

    - Gradient for `input`: :math:`\bar x_q = \sum_{i:\, q \in B_i} \bar y_i / |B_i|`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.adaptive_avg_pool1d(xgrad.asarray([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[2., 1.]])
    """
    return adapt_average("adaptive_avg_pool1d", input, output_size, 1)


@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: int | None, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: int | None, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d(
    input: Tensor, output_size: int | None, return_indices: bool = False
) -> Any:
    r"""Return the largest element of each of `output_size` bins of one axis.

    Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L, so bins
    may overlap.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    output_size : int or None
        The number of bins; None for one bin per element.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too.

    Returns
    -------
    Tensor, or a tuple of two tensors
        Of shape (N, C, L') or (C, L'); with `return_indices`, also the indices in the
        spatial axes, flattened, as int64.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_i = \max_{q \in B_i}\, x_q

    :math:`B_i` are the elements of bin :math:`i`.

    - Gradient for `input`: :math:`\bar x_q = \sum_i \bar y_i\, [q = q_i]`, with the first largest
      element :math:`q_i` of bin :math:`i`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.adaptive_max_pool1d(xgrad.asarray([[1.0, 3.0, 2.0, 0.0]]), 2)
    Tensor([[3., 2.]])
    """
    return adapt_maximum("adaptive_max_pool1d", input, output_size, return_indices, 1)


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    r"""Return the largest element of each window over two axes.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of elements added before and after each axis; they are never the largest.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too, for `max_unpool2d`.

    Returns
    -------
    Tensor, or a tuple of two tensors
        Of shape (N, C, H', W') or (C, H', W'); with `return_indices`, also the indices in the
        spatial axes, flattened, as int64.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_p = \max_k\, x_{s p + d k - a}

    - Gradient for `input`: :math:`\bar x_q = \sum_p \bar y_p\, [q = q_p]`, with the first largest
      element :math:`q_p` of the window :math:`p`

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    On ties, the first element gets the gradient.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.max_pool2d(xgrad.asarray([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    Tensor([[[3.]]])
    """
    options = kernel_size, stride, padding, dilation, ceil_mode, return_indices
    return pool_maximum("max_pool2d", input, *options, 2)


def avg_pool2d(
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    r"""Return the average of each window over two axes.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The number of zeros added before and after each axis.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too.
    count_include_pad : bool, default True
        Whether the zeros of the padding count as elements.
    divisor_override : int, optional
        The divisor of the sums; by default the number of elements.

    Returns
    -------
    Tensor
        Of shape (N, C, H', W') or (C, H', W').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_p = \frac{1}{K} \sum_k x_{s p + k - a}

    - Gradient for `input`: :math:`\bar x_q = \frac{1}{K} \sum_{p, k:\, s p + k - a = q} \bar y_p`

    Here, :math:`s` is the stride, :math:`a` the padding, and :math:`K` the number of elements that
    count.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.avg_pool2d(xgrad.asarray([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    Tensor([[[1.5]]])
    """
    return pool_average(
        "avg_pool2d",
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        2,
        divisor_override,
    )


def adaptive_avg_pool2d(input: Tensor, output_size: int | tuple[int | None, ...] | None) -> Tensor:
    r"""Return the average of each of `output_size` bins along two axes.

    Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L, so bins
    may overlap.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    output_size : int, None, or a tuple of them
        The number of bins; None for one bin per element.

    Returns
    -------
    Tensor
        Of shape (N, C, H', W') or (C, H', W').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_i = \frac{1}{|B_i|} \sum_{q \in B_i} x_q

    :math:`B_i` are the elements of bin :math:`i`.

    - Gradient for `input`: :math:`\bar x_q = \sum_{i:\, q \in B_i} \bar y_i / |B_i|`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.adaptive_avg_pool2d(
    ...     xgrad.asarray([[[1.0, 3.0], [2.0, 0.0]]]), 1
    ... )
    Tensor([[[1.5]]])
    """
    return adapt_average("adaptive_avg_pool2d", input, output_size, 2)


@overload
def adaptive_max_pool2d(
    input: Tensor,
    output_size: int | tuple[int | None, ...] | None,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor,
    output_size: int | tuple[int | None, ...] | None,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d(
    input: Tensor, output_size: int | tuple[int | None, ...] | None, return_indices: bool = False
) -> Any:
    r"""Return the largest element of each of `output_size` bins along two axes.

    Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ of an axis of length L, so bins
    may overlap.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    output_size : int, None, or a tuple of them
        The number of bins; None for one bin per element.
    return_indices : bool, default False
        Whether to return the indices of the largest elements, too.

    Returns
    -------
    Tensor, or a tuple of two tensors
        Of shape (N, C, H', W') or (C, H', W'); with `return_indices`, also the indices in the
        spatial axes, flattened, as int64.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_i = \max_{q \in B_i}\, x_q

    :math:`B_i` are the elements of bin :math:`i`.

    - Gradient for `input`: :math:`\bar x_q = \sum_i \bar y_i\, [q = q_i]`, with the first largest
      element :math:`q_i` of bin :math:`i`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.adaptive_max_pool2d(
    ...     xgrad.asarray([[[1.0, 3.0], [2.0, 0.0]]]), 1
    ... )
    Tensor([[[3.]]])
    """
    return adapt_maximum("adaptive_max_pool2d", input, output_size, return_indices, 2)
