"""Functions of NumPy on tensors, compared with the same functions on arrays.

Gradients are compared with finite differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error

X = np.asarray([[0.5, -1.5, 2.0], [0.25, 3.0, -0.75]])
ARRAYS = {
    "x": X,
    "y": np.asarray([[1.5, 0.5, -2.0], [4.0, 0.125, 2.5]]),
    "s": np.asarray([[3.0, 1.0], [1.0, 2.0]]),
    "k": np.asarray([[1, 2, 5], [7, 0, 3]]),
    "z": X + 1j * X[::-1],
}
#: Calls with the tensors `x`, `y` and `z`, which is complex, of shape (2, 3), `s` of shape (2, 2)
#: and integers `k`, or with the same arrays; `a` is the array of `y` in both.
CALLS = [
    "np.exp(x)",
    "np.absolute(x)",
    "np.add(x, y)",
    "np.add(1.5, x)",
    "np.power(np.abs(x), 2.5)",
    "np.arctan2(x, y)",
    "np.arcsinh(x)",
    "np.conj(z)",
    "np.maximum(x, y)",
    "np.divmod(x, y)[1]",
    "np.greater(x, y)",
    "np.logical_and(x > 0, y > 0)",
    "np.invert(k)",
    "np.left_shift(k, k)",
    "np.rint(x)",
    "np.matmul(x, y.T)",
    "np.abs(x) + np.sign(y)",
    "a + x",
    "a.T @ x",
    "np.negative(a) < x",
    "np.float64(2) * x",
    "np.add.reduce(x)",
    "np.multiply.reduce(x, axis=1, keepdims=True)",
    "np.maximum.reduce(x, axis=None)",
    "np.add.accumulate(x)",
    "np.multiply.outer(x, y)",
    "np.subtract.outer(2.0, x)",
    "np.bincount(k[0], y[0], 7)",
    "np.bincount(k[1], minlength=9)",
    "np.corrcoef(x)",
    "np.cov(x)",
    "np.cov(x, ddof=0, aweights=np.abs(y[0]))",
    "np.fmod(x, y)",
    "np.histogram(x, 3, (-1, 1))[0]",
    "np.histogram(x, np.asarray([-2.0, 0.0, 2.0]), weights=y)[0]",
    "np.median(x)",
    "np.median(x, 1, keepdims=True)",
    "np.nan_to_num(x, nan=2.0)",
    "np.nanmean(x, 0)",
    "np.nanmedian(x, axis=0)",
    "np.nansum(x)",
    "np.quantile(x, 0.3)",
    "np.quantile(x, [0.3, 0.9], axis=1, method='lower')",
    "np.sum(x)",
    "np.sum(x, 0)",
    "np.mean(x, axis=0, keepdims=True)",
    "np.max(x, axis=1)",
    "np.amin(x)",
    "np.std(x, axis=1, ddof=1)",
    "np.argmax(x, axis=1)",
    "np.cumsum(x)",
    "np.cumprod(x, axis=1)",
    "np.diff(x)",
    "np.where(x > 0, x, y)",
    "np.where(x > 0)[1]",
    "np.where(a > 0, x, 0.0)",
    "np.concatenate([x, y], 1)",
    "np.concatenate((a, x), axis=None)",
    "np.stack([x, y], axis=-1)",
    "np.vstack([x, x[0]])",
    "np.hstack([x, a])",
    "np.hstack([x[0], x[1], 2 * x[0, 0]])",
    "np.split(x, 3, axis=1)[1]",
    "np.split(x, [1], axis=-1)[1]",
    "np.reshape(x, (3, -1))",
    "np.ravel(x)",
    "np.transpose(x)",
    "np.transpose(x, (0, 1))",
    "np.swapaxes(x, 0, -1)",
    "np.moveaxis(x, 0, 1)",
    "np.squeeze(x[:1, :, None])",
    "np.squeeze(x[None], axis=0)",
    "np.expand_dims(x, 1)",
    "np.broadcast_to(x, (4, 2, 3))",
    "np.flip(x)",
    "np.roll(x, 1, axis=1)",
    "np.repeat(x, 2, 1)",
    "np.tile(x, (2, 1))",
    "np.take(x, np.asarray([2, 0]), 1)",
    "np.sort(x)",
    "np.argsort(x, 0)",
    "np.clip(x, -1.0, 1.0)",
    "np.clip(x, a_max=1.0, a_min=-1.0)",
    "np.clip(x, a_min=None, a_max=1.0)",
    "np.round(x)",
    "np.searchsorted(np.sort(x[0]), a[0], 'right')",
    "np.tril(x, -1)",
    "np.zeros_like(x)",
    "np.full_like(x, 2.0)",
    "np.copy(x)",
    "np.dot(x, np.transpose(y))",
    "np.dot(x[0], y[0])",
    "np.dot(x, np.stack([y.T, y.T]))",
    "np.dot(2.0, x)",
    "np.inner(x, y)",
    "np.vdot(z, z * 2j)",
    "np.outer(x, y)",
    "np.cross(x, y)",
    "np.diagonal(np.stack([x, 2 * x]), 1)",
    "np.trace(np.stack([x, x]), axis1=1, axis2=2)",
    "np.tensordot(x, y, axes=([1], [1]))",
    "np.meshgrid(x[0], x[1], indexing='ij')[1]",
    "np.linalg.inv(s)",
    "np.linalg.det(s)",
    "np.linalg.solve(s, x)",
    "np.linalg.cholesky(s)",
    "np.linalg.eigh(s).eigenvalues",
    "np.linalg.svd(x, full_matrices=False)[1]",
    "np.linalg.norm(x)",
    "np.linalg.norm(x, 1, axis=-1, keepdims=True)",
    "np.linalg.norm(x, 'fro')",
    "np.linalg.norm(np.stack([x, x]), 'nuc', axis=(0, 2), keepdims=True)",
    "np.linalg.matmul(s, x)",
    "np.linalg.pinv(x, rcond=1e-10)",
    "np.fft.fft(x)",
    "np.fft.rfft(x, 4, norm='ortho')",
]


def run(call: str, **tensors: Any) -> Any:
    return eval(call, {"np": np, "a": ARRAYS["y"], **ARRAYS, **tensors})


@pytest.mark.parametrize("call", CALLS)
def test_function_of_numpy_returns_a_tensor_with_its_values(call: str) -> None:
    expected = run(call)
    got = run(call, **{name: xgrad.asarray(array) for name, array in ARRAYS.items()})
    assert isinstance(got, xgrad.Tensor) and got.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


def test_shape_ndim_and_size_of_numpy_take_tensors() -> None:
    x = xgrad.asarray(X)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)


DIFFERENTIABLE = [
    "np.add(x, y)",
    "np.power(np.abs(x), 2.5)",
    "np.arctan2(x, y)",
    "np.multiply.outer(x, y)",
    "np.mean(x, axis=0, keepdims=True)",
    "np.std(x, axis=1, ddof=1)",
    "np.cumsum(x)",
    "np.where(x > 0, x, y)",
    "np.concatenate((a, x), axis=None)",
    "np.hstack([x, a])",
    "np.split(x, 3, axis=1)[1]",
    "a.T @ x",
    "np.dot(x, np.stack([y.T, y.T]))",
    "np.diagonal(np.stack([x, 2 * x]), 1)",
    "np.linalg.inv(y[:, :2])",
    "np.linalg.norm(x, 1, axis=-1, keepdims=True)",
]


@pytest.mark.parametrize("call", DIFFERENTIABLE)
def test_function_of_numpy_is_differentiable(call: str) -> None:
    inputs = [xgrad.asarray(ARRAYS[name], requires_grad=True) for name in "xy"]
    assert xgrad.testing.gradcheck(
        lambda x, y: run(call, x=x, y=y) + 0 * x.sum() + 0 * y.sum(), inputs
    )


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
    (
        "np.percentile(t, 50)",
        "percentile: xgrad has no counterpart … .detach().numpy(), at <string>",
    ),
    ("np.linalg.cond(t)", "linalg.cond: xgrad has no counterpart"),
    ("np.spacing(t)", "spacing: xgrad has no counterpart"),
    ("np.add.at(a, 0, t)", "add.at: xgrad has no counterpart"),
    ("np.save('x', t)", "save: xgrad has no counterpart"),
    (
        "np.vstack([t, [1.0, 2.0, 3.0]])",
        "vstack: expected a tensor, an array or a number for tup, got list",
    ),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_function_without_counterpart_is_refused_where_a_gradient_would_be_lost(
    call: str, error: str
) -> None:
    check_error(
        call,
        f"TypeError: {error}",
        np=np,
        t=xgrad.asarray(X, requires_grad=True),
        a=np.ones((2, 3)),
    )


def test_function_without_counterpart_is_computed_by_numpy_without_a_gradient() -> None:
    x, a = xgrad.asarray(X), np.ones((2, 3))
    assert np.percentile(x, 50) == np.percentile(X, 50)
    assert np.array_equal(x, X)
    assert np.sum(x, where=X > 0) == np.sum(X, where=X > 0)
    assert type(np.histogram2d(x[0], x[1], bins=2)[0]) is np.ndarray
    np.testing.assert_equal(np.cov(x, rowvar=False), np.cov(X, rowvar=False))
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
