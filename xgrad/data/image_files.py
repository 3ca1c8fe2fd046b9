"""Files of published image sets: search, download, and verification by digest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy.typing as npt

from xgrad.data.catalog import SETS, ImageSet
from xgrad.data.idx import DataError, DataNotFoundError, decompress, parse_idx
from xgrad.support.files import read

ALGORITHMS = {"sha256": "SHA-256", "md5": "MD5"}


def read_arrays(
    name: str, folder: str | os.PathLike[str] | None, download: bool
) -> list[npt.NDArray[Any]]:
    """Return the images and labels of a published image set: training, then test.

    The order is training images, training labels, test images, test labels.
    """
    known = SETS[name]
    chosen = os.environ.get("XGRAD_DATA") or None if folder is None else folder
    # `expanduser` leaves the path of an unknown user unchanged
    root = _cache() if chosen is None else Path(os.path.expanduser(chosen))
    folders = [*(root / beneath for beneath in known.folders), root]
    files = {file: path for file in known.digests if (path := _find(known, file, folders))}
    if missing := [file for file in known.digests if file not in files]:
        if chosen is not None or not download:
            raise _not_found(known, missing, folders)
        files |= _download(name, known, missing, folders)
    return [
        parse_idx(
            BytesIO(verify(file, digest, *_read(known, file, files[file]), known.max_decompressed)),
            str(files[file]),
        )
        for file, digest in known.digests.items()
    ]


def verify(file: str, digest: str, raw: bytes, where: str, limit: int) -> bytes:
    """Return the decompressed contents of a file, given its bytes.

    Raises DataError if the digest differs, or if there are more than `limit` bytes after
    decompression.
    """
    compressed = file.endswith(".gz")
    data = raw if compressed else decompress(raw, where, limit)
    if (got := _digest(digest, data)) != digest:
        algorithm, _, value = digest.partition(":")
        what = "the compressed file as published," if compressed else "contents"
        advice = "delete the file and fetch it again"
        if other := _identify(file, raw, where, limit):
            advice = (
                f"this is the file of {other}: keep the files of each data set in a folder of"
                " its own"
            )
        raise DataError(
            f"{where}: expected {what} with the {ALGORITHMS[algorithm]} {value}, got"
            f" {got.partition(':')[2]}; {advice}"
        )
    return decompress(data, where, limit) if compressed else data


def _digest(like: str, data: bytes) -> str:
    """Return the digest of data, with the algorithm of the digest `like`."""
    algorithm = like.partition(":")[0]
    return f"{algorithm}:{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}"


def _identify(file: str, raw: bytes, where: str, limit: int) -> str:
    """Return the title of the image set with this file under the same name, or an empty text."""
    for known in SETS.values():
        for name, digest in known.digests.items():
            if name.removesuffix(".gz") == file.removesuffix(".gz"):
                data = raw if name.endswith(".gz") else decompress(raw, where, limit)
                if _digest(digest, data) == digest:
                    return known.title
    return ""


def _find(known: ImageSet, file: str, folders: Sequence[Path]) -> Path | None:
    """Return the path of a file, or of the image set's archive; None if there is neither."""
    names = [file] if file.endswith(".gz") else [file, f"{file}.gz"]
    names += [known.archive] if known.archive else []
    return next(filter(Path.is_file, (folder / name for folder in folders for name in names)), None)


def _read(known: ImageSet, file: str, path: Path) -> tuple[bytes, str]:
    """Return the bytes of a file, and its name for messages."""
    if path.name != known.archive:
        try:
            return read(path, known.max_decompressed), str(path)
        except ValueError as error:
            raise DataError(str(error)) from error
    with path.open("rb") as opened:
        try:
            with ZipFile(opened) as archive, archive.open(f"gzip/{file}") as packed:
                return packed.read(known.max_bytes + 1), f"{path}/gzip/{file}"
        except Exception as error:  # zipfile documents no list of exceptions for malformed files
            raise DataError(
                f"{path}: expected the archive of {known.title}, got another or a damaged one"
                f" ({error}); delete it and fetch it again"
            ) from error


def _download(
    name: str, known: ImageSet, missing: Sequence[str], folders: Sequence[Path]
) -> dict[str, Path]:
    """Download the missing files into the cache, and return their paths."""
    from xgrad.data import mirrors  # not at the top: importing urllib takes half as long as NumPy

    urls = mirrors.MIRRORS[name.partition("-")[0] if known.archive else name]
    wanted = (
        {known.archive: known.archive_digest}
        if known.archive
        else {file: known.digests[file] for file in missing}
    )
    paths: dict[str, Path] = {}
    for file, digest in wanted.items():
        path = folders[0] / (file if file.endswith((".gz", ".zip")) else f"{file}.gz")
        check = partial(verify, file, digest, where=path.name, limit=known.max_decompressed)
        if failures := mirrors.fetch(path, urls, check, known.max_bytes):
            raise _not_found(known, [file], folders, failures)
        paths |= dict.fromkeys(missing, path) if known.archive else {file: path}
    return paths


def _cache() -> Path:
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    folder = base or os.path.expanduser("~/.cache")
    if folder.startswith("~"):
        raise DataNotFoundError(
            "expected a home folder for the cache, got none: set XGRAD_DATA to a folder of data"
        )
    return Path(folder) / "xgrad"


def _not_found(
    known: ImageSet, missing: Sequence[str], folders: Sequence[Path], failures: Sequence[str] = ()
) -> DataNotFoundError:
    tried = f", nor at a mirror ({'; '.join(failures)})" if failures else ""
    form = (
        "each as it is or with .gz" if not missing[0].endswith((".gz", ".zip")) else "as published"
    )
    archive = f", or {known.archive}, which has them" if known.archive else ""
    return DataNotFoundError(
        f"{known.title}: files not found: {', '.join(missing)} ({form}){archive}, in"
        f" {', '.join(map(str, folders))}{tried}; set XGRAD_DATA to a folder that holds the files,"
        " or let them be downloaded (with network, download=True, and neither a folder nor"
        " XGRAD_DATA), or use xgrad.data.digits(), which needs no download",
        missing,
        folders,
        failures,
    )
