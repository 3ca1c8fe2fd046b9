"""Downloads, checked before they are kept."""

import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from xgrad.data.idx import DataError
from xgrad.files import write

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


def fetch(path: Path, mirrors: tuple[str, ...], check: Callable[[bytes], object]) -> list[str]:
    """Fill `path` from the first mirror that has a file of its name to which `check` has no objection.

    Returns
    -------
    list of str
        Why each mirror failed, where all did, and nothing was written; else empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for mirror in mirrors:
        try:
            with urlopen(mirror + path.name, timeout=TIMEOUT) as reply:
                content = reply.read()
            check(content)
        except (OSError, HTTPException, EOFError, zlib.error, DataError) as error:
            failures.append(f"{mirror}: {error}")
        else:
            write(path, content)
            return []
    return failures
