"""Elements of HTML as strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["cell", "escape", "key", "section", "table", "tag"]


def tag(name: str, *content: str, **attributes: str | bool) -> str:
    """Return an element; `content` is HTML, attributes are text: ``class_`` is ``class``, ``data_x`` is ``data-x``."""
    given = "".join(
        f" {k.strip('_').replace('_', '-')}" + ("" if v is True else f'="{escape(v)}"')
        for k, v in attributes.items()
        if v
    )
    return f"<{name}{given}>{''.join(content)}</{name}>"


def section(name: str, title: str, *content: str) -> str:
    """Return a section that can be linked to."""
    return tag("section", tag("h2", escape(title)), *content, id=name)


def cell(text: str, kind: str = "", title: str = "") -> str:
    """Return a cell of a table, of some text."""
    return tag("td", escape(text), class_=kind, title=title)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls where it is too wide, of headings and of rows of cells."""
    head = tag("tr", *[tag("th", text) for text in heads])
    body = [tag("tr", *row) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def key(colour: int) -> str:
    """Return a dot of a colour."""
    return tag("i", class_=f"key k{colour}")
