"""Grids of images, and files of them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from xgrad.core.tensor import Tensor
from xgrad.data.arguments import as_numbers, flag
from xgrad.ops import broadcast_to, clip, concat, full, permute_dims, reshape, stack
from xgrad.ops import max as max_
from xgrad.ops import min as min_
from xgrad.ops.padding import pad
from xgrad.support.files import write
from xgrad.support.hints import import_optional, shown


def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Return one image with a batch of images in rows.

    Parameters
    ----------
    tensor : Tensor or sequence of Tensor
        Images of shape (images, channels, height, width), a single image of shape
        (channels, height, width) or (height, width), or a sequence of images of one shape. An image
        of one channel gets three equal ones.
    nrow : int, default 8
        The number of images in a row.
    padding : int, default 2
        The width of the border around each image. A single image gets none.
    normalize : bool, default False
        Whether to map values linearly from `value_range` to [0, 1].
    value_range : pair of float, optional
        The values for 0 and 1, by default the smallest and the largest one. Others are clipped.
    scale_each : bool, default False
        Whether each image has its own smallest and largest value.
    pad_value : float, default 0
        The value of the border.

    Returns
    -------
    Tensor
        The image, of shape (channels, height, width).

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.make_grid(xgrad.ones((5, 1, 8, 8)), nrow=3).shape
    (3, 22, 32)
    """
    images = _as_batch(tensor)
    for name, value, least in (("nrow", nrow, 1), ("padding", padding, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(
                f"make_grid: expected an int of {least} or more for {name}, got {shown(value)}"
            )
    for name, value in (("normalize", normalize), ("scale_each", scale_each)):
        flag("make_grid", name, value)
    if normalize:
        images = _normalized(images, value_range, scale_each)
    elif value_range is not None or scale_each:
        name = "scale_each" if value_range is None else "value_range"
        raise ValueError(f"make_grid: expected {name} with normalize=True, got it without")
    count, channels, height, width = images.shape
    if count == 1:
        return images[0, ...]
    border = int(pad_value) if images.dtype.kind in "iu" else pad_value
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    if missing := rows * columns - count:
        shape = (missing, channels, height, width)
        empty = full(shape, border, dtype=images.dtype, device=images.device)
        images = concat([images, empty])
    # each image with a border above and to the left, then one around the rest
    start, end = (padding, 0), (0, padding)
    images = pad(images, ((0, 0), (0, 0), start, start), constant_values=border)
    height, width = height + padding, width + padding
    grid = permute_dims(reshape(images, (rows, columns, channels, height, width)), (2, 0, 3, 1, 4))
    grid = reshape(grid, (channels, rows * height, columns * width))
    return pad(grid, ((0, 0), end, end), constant_values=border)


def save_image(
    tensor: Tensor | Sequence[Tensor],
    path: str | os.PathLike[str],
    format: str | None = None,
    **options: Any,
) -> None:
    """Write images to a file, such as a PNG, as `make_grid` arranges them.

    This needs Pillow: ``pip install 'xgrad[cli]'``.

    Parameters
    ----------
    tensor : Tensor or sequence of Tensor
        Images with values from 0 to 1, which are rounded to 256 levels; others are clipped,
        and NaN is black.
    path : str or os.PathLike
        The file, which is written completely or not at all.
    format : str, optional
        The format by its name in Pillow, such as "PNG"; by default the format of the file's suffix.
    **options
        The options of `make_grid`.

    Raises
    ------
    ImportError
        If Pillow is missing.
    TypeError, ValueError
        As for `make_grid`, and if the format is unknown.

    Examples
    --------
    >>> import xgrad
    >>> images = xgrad.random.rand((16, 1, 28, 28))
    >>> xgrad.data.save_image(images, "images.png", nrow=4)  # doctest: +SKIP
    """
    grid = make_grid(tensor, **options).detach()
    if grid.dtype.kind != "f":
        raise TypeError(f"save_image: expected a floating dtype, from 0 to 1, got {grid.dtype}")
    scaled = clip(grid * 255 + 0.5, 0, 255).to("cpu").numpy()
    levels = np.nan_to_num(scaled).astype(np.uint8)
    if len(levels) not in (3, 4):
        raise ValueError(f"save_image: expected 1, 3 or 4 channels, got {len(levels)}")
    pillow = import_optional("PIL.Image", "cli", "save_image: ")
    target, content = Path(path), BytesIO()
    pillow.init()
    if format is None:
        format = pillow.EXTENSION.get(target.suffix.lower())
    if not isinstance(format, str) or format.upper() not in pillow.SAVE:
        got = shown(target.suffix if format is None else format)
        raise ValueError(
            f"save_image: expected a format that Pillow writes, such as .png, got {got}"
        )
    picture = pillow.fromarray(np.ascontiguousarray(levels.transpose(1, 2, 0)))
    picture.save(content, format=format)
    write(target, content.getvalue())


def _as_batch(tensor: Any) -> Tensor:
    """Return images of three channels or more, with an axis of images."""
    images = tensor
    if not isinstance(tensor, Tensor):
        if not isinstance(tensor, Sequence) or not all(isinstance(x, Tensor) for x in tensor):
            raise TypeError(f"make_grid: expected a tensor or tensors, got {type(tensor).__name__}")
        if not tensor or len({x.shape for x in tensor}) > 1:
            raise ValueError(
                "make_grid: expected images of one shape, got shapes"
                f" {sorted({x.shape for x in tensor})}"
            )
        images = stack(tensor)
    if images.ndim not in (2, 3, 4) or 0 in images.shape:
        raise ValueError(
            "make_grid: expected images of shape (images, channels, height, width), got"
            f" {images.shape}"
        )
    if images.ndim < 4:
        images = reshape(images, (1, *(1,) * (3 - images.ndim), *images.shape))
    if images.shape[1] == 1:
        count, _, height, width = images.shape
        images = broadcast_to(images, (count, 3, height, width))
    result: Tensor = images
    return result


def _normalized(
    images: Tensor, value_range: tuple[float, float] | None, scale_each: bool
) -> Tensor:
    """Return images with values from 0 to 1."""
    if value_range is None:
        axes = (1, 2, 3) if scale_each else None
        low, high = (f(images, axis=axes, keepdims=True) for f in (min_, max_))
        return (images - low) / clip(high - low, 1e-5, None)
    limits = as_numbers("make_grid", "value_range", value_range)
    if len(limits) != 2 or not -math.inf < limits[0] < limits[1] < math.inf:
        raise ValueError(
            "make_grid: expected two finite numbers in ascending order for value_range, got"
            f" {shown(value_range)}"
        )
    start, end = limits
    return (clip(images, start, end) - start) / max(end - start, 1e-5)
