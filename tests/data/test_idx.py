"""IDX files of all dtypes are read as written; damaged ones are refused in bounded memory."""

from __future__ import annotations

import gzip
import pickle
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from xgrad.data import DataError, DataNotFoundError, read_idx

CODES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}


def idx(array: np.ndarray) -> bytes:
    code = next(code for code, dtype in CODES.items() if array.dtype == dtype)
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


VALID = idx(np.arange(6, dtype="i2").reshape(2, 3))


def failure(path: Path) -> str:
    """Return the message of the error, which is one line and begins with the file."""
    with pytest.raises(DataError) as caught:
        read_idx(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: expected ") and "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["raw", "gzip"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("dtype", CODES.values())
def test_arrays_of_all_dtypes_are_read(dtype, shape, compress, tmp_path):
    rng = np.random.default_rng(0)
    info = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    expected = np.asarray(rng.choice([info.min, info.max, 0, 1, 77], size=shape)).astype(dtype)
    path = tmp_path / "file"
    path.write_bytes(compress(idx(expected)))
    array = read_idx(str(path))
    assert array.dtype == dtype and array.dtype.isnative and array.shape == shape
    assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
    np.testing.assert_array_equal(array, expected)


def test_byte_order_is_big_endian(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex("00000b01 00000002 0102 fffe"))
    assert read_idx(path).tolist() == [258, -2]


def test_missing_file_is_not_found(tmp_path):
    path = tmp_path / "absent.gz"
    with pytest.raises(FileNotFoundError) as caught:
        read_idx(path)
    assert type(caught.value) is DataNotFoundError and isinstance(caught.value, ValueError)
    assert str(caught.value) == f"file not found: {path}: expected an IDX file; check the path"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("size", range(len(VALID)))
def test_truncated_file_is_refused_with_both_sizes(size, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(VALID[:size])
    what = "24 bytes for int16 of shape (2, 3)"
    if size < 12:
        what = (
            "12 bytes for the header of a 2-dimensional array"
            if size >= 4
            else "4 bytes for the magic number"
        )
    assert (
        failure(path)
        == f"expected {what}, got {size}: the file is truncated; delete it and fetch it again"
    )


MAGIC = (
    "expected the magic number of an IDX file (00 00, then 08, 09, 0b, 0c, 0d or 0e, then the"
    " number of dimensions)"
)
SHAPE = "expected a shape that NumPy can hold, got ("
DAMAGED = {
    "too long": (
        VALID + b"\0",
        "expected 24 bytes for int16 of shape (2, 3), got 25: the file is too long; delete it",
    ),
    **{
        f"magic number {code}": (
            bytes.fromhex(code) + VALID[4:],
            f"{MAGIC}, got {bytes.fromhex(code).hex(' ')}; check",
        )
        for code in ("3c68746d", "00010b02", "01000b02", "00000a02", "00000002", "00000f02")
    },
    "255 dimensions": (bytes.fromhex("000008ff" + "00000001" * 255) + b"\0", SHAPE),
    "empty but large": (bytes.fromhex("00000803 00000000 ffffffff ffffffff"), SHAPE),
    "size beyond 64 bits": (
        bytes.fromhex("00000e04" + "ffffffff" * 4),
        f"expected {20 + 8 * (2**32 - 1) ** 4} bytes for float64 ",
    ),
    "empty.gz": (b"", "expected 4 bytes for the magic number, got 0"),
    "truncated before compression": (
        gzip.compress(VALID[:-1]),
        "expected 24 bytes for int16 of shape (2, 3), got 23",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_invalid_contents_are_refused(name, tmp_path):
    content, expected = DAMAGED[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert failure(path).startswith(expected)


def corruptions():
    whole = gzip.compress(VALID * 50)
    for name, at in {"method": 2, "body": len(whole) // 2, "checksum": -8, "length": -1}.items():
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        yield pytest.param(bytes(damaged), id=name)
    for size in (2, 9, len(whole) // 2, len(whole) - 1):
        yield pytest.param(whole[:size], id=f"first-{size}")
    yield pytest.param(whole + b"more", id="trailing")
    yield pytest.param(b"<html>404 Not Found</html>", id="html")
    yield pytest.param(VALID, id="uncompressed")


@pytest.mark.parametrize("content", list(corruptions()))
def test_damaged_gzip_file_is_refused(content, tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    message = failure(path)
    assert message.startswith("expected a complete gzip file, got a damaged one (")
    assert message.endswith("; delete it and fetch it again")


# Bounded memory


def peak(path: Path) -> int:
    """Return the peak of memory while a file is refused."""
    tracemalloc.start()
    try:
        failure(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("head", "megabytes", "limit"),
    [(b"", 200, 2**23), (VALID, 200, 2**23), (VALID[:3] + b"\1" + b"\xff" * 4, 16, 2**23 + 2**25)],
    ids=["zeros", "too long", "too short"],
)
def test_decompression_bomb_is_refused_in_little_memory(head, megabytes, limit, tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(megabytes):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    assert peak(path) < limit


def test_large_file_of_another_format_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert peak(path) < 2**23


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_endless_file_is_refused():
    assert failure(Path("/dev/zero")).startswith("expected the magic number")
