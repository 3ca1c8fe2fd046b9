"""Reference counts, by which in-place updates recognize arrays that nothing else uses.

They are those of CPython, with or without the global interpreter lock. What an argument and a list
add to a count depends on the version: it is measured, not assumed.
"""

from collections.abc import Collection
from sys import getrefcount


def references(objects: Collection[object]) -> int:
    """Return the number of references to some objects, without those that this collection of them
    has.
    """
    return sum(map(getrefcount, objects)) - len(objects) * _OWN


_OWN = sum(map(getrefcount, [object()]))
