"""Methods of tensors are ops of one table, and their declarations for editors are the same."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import xgrad
from xgrad.core import methods as core_methods
from xgrad.ops import elementwise, methods, torch_methods

METHODS = {**torch_methods.METHODS, **methods.METHODS}
STUB = Path(core_methods.__file__).with_suffix(".pyi")
(DECLARED,) = (
    {node.name: node for node in body.body if isinstance(node, ast.FunctionDef)}
    for body in ast.parse(STUB.read_text()).body
    if isinstance(body, ast.ClassDef)
)
OWN = [
    name
    for name, method in METHODS.items()
    if getattr(method, "__module__", "").startswith((methods.__name__, "xgrad.ops.torch_"))
    and not name.startswith("__")
]


def function_of(method: Any) -> Any:
    return method.fget if isinstance(method, property) else method


def test_operators_and_methods_are_the_ops() -> None:
    assert xgrad.Tensor.__mul__ is xgrad.multiply
    assert xgrad.Tensor.__lt__ is xgrad.less
    assert xgrad.Tensor.exp is xgrad.exp
    assert xgrad.Tensor.neg is xgrad.Tensor.__neg__ is xgrad.negative
    same = [name for name in METHODS if METHODS[name] is getattr(elementwise, name, None)]
    assert len(same) > 50


def test_every_method_is_defined_and_declared_once() -> None:
    assert set(DECLARED) == set(METHODS)
    assert not torch_methods.METHODS.keys() & methods.METHODS.keys()
    for name, method in METHODS.items():
        assert inspect.getattr_static(xgrad.Tensor, name) is method


@pytest.mark.parametrize("name", OWN)
def test_declarations_have_the_parameters_of_the_methods(name: str) -> None:
    source = ast.parse(inspect.getsource(METHODS[name])).body[0]
    declared = DECLARED[name]
    assert isinstance(source, ast.FunctionDef)
    assert ast.unparse(declared.args) == ast.unparse(source.args).replace("self: Tensor", "self")
    assert declared.returns is not None and source.returns is not None
    assert ast.unparse(declared.returns) == ast.unparse(source.returns)


@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith("__")])
def test_declarations_say_what_help_says(name: str) -> None:
    said = ast.get_docstring(DECLARED[name]) or ""
    summary = (inspect.getdoc(function_of(METHODS[name])) or "").partition("\n")[0]
    assert said and summary.startswith(said.rstrip("."))


def test_declarations_of_ops_have_their_inputs() -> None:
    for name, method in METHODS.items():
        op = getattr(function_of(method), "function", None)
        if op is not None:
            parameters = [a.arg for a in DECLARED[name].args.posonlyargs]
            assert parameters == ["self", *op.inputs[1:]], name


@pytest.mark.parametrize("name", METHODS)
def test_bound_methods_are_pickled_by_their_names(name: str) -> None:
    if isinstance(METHODS[name], property):
        return
    x = xgrad.asarray([1.0, 2.0])
    copied = pickle.loads(pickle.dumps(getattr(x, name)))
    assert (
        copied.__func__ is METHODS.get(METHODS[name].__name__, METHODS[name])
        and (copied.__self__.numpy() == x.numpy()).all()
    )


def test_methods_call_the_methods_of_a_subclass() -> None:
    calls: list[str] = []

    class Logged(xgrad.Tensor):
        def to(self, device: Any = None, *, dtype: Any = None) -> xgrad.Tensor:
            calls.append("to")
            return super().to(device, dtype=dtype)

        def contiguous(self) -> xgrad.Tensor:
            calls.append("contiguous")
            return super().contiguous()

    x = Logged([[1.0, 2.0]])
    for method in (x.cpu, x.float, x.ravel, x.double):
        method()
    x.to_device("cpu")
    assert calls == ["to", "to", "contiguous", "to", "to"]


def test_public_names_are_listed_once() -> None:
    assert len(xgrad.__all__) == len(set(xgrad.__all__))
