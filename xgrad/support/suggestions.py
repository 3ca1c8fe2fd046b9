"""Suggestions for a name that is not known: from other modules, and by likeness.

The module is loaded when an error is shown.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from importlib import import_module

#: Modules to search for a name that another module lacks.
_SEARCHED = (
    "linalg nn.functional special fft random nn nn.init nn.utils nn.utils.rnn optim data testing"
).split()

#: Names of other libraries that no likeness leads to.
_ALIASES = {"gpu": "cuda", "cupy": "cuda", "nvidia": "cuda", "numpy": "cpu"}


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most like another one; an empty text if none is.

    The case of letters does not count. `cutoff` is the least likeness, from 0 to 1.
    """
    by_lower = {text.lower(): text for text in known}
    lower = name.lower()
    if (alias := _ALIASES.get(lower, "")) in by_lower:
        return by_lower[alias]
    found = difflib.get_close_matches(lower, by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question for the end of an error message; an empty text if no name is like it."""
    found = nearest(name, known)
    return f": did you mean {found}?" if found else ""


def suggestion(owner: str, name: str) -> str:
    """Return a suggestion for a name that a module lacks, after a colon; an empty text if none."""
    if name.startswith("_"):
        return ""
    for path in ("xgrad", *[f"xgrad.{module}" for module in _SEARCHED]):
        if path != owner and name in import_module(path).__all__:
            return f": write {path}.{name}"
    if hasattr(tensor := sys.modules["xgrad"].Tensor, name):
        return f": write x.{name}{'(...)' if callable(getattr(tensor, name)) else ''} of a tensor x"
    near = [
        n for n in dir(sys.modules[owner]) if not n.startswith("_") and _is_misspelling(name, n)
    ]
    near = sorted(near, key=lambda n: _plain(n) != _plain(name))  # the same letters first
    return f": the nearest is {owner}.{near[0]}" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _is_misspelling(name: str, known: str) -> bool:
    """Return whether a name is a misspelling of a known one.

    The two may differ in case, in underscores, and in at most one letter, or two adjacent letters
    that are exchanged. Names with different digits, such as layers for other dimensions, are no
    misspellings; nor are short names that differ in a letter.
    """
    a, b = _plain(name), _plain(known)
    if [c for c in a if c.isdigit()] != [c for c in b if c.isdigit()] or not a:
        return False
    shorter = min(len(a), len(b))
    start = 0
    while a[start : start + 1] == b[start : start + 1] != "":
        start += 1
    a, b = a[start:], b[start:]
    while a[-1:] == b[-1:] != "":
        a, b = a[:-1], b[:-1]
    if len(a) == len(b) == 1:
        return shorter >= 6
    return a == b == "" or (
        shorter >= 3 and (len(a) + len(b) == 1 or (len(a) == 2 and a == b[::-1]))
    )
