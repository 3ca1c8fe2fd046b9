"""Windows of images as columns of a matrix, and shuffles of channels and pixels."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.manipulation import permute_dims, reshape
from xgrad.ops.windows import Lengths, Window, batched, lengths, pad
from xgrad.support.hints import shown


def _folded(g: Any, xp: Any, window: Window) -> Any:
    return call_op(windows_folded, xp, g, window=window)


@derivative(_folded, lowest=FLOATING)
def windows_unfolded(xp: Any, x: Any, *, window: Window) -> Any:
    r"""Return the elements of each window of an input of shape (N, C, ...) as a column.

    The result has shape (N, C · kernel, windows).

    Notes
    -----
    .. math:: y_{c k, p} = x_{c, s p + d k - a}

    - Gradient for `x`: :math:`\bar x_{c, q} = \sum_{k, p:\, s p + d k - a = q} \bar y_{c k, p}`
    """
    padded = pad(xp, x, window, 0)
    columns = xp.stack([padded[key] for key in window.taps], axis=2)
    rows = x.shape[1] * math.prod(window.kernel)
    return xp.reshape(columns, (x.shape[0], rows, math.prod(window.out)))


@derivative(lambda g, xp, window: call_op(windows_unfolded, xp, g, window=window), lowest=FLOATING)
def windows_folded(xp: Any, columns: Any, *, window: Window) -> Any:
    r"""Return the gradient of `windows_unfolded`: for each element, the sum over its windows.

    Notes
    -----
    .. math:: y_{c, q} = \sum_{k, p:\, s p + d k - a = q} x_{c k, p}

    - Gradient for `columns`: :math:`\bar x_{c k, p} = \bar y_{c, s p + d k - a}`
    """
    taps = math.prod(window.kernel)
    images, channels = columns.shape[0], columns.shape[1] // taps
    columns = xp.reshape(columns, (images, channels, taps, *window.out))
    shape = (images, channels, *window.padded)
    out = xp.zeros(shape, dtype=columns.dtype, device=columns.device)
    for i, key in enumerate(window.taps):
        out[key] += columns[:, :, i, ...]
    return out[window.inner]


def _window(
    name: str,
    size: tuple[int, ...],
    kernel_size: Lengths,
    dilation: Lengths,
    padding: Lengths,
    stride: Lengths,
) -> Window:
    """Return the window over images of a size."""
    before = lengths(name, "padding", padding, 2, 0)
    window = Window(
        size,
        lengths(name, "kernel_size", kernel_size, 2),
        lengths(name, "stride", stride, 2),
        tuple([(p, p) for p in before]),
        lengths(name, "dilation", dilation, 2),
    )
    if min(window.out) < 1:
        raise ValueError(
            f"{name}: expected images not smaller than the window, {window.span}, got"
            f" {window.padded}"
        )
    return window


def unfold(
    input: Tensor,
    kernel_size: Lengths,
    dilation: Lengths = 1,
    padding: Lengths = 0,
    stride: Lengths = 1,
) -> Tensor:
    r"""Return the elements of each window of images as a column.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (C, H, W), floating.
    kernel_size : int or tuple of int
        The height and the width of a window.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    padding : int or tuple of int, default 0
        The number of zeros added before and after each axis.
    stride : int or tuple of int, default 1
        The distance between windows.

    Returns
    -------
    Tensor
        Of shape (N, C · kernel, windows) or (C · kernel, windows), with windows in row order.

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_{c k, p} = x_{c, s p + d k - a}

    :math:`k` is an element of a window, :math:`p` a window, :math:`s` the ``stride``, :math:`d` the
    ``dilation``, and :math:`a` the ``padding``.

    - Gradient for `input`:
      :math:`\bar x_{c, q} = \sum_{k, p:\, s p + d k - a = q} \bar y_{c k, p}`

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.reshape(xgrad.arange(6.0), (1, 2, 3))
    >>> xgrad.nn.functional.unfold(x, (2, 1))
    Tensor([[0., 1., 2.],
            [3., 4., 5.]])
    """
    return unfold_images("unfold", input, kernel_size, dilation, padding, stride)


def unfold_images(
    name: str,
    input: Tensor,
    kernel_size: Lengths,
    dilation: Lengths,
    padding: Lengths,
    stride: Lengths,
) -> Tensor:
    """Return the elements of windows as columns; error messages start with `name`."""
    input, of_batch = batched(name, input, 2)
    window = _window(name, input.shape[2:], kernel_size, dilation, padding, stride)
    out = windows_unfolded(input, window=window)
    return out if of_batch else out[0, ...]


def fold(
    input: Tensor,
    output_size: Lengths,
    kernel_size: Lengths,
    dilation: Lengths = 1,
    padding: Lengths = 0,
    stride: Lengths = 1,
) -> Tensor:
    r"""Return images whose elements are sums of the elements of windows: the transpose of `unfold`.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C · kernel, windows) or (C · kernel, windows), floating.
    output_size : int or tuple of int
        The height and the width of the images.
    kernel_size : int or tuple of int
        The height and the width of a window.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    padding : int or tuple of int, default 0
        The number of elements removed before and after each axis.
    stride : int or tuple of int, default 1
        The distance between windows.

    Returns
    -------
    Tensor
        Of shape (N, C, H, W) or (C, H, W).

    Raises
    ------
    ValueError
        If an argument is invalid, or the shapes do not fit.

    Notes
    -----
    .. math:: y_{c, q} = \sum_{k, p:\, s p + d k - a = q} x_{c k, p}

    The letters are the letters of `unfold`.

    - Gradient for `input`: :math:`\bar x_{c k, p} = \bar y_{c, s p + d k - a}`

    Examples
    --------
    >>> import xgrad
    >>> columns = xgrad.ones((4, 2))  # two windows of 2 x 2, which overlap
    >>> xgrad.nn.functional.fold(columns, (2, 3), 2)
    Tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    return fold_images("fold", input, output_size, kernel_size, dilation, padding, stride)


