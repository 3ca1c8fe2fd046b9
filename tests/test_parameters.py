"""Parameters read from code, and lazy signatures, compared with `inspect.signature`."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

import xgrad
from helpers import function
from xgrad.core.backward_spec import reads
from xgrad.core.signatures import LazySignature, parameters
from xgrad.ops import sets, softmaxes, tensor_conversion

MODULES = (xgrad.ops, softmaxes, tensor_conversion, sets, xgrad.fft, xgrad.linalg, xgrad.special)


def declared() -> dict[str, Any]:
    """Return the ops of the library by name."""
    functions = [
        value.function
        for module in MODULES
        for value in vars(module).values()
        if hasattr(value, "function")
    ]
    return {f"{function.public.__module__}.{function.name}": function for function in functions}


def wrapped() -> Callable[..., Any]:
    @functools.wraps(lambda xp, x, *, k=1: None)
    def call(*args: Any, **options: Any) -> None: ...

    return call


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda g: g,
        lambda xp, x, /, y, z=3: x,
        lambda xp, x, y=2, /, z=3, *, k, m=5: x,
        lambda xp, *arrays: arrays,
        lambda xp, *arrays, k=1: arrays,
        lambda xp, x, /, **options: x,
        lambda xp, *arrays, k, **options: arrays,
        wrapped(),
        functools.partial(lambda xp, x, k: x, k=3),
        max.__call__,
    ],
)
def test_parameters_are_those_of_the_signature(function: Callable[..., Any]) -> None:
    positional, keywords, defaults, variadic = parameters(function)
    expected = inspect.signature(function).parameters.values()
    assert [*positional, *keywords] == [
        p.name for kind in range(5) for p in expected if p.kind == kind and kind <= p.VAR_POSITIONAL
    ] + [p.name for p in expected if p.kind > p.VAR_POSITIONAL]
    assert defaults == {p.name: p.default for p in expected if p.default is not p.empty}
    assert variadic == any(p.kind == p.VAR_POSITIONAL for p in expected)


@pytest.mark.parametrize("name", sorted(declared()))
def test_rules_of_the_library_ask_for_known_names(name: str) -> None:
    function = declared()[name]
    assert all(reads(function, rule) for rule in function.rules if rule)
    options = [p for p in function.signature.parameters.values() if p.name in function.options]
    assert function.defaults == {p.name: p.default for p in options if p.default is not p.empty}


def test_forward_rule_may_take_any_options() -> None:
    Scaled = type(function("Scaled", lambda xp, x, *, k=1, **rest: x * k, lambda xp, g, k: g * k))
    x = xgrad.ones(2)
    assert Scaled(k=2)(x).tolist() == Scaled()(x, k=2).tolist() == [2, 2]
    assert str(Scaled(k=2).signature) == "(x, *, k=2, **rest)"


def test_lazy_signature_equals_the_signature_it_makes() -> None:
    made = []

    def make() -> inspect.Signature:
        made.append(1)
        return inspect.signature(lambda x, /, *, k=1: x)

    class Holder:
        signature = property(lambda self: make())

    signature = LazySignature(Holder())
    assert isinstance(signature, inspect.Signature) and not made
    assert str(signature) == "(x, /, *, k=1)" and list(signature.parameters) == ["x", "k"]
    assert signature == make() and hash(signature) == hash(make())
    assert signature.bind(1, k=2).arguments == {"x": 1, "k": 2}
    assert pickle.loads(pickle.dumps(signature)) == copy.copy(signature) == make()
    assert str(signature.replace(parameters=[])) == "()"
    assert str(signature.replace(return_annotation=int)).endswith("int")
    if sys.version_info >= (3, 13):
        assert copy.replace(signature, parameters=[]) == inspect.Signature()
