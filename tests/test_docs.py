"""Public names: documentation with examples, signatures, and the namespace.

They are compared with the sources, versions in files with each other.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import tomllib
import types
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import xgrad

ROOT = Path(__file__).parents[1]
MODULES = [
    xgrad,
    xgrad.autograd,
    xgrad.data,
    xgrad.data.transforms,
    xgrad.distributed,
    xgrad.distributions,
    xgrad.distributions.constraints,
    xgrad.distributions.transforms,
    xgrad.fft,
    xgrad.linalg,
    xgrad.nn,
    xgrad.nn.functional,
    xgrad.nn.init,
    xgrad.nn.utils,
    xgrad.nn.utils.parametrizations,
    xgrad.nn.utils.parametrize,
    xgrad.nn.utils.rnn,
    xgrad.onnx,
    xgrad.ops,
    xgrad.optim,
    xgrad.optim.swa_utils,
    xgrad.random,
    xgrad.special,
    xgrad.testing,
    xgrad.training,
]


def public() -> dict[str, Any]:
    """Return the public functions and classes by qualified name."""
    values: dict[str, Any] = {}
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if (
                not name.startswith("_")
                and callable(value)
                and not isinstance(value, types.ModuleType)
            ):
                values.setdefault(f"{value.__module__}.{name}", value)
    return values


@pytest.mark.parametrize("name", sorted(public()))
def test_public_names_are_documented_with_an_example(name: str) -> None:
    value = public()[name]
    doc = inspect.getdoc(value) or ""
    is_error = isinstance(value, type) and issubclass(value, Exception)
    assert ">>> " in doc or is_error, f"{name} has no example"
    assert doc.splitlines()[0].endswith("."), f"{name}: the summary is no sentence"


def test_documented_parameters_are_those_of_the_signature() -> None:
    checked = 0
    for name, value in public().items():
        _, _, section = (inspect.getdoc(value) or "").partition("Parameters\n----------\n")
        lines = section.partition("\n\n")[0].splitlines()
        documented = [
            n.strip("*")
            for line in lines
            if line[0] != " "
            for n in line.partition(" : ")[0].split(", ")
        ]
        if inspect.isroutine(value) and documented:
            assert sorted(documented) == sorted(inspect.signature(value).parameters), name
            checked += 1
    assert checked > 300


@cache
def source_docstrings(path: Path) -> dict[str, str]:
    """Return the docstrings of functions and classes at the top of a file, by name."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    nodes = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return {node.name: ast.get_docstring(node) or "" for node in nodes}


@pytest.mark.parametrize("name", sorted(public()))
def test_help_shows_the_docstring_of_the_source(name: str) -> None:
    """Editors and static tools read the source, so nothing may complete or replace a docstring."""
    value = public()[name]
    written = source_docstrings(Path(sys.modules[value.__module__].__file__ or ""))
    # the forward rule of an op
    own = value.__name__ if value.__name__ in written else f"_{value.__name__}"
    assert inspect.getdoc(value) == written[own]


def test_ops_have_names_and_signatures_of_functions() -> None:
    """help(), IDEs and the test suite of the standard use them."""
    assert (xgrad.exp.__name__, str(inspect.signature(xgrad.exp))) == ("exp", "(x, /)")
    assert str(inspect.signature(xgrad.sum)) == "(x, /, *, axis=None, dtype=None, keepdims=False)"
    assert list(inspect.signature(xgrad.clip).parameters) == ["x", "min", "max"]
    assert inspect.signature(xgrad.clip).parameters["x"].kind == inspect.Parameter.POSITIONAL_ONLY
    assert inspect.isroutine(xgrad.add)


def test_version_is_the_same_in_all_files() -> None:
    files = {
        name: (ROOT / name).read_text()
        for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    }
    assert tomllib.loads(files["pyproject.toml"])["project"]["version"] == xgrad.__version__
    assert f"\nversion: {xgrad.__version__}\n" in files["CITATION.cff"]
    assert re.findall(r"(?m)^## (.*)$", files["CHANGELOG.md"])[0] == xgrad.__version__


def prose(text: str) -> list[str]:
    """Return the lines of a Markdown file outside of code blocks and tables."""
    lines, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark is not None and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        elif not fence and not line.lstrip().startswith(("|", "    ", ">", "<")):
            lines.append(line)
    return lines


