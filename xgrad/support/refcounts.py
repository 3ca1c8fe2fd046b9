"""Reference counts, by which in-place updates recognize arrays that nothing else uses.

These are CPython's reference counts, with or without the global interpreter lock. How much an
argument and a list add to a count depends on the version, so it is measured.
"""

from collections.abc import Collection
from sys import getrefcount


def references(objects: Collection[object]) -> int:
    """Return the number of references to some objects, without the references of `objects`."""
    return sum(map(getrefcount, objects)) - len(objects) * _OWN


_OWN = sum(map(getrefcount, [object()]))
