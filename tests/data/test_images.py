import contextlib
import dataclasses
import gzip
import hashlib
import io
import os
import random
import re
import struct
import threading
import tracemalloc
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import xgrad
from xgrad.data import (
    DataError,
    DataLoader,
    DataNotFoundError,
    Split,
    TrainTestImages,
    digits,
    emnist,
    mirrors,
    mnist,
    published,
)
from xgrad.data.images import PUBLISHED
from xgrad.data.published import SETS

REAL = os.environ.get("XGRAD_DATA") or Path(__file__).parents[2].parent / "shared" / "mnist"
MIRRORS = mirrors.MIRRORS
NAMES = tuple(SETS["mnist"].digests)


def idx(*shape: int) -> bytes:
    size = int(np.prod(shape))
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(i % 10 for i in range(size))


SMALL = dict(zip(NAMES, (idx(5, 2, 3), idx(5), idx(4, 2, 3), idx(4)), strict=True))


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No data folder, an empty cache, no mirror, no proxy."""
    monkeypatch.delenv("XGRAD_DATA", raising=False)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(mirrors, "MIRRORS", dict.fromkeys(mirrors.MIRRORS, ()))


@pytest.fixture
def small(monkeypatch):
    """A data set of the same file names that is five images long."""
    sums = {name: f"sha256:{hashlib.sha256(content).hexdigest()}" for name, content in SMALL.items()}
    monkeypatch.setitem(SETS, "mnist", dataclasses.replace(SETS["mnist"], digests=sums))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "xgrad" / "mnist"


def fill(folder: Path, compress=True, contents=SMALL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if compress else name)
        path.write_bytes(gzip.compress(content) if compress else content)
    return folder


def is_small(dataset: TrainTestImages) -> bool:
    assert dataset.train.images.shape == (5, 2, 3) and dataset.test.images.shape == (4, 2, 3)
    assert dataset.train.labels.tolist() == [0, 1, 2, 3, 4] and dataset.test.labels.tolist() == [0, 1, 2, 3]
    assert dataset.train.images.tobytes() == SMALL[NAMES[0]][16:]
    return True


def message(*arguments, error=DataError, **options) -> str:
    with pytest.raises(error) as caught:
        mnist(*arguments, **options)
    assert type(caught.value) is error and "\n" not in str(caught.value)
    return str(caught.value)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        status, length, body = self.server.answer(name)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Mirror(ThreadingHTTPServer):
    """A mirror on this machine: `answer(name)` is (status, length that is announced, body)."""

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Answer)
        self.answer, self.asked = answer, []
        self.url = f"http://127.0.0.1:{self.server_port}/mnist/"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, *request):
        """Say nothing of a client that hung up."""


@pytest.fixture
def serve(monkeypatch):
    """Put mirrors in place, one for each answer."""
    with contextlib.ExitStack() as stack:

        def start(*answers):
            running = [stack.enter_context(contextlib.closing(Mirror(answer))) for answer in answers]
            urls = tuple(mirror.url for mirror in running)
            monkeypatch.setattr(mirrors, "MIRRORS", dict.fromkeys(mirrors.MIRRORS, urls))
            return running

        yield start


def whole(body: bytes):
    return 200, len(body), body


def good(name):
    return whole(gzip.compress(SMALL[name.removesuffix(".gz")], 1))


def absent(name):
    return 404, 4, b"gone"


def dying(name):
    _, length, body = good(name)
    return 200, length, body[: length // 2]


def cut(name):
    return whole(good(name)[2][:-4])


def html(name):
    return whole(b"<html>Welcome to this hotel's network</html>")


def forged(name):
    return whole(gzip.compress(SMALL[name.removesuffix(".gz")] + b"\0"))


def unwanted(name):
    raise AssertionError(f"{name} was asked for")


# Where the files are looked for


@pytest.mark.parametrize("compress", [True, False], ids=["gzip", "raw"])
@pytest.mark.parametrize("beneath", [".", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("how", ["folder", "str", "environment", "cache"])
def test_places(how, beneath, compress, small, tmp_path, monkeypatch):
    root = tmp_path / "cache" / "xgrad" if how == "cache" else tmp_path / "here"
    fill(root / beneath, compress)
    if how == "environment":
        monkeypatch.setenv("XGRAD_DATA", str(root))
    assert is_small(mnist(*{"folder": [root], "str": [str(root)]}.get(how, [])))


def test_home_is_the_default_cache(small, tmp_path, monkeypatch):
    if os.name == "nt":
        pytest.skip("Windows has LOCALAPPDATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    fill(tmp_path / ".cache" / "xgrad" / "mnist")
    assert is_small(mnist(download=False))
    assert is_small(mnist("~/.cache/xgrad"))


def test_a_folder_hides_the_environment_and_that_the_cache(small, tmp_path, monkeypatch, cache, serve):
    serve(unwanted)
    fill(cache)
    monkeypatch.setenv("XGRAD_DATA", str(tmp_path / "environment"))
    text = message(error=DataNotFoundError)
    assert str(tmp_path / "environment") in text and str(cache) not in text
    fill(tmp_path / "environment")
    assert is_small(mnist())
    text = message(tmp_path / "folder", error=DataNotFoundError)
    assert str(tmp_path / "folder") in text and "environment" not in text
    assert not (tmp_path / "folder").exists()


def test_an_empty_variable_is_unset(small, monkeypatch, cache):
    monkeypatch.setenv("XGRAD_DATA", "")
    fill(cache)
    assert is_small(mnist())


def test_not_found_says_where_and_what_to_do(small, tmp_path):
    text = message(tmp_path, error=DataNotFoundError)
    for place in (tmp_path, tmp_path / "mnist", tmp_path / "MNIST" / "raw"):
        assert f"{place}," in text or f"{place};" in text
    for word in (*NAMES, "files not found: ", "set XGRAD_DATA", "download=True", "xgrad.data.digits()"):
        assert word in text


def test_not_found_names_only_what_is_missing(small, tmp_path):
    (fill(tmp_path) / f"{NAMES[1]}.gz").unlink()
    text = message(tmp_path, error=DataNotFoundError)
    assert NAMES[1] in text and NAMES[0] not in text


def test_download_false_stays_off_the_network(small, serve, cache):
    (mirror,) = serve(good)
    assert str(cache) in message(download=False, error=DataNotFoundError)
    assert not mirror.asked and not cache.exists()


# What the files hold


def test_wrong_hash(small, tmp_path):
    content = SMALL[NAMES[1]][:-1] + b"\7"
    path = fill(tmp_path, contents=SMALL | {NAMES[1]: content}) / f"{NAMES[1]}.gz"
    want, got = (hashlib.sha256(each).hexdigest() for each in (SMALL[NAMES[1]], content))
    assert message(tmp_path) == (
        f"{path}: expected contents with the SHA-256 {want}, got {got}; delete the file and fetch it again"
    )


def test_a_damaged_cache_is_not_replaced_unasked(small, serve, cache):
    (mirror,) = serve(good)
    path = fill(cache) / f"{NAMES[2]}.gz"
    path.write_bytes(path.read_bytes()[:-3])
    assert message().startswith(f"{path}: expected a complete gzip file")
    path.unlink()
    assert is_small(mnist()) and mirror.asked == [path.name]


def test_real_mnist():
    try:
        dataset = mnist(REAL)
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert (dataset.name, dataset.classes, dataset.scale) == ("mnist", 10, 255)
    for split, counts in (
        (dataset.train, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        (dataset.test, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ):
        assert split.images.shape == (sum(counts), 28, 28) and len(split) == sum(counts)
        assert split.images.dtype == split.labels.dtype == np.uint8
        assert split.images.min() == 0 and split.images.max() == dataset.scale
        assert np.bincount(split.labels).tolist() == counts
    assert dataset.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert dataset.train.images.mean() == pytest.approx(33.318421, abs=1e-6)


# Downloads


def test_downloads_once(small, serve, cache):
    first, second = serve(good, unwanted)
    assert is_small(mnist()) and is_small(mnist())
    assert first.asked == [f"{name}.gz" for name in NAMES] and not second.asked
    assert sorted(path.name for path in cache.iterdir()) == sorted(first.asked)


@pytest.mark.parametrize("bad", [absent, dying, cut, html, forged])
def test_next_mirror(bad, small, serve, cache):
    first, second = serve(bad, good)
    assert is_small(mnist())
    assert first.asked == second.asked == [f"{name}.gz" for name in NAMES]
    assert len(list(cache.iterdir())) == 4


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (absent, "HTTP Error 404: Not Found"),
        (dying, "IncompleteRead("),
        (cut, f"{NAMES[0]}.gz: expected a complete gzip file, got a damaged one (Compressed file ended"),
        (html, f"{NAMES[0]}.gz: expected a complete gzip file, got a damaged one (Not a gzipped file"),
        (forged, f"{NAMES[0]}.gz: expected contents with the SHA-256 "),
    ],
)
def test_every_mirror_fails(bad, reason, small, serve, cache):
    running = serve(bad, absent)
    text = message(error=DataNotFoundError)
    assert f"nor at a mirror ({running[0].url}: {reason}" in text
    assert f"; {running[1].url}: HTTP Error 404: Not Found); set XGRAD_DATA" in text and str(cache) in text
    assert [mirror.asked for mirror in running] == [[f"{NAMES[0]}.gz"]] * 2
    assert not list(cache.iterdir())


def test_no_mirror_listens(small, serve, cache):
    (mirror,) = serve(good)
    mirror.close()
    text = message(error=DataNotFoundError)
    assert f"nor at a mirror ({mirror.url}: <urlopen error" in text
    assert not list(cache.iterdir())


def test_a_silent_mirror_times_out(small, serve, monkeypatch):
    done = threading.Event()

    def silent(name):
        done.wait(20)
        return absent(name)

    monkeypatch.setattr(mirrors, "TIMEOUT", 0.1)
    running = serve(silent, good)
    assert is_small(mnist())
    done.set()
    assert len(running[1].asked) == 4


def test_what_came_before_a_failure_is_kept(small, serve, cache):
    serve(lambda name: good(name) if "train" in name else absent(name))
    text = message(error=DataNotFoundError)
    assert NAMES[2] in text and NAMES[0] not in text
    (mirror,) = serve(good)
    assert is_small(mnist()) and mirror.asked == [f"{name}.gz" for name in NAMES[2:]]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_write_that_dies_leaves_nothing(call, error, small, serve, cache, monkeypatch):
    serve(good)

    def die(*arguments):
        assert len(list(cache.iterdir())) == 1
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, die)
        with pytest.raises(type(error)) as caught:
            mnist()
    assert caught.value is error and not list(cache.iterdir())
    assert is_small(mnist())


# Digits


def rows(split: Split) -> list[bytes]:
    return [bytes([label]) + image.tobytes() for image, label in zip(split.images, split.labels, strict=True)]


def test_digits():
    dataset = digits()
    assert (dataset.name, dataset.classes, dataset.scale) == ("digits", 10, 16)
    assert "CC BY 4.0" in dataset.source and "Alpaydin" in dataset.source
    assert (len(dataset.train), len(dataset.test)) == (1437, 360)
    for split in (dataset.train, dataset.test):
        assert split.images.shape == (len(split), 8, 8)
        assert split.images.dtype == split.labels.dtype == np.uint8
        assert split.images.min() == 0 and split.images.max() == dataset.scale


def test_digits_are_stratified():
    train, test = (np.bincount(split.labels, minlength=10) for split in (digits().train, digits().test))
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (np.abs(test - (train + test) / 5) < 1).all()


def test_digits_are_disjoint():
    train, test = rows(digits().train), rows(digits().test)
    assert len(set(train) | set(test)) == 1797
    assert not set(train) & set(test)


def test_digits_do_not_change():
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    first = digits()
    np.random.random(7)
    second = digits()
    for part in ("train", "test"):
        assert rows(getattr(first, part)) == rows(getattr(second, part))
        assert not np.shares_memory(getattr(first, part).images, getattr(second, part).images)
    np.random.seed(0)
    digits()
    assert (np.random.get_state()[1] == state).all()
    digest = hashlib.sha256(b"".join(rows(first.train) + rows(first.test))).hexdigest()
    assert digest == "515ad37f34eaee1700d4659516d02e22fa75f8a563f50aee4b4d7d0fb903171a"


def test_digits_are_those_of_scikit_learn():
    original = pytest.importorskip("sklearn.datasets").load_digits()
    every = [bytes([y]) + x.astype(np.uint8).tobytes() for x, y in zip(original.images, original.target, strict=True)]
    train, test = rows(digits().train), rows(digits().test)
    chosen = set(test)
    assert train == [row for row in every if row not in chosen]
    assert test == [row for row in every if row in chosen]
    assert (original.images == original.images.astype(np.uint8)).all()


# The classes


def test_splits_and_datasets():
    split = Split(np.zeros((3, 2, 2), np.uint8), np.zeros(3, np.uint8))
    assert len(split) == 3 and repr(split) == "Split(images=(3, 2, 2), labels=(3,))"
    assert split == split and split != Split(split.images, split.labels)
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.labels = split.labels
    with pytest.raises(DataError, match="got 3 images and 2 labels"):
        Split(split.images, split.labels[:2])
    assert "\n" not in repr(digits())


def test_a_split_is_a_dataset():
    loader = DataLoader(digits().test, batch_size=100)
    batches = list(loader)
    assert len(loader) == len(batches) == 4
    images, labels = batches[0]
    assert (images.numpy() == digits().test.images[:100]).all() and images.dtype == xgrad.uint8
    assert labels.tolist() == digits().test.labels[:100].tolist() and labels.dtype == xgrad.int64


def pair(labels, shape=(2, 2)) -> Split:
    return Split(np.zeros((len(labels), *shape), np.uint8), np.array(labels))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Split(np.zeros((3, 4)), np.zeros(3)),
            r"expected images of shape \(N, H, W\) .* got \(3, 4\) and \(3,\)",
        ),
        (
            lambda: TrainTestImages("x", pair([0, 3]), pair([0]), 3, 1.0, ""),
            "x: expected labels from 0 to 2, got 0 to 3 in train",
        ),
        (
            lambda: TrainTestImages("x", pair([0]), pair([-1]), 3, 1.0, ""),
            "x: expected labels from 0 to 2, got -1 to -1 in test",
        ),
        (
            lambda: TrainTestImages("x", pair([0]), pair([0], (2, 3)), 3, 1.0, ""),
            r"images of one size, got \(2, 2\) and \(2, 3\)",
        ),
        (
            lambda: TrainTestImages("x", pair([0]), pair([0]), 3, 1.0, "", ("a",)),
            "x: expected 3 class names or none, got 1",
        ),
    ],
)
def test_image_sets_that_do_not_fit_together_are_refused(make, text):
    with pytest.raises(DataError, match=text):
        make()


# MNIST's kin


def small_files(name: str) -> dict[str, bytes]:
    """Small files of a published image set, by the names that it has, compressed where those say so."""
    files, first = {}, SETS[name].first_label
    for number, file in enumerate(SETS[name].digests):
        content = idx(6 + number // 2, 2, 3) if "images" in file else idx(6 + number // 2)
        content = content[:8] + bytes(first + i for i in range(6 + number // 2)) if "labels" in file else content
        files[file] = gzip.compress(content, mtime=number) if file.endswith(".gz") else content
    return files


@pytest.fixture(params=[name for name in PUBLISHED if name != "mnist"])
def kin(request, monkeypatch):
    """The name of an image set, and small files that stand for its own."""
    name = request.param
    files = small_files(name)
    digests = {}
    for file, digest in SETS[name].digests.items():
        algorithm = digest.partition(":")[0]
        digests[file] = f"{algorithm}:{hashlib.new(algorithm, files[file]).hexdigest()}"
    known = dataclasses.replace(SETS[name], digests=digests)
    if known.archive:
        known = dataclasses.replace(known, archive_digest=f"sha256:{hashlib.sha256(zipped(files)).hexdigest()}")
    monkeypatch.setitem(SETS, name, known)
    return name, files


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(f"gzip/{name}"), content)
    return buffer.getvalue()


def put(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def is_kin(name: str, dataset: TrainTestImages) -> bool:
    known = SETS[name]
    assert (dataset.name, dataset.classes, dataset.class_names) == (name, len(known.class_names), known.class_names)
    assert dataset.train.labels.tolist() == list(range(6)) and dataset.test.labels.tolist() == list(range(7))
    expected = np.arange(6).reshape(2, 3)
    expected = expected.T if known.transposed else expected
    assert dataset.train.images[0].tolist() == expected.tolist() and dataset.train.images.flags.c_contiguous
    return True


def test_kin_is_found_in_its_folders(kin, tmp_path, monkeypatch):
    name, files = kin
    for folder in (*SETS[name].folders, "."):
        root = tmp_path / folder.replace("/", "-") / "root"
        put(root / folder, files)
        assert is_kin(name, PUBLISHED[name](root))
    monkeypatch.setenv("XGRAD_DATA", str(root))
    assert is_kin(name, PUBLISHED[name]())
    put(tmp_path / "cache" / "xgrad" / SETS[name].folders[0], files)
    monkeypatch.delenv("XGRAD_DATA")
    assert is_kin(name, PUBLISHED[name](download=False))


def test_kin_beside_mnist_is_told_apart(kin, small, tmp_path):
    name, files = kin
    fill(tmp_path)  # MNIST in the folder itself, with the same file names as Fashion-MNIST's
    put(tmp_path / SETS[name].folders[0], files)
    assert is_kin(name, PUBLISHED[name](tmp_path)) and is_small(mnist(tmp_path))
    for compress in (True, False):
        fill(tmp_path / SETS[name].folders[0], compress)
    if not SETS[name].archive:
        with pytest.raises(DataError, match="this is the file of MNIST: keep the files of each data set in a folder"):
            PUBLISHED[name](tmp_path)


def test_kin_is_checked(kin, tmp_path):
    name, files = kin
    for file, content in files.items():
        raw = gzip.decompress(content) if file.endswith(".gz") else content
        damaged = raw[:-1] + b"\7"
        put(tmp_path, files | {file: gzip.compress(damaged) if file.endswith(".gz") else damaged})
        with pytest.raises(
            DataError, match=r"with the (MD5|SHA-256) [0-9a-f]+, got [0-9a-f]+; delete the file"
        ) as caught:
            PUBLISHED[name](tmp_path)
        assert str(tmp_path / file) in str(caught.value)


def test_kin_of_which_the_compressed_files_are_known_is_wanted_compressed(kin, tmp_path):
    name, files = kin
    raw = {file.removesuffix(".gz"): gzip.decompress(x) if file.endswith(".gz") else x for file, x in files.items()}
    put(tmp_path, raw)
    if name == "fashion-mnist":
        assert is_kin(name, PUBLISHED[name](tmp_path))
    else:
        with pytest.raises(DataNotFoundError, match=r"files not found: \S+-ubyte\.gz, .* \(as published\)"):
            PUBLISHED[name](tmp_path)


def test_kin_is_downloaded_once(kin, serve, tmp_path):
    name, files = kin
    sent = {file if file.endswith(".gz") else f"{file}.gz": x for file, x in files.items()}
    sent = {file: x if x[:2] == b"\x1f\x8b" else gzip.compress(x) for file, x in sent.items()}
    sent = {"gzip.zip": zipped(files)} if SETS[name].archive else sent
    bad, good = serve(html, lambda file: whole(sent[file]))
    assert is_kin(name, PUBLISHED[name]()) and is_kin(name, PUBLISHED[name]())
    assert bad.asked == good.asked == list(sent)
    cache = tmp_path / "cache" / "xgrad" / SETS[name].folders[0]
    assert sorted(path.name for path in cache.iterdir()) == sorted(sent)


@pytest.mark.parametrize("kin", [name for name in SETS if SETS[name].archive], indirect=True)
def test_an_archive_is_read_where_it_is(kin, tmp_path):
    name, files = kin
    path = put(tmp_path / "EMNIST" / "raw", {"gzip.zip": zipped(files)}) / "gzip.zip"
    assert is_kin(name, PUBLISHED[name](tmp_path))
    for content in (b"no archive", zipped({}), zipped(files)[:-30]):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=r"gzip\.zip: expected the archive of EMNIST \w+, got another or a damaged one"
        ):
            PUBLISHED[name](tmp_path)
    path.write_bytes(zipped(dict.fromkeys(files, gzip.compress(b"forged"))))
    with pytest.raises(
        DataError, match=r"gzip\.zip/gzip/emnist-\S+: expected the compressed file as published, with the MD5"
    ):
        PUBLISHED[name](tmp_path)


def test_splits_of_emnist():
    with pytest.raises(ValueError, match=r"emnist: expected a split out of byclass, .*, got 'capitals'"):
        emnist("capitals")
    classes = {name: len(known.class_names) for name, known in SETS.items() if known.archive}
    assert list(classes.values()) == [62, 47, 47, 26, 10, 10]


def test_digests_are_of_known_algorithms():
    lengths = {"md5": 32, "sha256": 64}
    digests = [
        digest for known in SETS.values() for digest in (*known.digests.values(), known.archive_digest) if digest
    ]
    assert all(
        re.fullmatch(rf"{a}:[0-9a-f]{{{lengths[a]}}}", digest) for digest in digests for a in [digest.partition(":")[0]]
    )
    assert len(set(digests)) == 4 * len(SETS) + 1
    assert set(lengths) == set(published.ALGORITHMS)


def test_mirrors_are_encrypted():
    assert {name.partition("-")[0] if known.archive else name for name, known in SETS.items()} == set(MIRRORS)
    for urls in MIRRORS.values():
        assert urls and all(url.startswith("https://") and url.endswith("/") for url in urls)


# Places and sizes that do not do


def test_a_user_that_does_not_exist_is_a_folder_that_was_not_found(monkeypatch, small):
    assert "~nosuchuser/data/mnist," in message("~nosuchuser/data", error=DataNotFoundError)
    monkeypatch.setenv("XGRAD_DATA", "~nosuchuser")
    assert "~nosuchuser;" in message(error=DataNotFoundError)


def test_without_a_home_the_cache_is_asked_for(monkeypatch, small, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as it is where no home is known
    for download in (False, True):
        assert "expected a home folder for the cache" in message(error=DataNotFoundError, download=download)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "download"])
def test_a_bomb_in_place_of_a_file_is_refused_in_little_memory(place, small, serve, tmp_path):
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=1) as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 10**6, 28, 28))
        for _ in range(300):
            file.write(bytes(10**6))
    if place == "file":
        (fill(tmp_path) / f"{NAMES[0]}.gz").write_bytes(bomb.getvalue())
    else:
        serve(lambda name: whole(bomb.getvalue()))
    tracemalloc.start()
    try:
        text = message(tmp_path) if place == "file" else message(error=DataNotFoundError)
        assert tracemalloc.get_traced_memory()[1] < 3e8  # ten times of what the set is said to have, not all
    finally:
        tracemalloc.stop()
    assert "expected at most 110000000 bytes, got more" in text


@pytest.mark.parametrize("kin", ["emnist-letters"], indirect=True)
def test_a_damaged_archive_is_refused_as_documented(kin, tmp_path):
    name, files = kin
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
