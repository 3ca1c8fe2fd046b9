"""The IDX file format of MNIST and similar image sets."""

import gzip
import io
import math
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
CHUNK = 2**20  # bytes read at a time


class DataError(ValueError):
    """Raised if a data file is damaged or has unexpected contents."""


class DataNotFoundError(DataError, FileNotFoundError):
    """Raised if a data file or data set is not found.

    Attributes
    ----------
    missing : tuple of str
        The names of the missing files of a published image set; empty for other data.
    folders : tuple of Path
        The folders that were searched for them; the last one contains the others.
    failures : tuple of str
        The address of each mirror that was tried, and why it failed.
    """

    def __init__(
        self,
        message: str,
        missing: Sequence[str] = (),
        folders: Sequence[Path] = (),
        failures: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.missing, self.folders = tuple(missing), tuple(folders)
        self.failures = tuple(failures)


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
        If it is not an IDX file, or is damaged, truncated or too long. At most the size stated in
        its header is read and decompressed.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile, xgrad
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
        raise DataNotFoundError(
            f"file not found: {name}: expected an IDX file; check the path"
        ) from error
    with file:
        return parse_idx(_decompressing(file, name), name)


def decompress(content: bytes, name: str, limit: int) -> bytes:
    """Return the content of a file, given its bytes.

    It is decompressed if it is gzip or its name ends in ``.gz``. Raises DataError if it is damaged,
    or has more than `limit` bytes; no more are decompressed.
    """
    data = _read_at_most(
        _decompressing(io.BufferedReader(io.BytesIO(content)), name), limit + 1, name
    )
    if len(data) > limit:
        raise DataError(
            f"{name}: expected at most {limit} bytes, got more; delete it and fetch it again"
        )
    return bytes(data)


def parse_idx(file: io.BufferedIOBase, name: str) -> npt.NDArray[Any]:
    """Return the array in an uncompressed IDX file; `name` is for error messages.

    At most the size stated in the file is read.
    """
    start = 0

    def take(size: int, what: str) -> bytearray:
        nonlocal start
        content = _read_at_most(file, size, name)
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
            f"{name}: expected the magic number of an IDX file (00 00, then 08, 09, 0b, 0c, 0d or"
            f" 0e, then the number of dimensions), got {magic.hex(' ')}; check that this is the"
            " right file"
        )
    shape = struct.unpack(f">{ndim}I", take(4 * ndim, f"the header of a {ndim}-dimensional array"))
    dtype = np.dtype(_DTYPES[code])
    described = f"{dtype.name} of shape {shape}"
    content = take(math.prod(shape) * dtype.itemsize, described)
    if extra := len(_read_at_most(file, CHUNK, name)):
        raise DataError(
            f"{name}: expected {start} bytes for {described}, got"
            f" {start + extra}{' or more' * (extra == CHUNK)}: the file is too long; delete it and"
            " fetch it again"
        )
    try:
        array = np.frombuffer(content, dtype).reshape(shape)
    except ValueError as error:
        raise DataError(
            f"{name}: expected a shape that NumPy can hold, got {shape} ({error}); check that this"
            " is the right file"
        ) from error
    return array.astype(dtype.newbyteorder("="), copy=False)


def _decompressing(file: io.BufferedReader, name: str) -> io.BufferedIOBase:
    """Return a file that decompresses if its content is gzip or its name ends in ``.gz``."""
    packed = file.peek(2)[:2] == b"\x1f\x8b" or name.endswith(".gz")
    return gzip.GzipFile(fileobj=file) if packed else file


def _read_at_most(file: io.BufferedIOBase, size: int, name: str) -> bytearray:
    """Return the next bytes of a file, at most `size`, in memory that grows with the content."""
    content = bytearray()
    try:
        while part := file.read(min(CHUNK, size - len(content))):
            content += part
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{name}: expected a complete gzip file, got a damaged one ({error}); delete it and"
            " fetch it again"
        ) from error
    return content
