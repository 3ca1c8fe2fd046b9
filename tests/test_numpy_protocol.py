"""Functions of NumPy on tensors, compared with the same functions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from builders import check_error

X = np.asarray([[0.5, -1.5, 2.0], [0.25, 3.0, -0.75]])
Y = np.asarray([[1.5, 0.5, -2.0], [4.0, 0.125, 2.5]])
S = np.asarray([[3.0, 1.0], [1.0, 2.0]])
K = np.asarray([[1, 2, 5], [7, 0, 3]])

CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "exp": (np.exp, (X,)),
    "absolute": (np.absolute, (X,)),
    "fabs of two": (lambda x, y: np.abs(x) + np.sign(y), (X, Y)),
    "add": (np.add, (X, Y)),
    "add a number": (lambda x: np.add(1.5, x), (X,)),
    "power": (lambda x: np.power(np.abs(x), 2.5), (X,)),
    "arctan2": (np.arctan2, (X, Y)),
    "arcsinh": (np.arcsinh, (X,)),
    "conj": (np.conj, (X + 1j * Y,)),
    "maximum": (np.maximum, (X, Y)),
    "divmod": (lambda x, y: np.divmod(x, y)[1], (X, Y)),
    "greater": (np.greater, (X, Y)),
    "logical_and": (lambda x, y: np.logical_and(x > 0, y > 0), (X, Y)),
    "invert": (np.invert, (K,)),
    "left_shift": (np.left_shift, (K, K)),
    "rint": (np.rint, (X,)),
    "matmul": (lambda x, y: np.matmul(x, y.T), (X, Y)),
    "add.reduce": (np.add.reduce, (X,)),
    "multiply.reduce": (lambda x: np.multiply.reduce(x, axis=1, keepdims=True), (X,)),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=None), (X,)),
    "add.accumulate": (np.add.accumulate, (X,)),
    "multiply.outer": (np.multiply.outer, (X, Y)),
    "subtract.outer of a number": (lambda x: np.subtract.outer(2.0, x), (X,)),
    "sum": (np.sum, (X,)),
    "sum by position": (lambda x: np.sum(x, 0), (X,)),
    "mean": (lambda x: np.mean(x, axis=0, keepdims=True), (X,)),
    "max": (lambda x: np.max(x, axis=1), (X,)),
    "amin": (np.amin, (X,)),
    "std with ddof": (lambda x: np.std(x, axis=1, ddof=1), (X,)),
    "argmax": (lambda x: np.argmax(x, axis=1), (X,)),
    "cumsum": (np.cumsum, (X,)),
    "cumprod of an axis": (lambda x: np.cumprod(x, axis=1), (X,)),
    "diff": (np.diff, (X,)),
    "where": (lambda x, y: np.where(x > 0, x, y), (X, Y)),
    "where of one": (lambda x: np.where(x > 0)[1], (X,)),
    "where of an array": (lambda x: np.where(X > 0, x, 0.0), (X,)),
    "concatenate": (lambda x, y: np.concatenate([x, y], 1), (X, Y)),
    "concatenate with an array": (lambda x: np.concatenate((X, x), axis=None), (X,)),
    "stack": (lambda x, y: np.stack([x, y], axis=-1), (X, Y)),
    "vstack": (lambda x: np.vstack([x, x[0]]), (X,)),
    "hstack": (lambda x: np.hstack([x, X]), (X,)),
    "hstack of vectors": (lambda x: np.hstack([x[0], x[1], 2 * x[0, 0]]), (X,)),
    "split": (lambda x: np.split(x, 3, axis=1)[1], (X,)),
    "split at": (lambda x: np.split(x, [1], axis=-1)[1], (X,)),
    "reshape": (lambda x: np.reshape(x, (3, -1)), (X,)),
    "ravel": (np.ravel, (X,)),
    "transpose": (np.transpose, (X,)),
    "transpose by axes": (lambda x: np.transpose(x, (0, 1)), (X,)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), (X,)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), (X,)),
    "squeeze": (lambda x: np.squeeze(x[:1, :, None]), (X,)),
    "squeeze an axis": (lambda x: np.squeeze(x[None], axis=0), (X,)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), (X,)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 2, 3)), (X,)),
    "flip": (np.flip, (X,)),
    "roll": (lambda x: np.roll(x, 1, axis=1), (X,)),
    "repeat": (lambda x: np.repeat(x, 2, 1), (X,)),
    "tile": (lambda x: np.tile(x, (2, 1)), (X,)),
    "take": (lambda x: np.take(x, np.asarray([2, 0]), 1), (X,)),
    "sort": (np.sort, (X,)),
    "argsort": (lambda x: np.argsort(x, 0), (X,)),
    "clip": (lambda x: np.clip(x, -1.0, 1.0), (X,)),
    "clip by name": (lambda x: np.clip(x, a_max=1.0, a_min=-1.0), (X,)),
    "clip from below": (lambda x: np.clip(x, a_min=None, a_max=1.0), (X,)),
    "round": (np.round, (X,)),
    "searchsorted": (lambda x: np.searchsorted(np.sort(x[0]), Y[0], "right"), (X,)),
    "tril": (lambda x: np.tril(x, -1), (X,)),
    "zeros_like": (np.zeros_like, (X,)),
    "full_like": (lambda x: np.full_like(x, 2.0), (X,)),
    "copy": (np.copy, (X,)),
    "shape": (lambda x: np.asarray(np.shape(x)) + np.ndim(x) + np.size(x) + np.size(x, 1), (X,)),
    "dot": (lambda x, y: np.dot(x, np.transpose(y)), (X, Y)),
    "dot of vectors": (lambda x, y: np.dot(x[0], y[0]), (X, Y)),
    "dot of three axes": (lambda x, y: np.dot(x, np.stack([y.T, y.T])), (X, Y)),
    "dot with a number": (lambda x: np.dot(2.0, x), (X,)),
    "inner": (np.inner, (X, Y)),
    "vdot": (np.vdot, (X + 1j * Y, Y - 2j * X)),
    "outer": (np.outer, (X, Y)),
    "cross": (np.cross, (X, Y)),
    "trace": (lambda x: np.trace(np.stack([x, x]), axis1=1, axis2=2), (X,)),
    "diagonal": (lambda x: np.diagonal(np.stack([x, 2 * x]), 1), (X,)),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1], [1])), (X, Y)),
    "meshgrid": (lambda x: np.meshgrid(x[0], x[1], indexing="ij")[1], (X,)),
    "linalg.inv": (np.linalg.inv, (S,)),
    "linalg.det": (np.linalg.det, (S,)),
    "linalg.solve": (lambda s, x: np.linalg.solve(s, x), (S, X)),
    "linalg.cholesky": (np.linalg.cholesky, (S,)),
    "linalg.eigh": (lambda s: np.linalg.eigh(s).eigenvalues, (S,)),
    "linalg.svd": (lambda x: np.linalg.svd(x, full_matrices=False)[1], (X,)),
    "linalg.norm": (np.linalg.norm, (X,)),
    "linalg.norm along an axis": (lambda x: np.linalg.norm(x, 1, axis=-1, keepdims=True), (X,)),
    "linalg.norm of matrices": (lambda x: np.linalg.norm(np.stack([x, x]), "nuc", axis=(0, 2), keepdims=True), (X,)),
    "linalg.norm of a matrix": (lambda x: np.linalg.norm(x, "fro"), (X,)),
    "linalg.matmul": (lambda s, x: np.linalg.matmul(s, x), (S, X)),
    "linalg.pinv": (lambda x: np.linalg.pinv(x, rcond=1e-10), (X,)),
    "fft.fft": (np.fft.fft, (X,)),
    "fft.rfft": (lambda x: np.fft.rfft(x, 4, norm="ortho"), (X,)),
    "ndarray + tensor": (lambda x: Y + x, (X,)),
    "ndarray @ tensor": (lambda x: Y.T @ x, (X,)),
    "ndarray < tensor": (lambda x: np.negative(Y) < x, (X,)),
    "float64 * tensor": (lambda x: np.float64(2) * x, (X,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_function_of_numpy_returns_a_tensor_with_its_values(name: str) -> None:
    function, arrays = CALLS[name]
    expected = function(*arrays)
    got = function(*map(xgrad.asarray, arrays))
    if name != "shape":
        assert isinstance(got, xgrad.Tensor)
        assert got.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


DIFFERENTIABLE = (
    "add, power, arctan2, multiply.outer, mean, std with ddof, cumsum, where, concatenate with an array, hstack, "
    "split, dot of three axes, diagonal, linalg.inv, linalg.norm along an axis, ndarray @ tensor"
)


@pytest.mark.parametrize("name", DIFFERENTIABLE.split(", "))
def test_function_of_numpy_is_differentiable(name: str) -> None:
    function, arrays = CALLS[name]
    assert xgrad.testing.gradcheck(function, [xgrad.asarray(a, requires_grad=True) for a in arrays])


def test_numpy_scalars_do_not_promote() -> None:
    x = xgrad.ones(2)
    for result in (
        np.float64(2) * x,
        np.int64(2) + x,
        np.multiply(np.float64(2), x),
        np.subtract.outer(np.float64(1), x),
    ):
        assert result.dtype == xgrad.float32


def test_ufunc_of_scipy_is_differentiable() -> None:
    special = pytest.importorskip("scipy.special")
    x = xgrad.asarray(X, requires_grad=True)
    for ufunc in (special.erf, special.expit):
        np.testing.assert_allclose(ufunc(x).detach(), ufunc(X), rtol=1e-12)
        assert ufunc(x).requires_grad


OPTION = "xgrad has no counterpart of NumPy's option"
REFUSED = [
    ("np.add(a, t, out=a)", "add: expected no out= … array += tensor"),
    ("a.__iadd__(t)", "add: expected no out= … write array = array + tensor"),
    ("np.exp(t, where=a > 0)", f"exp: {OPTION} where="),
    ("np.add(a, t, casting='unsafe')", f"add: {OPTION} casting="),
    ("np.sum(t, out=a)", f"sum: {OPTION} out="),
    ("np.max(t, initial=1.0)", f"max: {OPTION} initial="),
    ("np.reshape(t, (6,), order='F')", f"reshape: {OPTION} order="),
    ("np.linalg.svd(t, compute_uv=False)", f"linalg.svd: {OPTION} compute_uv="),
    ("np.add.reduce(t, where=a > 0)", f"add.reduce: {OPTION} where="),
    ("np.percentile(t, 50)", "percentile: xgrad has no counterpart … .detach().numpy(), at <string>"),
    ("np.linalg.cond(t)", "linalg.cond: xgrad has no counterpart"),
    ("np.spacing(t)", "spacing: xgrad has no counterpart"),
    ("np.add.at(a, 0, t)", "add.at: xgrad has no counterpart"),
    ("np.save('x', t)", "save: xgrad has no counterpart"),
    ("np.vstack([t, [1.0, 2.0, 3.0]])", "vstack: expected a tensor, an array or a number for tup, got list"),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_function_without_counterpart_is_refused_where_a_gradient_would_be_lost(call: str, error: str) -> None:
    check_error(call, f"TypeError: {error}", np=np, t=xgrad.asarray(X, requires_grad=True), a=np.ones((2, 3)))


def test_function_without_counterpart_is_computed_by_numpy_without_a_gradient() -> None:
    x, a = xgrad.asarray(X), np.ones((2, 3))
    assert np.percentile(x, 50) == np.percentile(X, 50)
    assert np.array_equal(x, X)
    assert np.sum(x, where=X > 0) == np.sum(X, where=X > 0)
    assert type(np.histogram(x, bins=2)[0]) is np.ndarray
    np.testing.assert_equal(np.spacing(x), np.spacing(X))
    np.testing.assert_equal(np.concatenate([x, [[1, 2, 3]]]), np.concatenate([X, [[1, 2, 3]]]))
    np.testing.assert_equal(np.broadcast_arrays(x[0, 0], ["a"])[1], ["a"])
    same = a
    a += x
    assert a is same
    np.testing.assert_equal(a, 1 + X)
    with pytest.raises(TypeError, match="bitwise_and"):
        np.bitwise_and(x, X)


def test_tensors_of_other_devices_do_not_mix_with_arrays_of_numpy() -> None:
    x = xgrad.ones((2, 3), device="strict")
    assert str(np.exp(x).device) == str((np.float32(2) * x).device) == "strict"
    for function in (lambda: X + x, lambda: np.add(x, X), lambda: np.concatenate([X, x])):
        with pytest.raises(xgrad.DeviceError, match="one device"):
            function()
    with pytest.raises(TypeError, match="this tensor is on strict"):
        np.percentile(x, 50)
