"""The ops of pooling, and pooling over any number of axes: maxima and averages of windows."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from functools import reduce
from numbers import Integral
from typing import Any

from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange, ones
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.indexing import take
from xgrad.ops.joining import concat
from xgrad.ops.manipulation import reshape
from xgrad.ops.precision import upcast
from xgrad.ops.statistical import mean
from xgrad.ops.tensor_conversion import asarray
from xgrad.ops.windows import Lengths, Window, batched, lengths, pad
from xgrad.support.hints import shown

# The largest element


def _choice(xp: Any, x: Any, window: Window) -> Any:
    """Return the argmax within each window, in row order; the first on ties."""
    best, *others = _taps(xp, x, window)
    choice = xp.zeros(best.shape, dtype=xp.int32, device=x.device)
    padded = window.padded != window.size
    if padded:  # padding is not chosen, even if all elements are -inf
        elements = pad(
            xp, xp.ones((1, 1, *window.size), dtype=xp.bool, device=x.device), window, False
        )
        inside, *others_inside = [elements[key] for key in window.taps]
    for i, tap in enumerate(others, 1):
        better = (tap > best) | xp.isnan(tap)
        if padded:
            better = better | (others_inside[i - 1] & ~inside)
            inside = inside | others_inside[i - 1]
        best, choice = xp.where(better, tap, best), xp.where(better, i, choice)
    return choice


def _taps(xp: Any, x: Any, window: Window) -> list[Any]:
    padded = pad(xp, x, window, -math.inf)
    return [padded[key] for key in window.taps]


def _gradient_rule(g: Any, xp: Any, x: Any, window: Window) -> Any:
    return call_op(maximum_pool_gradient, xp, g, x, window=window)


def _choice_rule(g: Any, xp: Any, x: Any, window: Window) -> Any:
    return call_op(maximum_pool_choice, xp, g, x, window=window)


# The forward rule takes maxima, whose derivative would split the gradient among equal elements.
@derivative(_gradient_rule, lowest=FLOATING, highest=FLOATING, own_rule=True)
def maximum_pool(xp: Any, x: Any, *, window: Window) -> Any:
    r"""Return the largest element of each window of an input of shape (N, C, ...).

    Notes
    -----
    .. math:: y_p = \max_k\, x_{s p + d k - a}

    - Gradient for `x`: :math:`\bar x_q = \sum_p \bar y_p\, [q = q_p]`, with the first largest
      element :math:`q_p` of the window :math:`p`
    """
    first, *others = _taps(xp, x, window)
    return reduce(xp.maximum, others, +first)


@derivative(_choice_rule, None, lowest=FLOATING, highest=FLOATING)
def maximum_pool_gradient(xp: Any, grad: Any, x: Any, *, window: Window) -> Any:
    r"""Return the gradient of `maximum_pool`: the first largest element of each window gets it.

    Notes
    -----
    .. math:: y_q = \sum_p g_p\, [q = q_p]

    - Gradient for `grad`: :math:`\bar y_{q_p}`, with the first largest element :math:`q_p` of the
      window :math:`p`
    """
    choice = _choice(xp, x, window)
    out = xp.zeros((*x.shape[:2], *window.padded), dtype=grad.dtype, device=x.device)
    for i, key in enumerate(window.taps):
        out[key] += xp.where(choice == i, grad, 0)
    return out[window.inner]


@derivative(_gradient_rule, None, lowest=FLOATING, highest=FLOATING)
def maximum_pool_choice(xp: Any, values: Any, x: Any, *, window: Window) -> Any:
    r"""Return, for each window, the element of `values` at the first largest element of `x`.

    Notes
    -----
    .. math:: y_p = v_{q_p}

    - Gradient for `values`: :math:`\sum_p \bar y_p\, [q = q_p]`, with the first largest
      element :math:`q_p` of the window :math:`p`
    """
    choice, values = _choice(xp, x, window), pad(xp, values, window, 0)
    return reduce(
        operator.add, [xp.where(choice == i, values[key], 0) for i, key in enumerate(window.taps)]
    )


@derivative(None, lowest=FLOATING, highest=FLOATING)
def maximum_pool_indices(xp: Any, x: Any, *, window: Window) -> Any:
    """Return the index of the first largest element of each window.

    It counts the elements of the spatial axes in row order, without padding.
    """
    rest, out, factor = xp.astype(_choice(xp, x, window), xp.int64), 0, 1
    for axis in reversed(range(len(window.size))):
        starts = xp.arange(window.out[axis], dtype=xp.int64, device=x.device) * window.stride[axis]
        starts = xp.reshape(
            starts - window.padding[axis][0], (-1, *(1,) * (len(window.size) - axis - 1))
        )
        at = starts + rest % window.kernel[axis] * window.dilation[axis]
        out, rest = out + at * factor, rest // window.kernel[axis]
        factor *= window.size[axis]
    return out


# Sums


def _spread(g: Any, xp: Any, window: Window) -> Any:
    return call_op(sum_pool_gradient, xp, g, window=window)


@derivative(_spread, lowest=FLOATING)
def sum_pool(xp: Any, x: Any, *, window: Window) -> Any:
    r"""Return the sum of the elements of each window of an input of shape (N, C, ...).

    Notes
    -----
    .. math:: y_p = \sum_k x_{s p + d k - a}

    - Gradient for `x`: :math:`\bar x_q = \sum_{p, k:\, s p + d k - a = q} \bar y_p`
    """
    padded = pad(xp, x, window, 0)
    first, *others = [padded[key] for key in window.taps]
    return reduce(operator.add, others, +first)


@derivative(lambda g, xp, window: call_op(sum_pool, xp, g, window=window), lowest=FLOATING)
def sum_pool_gradient(xp: Any, grad: Any, *, window: Window) -> Any:
    r"""Return the gradient of `sum_pool`: for each element, the sum over its windows.

    Notes
    -----
    .. math:: y_q = \sum_{p, k:\, s p + d k - a = q} g_p

    - Gradient for `grad`: :math:`\sum_k \bar y_{s p + d k - a}`
    """
    out = xp.zeros((*grad.shape[:2], *window.padded), dtype=grad.dtype, device=grad.device)
    for key in window.taps:
        out[key] += grad
    return out[window.inner]


# Functions


def _window(
    name: str,
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    dilation: Lengths,
    ceil_mode: bool,
) -> Window:
    """Return the window of a pooling function.

    With `ceil_mode`, the last position of the window may end after the padded input.
    """
    size = input.shape[2:]
    _check_elements(name, input)
    kernel = lengths(name, "kernel_size", kernel_size, len(size))
    strides = kernel if stride is None else lengths(name, "stride", stride, len(size))
    before = lengths(name, "padding", padding, len(size), 0)
    dilations = lengths(name, "dilation", dilation, len(size))
    window = Window(size, kernel, strides, tuple([(p, p) for p in before]), dilations)
    if any(2 * p > n for p, n in zip(before, window.span, strict=True)):
        raise ValueError(
            f"{name}: expected padding of at most half the window, {window.span}, got"
            f" {shown(padding)}"
        )
    if ceil_mode:
        parts = zip(size, before, window.padded, window.span, strides, strict=True)
        window = replace(
            window, padding=tuple([(p, p + _excess(n + p, *rest)) for n, p, *rest in parts])
        )
    if min(window.out) < 1:
        raise ValueError(
            f"{name}: expected an input not shorter than the window, {window.span}, got"
            f" {window.padded}"
        )
    return window


def _check_elements(name: str, input: Tensor) -> None:
    """Raise ValueError unless all spatial axes have elements."""
    if 0 in input.shape[2:]:
        raise ValueError(f"{name}: expected an input with elements, got shape {input.shape}")


def _excess(end: int, padded: int, span: int, stride: int) -> int:
    """Return the length by which one more window exceeds the padded input.

    It is 0 if no elements are left, or if this window would not begin before `end`.
    """
    full, rest = divmod(padded - span, stride)
    start = (full + 1) * stride
    return start + span - padded if rest and start < end else 0


def pool_maximum(
    name: str,
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    dilation: Lengths,
    ceil_mode: bool,
    return_indices: bool,
    ndim: int,
) -> Any:
    """Return the largest elements of windows over `ndim` axes, and their indices if asked for.

    Error messages start with `name`, the function or layer.
    """
    input, of_batch = batched(name, input, ndim)
    window = _window(name, input, kernel_size, stride, padding, dilation, ceil_mode)
    out = maximum_pool(input, window=window)
    if not return_indices:
        return out if of_batch else out[0, ...]
    indices = maximum_pool_indices(input, window=window)
    return (out, indices) if of_batch else (out[0, ...], indices[0, ...])


@upcast
def pool_average(
    name: str,
    input: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    ceil_mode: bool,
    count_include_pad: bool,
    ndim: int,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the averages of windows over `ndim` axes.

    Error messages start with `name`, the function or layer.
    """
    input, of_batch = batched(name, input, ndim)
    window = _window(name, input, kernel_size, stride, padding, 1, ceil_mode)
    before = tuple([p for p, _ in window.padding])
    if divisor_override is not None:
        out = sum_pool(input, window=window) / checked_divisor(name, divisor_override)
    elif (
        count_include_pad and window.padding == tuple([(p, p) for p in before])
    ) or window.padded == window.size:
        out = sum_pool(input, window=window) / math.prod(window.kernel)
    else:
        counted = window
        if count_include_pad:
            sizes = tuple([n + 2 * p for n, p in zip(window.size, before, strict=True)])
            excess = tuple([(0, after - p) for p, after in window.padding])
            counted = replace(window, size=sizes, padding=excess)
        elements = ones((1, 1, *counted.size), dtype=input.dtype, device=input.device)
        out = sum_pool(input, window=window) / sum_pool(elements, window=counted)
    return out if of_batch else out[0, ...]


