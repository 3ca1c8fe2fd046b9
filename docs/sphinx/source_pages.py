"""Pages of the source files, to which the entries of the reference link.

Entries link to lines: ``sphinx.ext.linkcode`` asks `linkcode_resolve` for the address.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from public_names import function_of
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from reference_pages import documented_names
from sphinx.application import Sphinx

import xgrad

ROOT = Path(xgrad.__file__).parents[1]


@cache
def source_text(path: Path) -> str:
    """Return the text of a source file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def definition(module: str, name: str) -> tuple[Path, int] | None:
    """Return the file and the line that define a public name; None unless they are xgrad's."""
    value: Any = import_module(module)
    for part in name.split("."):
        value = inspect.getattr_static(value, part, None) or getattr(value, part, None)
    value = getattr(getattr(value, "function", None), "forward", value)  # the rule of an op
    value = inspect.unwrap(function_of(value) or value)
    code = getattr(value, "__code__", None)
    if not code and not isinstance(value, type):
        return None
    file = Path(code.co_filename if code else inspect.getsourcefile(value) or "")
    if not file.is_relative_to(ROOT):
        return None
    path = file.relative_to(ROOT)
    if code:
        return path, code.co_firstlineno
    start = re.search(rf"^class {value.__name__}\b", source_text(path), re.MULTILINE)
    return path, source_text(path).count("\n", 0, start.start() if start else 0) + 1


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the source of a name, from a page of the reference."""
    found = definition(info["module"], info["fullname"]) if info.get("module") else None
    return f"../../source/{found[0].with_suffix('.html')}#L-{found[1]}" if found else None


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that defines a public name, with lines to link to."""
    found = [definition(module, name) for module, name in documented_names()]
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
    for path in sorted({place[0] for place in found if place}):
        body = f"<h1>{path}</h1>{highlight(source_text(path), PythonLexer(), formatter)}"
        yield f"source/{path.with_suffix('')}", {"title": str(path), "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pages."""
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True}
