"""Files that are there whole or not at all."""

import errno
import os  # and not pathlib, which takes a twentieth of NumPy's own time to import

#: Of a disk, or a user's share of it, that is full; Windows has no shares.
DISK_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; through a symbolic link, which stays.

    Parameters
    ----------
    path : str or os.PathLike
        Where, in a folder that exists. A file that is there is replaced.
    content : bytes
        What.

    Raises
    ------
    OSError
        If it could not be written, such as on a full disk; what was there before still is, and nothing else.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(f"{folder}/name", b"content")
    ...     os.path.getsize(f"{folder}/name")
    7
    """
    target = os.path.realpath(path)
    temporary = f"{target}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:  # not tempfile.mkstemp: nobody else could read what it makes
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            kept = "the earlier file is unchanged" if os.path.exists(target) else "no part of it is left"
            raise OSError(
                error.errno, f"disk full: {len(content)} bytes were not written, {kept}", str(path)
            ) from error
        raise