def checked_divisor(name: str, divisor: Any) -> int:
    """Return the option `divisor_override`; ValueError unless it is an int other than 0."""
    if not isinstance(divisor, Integral) or isinstance(divisor, bool) or not divisor:
        raise ValueError(
            f"{name}: expected an int other than 0, or None, for divisor_override, got"
            f" {shown(divisor)}"
        )
    return int(divisor)


def _adaptive(name: str, input: Tensor, output_size: Any, ndim: int) -> tuple[int, ...]:
    """Return the number of bins along each spatial axis; None stands for one bin per element."""
    sizes: Any = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * ndim
    if len(sizes) == ndim:
        sizes = [
            n if size is None else size for n, size in zip(input.shape[2:], sizes, strict=True)
        ]
    bins = lengths(name, "output_size", sizes, ndim)
    _check_elements(name, input)
    return bins


@upcast
def adapt_average(name: str, input: Tensor, output_size: Any, ndim: int) -> Tensor:
    """Return the averages of bins of nearly equal length.

    Error messages start with `name`, the function or layer.
    """
    out, of_batch = batched(name, input, ndim)
    bins, size = _adaptive(name, out, output_size, ndim), out.shape[2:]
    if set(bins) == {1}:
        out = mean(out, axis=tuple(range(2, ndim + 2)), keepdims=True)
    elif not any(n % count for n, count in zip(size, bins, strict=True)):
        window = _side_by_side(
            size, tuple([n // count for n, count in zip(size, bins, strict=True)])
        )
        out = sum_pool(out, window=window) / math.prod(window.kernel)
    else:
        for axis, count in enumerate(bins, 2):
            keys = [
                (*[slice(None)] * axis, slice(*ends), ...) for ends in _bins(out.shape[axis], count)
            ]
            out = concat([mean(out[key], axis=axis, keepdims=True) for key in keys], axis=axis)
    return out if of_batch else out[0, ...]


def adapt_maximum(
    name: str, input: Tensor, output_size: Any, return_indices: bool, ndim: int
) -> Any:
    """Return the largest elements of bins of nearly equal length, and their indices if asked for.

    Error messages start with `name`, the function or layer.
    """
    out, of_batch = batched(name, input, ndim)
    bins_of_axes, kernel = _adaptive(name, out, output_size, ndim), []
    numbers = arange(math.prod(out.shape[2:]), device=out.device) if return_indices else None
    numbers = None if numbers is None else reshape(numbers, out.shape[2:])
    for axis, count in enumerate(bins_of_axes, 2):
        bins = _bins(out.shape[axis], count)
        kernel.append(max([stop - start for start, stop in bins]))
        if kernel[-1] * count != out.shape[axis]:  # shorter bins repeat their last element
            at = [min(start + i, stop - 1) for start, stop in bins for i in range(kernel[-1])]
            positions = asarray(at, device=out.device)
            out = take(out, positions, axis=axis)
            numbers = None if numbers is None else take(numbers, positions, axis=axis - 2)
    window = _side_by_side(out.shape[2:], tuple(kernel))
    largest = maximum_pool(out, window=window)
    if numbers is None:
        return largest if of_batch else largest[0, ...]
    chosen = maximum_pool_indices(out, window=window)
    indices = reshape(take(reshape(numbers, (-1,)), reshape(chosen, (-1,)), axis=0), chosen.shape)
    return (largest, indices) if of_batch else (largest[0, ...], indices[0, ...])


def _bins(length: int, count: int) -> list[tuple[int, int]]:
    """Return the start and stop indices of each bin."""
    return [(i * length // count, -((i + 1) * length // -count)) for i in range(count)]


def _side_by_side(size: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    return Window(size, kernel, kernel, ((0, 0),) * len(size), (1,) * len(size))
