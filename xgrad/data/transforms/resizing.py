"""Images of another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xgrad.core.dtypes import float32, float64
from xgrad.core.tensor import Tensor
from xgrad.data.arguments import as_size, count, flag
from xgrad.data.transforms.deterministic import as_images
from xgrad.ops import clip, iinfo, reshape, round
from xgrad.ops.interpolation import interpolate
from xgrad.support.hints import shown

_NEAREST = ("nearest", "nearest-exact")
_MODES = (*_NEAREST, "bilinear", "bicubic")


class Resize:
    """Images of another size.

    Parameters
    ----------
    size : int or pair of int
        The height and width of the result. One number is the length of the shorter edge; the longer
        one keeps the ratio, rounded down.
    interpolation : {"nearest", "nearest-exact", "bilinear", "bicubic"}, default "bilinear"
        The interpolation: see `xgrad.nn.functional.interpolate`.
    max_size : int, optional
        With one number as `size`, the largest length of the longer edge; the shorter one is then
        shorter than `size`.
    antialias : bool, default True
        Whether smaller images are averages over all pixels, for "bilinear" and "bicubic".

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range; at a call, if images are empty, or are
        interpolated and not of real numbers.

    Notes
    -----
    Interpolated integers are rounded, and limited to the range of their dtype.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.data.transforms.Resize(8)(xgrad.ones((3, 16, 40))).shape
    (3, 8, 20)
    >>> xgrad.data.transforms.Resize((1, 2))(xgrad.arange(16).reshape(1, 2, 8)).tolist()
    [[[6, 9]]]
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: str = "bilinear",
        max_size: int | None = None,
        antialias: bool = True,
    ) -> None:
        name = "Resize"
        if isinstance(size, Sequence) and len(size) == 1:
            size = size[0]
        self.shape = as_size(name, size)
        self.keeps_ratio = not isinstance(size, Sequence)
        if interpolation not in _MODES:
            raise ValueError(
                f"{name}: expected interpolation to be one of {_MODES}, got {shown(interpolation)}"
            )
        self.interpolation, self.antialias = interpolation, flag(name, "antialias", antialias)
        self.max_size = None if max_size is None else count(name, "max_size", max_size)
        if max_size is not None and not (self.keeps_ratio and max_size > self.shape[0]):
            raise ValueError(
                f"{name}: expected max_size beside one number as size, and above it, got"
                f" {max_size} and {shown(size)}"
            )

    def __call__(self, images: Any) -> Tensor:
        x = as_images("Resize", images)
        *batch, channels, height, width = x.shape
        if 0 in (height, width):
            raise ValueError(f"Resize: expected images that are not empty, got shape {x.shape}")
        shape = self._shape(height, width)
        if shape == (height, width):
            return x
        rows = reshape(x, (math.prod(batch), channels, height, width))
        return reshape(self._resized(rows, shape), (*batch, channels, *shape))

    def _shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width of the result."""
        if not self.keeps_ratio:
            return self.shape
        smaller, larger = sorted((height, width))
        short, long = self.shape[0], self.shape[0] * larger // smaller
        if self.max_size is not None and long > self.max_size:
            short, long = max(self.max_size * short // long, 1), self.max_size
        return (short, long) if height <= width else (long, short)

    def _resized(self, x: Tensor, shape: tuple[int, int]) -> Tensor:
        mode = self.interpolation
        if mode in _NEAREST:
            return interpolate(x, shape, mode=mode)
        if x.dtype.kind in "bc":
            raise TypeError(
                f"Resize: expected images of real numbers, got {x.dtype}: use 'nearest'"
            )
        if x.dtype.kind == "f":
            return interpolate(x, shape, mode=mode, antialias=self.antialias)
        wide = x.astype(float32 if x.dtype.itemsize < 4 else float64)
        out = interpolate(wide, shape, mode=mode, antialias=self.antialias)
        limits = iinfo(x.dtype)
        high = float(limits.max)
        if high > limits.max:  # of 64 bits: the next float below
            high = math.nextafter(high, 0.0)
        return clip(round(out), float(limits.min), high).astype(x.dtype)
