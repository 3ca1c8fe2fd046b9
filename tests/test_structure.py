"""The shape of the source: imports go one way, and an op with its rules is a few lines."""

from __future__ import annotations

import ast
import statistics
from graphlib import TopologicalSorter
from pathlib import Path

import xgrad

ROOT = Path(xgrad.__file__).parent


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.Module, known: set[str]) -> set[str]:
    """Return our own modules that are imported when the module is, not those for type checkers."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in known else node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known


def test_imports_go_one_way() -> None:
    trees = modules()
    graph = {name: imported(tree, set(trees)) - {name, "xgrad"} for name, tree in trees.items() if name != "xgrad"}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError and names the circle


def test_the_median_op_and_its_rules_take_at_most_three_lines() -> None:
    lengths = {}
    for path in (ROOT / "ops").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        helpers = {node.name: length(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and name_of(node.value) in ("elementwise", "reduction", "cumulative", "along_axes")
            ):
                lengths[ast.unparse(node.targets[0])] = (node.end_lineno or 0) - node.lineno + 1
            elif isinstance(node, ast.FunctionDef):
                for rules in node.decorator_list:
                    if isinstance(rules, ast.Call) and name_of(rules) == "derivative":
                        used = {n.id for n in ast.walk(rules) if isinstance(n, ast.Name)} & set(helpers)
                        own = (rules.end_lineno or 0) - rules.lineno + 1
                        lengths[node.name] = own + length(node) + sum(helpers[name] for name in used)
    assert len(lengths) > 70
    assert statistics.median(lengths.values()) <= 3


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def length(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its documentation and the empty lines before it."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return 1 + ((function.end_lineno or 0) - body[0].lineno + 1 if body else 0)
