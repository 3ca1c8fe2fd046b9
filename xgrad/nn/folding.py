"""Layers that rearrange elements: windows as columns, and shuffles of channels and pixels."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.functional import channel_shuffle, pixel_shuffle, pixel_unshuffle
from xgrad.nn.module import Module
from xgrad.ops.folding import checked_factor, fold_images, unfold_images
from xgrad.ops.windows import Lengths, lengths


class _Windows(Module):
    """Windows over two spatial axes."""

    def __init__(
        self, kernel_size: Lengths, dilation: Lengths, padding: Lengths, stride: Lengths
    ) -> None:
        super().__init__()
        name = type(self).__name__
        lengths(name, "kernel_size", kernel_size, 2)
        lengths(name, "dilation", dilation, 2)
        lengths(name, "padding", padding, 2, 0)
        lengths(name, "stride", stride, 2)
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def _options(self) -> tuple[Lengths, Lengths, Lengths, Lengths]:
        return self.kernel_size, self.dilation, self.padding, self.stride

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding},"
            f" stride={self.stride}"
        )


class Unfold(_Windows):
    """The elements of each window of images as a column: see `functional.unfold`.

    The input has shape (N, C, H, W) or (C, H, W), and the output (N, C · kernel, windows) or (C ·
    kernel, windows).

    Parameters
    ----------
    kernel_size : int or tuple of int
        The height and the width of a window.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    padding : int or tuple of int, default 0
        The number of zeros to add before and after each axis.
    stride : int or tuple of int, default 1
        The distance between windows.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Unfold(3, padding=1)(xgrad.ones((2, 5, 8, 8))).shape
    (2, 45, 64)
    """

    def __init__(
        self,
        kernel_size: Lengths,
        dilation: Lengths = 1,
        padding: Lengths = 0,
        stride: Lengths = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns."""
        return unfold_images("Unfold", input, *self._options())


class Fold(_Windows):
    """Images whose elements are sums of the elements of windows: see `functional.fold`.

    The input has shape (N, C · kernel, windows) or (C · kernel, windows), and the output (N, C, H,
    W) or (C, H, W).

    Parameters
    ----------
    output_size : int or tuple of int
        The height and the width of the images.
    kernel_size : int or tuple of int
        The height and the width of a window.
    dilation : int or tuple of int, default 1
        The distance between elements of a window.
    padding : int or tuple of int, default 0
        The number of elements to remove before and after each axis.
    stride : int or tuple of int, default 1
        The distance between windows.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Fold(8, 3, padding=1)(xgrad.ones((2, 45, 64))).shape
    (2, 5, 8, 8)
    """

    def __init__(
        self,
        output_size: Lengths,
        kernel_size: Lengths,
        dilation: Lengths = 1,
        padding: Lengths = 0,
        stride: Lengths = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        lengths("Fold", "output_size", output_size, 2)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the images."""
        return fold_images("Fold", input, self.output_size, *self._options())

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"


class PixelShuffle(Module):
    """Images larger by a factor, with pixels from channels: see `functional.pixel_shuffle`.

    Parameters
    ----------
    upscale_factor : int
        The factor.

    Raises
    ------
    ValueError
        If the factor is not an int above 0; in the call, if its square does not divide the
        channels.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.PixelShuffle(2)(xgrad.ones((1, 12, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = checked_factor("PixelShuffle", "upscale_factor", upscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        """Return the larger images."""
        return pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Images smaller by a factor, with pixels as channels: see `functional.pixel_unshuffle`.

    Parameters
    ----------
    downscale_factor : int
        The factor.

    Raises
    ------
    ValueError
        If the factor is not an int above 0; in the call, if it does not divide the height and the
        width.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.PixelUnshuffle(2)(xgrad.ones((1, 3, 8, 8))).shape
    (1, 12, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        name = "PixelUnshuffle"
        self.downscale_factor = checked_factor(name, "downscale_factor", downscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        """Return the smaller images."""
        return pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of each group spread over all groups: see `functional.channel_shuffle`.

    Parameters
    ----------
    groups : int
        The number of groups.

    Raises
    ------
    ValueError
        If `groups` is not an int above 0; in the call, if it does not divide the channels.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.reshape(xgrad.arange(4.0), (1, 4, 1))
    >>> xgrad.nn.ChannelShuffle(2)(x).tolist()
    [[[0.0], [2.0], [1.0], [3.0]]]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = checked_factor("ChannelShuffle", "groups", groups)

    def forward(self, input: Tensor) -> Tensor:
        """Return the channels in another order."""
        return channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
