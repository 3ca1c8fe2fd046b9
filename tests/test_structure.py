"""The structure of the source: layers of imports, and forward rules of native ops.

Both are read from the syntax trees of the sources.
"""

from __future__ import annotations

import ast
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
        trees[".".join(parts).removesuffix(".__init__")] = ast.parse(
            path.read_text(encoding="utf-8")
        )
    return trees


def imported(tree: ast.Module, known: set[str]) -> set[str]:
    """Return the modules of xgrad that a module imports.

    Imports within functions, for type checkers and by name count, too.
    """
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


#: Layers of folders and files of `xgrad/`. Each imports the layers before it, and its own without a
#: cycle.
LAYERS = [
    "support",
    "backend",
    "core",
    "random",
    "ops",
    "diagnostics",
    "autograd fft linalg namespace_info onnx_shapes special serialization",
    "nn",
    "optim",
    "amp data distributed distributions inspection integration onnx transforms",
    "capture testing",
    "training",
    "__init__ einops numpy_counterparts numpy_protocol standard_2024_12",
    "compat",
    "parity",
    "cli __main__",
]
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}


def rank(module: str) -> int:
    return RANKS[module.split(".")[1] if "." in module else "__init__"]


@cache
def graph() -> dict[str, set[str]]:
    trees = modules()
    return {name: imported(tree, set(trees)) - {name} for name, tree in trees.items()}


def test_imports_go_one_way() -> None:
    upwards = {
        f"{name} -> {other}"
        for name, others in graph().items()
        for other in others
        if rank(other) > rank(name)
    }
    assert not upwards
    # raises CycleError, which names the cycle
    assert list(TopologicalSorter(graph()).static_order())


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


def native_ops() -> dict[str, ast.FunctionDef]:
    """Return the forward rules of ops for which backends call a function of their own."""
    rules = {}
    for name, tree in modules().items():
        for node in tree.body:
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                call = ast.unparse(decorator)
                if name.startswith("xgrad.ops.") and (
                    call.startswith("elementwise(") or "native=True" in call
                ):
                    rules[node.name] = node
    return rules


def test_forward_rule_of_a_native_op_is_the_function_of_its_name() -> None:
    """Backends call that function and never the rule, so nothing else may stand there."""
    rules = native_ops()
    assert len(rules) > 70
    for name, rule in rules.items():
        positional = [arg.arg for arg in rule.args.posonlyargs[1:]]
        keywords = [f"{arg.arg}={arg.arg}" for arg in rule.args.kwonlyargs]
        (body,) = rule.body[1:]  # after the docstring
        assert ast.unparse(body) == f"return xp.{name}({', '.join([*positional, *keywords])})"
