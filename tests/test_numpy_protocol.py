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
    "np.nan_to_num(k)",
    "np.nan_to_num(z + np.nan)",
    "np.nansum(k, axis=1)",
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


#: Calls with the same tensors of which each is compared with finite differences, too. Together with
#: `CALLS`, they have the functions with a gradient in HIPS autograd, but for its `odeint`.
ALSO_DIFFERENTIABLE = """
np.atleast_1d(x[0, 0]); np.atleast_2d(x[0]); np.atleast_3d(x[0, 0]); np.atleast_3d(x[0])
np.atleast_3d(x); np.atleast_3d(x[None]); np.atleast_1d(x[0], y)[1]
np.tile(x, 2); np.tile(x, [2, 1, 2]); np.repeat(x[0], [1, 0, 2]); np.repeat(x, 2)
np.take(x, 1); np.take(x, [4, 0, -1]); np.take(x, -1, axis=1); np.take(x, [[0, 1], [1, 0]], axis=0)
np.take(x, [[2, 1]], axis=-1)
np.append(x, y); np.append(x[0], 1.0); np.append(x, y, axis=0)
np.append(x, [[1.0, 2.0, 3.0]], axis=0)
np.einsum('ij,kj->ik', x, y); np.einsum(x, [0, 1], y, [2, 1], [0, 2]); np.einsum(x, [1, 0])
np.einsum(x, [0, 1], y, [0, 1]); np.einsum(x, [..., 3], y, [..., 3])
np.einsum('ij,kj,kl->il', x, y, s, optimize=True)
np.tensordot(x, y, axes=[[0, 1], [0, 1]]); np.tensordot(x, y, axes=(1, 1)); np.tensordot(x, y, 0)
np.split(x[0], [1, 2])[1]; np.array_split(x[0], 2)[0]; np.array_split(x, 2, axis=1)[1]
np.array_split(x[0], [1])[1]; np.vsplit(x, 2)[1]; np.hsplit(x, 3)[1]; np.hsplit(x[0], 3)[2]
np.dsplit(np.stack([x, y]), 3)[1]
np.vstack((x[0], y[0])); np.hstack((x[0], y[0])); np.dstack([x, y]); np.dstack([x[0], y[0]])
np.column_stack([x[0], y[1]]); np.column_stack([x, x[:, 0]]); np.stack([x, y], 1)
np.block([[x, y], [y, x]]); np.block([x[0], y[1]]); np.block([[x[:, :1], s], [y]])
np.select([x > 0, y > 0], [x**2, y]); np.select([x > 1], [x], default=2.0)
np.trace(s * x[0, 0]); np.trace(x, 1); np.kron(x, y); np.kron(x[0], y); np.outer(x[0], y[0])
np.inner(x, y); np.inner(x[0], y[0]); np.dot(x, y.T); np.dot(np.stack([x, y]), y[0])
np.vdot(x, y); np.cross(x, y); np.matvec(x, y[0]); np.vecmat(x[:, 0], y)
np.rot90(x); np.rot90(x, 2); np.rot90(x, 3); np.rot90(x, -5); np.rot90(np.stack([x, y]), 1, (1, 2))
np.rot90(x, 4); np.fliplr(x); np.flipud(x); np.flip(x, 0); np.roll(x, 1); np.roll(x, (1, 2), (0, 1))
np.rollaxis(np.stack([x, y]), 2); np.rollaxis(np.stack([x, y]), 0, 2)
np.rollaxis(np.stack([x, y]), -1, -2)
np.linalg.slogdet(s * np.exp(x[0, 0]))[1]; np.linalg.det(s * x[0, 0]); np.linalg.inv(y[:, :2])
np.linalg.solve(s + 0 * x[0, 0], x); np.linalg.solve(y[:, :2], x[:, 0])
np.linalg.eigh(s * np.exp(x[0, 0]), 'U')[0]; np.linalg.eigvalsh(s * np.exp(x[0, 0]))
np.linalg.eigh(np.dot(x, x.T))[0]; np.linalg.cholesky(np.dot(x, x.T) + s)
np.linalg.svd(x, compute_uv=False); np.linalg.pinv(x); np.linalg.norm(x, 'nuc')
np.linalg.norm(x[0], np.inf); np.linalg.matrix_power(y[:, :2], 3)
np.linalg.multi_dot([x, y.T, x[:, :2]]); np.linalg.multi_dot([x[:, 0], y, x[0]])
abs(np.fft.fft(x)); abs(np.fft.fft(x, 4, 0)); np.real(np.fft.ifft(x)); abs(np.fft.fft2(x))
abs(np.fft.fft2(np.stack([x, y]), axes=(0, 1))); np.real(np.fft.ifft2(x, s=(3, 3)))
abs(np.fft.fftn(x)); np.real(np.fft.ifftn(x)); abs(np.fft.rfft(x)); abs(np.fft.rfft2(x))
abs(np.fft.rfftn(x)); np.fft.irfft(np.fft.rfft(x), 3); np.fft.irfft2(x); np.fft.irfftn(x)
np.fft.fftshift(x); np.fft.ifftshift(x, 1)
np.reshape(x, (3, 2), order='F'); np.reshape(x, -1); np.ravel(x, order='F'); np.diag(x[0], 1)
np.diagflat(x); np.diff(x[0], prepend=0.0); np.diff(x, 2, 0); np.diff(x, append=y)
np.diff(x, prepend=0.0, append=1.0, axis=0); np.gradient(x[0]); np.gradient(x, 0.5, axis=1)
np.trapezoid(x); np.trapezoid(x, dx=0.5, axis=0); np.trapezoid(x[0], y[0]); np.trapezoid(x, y)
np.trapezoid(y, x[:, 0], axis=0)
np.average(x); np.average(x, axis=0); np.average(x, axis=1, weights=np.exp(y))
np.average(x, axis=1, weights=np.exp(y[0])); np.average(x, weights=np.exp(y), keepdims=True)
np.nansum(x, axis=1); np.nansum(np.where(x > 2.5, np.nan, x))
np.nanmean(np.where(x > 2.5, np.nan, x), 0)
np.ptp(x); np.ptp(x, axis=1, keepdims=True); np.var(x, 0, ddof=1); np.prod(x, axis=1)
np.nan_to_num(x); np.nan_to_num(np.where(x > 2.5, np.inf, x), posinf=7.0)
np.nan_to_num(np.where(x > 2.5, np.nan, x), nan=3.0); np.nan_to_num(np.where(x > 2.5, -np.inf, x))
np.fmax(x, y); np.fmin(x, np.where(y > 0, np.nan, y)); np.fmax(x, 0.5); np.fmin(1, x)
np.array_split(x, np.int64(2), axis=-1)[1]; np.rollaxis(np.stack([x, y]), -1, 3)
np.logaddexp(x, y); np.logaddexp2(x, y)
np.angle(x + 1j * y); np.angle(x + 1j * y, deg=True); np.fabs(x); np.deg2rad(x); np.radians(x)
np.rad2deg(x); np.degrees(x); np.sinc(x); np.pad(x, ((1, 0), (0, 2))); np.partition(x[0], 1)
np.sort(x, 0); np.clip(x, -1, 1); np.hypot(x, y); np.mod(x, 1.3)
np.exp2(x); np.expm1(x); np.log1p(np.abs(x)); np.log2(np.abs(x)); np.log10(np.abs(x))
np.arcsin(x / 4); np.arccos(x / 4); np.arctan(x); np.arccosh(np.abs(x) + 2); np.arctanh(x / 4)
np.sinh(x); np.cosh(x); np.tanh(x); np.tan(x / 4); np.sqrt(np.abs(x)); np.square(x)
np.reciprocal(x); np.broadcast_arrays(x, y[0])[1]; np.full_like(x, 2.0) * x
"""


