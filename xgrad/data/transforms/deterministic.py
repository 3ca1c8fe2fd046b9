"""Transforms that are the same at every call, and their composition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xgrad.core.dtypes import get_default_dtype
from xgrad.core.tensor import Tensor
from xgrad.data.arguments import as_fill, as_mode, as_numbers, as_size, as_widths
from xgrad.ops import asarray
from xgrad.ops.padding import pad
from xgrad.support.hints import shown


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
        x = as_images("Normalize", images)
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
        return padded(as_images("Pad", images), self.padding, self.fill, self.padding_mode)


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
        x, (rows, columns) = as_images("CenterCrop", images), self.size
        missing = [max(rows - x.shape[-2], 0), max(columns - x.shape[-1], 0)]
        if any(missing):
            before, after = [n // 2 for n in missing], [(n + 1) // 2 for n in missing]
            x = padded(x, (before[1], before[0], after[1], after[0]), 0, "constant")
        top, left = round((x.shape[-2] - rows) / 2), round((x.shape[-1] - columns) / 2)
        return x[..., top : top + rows, left : left + columns]


def as_images(name: str, images: Any) -> Tensor:
    """Return a tensor of images, given a tensor or a NumPy array; raise an error for others."""
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


def padded(x: Tensor, padding: tuple[int, ...], fill: float, mode: Any) -> Tensor:
    """Return images with a border of the left, top, right and bottom widths."""
    left, top, right, bottom = padding
    widths = (*[(0, 0)] * (x.ndim - 2), (top, bottom), (left, right))
    return pad(x, widths, mode, **({"constant_values": fill} if mode == "constant" else {}))
