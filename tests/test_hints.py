"""Errors for names, keywords and calls of PyTorch and NumPy: each names the replacement in xgrad."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import xgrad
from xgrad.support.hints import REPLACEMENTS

HINTS = [(owner, name) for owner, names in REPLACEMENTS.items() for name in names]


def message(owner: str, name: str) -> str:
    """Return the message for a name that is missing."""
    place = xgrad.ones(1) if owner == "Tensor" else import_module(owner)
    with pytest.raises(AttributeError) as caught:
        getattr(place, name)
    return str(caught.value)


@pytest.mark.parametrize(("owner", "name"), HINTS)
def test_hint_names_what_there_is(owner: str, name: str) -> None:
    hint = REPLACEMENTS[owner][name]
    assert message(owner, name).endswith(f"has no attribute {name!r}: write {hint}")
    for path in re.findall(r"\bxgrad((?:\.\w+)+)", hint):
        found: Any = xgrad
        for part in path[1:].split("."):
            found = getattr(found, part)
    for method in re.findall(r"\bx\.(\w+)", hint):
        assert hasattr(xgrad.Tensor, method)


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [
        ("xgrad", "cat", "module 'xgrad' has no attribute 'cat': write xgrad.concat"),
        ("xgrad", "randn", ": write xgrad.random.randn"),
        ("xgrad", "erfinv", ": write xgrad.special.erfinv"),
        ("xgrad", "softmax", ": write xgrad.nn.functional.softmax"),
        ("xgrad", "Adam", ": write xgrad.optim.Adam"),
        ("xgrad", "DataLoader", ": write xgrad.data.DataLoader"),
        ("xgrad", "masked_fill", ": write x.masked_fill(...) of a tensor x"),
        ("xgrad", "argsrt", ": the nearest is xgrad.argsort"),
        ("xgrad", "quantum", "has no attribute 'quantum'"),
        ("Tensor", "det", "'Tensor' object has no attribute 'det': write xgrad.linalg.det(x)"),
        ("xgrad.nn", "Adam", ": write xgrad.optim.Adam"),
        ("xgrad.nn", "Liner", ": the nearest is xgrad.nn.Linear"),
        ("xgrad.optim", "Adm", ": the nearest is xgrad.optim.Adam"),
        ("xgrad.autograd", "no_grad", ": write xgrad.no_grad"),
        ("xgrad.autograd", "Function", ": write xgrad.Function"),
    ],
)
def test_missing_names_name_what_to_write(owner: str, name: str, expected: str) -> None:
    assert message(owner, name).endswith(expected)


def test_python_names_the_nearest_attribute_of_a_tensor() -> None:
    code = "import xgrad; xgrad.ones(1).reqires_grad"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.endswith("has no attribute 'reqires_grad'. Did you mean: 'requires_grad'?\n")


def test_hinted_names_are_no_attributes() -> None:
    x = xgrad.nn.Parameter([1.0])
    assert not hasattr(x, "sort") and "sort" not in dir(x) and "argsort" in dir(x)


X = xgrad.ones((2, 3))
CALLS: list[tuple[Callable[..., Any], str]] = [
    (lambda: X.sum(dim=0), "write axis= for dim="),
    (lambda: X.mean(dim=1, keepdim=True), "write axis= for dim=, keepdims= for keepdim="),
    (lambda: X.argmax(dim=1), "write axis= for dim="),
    (lambda: X.std(unbiased=False), "write correction= for unbiased="),
    (lambda: xgrad.sum(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.max(X, keepdim=True), "write keepdims= for keepdim="),
    (lambda: xgrad.flip(X, dims=0), "write axis= for dims="),
    (lambda: xgrad.squeeze(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.concat([X, X], dim=0), "write axis= for dim="),
    (lambda: xgrad.stack([X, X], dim=0), "write axis= for dim="),
    (lambda: xgrad.unstack(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.diff(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.nn.functional.softmax(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.special.logsumexp(X, dim=0), "write axis= for dim="),
    (lambda: xgrad.linalg.matrix_norm(X, keepdim=True), "write keepdims= for keepdim="),
    (lambda: xgrad.zeros(3, 4), r"write zeros\(\(3, 4\)\) for zeros\(3, 4\)"),
    (lambda: xgrad.ones(3, 4, dtype="float64"), r"write ones\(\(3, 4\)\) for ones\(3, 4\)"),
    (lambda: xgrad.empty(size=(3, 4)), "write shape= for size="),
    (lambda: xgrad.random.randn(3, 4), r"write randn\(\(3, 4\)\) for randn\(3, 4\)"),
    (lambda: xgrad.random.randint(0, 3, size=2), "write shape= for size="),
]


@pytest.mark.parametrize(("call", "expected"), CALLS)
def test_wrong_arguments_name_what_to_write(call: Callable[[], Any], expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        call()


def test_errors_within_a_function_are_left_alone() -> None:
    with pytest.raises(TypeError, match="concat: expected a tensor") as caught:
        xgrad.concat(["a"])  # type: ignore[list-item]
    assert "write" not in str(caught.value)
    with pytest.raises(TypeError, match=r"zeros\(\) got an unexpected keyword argument 'foo'$"):
        xgrad.zeros(3, foo=1)  # type: ignore[call-arg]


def test_functions_in_the_form_of_pytorch_show_the_form_of_xgrad() -> None:
    with pytest.raises(
        TypeError, match=r"forward\(ctx, \.\.\.\): write\n.*\n.*\nand call an instance, f = Double\(\); f\(x\)"
    ):

        class Double(xgrad.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return 2 * x

    class Square(xgrad.Function):
        @staticmethod
        def forward(xp: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(xp: Any, g: Any, x: Any) -> Any:
            return 2 * g * x

    assert Square()(X).shape == X.shape
    with pytest.raises(
        TypeError, match=r"(?s)Square: .* got \.apply: write\n    def forward\(xp, x\): .*f = Square\(\); f\(x\)"
    ):
        Square.apply(X)


def square(x: Any) -> Any:
    return (x * x).sum()


FORMS: list[tuple[Callable[..., Any], str]] = [
    (lambda: xgrad.jacobian(square, X), r"jacobian: expected argnums of int, got Tensor: write xgrad.jacobian(f)(x)"),
    (lambda: xgrad.hessian(square, (X, X)), "hessian: expected argnums of int, got tuple: write xgrad.hessian(f)(x)"),  # type: ignore[arg-type]
    (lambda: xgrad.grad(square, X), "grad: expected argnums of int, got Tensor: write xgrad.grad(f)(x)"),
    (
        lambda: xgrad.grad(square(X), X),
        "grad: expected a function, got Tensor: write xgrad.grad(f)(x), or xgrad.autograd",
    ),
    (
        lambda: xgrad.value_and_grad(X),
        "value_and_grad: expected a function, got Tensor: write xgrad.value_and_grad(f)(x)",
    ),
    (lambda: xgrad.vjp(X, X), "vjp: expected a function, got Tensor: write result, pullback = xgrad.vjp(f, x)"),
    (lambda: xgrad.jvp(X, X, X), "jvp: expected a function, got Tensor: write xgrad.jvp(f, (x,), (tangent,))"),
    (lambda: xgrad.hvp(X, X, X), "hvp: expected a function, got Tensor: write xgrad.hvp(f, (x,), (tangent,))"),
]


@pytest.mark.parametrize(("call", "expected"), FORMS)
def test_derivatives_in_the_form_of_pytorch_show_the_form_of_xgrad(call: Callable[[], Any], expected: str) -> None:
    with pytest.raises(TypeError, match=re.escape(expected)):
        call()
