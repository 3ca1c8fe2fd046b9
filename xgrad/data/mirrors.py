"""Downloads from mirrors, checked before they are stored."""

from collections.abc import Callable
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from urllib.request import urlopen

from xgrad.data.idx import CHUNK, DataError
from xgrad.support.files import write

#: Mirrors of each image set, in the order in which they are tried.
MIRRORS = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "fashion-mnist": (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    ),
    "kmnist": ("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
    "emnist": ("https://biometrics.nist.gov/cs_links/EMNIST/",),
}
TIMEOUT = 10.0  # seconds without a byte
GRACE, MIN_RATE = 30.0, 10e3  # seconds, and then bytes a second, below which a mirror is given up
MAX_REASON = 500  # characters; a server may have written them


def fetch(
    path: Path, mirrors: tuple[str, ...], check: Callable[[bytes], object], limit: int
) -> list[str]:
    """Fill `path` from the first mirror that has a file of its name, of at most `limit` bytes, that
    passes `check`.

    Return the reasons of the mirrors if all failed, and nothing was written; else an empty list.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for mirror in mirrors:
        try:
            content = _receive(mirror + path.name, limit)
            check(content)
        except (OSError, DataError) as error:
            reason = "".join(c if c.isprintable() else " " for c in str(error))
            failures.append(f"{mirror}: {reason[:MAX_REASON]}")
        else:
            write(path, content)
            return []
    return failures


def _receive(url: str, limit: int) -> bytes:
    """Return the content at an address; raise OSError for any failure, also a reply that is too
    large or too slow.
    """
    content, cancelled, reasons = bytearray(), Event(), []

    def receive() -> None:
        try:
            with urlopen(url, timeout=TIMEOUT) as reply:
                if not isinstance(reply, HTTPResponse):
                    raise OSError(f"expected a reply of HTTP, got one of {reply.url}")
                while (
                    not cancelled.is_set()
                    and len(content) <= limit
                    and (part := reply.read1(CHUNK))
                ):
                    content.extend(part)
                if reply.length:  # read1 does not report a short reply
                    raise IncompleteRead(b"", reply.length)
        except Exception as error:  # urllib documents no list of exceptions for malformed replies
            reasons.append(
                str(error) or type(error).__name__
            )  # the error itself would keep the socket open

    # The timeout of a socket holds for each byte; the total time is bounded by waiting for another
    # thread.
    thread, start = Thread(target=receive, daemon=True), monotonic()
    thread.start()
    try:
        while thread.is_alive():
            if monotonic() - start > GRACE + len(content) / MIN_RATE:
                raise TimeoutError(
                    f"too slow: {len(content)} bytes in {monotonic() - start:.0f} seconds"
                )
            thread.join(0.1)
    finally:
        cancelled.set()
    if len(content) > limit:
        raise OSError(f"expected at most {limit} bytes, got more")
    for reason in reasons:
        raise OSError(reason)
    return bytes(content)
