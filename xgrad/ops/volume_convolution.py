"""Convolution of volumes: three spatial axes."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.ops.convolution import convolve, convolve_transposed
from xgrad.ops.windows import Lengths


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Tensor:
    r"""Return the cross-correlation of volumes and kernels, summed over channels, plus a bias.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, D, H, W), or (in, D, H, W) for a single volume.
    weight : Tensor
        Of shape (out, in / groups, K, K', K'').
    bias : Tensor, optional
        Of shape (out,).
    stride : int or tuple of int, default 1
        The distance from window to window.
    padding : int, tuple of int, 'valid' or 'same', default 0
        The number of zeros before and after each axis: none with ``'valid'``; with ``'same'``,
        which needs a stride of 1, as many as preserve the lengths.
    dilation : int or tuple of int, default 1
        The distance between elements under the kernel.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels.

    Returns
    -------
    Tensor
        Of shape (N, out, D', H', W'), with D' = ⌊(D + 2 padding - dilation (K - 1) - 1) / stride⌋ +
        1.

    Raises
    ------
    ValueError
        If an argument is none of the above, or the shapes do not fit.

    Notes
    -----
    .. math:: y_{n, o, p} = b_o + \sum_{c, k} w_{o, c, k}\, x_{n, c, q}, \quad q = s p + d k - a

    - Gradient for `input`:
      :math:`\sum_{o, p, k:\, s p + d k - a = q} w_{o, c, k}\, \bar y_{n, o, p}`
    - Gradient for `weight`: :math:`\sum_{n, p} \bar y_{n, o, p}\, x_{n, c, q}`
    - Gradient for `bias`: :math:`\sum_{n, p} \bar y_{n, o, p}`

    Here, :math:`p`, :math:`k` and :math:`q` are triples of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 3, 8, 8, 8)), xgrad.ones((8, 3, 5, 5, 5))
    >>> xgrad.nn.functional.conv3d(x, weight, padding=2).shape
    (1, 8, 8, 8, 8)
    """
    return convolve("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Tensor:
    r"""Return the transpose of `conv3d`: its gradient for the input.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, D, H, W), or (in, D, H, W) for a single volume.
    weight : Tensor
        Of shape (in, out / groups, K, K', K'').
    bias : Tensor, optional
        Of shape (out,).
    stride : int or tuple of int, default 1
        The distance from window to window.
    padding : int or tuple of int, default 0
        The padding of the convolution; the result is shorter by it at both ends.
    output_padding : int or tuple of int, default 0
        The number of elements added after each axis, to restore the last elements of an input
        that the stride of the convolution left out.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels.
    dilation : int or tuple of int, default 1
        The distance between elements under the kernel.

    Returns
    -------
    Tensor
        Of shape (N, out, D', H', W'), with D' = (D - 1) stride - 2 padding + dilation (K - 1) +
        output_padding + 1.

    Raises
    ------
    ValueError
        If an argument is none of the above, or the shapes do not fit.

    Notes
    -----
    .. math:: y_{n, o, q} = b_o + \sum_{c, p, k:\, s p + d k - a = q} w_{c, o, k}\, x_{n, c, p}

    - Gradient for `input`: :math:`\sum_{o, k} w_{c, o, k}\, \bar y_{n, o, s p + d k - a}`
    - Gradient for `weight`: :math:`\sum_{n, p} x_{n, c, p}\, \bar y_{n, o, s p + d k - a}`
    - Gradient for `bias`: :math:`\sum_{n, q} \bar y_{n, o, q}`

    Here, :math:`p`, :math:`k` and :math:`q` are triples of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 8, 4, 4, 4)), xgrad.ones((8, 3, 2, 2, 2))
    >>> xgrad.nn.functional.conv_transpose3d(x, weight, stride=2).shape
    (1, 3, 8, 8, 8)
    """
    return convolve_transposed(
        "conv_transpose3d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        3,
    )
