"""The pages of the reference, written for Sphinx, and additions to docstrings on them.

`reference_pages.py` says which names are on which page. Each op has its derivative rules from the
source.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from public_names import doc_of, is_value, summary
from reference_pages import (
    GROUPS,
    INTRODUCTIONS,
    OPERATORS,
    OTHER_PAGES,
    TENSOR_METHODS,
    Entry,
    Page,
    entries,
    members_of,
    tensor_method,
)
from xgrad import Function

STANDARD = "https://data-apis.org/array-api/2025.12/API_specification/generated/array_api."


def table(rows: list[tuple[str, str]]) -> str:
    """Return a table of two columns: a name, and a sentence."""
    lines = [line for first, second in rows for line in (f"   * - {first}", f"     - {second}")]
    return "\n".join([".. list-table::", "   :class: names", "   :widths: auto", "", *lines])


def heading(text: str, line: str = "-") -> str:
    """Return a heading of a page, with a line below it."""
    return f"{text}\n{line * len(text)}"


def row(entry: Entry) -> tuple[str, str]:
    """Return the row of an entry in the table at the head of its page."""
    if entry.same_as:  # without an index entry of its own, as references by last names would be two
        return f"``{entry.name.rpartition('.')[2]}``", f"Another name of `{entry.same_as}`."
    return f":py:obj:`~{entry.name}`", summary(doc_of(entry.name, entry.value))


def described(entry: Entry) -> str:
    """Return the documentation of an entry."""
    module, _, last = entry.name.rpartition(".")
    if is_value(entry.value):
        text = doc_of(entry.name, entry.value).replace("\n", "\n   ")
        return f".. py:data:: {last}\n   :module: {module}\n\n   {text}"
    is_class = isinstance(entry.value, type)
    if entry.same_as:
        directive = "class" if is_class else "function"
        return (
            f".. py:{directive}:: {last}{call_of(entry.value)}\n"
            f"   :module: {module}\n   :no-index:\n\n"
            f"   Another name of `{entry.same_as}`."
        )
    if not is_class or issubclass(entry.value, Exception) or not (names := members_of(entry.value)):
        return f".. auto{'class' if is_class else 'function'}:: {entry.name}"
    return f".. autoclass:: {entry.name}\n   :members: {', '.join(names)}"


def call_of(x: Any) -> str:
    """Return the parameters of a function or a class, without types; nothing for an error."""
    if isinstance(x, type) and issubclass(x, Exception):
        return ""
    signature = inspect.signature(x)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return without_refused(
        str(signature.replace(parameters=plain, return_annotation=signature.empty))
    )


def without_refused(signature: str) -> str:
    """Return a signature without parameters of the type Never, which only have better errors."""
    return signature.replace(", **unknown", "").replace("data, *more,", "data, *,")


def process_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str, result: str
) -> tuple[str | None, str]:
    """Return the signature that the entry of a name shows."""
    return without_refused(signature) if signature else signature, result


def page_text(page: Page, sections: dict[str, list[Entry]]) -> str:
    """Return the text of a page: tables of its names, and then their documentation."""
    parts = [heading(page.title, "="), f".. py:currentmodule:: {page.modules.split()[-1]}"]
    parts += [page.summary]
    parts += [INTRODUCTIONS[page.title]] if page.title in INTRODUCTIONS else []
    for title, found in sections.items():
        parts += [f".. rubric:: {title}"] if title else []
        parts += [table([row(entry) for entry in found])]
    for title, found in sections.items():
        parts += [heading(title)] if title else []
        parts += [described(entry) for entry in found]
    return "\n\n".join(parts) + "\n"


def tensor_text(page: Page, sections: dict[str, list[Entry]]) -> str:
    """Return the page of `xgrad.Tensor`: its methods by kind, and its operators."""
    tensor, *others = sections[""]
    parts = [heading(page.title, "="), ".. py:currentmodule:: xgrad", page.summary]
    parts += [f".. autoclass:: {tensor.name}"]
    parts += [described(entry) for entry in others]
    for kind, names in TENSOR_METHODS.items():
        parts += [f".. rubric:: {kind}"]
        parts += [table([method_row(name) for name in names.split()])]
    parts += [heading("Operators and protocols")]
    parts += [table([(f"``{operator}``", said) for operator, said in OPERATORS.items()])]
    for kind, names in TENSOR_METHODS.items():
        parts += [heading(kind)]
        for name in names.split():
            is_property = isinstance(tensor_method(name), property)
            directive = "autoproperty" if is_property else "automethod"
            parts += [f".. {directive}:: xgrad.Tensor.{name}"]
    return "\n\n".join(parts) + "\n"


def method_row(name: str) -> tuple[str, str]:
    """Return the row of a method in the tables of the page of tensors."""
    return f":py:obj:`{name} <xgrad.Tensor.{name}>`", summary(
        inspect.getdoc(tensor_method(name)) or ""
    )


def index_text() -> str:
    """Return the page that leads to all others, by group."""
    parts = [heading("Reference", "=")]
    parts += [
        "Every public name, with its parameters, errors, an example, and a link to its source."
        " :ref:`genindex` lists all names by letter; the search finds them by name, such as"
        " ``Tensor.max``."
    ]
    for group, pages in GROUPS.items():
        parts += [heading(group)]
        rows = [(f":doc:`{page.title} <{page.name}>`", page.summary) for page in pages]
        parts += [table(rows + OTHER_PAGES.get(group, []))]
    names = [f"   {page.title} <{page.name}>" for pages in GROUPS.values() for page in pages]
    parts += ["\n".join([".. toctree::", "   :hidden:", "   :maxdepth: 1", "", *names])]
    return "\n\n".join(parts) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write the pages to docs/reference/.

    Unchanged files are left alone, so that builds are incremental.
    """
    folder = Path(app.srcdir) / "docs" / "reference"
    folder.mkdir(exist_ok=True)
    texts = {"index.rst": index_text()}
    for page in [page for pages in GROUPS.values() for page in pages]:
        text = tensor_text if page.title == "Tensor" else page_text
        texts[f"{page.name}.rst"] = text(page, entries()[page.title])
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
    """Complete the documentation of a name: derivatives, links to the standard, other names."""
    if name.startswith("xgrad.Tensor.") and what == "method":
        lines[:] = method_lines(name.rpartition(".")[2], value, lines)
        return
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


