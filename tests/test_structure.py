"""The structure of the source: layers of imports, and the length of ops."""

from __future__ import annotations

import ast
import statistics
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import xgrad

ROOT = Path(xgrad.__file__).parent


@cache
def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        trees[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def imported(tree: ast.Module, known: set[str]) -> set[str]:
    """Return the modules of xgrad that a module imports, also within functions, for type checkers, and by name."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in known else node.module for name in full}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return names & known


#: Layers of folders and files of `xgrad/`. Each imports the layers before it, and its own without a cycle.
LAYERS = [
    "support",
    "backend",
    "core",
    "random",
    "ops",
    "autograd fft linalg special serialization",
    "nn",
    "optim",
    "amp data distributed inspection onnx transforms",
    "capture testing",
    "training",
    "__init__ standard_2024_12",
    "parity",
    "cli __main__",
]
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}
#: The one module that imports a layer after its own.
SEAM = "xgrad.core.namespace"


def rank(module: str) -> int:
    return RANKS[module.split(".")[1] if "." in module else "__init__"]


@cache
def graph() -> dict[str, set[str]]:
    trees = modules()
    return {name: imported(tree, set(trees)) - {name} for name, tree in trees.items() if name != SEAM}


def test_imports_go_one_way() -> None:
    upwards = {f"{name} -> {other}" for name, others in graph().items() for other in others if rank(other) > rank(name)}
    assert not upwards
    assert list(TopologicalSorter(graph()).static_order())  # raises CycleError, which names the cycle


def test_every_folder_and_file_has_a_layer() -> None:
    assert {name.split(".")[1] for name in modules() if "." in name} | {"__init__"} == set(RANKS)


def test_imports_are_found_at_any_depth_and_by_name() -> None:
    sources = (
        "from xgrad import ops",
        "import xgrad.ops",
        "def f():\n    from xgrad.ops import add",
        "if TYPE_CHECKING:\n    import xgrad.ops",
        "f = lambda: import_module('xgrad.ops')",
    )
    for source in sources:
        assert imported(ast.parse(source), {"xgrad.ops", "xgrad.nn"}) == {"xgrad.ops"}, source


def test_median_op_with_its_rules_takes_at_most_three_lines() -> None:
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
    assert statistics.median(lengths.values()) <= 3, "write a new op more briefly, or shorten others that take 4 lines"


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def length(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its documentation and the empty lines before it."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return 1 + ((function.end_lineno or 0) - body[0].lineno + 1 if body else 0)
