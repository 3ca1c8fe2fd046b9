"""Files of published image sets: search, verification, download.

Small files with known digests stand for the published ones, and functions for mirrors.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from small_image_sets import install, put, small_files
from xgrad.data import DataError, DataNotFoundError, TrainTestImages, emnist, mirrors, mnist
from xgrad.data.catalog import SETS
from xgrad.data.image_files import ALGORITHMS
from xgrad.data.images import PUBLISHED

MIRRORS = mirrors.MIRRORS
NAMES = tuple(SETS["mnist"].digests)
SMALL = small_files("mnist")


@pytest.fixture(autouse=True)
def _no_data(monkeypatch, tmp_path):
    """No data folder, an empty cache, no mirror."""
    monkeypatch.delenv("XGRAD_DATA", raising=False)
    monkeypatch.setenv(
        "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache")
    )
    monkeypatch.setattr(mirrors, "MIRRORS", dict.fromkeys(MIRRORS, ()))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "xgrad" / "mnist"


@pytest.fixture
def small(monkeypatch):
    """Small files in place of MNIST's."""
    install(monkeypatch, "mnist", SMALL)


@pytest.fixture(params=PUBLISHED)
def image_set(request, monkeypatch):
    """The name of an image set, and small files in place of its own."""
    name = request.param
    files = small_files(name)
    install(monkeypatch, name, files, zipped(files) if SETS[name].archive else b"")
    return name, files


ARCHIVED = pytest.mark.parametrize(
    "image_set", [name for name in SETS if SETS[name].archive], indirect=True
)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(f"gzip/{name}"), content)
    return buffer.getvalue()


def unpacked(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def is_small(dataset: TrainTestImages, name: str = "mnist") -> bool:
    """Check that an image set has the values of the small files."""
    known, files = SETS[name], list(map(unpacked, small_files(name).values()))
    assert (dataset.name, dataset.classes, dataset.class_names) == (
        name,
        len(known.class_names),
        known.class_names,
    )
    for split, content, count in ((dataset.train, files[0], 6), (dataset.test, files[2], 7)):
        expected = np.frombuffer(content[16:], np.uint8).reshape(count, 2, 3)
        assert (
            split.images == (expected.transpose(0, 2, 1) if known.transposed else expected)
        ).all()
        assert split.images.flags.c_contiguous and split.labels.tolist() == list(range(count))
    return True


def message(*args, error=DataError, **options) -> str:
    with pytest.raises(error) as caught:
        mnist(*args, **options)
    assert type(caught.value) is error and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def serve(monkeypatch):
    """Install mirrors, and return the names requested from each.

    A mirror is a function from file name to content.
    """

    def start(*answers):
        urls = [f"https://mirror/{i}/" for i in range(len(answers))]
        requested: list[list[str]] = [[] for _ in answers]

        def receive(url, limit):
            base, _, name = url.rpartition("/")
            requested[urls.index(f"{base}/")].append(name)
            return answers[urls.index(f"{base}/")](name)

        monkeypatch.setattr(mirrors, "_receive", receive)
        monkeypatch.setattr(mirrors, "MIRRORS", dict.fromkeys(MIRRORS, tuple(urls)))
        return requested

    return start


def good(name):
    return gzip.compress(SMALL[name.removesuffix(".gz")], 1)


def absent(name):
    raise OSError("HTTP Error 404: Not Found")


def truncated(name):
    return good(name)[:-4]


def html(name):
    return b"<html>Welcome to this hotel's network</html>"


def forged(name):
    return gzip.compress(SMALL[name.removesuffix(".gz")] + b"\0")


# Search


@pytest.mark.parametrize("how", ["folder", "str", "environment", "cache"])
def test_files_are_found_in_all_folders(how, image_set, tmp_path, monkeypatch):
    name, files = image_set
    for i, (folder, compress) in enumerate(
        (f, c) for f in (*SETS[name].folders, ".") for c in (False, True)
    ):
        root = tmp_path / str(i) / "xgrad"
        put(root / folder, files, compress)
        if how == "environment":
            monkeypatch.setenv("XGRAD_DATA", str(root))
        monkeypatch.setenv(
            "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(root.parent)
        )
        args = {"folder": [root], "str": [str(root)]}.get(how, [])
        assert is_small(PUBLISHED[name](*args, download=False), name)


@pytest.mark.skipif(os.name == "nt", reason="Windows has LOCALAPPDATA")
def test_default_cache_is_in_the_home_folder(small, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / ".cache" / "xgrad" / "mnist", SMALL)
    assert is_small(mnist(download=False)) and is_small(mnist("~/.cache/xgrad"))


def test_argument_precedes_environment_and_environment_precedes_cache(
    small, tmp_path, monkeypatch, cache, serve
):
    (requested,) = serve(good)
    put(cache, SMALL)
    monkeypatch.setenv("XGRAD_DATA", "")
    assert is_small(mnist())  # an empty variable is ignored
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path / "environment"))
    text = message(error=DataNotFoundError)
    assert str(tmp_path / "environment") in text and str(cache) not in text
    put(tmp_path / "environment", SMALL)
    assert is_small(mnist())
    text = message(tmp_path / "folder", error=DataNotFoundError)
    assert str(tmp_path / "folder") in text and "environment" not in text
    assert not (tmp_path / "folder").exists() and not requested


