"""Functions of NumPy beyond the standard: compared with NumPy and SciPy, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5))
HOLES = np.where(RNG.uniform(size=(4, 5)) < 0.3, np.nan, RNG.normal(size=(4, 5)))
SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, 4.0, -7.0, np.inf, -np.inf, np.nan, 1e300, 5e-324])
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def same(got: xgrad.Tensor, wanted: Any, rtol: float = 1e-12) -> None:
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=rtol, atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", range(1, 9))
def test_quantile_is_that_of_numpy(method: Any, n: int) -> None:
    x, parts = RNG.normal(size=n), [0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.75, 0.99, 1]
    same(
        xgrad.quantile(xgrad.asarray(x), parts, method=method),
        np.quantile(x, parts, method=method),
    )


def test_quantile_of_axes_has_the_shape_of_numpy() -> None:
    x = RNG.normal(size=(2, 3, 4))
    for axis in (None, 0, -1, (0, 2), (2, 0)):
        for keepdims in (False, True):
            for q in (0.3, [0.3], [0.2, 0.9]):
                got = xgrad.quantile(xgrad.asarray(x), q, axis=axis, keepdims=keepdims)
                same(got, np.quantile(x, q, axis=axis, keepdims=keepdims))
            got = xgrad.median(xgrad.asarray(x), axis=axis, keepdims=keepdims)
            same(got, np.median(x, axis=axis, keepdims=keepdims))


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty")
def test_functions_that_ignore_nans_are_those_of_numpy() -> None:
    x = np.concatenate([HOLES, np.full((1, 5), np.nan)])
    for axis in (None, 0, 1, (0, 1)):
        for name in ("nansum", "nanmean", "nanmedian"):
            got = getattr(xgrad, name)(xgrad.asarray(x), axis=axis)
            same(got, getattr(np, name)(x, axis=axis))
    same(xgrad.nansum(xgrad.asarray([1, 2])), 3)


def test_medians_of_infinities_and_nans() -> None:
    inf, nan = np.inf, np.nan
    for row in ([inf, inf], [-inf, -inf, 1.0], [1.0, inf], [nan, 1.0, 2.0], [1.0, nan]):
        same(xgrad.median(xgrad.asarray(row)), np.median(row))
    assert xgrad.quantile(xgrad.asarray([inf, inf]), 0.3).item() == inf
    assert xgrad.median(xgrad.asarray([0.0, 5e-324, 1.0], dtype=xgrad.float64)).item() == 5e-324
    assert xgrad.quantile(xgrad.asarray([1.0, nan, 2.0]), [0.0, 1.0]).isnan().all()
    assert xgrad.median(xgrad.asarray([1, 2])).item() == 1.5
    assert xgrad.median(xgrad.asarray([1e308, 1.5e308], dtype="float64")).item() == 1.25e308
    assert xgrad.median(xgrad.zeros((0, 3)), axis=1).shape == (0,)
    assert xgrad.quantile(xgrad.zeros((0, 3)), [0.5], axis=1).shape == (1, 0)


@pytest.mark.parametrize("method", ["lower", "higher", "nearest"])
def test_quantile_that_is_an_element_ignores_infinite_neighbours(method: Any) -> None:
    x, parts = np.array([-np.inf, 1.0, 2.0, np.inf]), [0.1, 0.2, 0.4, 0.6, 0.9]
    got = xgrad.quantile(xgrad.asarray(x), parts, method=method)
    same(got, np.quantile(x, parts, method=method))


def test_median_gives_its_gradient_to_the_middle() -> None:
    x = xgrad.asarray([4.0, 1.0, 2.0, 9.0], requires_grad=True)
    xgrad.median(x).backward()
    assert x.grad is not None and x.grad.tolist() == [0.5, 0, 0.5, 0]
    x = xgrad.asarray([4.0, np.nan, 2.0, 9.0], requires_grad=True)
    xgrad.nanmedian(x).backward()
    assert x.grad is not None and x.grad.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fmod_of_special_values_is_that_of_numpy(dtype: str) -> None:
    with np.errstate(all="ignore"):
        special = SPECIAL.astype(dtype)
        first, second = (x.ravel() for x in np.meshgrid(special, special))
        wanted = np.fmod(first, second)
        got = xgrad.fmod(xgrad.asarray(first), xgrad.asarray(second)).numpy()
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(wanted)[got == 0])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_fmod_of_integers_is_that_of_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 1, 2, 7, limits.max - 1], dtype)
    first, second = (x.ravel() for x in np.meshgrid(values, values))
    keep = (second != 0) & ~((first == limits.min) & (second.astype("int64") == -1))
    first, second = first[keep], second[keep]
    got = xgrad.fmod(xgrad.asarray(first), xgrad.asarray(second))
    np.testing.assert_array_equal(got.numpy(), np.fmod(first, second))


def test_nan_to_num_is_that_of_numpy() -> None:
    for dtype in ("float32", "float64"):
        x = SPECIAL[:-2].astype(dtype)
        for options in ({}, {"nan": 2.0, "posinf": 3.0}, {"neginf": -1}):
            got = xgrad.nan_to_num(xgrad.asarray(x), **options)
            np.testing.assert_array_equal(got.numpy(), np.nan_to_num(x, **options))
    z = np.zeros(len(SPECIAL), complex)
    z.real, z.imag = SPECIAL, SPECIAL[::-1]
    np.testing.assert_array_equal(xgrad.nan_to_num(xgrad.asarray(z)).numpy(), np.nan_to_num(z))
    assert xgrad.nan_to_num(xgrad.asarray([1, 2])).tolist() == [1, 2]


def test_bincount_is_that_of_numpy() -> None:
    x = RNG.integers(0, 6, 50)
    weights = RNG.normal(size=50)
    for options in ({}, {"minlength": 9}, {"weights": weights}):
        tensors = {k: xgrad.asarray(v) if k == "weights" else v for k, v in options.items()}
        same(xgrad.bincount(xgrad.asarray(x), **tensors), np.bincount(x, **options))
    assert xgrad.bincount(xgrad.asarray(x.astype("uint8"))).dtype == xgrad.int64
    assert xgrad.bincount(xgrad.asarray([], dtype=xgrad.int64)).shape == (0,)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_is_that_of_numpy(density: bool, weighted: bool) -> None:
    x = np.concatenate([RNG.normal(size=90), np.arange(-2, 3), np.arange(-2, 3) / 4])
    weights = RNG.uniform(size=100) if weighted else None
    tensor = None if weights is None else xgrad.asarray(weights)
    for options in (
        {},
        {"bins": 1},
        {"bins": 17},
        {"bins": 8, "range": (-1, 1)},
        {"bins": [-2.0, -0.5, 0.0, 0.25, 2.0]},
    ):
        hist, edges = xgrad.histogram(
            xgrad.asarray(x),
            weights=tensor,
            density=density,
            **options,  # type: ignore[arg-type]
        )
        keywords: Any = {**options, "weights": weights, "density": density}
        wanted = np.histogram(x, **keywords)
        same(edges, wanted[1])
        same(hist, wanted[0])
        if not (density or weighted):
            assert hist.dtype == xgrad.int64
    same(xgrad.histogram(xgrad.asarray([]), bins=3)[0], [0, 0, 0])
    same(xgrad.histogram(xgrad.asarray([2, 2]), bins=3)[1], np.histogram([2, 2], bins=3)[1])
    hist, _ = xgrad.histogram(xgrad.asarray([np.nan, 0.5]), bins=2, range=(0, 1))
    assert hist.tolist() == [0, 1]


def test_cov_and_corrcoef_are_those_of_numpy() -> None:
    counts, weights = np.array([1, 2, 1, 3, 1]), RNG.uniform(0.5, 1, 5)
    z = X + 1j * X[::-1]
    for x in (X, X[0], z):
        same(xgrad.cov(xgrad.asarray(x)), np.cov(x))
        same(xgrad.cov(xgrad.asarray(x), correction=0), np.cov(x, ddof=0))
        same(xgrad.corrcoef(xgrad.asarray(x)), np.corrcoef(x))
    for options in ({"fweights": counts}, {"aweights": weights}):
        tensors = {k: xgrad.asarray(v) for k, v in options.items()}
        same(xgrad.cov(xgrad.asarray(X), **tensors), np.cov(X, **options))  # type: ignore[arg-type]
    both = xgrad.cov(
        xgrad.asarray(X), fweights=xgrad.asarray(counts), aweights=xgrad.asarray(weights)
    )
    same(both, np.cov(X, fweights=counts, aweights=weights))
    assert xgrad.cov(xgrad.asarray([[1.0]])).isnan()


def test_cdist_is_that_of_scipy_with_no_nan_gradients() -> None:
    distance = pytest.importorskip("scipy.spatial.distance", reason="needs scipy")
    x, y = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
    for p in (0.5, 1, 2, 3.5):
        same(
            xgrad.cdist(xgrad.asarray(x), xgrad.asarray(y), p=p),
            distance.cdist(x, y, "minkowski", p=p),
        )
    same(
        xgrad.cdist(xgrad.asarray(x), xgrad.asarray(y), p=np.inf),
        distance.cdist(x, y, "chebyshev"),
    )
    near = xgrad.asarray([[1e4, 0.0], [1e4 + 1e-3, 0.0]])
    same(xgrad.cdist(near, near)[0, 1], abs(near.numpy()[0, 0] - near.numpy()[1, 0]), 1e-6)
    for p in (0, 0.5, 1, 2, 3, np.inf):
        z = xgrad.asarray(x, requires_grad=True)
        xgrad.cdist(z, z, p=p).sum().backward()
        assert z.grad is not None and z.grad.isfinite().all()


def test_indices_of_triangles_are_those_of_numpy() -> None:
    for n in (0, 1, 4):
        for k in (-2, 0, 1):
            for m in (None, 0, 3):
                for name in ("tril_indices", "triu_indices"):
                    got = getattr(xgrad, name)(n, k=k, m=m)
                    for a, b in zip(got, getattr(np, name)(n, k, m), strict=True):
                        assert a.dtype == xgrad.int64
                        same(a, b)


def test_trapezoid_is_that_of_scipy() -> None:
    integrate = pytest.importorskip("scipy.integrate", reason="needs scipy")
    grid = np.sort(RNG.uniform(size=5))
    same(xgrad.trapezoid(xgrad.asarray(X)), integrate.trapezoid(X))
    same(xgrad.trapezoid(xgrad.asarray(X), axis=0, dx=0.5), integrate.trapezoid(X, axis=0, dx=0.5))
    same(xgrad.trapezoid(xgrad.asarray(X), x=xgrad.asarray(grid)), integrate.trapezoid(X, grid))
    same(xgrad.trapezoid(xgrad.asarray(X), x=xgrad.asarray(X + 1)), integrate.trapezoid(X, X + 1))
    same(xgrad.trapezoid(xgrad.zeros((0, 2)), axis=0), [0, 0])


def test_interp_is_that_of_numpy() -> None:
    inf, nan = np.inf, np.nan
    points = np.array([-1.0, 0.0, 0.5, 0.5, 3.0])
    values = RNG.normal(size=5)
    x = np.array([[-5.0, -1.0, -0.25, 0.0, 0.5], [0.6, 2.9, 3.0, 4.0, inf], [-inf, 0.1, 1, 2, nan]])
    tensors = [xgrad.asarray(a) for a in (x, points, values)]
    same(xgrad.interp(*tensors), np.interp(x, points, values))
    got = xgrad.interp(*tensors, left=7, right=-7.0)
    same(got, np.interp(x, points, values, left=7, right=-7.0))
    one = xgrad.interp(tensors[0][:2], tensors[1][:1], tensors[2][:1])
    same(one, np.interp(x[:2], points[:1], values[:1]))
    leaves = [a.clone().requires_grad_() for a in tensors]
    xgrad.nansum(xgrad.interp(*leaves)).backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


INTERPOLATED = {  # points, values, x
    "equal last points": ([0.0, 1.0, 1.0], [0.0, 1.0, 5.0], [0.5, 1.0, 2.0]),
    "equal first points": ([0.0, 0.0, 1.0], [3.0, 1.0, 5.0], [-1.0, 0.0, 0.5]),
    "equal points": ([1.0, 1.0], [2.0, 5.0], [0.0, 1.0, 2.0]),
    "equal infinities": ([0.0, 1.0], [np.inf, np.inf], [-1.0, 0.0, 0.5, 1.0, 2.0]),
    "an infinity after": ([0.0, 1.0, 2.0], [1.0, -np.inf, 3.0], [0.0, 0.5, 1.0, 2.0]),
    "a NaN after": ([0.0, 1.0, 2.0], [1.0, np.nan, 3.0], [0.0, 0.5, 1.0, 1.5, 2.0]),
    "an infinite point": ([0.0, 1.0, np.inf], [2.0, 3.0, 4.0], [0.5, 1.0, 5.0, np.inf]),
}


@pytest.mark.parametrize("name", INTERPOLATED)
def test_interp_of_equal_points_and_infinities_is_that_of_numpy(name: str) -> None:
    points, values, x = map(np.asarray, INTERPOLATED[name])
    got = xgrad.interp(*[xgrad.asarray(a) for a in (x, points, values)])
    same(got, np.interp(x, points, values))


def test_functions_have_the_values_of_a_captured_step() -> None:
    x = xgrad.asarray(X)
    for function in (
        xgrad.median,
        xgrad.nanmedian,
        xgrad.cov,
        lambda x: xgrad.quantile(x, [0.2, 0.7], axis=1),
        lambda x: xgrad.histogram(x, bins=4).hist,
        lambda x: xgrad.histogram(x, bins=4, range=(-1, 1), density=True).hist,
    ):
        step = xgrad.capture(function)
        for scale in (1.0, 2.0):
            np.testing.assert_array_equal(step(x * scale).numpy(), function(x * scale).numpy())


ERRORS = [
    ("xp.quantile(x, 1.5)", "ValueError: quantile: expected q from 0 to 1, got 1.5"),
    ("xp.quantile(x, [0.5, -1])", "ValueError: quantile: expected q from 0 to 1, got [0.5, -1]"),
    ("xp.quantile(x, float('nan'))", "ValueError: quantile: expected q from 0 to 1, got nan"),
    ("xp.quantile(x, 'a')", "TypeError: quantile: expected a float or a sequence of floats for q"),
    ("xp.quantile(x, x)", "TypeError: quantile: … use q.tolist()"),
    ("xp.quantile(x, 0.5, method='best')", "ValueError: quantile: expected one of ('linear'"),
    ("xp.quantile(x[:0], 0.5)", "ValueError: quantile: expected at least one element, got shape"),
    ("xp.median(x, axis=5)", "IndexError: median: expected axis from -2 to 1 for x of shape"),
    ("xp.median(x[:0])", "ValueError: median: expected at least one element"),
    ("xp.median(1j * x)", "TypeError: median: expected real numbers for x, got complex"),
    ("xp.nan_to_num(x, nan='a')", "TypeError: nan_to_num: expected a number for nan, got 'a'"),
    ("xp.nan_to_num(x, posinf='a')", "TypeError: nan_to_num: expected a number for posinf"),
    ("xp.bincount(x[0])", "TypeError: bincount: expected x of integers, got float64"),
    ("xp.bincount(k - 1)", "ValueError: bincount: expected x without negative elements, got -1"),
    ("xp.bincount(k.reshape(1, 3))", "ValueError: bincount: expected x with one axis, got shape"),
    ("xp.bincount(k, minlength=-1)", "ValueError: bincount: expected minlength of 0 or more"),
    ("xp.bincount(k, weights=x)", "ValueError: bincount: expected weights of the shape of x, (3,)"),
    ("xp.histogram(x, bins=0)", "ValueError: histogram: expected bins of 1 or more, got 0"),
    ("xp.histogram(x, bins=[1.0, 0.0])", "ValueError: histogram: expected edges in ascending or"),
    ("xp.histogram(x, bins=[1.0])", "ValueError: histogram: expected an int, or two or more edges"),
    ("xp.histogram(x, range=(1, 0))", "ValueError: histogram: expected two finite numbers in asc"),
    ("xp.histogram(x, range=3)", "ValueError: histogram: expected two numbers for range, got 3"),
    ("xp.histogram(x / 0 * 0)", "ValueError: histogram: expected finite elements of x, or a range"),
    ("xp.histogram(x, bins=[0, 1], range=(0, 1))", "ValueError: histogram: expected range=None"),
    ("xp.histogram(x, density=1)", "TypeError: histogram: expected a bool for density, got 1"),
    ("xp.histogram(x, weights=k)", "ValueError: histogram: expected weights of the shape of x"),
    ("xp.nansum(x, axis=2)", "IndexError: nansum: expected axis from -2 to 1 for x of shape"),
    ("xp.nanmean(x, axis=(0, 0))", "ValueError: nanmean: expected different axes for axis, got"),
    ("xp.histogram(x, bins='auto')", "TypeError: histogram: expected an int, or edges, for bins"),
    ("xp.cov(xp.ones((2, 2, 2)))", "ValueError: cov: expected x with one or two axes, got shape"),
    ("xp.cov(x, fweights=x[0])", "TypeError: cov: expected fweights of integers, got float64"),
    (
        "xp.cov(x[:, :3], fweights=k - 1)",
        "ValueError: cov: expected fweights of 0 or more, got negative on",
    ),
    ("xp.cov(x, aweights=-x[0] ** 2)", "ValueError: cov: expected aweights of 0 or more, got nega"),
    ("xp.cov(x, aweights=x)", "ValueError: cov: expected aweights of shape (5,), one an observ"),
    ("xp.cdist(x, x[0])", "ValueError: cdist: expected x1 and x2 of shapes (..., m, features)"),
    ("xp.cdist(x, x, p=-1)", "ValueError: cdist: expected p of 0 or more, got -1"),
    ("xp.trapezoid(x, x=k)", "ValueError: trapezoid: expected x of shape (3, 5) or (5,), got (3,)"),
    ("xp.interp(x, x, x)", "ValueError: interp: expected xp and fp of one shape (n,), with n of 1"),
    ("xp.interp(x, x[0], x[0], left='a')", "TypeError: interp: expected a number for left, got"),
    ("xp.interp(1j * x, x[0], x[0])", "TypeError: interp: expected real numbers for x, got compl"),
    ("xp.tril_indices(-1)", "ValueError: tril_indices: expected n and m of 0 or more, got -1 and"),
    ("xp.triu_indices(2.0)", "TypeError: triu_indices: expected an int for n, got 2.0"),
    ("xp.fmod(1j * x, 2)", "TypeError: fmod: expected real numbers"),
    ("x.softmax(1, dtype='int64')", "TypeError: softmax: expected a floating dtype, got 'int64'"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("call", "expected"), ERRORS)
def test_errors_say_what_was_expected_and_got(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.asarray(X), k=xgrad.asarray([0, 2, 1]))
