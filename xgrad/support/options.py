"""Options of a command line that are given twice."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence


def repeated_option(parser: ArgumentParser, args: Sequence[str], rest: bool = False) -> str:
    """Return an error message if an option is given twice, of which argparse ignores the first.

    Options that collect values may be repeated. With `rest`, arguments from the first one on that
    is not an option belong to another program.
    """
    actions = parser._option_string_actions
    given, skip = set(), False
    for text in args:
        if skip:
            skip = False
            continue
        if text == "--":
            break
        name, _, value = text.partition("=")
        if not text.startswith("--") and len(text) > 2 and text[:2] in actions:  # such as -n4
            name, value = text[:2], text[2:]
        action = actions.get(name)
        if action is None:
            if rest:
                break
            continue
        skip = action.nargs is None and not value and not text.endswith("=")
        if action.dest in given:
            names = " and ".join(action.option_strings)
            commas = ": separate its values by commas" if ",..." in str(action.metavar) else ""
            return f"{names}: expected once at most, got twice{commas}"
        if type(action).__name__ != "_AppendAction":
            given.add(action.dest)
    return ""
