"""Downloads, checked before they are kept."""

from collections.abc import Callable
from http.client import HTTPResponse, IncompleteRead
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from urllib.request import urlopen

from xgrad.data.idx import PIECE, DataError
from xgrad.support.files import write

#: Where each image set is downloaded from, in this order.
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
PATIENCE, SLOWEST = 30.0, 10e3  # seconds, and bytes in each further second, after which a mirror is given up
LONGEST_REASON = 500  # characters of what a server may have written


def fetch(path: Path, mirrors: tuple[str, ...], check: Callable[[bytes], object], most: int) -> list[str]:
    """Fill `path` from the first mirror that has a file of its name, of at most `most` bytes, that passes `check`.

    Returns
    -------
    list of str
        Why each mirror failed, where all did, and nothing was written; else empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for mirror in mirrors:
        try:
            content = _receive(mirror + path.name, most)
            check(content)
        except (OSError, DataError) as error:
            reason = "".join(c if c.isprintable() else " " for c in str(error))
            failures.append(f"{mirror}: {reason[:LONGEST_REASON]}")
        else:
            write(path, content)
            return []
    return failures


def _receive(url: str, most: int) -> bytes:
    """Return what is at an address; OSError for every failure, a reply that is too large or too slow among them."""
    content, given_up, reasons = bytearray(), Event(), []

    def work() -> None:
        try:
            with urlopen(url, timeout=TIMEOUT) as reply:
                if not isinstance(reply, HTTPResponse):
                    raise OSError(f"expected a reply of HTTP, got one of {reply.url}")
                while not given_up.is_set() and len(content) <= most and (part := reply.read1(PIECE)):
                    content.extend(part)
                if reply.length:  # which read1 does not report
                    raise IncompleteRead(b"", reply.length)
        except Exception as error:  # urllib has no list of what it raises for a malformed reply
            reasons.append(str(error) or type(error).__name__)  # the error itself would keep the socket open

    # The timeout of a socket is that of one byte: only another thread can be waited for no longer than this.
    thread, start = Thread(target=work, daemon=True), monotonic()
    thread.start()
    try:
        while thread.is_alive():
            if monotonic() - start > PATIENCE + len(content) / SLOWEST:
                raise TimeoutError(f"too slow: {len(content)} bytes in {monotonic() - start:.0f} seconds")
            thread.join(0.1)
    finally:
        given_up.set()
    if len(content) > most:
        raise OSError(f"expected at most {most} bytes, got more")
    for reason in reasons:
        raise OSError(reason)
    return bytes(content)
