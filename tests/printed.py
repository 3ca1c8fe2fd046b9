"""Comparison of what a program prints with the output in its documentation.

Documentation shows the output of a real run, in full. Text is compared word by word, and each
number with the number in its place: integers must be equal, and floats agree to rounding, which
depends on the processor. Times are not compared.
"""

from __future__ import annotations

import doctest
import math
import re

NUMBER = re.compile(
    r"""(?<![\w.])(?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
    (?P<time>\s(?:ns|µs|ms|s)\b)?""",
    re.VERBOSE,
)


def parts(text: str) -> tuple[str, list[str]]:
    """Return a text with a mark for each number and each time, and the numbers."""
    numbers: list[str] = []

    def mark(match: re.Match[str]) -> str:
        if match["time"]:
            return "<time>"
        numbers.append(match["number"])
        return "<number>"

    marked = re.sub(r"\s*(<number>)\s*", r"\1", NUMBER.sub(mark, text))  # arrays pad numbers
    return " ".join(marked.split()), numbers


def is_close(expected: str, printed: str, tolerance: float) -> bool:
    """Return whether two numbers agree; integers and floats never do."""
    if expected == printed:
        return True
    if expected.lstrip("+-").isdigit() or printed.lstrip("+-").isdigit():
        return False
    a, b = float(expected), float(printed)
    if a == b == 0:
        return math.copysign(1, a) == math.copysign(1, b)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-7)


def same_output(expected: str, printed: str, tolerance: float = 1e-5) -> bool:
    """Return whether a program printed the documented output.

    Parameters
    ----------
    expected, printed : str
        The two texts, in which white space counts as one space.
    tolerance : float
        Relative difference of floats that is accepted. Infinity accepts any numbers and another
        order of lines, too, as of a table of measurements that is sorted by time.
    """
    if tolerance == math.inf:
        left, right = (sorted(parts(t)[0].split()) for t in (expected, printed))
        return left == right
    (text, numbers), (other, others) = parts(expected), parts(printed)
    return text == other and all(
        is_close(*pair, tolerance) for pair in zip(numbers, others, strict=True)
    )


class OutputChecker(doctest.OutputChecker):
    """The same comparison for the examples of docstrings, which have no lines in a file."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether an example printed what its docstring shows."""
        want, got = (re.sub(r"\S+\.py:\d+", "<line>", text) for text in (want, got))
        return same_output(want.replace(doctest.BLANKLINE_MARKER, ""), got)
