"""Downloads, checked before they are kept."""

import gzip
import hashlib
import zlib
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from xgrad.data.idx import DataError
from xgrad.files import write

#: Where MNIST is downloaded from, in this order.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
TIMEOUT = 10.0  # seconds without a byte


def fetch(path: Path, sha256: str) -> list[str]:
    """Fill `path` from the first mirror that has a gzip file of its name with contents of this SHA-256.

    Returns
    -------
    list of str
        Why each mirror failed, where all did, and nothing was written; else empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for mirror in MIRRORS:
        try:
            with urlopen(mirror + path.name, timeout=TIMEOUT) as reply:
                content = reply.read()
            if (got := hashlib.sha256(gzip.decompress(content)).hexdigest()) != sha256:
                raise DataError(f"expected contents with the SHA-256 {sha256}, got {got}")
        except (OSError, HTTPException, EOFError, zlib.error, DataError) as error:
            failures.append(f"{mirror}: {error}")
        else:
            write(path, content)
            return []
    return failures
