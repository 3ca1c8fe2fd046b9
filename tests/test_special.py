"""Special functions: values by mpmath and SciPy, derivatives by mpmath and finite differences.

Special points, refusals and missing packages are tested, too.
"""

from __future__ import annotations

import inspect
import itertools
import math
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64, on
from xgrad import Tensor, special
from xgrad.autograd import grad
from xgrad.ops.special.gamma_quantiles import gamma_quantile_slope
from xgrad.parity.mpmath_reference import SpecialFunctions
from xgrad.testing import gradcheck, gradgradcheck

scipy = pytest.importorskip("scipy", reason="needs SciPy")
sc = pytest.importorskip("scipy.special", reason="needs SciPy")

quiet = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")

REAL = [-3.7, -1.0, -0.3, -1e-3, 0.0, 1e-8, 0.4, 1.0, 2.6, 7.5]
POSITIVE = [1e-3, 0.2, 0.9, 1.0, 1.7, 4.0, 9.5]
PROBABILITIES = [1e-6, 0.03, 0.4, 0.5, 0.8, 0.999]
SHAPES = [0.5, 1.0, 2.5, 4.0, 9.0, 3.0]
Columns = tuple[list[int] | list[float], ...]
KERNELS: dict[str, Columns] = {
    **dict.fromkeys(
        "erf erfc ndtr log_ndtr exp2 exp10 cosm1 i0 i0e i1 i1e j0 j1 cbrt".split(), (REAL,)
    ),
    **dict.fromkeys("gammaln loggamma psi exp1 expi y0 y1 k0 k0e k1 k1e".split(), (POSITIVE,)),
    "erfcx": ([-2.0, -0.3, 0.0, 1.0, 40.0],),
    "erfinv": ([-0.99, -0.5, 0.0, 1e-6, 0.7],),
    "erfcinv": ([1e-6, 0.3, 1.0, 1.9],),
    **dict.fromkeys(("ndtri", "logit"), (PROBABILITIES,)),
    **dict.fromkeys(("gamma", "gammasgn"), ([-2.5, -0.3, *POSITIVE],)),
    "beta": (POSITIVE[1:], POSITIVE[:0:-1]),
    "betaln": (POSITIVE, POSITIVE[::-1]),
    **dict.fromkeys(("gammainc", "gammaincc"), (SHAPES, [0.0, 1e-3, 0.7, 5.0, 9.0, 20.0])),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), (SHAPES, PROBABILITIES)),
    **dict.fromkeys(
        ("betainc", "betaincc", "betaincinv"),
        (SHAPES, [1.0, 0.5, 3.0, 4.0, 0.7, 2.0], PROBABILITIES),
    ),
    "polygamma": ([0, 1, 2, 5], [0.3, 1.0, 4.5, 1.0]),
    "zeta": ([2.0, 3.5, 1.5], [1.0, 0.3, 7.0]),
    **dict.fromkeys(("iv", "ive", "jv"), ([0.0, 1.0, 2.0, 3.0], [-2.0, 0.0, 0.5, 3.0])),
    **dict.fromkeys(("yv", "kv", "kve"), ([0.0, 1.0, 2.5, 3.0], [2.0, 0.3, 0.5, 3.0])),
}
P, X, COUNT, TRIALS = [0.2, 0.5, 0.7], [0.5, 1.0, 2.0], [0, 1, 2], [5, 6, 7]
DISTRIBUTIONS: dict[str, Columns] = {
    **dict.fromkeys("bdtr bdtrc bdtri nbdtr nbdtrc nbdtri".split(), (COUNT, TRIALS, P)),
    **dict.fromkeys("pdtr pdtrc expn yn".split(), (COUNT, X)),
    "pdtri": (COUNT, P),
    "lpmv": (COUNT, [2.0, 3.0, 4.0], P),
    **dict.fromkeys("chdtr chdtrc".split(), ([1.0, 2.5, 4.0], X)),
    **dict.fromkeys("gdtr gdtrc fdtr fdtrc hyp1f1".split(), (X, [1.0, 2.5, 4.0], X)),
    "chdtri": (X, P),
    "fdtri": (X, X, P),
    "hyp2f1": (X, X, [1.0, 2.5, 4.0], P),
    "stdtr": ([1.0, 2.5, 4.0], [-2.0, 0.0, 0.5]),
    "stdtrit": ([1.0, 2.5, 4.0], [0.1, 0.3, 0.7]),
    **dict.fromkeys("boxcox boxcox1p inv_boxcox inv_boxcox1p".split(), (X, [0.0, 0.5, 2.0])),
    "binom": ([5.0, 4.5, 3.0], [2.0, 1.5, 3.0]),
    "poch": (X, [2.0, 0.5, 3.0]),
    "radian": ([90.0, 45.0, 0.0], [30.0, 0.0, 1.0], [0.0, 6.0, 1.0]),
    "exprel": ([0.0, 1e-5, -1.0],),
    "spence": ([1.0, 0.5, 1.5],),
    "rgamma": (X,),
    **dict.fromkeys("ellipk ellipkm1".split(), (P,)),
    **dict.fromkeys("sindg cosdg tandg cotdg".split(), ([30.0, 45.0, 80.0],)),
}
CASES = KERNELS | DISTRIBUTIONS
BINARY = {"xlogy", "xlog1py", "rel_entr", "kl_div", "huber", "pseudo_huber"}
ALONG_AXES = {"log_softmax", "logsumexp", "softmax"}
COMPOSED = {"entr", "expit", "log_expit", "sinc"} | BINARY | ALONG_AXES
SPECIAL = np.array(
    [0.0, -0.0, 0.25, 1.0, 1.0 + 1e-9, 3.0, -0.5, -1.0, -2.0, np.inf, -np.inf, np.nan]
)


