"""The IDX file format, in which MNIST and its relatives are published."""

import gzip
import io
import math
import os
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
PIECE = 2**20  # bytes that are read at a time


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
        If it is not an IDX file, or is damaged, truncated or too long. No more is read, or decompressed, than its
        header promises.
    OSError
        If it cannot be read.

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
    name = os.fsdecode(path)
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError as error:
        raise DataNotFoundError(f"file not found: {name}: expected an IDX file; check the path") from error
    with file:
        return parse_idx(_unpacked(file, name), name)


def decompress(content: bytes, name: str, most: int) -> bytes:
    """Return the content of a file, given its bytes, decompressed where they are gzip or the name ends so.

    DataError if it is damaged, or has over `most` bytes, of which no more are then decompressed.
    """
    data = _take(_unpacked(io.BufferedReader(io.BytesIO(content)), name), most + 1, name)
    if len(data) > most:
        raise DataError(f"{name}: expected at most {most} bytes, got more; delete it and fetch it again")
    return bytes(data)


def parse_idx(file: io.BufferedIOBase, name: str) -> npt.NDArray[Any]:
    """Return the array that an uncompressed IDX file describes, having read its header and no more than that promises.

    `name` is for error messages.
    """
    start = 0

    def take(size: int, what: str) -> bytearray:
        nonlocal start
        content = _take(file, size, name)
        if len(content) < size:
            raise DataError(
                f"{name}: expected {start + size} bytes for {what}, got {start + len(content)}: "
                "the file is truncated; delete it and fetch it again"
            )
        start += size
        return content

    magic = take(4, "the magic number")
    zeros, code, ndim = struct.unpack(">HBB", magic)
    if zeros or code not in _DTYPES:
        raise DataError(
            f"{name}: expected the magic number of an IDX file (00 00, then 08, 09, 0b, 0c, 0d or 0e, then "
            f"the number of dimensions), got {magic.hex(' ')}; check that this is the right file"
        )
    shape = struct.unpack(f">{ndim}I", take(4 * ndim, f"the header of a {ndim}-dimensional array"))
    dtype = np.dtype(_DTYPES[code])
    described = f"{dtype.name} of shape {shape}"
    content = take(math.prod(shape) * dtype.itemsize, described)
    if extra := len(_take(file, PIECE, name)):
        raise DataError(
            f"{name}: expected {start} bytes for {described}, got {start + extra}{' or more' * (extra == PIECE)}: "
            "the file is too long; delete it and fetch it again"
        )
    try:
        array = np.frombuffer(content, dtype).reshape(shape)
    except ValueError as error:
        raise DataError(
            f"{name}: expected a shape that NumPy can hold, got {shape} ({error}); check that this is the right file"
        ) from error
    return array.astype(dtype.newbyteorder("="), copy=False)


def _unpacked(file: io.BufferedReader, name: str) -> io.BufferedIOBase:
    """Return a file, decompressed where its content is gzip or its name ends so."""
    packed = file.peek(2)[:2] == b"\x1f\x8b" or name.endswith(".gz")
    return gzip.GzipFile(fileobj=file) if packed else file


def _take(file: io.BufferedIOBase, size: int, name: str) -> bytearray:
    """Return the next bytes of a file, `size` at most: memory grows with what there is, not with what is promised."""
    content = bytearray()
    try:
        while part := file.read(min(PIECE, size - len(content))):
            content += part
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{name}: expected a complete gzip file, got a damaged one ({error}); delete it and fetch it again"
        ) from error
    return content
