"""Docstrings in NumPy's style, written out from a short form.

The short form is a summary, a block of entries, notes and examples, with empty lines between them::

    axis : int -- The axis to flip.
    dtype, device
    returns Tensor -- Of the shape of `x`; a long description goes
        on in indented lines.
    raises DeviceError

Paragraphs that begin with ``.. [`` are references. An entry without a description stands for that in `SHARED`, or in
what the functions of a module share. A field of `str.format` may stand in the place of an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def by_name(*entries: str) -> dict[str, str]:
    """Return entries, written out, by the names that they describe; of several names, the first stands for all."""
    named: dict[str, str] = {}
    for entry in entries:
        heading, _, description = entry.partition(" -- ")
        first, *others = heading.partition(" : ")[0].split(", ")
        named |= {first: f"{heading}\n    {description}", **dict.fromkeys(others, "")}
    return named


#: Entries of parameters and errors that mean the same in many functions.
SHARED = by_name(
    "x : Tensor -- Of any shape and dtype.",
    "device : str or Device, optional -- By default the `default_device`.",
    "dtype : dtype, optional -- Floating; by default that of `get_default_dtype`.",
    "generator : Generator, optional -- By default the stream of this thread or task: see `manual_seed`.",
    "keepdims : bool, default False -- Whether reduced axes stay, with length 1.",
    "shape : int or tuple of int -- The length of each axis.",
    "requires_grad : bool, default False -- Whether the result is a leaf that requires a gradient.",
    "DeviceError -- If the tensors are on several devices.",
    "IndexError -- If there is no such axis.",
)

#: Titles of sections by the first word of their entries; other entries are parameters.
_TITLES = {
    "attribute": "\n\nAttributes\n----------",
    "returns": "\n\nReturns\n-------",
    "raises": "\n\nRaises\n------",
    "warns": "\n\nWarns\n-----",
}
_PARAMETERS = "\n\nParameters\n----------"


def documented(standard: str = "", shared: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Write out the docstring of a function or class, of the standard's section `standard` or one that it lacks."""
    entries = {**SHARED, **shared} if shared else SHARED

    def write(function: F) -> F:
        if function.__doc__:  # None under -OO
            function.__doc__ = write_out(dedent(function.__doc__), function.__name__, standard, entries)
        return function

    return write


def dedent(text: str) -> str:
    """Return a docstring that ends with the indentation of its lines without that."""
    return text.replace(text[text.rfind("\n") :], "\n").strip()


def write_out(text: str, name: str, standard: str = "", shared: Mapping[str, str] = SHARED) -> str:
    """Return the docstring of a function, given its short form."""
    # No regular expressions, and few steps: `import xgrad` writes out some 50 docstrings.
    text, _, example = text.partition("\n\n>>> ")
    text, reference, references = text.partition("\n\n.. [")
    before, dashes, after = text.partition(" -- ")
    written, _, first = before.rpartition("\n\n") if dashes else (text, "", "")
    entries, _, notes = f"{first}{dashes}{after}".partition("\n\n")
    section = ""
    for line in entries.split("\n") if entries else ():
        if line[0] == " ":
            written += f"\n{line}"
            continue
        word, _, rest = line.partition(" ")
        title = _TITLES.get(word)
        if title is None:
            title, rest = _PARAMETERS, line
        if title is not section:
            written, section = written + title, title
        heading, dashes, description = rest.partition(" -- ")
        if dashes or heading[0] == "{":
            written += f"\n{heading}\n    {description}" if dashes else f"\n{heading}"
        else:
            written += "".join([f"\n{shared[key]}" for key in heading.split(", ") if shared[key]])
    if standard:
        notes += ("\n" if notes else "") + f"Python array API standard, {standard}: ``{name}``."
    if notes:
        written += f"\n\nNotes\n-----\n{notes}"
    if references:
        written += f"\n\nReferences\n----------{reference[1:]}{references}"
    imported = "" if example.startswith(("import ", "from ")) else "import xgrad\n>>> "
    return f"{written}\n\nExamples\n--------\n>>> {imported}{example}\n"
