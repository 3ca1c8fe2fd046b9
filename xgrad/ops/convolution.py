"""Convolution and its two gradients: three bilinear ops.

The derivatives of each op are the other two. For any number of spatial axes, each op is one matrix
product of two of these: the weight, the gradient, and the columns of the input. The columns are a
matrix with the elements under the kernel as rows, and all positions of all images as columns.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.padding import pad as pad_axes
from xgrad.ops.precision import is_cast
from xgrad.ops.torch_padding import PADDING_MODES
from xgrad.ops.windows import AXES, Lengths, Pairs, Window, batched, lengths, pad
from xgrad.support.hints import shown


def _matrix(xp: Any, x: Any, groups: int, axes: int = 1) -> Any:
    """Return an array as a matrix with its first `axes` axes as rows, or as one for each group.

    The first axis is the channels, which the groups divide.
    """
    shape = (math.prod(x.shape[:axes]) // groups, math.prod(x.shape[axes:]))
    return xp.reshape(x, shape if groups == 1 else (groups, *shape))


def _swapped(xp: Any, x: Any) -> Any:
    """Swap the axes of images and channels."""
    return xp.permute_dims(x, (1, 0, *range(2, len(x.shape))))


def _by_channel(xp: Any, bias: Any, out: Any) -> Any:
    """Return a bias that broadcasts against an array whose first axis is the channels."""
    return xp.reshape(bias, (-1, *(1,) * (len(out.shape) - 1)))


def _columns(xp: Any, x: Any, window: Window, groups: int) -> Any:
    """Return the elements under the kernel, of shape (channels · kernel, images · positions).

    With several groups, there is one matrix for each.
    """
    x = pad(xp, _swapped(xp, x), window, 0)
    return _matrix(xp, xp.stack([x[key] for key in window.taps], axis=1), groups, axes=2)


def _input_rule(g: Any, xp: Any, weight: Any, window: Window, groups: int) -> Any:
    return call_op(convolution_input, xp, g, weight, window=window, groups=groups)


def _weight_rule(g: Any, xp: Any, input: Any, window: Window, groups: int) -> Any:
    return call_op(convolution_weight, xp, input, g, window=window, groups=groups)


def _bias_rule(g: Any, xp: Any) -> Any:
    return xp.sum(g, axis=(0, *range(2, len(g.shape))))


@derivative(_input_rule, _weight_rule, _bias_rule, lowest=FLOATING, autocast="narrow")
def convolution(
    xp: Any, input: Any, weight: Any, bias: Any = None, *, window: Window, groups: int
) -> Any:
    r"""Return the cross-correlation of an input and a weight.

    Their shapes are (N, C, ...) and (O, C / groups, ...).

    Notes
    -----
    .. math:: y_{n, o, p} = b_o + \sum_{c, k} w_{o, c, k}\, x_{n, c, q}, \quad q = s p + d k - a

    - Gradient for `input`:
      :math:`\sum_{o, p, k:\, s p + d k - a = q} w_{o, c, k}\, \bar y_{n, o, p}`
    - Gradient for `weight`: :math:`\sum_{n, p} \bar y_{n, o, p}\, x_{n, c, q}`
    - Gradient for `bias`: :math:`\sum_{n, p} \bar y_{n, o, p}`

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.
    """
    out = xp.matmul(_matrix(xp, weight, groups), _columns(xp, input, window, groups))
    out = xp.reshape(out, (weight.shape[0], input.shape[0], *window.out))
    if bias is not None:
        out += _by_channel(xp, bias, out)
    return _swapped(xp, out)


def _weight_rule_of_input(g: Any, xp: Any, grad: Any, window: Window, groups: int) -> Any:
    return call_op(convolution_weight, xp, g, grad, window=window, groups=groups)


@derivative(
    lambda g, xp, weight, window, groups: call_op(
        convolution, xp, g, weight, window=window, groups=groups
    ),
    _weight_rule_of_input,
    lowest=FLOATING,
    autocast="narrow",
)
def convolution_input(xp: Any, grad: Any, weight: Any, *, window: Window, groups: int) -> Any:
    r"""Return the gradient of a convolution for its input: the transposed convolution of `grad`.

    Notes
    -----
    .. math:: y_{n, c, q} = \sum_{o, p, k:\, s p + d k - a = q} w_{o, c, k}\, g_{n, o, p}

    - Gradient for `grad`: :math:`\sum_{c, k} w_{o, c, k}\, \bar y_{n, c, s p + d k - a}`
    - Gradient for `weight`: :math:`\sum_{n, p} g_{n, o, p}\, \bar y_{n, c, s p + d k - a}`
    """
    columns = xp.matmul(
        xp.matrix_transpose(_matrix(xp, weight, groups)), _matrix(xp, _swapped(xp, grad), groups)
    )
    images, channels = grad.shape[0], groups * weight.shape[1]
    columns = xp.reshape(columns, (channels, math.prod(window.kernel), images, *window.out))
    out = xp.zeros((channels, images, *window.padded), dtype=columns.dtype, device=columns.device)
    for i, key in enumerate(window.taps):
        out[key] += columns[:, i, ...]
    return _swapped(xp, out[window.inner])


@derivative(
    lambda g, xp, grad, window, groups: call_op(
        convolution_input, xp, grad, g, window=window, groups=groups
    ),
    lambda g, xp, input, window, groups: call_op(
        convolution, xp, input, g, window=window, groups=groups
    ),
    lowest=FLOATING,
)
def convolution_weight(xp: Any, input: Any, grad: Any, *, window: Window, groups: int) -> Any:
    r"""Return the gradient of a convolution for its weight.

    Notes
    -----
    .. math:: y_{o, c, k} = \sum_{n, p} g_{n, o, p}\, x_{n, c, q}, \quad q = s p + d k - a

    - Gradient for `input`:
      :math:`\sum_{o, p, k:\, s p + d k - a = q} \bar y_{o, c, k}\, g_{n, o, p}`
    - Gradient for `grad`: :math:`\sum_{c, k} \bar y_{o, c, k}\, x_{n, c, q}`
    """
    columns = _columns(xp, input, window, groups)
    out = xp.matmul(_matrix(xp, _swapped(xp, grad), groups), xp.matrix_transpose(columns))
    return xp.reshape(out, (grad.shape[1], input.shape[1] // groups, *window.kernel))


# Functions


def _pairs(
    name: str, padding: Lengths | str, span: tuple[int, ...], stride: tuple[int, ...]
) -> Pairs:
    """Return how many elements to add before and after each spatial axis."""
    if not isinstance(padding, str):
        return tuple([(n, n) for n in lengths(name, "padding", padding, len(span), 0)])
    if padding == "valid":
        return ((0, 0),) * len(span)
    if padding != "same":
        raise ValueError(
            f"{name}: expected ints, 'same' or 'valid' for padding, got {shown(padding)}"
        )
    if max(stride) > 1:
        raise ValueError(f"{name}: expected a stride of 1 for padding 'same', got {stride}")
    return tuple([((n - 1) // 2, n // 2) for n in span])


def _checked(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    ndim: int,
    groups: int,
    transposed: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return weight and bias as tensors; ValueError if their shapes do not fit the input."""
    weight = as_tensor(name, "weight", weight)
    bias = None if bias is None else as_tensor(name, "bias", bias)
    if not isinstance(groups, Integral) or isinstance(groups, bool) or groups < 1:
        raise ValueError(f"{name}: expected an int above 0 for groups, got {shown(groups)}")
    expected = (
        f"(in, out / groups, {AXES[ndim]})" if transposed else f"(out, in / groups, {AXES[ndim]})"
    )
    if weight.ndim != ndim + 2 or 0 in weight.shape or weight.shape[0] % groups:
        raise ValueError(
            f"{name}: expected weight of shape {expected} with {groups=}, got shape {weight.shape}"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != channels:
        raise ValueError(
            f"{name}: expected input with {channels} channels, got shape {input.shape}"
        )
    out = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (out,):
        raise ValueError(f"{name}: expected bias of shape ({out},), got shape {bias.shape}")
    return weight, bias


def convolve(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Lengths,
    padding: Lengths | str,
    dilation: Lengths,
    groups: int,
    ndim: int,
    padding_mode: str = "zeros",
) -> Tensor:
    """Return a convolution over `ndim` spatial axes.

    Errors begin with `name`, the name of the function or layer.
    """
    input, of_batch = batched(name, input, ndim)
    weight, bias = _checked(name, input, weight, bias, ndim, groups, transposed=False)
    stride = lengths(name, "stride", stride, ndim)
    dilation = lengths(name, "dilation", dilation, ndim)
    kernel = weight.shape[2:]
    span = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
    pairs = _pairs(name, padding, span, stride)
    if padding_mode != "zeros":
        input = pad_axes(input, ((0, 0), (0, 0), *pairs), PADDING_MODES[padding_mode])
        pairs = ((0, 0),) * ndim
    window = Window(input.shape[2:], kernel, stride, pairs, dilation)
    if min(window.out) < 1:
        raise ValueError(
            f"{name}: expected an input not shorter than the kernel, {span}, got {window.padded}"
        )
    out = convolution(input, weight, bias, window=window, groups=groups)
    return out if of_batch else out[0, ...]


def convolve_transposed(
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Lengths,
    padding: Lengths,
    output_padding: Lengths,
    groups: int,
    dilation: Lengths,
    ndim: int,
) -> Tensor:
    """Return a transposed convolution over `ndim` spatial axes.

    Errors begin with `name`, the name of the function or layer.
    """
    input, of_batch = batched(name, input, ndim)
    weight, bias = _checked(name, input, weight, bias, ndim, groups, transposed=True)
    stride = lengths(name, "stride", stride, ndim)
    dilation = lengths(name, "dilation", dilation, ndim)
    before = lengths(name, "padding", padding, ndim, 0)
    more = lengths(name, "output_padding", output_padding, ndim, 0)
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise ValueError(
            f"{name}: expected output_padding below stride or dilation, got {output_padding}"
        )
    sizes, rests, pairs = [], [], []
    for n, k, s, p, d, m in zip(
        input.shape[2:], weight.shape[2:], stride, before, dilation, more, strict=True
    ):
        # The index of the first element after the windows.
        last = (n - 1) * s + d * (k - 1) + 1 - p
        size = last - p + m
        sizes.append(min(size, last))
        rests.append((0, size - sizes[-1]))
        pairs.append((p, last - sizes[-1]))
    if min(sizes) < 1:
        raise ValueError(
            f"{name}: expected an output with elements, got input of shape {input.shape}: use less"
            " padding"
        )
    window = Window(tuple(sizes), weight.shape[2:], stride, tuple(pairs), dilation)
    out = convolution_input(input, weight, window=window, groups=groups)
    if any(map(any, rests)):
        out = pad_axes(out, ((0, 0), (0, 0), *rests))
    if bias is not None:
        bias = bias.astype(out.dtype) if is_cast(out, bias) else bias
        out = out + bias.reshape((-1, *(1,) * ndim))
    return out if of_batch else out[0, ...]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Tensor:
    r"""Return the cross-correlation of sequences and kernels, summed over channels, plus a bias.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, L), or (in, L) for a single sequence.
    weight : Tensor
        Of shape (out, in / groups, K).
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
        Of shape (N, out, L'), with L' = ⌊(L + 2 padding - dilation (K - 1) - 1) / stride⌋ + 1.

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

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0, 4.0]])
    >>> xgrad.nn.functional.conv1d(x, xgrad.asarray([[[-1.0, 1.0]]]))
    Tensor([[1., 2.]])
    """
    return convolve("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths | str = 0,
    dilation: Lengths = 1,
    groups: int = 1,
) -> Tensor:
    r"""Return the cross-correlation of images and kernels, summed over channels, plus a bias.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, H, W), or (in, H, W) for a single image.
    weight : Tensor
        Of shape (out, in / groups, K, K').
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
        Of shape (N, out, H', W'), with H' = ⌊(H + 2 padding - dilation (K - 1) - 1) / stride⌋ + 1.

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

    Here, :math:`p`, :math:`k` and :math:`q` are pairs of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 3, 28, 28)), xgrad.ones((8, 3, 5, 5))
    >>> xgrad.nn.functional.conv2d(x, weight, padding=2).shape
    (1, 8, 28, 28)
    """
    return convolve("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Tensor:
    r"""Return the transpose of `conv1d`: its gradient for the input.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, L), or (in, L) for a single sequence.
    weight : Tensor
        Of shape (in, out / groups, K).
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
        Of shape (N, out, L'), with L' = (L - 1) stride - 2 padding + dilation (K - 1) +
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

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0]])
    >>> xgrad.nn.functional.conv_transpose1d(x, xgrad.asarray([[[1.0, 1.0]]]), stride=2)
    Tensor([[1., 1., 2., 2.]])
    """
    return convolve_transposed(
        "conv_transpose1d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        1,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Lengths = 1,
    padding: Lengths = 0,
    output_padding: Lengths = 0,
    groups: int = 1,
    dilation: Lengths = 1,
) -> Tensor:
    r"""Return the transpose of `conv2d`: its gradient for the input.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (N, in, H, W), or (in, H, W) for a single image.
    weight : Tensor
        Of shape (in, out / groups, K, K').
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
        Of shape (N, out, H', W'), with H' = (H - 1) stride - 2 padding + dilation (K - 1) +
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

    Here, :math:`p`, :math:`k` and :math:`q` are pairs of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 8, 14, 14)), xgrad.ones((8, 3, 2, 2))
    >>> xgrad.nn.functional.conv_transpose2d(x, weight, stride=2).shape
    (1, 3, 28, 28)
    """
    return convolve_transposed(
        "conv_transpose2d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        2,
    )
