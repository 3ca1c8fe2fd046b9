"""The reference of linear algebra is right, and finer than float64 where long double is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xgrad.parity import exact_linalg as exact

EPS = float(np.finfo(np.longdouble).eps)
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 2), (1, 1), (0, 3, 3), (0, 0), (0, 2), (3, 0)]


def some(shape: tuple[int, ...], kind: str) -> Any:
    random = np.random.default_rng(len(shape) + sum(shape))
    x = random.normal(size=shape) + (1j * random.normal(size=shape) if kind == "complex" else 0)
    return x.astype(np.clongdouble if kind == "complex" else np.longdouble)


def adjoint(x: Any) -> Any:
    return np.conj(x.mT)


def near(got: Any, want: Any) -> bool:
    return np.shape(got) == np.shape(want) and bool(np.all(np.abs(got - want) <= 200 * EPS * (1 + np.abs(want))))


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_the_factors_are_the_matrices(shape: tuple[int, ...], kind: str) -> None:
    x = some(shape, kind)
    count, unit = min(shape[-2:]), np.broadcast_to(np.eye(shape[-2]), (*shape[:-1], shape[-2]))
    u, s, vh = exact.svd(x)
    assert near(u[..., :count] * s[..., None, :] @ vh[..., :count, :], x) and near(adjoint(u) @ u, unit)
    assert np.all(s[..., :-1] >= s[..., 1:]) and np.all(s >= 0) and near(exact.svdvals(x), s)
    q, r = exact.qr(x, mode="complete")
    assert near(q @ r, x) and near(adjoint(q) @ q, unit) and not np.tril(r, -1).any()
    assert near(x @ exact.pinv(x) @ x, x)
    assert np.all(exact.matrix_rank(x) == count)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-1] == shape[-2]])
def test_square_ones(shape: tuple[int, ...], kind: str) -> None:
    x = some(shape, kind)
    n, hermitian, positive = shape[-1], x + adjoint(x), x @ adjoint(x) + np.eye(shape[-1])
    values, vectors = exact.eigh(hermitian)
    assert near(vectors * values[..., None, :] @ adjoint(vectors), hermitian)
    assert np.all(values[..., :-1] <= values[..., 1:]) and near(exact.eigvalsh(hermitian), values)
    low = exact.cholesky(positive)
    assert near(low @ adjoint(low), positive) and not np.triu(low, 1).any()
    assert near(exact.cholesky(positive, upper=True), adjoint(low))
    assert near(exact.inv(positive) @ positive, np.broadcast_to(np.eye(n), shape))
    assert near(exact.solve(positive, x), exact.inv(positive) @ x)
    assert near(exact.det(positive), np.prod(exact.eigvalsh(positive), axis=-1))
    sign, logabsdet = exact.slogdet(x)
    assert near(sign * np.exp(logabsdet), exact.det(x))
