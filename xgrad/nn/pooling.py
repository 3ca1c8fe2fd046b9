"""Pooling layers."""

from __future__ import annotations

from typing import Any, ClassVar

from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.ops.pooling import (
    adapt_average,
    adapt_maximum,
    checked_divisor,
    pool_average,
    pool_maximum,
)
from xgrad.ops.windows import Lengths, lengths


class _Pool(Module):
    """Options of pooling over `ndim` axes; `options` names the ones that not all pools have."""

    ndim: ClassVar[int]
    options: ClassVar[tuple[str, ...]]

    def __init__(
        self, kernel_size: Lengths, stride: Lengths | None, padding: Lengths, ceil_mode: bool
    ) -> None:
        super().__init__()
        name, ndim = type(self).__name__, self.ndim
        lengths(name, "kernel_size", kernel_size, ndim)
        lengths(name, "stride", kernel_size if stride is None else stride, ndim)
        lengths(name, "padding", padding, ndim, 0)
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode

    def extra_repr(self) -> str:
        names = "kernel_size", "stride", "padding", *self.options
        hidden = {"return_indices": False, "divisor_override": None}  # unless they are set
        values = {name: getattr(self, name) for name in names}
        return ", ".join([f"{k}={x}" for k, x in values.items() if k not in hidden or x])


class MaxPooling(_Pool):
    """The largest elements of windows."""

    options = "dilation", "return_indices", "ceil_mode"

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        lengths(type(self).__name__, "dilation", dilation, self.ndim)
        self.dilation, self.return_indices = dilation, return_indices

    def forward(self, input: Tensor) -> Tensor:
        """Return the largest element of each window, in a pair with its index if asked for."""
        options = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        name, indices = type(self).__name__, self.return_indices
        # type checkers see a tensor, which can be unpacked as the pair can
        output: Tensor = pool_maximum(name, input, *options, indices, self.ndim)
        return output


class AvgPooling(_Pool):
    """The averages of windows."""

    options: ClassVar[tuple[str, ...]] = ("ceil_mode", "count_include_pad")
    divisor_override: int | None = None

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the average of each window."""
        options = (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
        divisor = self.divisor_override
        return pool_average(type(self).__name__, input, *options, self.ndim, divisor)


class WeightedAvgPooling(AvgPooling):
    """The sums of windows over more than one axis, divided by a number of choice."""

    options = "ceil_mode", "count_include_pad", "divisor_override"

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        if divisor_override is not None:
            checked_divisor(type(self).__name__, divisor_override)
        self.divisor_override = divisor_override


class AdaptivePooling(Module):
    """Adaptive pooling: the number of bins along `ndim` axes."""

    ndim: ClassVar[int]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        several = isinstance(output_size, (tuple, list))
        given = tuple([1 if n is None else n for n in (output_size if several else [output_size])])
        lengths(type(self).__name__, "output_size", given if several else given[0], self.ndim)
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPooling(AdaptivePooling):
    """The averages of bins."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the average of each bin."""
        return adapt_average(type(self).__name__, input, self.output_size, self.ndim)


class AdaptiveMaxPooling(AdaptivePooling):
    """The largest elements of bins."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Tensor:
        """Return the largest element of each bin, in a pair with its index if asked for."""
        options = self.output_size, self.return_indices
        output: Tensor = adapt_maximum(type(self).__name__, input, *options, self.ndim)
        return output

    def extra_repr(self) -> str:
        return super().extra_repr() + (", return_indices=True" if self.return_indices else "")


class MaxPool1d(MaxPooling):
    """The largest element of each window over one axis.

    The input has shape (N, C, L) or (C, L), and the output has L' in place of L, with L' = ⌊(L + 2
    padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1. On ties, the first element gets the
    gradient.

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
        Whether to return the indices of the largest elements, too, for `MaxUnpool1d`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MaxPool1d(2)(xgrad.ones((4, 3, 28))).shape
    (4, 3, 14)
    """

    ndim = 1


class AvgPool1d(AvgPooling):
    """The average of each window over one axis.

    The input has shape (N, C, L) or (C, L), and the output has L' in place of L, with L' = ⌊(L + 2
    padding - kernel_size) / stride⌋ + 1.

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

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.AvgPool1d(2)(xgrad.ones((4, 3, 28))).shape
    (4, 3, 14)
    """

    ndim = 1


class AdaptiveAvgPool1d(AdaptiveAvgPooling):
    """The average of each of `output_size` bins of one axis.

    The input has shape (N, C, L) or (C, L). Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i +
    1) L / n⌉ of an axis of length L: bins may overlap.

    Parameters
    ----------
    output_size : int or None
        The number of bins; None for one bin per element.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.AdaptiveAvgPool1d(5)(xgrad.ones((4, 3, 28))).shape
    (4, 3, 5)
    """

    ndim = 1


class AdaptiveMaxPool1d(AdaptiveMaxPooling):
    """The largest element of each of `output_size` bins of one axis.

    The input has shape (N, C, L) or (C, L). Bin i of n holds the elements from ⌊i L / n⌋ to ⌈(i +
    1) L / n⌉ of an axis of length L: bins may overlap.

    Parameters
    ----------
    output_size : int or None
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
    >>> xgrad.nn.AdaptiveMaxPool1d(5)(xgrad.ones((4, 3, 28))).shape
    (4, 3, 5)
    """

    ndim = 1


class MaxPool2d(MaxPooling):
    """The largest element of each window over two axes.

    The input has shape (N, C, H, W) or (C, H, W), and the output has H', W' in place of H, W, with
    H' = ⌊(H + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1. On ties, the first element
    gets the gradient.

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
        Whether to return the indices of the largest elements, too, for `MaxUnpool2d`.
    ceil_mode : bool, default False
        Whether the elements after the last whole window get a window too.

    Raises
    ------
    ValueError
        If an argument is invalid; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MaxPool2d(2)(xgrad.ones((4, 3, 28, 28))).shape
    (4, 3, 14, 14)
    """

    ndim = 2


class AvgPool2d(WeightedAvgPooling):
    """The average of each window over two axes.

    The input has shape (N, C, H, W) or (C, H, W), and the output has H', W' in place of H, W, with
    H' = ⌊(H + 2 padding - kernel_size) / stride⌋ + 1.

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
    >>> xgrad.nn.AvgPool2d(2)(xgrad.ones((4, 3, 28, 28))).shape
    (4, 3, 14, 14)
    """

    ndim = 2


class AdaptiveAvgPool2d(AdaptiveAvgPooling):
    """The average of each of `output_size` bins along two axes.

    The input has shape (N, C, H, W) or (C, H, W). Bin i of n holds the elements from ⌊i L / n⌋ to
    ⌈(i + 1) L / n⌉ of an axis of length L: bins may overlap.

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
    >>> xgrad.nn.AdaptiveAvgPool2d((5, 1))(xgrad.ones((4, 3, 28, 28))).shape
    (4, 3, 5, 1)
    """

    ndim = 2


class AdaptiveMaxPool2d(AdaptiveMaxPooling):
    """The largest element of each of `output_size` bins along two axes.

    The input has shape (N, C, H, W) or (C, H, W). Bin i of n holds the elements from ⌊i L / n⌋ to
    ⌈(i + 1) L / n⌉ of an axis of length L: bins may overlap.

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
    >>> xgrad.nn.AdaptiveMaxPool2d((5, 1))(xgrad.ones((4, 3, 28, 28))).shape
    (4, 3, 5, 1)
    """

    ndim = 2
