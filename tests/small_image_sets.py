"""Small files in place of the files of published image sets."""

from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xgrad.data.catalog import SETS


def idx(values: np.ndarray) -> bytes:
    """Return the IDX file of an array of uint8."""
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def small_files(
    name: str, counts: tuple[int, int] = (6, 7), shape: tuple[int, int] = (2, 3)
) -> dict[str, bytes]:
    """Return files by name for few images, with random grey values and labels 0, 1, 2, ..."""
    files, rng = {}, np.random.default_rng(list(name.encode()))
    for number, file in enumerate(SETS[name].digests):
        count = counts[number // 2]
        labels = SETS[name].first_label + np.arange(count) % len(SETS[name].class_names)
        content = idx(rng.integers(0, 256, (count, *shape)) if "images" in file else labels)
        files[file] = gzip.compress(content, mtime=number) if file.endswith(".gz") else content
    return files


def install(
    monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, bytes], archive: bytes = b""
) -> None:
    """Set the digests of an image set to the digests of some files."""
    digests = {}
    for file, digest in SETS[name].digests.items():
        algorithm = digest.partition(":")[0]
        digests[file] = f"{algorithm}:{hashlib.new(algorithm, files[file]).hexdigest()}"
    digest = f"sha256:{hashlib.sha256(archive).hexdigest()}" if archive else ""
    monkeypatch.setitem(SETS, name, replace(SETS[name], digests=digests, archive_digest=digest))


def put(folder: Path, files: dict[str, bytes], compress: bool = False) -> Path:
    """Write files into a folder, on request compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if compress and not name.endswith(".gz"):
            name, content = f"{name}.gz", gzip.compress(content)
        (folder / name).write_bytes(content)
    return folder
