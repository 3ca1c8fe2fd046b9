"""Convolutional layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.ops.convolution import convolve, convolve_transposed
from xgrad.ops.torch_padding import PADDING_MODES
from xgrad.ops.windows import Lengths, lengths
from xgrad.support.hints import shown


class _Convolution(Module):
    """Parameters and options of convolutions over `ndim` axes."""

    ndim: ClassVar[int]
    transposed: ClassVar[bool] = False
    padding: tuple[int, ...] | str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Lengths,
        stride: Lengths,
        padding: Lengths | str,
        output_padding: Lengths,
        dilation: Lengths,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: str | Device | None,
        dtype: Any,
    ) -> None:
        super().__init__()
        name, ndim = type(self).__name__, self.ndim
        self.in_channels, self.out_channels, self.groups = [
            lengths(name, argument, value, 1)[0]
            for argument, value in (
                ("in_channels", in_channels),
                ("out_channels", out_channels),
                ("groups", groups),
            )
        ]
        for argument, channels in (
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
        ):
            if channels % self.groups:
                raise ValueError(
                    f"{name}: expected {argument} divisible by groups, {groups}, got {channels}"
                )
        self.kernel_size = lengths(name, "kernel_size", kernel_size, ndim)
        self.stride = lengths(name, "stride", stride, ndim)
        self.dilation = lengths(name, "dilation", dilation, ndim)
        self.padding = (
            padding if isinstance(padding, str) else lengths(name, "padding", padding, ndim, 0)
        )
        if isinstance(padding, str) and (padding not in ("same", "valid") or self.transposed):
            strings = "" if self.transposed else ", 'same' or 'valid'"
            raise ValueError(f"{name}: expected ints{strings} for padding, got {shown(padding)}")
        if padding == "same" and max(self.stride) > 1:
            raise ValueError(
                f"{name}: expected a stride of 1 for padding 'same', got {self.stride}"
            )
        self.output_padding = lengths(name, "output_padding", output_padding, ndim, 0)
        if padding_mode not in ("zeros", *(() if self.transposed else PADDING_MODES)):
            modes = (
                "'zeros'" if self.transposed else "'zeros', 'reflect', 'replicate' or 'circular'"
            )
            raise ValueError(
                f"{name}: expected a padding_mode of {modes}, got {shown(padding_mode)}"
            )
        self.padding_mode = padding_mode
        rows, columns = self.out_channels, self.in_channels
        if self.transposed:
            rows, columns = columns, rows
        shape = (rows, columns // self.groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.bias = (
            Parameter(empty(self.out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight and the bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(math.prod(self.weight.shape[1:]))
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the output: (N, out_channels, ...), or (out_channels, ...) without a batch."""
        name, weight = type(self).__name__, self.weight
        input = of_dtype_of(weight, input, name)
        arrays, ndim, more = (input, weight, self.bias), self.ndim, self.output_padding
        if self.transposed and isinstance(self.padding, tuple):
            options = self.stride, self.padding, more
            return convolve_transposed(name, *arrays, *options, self.groups, self.dilation, ndim)
        return convolve(
            name,
            *arrays,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
            ndim,
            self.padding_mode,
        )

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size},"
            f" stride={self.stride}"
        )
        defaults = {
            "padding": (0,) * self.ndim,
            "output_padding": (0,) * self.ndim,
            "dilation": (1,) * self.ndim,
            "groups": 1,
            "padding_mode": "zeros",
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)!r}"
        return text if self.bias is not None else f"{text}, bias=False"


class DirectConvolution(_Convolution):
    """Options of convolutions that are not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Lengths,
        stride: Lengths = 1,
        padding: Lengths | str = 0,
        dilation: Lengths = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, 0, dilation
        super().__init__(*sizes, groups, bias, padding_mode, device, dtype)


class TransposedConvolution(_Convolution):
    """Options of transposed convolutions."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Lengths,
        stride: Lengths = 1,
        padding: Lengths = 0,
        output_padding: Lengths = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Lengths = 1,
        padding_mode: str = "zeros",
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation
        super().__init__(*sizes, groups, bias, padding_mode, device, dtype)


