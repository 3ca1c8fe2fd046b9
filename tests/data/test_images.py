import contextlib
import dataclasses
import gzip
import hashlib
import os
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from xgrad.data import DataError, DataNotFoundError, Split, TrainTestImages, digits, images, mirrors, mnist

REAL = os.environ.get("XGRAD_DATA") or Path(__file__).parents[2].parent / "shared" / "mnist"
MIRRORS = mirrors.MIRRORS
NAMES = tuple(images._SHA256)


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
    monkeypatch.setattr(mirrors, "MIRRORS", ())


@pytest.fixture
def small(monkeypatch):
    """A data set of the same file names that is five images long."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in SMALL.items()}
    monkeypatch.setattr(images, "_SHA256", sums)


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
            monkeypatch.setattr(mirrors, "MIRRORS", tuple(mirror.url for mirror in running))
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
    for word in (*NAMES, "set XGRAD_DATA", "download=True", "xgrad.data.digits()"):
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
        (cut, "Compressed file ended"),
        (html, "Not a gzipped file"),
        (forged, "expected contents with the SHA-256 "),
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


def test_mirrors_are_encrypted():
    assert len(MIRRORS) == 2
    assert all(mirror.startswith("https://") and mirror.endswith("/mnist/") for mirror in MIRRORS)
