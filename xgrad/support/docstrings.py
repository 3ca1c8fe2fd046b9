"""Docstrings in NumPy's style, written out from a short form.

The short form is a summary, a block of entries, notes and examples, with empty lines between them::

    axis : int -- Along what to flip.
    dtype, device
    returns Tensor -- Of the shape of `x`, which may take
        several lines.
    raises DeviceError

An entry without a description stands for that in `SHARED`, or in what the functions of a module share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def by_name(*entries: str) -> dict[str, str]:
    """Return entries by the names that they describe; of several names, the first stands for all."""
    named: dict[str, str] = {}
    for entry in entries:
        first, *others = re.split(r" : | -- ", entry)[0].split(", ")
        named |= {first: entry, **dict.fromkeys(others, "")}
    return named


#: Entries of parameters and errors that mean the same in many functions.
SHARED = by_name(
    "x : Tensor -- Of any shape and dtype.",
    "device : str or Device, optional -- By default the `default_device`.",
    "generator : Generator, optional -- By default the stream of this thread or task: see `manual_seed`.",
    "keepdims : bool, default False -- Whether reduced axes stay, with length 1.",
    "shape : int or tuple of int -- The length of each axis.",
    "requires_grad : bool, default False -- Whether gradients are wanted of the result, as a leaf.",
    "DeviceError -- If the tensors are on several devices.",
    "IndexError -- If there is no such axis.",
)


def documented(standard: str = "", shared: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Write out the docstring of a function of the standard's section `standard`, or of one that it lacks."""
    entries = {**SHARED, **shared} if shared else SHARED

    def write(function: F) -> F:
        if function.__doc__:  # None under -OO
            function.__doc__ = write_out(cleandoc(function.__doc__), function.__name__, standard, entries)
        return function

    return write


def write_out(text: str, name: str, standard: str = "", shared: Mapping[str, str] = SHARED) -> str:
    """Return the docstring of a function, given its short form."""
    text, _, example = text.partition("\n\n>>> ")
    summary: list[str] = []
    notes: list[str] = []
    entries: dict[str, list[str]] = {"Parameters": [], "Returns": [], "Raises": []}
    for paragraph in filter(None, text.split("\n\n")):
        if " -- " not in paragraph:
            (notes if any(entries.values()) else summary).append(paragraph)
            continue
        for entry in re.split(r"\n(?=\S)", paragraph):
            heading, _, rest = entry.partition(" ")
            if heading in ("returns", "raises"):
                entries[heading.capitalize()] += _described(rest, shared)
            else:
                entries["Parameters"] += _described(entry, shared)
    if standard:
        notes[-1:] = ["\n".join([*notes[-1:], f"Python array API standard, {standard}: ``{name}``."])]
    if not example.startswith(("import ", "from ")):
        example = f"import xgrad\n>>> {example}"
    sections = {heading: "\n".join(lines) for heading, lines in entries.items()}
    sections |= {"Notes": "\n\n".join(notes), "Examples": f">>> {example}"}
    parts = [f"{heading}\n{'-' * len(heading)}\n{body}" for heading, body in sections.items() if body]
    return "\n\n".join([*summary, *parts]) + "\n"


def _described(entry: str, shared: Mapping[str, str]) -> list[str]:
    """Return an entry, or those of its names, with each description in lines of its own."""
    described = [entry] if " -- " in entry else [shared[name] for name in entry.split(", ") if shared[name]]
    return [line.replace(" -- ", "\n    ", 1) for line in described]
