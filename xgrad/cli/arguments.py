"""Parsing of command-line arguments, with one-line errors."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which
from typing import Any, NoReturn, TypeVar

from xgrad.support.options import repeated_option
from xgrad.support.suggestions import did_you_mean

T = TypeVar("T")

LARGEST = 10**9  # above any number of images, steps or units; the product of two fits an int64


class UsageError(Exception):
    """A user error; the message is the one line that is printed, followed by lines of advice."""

    def __init__(self, message: str, advice: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.advice = tuple(advice)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError`.

    Help texts name defaults themselves, since many defaults depend on other options.
    """

    def __init__(self, command: str, arguments: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=f"xgrad {command}",
            usage=f"xgrad {command} [OPTIONS] {arguments}".rstrip(),
            description=description,
            epilog=epilog,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the values of options; raise UsageError for an unknown or repeated one.

        Also for ``--option=--``, which argparse takes for an empty list before Python 3.13. Unknown
        options are reported before their values, which may look like other arguments.
        """
        for text in args:
            if text == "--":
                break
            name, equals, value = text.partition("=")
            if not text.startswith("--"):
                continue
            if name not in self._option_string_actions:
                hint = (
                    did_you_mean(name, self._option_string_actions) or f": see {self.prog} --help"
                )
                self.error(f"unknown option {name}{hint}")
            if equals and value == "--":
                self.error(f"{name}: expected one argument")
        if message := repeated_option(self, args):
            self.error(message)
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            message = f"unexpected argument {unknown}: see {self.prog} --help"
        raise UsageError(message.removeprefix("argument "))


def command(*arguments: str) -> str:
    """Return a command of this program, for a shell of the user.

    Without a program ``xgrad`` on the path, as after `make train`, it starts this Python.
    """
    if which("xgrad"):
        return shlex.join(["xgrad", *arguments])
    python = os.path.relpath(sys.executable) if os.name == "posix" else sys.executable
    shortest = min(python, sys.executable, key=len)
    return shlex.join([shortest, "-m", "xgrad", *arguments])


def checked(
    parse: Callable[[str], T],
    accept: Callable[[T], bool],
    expected: str,
    hint: Callable[[str], str] = lambda text: "",
) -> Callable[[str], T]:
    """Return an argument type: the value that `parse` returns, if `accept` returns True for it.

    Otherwise the error says what is `expected`, and ends with the `hint` for the text.
    """

    def check(text: str) -> T:
        try:
            value = parse(text)
        except ValueError:
            pass
        else:
            if accept(value):
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}{hint(text)}")

    return check


def one_of(*names: str) -> Callable[[str], str]:
    """Return an argument type: one of some names."""
    expected = " or ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])
    return checked(str, names.__contains__, expected, lambda text: did_you_mean(text, names))


def words(text: str) -> list[str]:
    """Return the names in a list separated by commas, without repetitions."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def some_of(*names: str) -> Callable[[str], list[str]]:
    """Return an argument type: some of the names, separated by commas."""

    def hint(text: str) -> str:
        unknown = (word for word in words(text) if word not in names)
        return did_you_mean(next(unknown, ""), names)

    expected = f"some of {','.join(names)}"
    return checked(words, lambda found: bool(found) and set(found) <= set(names), expected, hint)


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
