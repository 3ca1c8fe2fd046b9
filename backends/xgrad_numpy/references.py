"""Reference counts of arrays, by which memory may be written to in place."""

from __future__ import annotations

from sys import getrefcount

import numpy as np


def _counts(arrays: list[np.ndarray]) -> tuple[int, int]:
    """Return the references to arrays of one memory, and those to the array that owns it."""
    owner = arrays[0].base if arrays[0].base is not None else arrays[0]
    return sum([getrefcount(x) for x in arrays]), getrefcount(owner)


def _calibrated() -> tuple[int, int, int]:
    """Return the counts of an array that one tensor holds, of a view that one holds, and of its owner.

    They depend on the version of Python.
    """
    held = [np.empty(1)]
    owning, _ = _counts(held[:])
    held = [np.empty(2)[1:]]
    return owning, *_counts(held[:])


_OWNING, _VIEW, _OWNER = _calibrated()


def is_exclusive(arrays: list[np.ndarray]) -> bool:
    """Return whether only these arrays refer to their memory, each held once besides the list."""
    first = arrays[0]
    owner = first if first.base is None else first.base
    if type(owner) is not np.ndarray or owner.base is not None or not owner.flags.writeable:
        return False
    count = len(arrays)
    owns = count - sum([x.base is owner for x in arrays])
    if owns > 1 or (owns and first is not owner):
        return False
    del first, owner
    total, owner_count = _counts(arrays)
    if owns:  # each view has one reference to the owner
        return total == _OWNING + (count - 1) * (_VIEW + 1)
    return total == count * _VIEW and owner_count == _OWNER + count - 1
