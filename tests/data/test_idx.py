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
    """The message of the error, which is one line and names the file."""
    with pytest.raises(DataError) as caught:
        read_idx(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: expected ") and "\n" not in message
    return message


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["raw", "gzip"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("dtype", CODES.values())
def test_reads_every_dtype(dtype, shape, compress, tmp_path):
    rng = np.random.default_rng(0)
    info = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    expected = np.asarray(rng.choice([info.min, info.max, 0, 1, 77], size=shape)).astype(dtype)
    path = tmp_path / "file"
    path.write_bytes(compress(idx(expected)))
    got = read_idx(path)
    assert got.dtype == dtype and got.dtype.isnative and got.shape == shape
    assert got.flags.writeable and got.flags.aligned and got.flags.c_contiguous
    np.testing.assert_array_equal(got, expected)


def test_reads_big_endian(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex("00000b01 00000002 0102 fffe"))
    assert read_idx(path).tolist() == [258, -2]


@pytest.mark.parametrize("convert", [str, Path])
def test_takes_any_path(convert, tmp_path):
    (tmp_path / "file.gz").write_bytes(gzip.compress(VALID))
    assert read_idx(convert(tmp_path / "file.gz")).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_missing(tmp_path):
    path = tmp_path / "absent.gz"
    with pytest.raises(FileNotFoundError) as caught:
        read_idx(path)
    assert type(caught.value) is DataNotFoundError and isinstance(caught.value, ValueError)
    assert str(caught.value) == f"file not found: {path}: expected an IDX file; check the path"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("size", range(len(VALID)))
def test_truncated(size, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(VALID[:size])
    if size < 4:
        expected = "4 bytes for the magic number"
    elif size < 12:
        expected = "12 bytes for the header of a 2-dimensional array"
    else:
        expected = "24 bytes for int16 of shape (2, 3)"
    assert failure(path) == (
        f"{path}: expected {expected}, got {size}: the file is truncated; delete it and fetch it again"
    )


def test_too_long(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(VALID + b"\0")
    assert failure(path) == (
        f"{path}: expected 24 bytes for int16 of shape (2, 3), got 25: "
        "the file is too long; delete it and fetch it again"
    )


@pytest.mark.parametrize("magic", ["3c68746d", "00010b02", "01000b02", "00000a02", "00000002", "00000f02"])
def test_wrong_magic(magic, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex(magic) + VALID[4:])
    message = failure(path)
    assert f"got {bytes.fromhex(magic).hex(' ')}; check that this is the right file" in message


@pytest.mark.parametrize("header", ["000008ff" + "00000001" * 255, "00000803 00000000 ffffffff ffffffff"])
def test_shape_beyond_numpy(header, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex(header) + b"\0" * (header[6:8] == "ff"))
    assert "expected a shape that NumPy can hold, got (" in failure(path)


def test_absurd_size_is_truncation_not_overflow(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex("00000e04" + "ffffffff" * 4))
    assert f"expected {20 + 8 * (2**32 - 1) ** 4} bytes" in failure(path)


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
def test_damaged_gzip(content, tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    message = failure(path)
    assert "expected a complete gzip file, got a damaged one (" in message
    assert message.endswith("; delete it and fetch it again")


def test_checks_what_was_compressed(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(VALID[:-1]))
    assert "got 23: the file is truncated" in failure(path)
    path.write_bytes(b"")
    assert "got 0: the file is truncated" in failure(path)


# No more is read than the header promises


def peak(path: Path) -> int:
    """The memory that it takes to refuse a file."""
    tracemalloc.start()
    try:
        failure(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"", VALID, VALID[:3] + b"\1" + b"\xff" * 4], ids=["zeros", "too long", "too short"])
def test_a_gzip_bomb_is_refused_in_little_memory(head, tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(16 if head[-1:] == b"\xff" else 200):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    assert peak(path) < 2**23 + (2**25 if head[-1:] == b"\xff" else 0)  # what is there is read, not what is promised


def test_a_large_file_of_another_kind_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert peak(path) < 2**23


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_file_is_refused():
    assert "expected the magic number" in failure(Path("/dev/zero"))