def test_missing_files_are_reported_with_folders_and_advice(small, tmp_path):
    text = message(tmp_path, error=DataNotFoundError)
    for folder in (tmp_path, tmp_path / "mnist", tmp_path / "MNIST" / "raw"):
        assert f"{folder}," in text or f"{folder};" in text
    for word in (
        *NAMES,
        "files not found: ",
        "set XGRAD_DATA",
        "download=True",
        "xgrad.data.digits()",
    ):
        assert word in text
    (put(tmp_path, SMALL) / NAMES[1]).unlink()
    text = message(tmp_path, error=DataNotFoundError)
    assert NAMES[1] in text and NAMES[0] not in text


def test_without_download_the_network_is_not_used(small, serve, cache):
    (requested,) = serve(good)
    assert str(cache) in message(download=False, error=DataNotFoundError)
    assert not requested and not cache.exists()


def test_folder_of_an_unknown_user_is_not_found(monkeypatch, small):
    assert "~nosuchuser/data/mnist," in message("~nosuchuser/data", error=DataNotFoundError)
    monkeypatch.setenv("XGRAD_DATA", "~nosuchuser")
    assert "~nosuchuser;" in message(error=DataNotFoundError)


def test_unknown_home_folder_is_reported(monkeypatch, small, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    for download in (False, True):
        assert "expected a home folder for the cache" in message(
            error=DataNotFoundError, download=download
        )
    assert not list(tmp_path.iterdir())


# Verification


def test_other_contents_are_refused_with_both_digests(image_set, tmp_path):
    name, files = image_set
    for file, content in files.items():
        damaged = unpacked(content)[:-1] + b"\xff"
        damaged = gzip.compress(damaged) if file.endswith(".gz") else damaged
        put(tmp_path, files | {file: damaged})
        algorithm = SETS[name].digests[file].partition(":")[0]
        want, got = (hashlib.new(algorithm, x).hexdigest() for x in (content, damaged))
        what = "the compressed file as published," if file.endswith(".gz") else "contents"
        expected = (
            f"{tmp_path / file}: expected {what} with the {ALGORITHMS[algorithm]} {want}, got"
            f" {got}; delete"
        )
        with pytest.raises(DataError, match=re.escape(expected)):
            PUBLISHED[name](tmp_path)


def test_image_sets_with_equal_file_names_are_told_apart(image_set, small, tmp_path):
    name, files = image_set
    put(tmp_path, SMALL)
    put(tmp_path / SETS[name].folders[0], files)
    assert is_small(PUBLISHED[name](tmp_path), name) and is_small(mnist(tmp_path))
    for compress in (True, False):
        put(tmp_path / SETS[name].folders[0], SMALL, compress)
    if name in ("fashion-mnist", "kmnist"):
        with pytest.raises(
            DataError,
            match="this is the file of MNIST: keep the files of each data set in a folder",
        ):
            PUBLISHED[name](tmp_path)


def test_uncompressed_files_are_accepted_only_with_known_digests(image_set, tmp_path):
    name, files = image_set
    put(tmp_path, {file.removesuffix(".gz"): unpacked(content) for file, content in files.items()})
    if name in ("mnist", "fashion-mnist"):
        assert is_small(PUBLISHED[name](tmp_path), name)
    else:
        with pytest.raises(
            DataNotFoundError, match=r"files not found: \S+-ubyte\.gz, .* \(as published\)"
        ):
            PUBLISHED[name](tmp_path)


def test_damaged_file_in_the_cache_is_reported_and_not_replaced(small, serve, cache):
    (requested,) = serve(good)
    path = put(cache, SMALL, compress=True) / f"{NAMES[2]}.gz"
    path.write_bytes(path.read_bytes()[:-3])
    assert message().startswith(f"{path}: expected a complete gzip file")
    path.unlink()
    assert is_small(mnist()) and requested == [path.name]


@ARCHIVED
def test_archive_is_read_and_damaged_ones_are_refused(image_set, tmp_path):
    name, files = image_set
    path = put(tmp_path / "EMNIST" / "raw", {"gzip.zip": zipped(files)}) / "gzip.zip"
    assert is_small(PUBLISHED[name](tmp_path), name)
    damaged = r"gzip\.zip: expected the archive of EMNIST \w+, got another or a damaged one"
    forged = r"gzip\.zip/gzip/emnist-\S+: expected the compressed file as published, with the MD5"
    for content, expected in (
        (b"no archive", damaged),
        (zipped({}), damaged),
        (zipped(files)[:-30], damaged),
        (zipped(dict.fromkeys(files, gzip.compress(b"forged"))), forged),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=expected):
            PUBLISHED[name](tmp_path)


@pytest.mark.parametrize("image_set", ["emnist-letters"], indirect=True)
def test_mutated_archive_is_read_or_refused_as_documented(image_set, tmp_path):
    name, files = image_set
    content, chance = zipped(files), random.Random(0)
    path = put(tmp_path, {"gzip.zip": content}) / "gzip.zip"
    refused = 0
    for _ in range(300):
        data = bytearray(content)
        for _ in range(chance.choice((1, 3))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            PUBLISHED[name](tmp_path)
        except DataError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("source", ["file", "download"])
def test_decompression_bomb_is_refused_in_little_memory(source, small, serve, tmp_path):
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 10**6, 28, 28))
        for _ in range(300):
            file.write(bytes(10**6))
    if source == "file":
        put(tmp_path, {**SMALL, NAMES[0]: bomb.getvalue()})
    else:
        serve(lambda name: bomb.getvalue())
    tracemalloc.start()
    try:
        text = message(tmp_path) if source == "file" else message(error=DataNotFoundError)
        assert tracemalloc.get_traced_memory()[1] < 3e8  # ten times the stated size of the set
    finally:
        tracemalloc.stop()
    assert "expected at most 110000000 bytes, got more" in text


