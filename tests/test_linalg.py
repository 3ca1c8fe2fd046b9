"""Linear algebra beyond the op table: refusals, points without a derivative, memory.

Derivatives are compared with closed forms and finite differences.
"""

from __future__ import annotations

import inspect
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64
from xgrad import Tensor, linalg
from xgrad.autograd import grad
from xgrad.testing import gradcheck

pytestmark = pytest.mark.filterwarnings(
    "ignore:(invalid value|divide by zero) encountered:RuntimeWarning"
)
random = np.random.default_rng(0)

SIGNATURES = """
cholesky_solve(x, factor, /, *, upper=False)
eig(x, /)
eigvals(x, /)
expm(x, /)
lstsq(x1, x2, /, *, rcond=None)
solve_triangular(x1, x2, /, *, upper, unitriangular=False)
sqrtm(x, /)
""".split("\n")[1:-1]


@pytest.mark.parametrize("line", SIGNATURES)
def test_extensions_have_documented_signatures(line: str) -> None:
    name, _, rest = line.partition("(")
    parameters = inspect.signature(getattr(linalg, name)).parameters.values()
    assert str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters])) == "(" + rest


def test_products_are_those_of_the_main_namespace() -> None:
    assert (
        linalg.matmul is xgrad.matmul
        and linalg.vecdot is xgrad.vecdot
        and linalg.tensordot is xgrad.tensordot
    )


def test_several_results_have_the_names_of_the_standard(device: str) -> None:
    x = xgrad.asarray([[2.0, 1.0], [1.0, 2.0]], device=device)
    assert linalg.eig(x)._fields == linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert all(
        isinstance(part, Tensor) and part.device == xgrad.Device(device) for part in linalg.svd(x)
    )


# Refusals

