"""Pages of the reference: public names by module and subject.

Each op has its derivative rules from the source.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from xgrad import Function

STANDARD = "https://data-apis.org/array-api/2025.12/API_specification/generated/array_api."

#: Pages: the public module, the title, and the source modules whose names are on the page, by
#: default all.
PAGES = [
    ("xgrad", "Tensors", "core.tensor ops.tensor_conversion ops.dlpack"),
    ("xgrad", "Gradients", "core.modes diagnostics.lost_gradients core.function"),
    ("xgrad", "Transforms", "transforms"),
    ("xgrad", "Differential equations", "integration"),
    ("xgrad", "Captured steps", "capture"),
    ("xgrad", "Graphs, profiles and memory", "inspection diagnostics.memory"),
    (
        "xgrad",
        "Devices, dtypes and threads",
        "backend core.dtypes namespace_info ops.dtype_functions",
    ),
    ("xgrad", "Files", "serialization"),
    ("xgrad", "Creation", "ops.creation"),
    ("xgrad", "Elementwise functions", "ops.elementwise"),
    ("xgrad", "Manipulation", "ops.manipulation ops.joining ops.padding ops.encoding"),
    ("xgrad", "Reductions and scans", "ops.statistical ops.scans ops.differences"),
    (
        "xgrad",
        "Indexing, searching and sets",
        "ops.indexing ops.searching ops.selection ops.sets",
    ),
    ("xgrad", "Products", "ops.matrix_products ops.contractions ops.diagonals"),
    ("xgrad", "Further functions", ""),
    ("xgrad.autograd", "autograd", ""),
    ("xgrad.capture", "capture", ""),
    ("xgrad.linalg", "linalg", ""),
    ("xgrad.fft", "fft", ""),
    ("xgrad.special", "special", ""),
    ("xgrad.random", "random", ""),
    ("xgrad.distributions", "distributions", ""),
    ("xgrad.distributions.constraints", "distributions.constraints", ""),
    ("xgrad.distributions.transforms", "distributions.transforms", ""),
    (
        "xgrad.nn",
        "nn: modules and containers",
        (
            "nn.module nn.parameter nn.containers nn.parameter_containers nn.state_dict nn.mlp"
            " nn.linear nn.shapes"
        ),
    ),
    ("xgrad.nn", "nn: activations", "nn.activations"),
    (
        "xgrad.nn",
        "nn: losses",
        "nn.losses nn.margin_losses nn.sequence_losses nn.adaptive_softmax",
    ),
    ("xgrad.nn", "nn: layers", ""),
    ("xgrad.nn.functional", "nn.functional", ""),
    ("xgrad.nn.init", "nn.init", ""),
    ("xgrad.nn.utils", "nn.utils", ""),
    ("xgrad.nn.utils.parametrizations", "nn.utils.parametrizations", ""),
    ("xgrad.nn.utils.parametrize", "nn.utils.parametrize", ""),
    ("xgrad.nn.utils.rnn", "nn.utils.rnn", ""),
    ("xgrad.optim", "optim", ""),
    ("xgrad.optim.lr_scheduler", "optim.lr_scheduler", ""),
    ("xgrad.optim.swa_utils", "optim.swa_utils", ""),
    ("xgrad.amp", "amp", ""),
    ("xgrad.training", "training", ""),
    ("xgrad.distributed", "distributed", ""),
    ("xgrad.onnx", "onnx", ""),
    ("xgrad.data", "data", ""),
    ("xgrad.data.transforms", "data.transforms", ""),
    ("xgrad.distributed", "distributed", ""),
    ("xgrad.ops", "ops", ""),
    ("xgrad.testing", "testing", ""),
    ("xgrad.backend", "backend", ""),
]
#: Public names of modules without ``__all__``.
NAMES = {"xgrad.backend": ["Backend", "DeviceError"]}


def pages() -> Iterator[tuple[str, str, str]]:
    """Yield the name, title and text of each page; an object is on the first page that fits it."""
    seen: set[int] = set()
    for module, title, sources in PAGES:
        public = import_module(module)
        entries = []
        for name in sorted(NAMES.get(module) or public.__all__, key=str.lower):
            value = getattr(public, name)
            source = str(getattr(value, "__module__", "")).removeprefix("xgrad.")
            fits = not sources or any(
                source == s or source.startswith(f"{s}.") for s in sources.split()
            )
            if (
                fits
                and callable(value)
                and not isinstance(value, types.ModuleType)
                and id(value) not in seen
            ):
                seen.add(id(value))
                is_class = isinstance(value, type)
                members = "   :members:\n" if is_class and not issubclass(value, Exception) else ""
                entries.append(
                    f".. auto{'class' if is_class else 'function'}:: {module}.{name}\n{members}\n"
                )
        if entries:
            yield re.sub(r"\W+", "_", title).lower(), title, "\n".join(entries)


def write_pages(app: Sphinx) -> None:
    """Write the pages to docs/reference/.

    Unchanged files are left alone, so that builds are incremental.
    """
    folder = Path(app.srcdir) / "docs" / "reference"
    folder.mkdir(exist_ok=True)
    texts = {
        f"{name}.rst": f"{title}\n{'=' * len(title)}\n\n{text}" for name, title, text in pages()
    }
    titles = [f"   {name[:-4]}" for name in texts]
    texts["index.rst"] = "\n".join(
        ["Reference", "=========", "", ".. toctree::", "   :maxdepth: 1", "", *titles, ""]
    )
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()


@cache
def parsed(file: str) -> tuple[str, list[ast.stmt]]:
    """Return the text and the statements of a source file."""
    text = Path(file).read_text(encoding="utf-8")
    return text, ast.parse(text).body


def segment(text: str, node: ast.AST) -> str:
    """Return the source of an expression or a statement, without the docstring of a function."""
    source = ast.get_source_segment(text, node, padded=True) or ""
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and len(node.body) > 1:
        lines = source.split("\n")
        docstring = node.body[0]
        first = docstring.lineno - node.lineno
        del lines[first : first + (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1]
        source = "\n".join(lines)
    return source


def is_op(node: ast.AST) -> bool:
    """Return whether a statement declares an op."""
    calls = [d.func for d in getattr(node, "decorator_list", []) if isinstance(d, ast.Call)]
    return any(
        isinstance(f, ast.Name) and f.id in ("derivative", "elementwise", "kernel") for f in calls
    )


def declaration(op: Any) -> tuple[str, str] | None:
    """Return the file that declares an op, and its derivative rules with the helpers they call.

    The result is None for an op without rules.
    """
    if not any(op.function.rules):
        return None
    rule = inspect.unwrap(op.function.forward)
    file = rule.__code__.co_filename
    text, body = parsed(file)
    shown: list[ast.AST] = []
    for node in body:
        if isinstance(node, ast.FunctionDef) and is_op(node):
            start = min([decorator.lineno for decorator in node.decorator_list])
            if start <= rule.__code__.co_firstlineno <= (node.end_lineno or start):
                shown += [d for d in node.decorator_list if isinstance(d, ast.Call)][:1]
    helpers = {n.name: n for n in body if isinstance(n, ast.FunctionDef) and not is_op(n)}
    for node in shown:  # grows by the helpers
        for part in ast.walk(node):
            helper = helpers.get(part.id) if isinstance(part, ast.Name) else None
            if helper is not None and helper not in shown:
                shown.append(helper)
    source = "\n".join([segment(text, node).strip() for node in shown])
    return (Path(file).name, source) if shown else None


def add_derivative(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Add the derivative rules of an op to its documentation.

    The section of the standard becomes a link.
    """
    reference = False
    for i, line in enumerate(lines):
        # The lines of a reference are one paragraph.
        reference = line.startswith(".. [") or (reference and line.startswith("   "))
        if reference and line.startswith("   "):
            lines[i] = line = line.strip()
        # Plain numbers, since references are numbered in each docstring, not in each page.
        lines[i] = re.sub(r"^\.\. (\[\d+\])|(\[\d+\])_", r"\1\2", line)
        if match := re.match(r"Python array API standard, (.*): ``(\w+)``\.", line):
            section, function = match.groups()
            package = name.removeprefix("xgrad.").rpartition(".")[0]
            path = f"{package}.{function}" if package in ("fft", "linalg") else function
            lines[i] = (
                f"`Python array API standard, {section}: {function} <{STANDARD}{path}.html>`__."
            )
    if isinstance(getattr(value, "function", None), Function) and (found := declaration(value)):
        file, source = found
        code = [f"   {line}" for line in source.splitlines()]
        lines += [
            "",
            f".. rubric:: Derivative, in ``{file}``",
            "",
            ".. code-block:: python",
            "",
            *code,
            "",
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pages and the additions to docstrings."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", add_derivative, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