class Conv1d(DirectConvolution):
    r"""Cross-correlation of sequences with kernels, summed over channels, plus a bias.

    The input has shape (N, in_channels, L) or (in_channels, L), and the output (N, out_channels,
    L') with L' = ⌊(L + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1. Weight and bias
    are initialized uniformly over ±1/√(in_channels / groups · kernel), as in PyTorch.

    Parameters
    ----------
    in_channels, out_channels : int
        The numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        The length of the kernel along each axis.
    stride : int or tuple of int, default 1
        The distance between windows.
    padding : int, tuple of int, 'valid' or 'same', default 0
        The number of elements to add before and after each axis: none with ``'valid'``; with
        ``'same'``, which needs a stride of 1, as many as preserve the lengths.
    dilation : int or tuple of int, default 1
        The distance between input elements under the kernel.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels; it must divide both
        numbers of channels.
    bias : bool, default True
        Whether to add a bias for each output channel.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}, default 'zeros'
        The elements of the padding: zeros, the input's elements in reverse order, the element at
        the edge, or the elements from the other end.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (out_channels, in_channels / groups, K).
    bias : Parameter or None
        Of shape (out_channels,).

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        In the call, if the input has another dtype than the weight.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Notes
    -----
    .. math:: y_{n, o, p} = b_o + \sum_{c, k} w_{o, c, k}\, x_{n, c, q}, \quad q = s p + d k - a

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0, 4.0]])
    >>> xgrad.nn.functional.conv1d(x, xgrad.asarray([[[-1.0, 1.0]]]))
    Tensor([[1., 2.]])

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Conv1d(3, 8, kernel_size=5, padding=2)
    >>> layer(xgrad.ones((4, 3, 100))).shape
    (4, 8, 100)
    >>> layer
    Conv1d(3, 8, kernel_size=(5,), stride=(1,), padding=(2,))
    """

    ndim = 1


class ConvTranspose1d(TransposedConvolution):
    r"""Transposed convolution of sequences: the gradient of `Conv1d` for its input, plus a bias.

    The input has shape (N, in_channels, L) or (in_channels, L), and the output (N, out_channels,
    L') with L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
    Weight and bias are initialized uniformly over ±1/√(out_channels / groups · kernel), as in
    PyTorch.

    Parameters
    ----------
    in_channels, out_channels : int
        The numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        The length of the kernel along each axis.
    stride : int or tuple of int, default 1
        The distance between windows.
    padding : int or tuple of int, default 0
        The padding of the convolution; the output is shorter by it at both ends.
    output_padding : int or tuple of int, default 0
        The number of elements to add after each axis, less than `stride` or `dilation`.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels; it must divide both
        numbers of channels.
    bias : bool, default True
        Whether to add a bias for each output channel.
    dilation : int or tuple of int, default 1
        The distance between input elements under the kernel.
    padding_mode : {'zeros'}
        The only supported mode.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (in_channels, out_channels / groups, K).
    bias : Parameter or None
        Of shape (out_channels,).

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        In the call, if the input has another dtype than the weight.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Notes
    -----
    .. math:: y_{n, o, q} = b_o + \sum_{c, p, k:\, s p + d k - a = q} w_{c, o, k}\, x_{n, c, p}

    Here, :math:`s` is the stride, :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0]])
    >>> xgrad.nn.functional.conv_transpose1d(x, xgrad.asarray([[[1.0, 1.0]]]), stride=2)
    Tensor([[1., 1., 2., 2.]])

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.ConvTranspose1d(8, 3, kernel_size=2, stride=2)
    >>> layer(xgrad.ones((4, 8, 50))).shape
    (4, 3, 100)
    """

    ndim = 1


