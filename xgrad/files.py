"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; through a symbolic link, which stays.

    Parameters
    ----------
    path : pathlib.Path
        Where, in a folder that exists. A file that is there is replaced.
    content : bytes
        What.

    Raises
    ------
    OSError
        If it could not be written; what was there before still is, and nothing else.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder, "name"), b"content")
    ...     Path(folder, "name").read_bytes()
    b'content'
    """
    target = path.resolve()
    temporary = target.with_name(f"{target.name}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:  # not tempfile.mkstemp: nobody else could read what it makes
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