def calls() -> list[str]:
    """Return the calls of `ALSO_DIFFERENTIABLE` that this version of NumPy has."""
    parts = [x.strip() for x in ALSO_DIFFERENTIABLE.replace("\n", ";").split(";")]
    return [
        x for x in parts if x and hasattr(np, x.split("np.")[1].partition("(")[0].split(".")[0])
    ]


def run(call: str, **tensors: Any) -> Any:
    return eval(call, {"np": np, "a": ARRAYS["y"], **ARRAYS, **tensors})


@pytest.mark.parametrize("call", [*CALLS, *calls()])
def test_function_of_numpy_returns_a_tensor_with_its_values(call: str) -> None:
    expected = run(call)
    got = run(call, **{name: xgrad.asarray(array) for name, array in ARRAYS.items()})
    assert isinstance(got, xgrad.Tensor) and got.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


def test_fix_of_numpy_takes_tensors_as_trunc_does() -> None:
    # of an array, NumPy 2.5 calls it deprecated
    got = run("np.fix(x)", x=xgrad.asarray(ARRAYS["x"]))
    np.testing.assert_array_equal(np.asarray(got), np.trunc(ARRAYS["x"]))


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


@pytest.mark.parametrize("call", [*DIFFERENTIABLE, *calls()])
def test_function_of_numpy_is_differentiable(call: str) -> None:
    inputs = [xgrad.asarray(ARRAYS[name], requires_grad=True) for name in "xy"]
    assert xgrad.testing.gradcheck(
        lambda x, y: run(call, x=x, y=y) + 0 * x.sum() + 0 * y.sum(), inputs
    )


