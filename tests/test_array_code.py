"""Raw arrays are written to in array code only, where the recorder of a step sees each write.

The sources are searched for other writes. `xgrad.backend.recording` has the rule. Captured steps
are also tested with known arrays read-only: `locked_memory`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import xgrad

ROOT = Path(xgrad.__file__).parent
#: Code that runs outside of a recorded step, or belongs to the recorder: layers below and beside
#: tensors.
LEFT_OUT = ("capture", "parity", "cli", "data")
FILES = sorted(
    path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in LEFT_OUT
)


def is_raw(x: ast.AST) -> bool:
    """Return whether an expression is an array that a tensor holds.

    Items and attributes of such an array count, too.
    """
    while isinstance(x, (ast.Subscript, ast.Attribute)):
        if isinstance(x, ast.Attribute) and x.attr == "_data":
            return True
        x = x.value
    return False


def functions(tree: ast.AST) -> Iterator[tuple[ast.AST, set[str]]]:
    """Yield a source and its functions, each with the names to which it assigns tensors' arrays."""
    for scope in ast.walk(tree):
        if isinstance(scope, (ast.Module, ast.FunctionDef)):
            assigned = [x for x in ast.walk(scope) if isinstance(x, ast.Assign) and is_raw(x.value)]
            yield (
                scope,
                {
                    target.id
                    for x in assigned
                    for target in x.targets
                    if isinstance(target, ast.Name)
                },
            )


def writes(source: str) -> Iterator[str]:
    """Yield the lines of a source that write to the array of a tensor.

    They write to an item, in place, or by ``out=``.
    """
    for scope, names in functions(ast.parse(source)):
        yield from writes_in(scope, names)


def writes_in(scope: ast.AST, names: set[str]) -> Iterator[str]:
    """Yield the lines of a function that write to the array of a tensor.

    `names` are the names of these arrays.
    """

    def is_array(x: ast.AST) -> bool:
        while isinstance(x, ast.Subscript):
            x = x.value
        return is_raw(x) or (isinstance(x, ast.Name) and x.id in names)

    for x in ast.walk(scope):
        targets: list[ast.AST] = []
        if isinstance(x, ast.Assign):
            targets = [target for target in x.targets if isinstance(target, ast.Subscript)]
        elif isinstance(x, ast.AugAssign):
            targets = [x.target]
        elif isinstance(x, ast.Call):
            targets = [keyword.value for keyword in x.keywords if keyword.arg == "out"]
        if any(map(is_array, targets)):
            yield f"{x.lineno}: {ast.unparse(x)}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrays_of_tensors_are_written_to_in_array_code_only(path: Path) -> None:
    assert list(writes(path.read_text())) == []


WRITES = [
    "x._data[...] = y",
    "x._data[0] += y",
    "x._data += y",
    "x._data.T[0] = y",
    "f(y, out=x._data)",
    "f(out=x._data[0])",
    "a = x._data\na[0] = y",
    "a = x._data\nf(y, out=a)",
    "def f():\n    total = x.views[i]._data\n    total += y",
]


@pytest.mark.parametrize("line", WRITES)
def test_write_is_found(line: str) -> None:
    assert list(writes(line))


@pytest.mark.parametrize(
    "line", ["x._data = y", "x[...] = y", "y = x._data[0]", "run_array_code(d, f, x._data, y)"]
)
def test_what_writes_to_no_array_is_not_found(line: str) -> None:
    assert not list(writes(line))
