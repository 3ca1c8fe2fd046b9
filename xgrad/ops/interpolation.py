"""Interpolation of images to another size: `interpolate`.

Each axis is resampled on its own: an element of the result is a weighted sum of a few elements of
the input, its taps. Their indices and weights follow from the lengths alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.pooling import adapt_average
from xgrad.ops.precision import upcast, widened
from xgrad.ops.tensor_conversion import asarray
from xgrad.ops.windows import AXES
from xgrad.support.hints import shown

#: The numbers of spatial axes that a mode takes.
MODES: dict[str, tuple[int, ...]] = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    "area": (1, 2, 3),
}
_WITH_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")
_SHARP, _SMOOTH = -0.75, -0.5  # the parameter of the cubic kernel, without and with antialiasing


@dataclass(frozen=True)
class Taps:
    """The taps along an axis: for each element of the result, as many indices and weights.

    Attributes
    ----------
    length : int
        The number of elements of the input.
    indices, weights : tuple of tuple
        For each tap, the indices of elements of the input, and their weights, in the order of the
        elements of the result.
    """

    length: int
    indices: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, length: int, indices: np.ndarray, weights: np.ndarray) -> Taps:
        """Return the taps of arrays with shape (taps, elements of the result)."""
        rows, numbers = indices.tolist(), weights.tolist()
        return cls(length, tuple(map(tuple, rows)), tuple(map(tuple, numbers)))

    @cached_property
    def transposed(self) -> Taps:
        """The taps of the transpose: for each element of the input, the results that take it."""
        count = len(self.indices[0])
        order = np.argsort(np.ravel(self.indices), kind="stable")
        inputs, weights = np.ravel(self.indices)[order], np.ravel(self.weights)[order]
        results = (order % count)[weights != 0]
        inputs, weights = inputs[weights != 0], weights[weights != 0]
        starts = np.searchsorted(inputs, np.arange(self.length))
        rank = np.arange(len(inputs)) - starts[inputs]  # among the results of an input
        shape = (int(rank.max(initial=0)) + 1, self.length)
        table, numbers = np.zeros(shape, np.int64), np.zeros(shape)
        table[rank, inputs], numbers[rank, inputs] = results, weights
        return Taps.of(count, table, numbers)

    @property
    def is_identity(self) -> bool:
        """Whether each element of the result is the element at its place."""
        return (
            self.indices[0] == tuple(range(self.length))
            and set(self.weights[0]) == {1}
            and not any(map(any, self.weights[1:]))
        )


def _transpose(g: Any, xp: Any, axis: int, taps: Taps) -> Any:
    return call_op(resample, xp, g, axis=axis, taps=taps.transposed)


@derivative(_transpose)
def resample(xp: Any, x: Any, *, axis: int, taps: Taps) -> Any:
    r"""Return sums of elements along an axis, with indices and weights; the derivative is its own.

    An element of weight 0 does not count, even if it is not finite.

    Notes
    -----
    .. math:: y_i = \sum_k w_{ki}\, x_{j_{ki}}

    - Gradient for `x`: :math:`\bar x_q = \sum_{ki:\, j_{ki} = q} w_{ki}\, \bar y_i`; :math:`j` and
      :math:`w` are the indices and the weights of the taps :math:`k`
    """
    shape, out = (-1, *(1,) * (len(x.shape) - axis - 1)), None
    for indices, row in zip(taps.indices, taps.weights, strict=True):
        part = xp.take(x, xp.asarray(indices, dtype=xp.int64, device=x.device), axis=axis)
        if 0 in row:
            counts = xp.asarray([w != 0 for w in row], dtype=xp.bool, device=x.device)
            part = xp.where(xp.reshape(counts, shape), part, xp.zeros_like(part))
        if not {0, 1}.issuperset(row):
            weights = xp.asarray(row, dtype=x.dtype, device=x.device)
            part = part * xp.reshape(weights, shape)
        out = part if out is None else out + part
    return out


def _cubic_kernel(distance: Any, a: float) -> Any:
    """Return the cubic convolution kernel of R. Keys (1981) with parameter `a`."""
    d = np.abs(distance)
    near, far = (1 - d) * (1 + d - (a + 2) * d * d), a * (d - 1) * (d - 2) ** 2
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _triangle(distance: Any) -> Any:
    return np.maximum(1 - np.abs(distance), 0.0)


def _step(length: int, count: int, scale: float | None, align_corners: bool) -> float:
    """Return the distance in the input between neighbours in the result."""
    if align_corners:
        return (length - 1) / (count - 1) if count > 1 else 0.0
    return length / count if scale is None else 1 / scale


def _nearest(length: int, count: int, scale: float | None, exact: bool) -> Taps:
    # In float32, as in PyTorch, whose choice of a neighbour depends on the rounding.
    step, half = np.float32(_step(length, count, scale, False)), np.float32(0.5)
    places = np.arange(count, dtype=np.float32)
    places = np.maximum(step * (places + half) - half, 0) + half if exact else step * places
    at = np.clip(np.floor(places).astype(np.int64), 0, length - 1)[None]
    return Taps.of(length, at, np.ones(at.shape))


def _linear(length: int, places: np.ndarray) -> Taps:
    places = np.maximum(places, 0)
    first = np.minimum(places.astype(np.int64), length - 1)
    share = np.clip(places - first, 0, 1)
    second = np.minimum(first + 1, length - 1)
    return Taps.of(length, np.stack([first, second]), np.stack([1 - share, share]))


def _cubic(length: int, places: np.ndarray) -> Taps:
    taps = np.floor(places).astype(np.int64) + np.arange(-1, 3)[:, None]
    return Taps.of(length, np.clip(taps, 0, length - 1), _cubic_kernel(places - taps, _SHARP))


def _antialiased(
    length: int,
    count: int,
    step: float,
    radius: int,
    kernel: Callable[[Any], Any],
) -> Taps:
    """Return taps with a kernel that is as wide as the distance in the input, or wider."""
    width = max(step, 1.0)
    centers = step * (np.arange(count) + 0.5)
    starts = np.maximum((centers - radius * width + 0.5).astype(np.int64), 0)
    stops = np.minimum((centers + radius * width + 0.5).astype(np.int64), length)
    offsets = np.arange(max(1, int((stops - starts).max())))[:, None]
    weights = kernel((starts + offsets - centers + 0.5) / width)
    weights = np.where(starts + offsets < stops, weights, 0.0)
    return Taps.of(length, np.minimum(starts + offsets, stops - 1), weights / weights.sum(0))


@lru_cache(maxsize=64)
def _taps(
    mode: str, length: int, count: int, scale: float | None, align_corners: bool, antialias: bool
) -> Taps:
    """Return the taps along an axis, from its length and the length of the result."""
    if mode.startswith("nearest"):
        return _nearest(length, count, scale, mode == "nearest-exact")
    step, shift = _step(length, count, scale, align_corners), 0.0 if align_corners else 0.5
    if antialias:
        if mode == "bicubic":
            return _antialiased(length, count, step, 2, lambda d: _cubic_kernel(d, _SMOOTH))
        return _antialiased(length, count, step, 1, _triangle)
    places = step * (np.arange(count) + shift) - shift
    return _cubic(length, places) if mode == "bicubic" else _linear(length, places)


# Options


def _numbers(name: str, argument: str, value: Any, ndim: int, kind: Any) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    right = [x for x in values if isinstance(x, kind) and not isinstance(x, bool)]
    if not len(right) == len(values) == ndim or not all(0 < x < math.inf for x in right):
        what = "ints" if kind is Integral else "numbers"
        raise ValueError(
            f"{name}: expected one or {ndim} {what} above 0 for {argument}, got {shown(value)}"
        )
    return values


def check_options(
    name: str,
    size: Any,
    scale_factor: Any,
    mode: Any,
    align_corners: Any,
    recompute_scale_factor: Any,
) -> None:
    """Raise ValueError for options that do not fit each other."""
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(
            f"{name}: expected a mode of {', '.join(map(repr, MODES))}, got {shown(mode)}"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"{name}: expected either size or scale_factor, got {shown(size)} and"
            f" {shown(scale_factor)}"
        )
    if align_corners is not None and mode not in _WITH_CORNERS:
        raise ValueError(
            f"{name}: expected no align_corners with mode {mode!r}, got {shown(align_corners)}"
        )
    if recompute_scale_factor and size is not None:
        raise ValueError(f"{name}: expected no recompute_scale_factor with size, got both")


@upcast
def resize(
    name: str,
    input: Tensor,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> Tensor:
    """Return images of another size; error messages start with `name`."""
    check_options(name, size, scale_factor, mode, align_corners, recompute_scale_factor)
    (input,) = widened(as_tensor(name, "input", input))
    ndim = input.ndim - 2
    if ndim not in MODES[mode]:
        shapes = [f"(N, C, {AXES[n]})" for n in MODES[mode]]
        raise ValueError(
            f"{name}: expected input of shape {' or '.join(shapes)} for mode {mode!r}, got"
            f" {input.shape}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            f"{name}: expected antialias with mode 'bilinear' or 'bicubic', got {mode!r}"
        )
    if input.dtype.kind != "f" and not mode.startswith("nearest"):
        raise TypeError(f"{name}: expected a floating input for mode {mode!r}, got {input.dtype}")
    lengths, scales = input.shape[2:], (None,) * ndim
    if size is not None:
        counts = _numbers(name, "size", size, ndim, Integral)
    else:
        factors = _numbers(name, "scale_factor", scale_factor, ndim, Real)
        counts = tuple([math.floor(n * s) for n, s in zip(lengths, factors, strict=True)])
        scales = scales if recompute_scale_factor else factors
    if 0 in (*lengths, *counts):
        raise ValueError(
            f"{name}: expected images with elements, got input of shape {input.shape} and a result"
            f" of {counts}"
        )
    if mode == "area":
        return adapt_average(name, input, counts, ndim)
    out = input
    for axis, (n, count, scale) in enumerate(zip(lengths, counts, scales, strict=True), 2):
        if count == n and mode in ("linear", "bilinear", "trilinear") and not antialias:
            continue  # PyTorch copies then, whatever the scale factor is
        taps = _taps(mode, n, int(count), scale, bool(align_corners), antialias)
        if not taps.is_identity:
            out = resample(out, axis=axis, taps=taps)
    return asarray(out, copy=True) if out is input else out


def interpolate(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    r"""Return sequences, images or volumes of another size.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W), floating, or of any dtype for the
        nearest elements.
    size : int or tuple of int, optional
        The lengths of the spatial axes of the result.
    scale_factor : float or tuple of float, optional
        The ratio of the lengths of the result and of the input, in place of `size`.
    mode : str, default "nearest"
        "nearest" and "nearest-exact" for the nearest element, by the distance of its left edge and
        of its center; "linear", "bilinear" and "trilinear" for lines between two elements, and
        "bicubic" for cubics between four, along one, two and three axes; "area" for averages.
    align_corners : bool, optional
        Whether the centers of the first and of the last element stay at their places, and not their
        outer edges; by default False. For lines and cubics only.
    recompute_scale_factor : bool, optional
        Whether the distance of elements follows from the rounded lengths, and not from
        `scale_factor`.
    antialias : bool, default False
        Whether smaller images are averages over all elements, so that fine patterns do not alias;
        for "bilinear" and "bicubic".

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ValueError
        If an option is unknown or does not fit the others, or the shape of `input` does not fit the
        mode.
    TypeError
        If `input` is not floating, in another mode than "nearest" and "nearest-exact".

    Notes
    -----
    .. math:: y_i = \sum_j w_{ij} x_j

    This is done along each axis; the weights :math:`w` follow from the lengths and the mode.

    - Gradient for `input`: :math:`\bar x_j = \sum_i w_{ij} \bar y_i`

    Differentiable to any order. Like ``torch.nn.functional.interpolate``. An element of weight 0
    does not count, even if it is infinite. Which of two elements is nearer is decided in float32,
    for all dtypes.

    R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions on
    Acoustics, Speech, and Signal Processing 29, 1981.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[[0.0, 4.0]]])
    >>> xgrad.nn.functional.interpolate(x, scale_factor=2)
    Tensor([[[0., 0., 4., 4.]]])
    >>> xgrad.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    Tensor([[[0., 2., 4.]]])
    """
    options = size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    return resize("interpolate", input, *options)


def upsample(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    r"""Return images of another size: `interpolate` under its former name.

    Parameters
    ----------
    input : Tensor
        See `interpolate`, for all parameters.
    size : int or tuple of int, optional
        The lengths of the spatial axes of the result.
    scale_factor : float or tuple of float, optional
        The ratio of the lengths of the result and of the input.
    mode : str, default "nearest"
        The interpolation.
    align_corners : bool, optional
        Whether the centers of the corners stay at their places.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Notes
    -----
    .. math:: y_i = \sum_j w_{ij} x_j

    This is done along each axis; the weights :math:`w` follow from the lengths and the mode.

    - Gradient for `input`: :math:`\bar x_j = \sum_i w_{ij} \bar y_i`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.upsample(xgrad.ones((1, 1, 2, 2)), scale_factor=3).shape
    (1, 1, 6, 6)
    """
    return resize("upsample", input, size, scale_factor, mode, align_corners, None, False)
