"""Counts of references to arrays, which tell whether memory may be written to."""

from __future__ import annotations

import numpy as np

from xgrad.support.refcounts import references


def is_exclusive(arrays: list[np.ndarray]) -> bool:
    """Return whether nothing sees the memory of some arrays but these, each of which one tensor holds."""
    owner = arrays[0] if arrays[0].base is None else arrays[0].base
    if type(owner) is not np.ndarray or owner.base is not None or not owner.flags.writeable:
        return False
    views = sum([x.base is owner for x in arrays])
    owners = len(arrays) - views
    if owners > 1 or (owners and arrays[0] is not owner):
        return False
    of_owner = 1 + views  # this variable, and the base of each view
    if owners:
        return references(arrays) == len(arrays) + of_owner
    return references(arrays) == len(arrays) and references([owner]) == of_owner