def arity(name: str) -> int:
    return len(CASES.get(name, "xy" if name in BINARY else "x"))


@pytest.fixture
def mpmath() -> Any:
    return pytest.importorskip("mpmath", reason="needs mpmath")


def derivatives(fn: Any, x: Tensor, order: int) -> list[np.ndarray]:
    """Return the values and derivatives of an elementwise function, up to an order."""
    values, value = [], fn(x)
    for _ in range(order):
        values.append(host(value))
        (value,) = grad(value.sum(), x, create_graph=True)
    return [*values, host(value)]


def test_all_names_are_checked_here() -> None:
    assert {*CASES, *COMPOSED, "digamma", "multigammaln"} == set(special.__all__)


# Values and dtypes


@pytest.mark.usefixtures("mpmath")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*itertools.product(CASES, ["float64"]), *itertools.product(KERNELS, ["float32"])],
)
def test_values_agree_with_mpmath(name: str, dtype: str, device: str) -> None:
    columns = [np.array(x, dtype if type(x[0]) is float else "int16") for x in CASES[name]]
    want = getattr(SpecialFunctions(), name)(*[c.astype(np.longdouble) for c in columns])
    got = getattr(special, name)(*[xgrad.asarray(c, device=device) for c in columns])
    assert got.dtype == dtype
    rtol, atol = (1e-11, 1e-13) if dtype == "float64" else (1e-4, 1e-6)
    # its kernel has 10 digits
    if name == "stdtrit" and np.lib.NumpyVersion(scipy.__version__) < "1.17.0":
        rtol = max(rtol, 1e-10)
    np.testing.assert_allclose(host(got), want.astype(np.float64), rtol=rtol, atol=atol)


@quiet
@pytest.mark.parametrize("name", sorted(COMPOSED - ALONG_AXES - {"sinc"}))
def test_special_values_are_those_of_scipy(name: str, device: str) -> None:
    inputs = (
        [SPECIAL] if name not in BINARY else [x.reshape(-1) for x in np.meshgrid(SPECIAL, SPECIAL)]
    )
    if name == "pseudo_huber":  # SciPy has NaN for infinite numbers of both signs
        inputs = [x[np.isfinite(inputs).all(0)] for x in inputs]
    want = getattr(sc, name)(*inputs)
    got = host(getattr(special, name)(*[leaf64(x, device) for x in inputs]))
    # before, SciPy's has 8 digits
    if name == "rel_entr" and np.lib.NumpyVersion(scipy.__version__) < "1.15.0":
        near = (inputs[0] != inputs[1]) & np.isclose(*inputs)
        np.testing.assert_allclose(got[near], want[near], rtol=1e-8)
        want[near] = got[near]
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", ["xlogy", "rel_entr", "huber", "beta", "gammainc"])
def test_python_scalars_do_not_promote(name: str, device: str) -> None:
    x = xgrad.asarray([0.5, 2.0], device=device)
    for pair in ((x, 1.5), (1.5, x), (x, np.float64(1.5)), (2, x)):
        got = getattr(special, name)(*pair)
        assert (str(got.dtype), got.shape, str(got.device)) == ("float32", (2,), device)
        want = getattr(sc, name)(
            *[host(v).astype(np.float64) if isinstance(v, Tensor) else v for v in pair]
        )
        np.testing.assert_allclose(host(got), want, rtol=1e-5)


