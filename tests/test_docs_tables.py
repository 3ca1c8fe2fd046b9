"""The tables of differences in docs/, evaluated with PyTorch, JAX and NumPy."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.nn import functional as F

DOCS = Path(__file__).parents[1] / "docs"
X = np.asarray([[0.25, 1.0, 0.5, 0.75], [2.0, 0.0, 1.0, 3.0], [0.5, 4.0, 0.25, 0.125]], np.float32)


def rows(page: str) -> list[list[str]]:
    """Return the cells of the tables of a page, row by row, without headings."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [line.strip("| ").split(" | ") for line in re.findall(r"^\| .*\|$", text, re.MULTILINE)]


def differences(page: str) -> list[tuple[str, str]]:
    """Return the pairs of expressions of a page: that of another library, and that of xgrad."""
    cells = [[re.fullmatch(r"`(.+)`", cell) for cell in row[:2]] for row in rows(page) if len(row) == 3]
    return [(a[1], b[1]) for a, b in cells if a and b]


def equal(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b)


def check(other: str, replacement: str, names: dict[str, Any], x: Any) -> None:
    """Assert that a pair of expressions agrees, and that xgrad refuses the first or has another value."""
    right = eval(replacement, {"xgrad": xgrad, "x": xgrad.tensor(X), "np": np})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert equal(right, eval(other, {"np": np, **names, "x": x}))
    try:
        left = eval(other, {"np": np, **dict.fromkeys(names, xgrad), "x": xgrad.tensor(X)})
    except (AttributeError, IndexError, TypeError, ValueError):
        return
    assert not equal(left, right)


@pytest.mark.parametrize(("expression", "replacement"), differences("pytorch.md"))
def test_documented_difference_from_pytorch_exists(expression: str, replacement: str, torch: Any) -> None:
    check(expression, replacement, {"torch": torch}, torch.tensor(X))


@pytest.mark.parametrize(("numpy", "replacement"), differences("howto/numpy.md"))
def test_documented_difference_from_numpy_exists(numpy: str, replacement: str) -> None:
    check(numpy, replacement, {"np": np}, X)


@pytest.mark.parametrize(("expression", "replacement"), differences("howto/jax.md"))
def test_documented_difference_from_jax_exists(expression: str, replacement: str, jax: Any) -> None:
    check(expression, replacement, {"jax": jax, "jnp": jax.numpy}, jax.numpy.asarray(X))


def of(name: str) -> Any:
    return lambda xp, x: getattr(xp, name)(x)


#: Functions of a library and a point, by the row of the table of conventions.
CONVENTIONS = {
    "`abs(x)`": of("abs"),
    "`clip(x, 0, 1)`": lambda xp, x: xp.clip(x, 0.0, 1.0),
    "`maximum(x, 3)`": lambda xp, x: xp.maximum(x, xp.full_like(x, 3.0)),
    "`max(x)` of all elements": of("max"),
    "`sqrt(x)`": of("sqrt"),
    "`vector_norm(x)`": lambda xp, x: xp.linalg.vector_norm(x),
    "`hypot(x, x)`": lambda xp, x: xp.hypot(x, x),
    "`prod(x)`": of("prod"),
    "`where(x > 0, log(x), 0)`": lambda xp, x: xp.where(x > 0, xp.log(x), 0.0),
    "`sign(x)`, `floor(x)`, `round(x)`": lambda xp, x: xp.sign(x) + xp.floor(x) + xp.round(x),
}
CONVENTION_ROWS = [row for row in rows("explanation/gradients.md") if len(row) == 5 and row[0] != "function"]


def point(text: str) -> list[float]:
    return [1.5] if text == "any" else [float(value) for value in text.split(",")]


def convention(name: str, library: str, xp: Any) -> Any:
    """Return the function of a row in a library."""
    if name == "`relu(x)`":
        return {"xgrad": F.relu, "torch": getattr(xp, "relu", None)}.get(library) or (lambda x: xp.maximum(x, 0.0))
    if name == "`max(x)` along an axis":
        return (lambda x: x.max(0).values) if library == "torch" else (lambda x: xp.max(x, axis=0))
    if name == "`std(x)`":
        return lambda x: x.std(correction=0) if library != "jax" else xp.std(x)
    return lambda x: CONVENTIONS[name](xp, x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", CONVENTION_ROWS, ids=lambda row: row[0])
def test_documented_convention_for_a_gradient_is_that_of_xgrad_and_pytorch(row: list[str], torch: Any) -> None:
    for library, xp, text in (("xgrad", xgrad, row[2]), ("torch", torch, row[3])):
        x = xp.tensor(point(row[1]), requires_grad=True)
        convention(row[0], library, xp)(x).sum().backward()
        np.testing.assert_allclose(np.asarray(x.grad.tolist()), np.broadcast_to(point(text), x.shape), err_msg=library)


@pytest.mark.parametrize("row", CONVENTION_ROWS, ids=lambda row: row[0])
def test_documented_convention_for_a_gradient_is_that_of_jax(row: list[str], jax: Any) -> None:
    x = jax.numpy.asarray(point(row[1]))
    function = jax.nn.relu if row[0] == "`relu(x)`" else convention(row[0], "jax", jax.numpy)
    got = jax.grad(lambda x: function(x).sum())(x)
    np.testing.assert_allclose(np.asarray(got), np.broadcast_to(point(row[4]), x.shape))
