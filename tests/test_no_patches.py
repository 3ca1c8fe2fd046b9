"""No attribute of a class or a module is replaced at run time in xgrad or its backends.

The sources are searched, and attributes are compared before, during and after a trace.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import xgrad
from capture.twins import batch, training
from xgrad.backend.recording import recording
from xgrad.core.graph import Leaf
from xgrad.optim.flat import FlatParameters

ROOT = Path(xgrad.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *(ROOT.parent / "backends").rglob("*.py")])
GLOBALS = ast.parse("globals()").body[0].value  # type: ignore[attr-defined]
WRITERS = {"setattr", "delattr", "__setattr__", "__delattr__"}
CHANGES = {"update", "pop", "clear", "popitem", "__setitem__"}


def name_of(x: ast.AST) -> str:
    """Return the name, or the last attribute, of an expression."""
    return x.id if isinstance(x, ast.Name) else x.attr if isinstance(x, ast.Attribute) else ""


def attributes_of(x: ast.AST) -> ast.AST | None:
    """Return `x` for the expressions ``vars(x)`` and ``x.__dict__``."""
    if isinstance(x, ast.Call) and name_of(x.func) in ("vars", "globals"):
        return x.args[0] if x.args else GLOBALS
    return x.value if isinstance(x, ast.Attribute) and x.attr == "__dict__" else None


def writes(tree: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """Yield the lines that set or delete attributes, and the objects of these."""
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


def shared_names(tree: ast.Module) -> set[str]:
    """Return the names of classes and modules that a file imports or defines as a class."""
    names = {"cls"}
    for x in ast.walk(tree):
        if isinstance(x, ast.ClassDef):
            names.add(x.name)
        elif isinstance(x, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in x.names}
        elif (
            isinstance(x, (ast.Assign, ast.AnnAssign))
            and name_of(getattr(x.value, "func", x)) == "import_module"
        ):
            names |= set(map(name_of, x.targets if isinstance(x, ast.Assign) else [x.target]))
    return names


def is_shared(x: ast.AST, names: set[str]) -> bool:
    """Return whether an expression may be a class or a module."""
    if isinstance(x, ast.Attribute):
        return x.attr == "__class__" or is_shared(x.value, names)
    if isinstance(x, ast.Call):
        return name_of(x.func) in ("type", "import_module", "globals")
    return name_of(x) in names or (
        isinstance(x, ast.Subscript) and ast.unparse(x.value) == "sys.modules"
    )


def is_installed(tree: ast.Module, line: int, owner: str) -> bool:
    """Return whether a line sets an attribute of its module's own class, once at import.

    It must be in a function ``_install...`` that the module calls once.
    """
    calls = [ast.unparse(x) for x in tree.body if isinstance(x, ast.Expr)]
    return any(isinstance(x, ast.ClassDef) and x.name == owner for x in tree.body) and any(
        isinstance(x, ast.FunctionDef)
        and x.name.startswith("_install")
        and calls.count(f"{x.name}()") == 1
        and x.lineno <= line <= (x.end_lineno or 0)
        for x in tree.body
    )


def patches(source: str) -> list[str]:
    """Return the lines of a source that replace attributes of classes and modules."""
    tree = ast.parse(source)
    names = shared_names(tree)
    return [
        f"{line}: {ast.unparse(owner)}"
        for line, owner in writes(tree)
        if is_shared(owner, names) and not is_installed(tree, line, ast.unparse(owner))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_source_replaces_no_attribute_of_a_class_or_module(path: Path) -> None:
    assert patches(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        *(
            "Own.f = 1",
            "del Own.f",
            "Own.f += 1",
            "xgrad.Tensor.f = 1",
            "Tensor.f, y = 1, 2",
            "for Own.f in x: pass",
        ),
        *("setattr(Tensor, name, 1)", "setattr(xgrad.optim, name, 1)", "partial(setattr, Tensor)"),
        *(
            "type.__setattr__(Own, name, 1)",
            "vars(xgrad)['f'] = 1",
            "vars(random).update(f=1)",
            "np.__dict__['f'] = 1",
        ),
        *(
            "type(x).f = 1",
            "x.__class__.f = 1",
            "import_module(name).f = 1",
            "sys.modules[name].f = 1",
        ),
        "def f():\n    m = import_module(name)\n    m.f = 1",
        "def _install():\n    setattr(Tensor, name, 1)\n_install()",
        "def _install():\n    setattr(Own, name, 1)",
        "def f():\n    global y\n    y = 1",
        "globals()['y'] = 1",
    ],
)
def test_patch_is_found(line: str) -> None:
    imports = (
        "import sys, xgrad\nimport numpy as np\nfrom xgrad import random\nfrom xgrad.tensor import"
        " Tensor\n"
    )
    assert patches(f"{imports}class Own: pass\n{line}")


def contents() -> dict[str, Any]:
    """Return the attributes of classes and modules that a trace uses."""
    owners: list[Any] = [xgrad.Tensor, Leaf, xgrad.nn.Module, xgrad.random.Generator]
    owners += [FlatParameters, xgrad.optim.Optimizer]
    owners += [
        kind
        for owner in owners
        for kind in owner.__subclasses__()
        if kind.__module__.startswith("xgrad")
    ]
    owners += [x for name, x in sys.modules.items() if name.partition(".")[0].startswith("xgrad")]
    return {f"{x.__name__}.{key}": value for x in owners for key, value in list(vars(x).items())}


def test_attributes_of_classes_and_modules_are_the_same_before_during_and_after_a_trace() -> None:
    _, _, first = training(xgrad.capture)
    for i in range(3):
        first(*batch(i))  # imports the modules of captures
    _, _, train = training(lambda step: step)
    before = contents()

    # a capture searches no classes for state: all attributes of the library would take it seconds
    class Seen:
        traced: ClassVar[list[bool]] = []

        @classmethod
        def same_attributes(cls) -> None:
            cls.traced.append(recording.get() is not None)
            now = contents()
            assert now.keys() == before.keys()
            assert [key for key in now if now[key] is not before[key]] == []

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        loss = train(x, y)
        Seen.same_attributes()
        return loss

    for i in range(4):
        step(*batch(i))
    Seen.same_attributes()
    assert Seen.traced.count(True) == 1


COUNTING = {"getrefcount", "references", "is_exclusive", "gc"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT.parent)))
def test_no_code_is_patched_and_no_reference_is_counted_for_parameters(path: Path) -> None:
    names = {name_of(x) for x in ast.walk(ast.parse(path.read_text("utf-8")))}
    names |= {
        x.name for x in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(x, ast.alias)
    }
    assert not names & {"co_code", "opmap", "opcode"}
    if path.parent in (ROOT / "optim", ROOT / "nn", ROOT / "training"):
        assert not names & COUNTING


# Constructs that no source has

SOURCES = {path: path.read_text() for path in FILES}


@pytest.mark.parametrize("words", ["gc.get_referrers", "def __class__", "co_code"])
def test_no_source_has(words: str) -> None:
    assert [str(path) for path, source in SOURCES.items() if words in source] == []


def test_devices_are_equal_by_identity() -> None:
    kinds = [xgrad.Device]
    for kind in kinds:  # a list that grows in the loop
        kinds += kind.__subclasses__()
        assert kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__
    assert len(kinds) > 1


def test_operators_of_array_types_are_defined_by_one_table() -> None:
    names = ["truediv", "floordiv", "rshift"]
    tables = [
        path.name
        for path, source in SOURCES.items()
        if all(f'"{name}"' in source for name in names)
    ]
    # of Python's numbers: their signs; of tensors: their ops, and PyTorch's in `compat.torch`
    assert sorted(tables) == ["methods.py", "methods.py", "numbers.py", "wrapping.py"]
    lists = [path.name for path, source in SOURCES.items() if "truediv floordiv" in source]
    assert lists == ["numbers.py"]
