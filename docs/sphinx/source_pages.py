"""Pages of the source files, to which the entries of the reference link.

Entries link to lines: ``sphinx.ext.linkcode`` asks `linkcode_resolve` for the address.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx

import xgrad
from public_names import function_of
from reference_pages import documented_names

ROOT = Path(xgrad.__file__).parents[1]

#: A page; the script sets the theme that the reader chose on the other pages.
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path} - xgrad</title>
<link rel="stylesheet" href="{root}_static/pygments.css">
<link rel="stylesheet" href="{root}_static/source.css">
</head>
<body>
<script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<p><a href="{root}docs/reference/index.html">Reference</a> / {path}</p>
{code}
</body>
</html>
"""


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


def write_sources(app: Sphinx, error: Exception | None) -> None:
    """Write a page for each file that defines a public name, with lines to link to.

    The pages are plain: with the theme's navigation, they would take half the time of the build.
    """
    if error or app.builder.format != "html":
        return
    found = [definition(module, name) for module, name in documented_names()]
    formatter = HtmlFormatter(linenos="inline", linespans="L")
    for path in {place[0] for place in found if place}:
        file = Path(app.outdir) / "source" / path.with_suffix(".html")
        file.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(source_text(path), PythonLexer(), formatter)
        page = PAGE.format(path=path, root="../" * len(path.parts), code=code)
        file.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pages."""
    app.connect("build-finished", write_sources)
    return {"parallel_read_safe": True}