def test_int_of_trials_stays_one(device: str) -> None:
    x = xgrad.asarray([0.2, 0.5], device=device)
    assert special.bdtr(2, 5, x).dtype == xgrad.float32  # SciPy warns of 5.0


@quiet
@pytest.mark.filterwarnings("ignore:non-integer arg n:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:floating point number truncated to an integer:RuntimeWarning")
@pytest.mark.parametrize("name", sorted(set(special.__all__) - {"gammasgn", "multigammaln"}))
def test_dtypes_are_those_of_scipy_and_float32_of_integers(name: str, device: str) -> None:
    count = 2 if name == "logsumexp" else arity(name)
    for dtypes in itertools.product(["int64", "float32", "float64"], repeat=count):
        if name == "polygamma" and "float" in dtypes[0]:
            continue
        arrays = [np.array([0.5 + i]).astype(dtype) for i, dtype in enumerate(dtypes)]
        options: list[dict[str, Any]] = [{}, {}]
        if name == "logsumexp":
            arrays, options = (
                arrays[:1],
                [{"b": xgrad.asarray(arrays[1], device=device)}, {"b": arrays[1]}],
            )
        got = getattr(special, name)(
            *[xgrad.asarray(x, device=device) for x in arrays], **options[0]
        )
        want = getattr(sc, name)(*arrays, **options[1])
        assert got.dtype == (
            want.dtype if any("float" in dtype for dtype in dtypes) else "float32"
        ), dtypes
        np.testing.assert_allclose(host(got), want, rtol=1e-5)


# Derivatives


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_derivatives_by_the_last_argument(name: str, device: str) -> None:
    *others, last = (np.array(column) for column in DISTRIBUTIONS[name])
    others = [xgrad.asarray(x, device=device) for x in others]
    x = leaf64(last, device)
    assert gradcheck(lambda x: getattr(special, name)(*others, x), x)
    assert gradgradcheck(lambda x: getattr(special, name)(*others, x), x)


# Points at and around removable singularities: sinc is a series up to 0.64, a quotient beyond.
ORDERS = {
    "erfcx": (3, [0.3, 0.8, 3.01, 8.0]),
    "sinc": (5, [0.0, 1e-9, 0.01, 0.2, 0.33, 0.64, 0.9, 1.3, 1.9, 17.2]),
    **dict.fromkeys("i0 i1 j0 j1".split(), (4, [0.0, 0.3])),
    **dict.fromkeys("gamma gammaln erfinv ndtri log_ndtr expi logit".split(), (3, [0.3, 0.6, 0.8])),
    "k0": (3, [0.6]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_higher_derivatives_agree_with_mpmath(name: str, device: str, mpmath: Any) -> None:
    with mpmath.workdps(40):
        functions = {
            "sinc": mpmath.sincpi,
            "i0": lambda x: mpmath.besseli(0, x),
            "i1": lambda x: mpmath.besseli(1, x),
            "gammaln": mpmath.loggamma,
            "ndtri": lambda y: mpmath.sqrt(2) * mpmath.erfinv(2 * y - 1),
            "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)),
            "expi": mpmath.ei,
            "k0": lambda x: mpmath.besselk(0, x),
            "logit": lambda x: mpmath.log(x / (1 - x)),
            "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        }
        function = functions.get(name) or getattr(mpmath, name)
        order, points = ORDERS[name]
        want = [
            [float(mpmath.diff(function, mpmath.mpf(x), n)) for x in points]
            for n in range(order + 1)
        ]
    got = derivatives(getattr(special, name), leaf64(points, device), order)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9 if name == "sinc" else 1e-14)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("xlogy", 0.0, 0.0, (0, 0)),
        ("xlogy", 0.0, 2.0, (math.log(2), 0)),
        ("xlog1py", 0.0, -1.0, (0, 0)),
        ("rel_entr", 0.0, 2.0, (-math.inf, 0)),
        ("kl_div", 0.0, 2.0, (-math.inf, 1)),
        ("rel_entr", -1.0, 2.0, (math.nan, math.nan)),
        ("pseudo_huber", 1.0, 0.0, (0, 0)),
        ("pseudo_huber", 0.0, 0.0, (0, 0)),
    ],
)
def test_gradients_at_zero_and_out_of_the_domain(
    name: str, x: float, y: float, expected: Any, device: str
) -> None:
    inputs = [leaf64(x, device), leaf64(y, device)]
    gradients = grad(getattr(special, name)(*inputs), inputs)
    np.testing.assert_allclose([g.item() for g in gradients], expected)