class Conv2d(DirectConvolution):
    r"""Cross-correlation of images with kernels, summed over channels, plus a bias.

    The input has shape (N, in_channels, H, W) or (in_channels, H, W), and the output (N,
    out_channels, H', W') with H' = ⌊(H + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1.
    Weight and bias are initialized uniformly over ±1/√(in_channels / groups · kernel), as in
    PyTorch.

    Parameters
    ----------
    in_channels, out_channels : int
        The numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        The length of the kernel along each axis.
    stride : int or tuple of int, default 1
        The distance between windows.
    padding : int, tuple of int, 'valid' or 'same', default 0
        The number of elements to add before and after each axis: none with ``'valid'``; with
        ``'same'``, which needs a stride of 1, as many as preserve the lengths.
    dilation : int or tuple of int, default 1
        The distance between input elements under the kernel.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels; it must divide both
        numbers of channels.
    bias : bool, default True
        Whether to add a bias for each output channel.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}, default 'zeros'
        The elements of the padding: zeros, the input's elements in reverse order, the element at
        the edge, or the elements from the other end.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (out_channels, in_channels / groups, K, K').
    bias : Parameter or None
        Of shape (out_channels,).

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        In the call, if the input has another dtype than the weight.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Notes
    -----
    .. math:: y_{n, o, p} = b_o + \sum_{c, k} w_{o, c, k}\, x_{n, c, q}, \quad q = s p + d k - a

    Here, :math:`p`, :math:`k` and :math:`q` are pairs of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 3, 28, 28)), xgrad.ones((8, 3, 5, 5))
    >>> xgrad.nn.functional.conv2d(x, weight, padding=2).shape
    (1, 8, 28, 28)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Conv2d(3, 8, kernel_size=5, padding=2)
    >>> layer(xgrad.ones((4, 3, 28, 28))).shape
    (4, 8, 28, 28)
    >>> layer
    Conv2d(3, 8, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))
    """

    ndim = 2


class ConvTranspose2d(TransposedConvolution):
    r"""Transposed convolution of images: the gradient of `Conv2d` for its input, plus a bias.

    The input has shape (N, in_channels, H, W) or (in_channels, H, W), and the output (N,
    out_channels, H', W') with H' = (H - 1) stride - 2 padding + dilation (kernel_size - 1) +
    output_padding + 1. Weight and bias are initialized uniformly over ±1/√(out_channels / groups ·
    kernel), as in PyTorch.

    Parameters
    ----------
    in_channels, out_channels : int
        The numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        The length of the kernel along each axis.
    stride : int or tuple of int, default 1
        The distance between windows.
    padding : int or tuple of int, default 0
        The padding of the convolution; the output is shorter by it at both ends.
    output_padding : int or tuple of int, default 0
        The number of elements to add after each axis, less than `stride` or `dilation`.
    groups : int, default 1
        The number of groups of channels, each convolved with its own kernels; it must divide both
        numbers of channels.
    bias : bool, default True
        Whether to add a bias for each output channel.
    dilation : int or tuple of int, default 1
        The distance between input elements under the kernel.
    padding_mode : {'zeros'}
        The only supported mode.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (in_channels, out_channels / groups, K, K').
    bias : Parameter or None
        Of shape (out_channels,).

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.
    TypeError
        In the call, if the input has another dtype than the weight.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Notes
    -----
    .. math:: y_{n, o, q} = b_o + \sum_{c, p, k:\, s p + d k - a = q} w_{c, o, k}\, x_{n, c, p}

    Here, :math:`p`, :math:`k` and :math:`q` are pairs of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 8, 14, 14)), xgrad.ones((8, 3, 2, 2))
    >>> xgrad.nn.functional.conv_transpose2d(x, weight, stride=2).shape
    (1, 3, 28, 28)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)
    >>> layer(xgrad.ones((4, 8, 14, 14))).shape
    (4, 3, 28, 28)
    """

    ndim = 2
