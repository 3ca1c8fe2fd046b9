"""Formulas in TeX, written into the pages as MathML while the site is built.

Browsers draw MathML, and screen readers read it: pages need no script, and nothing of another site.
A formula with an error, or with a command that the converter does not know, is a warning, which
fails the build.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util import logging

from tex import mathml

logger = logging.getLogger(__name__)

#: Code points of the font that the site has: ASCII, accents, Greek, general and mathematical
#: operators, arrows, brackets and alphabets.
CHARACTERS = [
    range(0x20, 0x180),
    range(0x2B0, 0x400),
    range(0x2000, 0x2070),
    range(0x2100, 0x2150),
    range(0x2190, 0x2300),
    range(0x2308, 0x230C),
    range(0x239B, 0x23B4),
    range(0x27E6, 0x27F0),
    range(0x1D400, 0x1D800),
]


def visit(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula of a page."""
    is_block = isinstance(node, nodes.math_block)
    formula = node.astext()
    try:
        markup = mathml(formula, "block" if is_block else "inline")
    except ValueError as error:
        logger.warning("formula %r: %s", formula, error, location=node)
        markup = f"<code>{translator.encode(formula)}</code>"
    translator.body.append(f'<div class="math">{markup}</div>\n' if is_block else markup)
    raise nodes.SkipNode


def write_font(app: Sphinx, error: Exception | None) -> None:
    """Write the part of STIX Two Math with `CHARACTERS` to the site.

    Roots, braces and sums need a font with a table of mathematics, which few Linux systems have.
    The package `ziamath` contains this one; without it, formulas use a font of the reader.
    """
    package = find_spec("ziamath")
    if error or package is None or package.origin is None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "stix-two-math.woff"
    if not target.exists():
        # With all names: the licence, SIL's, asks that its text stays in the font.
        options = subset.Options(flavor="woff", name_IDs=["*"])
        font = subset.load_font(
            Path(package.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf", options
        )
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=[code for codes in CHARACTERS for code in codes])
        subsetter.subset(font)
        subset.save_font(font, target, options)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True}
