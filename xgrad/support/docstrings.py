"""Docstrings in NumPy's style, written out from a short form.

The short form is a summary, a block of entries, notes and examples, with empty lines between them::

    axis : int -- The axis to flip.
    dtype, device
    returns Tensor -- Of the shape of `x`; a long description goes
        on in indented lines.
    raises DeviceError

Paragraphs that begin with ``.. [`` are references. An entry without a description stands for that in `SHARED`, or in
what the functions of a module share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import cleandoc
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
    "generator : Generator, optional -- By default the stream of this thread or task: see `manual_seed`.",
    "keepdims : bool, default False -- Whether reduced axes stay, with length 1.",
    "shape : int or tuple of int -- The length of each axis.",
    "requires_grad : bool, default False -- Whether the result is a leaf that requires a gradient.",
    "DeviceError -- If the tensors are on several devices.",
    "IndexError -- If there is no such axis.",
)

#: Titles of sections by the first word of their entries; other entries are parameters.
_TITLES = {
    "": "Parameters\n----------",
    "attribute": "Attributes\n----------",
    "returns": "Returns\n-------",
    "raises": "Raises\n------",
    "warns": "Warns\n-----",
}


def documented(standard: str = "", shared: Mapping[str, str] | None = None) -> Callable[[F], F]:
    """Write out the docstring of a function or class, of the standard's section `standard` or one that it lacks."""
    entries = {**SHARED, **shared} if shared else SHARED

    def write(function: F) -> F:
        if function.__doc__:  # None under -OO
            function.__doc__ = write_out(cleandoc(function.__doc__), function.__name__, standard, entries)
        return function

    return write


def write_out(text: str, name: str, standard: str = "", shared: Mapping[str, str] = SHARED) -> str:
    """Return the docstring of a function, given its short form."""
    # No regular expressions: `import xgrad` writes out some 150 docstrings.
    text, _, example = text.partition("\n\n>>> ")
    summary: list[str] = []
    notes: list[str] = []
    references: list[str] = []
    entries: dict[str, list[str]] = {word: [] for word in _TITLES}
    lines = entries[""]
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(".. ["):
            references.append(paragraph)
            continue
        if " -- " not in paragraph:
            if paragraph:
                (notes if any(entries.values()) else summary).append(paragraph)
            continue
        for line in paragraph.split("\n"):
            if line.startswith(" "):
                lines.append(line)
                continue
            word, _, rest = line.partition(" ")
            if word in entries:
                lines, line = entries[word], rest
            else:
                lines = entries[""]
            heading, dashes, description = line.partition(" -- ")
            if dashes:
                lines += heading, f"    {description}"
            else:
                lines += filter(None, [shared[key] for key in heading.split(", ")])
    if standard:
        notes[-1:] = ["\n".join([*notes[-1:], f"Python array API standard, {standard}: ``{name}``."])]
    sections = [*summary, *["\n".join([_TITLES[word], *body]) for word, body in entries.items() if body]]
    if notes:
        sections.append("Notes\n-----\n" + "\n\n".join(notes))
    if references:
        sections.append("References\n----------\n" + "\n\n".join(references))
    imported = "" if example.startswith(("import ", "from ")) else "import xgrad\n>>> "
    return "\n\n".join(sections) + f"\n\nExamples\n--------\n>>> {imported}{example}\n"
