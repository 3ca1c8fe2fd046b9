"""Eigenvalues and eigenvectors of general matrices where the op table does not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
import xgrad_cupy
from xgrad import Tensor, linalg
from xgrad.autograd import grad

pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
random = np.random.default_rng(0)
REAL = random.normal(size=(2, 3, 3))
MATRICES = [REAL, REAL + 1j * random.normal(size=(2, 3, 3))]
WEIGHTS = random.normal(size=(2, 3, 3)) + 1j * random.normal(size=(2, 3, 3))


def leaf(values: Any, device: str = "cpu") -> Tensor:
    return xgrad.asarray(np.asarray(values), device=device, requires_grad=True)


def host(x: Tensor) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy())


@pytest.mark.parametrize("values", [*MATRICES, np.diag([1.0, 2.0]), np.eye(3, dtype=np.complex64), np.zeros((0, 0))])
def test_pairs_solve_the_eigenproblem_and_are_complex(values: np.ndarray, device: str) -> None:
    found = linalg.eig(xgrad.asarray(values, device=device))
    pairs, expected = [host(part) for part in found], np.linalg.eigvals(values)
    assert pairs[0].dtype == pairs[1].dtype == np.result_type(values, np.complex64)
    np.testing.assert_allclose(values @ pairs[1], pairs[1] * pairs[0][..., None, :], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(pairs[1], axis=-2), np.ones(values.shape[:-1]), rtol=1e-6)
    for alone in (found.eigenvalues, linalg.eigvals(xgrad.asarray(values, device=device))):
        assert alone.dtype == pairs[0].dtype
        np.testing.assert_allclose(np.sort_complex(host(alone)), np.sort_complex(expected), atol=1e-12)


def _weighted(p: Any, x: Any, weights: Any) -> Any:
    """Return a loss of all eigenvalues and eigenvectors that does not depend on their phases."""
    values, vectors = p.linalg.eig(x)
    fixed = vectors * p.conj(vectors[..., :1, :]) / p.abs(vectors[..., :1, :])
    return p.sum(p.real(weights * fixed * values[..., None, :]))


@pytest.mark.parametrize("values", MATRICES, ids=["real", "complex"])
def test_gradients_of_two_orders_agree_with_pytorch(values: np.ndarray, torch: Any) -> None:
    found = []
    for p, x in ((xgrad, leaf(values)), (torch, torch.tensor(values, requires_grad=True))):
        weights, take = p.asarray(WEIGHTS), (p.autograd.grad)
        (g,) = take(_weighted(p, x, weights), x, create_graph=True)
        (h,) = take(p.sum(p.real(g * weights)), x)
        found.append([np.asarray(part.detach().numpy()) for part in (g, h)])
    assert found[0][0].dtype == values.dtype
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("values", MATRICES, ids=["real", "complex"])
def test_sum_and_product_of_eigenvalues_have_the_gradients_of_trace_and_determinant(
    values: np.ndarray, device: str
) -> None:
    for of_values, of_matrix in ((xgrad.sum, linalg.trace), (xgrad.prod, linalg.det)):
        x = leaf(values, device)
        (got,) = grad(xgrad.sum(xgrad.real(of_values(linalg.eigvals(x), axis=-1))), x)
        (want,) = grad(xgrad.sum(xgrad.real(of_matrix(x))), x)
        np.testing.assert_allclose(host(got), host(want), atol=1e-12)


def test_eigenvalues_that_repeat_have_a_gradient_and_their_vectors_none(device: str) -> None:
    values = np.diag([2.0, 2.0, 1.0])
    x = leaf(values, device)
    found = linalg.eig(x)
    (g,) = grad(xgrad.sum(xgrad.real(found.eigenvalues**2)), x, retain_graph=True)
    np.testing.assert_allclose(host(g), 2 * values, atol=1e-12)
    (g,) = grad(xgrad.sum(xgrad.abs(found.eigenvectors + WEIGHTS.real[0, 0, 0])), x)
    assert not np.isfinite(host(g)).all()


def test_defective_matrix_has_no_derivative(device: str) -> None:
    x = leaf([[1.0, 1.0], [0.0, 1.0]], device)
    try:
        (g,) = grad(xgrad.sum(xgrad.abs(linalg.eigvals(x)) * xgrad.asarray([1.0, 2.0], device=device)), x)
    except np.linalg.LinAlgError:
        return
    assert not np.all(np.abs(host(g)) < 1e6)


@pytest.mark.parametrize("values", [np.array([[1.0, np.inf], [0.0, 1.0]]), np.full((2, 2), np.nan)])
def test_matrix_that_is_not_finite_is_refused_on_cpu(values: np.ndarray) -> None:
    for fn in (linalg.eig, linalg.eigvals):
        with pytest.raises(np.linalg.LinAlgError, match=rf"^{fn.__name__}: .*x of shape \(2, 2\), float64"):
            fn(xgrad.asarray(values))


# Phases, which are arbitrary

OF_PHASES = {
    "eig": lambda x: linalg.eig(x).eigenvectors,
    "eigh": lambda x: linalg.eigh(x + xgrad.conj(x.mT)).eigenvectors,
    "svd": lambda x: linalg.svd(x).U,
}


@pytest.mark.parametrize("name", OF_PHASES)
def test_loss_that_depends_on_phases_is_refused_in_the_backward_pass(name: str, device: str) -> None:
    x = leaf(MATRICES[1], device)
    weights = xgrad.asarray(WEIGHTS, device=device)
    for create_graph in (False, True):
        loss = xgrad.sum(xgrad.real(OF_PHASES[name](x) * weights))
        if xgrad.Device(device).backend.asynchronous:
            grad(loss, x, create_graph=create_graph)
            continue
        with pytest.raises(
            RuntimeError, match=f"^{name}: expected a loss that does not depend on the phases"
        ) as caught:
            grad(loss, x, create_graph=create_graph)
        assert any("in the backward pass" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("name", OF_PHASES)
def test_rounding_of_a_large_loss_is_no_dependence_on_phases(name: str, device: str) -> None:
    x = leaf(MATRICES[1].astype(np.complex64), device)
    (g,) = grad(xgrad.sum(1e8 * xgrad.abs(OF_PHASES[name](x)) ** 3), x)
    assert np.isfinite(host(g)).all() and host(g).any()


def test_captured_step_has_the_gradients_of_the_eager_one_and_checks_phases() -> None:
    def step(x: Tensor, weights: Tensor) -> Tensor:
        (g,) = grad(_weighted(xgrad, x, weights), x)
        return g

    captured = xgrad.capture(step)
    for values in (*MATRICES[1], REAL[0] + 2j):
        inputs = leaf(values), xgrad.asarray(WEIGHTS[0])
        np.testing.assert_array_equal(host(captured(*inputs)), host(step(*inputs)))


def test_missing_solver_of_cusolver_says_what_to_do() -> None:
    def without(x: Any) -> Any:
        raise RuntimeError("geev is not available")

    with pytest.raises(RuntimeError, match=r"no geev here: install a newer CUDA, or use x\.to\('cpu'\)"):
        xgrad_cupy._with_geev_hint(without)(np.eye(2))
    assert xgrad_cupy._with_geev_hint(np.linalg.eigvals)(np.eye(2)).tolist() == [1, 1]
