"""Eigenvalues and eigenvectors solve their equation; losses that depend on phases are refused."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64
from xgrad import Tensor, linalg
from xgrad.autograd import grad
from xgrad_cupy import array_functions

pytestmark = pytest.mark.filterwarnings(
    "ignore:(invalid value|divide by zero) encountered:RuntimeWarning"
)
random = np.random.default_rng(0)
REAL = random.normal(size=(2, 3, 3))
COMPLEX = REAL + 1j * random.normal(size=(2, 3, 3))
WEIGHTS = random.normal(size=(2, 3, 3)) + 1j * random.normal(size=(2, 3, 3))


@pytest.mark.parametrize(
    "values", [REAL, np.diag([1.0, 2.0]), np.eye(3, dtype=np.complex64), np.zeros((0, 0))]
)
def test_pairs_solve_the_eigenproblem_and_are_complex(values: np.ndarray, device: str) -> None:
    eigenvalues, vectors = (host(part) for part in linalg.eig(xgrad.asarray(values, device=device)))
    assert eigenvalues.dtype == vectors.dtype == np.result_type(values, np.complex64)
    np.testing.assert_allclose(values @ vectors, vectors * eigenvalues[..., None, :], atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(vectors, axis=-2), np.ones(values.shape[:-1]), rtol=1e-6
    )


def test_defective_matrix_has_no_derivative(device: str) -> None:
    x = leaf64([[1.0, 1.0], [0.0, 1.0]], device)
    try:
        (g,) = grad(
            xgrad.sum(xgrad.abs(linalg.eigvals(x)) * xgrad.asarray([1.0, 2.0], device=device)), x
        )
    except np.linalg.LinAlgError:
        return
    assert not np.all(np.abs(host(g)) < 1e6)


# Phases, which are arbitrary

VECTORS = {
    "eig": lambda x: linalg.eig(x).eigenvectors,
    "eigh": lambda x: linalg.eigh(x + xgrad.conj(x.mT)).eigenvectors,
    "svd": lambda x: linalg.svd(x).U,
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_loss_that_depends_on_phases_is_refused_in_the_backward_pass(
    name: str, create_graph: bool, device: str
) -> None:
    x = leaf64(COMPLEX, device)
    loss = xgrad.sum(xgrad.real(VECTORS[name](x) * xgrad.asarray(WEIGHTS, device=device)))
    if xgrad.Device(device).backend.asynchronous:
        grad(loss, x, create_graph=create_graph)
        return
    with pytest.raises(
        RuntimeError, match=f"^{name}: expected a loss that does not depend on the phases"
    ) as caught:
        grad(loss, x, create_graph=create_graph)
    assert any("in the backward pass" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("name", VECTORS)
def test_rounding_of_a_large_loss_is_no_dependence_on_phases(name: str, device: str) -> None:
    x = leaf64(COMPLEX.astype(np.complex64), device)
    (g,) = grad(xgrad.sum(1e8 * xgrad.abs(VECTORS[name](x)) ** 3), x)
    assert np.isfinite(host(g)).all() and host(g).any()


def test_captured_step_has_the_gradients_of_the_eager_one_and_checks_phases() -> None:
    def step(x: Tensor, weights: Tensor) -> Tensor:
        values, vectors = linalg.eig(x)
        fixed = vectors * xgrad.conj(vectors[:1, :]) / xgrad.abs(vectors[:1, :])
        (g,) = grad(xgrad.sum(xgrad.real(weights * fixed * values[None, :])), x)
        return g

    captured = xgrad.capture(step)
    for values in (*COMPLEX, REAL[0] + 2j):
        inputs = leaf64(values), xgrad.asarray(WEIGHTS[0])
        np.testing.assert_array_equal(host(captured(*inputs)), host(step(*inputs)))


def test_missing_solver_of_cusolver_says_what_to_do() -> None:
    def without(x: np.ndarray) -> None:
        raise RuntimeError("geev is not available")

    with pytest.raises(
        RuntimeError, match=r"no geev here: install a newer CUDA, or use x\.to\('cpu'\)"
    ):
        array_functions._with_geev_hint(without)(np.eye(2))
    assert array_functions._with_geev_hint(np.linalg.eigvals)(np.eye(2)).tolist() == [1, 1]
