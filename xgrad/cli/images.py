"""Conversion of users' images to the form of a training set.

Images are arrays in .npy files, or pictures such as photos.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from xgrad.cli.arguments import UsageError

#: Formats of pictures, by their names in Pillow. Its other readers are not used, because the EPS
#: reader runs a program.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
FAINTEST = 1 / 8  # least contrast, or brightest pixel, as a fraction of the largest grey value


def read_image(path: Path, shape: tuple[int, int], largest: float) -> npt.NDArray[Any]:
    """Return the image in a file, as grey values from 0, the background, to `largest`."""
    if not path.is_file():
        problem = "a folder" if path.is_dir() else "file not found"
        raise UsageError(
            f"{problem}: {path}: expected an image, a .npy file or a picture such as a PNG or JPEG"
            " file"
        )
    return (_read_array if path.suffix == ".npy" else _read_picture)(path, shape, largest)


def _read_array(path: Path, shape: tuple[int, int], largest: float) -> npt.NDArray[Any]:
    """Return the grey values in a .npy file.

    The file has integers from 0 to `largest`, or floats from 0 to either 1 or `largest`.
    """
    expected = (
        f"expected a .npy file of grey values from 0 to {largest:g}, or of floats from 0 to 1, of"
        f" shape {shape}"
    )
    try:
        image = np.lib.format.open_memmap(path, mode="r")  # reads the header only
    except Exception as error:  # NumPy documents no list of exceptions for malformed files
        raise UsageError(f"{expected}, got {path}: {error}") from error
    if image.shape != shape or image.dtype.kind not in "uif":
        raise UsageError(f"{expected}, got {image.dtype} of shape {image.shape} in {path}")
    grey: npt.NDArray[Any] = np.array(image)
    low, high = grey.min(), grey.max()
    if not (low >= 0 and high <= largest):
        raise UsageError(f"{expected}, got values from {low} to {high} in {path}")
    if grey.dtype.kind == "f" and high <= 1:
        grey *= grey.dtype.type(largest)
    elif 0 < high < FAINTEST * largest:
        raise UsageError(
            f"{expected}, got {grey.dtype} from {low} to {high} in {path}: scale it to one of these"
            " ranges"
        )
    return grey


def _read_picture(path: Path, shape: tuple[int, int], largest: float) -> npt.NDArray[np.float32]:
    """Return a picture of any size, colours and polarity, converted to the form of the image sets.

    It is grey, on a background of 0, with `largest` as the strongest grey value. The background is
    the median of the outermost pixels; if it is lighter than the middle of the grey values, the
    picture is inverted. The picture is padded with background to the proportions of `shape`, and
    scaled by averaging.
    """
    try:
        pillow, ops = import_module("PIL.Image"), import_module("PIL.ImageOps")
    except ImportError as error:
        raise UsageError(
            f"{path}: expected a .npy file, since Pillow, which reads pictures, is missing"
            f" ({error}): pip install 'xgrad[cli]'"
        ) from error
    try:
        with catch_warnings():
            simplefilter("error", pillow.DecompressionBombWarning)
            file = pillow.open(path, formats=FORMATS)
        with file:
            picture = ops.exif_transpose(file)
            if picture.has_transparency_data:
                picture = picture.convert("RGBA")
                picture = pillow.alpha_composite(pillow.new("RGBA", picture.size, "white"), picture)
            deep = picture.mode.startswith(("I", "F"))  # 16 bits and more, which "L" would clip
            grey = picture.convert(
                "I" if picture.mode.startswith("I") else "F" if deep else "L"
            ).convert("F")
    except Exception as error:  # Pillow documents no list of exceptions for malformed files
        raise UsageError(
            f"expected a picture of the formats {', '.join(FORMATS)}, got {path}: {error}"
        ) from error
    pixels = np.asarray(grey)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    background, low, high = float(np.median(border)), float(pixels.min()), float(pixels.max())
    sign = -1.0 if background > (low + high) / 2 else 1.0
    contrast = max(sign * (low - background), sign * (high - background))
    if (
        not contrast >= FAINTEST * (255.0 if not deep else max(abs(low), abs(high)))
        or contrast == 0
    ):
        raise UsageError(
            f"{path}: expected a picture of something dark on a light background or light on a dark"
            f" one, got grey values from {low:g} to {high:g} on a background of {background:g}:"
            " give one with more contrast"
        )
    strength = pillow.fromarray(
        np.clip((pixels - background) * (sign / contrast), 0, 1).astype(np.float32)
    )
    height, width = shape
    scaled = ops.pad(strength, (width, height), method=pillow.Resampling.BOX, color=0)
    return np.asarray(scaled, np.float32) * np.float32(largest)
