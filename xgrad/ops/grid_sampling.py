"""Samples of images at the places of a grid: `grid_sample`, and the grid of `affine_grid`."""

from __future__ import annotations

import itertools
import math
from functools import reduce
from typing import Any

from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange, zeros
from xgrad.ops.elementwise import abs, floor, isnan, logical_and, multiply, round
from xgrad.ops.indexing import take
from xgrad.ops.joining import stack
from xgrad.ops.manipulation import broadcast_to, permute_dims, reshape
from xgrad.ops.matrix_products import matmul
from xgrad.ops.precision import upcast, widened
from xgrad.ops.searching import where
from xgrad.ops.tensor_conversion import astype
from xgrad.ops.windows import AXES
from xgrad.support.hints import shown

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")
_CUBIC = -0.75  # the parameter of the cubic kernel

#: A tap along an axis: the place of an element, as a float, and its weight.
_Tap = tuple[Tensor, Tensor]


def _unnormalized(place: Tensor, length: int, align_corners: bool) -> Tensor:
    """Return places from -1 to 1 as places of elements."""
    return (place + 1) / 2 * (length - 1) if align_corners else ((place + 1) * length - 1) / 2


def _into_image(place: Tensor, length: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Return places outside of the image as places inside, by the mode of padding."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, length - 1) if align_corners else (-0.5, length)
        distance = abs(place - low)
        if span:
            flips = floor(distance / span)
            rest = distance - flips * span
            place = where(flips / 2 == floor(flips / 2), rest, span - rest) + low
    last = length - 1
    return where(place <= 0, 0, where(place >= last, last, place))


def _taps(
    place: Tensor, length: int, mode: str, padding_mode: str, align_corners: bool
) -> list[_Tap]:
    """Return the taps along an axis of the samples at some places."""
    options = length, padding_mode, align_corners
    place = _unnormalized(place, length, align_corners)
    if mode == "bicubic":
        first = floor(place)
        weights = _cubic_weights(place - first)
        return [(_into_image(first + i, *options), w) for i, w in enumerate(weights, -1)]
    place = _into_image(place, *options)
    if mode == "nearest":
        place = round(place)  # whose derivative is 0
        return [(place, where(_is_inside(place, length), place * 0, 0) + 1)]
    first = floor(place)
    share = place - first
    return [(first, 1 - share), (first + 1, share)]


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Return the weights of four elements around a place at distance `t` after the second.

    In this form of the polynomials, no terms cancel.
    """
    s = 1 - t
    first, last = _CUBIC * (t * s * s), _CUBIC * (s * t * t)
    second = s * (1 + t * (1 - (_CUBIC + 2) * t))
    third = t * (1 + s * (1 - (_CUBIC + 2) * s))
    return [first, second, third, last]


def _is_inside(place: Tensor, length: int) -> Tensor:
    return logical_and(place >= 0, place <= length - 1)


@upcast
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    r"""Return samples of images at the places of a grid.

    M. Jaderberg, K. Simonyan, A. Zisserman, K. Kavukcuoglu, "Spatial transformer networks",
    NeurIPS, 2015.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, H, W) or (N, C, D, H, W), floating.
    grid : Tensor
        Of shape (N, H', W', 2) or (N, D', H', W', 3): the places, from -1 at one side of the image
        to 1 at the other, the place along the last axis first. NaN stands for -1.
    mode : {"bilinear", "nearest", "bicubic"}, default "bilinear"
        The interpolation; "bilinear" is trilinear for volumes, and "bicubic" is for images alone.
    padding_mode : {"zeros", "border", "reflection"}, default "zeros"
        The elements outside of the image: zeros, the elements at the border, or the elements
        reflected at the border.
    align_corners : bool, optional
        Whether -1 and 1 are the centers of the elements at the border, and not their outer edges;
        by default False.

    Returns
    -------
    Tensor
        Of shape (N, C, H', W') or (N, C, D', H', W').

    Raises
    ------
    ValueError
        If an option is unknown, or the shapes do not fit.
    TypeError
        If an input is not floating.

    Notes
    -----
    .. math:: y = \sum_{ij} w_i(u)\, w_j(v)\, x_{ij}

    :math:`u` and :math:`v` are the place of a sample in the image, in elements, and :math:`w` the
    weights of the interpolation: :math:`\max(0, 1 - |u - i|)` for "bilinear".

    - Gradient for `input`: :math:`w_i(u)\, w_j(v)\, \bar y`, summed over the samples
    - Gradient for `grid`: :math:`\bar y \sum_{ij} w_i'(u)\, w_j(v)\, x_{ij}` for :math:`u`,
      summed over the channels, times :math:`(n - 1) / 2` with `align_corners`, else :math:`n / 2`,
      for a length of :math:`n`; likewise for :math:`v`. In the mode "nearest" it is 0.

    Differentiable to any order by both inputs.

    Examples
    --------
    >>> import xgrad
    >>> F = xgrad.nn.functional
    >>> x = xgrad.asarray([[[[0.0, 2.0], [4.0, 6.0]]]])
    >>> F.grid_sample(x, xgrad.asarray([[[[0.0, 0.0], [1.0, -1.0]]]]), align_corners=True)
    Tensor([[[[3., 2.]]]])
    """
    name = "grid_sample"
    input, grid = widened(as_tensor(name, "input", input), as_tensor(name, "grid", grid))
    ndim, sizes = input.ndim - 2, input.shape[2:]
    _check(name, input, grid, mode, padding_mode)
    grid = where(isnan(grid), -1, grid)
    options = mode, padding_mode, bool(align_corners)
    axes = [_taps(grid[..., ndim - 1 - i], n, *options) for i, n in enumerate(sizes)]
    batch, channels, count = input.shape[0], input.shape[1], math.prod(sizes)
    # Elements of all channels at a place are a row, so that a place needs only one index.
    rows = reshape(permute_dims(input, (0, *range(2, ndim + 2), 1)), (batch * count, channels))
    starts = reshape(arange(batch, dtype=int64, device=input.device) * count, (-1, *(1,) * ndim))
    out = None
    for taps in itertools.product(*axes):
        places = [place.detach() for place, _ in taps]
        weight = reduce(multiply, [weight for _, weight in taps])
        inside = reduce(logical_and, map(_is_inside, places, sizes))
        index = starts
        for i, (place, n) in enumerate(zip(places, sizes, strict=True)):
            at = astype(where(inside, place, 0), int64)
            index = index + at * math.prod(sizes[i + 1 :]) if n > 1 else index
        index = broadcast_to(index, grid.shape[:-1])
        values = reshape(
            take(rows, reshape(index, (math.prod(index.shape),)), axis=0), (*index.shape, channels)
        )
        part = where(inside[..., None], values, 0) * weight[..., None]
        out = part if out is None else out + part
    assert out is not None
    return permute_dims(out, (0, ndim + 1, *range(1, ndim + 1)))


def _check(name: str, input: Tensor, grid: Tensor, mode: Any, padding_mode: Any) -> None:
    """Raise an error unless the shapes and the options fit each other."""
    if mode not in MODES:
        known = ", ".join(map(repr, MODES))
        raise ValueError(f"{name}: expected a mode of {known}, got {shown(mode)}")
    if padding_mode not in PADDING_MODES:
        known = ", ".join(map(repr, PADDING_MODES))
        raise ValueError(f"{name}: expected a padding_mode of {known}, got {shown(padding_mode)}")
    ndim = input.ndim - 2
    if ndim not in (2, 3) or 0 in input.shape[2:]:
        raise ValueError(
            f"{name}: expected input of shape (N, C, H, W) or (N, C, D, H, W) with elements, got"
            f" {input.shape}"
        )
    if grid.ndim != ndim + 2 or grid.shape[-1] != ndim or grid.shape[0] != input.shape[0]:
        raise ValueError(
            f"{name}: expected grid of shape (N, {AXES[ndim]}, {ndim}) for input of shape"
            f" {input.shape}, got {grid.shape}"
        )
    if mode == "bicubic" and ndim != 2:
        raise ValueError(f"{name}: expected images for mode 'bicubic', got {input.shape}")
    for argument, x in (("input", input), ("grid", grid)):
        if x.dtype.kind != "f":
            raise TypeError(f"{name}: expected a floating {argument}, got {x.dtype}")


@upcast
def affine_grid(theta: Tensor, size: tuple[int, ...], align_corners: bool | None = None) -> Tensor:
    r"""Return the grid of affine maps, for `grid_sample`.

    Parameters
    ----------
    theta : Tensor
        A matrix for each map, of shape (N, 2, 3) for images or (N, 3, 4) for volumes, floating.
    size : tuple of int
        The shape of the images to sample: (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool, optional
        Whether -1 and 1 are the centers of the elements at the border, and not their outer edges;
        by default False.

    Returns
    -------
    Tensor
        Of shape (N, H, W, 2) or (N, D, H, W, 3).

    Raises
    ------
    ValueError
        If the shapes do not fit.
    TypeError
        If `theta` is not floating, or `size` not a tuple of ints.

    Notes
    -----
    .. math:: y = \theta \begin{pmatrix} u \\ 1 \end{pmatrix}

    :math:`u` is the place of an element, from -1 to 1.

    - Gradient for `theta`: :math:`\sum_u \bar y\, (u^\top, 1)`

    Examples
    --------
    >>> import xgrad
    >>> # half an image to the right
    >>> theta = xgrad.asarray([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
    >>> xgrad.nn.functional.affine_grid(theta, (1, 1, 1, 2))
    Tensor([[[[0., 0.],
              [1., 0.]]]])
    """
    name = "affine_grid"
    (theta,) = widened(as_tensor(name, "theta", theta))
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}: expected a tuple of ints for size, got {shown(size)}")
    shape, ndim = tuple([as_int(name, "size", n) for n in size]), len(size) - 2
    if ndim not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"{name}: expected a size of (N, C, H, W) or (N, C, D, H, W), got {shown(size)}"
        )
    if theta.shape != (shape[0], ndim, ndim + 1):
        raise ValueError(
            f"{name}: expected theta of shape {(shape[0], ndim, ndim + 1)}, got {theta.shape}"
        )
    if theta.dtype.kind != "f":
        raise TypeError(f"{name}: expected a floating theta, got {theta.dtype}")
    sizes, places = shape[2:], []
    for i, n in enumerate(sizes):
        numbers = 2 * arange(n, dtype=theta.dtype, device=theta.device)
        if align_corners:
            numbers = numbers / max(n - 1, 1) - (1 if n > 1 else 0)
        else:
            numbers = (numbers + 1) / n - 1
        places.append(broadcast_to(reshape(numbers, (n, *(1,) * (ndim - i - 1))), sizes))
    constant = zeros(sizes, dtype=theta.dtype, device=theta.device) + 1
    base = reshape(stack([*places[::-1], constant], axis=-1), (math.prod(sizes), ndim + 1))
    grid = matmul(base, theta.mT)
    return reshape(grid, (shape[0], *sizes, ndim))