FAILING: list[tuple[str, Callable[[Tensor], Any], Any]] = [
    ("inv", linalg.inv, [[1.0, 2.0], [2.0, 4.0]]),
    ("solve", lambda x: linalg.solve(x, x), [[1.0, 2.0], [2.0, 4.0]]),
    ("cholesky", linalg.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
    ("inv", lambda x: linalg.matrix_power(x, -2), np.zeros((2, 2))),
]


@pytest.mark.parametrize(("name", "fn", "values"), FAILING)
def test_matrix_without_a_result_is_an_error_with_its_shape(
    name: str, fn: Any, values: Any, device: str
) -> None:
    x = leaf64(values, device)
    if device.startswith("cuda"):
        assert not np.isfinite(host(fn(x))).all()
        return
    for _ in range(2):  # a second call may take a cached path
        with pytest.raises(np.linalg.LinAlgError, match=rf"^{name}: .*of shape \(2, 2\), float64"):
            fn(x)


REFUSED = [
    *[
        (
            f"linalg.{f}(one({shape}))",
            f"ValueError: {f}: expected square matrices … {shape[0] if shape else ''}",
        )
        for f in "cholesky det eig eigh eigvals eigvalsh inv slogdet".split()
        for shape in ((2, 3), (2,), ())
    ],
    *[
        (f"linalg.{f}(one(3))", f"ValueError: {f}: expected matrices, of shape (..., m, n) … (3,)")
        for f in "diagonal matrix_norm matrix_rank pinv qr svd svdvals".split()
    ],
    (
        "linalg.matrix_power(one((2, 3)), 2)",
        "ValueError: matrix_power: expected square matrices … (2, 3)",
    ),
    (
        "linalg.matrix_power(one((2, 2)), 1.5)",
        "TypeError: matrix_power: expected an int for n, got 1.5",
    ),
    ("linalg.solve(one((2, 3)), one(2))", "ValueError: solve: expected square matrices … (2, 3)"),
    (
        "linalg.solve(one((2, 2)), one(3))",
        "ValueError: solve: expected a vector of shape (n,) or matrices … x2 … (3,)",
    ),
    ("linalg.solve(one((2, 2, 2)), one((3, 2, 2)))", "ValueError: solve: … x2 of shape (3, 2, 2)"),
    (
        "linalg.qr(one((2, 2)), mode='raw')",
        "ValueError: qr: expected mode 'reduced' or 'complete', got 'raw'",
    ),
    (
        "linalg.matrix_norm(one((2, 2)), ord=3)",
        "ValueError: matrix_norm: expected ord 'fro', … got 3",
    ),
    ("linalg.vector_norm(one(2), ord='fro')", "TypeError: vector_norm: expected a number for ord"),
    (
        "linalg.vector_norm(one((2, 0)), axis=1, ord=np.inf)",
        "ValueError: vector_norm: expected elements to choose",
    ),
    ("linalg.outer(one((2, 2)), one(2))", "ValueError: outer: expected two vectors … (2, 2)"),
    ("linalg.cross(one(2), one(2))", "ValueError: cross: expected length 3 along axis -1 … (2,)"),
    (
        "linalg.cross(one((3, 3)), one(3), axis=0)",
        "ValueError: cross: expected an axis that both have … got 0",
    ),
    ("xp.vecdot(one(2), one(3))", "ValueError: vecdot: expected one length along axis -1 … (3,)"),
    (
        "xp.vecdot(one(2), one((2, 2)), axis=-2)",
        "ValueError: vecdot: expected an axis that both have … got -2",
    ),
    (
        "xp.tensordot(one((2, 3)), one((2, 3)), axes=1)",
        "ValueError: tensordot: expected equal lengths",
    ),
    (
        "xp.tensordot(one((2, 3)), one(3), axes=2)",
        "ValueError: tensordot: expected axes from 0 to 1",
    ),
    (
        "xp.tensordot(one((2, 3)), one(3), axes=-1)",
        "ValueError: tensordot: expected axes from 0 to 1",
    ),
    (
        "xp.tensordot(one((2, 2)), one((2, 2)), axes=((5,), (0,)))",
        "IndexError: tensordot: expected axes from -2 to 1 for x1, got (5,)",
    ),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_arguments_that_do_not_fit_are_refused(call: str, error: str, device: str) -> None:
    with xgrad.default_device(device):
        check_error(call, error, linalg=linalg, one=xgrad.ones, np=np)


def test_integers_become_float32_where_the_result_is_no_integer(device: str) -> None:
    x = xgrad.asarray([[2, 1], [1, 1]], device=device)
    assert (
        linalg.inv(x).dtype
        == linalg.matrix_norm(x, ord=1).dtype
        == linalg.matrix_power(x, 2).dtype
        == xgrad.float32
    )
    assert (
        xgrad.vecdot(x, x).dtype
        == linalg.outer(x[0, ...], x[1, ...]).dtype
        == linalg.trace(x).dtype
        == xgrad.int64
    )
    assert linalg.trace(x, dtype=xgrad.float64).dtype == xgrad.float64


def test_rtol_may_differ_for_each_matrix(device: str) -> None:
    x = xgrad.asarray(np.stack([np.diag([1.0, 0.5])] * 2), device=device)
    rtol = xgrad.asarray(np.array([0.1, 0.9]), device=device)
    assert linalg.matrix_rank(x, rtol=rtol).tolist() == [2, 1]
    np.testing.assert_allclose(host(linalg.pinv(x, rtol=rtol)), [np.diag([1, 2]), np.diag([1, 0])])


# Points without a derivative

REPEATED = np.diag([2.0, 2.0, 1.0])


@pytest.mark.parametrize("name", ["eig", "eigh"])
def test_repeated_eigenvalues_have_a_gradient_and_their_vectors_none(
    name: str, device: str
) -> None:
    x = leaf64(REPEATED, device)
    pairs = getattr(linalg, name)(x)
    for values in (getattr(linalg, name.replace("eig", "eigvals"))(x), pairs.eigenvalues):
        (g,) = grad(xgrad.sum(xgrad.real(values * values)), x, retain_graph=True)
        np.testing.assert_allclose(host(g), 2 * REPEATED, atol=1e-12)
    weights = xgrad.asarray(random.normal(size=(3, 3)), device=device)
    (g,) = grad(xgrad.sum(xgrad.abs(pairs.eigenvectors + 3) * weights), x)
    assert not np.isfinite(host(g)).all()


@pytest.mark.parametrize("values", [REPEATED, np.diag([2.0, 1.0, 0.0]), np.zeros((2, 3))])
def test_repeated_or_zero_singular_values_have_a_gradient(values: np.ndarray, device: str) -> None:
    x = leaf64(values, device)
    weights = xgrad.asarray(np.arange(1.0, 1 + min(values.shape)), device=device)
    for singular in (linalg.svdvals(x), linalg.svd(x, full_matrices=False).S, linalg.svd(x).S):
        (g,) = grad(xgrad.sum(singular * weights), x)
        assert np.linalg.svdvals(host(g)) == pytest.approx(np.arange(min(values.shape), 0, -1))


@pytest.mark.parametrize(
    "values", [REPEATED, np.zeros((3, 3)), np.zeros((3, 2)), np.diag([2.0, 1.0, 0.0, 0.0])]
)
def test_vectors_of_repeated_or_zero_singular_values_have_no_gradient(
    values: np.ndarray, device: str
) -> None:
    x = leaf64(values, device)
    u, _, vh = linalg.svd(x, full_matrices=False)
    for part in (u, vh):
        weights = xgrad.asarray(random.normal(size=part.shape), device=device)
        (g,) = grad(xgrad.sum(part * weights), x, retain_graph=True)
        assert not np.isfinite(host(g)).all()


def test_singular_vector_determined_by_the_others_has_a_gradient(device: str) -> None:
    """In rank 1 with two columns, the second column of V is orthogonal to the first.

    The second column of U is arbitrary.
    """
    x = leaf64([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]], device)
    u, _, vh = linalg.svd(x, full_matrices=False)
    (of_v,) = grad(vh[0, 1] / vh[0, 0], x, retain_graph=True)
    np.testing.assert_allclose(host(of_v), [[0, 0.5], [0, 0], [0, 0]], atol=1e-12)
    (of_u,) = grad(xgrad.sum(u * xgrad.asarray(random.normal(size=(3, 2)), device=device)), x)
    assert not np.isfinite(host(of_u)).all()


def test_det_has_exact_derivatives_of_three_orders(device: str) -> None:
    """The third derivative of a 3 by 3 determinant is the Levi-Civita symbol, twice."""
    x = leaf64(np.diag([1.0, 2.0, 3.0]) + 0.1 * random.normal(size=(3, 3)), device)
    (g,) = grad(linalg.det(x), x, create_graph=True)
    (g,) = grad(g[0, 0], x, create_graph=True)
    (g,) = grad(g[1, 1], x)
    np.testing.assert_allclose(host(g), np.diag([0, 0, 1.0]), atol=1e-12)


def test_gradient_of_the_pseudo_inverse_keeps_its_rank(device: str) -> None:
    """Changes that would raise the rank are ignored."""
    x = leaf64(np.diag([2.0, 0.0]), device)
    (g,) = grad(xgrad.sum(linalg.pinv(x)), x)
    np.testing.assert_allclose(host(g), [[-0.25, 0.25], [0.25, 0]])


@pytest.mark.parametrize(
    "fn", [lambda x: linalg.slogdet(x).logabsdet, lambda x: xgrad.sum(linalg.qr(x).Q)]
)
def test_singular_matrix_is_an_error_of_the_backward_pass(
    fn: Callable[[Tensor], Tensor], device: str
) -> None:
    x = leaf64(np.diag([1.0, 0.0]), device)
    if device.startswith("cuda"):
        assert not np.isfinite(host(grad(fn(x), x)[0])).all()
        return
    with pytest.raises(Exception, match=r"(?i)singular") as caught:
        grad(fn(x), x)
    assert any("in the backward pass" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("norm", [linalg.vector_norm, linalg.matrix_norm])
@pytest.mark.parametrize("order", [{}, {"ord": 1}])
def test_norm_at_zero_has_derivatives_of_zero(
    norm: Callable[..., Tensor], order: Any, device: str
) -> None:
    x = leaf64(np.zeros((2, 2)), device)
    (g,) = grad(norm(x, **order), x, create_graph=True)
    assert not host(g).any()
    if g.requires_grad:
        (g,) = grad(xgrad.sum(g), x)
        assert not host(g).any()


# Larger matrices


@pytest.mark.parametrize(
    "fn",
    [
        linalg.det,
        linalg.inv,
        lambda x: linalg.slogdet(x).logabsdet,
        linalg.svdvals,
        lambda x: linalg.cholesky(x @ x.mT),
        lambda x: linalg.eigvalsh(x + x.mT),
        linalg.pinv,
        lambda x: linalg.matrix_power(x, 7),
    ],
)
def test_gradients_of_12_by_12_matrices_agree_with_differences(
    fn: Callable[[Tensor], Tensor],
) -> None:
    assert gradcheck(fn, leaf64(np.eye(12) + 0.1 * random.normal(size=(12, 12))))


LARGE: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "pinv of a tall matrix": (lambda x: linalg.pinv(x), [(1000, 2)]),
    "pinv of a wide matrix": (lambda x: linalg.pinv(x), [(2, 1000)]),
    "solve by one matrix": (
        lambda x, y: linalg.solve(x + 9 * xgrad.eye(50), y),
        [(50, 50), (500, 50, 1)],
    ),
    "matmul by one matrix": (xgrad.matmul, [(500, 2, 50), (50, 200)]),
    "matmul of one matrix": (xgrad.matmul, [(200, 50), (500, 50, 2)]),
}


@pytest.mark.parametrize("case", LARGE)
def test_memory_of_a_backward_pass_is_that_of_few_inputs(case: str) -> None:
    fn, shapes = LARGE[case]
    xs = [leaf64(random.normal(size=shape)) for shape in shapes]
    loss = xgrad.sum(fn(*xs) ** 2)
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * sum(8 * x.size for x in xs)