@pytest.mark.filterwarnings("error")
def test_log_ndtr_far_out_has_asymptotic_derivatives(device: str) -> None:
    """The first derivative is asymptotic to -x - 1/x for x to -inf, and vanishes for x to inf."""
    x = leaf64([-1e5, -40.0, 50.0, 1e3], device)
    _, slope, curvature = derivatives(special.log_ndtr, x, 2)
    np.testing.assert_allclose(
        slope, [1e5 + 1e-5, 40 + 1 / 40 - 2 / 40**3 + 10 / 40**5, 0, 0], rtol=1e-8
    )
    np.testing.assert_allclose(curvature[1:], [-1 + 1 / 40**2 - 6 / 40**4, 0, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "values", "missing"),
    [
        ("betainc", (2.0, 3.0, 0.5), (0, 1)),
        ("betaincc", (2.0, 3.0, 0.5), (0, 1)),
        ("iv", (2.0, 1.0), (0,)),
        ("zeta", (2.0, 1.0), (0,)),
        ("stdtr", (2.0, 1.0), (0,)),
    ],
)
def test_derivative_without_closed_form_is_an_error_where_it_is_wanted(
    name: str, values: tuple[float, ...], missing: tuple[int, ...], device: str
) -> None:
    inputs = [leaf64(v, device) for v in values]
    for i in missing:
        out = getattr(special, name)(*inputs)
        with pytest.raises(
            NotImplementedError, match=rf"^{name}: expected no gradient for \w+, .* no closed form"
        ):
            grad(out, inputs[i])
    (slope,) = grad(getattr(special, name)(*inputs), inputs[-1], create_graph=True)
    assert math.isfinite(slope.item())


#: Shapes of gamma distributions, small, at the bounds of formulas, and large.
GAMMA_SHAPES = [1e-3, 0.1, 0.7, 2.5, 15.9, 16.0, 40.0, 1e3, 1e6, 1e8]
GAMMA_PROBABILITIES = [1e-12, 0.05, 0.4, 0.5, 0.55, 0.8, 1 - 1e-9]


@cache  # it takes seconds, and is the same on each device
def gamma_quantile_slopes(mpmath: Any) -> tuple[list[tuple[float, float]], list[float]]:
    """Return shapes with quantiles, and the derivatives of the quantiles by the shape.

    A derivative is the integral of the derivative of the density, divided by the density.
    """
    pairs = itertools.product(GAMMA_SHAPES, GAMMA_PROBABILITIES)
    points = [(a, x) for a, p in pairs if (x := float(sc.gammaincinv(a, p))) > 1e-30]
    slopes = []
    with mpmath.workdps(30):
        for a, x in (map(mpmath.mpf, point) for point in points):
            sign = 1 if mpmath.log(x) > mpmath.psi(0, a) else -1

            def integrand(v: Any, a: Any = a, x: Any = x, sign: int = sign) -> Any:
                level = v + sign * (mpmath.log(x) - mpmath.psi(0, a))
                return mpmath.exp(sign * a * v - x * mpmath.expm1(sign * v)) * level

            if sign > 0:
                width = min(1 / mpmath.sqrt(x), mpmath.mpf(1))
            else:
                width = 1 / max(a - x, mpmath.sqrt(x))
            ends = [2 * width * k for k in range(15)] + [40 * width, 80 * width + 2 * (sign > 0)]
            slopes.append(float(x * mpmath.quad(integrand, ends)))
    return points, slopes


def test_derivative_of_a_gamma_quantile_by_the_shape_is_accurate(device: str, mpmath: Any) -> None:
    points, want = gamma_quantile_slopes(mpmath)
    shapes, quantiles = np.array(points).T
    got = gamma_quantile_slope(on(device, shapes), on(device, quantiles))
    np.testing.assert_allclose(host(got), want, rtol=1e-12)
    single = gamma_quantile_slope(*[on(device, x.astype(np.float32)) for x in (shapes, quantiles)])
    assert single.dtype == xgrad.float32
    kept = shapes < 1e6  # float32 has no two quantiles nearby for larger ones
    np.testing.assert_allclose(host(single)[kept], np.array(want)[kept], rtol=1e-4)