# Download


def test_missing_files_are_downloaded_once(image_set, serve, tmp_path):
    name, files = image_set
    content = {file if file.endswith(".gz") else f"{file}.gz": x for file, x in files.items()}
    content = {file: x if x[:2] == b"\x1f\x8b" else gzip.compress(x) for file, x in content.items()}
    content = {"gzip.zip": zipped(files)} if SETS[name].archive else content
    bad, fine = serve(html, content.__getitem__)
    assert is_small(PUBLISHED[name](), name) and is_small(PUBLISHED[name](), name)
    assert bad == fine == list(content)
    cache = tmp_path / "cache" / "xgrad" / SETS[name].folders[0]
    assert sorted(path.name for path in cache.iterdir()) == sorted(content)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (absent, "HTTP Error 404: Not Found"),
        (
            truncated,
            (
                f"{NAMES[0]}.gz: expected a complete gzip file, got a damaged one (Compressed file"
                " ended"
            ),
        ),
        (
            html,
            f"{NAMES[0]}.gz: expected a complete gzip file, got a damaged one (Not a gzipped file",
        ),
        (forged, f"{NAMES[0]}.gz: expected contents with the SHA-256 "),
    ],
)
def test_next_mirror_is_tried_and_all_failures_are_reported(bad, reason, small, serve, cache):
    requested = serve(bad, absent)
    text = message(error=DataNotFoundError)
    assert f"nor at a mirror (https://mirror/0/: {reason}" in text and str(cache) in text
    assert "; https://mirror/1/: HTTP Error 404: Not Found); set XGRAD_DATA" in text
    assert requested == [[f"{NAMES[0]}.gz"]] * 2 and not list(cache.iterdir())
    requested = serve(bad, good)
    assert is_small(mnist()) and requested == [[f"{name}.gz" for name in NAMES]] * 2
    assert len(list(cache.iterdir())) == 4


def test_files_downloaded_before_a_failure_are_kept(small, serve):
    serve(lambda name: good(name) if "train" in name else absent(name))
    text = message(error=DataNotFoundError)
    assert NAMES[2] in text and NAMES[0] not in text
    (requested,) = serve(good)
    assert is_small(mnist()) and requested == [f"{name}.gz" for name in NAMES[2:]]


# The catalog


def test_catalog_has_digests_of_known_algorithms_and_encrypted_mirrors():
    lengths = {"md5": 32, "sha256": 64}
    digests = [digest for known in SETS.values() for digest in known.digests.values()]
    digests += {known.archive_digest for known in SETS.values() if known.archive}
    for digest in digests:
        algorithm = digest.partition(":")[0]
        assert re.fullmatch(rf"{algorithm}:[0-9a-f]{{{lengths[algorithm]}}}", digest)
    assert len(set(digests)) == len(digests) == 4 * len(SETS) + 1 and set(lengths) == set(
        ALGORITHMS
    )
    assert {
        name.partition("-")[0] if known.archive else name for name, known in SETS.items()
    } == set(MIRRORS)
    for urls in MIRRORS.values():
        assert urls and all(url.startswith("https://") and url.endswith("/") for url in urls)


def test_emnist_has_its_splits_and_refuses_others():
    with pytest.raises(
        ValueError, match=r"emnist: expected a split out of byclass, .*, got 'capitals'"
    ):
        emnist("capitals")
    classes = [len(known.class_names) for known in SETS.values() if known.archive]
    assert classes == [62, 47, 47, 26, 10, 10]