def test_lines_of_pages_and_c_sources_have_at_most_100_columns() -> None:
    """Ruff checks Python; tables and the output of programs are as wide as they are."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "backends").glob("*.md")]
    sources = (ROOT / "backends").rglob("*.[ch]")
    lines = {path: prose(path.read_text(encoding="utf-8")) for path in pages}
    lines |= {path: path.read_text(encoding="utf-8").splitlines() for path in sources}
    assert len(lines) > 60
    wide = [f"{path.name}: {line}" for path in lines for line in lines[path] if len(line) > 100]
    assert not wide


def code_blocks() -> list[tuple[str, str, str]]:
    """Return the file, the language and the text of each block of code on the pages."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages += [ROOT / "backends" / "README.md", ROOT / "benchmarks" / "README.md"]
    blocks = []
    for page in pages:
        fence = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
        for _, language, text in fence.findall(page.read_text(encoding="utf-8")):
            if not language.startswith("{"):  # a directive
                blocks.append((page.name, language, text))
    assert len(blocks) > 150
    return blocks


def test_code_on_pages_has_at_most_88_columns() -> None:
    """A laptop shows as many beside the contents; outputs are wrapped, too."""
    wide = [
        f"{page}: {line}"
        for page, _, text in code_blocks()
        for line in text.splitlines()
        if len(line) > 88
    ]
    assert not wide


def test_comments_stand_above_commands() -> None:
    """Beside them, they are copied with the command, and cut off."""
    beside = [
        f"{page}: {line}"
        for page, language, text in code_blocks()
        for line in text.splitlines()
        if language == "sh" and re.search(r"\S\s+# ", line)
    ]
    assert not beside


def test_outputs_on_pages_are_shown_in_full() -> None:
    """The output below a program is compared in full; no other block may abridge one, either."""
    abridged = re.compile(r"\d\.\.\.|^\.\.\.|\.\.\.$|\.\.\. ", re.MULTILINE)
    found = [
        f"{page}: {text}"
        for page, language, text in code_blocks()
        if language.startswith("text") and abridged.search(text)
    ]
    assert not found


def test_versions_of_python_are_the_same_in_all_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [
        classifier.rpartition(" ")[2]
        for classifier in project["classifiers"]
        if "Python :: 3." in classifier
    ]
    assert project["requires-python"] == f">={versions[0]}"
    assert f"python: {json.dumps(versions)}" in (ROOT / ".github/workflows/ci.yml").read_text()
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"Python {', '.join(versions[:-1])} and {versions[-1]} with" in readme


def test_external_links_of_documents_are_well_formed() -> None:
    """Links to other sites are checked by their form, without a network.

    tests/test_links.py checks links within the documents.
    """
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in documents)
    links = set(re.findall(r"\]\((http[^)]*)\)", text))
    assert len(links) > 2 and all(
        re.fullmatch(r"https://[\w.-]+\.\w+(/[\w./#~-]*)?", link) for link in links
    ), links


def test_sources_that_documents_include_are_there() -> None:
    """Pages include parts of sources by their first and last lines, which must exist there."""
    included = re.compile(r"```\{literalinclude\} /(\S+)\n(.*?)```", re.DOTALL)
    checked = 0
    for page in (ROOT / "docs").rglob("*.md"):
        for path, options in included.findall(page.read_text(encoding="utf-8")):
            source = (ROOT / path).read_text(encoding="utf-8")
            where = f"{page.relative_to(ROOT)}, {path}"
            for name, text in re.findall(r"^:([\w-]+): (.*)$", options, re.MULTILINE):
                if name in ("start-at", "end-before"):
                    text = text.strip('"')
                    _, found, source = source.partition(text)
                    assert found, f"{where}: no line has {text!r} ({name})"
                elif name == "pyobject":
                    function = text.rpartition(".")[2]
                    pattern = rf"^ *(def|class) {function}\b"
                    assert re.search(pattern, source, re.MULTILINE), f"{where}: no {text}"
                else:
                    assert name == "dedent", f"{where}: a test for {name} is missing"
            checked += 1
    assert checked > 10


def test_top_level_names_exist() -> None:
    names = """Tensor asarray Function Device devices default_device no_grad enable_grad
        is_grad_enabled save load grad value_and_grad vjp jvp jacobian hessian hvp capture graph
        manual_seed nn optim data fft linalg random special testing autograd"""
    for name in names.split():
        assert hasattr(xgrad, name)
        assert name in xgrad.__all__


def test_dir_of_the_namespace_lists_only_documented_names() -> None:
    names = dir(xgrad)
    assert names == sorted(xgrad.__all__) and not {"plan", "shortcut", "scipy_kernels"} & set(names)
    for name in names:
        assert hasattr(xgrad, name) and (
            not callable(value := getattr(xgrad, name)) or inspect.getdoc(value)
        ), name


def test_tensor_and_device_are_functions_despite_modules_of_these_names() -> None:
    from xgrad.backend.device import Device
    from xgrad.core.tensor import Tensor

    x = xgrad.tensor([1.0], dtype=xgrad.float64, device=xgrad.device("cpu"), requires_grad=True)
    assert isinstance(x, Tensor) and x.requires_grad and x.dtype == xgrad.float64
    assert xgrad.device("cpu") is Device("cpu")
