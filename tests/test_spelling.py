"""Axes in another spelling than a function's or method's: the error says what to write.

The calls are made from the signatures of all functions and methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import xgrad
from helpers import check_error
from xgrad.ops import methods, torch_methods

MODULES = (
    xgrad, xgrad.linalg, xgrad.fft, xgrad.special, xgrad.nn.functional, xgrad.random, xgrad.ops,
)  # fmt: skip
#: The spelling of the other kind for each spelling of an axis or of `keepdims`.
OTHER = {
    "axis": "dim", "axes": "dims", "keepdims": "keepdim",
    "dim": "axis", "dims": "axis", "keepdim": "keepdims",
}  # fmt: skip
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (*POSITIONAL[1:], inspect.Parameter.KEYWORD_ONLY)


def functions() -> Iterator[tuple[str, Any]]:
    """Yield all functions and methods with their names."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
    for name, method in {**torch_methods.METHODS, **methods.METHODS}.items():
        if name[0] != "_" and not isinstance(method, property):
            yield f"Tensor.{name}", method


def wrong_keywords() -> Iterator[tuple[str, Any, str, str]]:
    """Yield functions with a keyword of theirs, and the one of the other spelling."""
    for label, function in functions():
        parameters = inspect.signature(function).parameters
        for own, p in parameters.items():
            if own in OTHER and p.kind in NAMED and OTHER[own] not in parameters:
                yield label, function, own, OTHER[own]


def keyword_only() -> Iterator[tuple[str, Any]]:
    """Yield functions with an axis that is keyword-only, and no more inputs."""
    for label, function in functions():
        parameters = inspect.signature(function).parameters
        several = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        if (
            "axis" in parameters
            and parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY
            and not several
        ):
            yield label, function


def required(function: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for the parameters of a function without defaults, but for axes."""
    each = inspect.signature(function).parameters.values()
    needed = [p for p in each if p.default is p.empty and p.name not in OTHER]
    return (
        [xgrad.ones((2, 2)) for p in needed if p.kind in POSITIONAL],
        {p.name: 2 for p in needed if p.kind is p.KEYWORD_ONLY},
    )


KEYWORDS = list(wrong_keywords())


@pytest.mark.parametrize(
    ("label", "function", "own", "other"), KEYWORDS, ids=[f"{k[0]}-{k[3]}" for k in KEYWORDS]
)
def test_keyword_of_the_other_spelling_names_the_own(
    label: str, function: Any, own: str, other: str
) -> None:
    args, options = required(function)
    with pytest.raises(TypeError) as caught:
        function(*args, **options, **{other: 0})
    assert f": write {own}= for {other}=" in str(caught.value)


AXES = list(keyword_only())


@pytest.mark.parametrize(("label", "function"), AXES, ids=[label for label, _ in AXES])
def test_axis_by_position_shows_the_line_to_write(label: str, function: Any) -> None:
    each = [p for p in inspect.signature(function).parameters.values() if p.kind in POSITIONAL]
    args = [xgrad.ones((2, 2)) if p.default is p.empty else p.default for p in each]
    with pytest.raises(TypeError) as caught:
        function(*args, 0)
    line = str(caught.value).partition(": write ")[2]
    # an FFT has its length before the axis, and an integral its points, in PyTorch, too
    name = label.rpartition(".")[2]
    first = "x" if name == "trapezoid" else "n"
    option = (
        first if label.startswith(("xgrad.fft", "xgrad.trap")) and f"{first}=0" in line else "axis"
    )
    assert line.startswith(f"{name}({each[0].name}") and f", {option}=0" in line


@pytest.mark.parametrize("name", sorted(xgrad.nn.__all__))
def test_module_with_an_axis_names_its_keyword(name: str) -> None:
    module = getattr(xgrad.nn, name)
    parameters = inspect.signature(module).parameters if inspect.isclass(module) else {}
    for own in parameters.keys() & OTHER.keys():
        with pytest.raises(TypeError, match=f": write {own}= for {OTHER[own]}="):
            module(**{OTHER[own]: 1})


def test_the_calls_are_of_all_kinds() -> None:
    assert len(KEYWORDS) > 160 and len(AXES) > 50
    assert len([label for label, *_ in KEYWORDS if label.startswith("Tensor.")]) > 40


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("xp.sum(x, 0)", "TypeError: sum(x, … too many positional arguments: write sum(x, axis=0)"),
        ("xp.sum(x, 0, True)", "TypeError: … write sum(x, axis=0, keepdims=True)"),
        ("xp.mean(x, (0, 1), keepdims=True)", "TypeError: … mean(x, axis=(0, 1), keepdims=True)"),
        ("xp.sort(x, 0, True)", "TypeError: … write sort(x, axis=0, descending=True); the result"),
        ("xp.topk(x, 2, 0)", "TypeError: … write topk(x, 2, axis=0)"),
        ("x.max(dim=0)", "TypeError: … write axis= for dim=; the result has no indices, which arg"),
        ("x.min(dim=0, keepdim=True)", "TypeError: … write axis= for dim=, keepdims= for keepdim="),
        ("x.std(dim=0)", "TypeError: … write axis= for dim=; divides by n, and PyTorch by n - 1"),
        ("xp.max(x, 1)", "TypeError: … write max(x, axis=1); the result has no indices"),
        ("x.cumsum(axis=0)", "TypeError: … write dim= for axis="),
        ("x.amax(axis=0, keepdims=True)", "… write dim= for axis=, keepdim= for keepdims="),
        ("x.flip(axis=0)", "TypeError: … write dims= for axis="),
    ],
)
def test_spelling_error(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.ones((2, 3)))