def test_questions_about_a_tensor_with_a_gradient_are_answered_by_plain_values() -> None:
    x = xgrad.asarray(X, requires_grad=True)
    assert np.isrealobj(x) is True and np.iscomplexobj(x) is False
    assert np.flatnonzero(x > 0).tolist() == np.flatnonzero(X > 0).tolist()
    assert np.argwhere(x > 0).tolist() == np.argwhere(X > 0).tolist()
    assert np.allclose(x, X) is True
    with pytest.raises(ValueError, match="select: expected one condition or more, and as many"):
        np.select([x > 0], [x, x])
    with pytest.raises(ValueError, match="split: expected a length that 2 divides, got 3"):
        np.hsplit(x, 2)


def test_average_of_infinities_is_infinite() -> None:
    weights = np.asarray([1.0, 3.0])
    for row in ([np.inf, 1.0], [-np.inf, 1.0]):
        got = np.average(xgrad.asarray(row), weights=weights)
        np.testing.assert_array_equal(np.asarray(got), np.average(row, weights=weights))


@pytest.mark.parametrize(
    "call",
    [
        "np.take(t, [0], axis=2)",
        "np.rollaxis(t, 2)",
        "np.rollaxis(t, 0, 3)",
        "np.trapezoid(t, axis=2)",
        "np.split(t, -1)",
        "np.split(t, 0)",
        "np.array_split(t, 0)",
        "np.vsplit(t[0], 3)",
        "np.block([[t], t])",
        "np.block([t, [t]])",
        "np.block([])",
        "np.block([[t], []])",
        "np.select([], [])",
    ],
)
def test_wrong_call_of_numpy_is_refused_for_tensors_too(call: str) -> None:
    for t in (X, xgrad.asarray(X, requires_grad=True)):
        with pytest.raises((ValueError, IndexError, ZeroDivisionError)):
            eval(call, {"np": np, "t": t})


def test_numpy_scalars_do_not_promote() -> None:
    x = xgrad.ones(2)
    for result in (
        np.float64(2) * x,
        np.int64(2) + x,
        np.multiply(np.float64(2), x),
        np.subtract.outer(np.float64(1), x),
        np.fmax(np.float64(2), x),
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
    ("np.reshape(t, (6,), order='A')", "reshape: expected order 'C' or 'F', got 'A'"),
    ("np.ravel(t, order='K')", "ravel: expected order 'C' or 'F', got 'K'"),
    ("np.take(t, 1, mode='clip')", f"take: {OPTION} mode="),
    ("np.linalg.svd(t, hermitian=True)", f"linalg.svd: {OPTION} hermitian="),
    ("np.average(t, axis=None, weights=a[0])", "average: expected weights of the shape of a, or"),
    ("np.average(t, weights=a, returned=True)", f"average: {OPTION} returned="),
    ("np.nan_to_num(t, copy=False)", f"nan_to_num: {OPTION} copy="),
    ("np.unique(t)", "unique: … write xgrad.unique_values, or give .detach().numpy(), at"),
    ("np.extract(a > 0, t)", "extract: … write x[mask], or give .detach().numpy(), at <string>"),
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