@quiet
def test_derivative_of_a_gamma_quantile_at_limits(device: str) -> None:
    a, x = np.array([2.0, 2.0, np.nan, -1.0, 1e-3]), np.array([0.0, np.nan, 1.0, 1.0, 0.0])
    got = host(gamma_quantile_slope(on(device, a), on(device, x)))
    np.testing.assert_array_equal(got, [0.0, np.nan, np.nan, np.nan, 0.0])
    assert gamma_quantile_slope(xgrad.zeros((0, 2), device=device), 2.0).shape == (0, 2)
    shape = leaf64([0.3, 2.0, 40.0], device)
    for limit in (0.0, np.inf):  # there the probability does not depend on the shape
        probability = special.gammainc(shape, on(device, np.full(3, limit)))
        assert host(grad(probability.sum(), [shape])[0]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincinv", "gammainccinv"])
def test_incomplete_gamma_functions_have_a_derivative_by_the_shape(name: str, device: str) -> None:
    shapes = [0.3, 2.0, 7.0, 20.0]
    second = [0.3, 0.2, 0.9, 0.5] if name.endswith("inv") else [0.3, 2.2, 5.9, 26.5]
    inputs, function = [leaf64(shapes, device), leaf64(second, device)], getattr(special, name)
    assert gradcheck(function, inputs)
    (slope,) = grad(function(*inputs).sum(), inputs[0], create_graph=True)
    (mixed,) = grad(slope.sum(), inputs[1], retain_graph=True)
    step = 1e-6

    def moved(by: float) -> np.ndarray:
        x = leaf64(host(inputs[1]) + by, device)
        return host(grad(function(inputs[0], x).sum(), inputs[0])[0])

    np.testing.assert_allclose(host(mixed), (moved(step) - moved(-step)) / (2 * step), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="first derivatives by a alone"):
        grad(slope.sum(), inputs[0])


def test_derivative_of_a_gamma_quantile_agrees_with_that_of_pytorch(torch: Any) -> None:
    """PyTorch's approximation has about four digits."""
    a = torch.tensor(GAMMA_SHAPES[:-2], dtype=torch.float64)
    x = torch.tensor(sc.gammaincinv(GAMMA_SHAPES[:-2], 0.6)).clamp(min=1e-30)
    got = gamma_quantile_slope(on("cpu", a.numpy()), on("cpu", x.numpy()))
    np.testing.assert_allclose(host(got), torch._standard_gamma_grad(a, x), rtol=2e-3)


def test_density_has_derivatives_by_the_shape(device: str) -> None:
    """The derivative of `gammainc` by x is in closed form, and can be differentiated by a."""

    def density(a: Tensor, x: Tensor) -> Tensor:
        (slope,) = grad(special.gammainc(a, x), x, create_graph=True)
        return slope

    inputs = [leaf64(2.5, device), leaf64(1.2, device)]
    assert gradcheck(density, inputs) and gradgradcheck(density, inputs)


# Sums of exponentials


@quiet
@pytest.mark.parametrize("return_sign", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1.0, 2.0, 3.0], None),
        ([1e3, 1e3 + 1], [1.0, -0.5]),
        ([0.0, 0.0], [1.0, -3.0]),
        ([1e4, 1.0, np.inf, np.nan], [0.0, 1.0, 0.0, 0.0]),
        ([-np.inf, -np.inf], None),
        ([np.inf, 1.0], None),
        ([np.nan, 1.0], None),
        ([1 + 10j, 2 - 20j], None),
        ([1e4 + 1j, 1e4], None),
        ([1.0, 2.0], [1j, 2.0]),
        ([1 + 1j, 1e4], [-1.0, 0.0]),
        ([-math.inf + 1j, 1j], None),
    ],
)
def test_logsumexp_agrees_with_scipy(a: Any, b: Any, return_sign: bool, device: str) -> None:
    a, b = np.array(a), None if b is None else np.array(b)
    weights = None if b is None else xgrad.asarray(b, device=device)
    got = special.logsumexp(xgrad.asarray(a, device=device), b=weights, return_sign=return_sign)
    want = sc.logsumexp(a, b=b, return_sign=return_sign)
    for ours, theirs in zip(
        got if return_sign else (got,), want if return_sign else (want,), strict=True
    ):
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-13)
        assert ours.dtype == theirs.dtype