def method_lines(name: str, method: Any, lines: list[str]) -> list[str]:
    """Return the documentation of a method of tensors, which is short if another entry has it."""
    op = getattr(method, "function", None)
    if isinstance(op, Function):
        this = f", with this tensor as `{op.inputs[0]}`" if len(op.inputs) > 1 else ""
        return [summary("\n".join(lines)), "", f"The function `xgrad.{method.__name__}`{this}.", ""]
    if method.__name__ != name:
        return [summary("\n".join(lines)), "", f"Another name of `Tensor.{method.__name__}`.", ""]
    return lines


def unlink_parameters(app: Sphinx, doctree: nodes.document) -> None:
    """Leave names of parameters, and types of Python, without links.

    Sphinx looks for the end of a qualified name: `bool` would lead to `xgrad.bool`, and the
    parameter `data` of a tensor to its attribute.
    """
    for entry in doctree.findall(addnodes.desc):
        names = {str(p.children[0].astext()) for p in entry.findall(addnodes.desc_parameter)}
        for link in list(entry.findall(addnodes.pending_xref)):
            target = link["reftarget"]
            is_type = link["reftype"] == "class" and target.islower() and "." not in target
            if is_type or target in names:
                link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pages and the additions to docstrings."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-signature", process_signature)
    app.connect("doctree-read", unlink_parameters)
    app.connect("autodoc-process-docstring", add_derivative, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
