"""The directive ``{graph}``: an expression, and the picture of the recorded graph that it returns.

The programs of the page before the directive run first, in one namespace.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class GraphDirective(SphinxDirective):
    """The expression as code, followed by its picture."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        expression = "\n".join(self.content)
        file = Path(self.env.doc2path(self.env.docname))
        before = "".join(
            file.read_text(encoding="utf-8").splitlines(keepends=True)[: self.lineno - 1]
        )
        namespace: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()):
            for program in PROGRAM.findall(before):
                exec(compile(program, str(file), "exec"), namespace)
        picture = eval(expression, namespace)._repr_html_()
        code = nodes.literal_block(expression, expression, language="python")
        return [code, nodes.raw("", f'<div class="graph">{picture}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("graph", GraphDirective)
    return {"parallel_read_safe": True}
