"""Errors for names, keywords and calls of PyTorch and NumPy name the replacement in xgrad."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest

import xgrad
from helpers import check_error, function
from xgrad.support.hints import NAMES

HINTS = [(owner, name) for owner, names in NAMES.items() for name in names]


def message(owner: str, name: str) -> str:
    """Return the message for a name that is missing."""
    target = xgrad.ones(1) if owner == "Tensor" else import_module(owner)
    with pytest.raises(AttributeError) as caught:
        getattr(target, name)
    return str(caught.value)


@pytest.mark.parametrize(("owner", "name"), HINTS)
def test_hint_names_what_exists(owner: str, name: str) -> None:
    hint = NAMES[owner][name]
    assert message(owner, name).endswith(f"has no attribute {name!r}: write {hint}")
    for path in re.findall(r"\bxgrad((?:\.\w+)+)", hint):
        attrgetter(path[1:])(xgrad)
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
        ("xgrad", "digitize", "has no attribute 'digitize'"),
        ("xgrad", "percentile", ": write xgrad.quantile(x, q / 100)"),
        ("xgrad", "int128", "has no attribute 'int128'"),
        ("xgrad.nn", "LazyConv3d", "has no attribute 'LazyConv3d'"),
        ("xgrad.nn", "Batchnorm2d", ": the nearest is xgrad.nn.BatchNorm2d"),
        ("xgrad.nn", "Sequentail", ": the nearest is xgrad.nn.Sequential"),
        ("xgrad.optim", "Adamw", ": the nearest is xgrad.optim.AdamW"),
        ("Tensor", "det", "'Tensor' object has no attribute 'det': write xgrad.linalg.det(x)"),
        ("xgrad.nn", "Adam", ": write xgrad.optim.Adam"),
        ("xgrad.nn", "Liner", ": the nearest is xgrad.nn.Linear"),
        ("xgrad.optim", "Adm", ": the nearest is xgrad.optim.Adam"),
        ("xgrad.autograd", "no_grad", ": write xgrad.no_grad"),
        ("xgrad.autograd", "Function", ": write xgrad.Function"),
    ],
)
def test_missing_name_says_what_to_write(owner: str, name: str, expected: str) -> None:
    assert message(owner, name).endswith(expected)


def test_misspelled_attribute_of_a_tensor_names_the_nearest() -> None:
    code = "import xgrad; xgrad.ones(1).reqires_grad"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.endswith("has no attribute 'reqires_grad'. Did you mean: 'requires_grad'?\n")


def test_names_with_hints_are_no_attributes() -> None:
    x = xgrad.nn.Parameter([1.0])
    for owner in (x, type(x), xgrad.Tensor):
        assert not hasattr(owner, "sort") and "sort" not in dir(owner) and "argsort" in dir(owner)
    assert all(hasattr(xgrad.Tensor, name) for name in dir(xgrad.Tensor))


X = xgrad.ones((2, 3))
CALLS = {
    "axis= for dim=": [
        "x.sum(dim=0)",
        "x.argmax(dim=1)",
        "xp.sum(x, dim=0)",
        "xp.squeeze(x, dim=0)",
        "xp.concat([x, x], dim=0)",
        "xp.stack([x, x], dim=0)",
        "xp.unstack(x, dim=0)",
        "xp.diff(x, dim=0)",
        "xp.nn.functional.softmax(x, dim=0)",
        "xp.special.logsumexp(x, dim=0)",
    ],
    "axis= for dim=, keepdims= for keepdim=": ["x.mean(dim=1, keepdim=True)"],
    "axis= for dims=": ["xp.flip(x, dims=0)"],
    "correction= for unbiased=": ["x.std(unbiased=False)"],
    "keepdims= for keepdim=": ["xp.max(x, keepdim=True)", "xp.linalg.matrix_norm(x, keepdim=True)"],
    "shape= for size=": ["xp.empty(size=(3, 4))", "xp.random.randint(0, 3, size=2)"],
    "zeros((3, 4)) for zeros(3, 4)": ["xp.zeros(3, 4)"],
    "ones((3, 4)) for ones(3, 4)": ["xp.ones(3, 4, dtype='float64')"],
    "randn((3, 4)) for randn(3, 4)": ["xp.random.randn(3, 4)"],
}


@pytest.mark.parametrize(
    ("call", "expected"), [(call, expected) for expected in CALLS for call in CALLS[expected]]
)
def test_wrong_argument_says_what_to_write(call: str, expected: str) -> None:
    check_error(call, f"TypeError: … write {expected}", x=X)


def test_errors_of_other_causes_get_no_hint() -> None:
    with pytest.raises(TypeError, match="concat: expected a tensor") as caught:
        xgrad.concat(["a"])  # type: ignore[list-item]
    assert "write" not in str(caught.value)
    with pytest.raises(TypeError, match=r"zeros\(\) got an unexpected keyword argument 'foo'$"):
        xgrad.zeros(3, foo=1)  # type: ignore[call-arg]


def test_function_in_the_form_of_pytorch_shows_the_form_of_xgrad() -> None:
    form = r"\(ctx, \.\.\.\): write\n.*\n.*\nand call an instance, f = Double\(\); f\(x\)"
    with pytest.raises(TypeError, match=f"forward{form}"):
        function("Double", lambda ctx, x: 2 * x)
    square = function("Square", lambda xp, x: x * x, lambda xp, g, x: 2 * g * x)
    assert square(X).shape == X.shape
    form = r"write\n    def forward\(xp, x\): .*f = Square\(\); f\(x\)"
    with pytest.raises(TypeError, match=rf"(?s)Square: .* got \.apply: {form}"):
        square.apply(X)


def square(x: Any) -> Any:
    return (x * x).sum()


FORMS = [
    ("jacobian(f, x)", "jacobian: expected argnums of int, got Tensor: write xgrad.jacobian(f)(x)"),
    (
        "hessian(f, (x, x))",
        "hessian: expected argnums of int, got tuple: write xgrad.hessian(f)(x)",
    ),
    ("grad(f, x)", "grad: expected argnums of int, got Tensor: write xgrad.grad(f)(x)"),
    (
        "grad(f(x), x)",
        "grad: expected a function, got Tensor: write xgrad.grad(f)(x), or xgrad.autograd",
    ),
    (
        "value_and_grad(x)",
        "value_and_grad: expected a function, got Tensor: write xgrad.value_and_grad(f)(x)",
    ),
    ("vjp(x, x)", "vjp: expected a function, got Tensor: write result, pullback = xgrad.vjp(f, x)"),
    ("jvp(x, x, x)", "jvp: expected a function, got Tensor: write xgrad.jvp(f, (x,), (tangent,))"),
    ("hvp(x, x, x)", "hvp: expected a function, got Tensor: write xgrad.hvp(f, (x,), (tangent,))"),
]


@pytest.mark.parametrize(("call", "expected"), FORMS)
def test_transform_in_the_form_of_pytorch_shows_the_form_of_xgrad(call: str, expected: str) -> None:
    check_error(f"xp.{call}", f"TypeError: {expected}", f=square, x=X)


#: Calls that take what NumPy or PyTorch take, and the end of their errors, which has what to write.
SLIPS = [
    (
        "xgrad.Tensor(3, 4)",
        "write Tensor([3, 4]) for these values, or xgrad.empty((3, 4)) for a shape",
    ),
    ("xgrad.Tensor([1.0], [2.0])", "write Tensor([[1.0], [2.0]]) for these values"),
    ("xgrad.zeros(3, 4)", ": write zeros((3, 4)) for zeros(3, 4)"),
    ("xgrad.empty(2, 3)", ": write empty((2, 3)) for empty(2, 3)"),
    ("xgrad.random.randn(3, 4)", ": write randn((3, 4)) for randn(3, 4)"),
    ("xgrad.sum(x, 1)", ": write sum(x, axis=1)"),
    ("xgrad.mean(x, (0, 1))", ": write mean(x, axis=(0, 1))"),
    ("xgrad.sort(x, 0)", ": write sort(x, axis=0); the result has no indices"),
    ("xgrad.flip(x, 0)", ": write flip(x, axis=0)"),
    ("xgrad.roll(x, 1, 0)", ": write roll(x, 1, axis=0)"),
    ("xgrad.cumulative_sum(x, 1)", ": write cumulative_sum(x, axis=1)"),
    ("xgrad.repeat(x, 2, 0)", ": write repeat(x, 2, axis=0)"),
    ("xgrad.concat([x, x], 1)", ": write concat(arrays, axis=1)"),
    ("xgrad.stack([x, x], -1)", ": write stack(arrays, axis=-1)"),
    ("xgrad.concat(x, x)", ": write concat([x, y]) for concat(x, y)"),
    ("xgrad.stack(x, x)", ": write stack([x, y]) for stack(x, y)"),
    ("xgrad.reshape(x, 3, 2)", ": write (3, 2) for 3, 2"),
    ("xgrad.permute_dims(x, 1, 0)", ": write (1, 0) for 1, 0"),
    ("xgrad.tile(x, 2, 2)", ": write (2, 2) for 2, 2"),
    ("xgrad.sum(x, dim=1)", ": write axis= for dim="),
    ("xgrad.nn.ReLU(x)", "ReLU: expected options, got a tensor: write ReLU()(x)"),
    ("xgrad.nn.Softmax(x)", "Softmax: expected options, got a tensor: write Softmax()(x)"),
    ("xgrad.nn.MSELoss(x, x)", "got two tensors: write MSELoss()(input, target)"),
    ("xgrad.nn.CrossEntropyLoss(x, x)", "got two tensors: write CrossEntropyLoss()(input, target)"),
]


@pytest.mark.parametrize(("call", "advice"), SLIPS)
def test_common_slip_raises_an_error_that_says_what_to_write(call: str, advice: str) -> None:
    with pytest.raises(TypeError, match=re.escape(advice)):
        eval(call, {"xgrad": xgrad, "x": xgrad.ones((2, 3))})


def test_surplus_argument_that_is_no_axis_has_no_advice() -> None:
    with pytest.raises(TypeError, match=r"takes 3 positional arguments but 4 were given$"):
        xgrad.linspace(0, 1, 5, 3)  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"too many positional arguments$"):
        xgrad.sum(xgrad.ones(3), "all")  # type: ignore[misc]


def test_weight_of_a_loss_by_position_and_copies_of_modules_remain() -> None:
    loss = xgrad.nn.CrossEntropyLoss(xgrad.ones(3))
    assert copy.deepcopy(loss).weight.tolist() == [1, 1, 1]
    assert pickle.loads(pickle.dumps(xgrad.nn.ELU(0.5))).alpha == 0.5
