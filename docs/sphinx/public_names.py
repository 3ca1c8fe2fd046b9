"""What the reference shows of public names, read from the package and its sources."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


def is_value(x: Any) -> bool:
    """Return whether a public object is neither a function nor a class nor a module."""
    return not (isinstance(x, (type, ModuleType)) or inspect.isroutine(x))


def source_of(x: Any) -> str:
    """Return the module, within xgrad, that defines a function, a class, or the type of a value."""
    return str((type(x) if is_value(x) else x).__module__).removeprefix("xgrad.")


@cache
def _statements(module: str) -> list[ast.stmt]:
    file = import_module(module).__file__
    return ast.parse(Path(file or "").read_text(encoding="utf-8")).body


def _names(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns or imports."""
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def doc_of_value(module: str, name: str) -> str:
    """Return the string below the assignment of a value, in the module that assigns it."""
    for node, following in pairwise([*_statements(module), ast.Pass()]):
        if name in _names(node):
            if isinstance(node, ast.ImportFrom) and node.module:
                return doc_of_value(node.module, name)
            text = getattr(getattr(following, "value", None), "value", None)
            return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""


def doc_of(name: str, x: Any) -> str:
    """Return the documentation of a public object, by its qualified name."""
    module, _, last = name.rpartition(".")
    return doc_of_value(module, last) if is_value(x) else inspect.getdoc(x) or ""


def summary(doc: str) -> str:
    """Return the first paragraph of a docstring, in one line, without marks of references."""
    return re.sub(r" \[\d+\]_", "", " ".join(doc.partition("\n\n")[0].split()))


def function_of(member: Any) -> Any:
    """Return the function of a method or a property, and None for another attribute."""
    for attribute in ("fget", "func", "__func__"):
        member = getattr(member, attribute, member)
    return member if isinstance(member, FunctionType) else None


def members(kind: type, documented: set[type]) -> dict[str, tuple[Any, Any]]:
    """Return the methods and properties of a class, with what they override, or None.

    They are the ones that the class defines, or a base that is not among the documented classes.
    """
    found: dict[str, tuple[Any, Any]] = {}
    inherited = [base for base in kind.__mro__[1:] if base in documented]
    for base in kind.__mro__:
        if base in documented and base is not kind:
            break
        for name, member in vars(base).items() if base.__module__.startswith("xgrad") else ():
            if name[0] != "_" and name not in found and function_of(member):
                above = [inspect.getattr_static(other, name, None) for other in inherited]
                found[name] = member, next(filter(None, above), None)
    return found
