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
GRACE, MIN_RATE = 30.0, 10e3  # after these seconds, give up mirrors below this rate in bytes/s
MAX_REASON = 500  # characters; the text may come from a server


def fetch(
    path: Path, mirrors: tuple[str, ...], check: Callable[[bytes], object], limit: int
) -> list[str]:
    """Fill `path` from the first mirror that has a valid file of its name.

    A file is valid if it has at most `limit` bytes and passes `check`. If all mirrors fail, nothing
    is written, and the reasons are returned; on success, the list is empty.
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
    """Return the content at an address; raise OSError for any failure.

    A reply that is too large or too slow is also a failure.
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
            # only the text, since the error itself would keep the socket open
            reasons.append(str(error) or type(error).__name__)

    # The socket's timeout applies to each byte; waiting for another thread bounds the total time.
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