def fold_images(
    name: str,
    input: Tensor,
    output_size: Lengths,
    kernel_size: Lengths,
    dilation: Lengths,
    padding: Lengths,
    stride: Lengths,
) -> Tensor:
    """Return images as sums of windows; error messages start with `name`."""
    input = as_tensor(name, "input", input)
    size = lengths(name, "output_size", output_size, 2)
    window = _window(name, size, kernel_size, dilation, padding, stride)
    taps, places = math.prod(window.kernel), math.prod(window.out)
    if input.ndim not in (2, 3) or input.shape[-2] % taps or input.shape[-1] != places:
        raise ValueError(
            f"{name}: expected input of shape (N, C * {taps}, {places}) or (C * {taps}, {places}),"
            f" got shape {input.shape}"
        )
    columns = input if input.ndim == 3 else reshape(input, (1, *input.shape))
    out = windows_folded(columns, window=window)
    return out if input.ndim == 3 else out[0, ...]


# Shuffles


def checked_factor(name: str, argument: str, value: Any) -> int:
    """Return an argument as an int; ValueError unless it is an int above 0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}: expected an int above 0 for {argument}, got {shown(value)}")
    return int(value)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    r"""Return images that are larger by a factor, with pixels taken from groups of channels.

    W. Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network", CVPR, 2016.

    Parameters
    ----------
    input : Tensor
        Of shape (..., C · factor², H, W).
    upscale_factor : int
        The factor.

    Returns
    -------
    Tensor
        Of shape (..., C, H · factor, W · factor).

    Raises
    ------
    ValueError
        If the factor is not an int above 0, or its square does not divide the channels.

    Notes
    -----
    .. math:: y_{c,\, r h + i,\, r w + j} = x_{c r^2 + i r + j,\, h,\, w}

    :math:`r` is the ``upscale_factor``.

    - Gradient for `input`: :math:`\bar y_{c,\, r h + i,\, r w + j}`

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.reshape(xgrad.arange(4.0), (4, 1, 1))
    >>> xgrad.nn.functional.pixel_shuffle(x, 2)
    Tensor([[[0., 1.],
             [2., 3.]]])
    """
    name = "pixel_shuffle"
    input, factor = (
        as_tensor(name, "input", input),
        checked_factor(name, "upscale_factor", upscale_factor),
    )
    if input.ndim < 3 or input.shape[-3] % factor**2:
        raise ValueError(
            f"{name}: expected input of shape (..., C * {factor**2}, H, W), got {input.shape}"
        )
    *lead, channels, height, width = input.shape
    n = len(lead)
    out = reshape(input, (*lead, channels // factor**2, factor, factor, height, width))
    out = permute_dims(out, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(out, (*lead, channels // factor**2, height * factor, width * factor))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    r"""Return images that are smaller by a factor, with pixels as channels.

    The inverse of `pixel_shuffle`.

    Parameters
    ----------
    input : Tensor
        Of shape (..., C, H · factor, W · factor).
    downscale_factor : int
        The factor.

    Returns
    -------
    Tensor
        Of shape (..., C · factor², H, W).

    Raises
    ------
    ValueError
        If the factor is not an int above 0, or does not divide the height and the width.

    Notes
    -----
    .. math:: y_{c r^2 + i r + j,\, h,\, w} = x_{c,\, r h + i,\, r w + j}

    :math:`r` is the ``downscale_factor``.

    - Gradient for `input`: :math:`\bar y_{c r^2 + i r + j,\, h,\, w}`

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.reshape(xgrad.arange(4.0), (1, 2, 2))
    >>> xgrad.nn.functional.pixel_unshuffle(x, 2).shape
    (4, 1, 1)
    """
    name = "pixel_unshuffle"
    input = as_tensor(name, "input", input)
    factor = checked_factor(name, "downscale_factor", downscale_factor)
    if input.ndim < 3 or input.shape[-1] % factor or input.shape[-2] % factor:
        raise ValueError(
            f"{name}: expected input of shape (..., C, H * {factor}, W * {factor}), got"
            f" {input.shape}"
        )
    *lead, channels, height, width = input.shape
    height, width, n = height // factor, width // factor, len(lead)
    out = reshape(input, (*lead, channels, height, factor, width, factor))
    out = permute_dims(out, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(out, (*lead, channels * factor**2, height, width))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    r"""Return the channels in an order in which each group of channels is spread over all groups.

    X. Zhang, X. Zhou, M. Lin, J. Sun, "ShuffleNet: an extremely efficient convolutional neural
    network for mobile devices", CVPR, 2018.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...).
    groups : int
        The number of groups, which divides the channels.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `groups` is not an int above 0, or does not divide the channels.

    Notes
    -----
    .. math:: y_{j g + i} = x_{i n + j}, \quad 0 \le j < n

    :math:`g` is the number of ``groups``, and :math:`n` the number of channels in a group.

    - Gradient for `input`: :math:`\bar y_{j g + i}`

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.reshape(xgrad.arange(4.0), (1, 4, 1))
    >>> xgrad.nn.functional.channel_shuffle(x, 2).tolist()
    [[[0.0], [2.0], [1.0], [3.0]]]
    """
    name = "channel_shuffle"
    input, groups = as_tensor(name, "input", input), checked_factor(name, "groups", groups)
    if input.ndim < 3 or input.shape[1] % groups:
        raise ValueError(
            f"{name}: expected input of shape (N, C, ...) with channels that {groups} groups"
            f" divide, got {input.shape}"
        )
    batch, channels, *rest = input.shape
    out = reshape(input, (batch, groups, channels // groups, *rest))
    out = permute_dims(out, (0, 2, 1, *range(3, out.ndim)))
    return reshape(out, input.shape)
