"""Random transforms: crops, flips and erased rectangles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.core.tensor import Tensor
from xgrad.data.arguments import (
    as_bounds,
    as_fill,
    as_mode,
    as_numbers,
    as_probability,
    as_size,
    as_widths,
    flag,
)
from xgrad.data.transforms.deterministic import as_images, padded
from xgrad.ops import arange, asarray, flip, where
from xgrad.random import rand, randint, randn
from xgrad.support.hints import shown


class RandomCrop:
    """A random part of images, after padding.

    Parameters
    ----------
    size : int or pair of int
        The height and width of the result; one number for a square.
    padding : int or sequence of int, optional
        The border to add before: see `Pad`.
    pad_if_needed : bool, default False
        Whether smaller images get a border of the missing width on both sides.
    fill : float, default 0
        The value of the border in mode "constant".
    padding_mode : {"constant", "edge", "reflect", "symmetric"}, default "constant"
        The values of the border.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range; at a call, if images are too small.

    Examples
    --------
    >>> import xgrad
    >>> crop = xgrad.data.transforms.RandomCrop(32, padding=4)
    >>> crop(xgrad.ones((8, 3, 32, 32))).shape
    (8, 3, 32, 32)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        name = "RandomCrop"
        self.size = as_size(name, size)
        self.padding = None if padding is None else as_widths(name, padding)
        self.pad_if_needed = flag(name, "pad_if_needed", pad_if_needed)
        self.fill, self.padding_mode = as_fill(name, fill), as_mode(name, padding_mode)

    def __call__(self, images: Any) -> Tensor:
        x, (rows, columns) = as_images("RandomCrop", images), self.size
        if self.padding is not None:
            x = padded(x, self.padding, self.fill, self.padding_mode)
        missing = max(rows - x.shape[-2], 0), max(columns - x.shape[-1], 0)
        if any(missing):
            if not self.pad_if_needed:
                raise ValueError(
                    f"RandomCrop: expected images of at least {rows} x {columns}, got"
                    f" {x.shape[-2]} x {x.shape[-1]}: set padding, or pad_if_needed=True"
                )
            border = (missing[1], missing[0], missing[1], missing[0])
            x = padded(x, border, self.fill, self.padding_mode)
        top, left = _integer(x.shape[-2] - rows + 1), _integer(x.shape[-1] - columns + 1)
        return x[..., top : top + rows, left : left + columns]


class RandomHorizontalFlip:
    """Images flipped horizontally, with a probability.

    Parameters
    ----------
    p : float, default 0.5
        The probability.

    Raises
    ------
    ValueError
        If it is not from 0 to 1.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.RandomHorizontalFlip(p=1)(
    ...     xgrad.arange(3).reshape(1, 1, 3)
    ... ).tolist()
    [[[2, 1, 0]]]
    """

    axis = -1

    def __init__(self, p: float = 0.5) -> None:
        self.p = as_probability(type(self).__name__, p)

    def __call__(self, images: Any) -> Tensor:
        x = as_images(type(self).__name__, images)
        return flip(x, axis=self.axis) if _uniform() < self.p else x


class RandomVerticalFlip(RandomHorizontalFlip):
    """Images flipped vertically, with a probability.

    Parameters
    ----------
    p : float, default 0.5
        The probability.

    Raises
    ------
    ValueError
        If it is not from 0 to 1.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.RandomVerticalFlip(p=1)(
    ...     xgrad.arange(3).reshape(1, 3, 1)
    ... ).tolist()
    [[[2], [1], [0]]]
    """

    axis = -2


class RandomErasing:
    """Images in which a random rectangle is replaced, with a probability [1]_.

    Parameters
    ----------
    p : float, default 0.5
        The probability.
    scale : pair of float, default (0.02, 0.33)
        The bounds of the rectangle's part of the area.
    ratio : pair of float, default (0.3, 3.3)
        The bounds of its height by its width, of which the logarithm is uniform.
    value : float, sequence of float or "random", default 0
        The value in the rectangle, one for each channel, or standard normal numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    References
    ----------
    .. [1] Z. Zhong et al., "Random erasing data augmentation", AAAI 2020. After ten rectangles
       that do not fit, images stay as they are.

    Examples
    --------
    >>> import xgrad
    >>> erase = xgrad.data.transforms.RandomErasing(p=1, scale=(0.25, 0.25), ratio=(1, 1))
    >>> erase(xgrad.ones((1, 8, 8))).sum().item()  # without 4 x 4
    48.0
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
    ) -> None:
        name = "RandomErasing"
        self.p = as_probability(name, p)
        self.scale, self.ratio = as_bounds(name, "scale", scale), as_bounds(name, "ratio", ratio)
        if self.scale[1] > 1:
            raise ValueError(f"{name}: expected scale of at most 1, got {shown(scale)}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"{name}: expected numbers or 'random' for value, got {shown(value)}")
        self.value = value if isinstance(value, str) else as_numbers(name, "value", value)

    def __call__(self, images: Any) -> Tensor:
        x = as_images("RandomErasing", images)
        if _uniform() >= self.p:
            return x
        channels, height, width = x.shape[-3:]
        if self.value != "random" and len(self.value) not in (1, channels):
            raise ValueError(
                f"RandomErasing: expected images of {len(self.value)} channels, as value has, got"
                f" {channels}"
            )
        low, high = map(math.log, self.ratio)
        for _ in range(10):
            area = height * width * (self.scale[0] + (self.scale[1] - self.scale[0]) * _uniform())
            ratio = math.exp(low + (high - low) * _uniform())
            rows, columns = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if rows < height and columns < width:
                break
        else:
            return x
        top, left = _integer(height - rows + 1), _integer(width - columns + 1)
        if self.value == "random":
            value = randn((channels, height, width), device=x.device).astype(x.dtype)
        else:
            value = asarray(self.value, device=x.device).astype(x.dtype).reshape(-1, 1, 1)
        i, j = arange(height, device=x.device)[:, None], arange(width, device=x.device)
        inside = (i >= top) & (i < top + rows) & (j >= left) & (j < left + columns)
        return where(inside, value, x)


def _uniform() -> float:
    """Return a random number from 0 to 1, without 1."""
    return float(rand((), dtype="float64", device="cpu"))


def _integer(count: int) -> int:
    """Return a random integer below `count`."""
    return int(randint(0, count, (), device="cpu"))
