"""Pooling by norms: a root of the sum of powers in each window."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import as_number
from xgrad.core.tensor import Tensor
from xgrad.ops.elementwise import pow
from xgrad.ops.pooling import pool_average
from xgrad.ops.precision import upcast, widened
from xgrad.ops.searching import where
from xgrad.ops.windows import Lengths, batched, lengths


def norm_type_of(name: str, norm_type: Any) -> float:
    """Return the order of a norm; ValueError unless it is a number other than 0."""
    if as_number(name, "norm_type", norm_type) == 0 or norm_type != norm_type:
        raise ValueError(f"{name}: expected a norm_type other than 0, got {norm_type}")
    return float(norm_type)


@upcast
def pool_norm(
    name: str,
    input: Tensor,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None,
    ceil_mode: bool,
    ndim: int,
) -> Tensor:
    """Return the norms of windows over `ndim` axes.

    Error messages start with `name`, the function or layer.
    """
    norm_type = norm_type_of(name, norm_type)
    (input,) = widened(input)
    input, of_batch = batched(name, input, ndim)
    count = math.prod(lengths(name, "kernel_size", kernel_size, ndim))
    total = pool_average(name, pow(input, norm_type), kernel_size, stride, 0, ceil_mode, True, ndim)
    total = total * count
    # The root has no derivative at 0, where the gradient is defined as 0.
    zero = total == 0
    out = where(zero, 0, pow(where(zero, 1, total), 1 / norm_type))
    return out if of_batch else out[0, ...]


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Return ``sum(x ** norm_type) ** (1 / norm_type)`` of each window over one axis.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L) or (C, L), floating.
    norm_type : float
        The power, not 0: 1 for sums, 2 for Euclidean norms. Powers and roots are of the elements
        themselves, not of their absolute values, as in PyTorch.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too; its sum is scaled to the size
        of a whole window.

    Returns
    -------
    Tensor
        Of shape (N, C, L') or (C, L'). Where the sum is 0, so is the gradient.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_o = \left(\sum_k x_{s o + k}^p\right)^{1 / p}

    - Gradient for `input`:
      :math:`\bar x_q = \sum_{o, k:\, s o + k = q} \bar y_o\, (x_q / y_o)^{p - 1}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.lp_pool1d(xgrad.asarray([[3.0, 4.0, 0.0, 2.0]]), 2, 2)
    Tensor([[5., 2.]])
    """
    return pool_norm("lp_pool1d", input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Return ``sum(x ** norm_type) ** (1 / norm_type)`` of each window over two axes.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    norm_type : float
        The power, not 0: 1 for sums, 2 for Euclidean norms. Powers and roots are of the elements
        themselves, not of their absolute values, as in PyTorch.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too; its sum is scaled to the size
        of a whole window.

    Returns
    -------
    Tensor
        Of shape (N, C, H', W') or (C, H', W'). Where the sum is 0, so is the gradient.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_o = \left(\sum_k x_{s o + k}^p\right)^{1 / p}

    - Gradient for `input`:
      :math:`\bar x_q = \sum_{o, k:\, s o + k = q} \bar y_o\, (x_q / y_o)^{p - 1}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.lp_pool2d(xgrad.asarray([[[3.0, 4.0]]]), 2, (1, 2))
    Tensor([[[5.]]])
    """
    return pool_norm("lp_pool2d", input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Return ``sum(x ** norm_type) ** (1 / norm_type)`` of each window over three axes.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, D, H, W) or (C, D, H, W), floating.
    norm_type : float
        The power, not 0: 1 for sums, 2 for Euclidean norms. Powers and roots are of the elements
        themselves, not of their absolute values, as in PyTorch.
    kernel_size : int or tuple of int
        The length of a window along each axis.
    stride : int or tuple of int, optional
        The distance between windows; by default `kernel_size`.
    ceil_mode : bool, default False
        Whether elements after the last whole window get a window too; its sum is scaled to the size
        of a whole window.

    Returns
    -------
    Tensor
        Of shape (N, C, D', H', W') or (C, D', H', W'). Where the sum is 0, so is the gradient.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_o = \left(\sum_k x_{s o + k}^p\right)^{1 / p}

    - Gradient for `input`:
      :math:`\bar x_q = \sum_{o, k:\, s o + k = q} \bar y_o\, (x_q / y_o)^{p - 1}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.lp_pool3d(xgrad.asarray([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    Tensor([[[[5.]]]])
    """
    return pool_norm("lp_pool3d", input, norm_type, kernel_size, stride, ceil_mode, 3)
