"""The IDX file format, in which MNIST and its relatives are published."""

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class DataError(ValueError):
    """A data file does not hold what it should."""


class DataNotFoundError(DataError, FileNotFoundError):
    """A data file or data set is in none of the places where it may be."""


def read_idx(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    r"""Read one IDX file, gzip-compressed or not.

    Parameters
    ----------
    path : str or os.PathLike
        The file.

    Returns
    -------
    numpy.ndarray
        A new array of the file's shape and dtype, in native byte order.

    Raises
    ------
    DataNotFoundError
        If there is no such file.
    DataError
        If it is not an IDX file, or is damaged, truncated or too long.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import xgrad
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(b"\0\0\x08\x01" + b"\0\0\0\x03" + b"\5\0\4")
    ...     xgrad.data.read_idx(path)
    array([5, 0, 4], dtype=uint8)
    """
    return parse_idx(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return what a file holds, decompressed where it is gzip (by its first bytes or its suffix ``.gz``)."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise DataNotFoundError(f"file not found: {path}: expected an IDX file; check the path") from error
    return decompress(content, str(path))


def decompress(content: bytes, name: str) -> bytes:
    """Return the contents of a file, given its bytes, decompressed where they are gzip or the name ends so."""
    if content[:2] != b"\x1f\x8b" and not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{name}: expected a complete gzip file, got a damaged one ({error}); delete it and fetch it again"
        ) from error


def parse_idx(content: bytes, name: str) -> npt.NDArray[Any]:
    """Return the array that the bytes of an uncompressed IDX file describe; `name` is for error messages."""

    def expect(size: int, what: str) -> None:
        if len(content) < size:
            raise DataError(
                f"{name}: expected {size} bytes for {what}, got {len(content)}: "
                "the file is truncated; delete it and fetch it again"
            )

    expect(4, "the magic number")
    zeros, code, ndim = struct.unpack_from(">HBB", content)
    if zeros or code not in _DTYPES:
        raise DataError(
            f"{name}: expected the magic number of an IDX file (00 00, then 08, 09, 0b, 0c, 0d or 0e, then "
            f"the number of dimensions), got {content[:4].hex(' ')}; check that this is the right file"
        )
    start = 4 + 4 * ndim
    expect(start, f"the header of a {ndim}-dimensional array")
    shape = struct.unpack_from(f">{ndim}I", content, 4)
    dtype = np.dtype(_DTYPES[code])
    end = start + math.prod(shape) * dtype.itemsize
    described = f"{dtype.name} of shape {shape}"
    expect(end, described)
    if len(content) > end:
        raise DataError(
            f"{name}: expected {end} bytes for {described}, got {len(content)}: "
            "the file is too long; delete it and fetch it again"
        )
    try:
        array = np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape)
    except ValueError as error:
        raise DataError(
            f"{name}: expected a shape that NumPy can hold, got {shape} ({error}); check that this is the right file"
        ) from error
    return array.astype(dtype.newbyteorder("="))
