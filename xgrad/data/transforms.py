"""Transforms of images, as a dataset or a training loop calls them.

Except for `ToTensor`, they take tensors of shape (..., channels, height, width): an image, or a
batch of images, which all get the same crop or flip. NumPy arrays of this shape become tensors on
the default device. Random transforms draw from the generator of `xgrad.manual_seed`, on the host:
the same seed gives the same images on every device, and in a `xgrad.data.DataLoader` with any
number of workers. They read these numbers, and so belong before a captured step, not into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xgrad.core.dtypes import get_default_dtype
from xgrad.core.tensor import Tensor
from xgrad.data.arguments import (
    as_bounds,
    as_fill,
    as_mode,
    as_numbers,
    as_probability,
    as_size,
    as_widths,
)
from xgrad.ops import arange, asarray, flip, where
from xgrad.ops.padding import pad
from xgrad.random import rand, randint, randn
from xgrad.support import hints
from xgrad.support.hints import shown

__all__ = [
    "CenterCrop",
    "Compose",
    "Lambda",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "ToTensor",
]
hints.install(__name__)


class Compose:
    """Several transforms, one after the other.

    Parameters
    ----------
    transforms : iterable of callable
        The transforms.

    Raises
    ------
    TypeError
        If one of them cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> from xgrad.data import transforms
    >>> prepare = transforms.Compose(
    ...     [
    ...         transforms.ToTensor(),
    ...         transforms.RandomCrop(28, padding=4),
    ...         transforms.Normalize([0.5], [0.25]),
    ...     ]
    ... )
    >>> prepare(np.zeros((28, 28), np.uint8)).shape
    (1, 28, 28)
    """

    def __init__(self, transforms: Iterable[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)
        for i, transform in enumerate(self.transforms):
            if not callable(transform):
                raise TypeError(
                    f"Compose: expected transforms that can be called, got {shown(transform)} at"
                    f" {i}"
                )

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        return f"Compose({self.transforms})"


class Lambda:
    """A function as a transform.

    Parameters
    ----------
    lambd : callable
        The function of an image.

    Raises
    ------
    TypeError
        If it cannot be called.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.Lambda(lambda x: 1 - x)(0.25)
    0.75
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: expected a function, got {shown(lambd)}")
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class ToTensor:
    """An image of shape (height, width) or (height, width, channels) as a tensor, channels first.

    Values of uint8, from 0 to 255, become numbers of the default dtype from 0 to 1; arrays of
    other dtypes keep their values. The image is a NumPy array or has its interface, such as an
    image of Pillow, of which black and white pixels become 0 and 1. The tensor is on the default
    device.

    Raises
    ------
    TypeError, ValueError
        At a call, if the image is no array of numbers, or does not have two or three axes.

    Examples
    --------
    >>> import numpy as np
    >>> import xgrad
    >>> image = np.full((4, 6, 3), 255, np.uint8)
    >>> x = xgrad.data.transforms.ToTensor()(image)
    >>> x.shape, x.max().item()
    ((3, 4, 6), 1.0)
    """

    def __call__(self, image: Any) -> Tensor:
        if isinstance(image, Tensor) or not hasattr(image, "__array_interface__"):
            got = type(image).__name__
            raise TypeError(f"ToTensor: expected a NumPy array or an image of Pillow, got {got}")
        array = np.asarray(image)
        if array.ndim not in (2, 3) or array.dtype.kind not in "biuf":
            raise ValueError(
                "ToTensor: expected numbers of shape (height, width) or (height, width, channels),"
                f" got shape {array.shape}, {array.dtype}"
            )
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        x = asarray(array, copy=True)
        if array.dtype == np.uint8:
            return x.astype(get_default_dtype()) / 255
        bilevel = array.dtype == np.bool_ and not isinstance(image, np.ndarray)
        return x.astype(get_default_dtype()) if bilevel else x


