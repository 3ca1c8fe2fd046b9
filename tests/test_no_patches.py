"""No attribute of a class or a module is replaced at run time anywhere in xgrad or its backends."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xgrad
from capture.twins import batch, training
from xgrad.backend.device import tracing
from xgrad.core.graph import Leaf
from xgrad.optim.flat import FlatParameters

ROOT = Path(xgrad.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *(ROOT.parent / "backends").rglob("*.py")])
GLOBALS = ast.parse("globals()").body[0].value  # type: ignore[attr-defined]
WRITERS = {"setattr", "delattr", "__setattr__", "__delattr__"}
CHANGES = {"update", "pop", "clear", "popitem", "__setitem__"}


def name_of(x: ast.AST) -> str:
    """Return the name or the attribute that an expression ends with."""
    return x.id if isinstance(x, ast.Name) else x.attr if isinstance(x, ast.Attribute) else ""


def attributes_of(x: ast.AST) -> ast.AST | None:
    """Return the object whose attributes an expression is: that of ``vars(x)`` or ``x.__dict__``."""
    if isinstance(x, ast.Call) and name_of(x.func) in ("vars", "globals"):
        return x.args[0] if x.args else GLOBALS
    return x.value if isinstance(x, ast.Attribute) and x.attr == "__dict__" else None


def written(tree: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """Return the objects of which code sets or deletes attributes, each with the line."""
    for x in ast.walk(tree):
        owner: ast.AST | None = None
        if isinstance(x, ast.Attribute) and not isinstance(x.ctx, ast.Load):
            owner = x.value
        elif isinstance(x, ast.Subscript) and not isinstance(x.ctx, ast.Load):
            owner = attributes_of(x.value)
        elif isinstance(x, ast.Call):
            if isinstance(x.func, ast.Attribute) and x.func.attr in CHANGES:
                owner = attributes_of(x.func.value)
            names = [name_of(part) for part in (x.func, *x.args)]
            i = next((i for i, name in enumerate(names) if name in WRITERS), None)
            if i is not None and len(x.args) > i and not ast.unparse(x).startswith("super()"):
                owner = x.args[i]  # also of partial(setattr, owner)
        elif isinstance(x, ast.Global):
            owner = GLOBALS
        if owner is not None:
            yield x.lineno, owner  # type: ignore[attr-defined]


class Names:
    """The names in a file that refer to classes and modules: those that it imports or defines as a class."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        nodes = list(ast.walk(tree))
        self.shared = {"cls", *(x.name for x in nodes if isinstance(x, ast.ClassDef))}
        for x in nodes:
            if isinstance(x, (ast.Import, ast.ImportFrom)):
                self.shared |= {alias.asname or alias.name.partition(".")[0] for alias in x.names}
            elif isinstance(x, (ast.Assign, ast.AnnAssign)) and name_of(getattr(x.value, "func", x)) == "import_module":
                self.shared |= set(map(name_of, x.targets if isinstance(x, ast.Assign) else [x.target]))

    def is_shared(self, x: ast.AST) -> bool:
        """Return whether an expression may refer to a class or a module."""
        if isinstance(x, ast.Attribute):
            return x.attr == "__class__" or self.is_shared(x.value)
        if isinstance(x, ast.Call):
            return name_of(x.func) in ("type", "import_module", "globals")
        return name_of(x) in self.shared or (isinstance(x, ast.Subscript) and ast.unparse(x.value) == "sys.modules")

    def installed(self) -> Iterator[tuple[int, str]]:
        """Return lines of functions ``_install...`` that the file calls as it is imported, with its own classes."""
        calls = [ast.unparse(x) for x in self.tree.body if isinstance(x, ast.Expr)]
        own = [x.name for x in self.tree.body if isinstance(x, ast.ClassDef)]
        for x in self.tree.body:
            if isinstance(x, ast.FunctionDef) and x.name.startswith("_install") and calls.count(f"{x.name}()") == 1:
                yield from [(line, name) for line in range(x.lineno, (x.end_lineno or 0) + 1) for name in own]


def patches(source: str) -> list[str]:
    """Return the lines of a source that replace attributes of classes and modules."""
    tree = ast.parse(source)
    names = Names(tree)
    installed = set(names.installed())
    return [
        f"{line}: {ast.unparse(owner)}"
        for line, owner in written(tree)
        if names.is_shared(owner) and (line, ast.unparse(owner)) not in installed
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_source_replaces_no_attribute_of_a_class_or_module(path: Path) -> None:
    assert patches(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        *("Own.f = 1", "del Own.f", "Own.f += 1", "xgrad.Tensor.f = 1", "Tensor.f, y = 1, 2", "for Own.f in x: pass"),
        *("setattr(Tensor, name, 1)", "setattr(xgrad.optim, name, 1)", "partial(setattr, Tensor)"),
        *("type.__setattr__(Own, name, 1)", "vars(xgrad)['f'] = 1", "vars(random).update(f=1)", "np.__dict__['f'] = 1"),
        *("type(x).f = 1", "x.__class__.f = 1", "import_module(name).f = 1", "sys.modules[name].f = 1"),
        "def f():\n    m = import_module(name)\n    m.f = 1",
        "def _install():\n    setattr(Tensor, name, 1)\n_install()",
        "def _install():\n    setattr(Own, name, 1)",
        "def f():\n    global y\n    y = 1",
        "globals()['y'] = 1",
    ],
)
def test_patch_is_found(line: str) -> None:
    imports = "import sys, xgrad\nimport numpy as np\nfrom xgrad import random\nfrom xgrad.tensor import Tensor\n"
    assert patches(f"{imports}class Own: pass\n{line}")


def contents() -> dict[str, Any]:
    """Return the attributes of classes and modules that a trace has to do with."""
    owners: list[Any] = [xgrad.Tensor, Leaf, xgrad.nn.Module, xgrad.random.Generator]
    owners += [FlatParameters, xgrad.optim.Optimizer]
    owners += [kind for owner in owners for kind in owner.__subclasses__() if kind.__module__.startswith("xgrad")]
    owners += [x for name, x in sys.modules.items() if name.partition(".")[0].startswith("xgrad")]
    return {f"{x.__name__}.{key}": value for x in owners for key, value in list(vars(x).items())}


def test_attributes_of_classes_and_modules_are_the_same_before_during_and_after_a_trace() -> None:
    _, _, first = training(xgrad.capture)
    for i in range(3):
        first(*batch(i))  # which imports what captures need
    _, _, train = training(lambda step: step)
    seen = []

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        loss = train(x, y)
        seen.append((tracing.get() is not None, contents()))
        return loss

    before = contents()
    for i in range(4):
        step(*batch(i))
    assert True in [traced for traced, _ in seen]
    for now in [found for _, found in seen] + [contents()]:
        assert now.keys() == before.keys()
        assert [key for key in now if now[key] is not before[key]] == []
