"""Unpooling: the largest elements of windows back at their places, with zeros elsewhere."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import ones_like, zeros
from xgrad.ops.elementwise import maximum
from xgrad.ops.embedding import check_numbers
from xgrad.ops.indexing import put_along_axis
from xgrad.ops.manipulation import reshape
from xgrad.ops.tensor_conversion import astype
from xgrad.ops.windows import Lengths, batched, lengths
from xgrad.support.hints import shown


def _output_size(
    name: str,
    size: tuple[int, ...],
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    output_size: Any,
) -> tuple[int, ...]:
    """Return the lengths of the spatial axes of the result."""
    kernel = lengths(name, "kernel_size", kernel_size, len(size))
    strides = kernel if stride is None else lengths(name, "stride", stride, len(size))
    before = lengths(name, "padding", padding, len(size), 0)
    usual = tuple(
        [(n - 1) * s - 2 * p + k for n, s, p, k in zip(size, strides, before, kernel, strict=True)]
    )
    if output_size is None:
        out = usual
    else:
        given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,)
        out = lengths(name, "output_size", given[-len(size) :], len(size))
        fits = all(abs(n - m) < s for n, m, s in zip(out, usual, strides, strict=True))
        if len(given) not in (len(size), len(size) + 1, len(size) + 2) or not fits:
            raise ValueError(
                f"{name}: expected an output_size within stride, {strides}, of {usual}, got"
                f" {shown(output_size)}"
            )
    if min(out) < 1:
        raise ValueError(
            f"{name}: expected an output with elements, got input with lengths {size}: use less"
            " padding"
        )
    return out


def unpool_maximum(
    name: str,
    input: Tensor,
    indices: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    output_size: Any,
    ndim: int,
) -> Tensor:
    """Return the largest elements of windows over `ndim` axes at their places, and zeros elsewhere.

    Error messages start with `name`, the function or layer.
    """
    input, of_batch = batched(name, input, ndim)
    indices = as_tensor(name, "indices", indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected indices of integers, got {indices.dtype}")
    if indices.shape != (input.shape if of_batch else input.shape[1:]):
        raise ValueError(
            f"{name}: expected indices of the shape of input, got {indices.shape} for"
            f" {input.shape if of_batch else input.shape[1:]}"
        )
    size = _output_size(name, input.shape[2:], kernel_size, stride, padding, output_size)
    rows, places = math.prod(input.shape[:2]), math.prod(size)
    indices = reshape(astype(indices, int64), (rows, -1)) if indices.size else indices
    check_numbers(name, "indices", indices, places)
    values = reshape(input, (rows, -1)) if input.size else reshape(input, (rows, 0))
    indices = indices if indices.size else zeros((rows, 0), dtype=int64, device=input.device)
    shape = rows, places
    total = put_along_axis(values, indices, axis=1, shape=shape)
    count = put_along_axis(ones_like(values), indices, axis=1, shape=shape)
    out = total / maximum(count, 1)
    out = reshape(out, (*input.shape[:2], *size))
    return out if of_batch else out[0, ...]


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Any = None,
) -> Tensor:
    r"""Return the results of `max_pool1d` at their places, with zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    indices : Tensor
        The indices of `max_pool1d` with ``return_indices=True``, of the same shape.
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.
    output_size : tuple of int, optional
        The lengths of the result, where several inputs of the pooling have one result: less than
        `stride` away from the default, (L - 1) stride - 2 padding + kernel_size. The shape of the
        input of the pooling is accepted, too.

    Returns
    -------
    Tensor
        Of shape (N, C, L') or (C, L').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.
    TypeError
        If the indices are not integers.
    IndexError
        If an index is not that of an element of the result; not checked on ``cuda``, where the
        check would synchronize.

    Notes
    -----
    .. math:: y_q = \frac{1}{n_q} \sum_{p:\, k_p = q} x_p

    :math:`k` are the ``indices``, and :math:`n_q` is the number of them that are :math:`q`; the
    result is 0 where there are none.

    - Gradient for `input`: :math:`\bar y_{k_p} / n_{k_p}`

    Where an index repeats, as with windows that overlap, the result has the mean of its elements.
    They are equal if they come from the pooling. In PyTorch, one of them stays.

    Examples
    --------
    >>> import xgrad
    >>> F = xgrad.nn.functional
    >>> y, indices = F.max_pool1d(
    ...     xgrad.asarray([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True
    ... )
    >>> F.max_unpool1d(y, indices, 2)
    Tensor([[0., 3., 2., 0.]])
    """
    options = kernel_size, stride, padding, output_size
    return unpool_maximum("max_unpool1d", input, indices, *options, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Any = None,
) -> Tensor:
    r"""Return the results of `max_pool2d` at their places, with zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    indices : Tensor
        The indices of `max_pool2d` with ``return_indices=True``, of the same shape.
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.
    output_size : tuple of int, optional
        The lengths of the result, where several inputs of the pooling have one result: less than
        `stride` away from the default, (H - 1) stride - 2 padding + kernel_size. The shape of the
        input of the pooling is accepted, too.

    Returns
    -------
    Tensor
        Of shape (N, C, H', W') or (C, H', W').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.
    TypeError
        If the indices are not integers.
    IndexError
        If an index is not that of an element of the result; not checked on ``cuda``, where the
        check would synchronize.

    Notes
    -----
    .. math:: y_q = \frac{1}{n_q} \sum_{p:\, k_p = q} x_p

    :math:`k` are the ``indices``, and :math:`n_q` is the number of them that are :math:`q`; the
    result is 0 where there are none.

    - Gradient for `input`: :math:`\bar y_{k_p} / n_{k_p}`

    Where an index repeats, as with windows that overlap, the result has the mean of its elements.
    They are equal if they come from the pooling. In PyTorch, one of them stays.

    Examples
    --------
    >>> import xgrad
    >>> F = xgrad.nn.functional
    >>> y, indices = F.max_pool2d(
    ...     xgrad.asarray([[[1.0, 3.0], [2.0, 0.0]]]), 2, return_indices=True
    ... )
    >>> F.max_unpool2d(y, indices, 2)
    Tensor([[[0., 3.],
             [0., 0.]]])
    """
    options = kernel_size, stride, padding, output_size
    return unpool_maximum("max_unpool2d", input, indices, *options, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Any = None,
) -> Tensor:
    r"""Return the results of `max_pool3d` at their places, with zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, D, H, W) or (C, D, H, W), floating.
    indices : Tensor
        The indices of `max_pool3d` with ``return_indices=True``, of the same shape.
    kernel_size : int or tuple of int
        The length of a window of the pooling along each axis.
    stride : int or tuple of int, optional
        The distance between windows of the pooling; by default `kernel_size`.
    padding : int or tuple of int, default 0
        The padding of the pooling.
    output_size : tuple of int, optional
        The lengths of the result, where several inputs of the pooling have one result: less than
        `stride` away from the default, (D - 1) stride - 2 padding + kernel_size. The shape of the
        input of the pooling is accepted, too.

    Returns
    -------
    Tensor
        Of shape (N, C, D', H', W') or (C, D', H', W').

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.
    TypeError
        If the indices are not integers.
    IndexError
        If an index is not that of an element of the result; not checked on ``cuda``, where the
        check would synchronize.

    Notes
    -----
    .. math:: y_q = \frac{1}{n_q} \sum_{p:\, k_p = q} x_p

    :math:`k` are the ``indices``, and :math:`n_q` is the number of them that are :math:`q`; the
    result is 0 where there are none.

    - Gradient for `input`: :math:`\bar y_{k_p} / n_{k_p}`

    Where an index repeats, as with windows that overlap, the result has the mean of its elements.
    They are equal if they come from the pooling. In PyTorch, one of them stays.

    Examples
    --------
    >>> import xgrad
    >>> F = xgrad.nn.functional
    >>> x = xgrad.asarray([[[[1.0, 3.0], [2.0, 0.0]]]])
    >>> y, indices = F.max_pool3d(x, (1, 2, 2), return_indices=True)
    >>> F.max_unpool3d(y, indices, (1, 2, 2))
    Tensor([[[[0., 3.],
              [0., 0.]]]])
    """
    options = kernel_size, stride, padding, output_size
    return unpool_maximum("max_unpool3d", input, indices, *options, 3)
