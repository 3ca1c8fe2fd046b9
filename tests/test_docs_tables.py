"""The tables of differences, conventions and dtypes in docs/ hold for PyTorch, JAX and NumPy."""

from __future__ import annotations

import re
import warnings
from operator import attrgetter
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
    """Return the pairs of expressions of a page: another library's, and xgrad's."""
    cells = [
        [re.fullmatch(r"`(.+)`", cell) for cell in row[:2]] for row in rows(page) if len(row) == 3
    ]
    return [(a[1], b[1]) for a, b in cells if a and b]


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.dtype):
        return str(a).removeprefix("torch.") == str(b).removeprefix("torch.")
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and np.allclose(a, b)


def check(other: str, replacement: str, names: dict[str, Any], x: Any) -> None:
    """Assert that a pair of expressions agrees.

    Also assert that xgrad refuses the first expression, or has another value for it.
    """
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
def test_documented_difference_from_pytorch_exists(
    expression: str, replacement: str, torch: Any
) -> None:
    check(expression, replacement, {"torch": torch}, torch.tensor(X))


VIEWS = [row for row in rows("pytorch.md") if row[-1].startswith(("copy", "view"))]


def is_view(expression: str, library: Any) -> bool:
    """Return whether a write to `x` reaches the result of an expression of it."""
    x = library.tensor([1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.meshgrid without indexing
        result = eval(expression, {"torch": library, "x": x})
    x[...] = 0.0
    return not np.any(result.tolist())


@pytest.mark.parametrize("row", VIEWS, ids=lambda row: row[0])
def test_documented_views_are_those_of_pytorch_and_xgrad(row: list[str], torch: Any) -> None:
    expression, theirs, ours = row[0].strip("`"), row[1], row[2]
    if ours == "read-only view":
        array = xgrad.tensor([1.0]).numpy()
        assert not array.flags.writeable and torch.tensor([1.0]).numpy().flags.writeable
        return
    assert is_view(expression, torch) == theirs.startswith("view")
    assert is_view(expression, xgrad) == ours.startswith("view")


def test_contiguous_returns_a_result_itself_and_copies_a_view(torch: Any) -> None:
    for library in (xgrad, torch):
        y = library.ones((3, 4)).T * 2
        assert (y.contiguous() is y) == (library is xgrad)
        assert library.ones((3, 4)).T.contiguous() is not y


MODEL_ROWS = [row for row in rows("howto/pytorch_model.md") if row[0].startswith("`torch.")]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("row", MODEL_ROWS, ids=lambda row: row[0])
def test_counterparts_of_pytorch_on_the_page_of_models_have_equal_values(
    row: list[str], torch: Any
) -> None:
    results = []
    for expression, library in zip(row, (torch, xgrad), strict=True):
        x = library.tensor([0.5, 1.5])
        is_scalar = "jac" not in expression
        names = {
            "torch": torch,
            "xgrad": xgrad,
            "nn": xgrad.nn,
            "x": x,
            "f": lambda x, scalar=is_scalar: (x**3).sum() if scalar else x**3,
            "model": library.nn.Linear(2, 1),
            "weights": {
                "weight": library.tensor([[1.0, 2.0]]),
                "bias": library.tensor([3.0]),
            },
        }
        for parameter in names["model"].parameters():
            torch.nn.init.ones_(parameter) if library is torch else xgrad.nn.init.ones_(parameter)
        results.append(eval(expression.strip("`"), names).detach().tolist())
    np.testing.assert_allclose(*results, rtol=1e-6)


IMPORTS = [row for row in rows("howto/pytorch_script.md") if "import" in row[0]]


@pytest.mark.parametrize("row", IMPORTS, ids=lambda row: row[0])
def test_import_lines_of_a_script_bind_the_same_names(row: list[str], torch: Any) -> None:
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    for line, names in zip(row, (theirs, ours), strict=True):
        exec(line.strip("`"), names)
    assert theirs.keys() == ours.keys() and len(IMPORTS) > 5


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
CONVENTION_ROWS = [
    row for row in rows("explanation/gradients.md") if len(row) == 5 and row[0] != "function"
]


def point(text: str) -> list[float]:
    return [1.5] if text == "any" else [float(value) for value in text.split(",")]


def convention(name: str, library: str, xp: Any) -> Any:
    """Return the function of a row in a library."""
    if name == "`relu(x)`":
        return {"xgrad": F.relu, "torch": getattr(xp, "relu", None)}.get(library) or (
            lambda x: xp.maximum(x, 0.0)
        )
    if name == "`max(x)` along an axis":
        return (lambda x: x.max(0).values) if library == "torch" else (lambda x: xp.max(x, axis=0))
    if name == "`std(x)`":
        return lambda x: x.std(correction=0) if library != "jax" else xp.std(x)
    return lambda x: CONVENTIONS[name](xp, x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", CONVENTION_ROWS, ids=lambda row: row[0])
def test_documented_convention_for_a_gradient_is_that_of_xgrad_and_pytorch(
    row: list[str], torch: Any
) -> None:
    for library, xp, text in (("xgrad", xgrad, row[2]), ("torch", torch, row[3])):
        x = xp.tensor(point(row[1]), requires_grad=True)
        convention(row[0], library, xp)(x).sum().backward()
        np.testing.assert_allclose(
            np.asarray(x.grad.tolist()), np.broadcast_to(point(text), x.shape), err_msg=library
        )


@pytest.mark.parametrize("row", CONVENTION_ROWS, ids=lambda row: row[0])
def test_documented_convention_for_a_gradient_is_that_of_jax(row: list[str], jax: Any) -> None:
    x = jax.numpy.asarray(point(row[1]))
    function = jax.nn.relu if row[0] == "`relu(x)`" else convention(row[0], "jax", jax.numpy)
    got = jax.grad(lambda x: function(x).sum())(x)
    np.testing.assert_allclose(np.asarray(got), np.broadcast_to(point(row[4]), x.shape))


#: Expressions of a library, by the row of the table of dtypes.
DTYPES = {
    "`asarray([1.0])`, of Python numbers": lambda xp: xp.asarray([1.0]),
    "int64 tensor + float32 tensor": lambda xp: xp.asarray([1]) + xp.ones(1, dtype=xp.float32),
    "float32 tensor + float64 tensor of shape ()": lambda xp: (
        xp.ones(1, dtype=xp.float32) + xp.asarray(1.0, dtype=xp.float64)
    ),
    "float32 tensor + Python float": lambda xp: xp.ones(1, dtype=xp.float32) + 1.5,
    "`sum` of int8": lambda xp: xp.sum(xp.ones(1, dtype=xp.int8)),
    "`mean` of int64": lambda xp: xp.mean(xp.asarray([1])),
    "`asarray` of a float64 array of NumPy": lambda xp: xp.asarray(np.ones(1)),
}
DTYPE_ROWS = [
    row for row in rows("explanation/dtypes.md") if len(row) == 4 and row[0] != "expression"
]


def dtype_name(expression: str, xp: Any) -> str:
    try:
        return str(DTYPES[expression](xp).dtype).removeprefix("torch.")
    except RuntimeError:
        return "refused"


@pytest.mark.parametrize(
    ("expression", "ours", "numpy", "_"), DTYPE_ROWS, ids=lambda cell: cell[:20]
)
def test_documented_dtype_is_that_of_xgrad_and_numpy(
    expression: str, ours: str, numpy: str, _: str
) -> None:
    assert (dtype_name(expression, xgrad), dtype_name(expression, np)) == (ours, numpy)


def test_documented_dtypes_are_those_of_pytorch(torch: Any) -> None:
    assert [dtype_name(row[0], torch) for row in DTYPE_ROWS] == [row[3] for row in DTYPE_ROWS]


JAX_ROWS = [row for row in rows("howto/jax.md") if len(row) == 2 and row[0] != "in JAX"]


def test_counterparts_of_jax_exist(jax: Any) -> None:
    """Each name of the table, such as ``jax.lax.scan``, is one of its library."""
    from jax import lax

    for row in JAX_ROWS:
        for library, cell in zip((jax, xgrad), row, strict=True):
            for name in re.findall(r"`([\w.]+)", cell):
                start, *path = name.split(".")
                names = {
                    library.__name__: library,
                    "fori_loop": lax.fori_loop,
                    "cond": lax.cond,
                    "nn": xgrad.nn,
                }
                if start not in ("x", "key", "f", "if", "for", "Generator"):
                    attrgetter(".".join(path))(names[start]) if path else names[start]


def test_state_of_a_captured_function_is_a_constant_of_jit(jax: Any) -> None:
    weight, constant = xgrad.ones(2), np.ones(2, np.float32)
    ours, theirs = xgrad.capture(lambda x: x * weight), jax.jit(lambda x: x * constant)
    ours(xgrad.ones(2)), theirs(np.ones(2))
    weight[...] = constant[...] = 3.0
    assert ours(xgrad.ones(2)).tolist() == [3.0, 3.0] and theirs(np.ones(2)).tolist() == [1.0, 1.0]


def test_assignment_to_an_element_is_differentiated_as_at_set(jax: Any) -> None:
    def assigned(x: xgrad.Tensor) -> xgrad.Tensor:
        y = x * 2
        y[0] = 1.0
        return xgrad.sum(y * y)

    expected = jax.grad(lambda x: ((x * 2).at[0].set(1.0) ** 2).sum())(X[0])
    np.testing.assert_allclose(xgrad.grad(assigned)(xgrad.asarray(X[0])).numpy(), expected)
