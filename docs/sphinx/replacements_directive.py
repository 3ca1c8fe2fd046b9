"""The directive ``{replacements}``: the table of names to replace, as errors show it."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from xgrad.support.hints import NAMES


class ReplacementsDirective(SphinxDirective):
    """A table with a row for each expression: the names that it replaces, and the expression."""

    def run(self) -> list[nodes.Node]:
        rows: dict[tuple[str, str], list[str]] = {}
        for owner, names in NAMES.items():
            for name, expression in names.items():
                rows.setdefault((owner, expression), []).append(
                    f"x.{name}" if owner == "Tensor" else f"{owner}.{name}"
                )
        group = nodes.tgroup("", *[nodes.colspec(colwidth=50) for _ in range(2)], cols=2)
        group += nodes.thead("", _row([nodes.Text("missing")], [nodes.Text("write")]))
        group += nodes.tbody(
            "",
            *[
                _row([nodes.literal(text=", ".join(names))], [nodes.literal(text=expression)])
                for (_, expression), names in rows.items()
            ],
        )
        return [nodes.table("", group)]


def _row(*cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("replacements", ReplacementsDirective)
    return {"parallel_read_safe": True}
