"""Formulas in docstrings and pages: each op with its function and its gradients, in TeX."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xgrad
import xgrad.fft
import xgrad.linalg
import xgrad.ops
import xgrad.special
from xgrad import distributions, nn, optim
from xgrad.core.function import Function

ROOT = Path(__file__).parents[1]

#: The public functions that document private ops, where these differ in more than an underscore.
DOCUMENTED_BY = {
    "_attention": "scaled_dot_product_attention",
    "_bce": "binary_cross_entropy",
    "_gelu_tanh": "gelu",
    "_huber": "huber_loss",
    "_mse": "mse_loss",
    "_normalize": "layer_norm",
    "_normalize_batch": "batch_norm",
}

BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*)?)*)", re.MULTILINE)
ROLE = re.compile(r":math:`([^`]+)`")
GRADIENT = re.compile(r"^ *- Gradient for `(\w+)`:\s+(?::math:`|none)", re.MULTILINE)


def declared_ops() -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each op that has derivative rules, the op, and what documents it."""
    seen: set[int] = set()
    for found in pkgutil.walk_packages(xgrad.ops.__path__, "xgrad.ops."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            function = getattr(value, "function", None)
            if (
                isinstance(function, Function)
                and any(function.rules)
                and value.__module__ == found.name
                and id(value) not in seen
            ):
                seen.add(id(value))
                public = DOCUMENTED_BY.get(name, name.lstrip("_"))
                place = f"{found.name.removeprefix('xgrad.')}.{name}"
                yield place, value, getattr(module, public, value)


def without_gradients(op: Any, documented: Any) -> str:
    """Return what the docstring of an op lacks."""
    text = inspect.getdoc(documented) or ""
    if not BLOCK.search(text):
        return "the function"
    given = GRADIENT.findall(text)
    function = op.function
    if op is documented and not function.joint_backward:
        expected = [n for n, rule in zip(function.inputs, function.rules, strict=True) if rule]
    else:
        # The public function may have other inputs than the op.
        expected = [n for n in given if n in inspect.signature(documented).parameters] or ["one"]
    return "" if given == expected else f"gradients for {expected}, not {given}"


OPS = list(declared_ops())


@pytest.mark.parametrize(("op", "documented"), [row[1:] for row in OPS], ids=[r[0] for r in OPS])
def test_docstring_of_op_has_its_function_and_gradients(op: Any, documented: Any) -> None:
    assert without_gradients(op, documented) == ""


def test_modules_have_the_formulas_of_their_functions() -> None:
    """A module shows the formula of the function that it says to see."""
    compared = 0
    for name in nn.__all__:
        module = getattr(nn, name)
        text = inspect.getdoc(module) or ""
        function = getattr(module, "function", None)
        if (named := re.search(r"`functional\.(\w+)`", text)) and function is None:
            function = getattr(nn.functional, named[1])
        if function is not None and (formula := BLOCK.search(text)):
            expected = BLOCK.search(inspect.getdoc(function) or "")
            assert expected is not None and formula[0].split() == expected[0].split(), name
            compared += 1
    assert compared > 50


#: Public functions without a derivative, or whose result is no tensor.
WITHOUT_FORMULAS = set(
    """
    __array_namespace_info__ all allclose any argmax argmin argsort bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_shapes can_cast capture
    count_nonzero devices empty empty_like equal eye fftfreq finfo from_dlpack
    get_default_dtype get_num_threads graph greater greater_equal iinfo is_grad_enabled isclose
    isdtype isfinite isin isinf isnan less less_equal load logical_and logical_not logical_or
    logical_xor manual_seed matrix_rank memory_held nextafter nonzero not_equal one_hot ones
    ones_like result_type rfftfreq save searchsorted set_default_dtype set_num_threads set_tf32
    signbit tril_indices triu_indices vmap zeros zeros_like
    """.split()
)


def test_public_functions_have_formulas() -> None:
    """A function that calls ops has formulas, too, not the ops alone."""
    lacking = {
        name
        for namespace in (xgrad, xgrad.linalg, xgrad.fft, xgrad.special, nn.functional)
        for name in namespace.__all__
        if inspect.isroutine(value := getattr(namespace, name))
        and not BLOCK.search(inspect.getdoc(value) or "")
    }
    assert lacking == WITHOUT_FORMULAS


@pytest.mark.parametrize(
    ("namespace", "base"),
    [
        (optim, optim.Optimizer),
        (optim.lr_scheduler, optim.lr_scheduler.LRScheduler),
        (distributions, distributions.Distribution),
        (distributions.transforms, distributions.transforms.Transform),
    ],
    ids=["optimizers", "schedules", "distributions", "transforms"],
)
def test_subclasses_have_formulas(namespace: Any, base: type) -> None:
    lacking = {
        name
        for name in namespace.__all__
        if isinstance(value := getattr(namespace, name), type)
        and issubclass(value, base)
        and not BLOCK.search(inspect.getdoc(value) or "")
    }
    # two of which call other schedules or transforms
    assert lacking <= {base.__name__, "ChainedScheduler", "ComposeTransform"}


def formulas() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each formula in docstrings and pages."""
    for path in sorted([*ROOT.glob("xgrad/**/*.py"), *ROOT.glob("backends/**/*.py")]):
        source = path.read_text(encoding="utf-8")
        if "math:" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                text = ast.get_docstring(node) or ""
                place = f"{path.relative_to(ROOT)}: {getattr(node, 'name', '')}"
                for formula in [block[1] for block in BLOCK.findall(text)] + ROLE.findall(text):
                    yield place, formula.strip()
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]):
        text = re.sub(r"^(```+)(?!\{math).*?^\1", "", path.read_text("utf-8"), flags=re.M | re.S)
        blocks = re.findall(r"\$\$(.+?)\$\$|^```\{math\}\n(.*?)^```", text, re.M | re.S)
        inline = re.findall(r"\$([^$]+)\$", re.sub(r"\$\$.+?\$\$|`[^`]*`", "", text, flags=re.S))
        for formula in ["".join(block) for block in blocks] + inline:
            yield str(path.relative_to(ROOT)), formula.strip()


@pytest.fixture
def mathml(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """The conversion of formulas of the site."""
    pytest.importorskip("latex2mathml", reason="pip install latex2mathml")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "sphinx"))
    yield importlib.import_module("tex").mathml
    sys.modules.pop("tex")


def test_formulas_of_docstrings_and_pages_are_valid(mathml: Callable[[str], str]) -> None:
    errors = []
    for place, formula in formulas():
        try:
            mathml(formula)
        except ValueError as error:
            errors.append(f"{place}: {formula}: {error}")
    assert errors == []


@pytest.mark.parametrize(
    "formula", [r"\frac{1}{x", r"\nosuch(x)", "\bar y", r"\begin{aligned} a &= b \end{aligned}"]
)
def test_invalid_formula_is_an_error(formula: str, mathml: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match=r"brace|unknown|control"):
        mathml(formula)