def test_sum_of_no_exponentials_is_zero(device: str) -> None:
    """The sign is 0 (-1 in SciPy)."""
    assert special.logsumexp(leaf64([], device)).item() == -math.inf
    logarithm, sign = special.logsumexp(leaf64(np.zeros((2, 0)), device), axis=1, return_sign=True)
    assert (logarithm.tolist(), sign.tolist()) == ([-math.inf] * 2, [0, 0])


@quiet
@pytest.mark.parametrize("name", sorted(ALONG_AXES))
def test_reductions_of_infinities_agree_with_scipy(name: str, device: str) -> None:
    rows = np.array(list(itertools.product([math.inf, -math.inf, math.nan, 0, 1], repeat=3)))
    got = getattr(special, name)(xgrad.asarray(rows, device=device), axis=-1)
    np.testing.assert_allclose(host(got), getattr(sc, name)(rows, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(ALONG_AXES))
def test_signatures_are_those_of_scipy(name: str) -> None:
    ours, theirs = (
        list(inspect.signature(getattr(m, name)).parameters.values()) for m in (special, sc)
    )
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]


# Complex numbers


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["erf", "sinc"])
def test_complex_values_agree_with_scipy(name: str, dtype: str, device: str) -> None:
    z = (np.array(REAL)[:, None] / 4 + 1j * np.array([0.0, -1.5, 0.25])).astype(dtype)
    got = getattr(special, name)(xgrad.asarray(z, device=device))
    assert got.dtype == dtype
    np.testing.assert_allclose(
        host(got), getattr(sc, name)(z), rtol=1e-12 if dtype == "complex128" else 1e-5
    )


def test_erf_of_complex_numbers_has_derivatives(device: str) -> None:
    z = leaf64([0.3 - 0.5j, 1j, -1.2 + 0.1j], device)
    assert gradcheck(special.erf, [z]) and gradgradcheck(special.erf, [z])


# Refusals


@pytest.mark.parametrize(
    "name", sorted(set(special.__all__) - ALONG_AXES - {"erf", "expit", "sinc", "polygamma"})
)
def test_complex_numbers_are_refused(name: str, device: str) -> None:
    function = getattr(special, name)
    z = xgrad.asarray([1j], dtype=xgrad.complex64, device=device)
    others = [0.5] * (len(inspect.signature(function).parameters) - 1)
    with pytest.raises(TypeError, match="expected real numbers, got"):
        function(*((z, 3) if name == "multigammaln" else (*others, z)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: special.polygamma(1.5, x),
            TypeError,
            r"polygamma: expected an int for n, got 1\.5",
        ),
        (
            lambda x: special.polygamma(x, x),
            TypeError,
            r"polygamma: expected n of integers, got .*float32",
        ),
        (lambda x: special.polygamma(-1, x), ValueError, "polygamma: expected n from 0 on, got -1"),
        (
            lambda x: special.multigammaln(x, 0),
            ValueError,
            "multigammaln: expected a positive int for d",
        ),
        (
            lambda x: special.multigammaln(x, 2.0),
            ValueError,
            "multigammaln: expected a positive int for d",
        ),
        (
            lambda x: special.multigammaln(x, 5),
            ValueError,
            r"multigammaln: expected every a above \(d - 1\) / 2 = 2.0, got one that is not",
        ),
        (
            lambda x: special.logsumexp(x, b=[1.0]),
            TypeError,
            "^logsumexp: expected a tensor, an array or a number for b, got list",
        ),
        (
            lambda x: special.logsumexp(x.to("strict"), b=x.to("cpu")),
            xgrad.DeviceError,
            "^logsumexp: expected b on strict, where a is, got it on cpu",
        ),
    ],
)
def test_invalid_arguments_of_special_functions_are_refused(
    call: Any, error: type[Exception], message: str, device: str
) -> None:
    if "every a" in message and xgrad.Device(device).backend.asynchronous:
        pytest.skip("a check of values would wait for the device")
    with pytest.raises(error, match=message):
        call(xgrad.asarray([2.0, 3.0], device=device))


# Packages


def test_missing_scipy_is_an_error_of_one_line() -> None:
    script = (
        "import sys\nsys.modules['scipy'] = None\nimport xgrad\nfrom xgrad import special\n"
        "special.entr(xgrad.asarray(0.5))\n"
        "try: special.erf(xgrad.asarray(0.5))\nexcept ImportError as error: print(error)"
    )
    text = (
        "special.erf: the package SciPy, whose kernel it is, is missing: pip install"
        " 'xgrad[special]'"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == text