class Normalize:
    """Images minus a mean, divided by a standard deviation, for each channel.

    Parameters
    ----------
    mean, std : float or sequence of float
        One number for all channels, or one for each.

    Raises
    ------
    TypeError, ValueError
        If a number is invalid or `std` is not positive; at a call, if the images are not of a
        floating dtype, or their number of channels differs.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[[1.0, 3.0]], [[2.0, 4.0]]])
    >>> xgrad.data.transforms.Normalize([2.0, 3.0], [1.0, 0.5])(x).tolist()
    [[[-1.0, 1.0]], [[-2.0, 2.0]]]
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean, self.std = (
            as_numbers("Normalize", "mean", mean),
            as_numbers("Normalize", "std", std),
        )
        if min(self.std) <= 0:
            raise ValueError(f"Normalize: expected std above 0, got {shown(std)}")
        if len({len(self.mean), len(self.std), 1}) > 2:
            raise ValueError(
                f"Normalize: expected as many numbers for mean as for std, got {len(self.mean)} and"
                f" {len(self.std)}"
            )

    def __call__(self, images: Any) -> Tensor:
        x = _images("Normalize", images)
        if x.dtype.kind != "f":
            raise TypeError(
                f"Normalize: expected images of a floating dtype, got {x.dtype}: apply ToTensor"
                " before"
            )
        for numbers in (self.mean, self.std):
            if len(numbers) not in (1, x.shape[-3]):
                raise ValueError(
                    f"Normalize: expected images of {len(numbers)} channels, got {x.shape[-3]}"
                )
        mean, std = (
            asarray(numbers, dtype=x.dtype, device=x.device).reshape(-1, 1, 1)
            for numbers in (self.mean, self.std)
        )
        return (x - mean) / std


class Pad:
    """Images with a border.

    Parameters
    ----------
    padding : int or sequence of int
        The width of the border: one number; two, for left and right, and for top and bottom; or
        four, for left, top, right and bottom.
    fill : float, default 0
        The value of the border in mode "constant".
    padding_mode : {"constant", "edge", "reflect", "symmetric"}, default "constant"
        The values of the border: see `xgrad.pad`.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.Pad((1, 0), fill=7)(xgrad.ones((1, 1, 2))).tolist()
    [[[7.0, 1.0, 1.0, 7.0]]]
    """

    def __init__(
        self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant"
    ) -> None:
        self.padding = as_widths("Pad", padding)
        self.fill, self.padding_mode = as_fill("Pad", fill), as_mode("Pad", padding_mode)

    def __call__(self, images: Any) -> Tensor:
        return _padded(_images("Pad", images), self.padding, self.fill, self.padding_mode)


class CenterCrop:
    """The middle of images; smaller images get a border of zeros.

    Parameters
    ----------
    size : int or pair of int
        The height and width of the result; one number for a square.

    Raises
    ------
    ValueError
        If the size is invalid.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.CenterCrop((1, 2))(xgrad.arange(12).reshape(1, 3, 4)).tolist()
    [[[5, 6]]]
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = as_size("CenterCrop", size)

    def __call__(self, images: Any) -> Tensor:
        x, (rows, columns) = _images("CenterCrop", images), self.size
        missing = [max(rows - x.shape[-2], 0), max(columns - x.shape[-1], 0)]
        if any(missing):
            before, after = [n // 2 for n in missing], [(n + 1) // 2 for n in missing]
            x = _padded(x, (before[1], before[0], after[1], after[0]), 0, "constant")
        top, left = round((x.shape[-2] - rows) / 2), round((x.shape[-1] - columns) / 2)
        return x[..., top : top + rows, left : left + columns]


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
        if not isinstance(pad_if_needed, bool):
            raise TypeError(
                f"{name}: expected a bool for pad_if_needed, got {shown(pad_if_needed)}"
            )
        self.pad_if_needed = pad_if_needed
        self.fill, self.padding_mode = as_fill(name, fill), as_mode(name, padding_mode)

    def __call__(self, images: Any) -> Tensor:
        x, (rows, columns) = _images("RandomCrop", images), self.size
        if self.padding is not None:
            x = _padded(x, self.padding, self.fill, self.padding_mode)
        missing = max(rows - x.shape[-2], 0), max(columns - x.shape[-1], 0)
        if any(missing):
            if not self.pad_if_needed:
                raise ValueError(
                    f"RandomCrop: expected images of at least {rows} x {columns}, got"
                    f" {x.shape[-2]} x {x.shape[-1]}: set padding, or pad_if_needed=True"
                )
            border = (missing[1], missing[0], missing[1], missing[0])
            x = _padded(x, border, self.fill, self.padding_mode)
        top, left = _integer(x.shape[-2] - rows + 1), _integer(x.shape[-1] - columns + 1)
        return x[..., top : top + rows, left : left + columns]


class RandomHorizontalFlip:
    """Images exchanged left to right, with a probability.

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
    >>> xgrad.data.transforms.RandomHorizontalFlip(p=1)(xgrad.arange(3).reshape(1, 1, 3)).tolist()
    [[[2, 1, 0]]]
    """

    axis = -1

    def __init__(self, p: float = 0.5) -> None:
        self.p = as_probability(type(self).__name__, p)

    def __call__(self, images: Any) -> Tensor:
        x = _images(type(self).__name__, images)
        return flip(x, axis=self.axis) if _uniform() < self.p else x


class RandomVerticalFlip(RandomHorizontalFlip):
    """Images exchanged top to bottom, with a probability.

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
    >>> xgrad.data.transforms.RandomVerticalFlip(p=1)(xgrad.arange(3).reshape(1, 3, 1)).tolist()
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
        x = _images("RandomErasing", images)
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


def _images(name: str, images: Any) -> Tensor:
    x = asarray(images) if isinstance(images, np.ndarray) else images
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name}: expected a tensor or a NumPy array, got {type(images).__name__}: apply"
            " ToTensor before"
        )
    if x.ndim < 3:
        raise ValueError(
            f"{name}: expected images of shape (..., channels, height, width), got {x.shape}"
        )
    return x


def _padded(x: Tensor, padding: tuple[int, ...], fill: float, mode: Any) -> Tensor:
    left, top, right, bottom = padding
    widths = (*[(0, 0)] * (x.ndim - 2), (top, bottom), (left, right))
    return pad(x, widths, mode, **({"constant_values": fill} if mode == "constant" else {}))
