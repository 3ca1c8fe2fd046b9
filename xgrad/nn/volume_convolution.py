"""Convolutional layers of volumes."""

from __future__ import annotations

from xgrad.nn.convolution import DirectConvolution, TransposedConvolution


class Conv3d(DirectConvolution):
    r"""Cross-correlation of volumes with kernels, summed over channels, plus a bias.

    The input has shape (N, in_channels, D, H, W) or (in_channels, D, H, W), and the output (N,
    out_channels, D', H', W') with D' = ⌊(D + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋
    + 1. Weight and bias are initialized uniformly over ±1/√(in_channels / groups · kernel), as in
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
        Of shape (out_channels, in_channels / groups, K, K', K'').
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

    Here, :math:`p`, :math:`k` and :math:`q` are triples of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 3, 8, 8, 8)), xgrad.ones((8, 3, 5, 5, 5))
    >>> xgrad.nn.functional.conv3d(x, weight, padding=2).shape
    (1, 8, 8, 8, 8)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Conv3d(3, 8, kernel_size=5, padding=2)
    >>> layer(xgrad.ones((4, 3, 8, 8, 8))).shape
    (4, 8, 8, 8, 8)
    >>> layer
    Conv3d(3, 8, kernel_size=(5, 5, 5), stride=(1, 1, 1), padding=(2, 2, 2))
    """

    ndim = 3


class ConvTranspose3d(TransposedConvolution):
    r"""Transposed convolution of volumes: the gradient of `Conv3d` for its input, plus a bias.

    The input has shape (N, in_channels, D, H, W) or (in_channels, D, H, W), and the output (N,
    out_channels, D', H', W') with D' = (D - 1) stride - 2 padding + dilation (kernel_size - 1) +
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
        Of shape (in_channels, out_channels / groups, K, K', K'').
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

    Here, :math:`p`, :math:`k` and :math:`q` are triples of indices, :math:`s` is the stride,
    :math:`d` the dilation, and :math:`a` the padding.

    Examples
    --------
    >>> import xgrad
    >>> x, weight = xgrad.ones((1, 8, 4, 4, 4)), xgrad.ones((8, 3, 2, 2, 2))
    >>> xgrad.nn.functional.conv_transpose3d(x, weight, stride=2).shape
    (1, 3, 8, 8, 8)

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.ConvTranspose3d(8, 3, kernel_size=2, stride=2)
    >>> layer(xgrad.ones((4, 8, 4, 4, 4))).shape
    (4, 3, 8, 8, 8)
    """

    ndim = 3
