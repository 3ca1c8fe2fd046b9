"""Parsing of command-line arguments, with one-line errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from xgrad.support.options import repeated_option

T = TypeVar("T")

LARGEST = 10**9  # above any number of images, steps or units; the product of two fits an int64


class UsageError(Exception):
    """A user error; the message is the one line that is printed."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError`."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(
            prog=f"xgrad {command}",
            description=description,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the values of options; raise UsageError for ``--option=--``, and for a repetition.

        Before Python 3.13, argparse takes the former for an empty list.
        """
        for text in args:
            if text.startswith("--") and text.endswith("=--"):
                self.error(f"{text[:-3]}: expected one argument")
        if message := repeated_option(self, args):
            self.error(message)
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            message = f"expected the options that {self.prog} --help lists, got {unknown}"
        raise UsageError(message.removeprefix("argument "))


def checked(
    parse: Callable[[str], T], accept: Callable[[T], bool], expected: str
) -> Callable[[str], T]:
    """Return an argument type: the value that `parse` returns, if `accept` returns True for it."""

    def check(text: str) -> T:
        try:
            value = parse(text)
        except ValueError:
            pass
        else:
            if accept(value):
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")

    return check


def one_of(*names: str) -> Callable[[str], str]:
    """Return an argument type: one of some names."""
    return checked(
        str, names.__contains__, " or ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])
    )


def integer(low: int, high: int = LARGEST) -> Callable[[str], int]:
    """Return an argument type: an integer of at least `low`, and below `high`."""
    not_below = checked(int, lambda n: low <= n, f"an integer of {low} or more")
    return checked(not_below, lambda n: n < high, f"an integer below {high:g}")


def nonempty_path(text: str) -> Path:
    """Return a path; reject an empty text, which may come from an unset shell variable."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)


def widths(text: str) -> tuple[int, ...]:
    """Return layer widths such as ``256,128``; raise ValueError for other text."""
    sizes = tuple(int(part) for part in text.split(","))
    if not all(1 <= size < LARGEST for size in sizes):
        raise ValueError(text)
    return sizes
