"""Special functions: values by mpmath and SciPy, derivatives at special places, what has none, and SciPy's dispatch."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import special
from xgrad.ops import distributions
from xgrad.parity.mpmath_reference import SpecialFunctions

scipy = pytest.importorskip("scipy", reason="SciPy, whose kernels they are, is not installed")
sc = pytest.importorskip("scipy.special", reason="SciPy, whose kernels they are, is not installed")

# Any number is right for what takes all, in the order of magnitude of the others.
REAL = [-3.7, -1.0, -0.3, -1e-3, 0.0, 1e-8, 0.4, 1.0, 2.6, 7.5]
POSITIVE = [1e-3, 0.2, 0.9, 1.0, 1.7, 4.0, 9.5]
PROBABILITIES = [1e-6, 0.03, 0.4, 0.5, 0.8, 0.999]
KERNELS: dict[str, tuple[list[float], ...]] = {
    **dict.fromkeys("erf erfc ndtr log_ndtr exp2 exp10 cosm1 i0 i0e i1 i1e j0 j1 cbrt".split(), (REAL,)),
    **dict.fromkeys("gammaln loggamma psi exp1 expi y0 y1 k0 k0e k1 k1e".split(), (POSITIVE,)),
    "erfcx": ([-2.0, -0.3, 0.0, 1.0, 40.0],),
    "erfinv": ([-0.99, -0.5, 0.0, 1e-6, 0.7],),
    "erfcinv": ([1e-6, 0.3, 1.0, 1.9],),
    "ndtri": (PROBABILITIES,),
    "logit": (PROBABILITIES,),
    "gamma": ([-2.5, -0.3, *POSITIVE],),
    "gammasgn": ([-2.5, -0.3, *POSITIVE],),
    "beta": (POSITIVE[1:], POSITIVE[:0:-1]),
    "betaln": (POSITIVE, POSITIVE[::-1]),
    **{name: ([0.5, 1.0, 2.5, 4.0, 9.0, 3.0], [0.0, 1e-3, 0.7, 5.0, 9.0, 20.0]) for name in ("gammainc", "gammaincc")},
    **{name: ([0.5, 1.0, 2.5, 4.0, 9.0, 3.0], PROBABILITIES) for name in ("gammaincinv", "gammainccinv")},
    **{
        name: ([0.5, 1.0, 2.5, 4.0, 9.0, 3.0], [1.0, 0.5, 3.0, 4.0, 0.7, 2.0], PROBABILITIES)
        for name in ("betainc", "betaincc", "betaincinv")
    },
    "zeta": ([2.0, 3.5, 1.5], [1.0, 0.3, 7.0]),
    **{name: ([0.0, 1.0, 2.0, 3.0], [-2.0, 0.0, 0.5, 3.0]) for name in ("iv", "ive", "jv")},
    **{name: ([0.0, 1.0, 2.5, 3.0], [2.0, 0.3, 0.5, 3.0]) for name in ("yv", "kv", "kve")},
}
MADE_HERE = set("entr expit huber kl_div log_expit log_softmax logsumexp pseudo_huber rel_entr sinc softmax".split())
MADE_HERE |= {"xlog1py", "xlogy"}
SPECIAL = np.array([0.0, -0.0, 0.25, 1.0, 1.0 + 1e-9, 3.0, -0.5, -1.0, -2.0, np.inf, -np.inf, np.nan])


def tensor(values: Any, device: str, grad: bool = True) -> xgrad.Tensor:
    return xgrad.Tensor(values, dtype=xgrad.float64, device=device, requires_grad=grad)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy())


def derivatives(fn: Any, x: xgrad.Tensor, order: int) -> list[np.ndarray]:
    """Return a function of single numbers and its derivatives, up to an order."""
    found, value = [], fn(x)
    for _ in range(order):
        found.append(host(value))
        (value,) = xgrad.autograd.grad(value.sum(), x, create_graph=True)
    return [*found, host(value)]


def test_all_names_are_checked_here() -> None:
    elsewhere = set(vars(distributions)) - {"gammaln"}  # see test_distributions.py
    assert set(KERNELS) | MADE_HERE | {"polygamma", "digamma"} == set(special.__all__) - elsewhere


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_mpmath(name: str, dtype: str, device: str) -> None:
    pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
    columns = [np.array(column, dtype) for column in KERNELS[name]]
    want = getattr(SpecialFunctions(), name)(*[c.astype(np.longdouble) for c in columns])
    got = getattr(special, name)(*[xgrad.asarray(c, device=device) for c in columns])
    assert str(got.dtype) == dtype
    rtol, atol = (1e-11, 1e-13) if dtype == "float64" else (1e-4, 1e-6)
    np.testing.assert_allclose(host(got), want.astype(np.float64), rtol=rtol, atol=atol)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma_of_several_orders(n: int, device: str) -> None:
    pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
    x = np.array([0.3, 1.0, 4.5])
    want = SpecialFunctions().polygamma(n, x.astype(np.longdouble)).astype(np.float64)
    np.testing.assert_allclose(host(special.polygamma(n, tensor(x, device))), want, rtol=1e-12)
    orders = xgrad.asarray([n, n, n], device=device)
    np.testing.assert_allclose(host(special.polygamma(orders, tensor(x, device))), want, rtol=1e-12)


def test_polygamma_refuses_orders_that_are_none(device: str) -> None:
    x = tensor([1.0], device)
    with pytest.raises(TypeError, match=r"polygamma: expected an int for n, got 1\.5"):
        special.polygamma(1.5, x)
    with pytest.raises(TypeError, match=r"polygamma: expected n of integers, got .*float64"):
        special.polygamma(x, x)
    with pytest.raises(ValueError, match="polygamma: expected n from 0 on, got -1"):
        special.polygamma(-1, x)


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("name", ["entr", "expit", "log_expit"])
def test_what_is_made_here_is_scipys_at_special_values(name: str, device: str) -> None:
    got = getattr(special, name)(tensor(SPECIAL, device))
    np.testing.assert_allclose(host(got), getattr(sc, name)(SPECIAL), rtol=1e-13)


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div", "huber", "pseudo_huber"])
def test_pairs_of_special_values(name: str, device: str) -> None:
    x, y = (part.reshape(-1) for part in np.meshgrid(SPECIAL, SPECIAL))
    if name == "pseudo_huber":  # SciPy has NaN for infinite numbers of both signs
        x, y = (part[np.isfinite(x) & np.isfinite(y)] for part in (x, y))
    want = getattr(sc, name)(x, y)
    got = getattr(special, name)(tensor(x, device), tensor(y, device))
    near = (x != y) & np.isclose(x, y)
    exact = name != "rel_entr" or np.lib.NumpyVersion(scipy.__version__) >= "1.15.0"  # before, SciPy's has 8 digits
    np.testing.assert_allclose(host(got), np.where(near & (not exact), host(got), want), rtol=1e-12)
    np.testing.assert_allclose(host(got)[near], want[near], rtol=1e-8)


@pytest.mark.parametrize("name", ["xlogy", "rel_entr", "huber", "beta", "gammainc"])
def test_scalars_promote_nothing(name: str, device: str) -> None:
    x = xgrad.asarray([0.5, 2.0], device=device)
    for pair in ((x, 1.5), (1.5, x), (x, np.float64(1.5)), (2, x)):
        got = getattr(special, name)(*pair)
        assert (str(got.dtype), got.shape, str(got.device)) == ("float32", (2,), device)
        want = getattr(sc, name)(*[host(v).astype(np.float64) if isinstance(v, xgrad.Tensor) else v for v in pair])
        np.testing.assert_allclose(host(got), want, rtol=1e-5)


@pytest.mark.parametrize("name", sorted((set(KERNELS) | MADE_HERE) - {"gammasgn"}))
def test_integers_count_as_float32(name: str, device: str) -> None:
    count = len(KERNELS.get(name, ((),))) if name in KERNELS else 2 if name in BINARY else 1
    x = xgrad.asarray([1], device=device)
    assert str(getattr(special, name)(*[x] * count).dtype) == "float32"


BINARY = {"xlogy", "xlog1py", "rel_entr", "kl_div", "huber", "pseudo_huber"}
SEVERAL = {name: getattr(sc, name).nin for name in special.__all__ if getattr(getattr(sc, name), "nin", 1) > 1}


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning", "ignore:non-integer arg n:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:floating point number truncated to an integer:RuntimeWarning")
@pytest.mark.parametrize("name", [*SEVERAL, "polygamma", "logsumexp"])
def test_mixed_dtypes_give_that_of_scipy(name: str, device: str) -> None:
    for dtypes in itertools.product(["int64", "float32", "float64"], repeat=SEVERAL.get(name, 2)):
        if name == "polygamma" and "float" in dtypes[0]:
            continue
        arrays = [np.array([0.5 + i]).astype(dtype) for i, dtype in enumerate(dtypes)]
        given: list[dict[str, Any]] = [{}, {}]
        if name == "logsumexp":
            arrays, given = arrays[:1], [{"b": xgrad.asarray(arrays[1], device=device)}, {"b": arrays[1]}]
        got = getattr(special, name)(*[xgrad.asarray(x, device=device) for x in arrays], **given[0])
        floats = any("float" in dtype for dtype in dtypes)
        want = getattr(sc, name)(*arrays, **given[1])
        assert got.dtype == (want.dtype if floats else "float32"), dtypes
        np.testing.assert_allclose(host(got), want, rtol=1e-5)


# Derivatives


def test_sinc_is_smooth_at_zero(device: str) -> None:
    """Its power series has the coefficients (-1)**k * pi**(2 * k) / (2 * k + 1)!."""
    want = [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5, 0, -(math.pi**6) / 7]
    for order, found in enumerate(derivatives(special.sinc, tensor(0.0, device), 6)):
        np.testing.assert_allclose(found, want[order], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("place", [1e-9, 0.01, 0.2, 0.33, 0.64, 0.9, 1.3, 1.9, 17.2])
def test_derivatives_of_sinc_join_where_the_series_ends(place: float, device: str) -> None:
    mpmath = pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
    with mpmath.workdps(60):
        want = [mpmath.diff(mpmath.sincpi, mpmath.mpf(place), order) for order in range(6)]
    for found, expected in zip(derivatives(special.sinc, tensor(place, device), 5), want, strict=True):
        np.testing.assert_allclose(found, float(expected), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("i0", [1, 0, 1 / 2, 0, 3 / 8]),
        ("i1", [0, 1 / 2, 0, 3 / 8, 0]),
        ("j0", [1, 0, -1 / 2, 0, 3 / 8]),
        ("j1", [0, 1 / 2, 0, -3 / 8, 0]),
    ],
)
def test_bessel_functions_are_smooth_at_zero(name: str, coefficients: list[float], device: str) -> None:
    found = derivatives(getattr(special, name), tensor(0.0, device), 4)
    np.testing.assert_allclose(found, coefficients, atol=1e-14)


@pytest.mark.parametrize("name", ["gamma", "gammaln", "erfinv", "ndtri", "log_ndtr", "expi", "k0", "logit", "erfcx"])
def test_third_derivatives(name: str, device: str) -> None:
    mpmath = pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
    places = [0.3, 0.6, 0.8]
    with mpmath.workdps(50):
        functions = {
            "gammaln": mpmath.loggamma,
            "ndtri": lambda y: mpmath.sqrt(2) * mpmath.erfinv(2 * y - 1),
            "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)),
            "expi": mpmath.ei,
            "k0": lambda x: mpmath.besselk(0, x),
            "logit": lambda x: mpmath.log(x / (1 - x)),
            "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        }
        function = functions.get(name) or getattr(mpmath, name)
        want = [float(mpmath.diff(function, mpmath.mpf(x), 3)) for x in places]
    np.testing.assert_allclose(derivatives(getattr(special, name), tensor(places, device), 3)[3], want, rtol=1e-10)


def gradients(name: str, x: float, y: float, device: str) -> tuple[float, float]:
    a, b = tensor(x, device), tensor(y, device)
    getattr(special, name)(a, b).backward()
    assert a.grad is not None
    assert b.grad is not None
    return a.grad.item(), b.grad.item()


@pytest.mark.filterwarnings("error")
def test_logarithms_of_what_does_not_count_do_no_harm(device: str) -> None:
    assert gradients("xlogy", 0.0, 0.0, device) == (0.0, 0.0)
    assert gradients("xlogy", 0.0, 2.0, device) == (math.log(2), 0.0)
    assert gradients("xlog1py", 0.0, -1.0, device) == (0.0, 0.0)
    assert gradients("rel_entr", 0.0, 2.0, device) == (-math.inf, 0.0)
    assert gradients("kl_div", 0.0, 2.0, device) == (-math.inf, 1.0)
    assert all(math.isnan(g) for g in gradients("rel_entr", -1.0, 2.0, device))
    assert gradients("pseudo_huber", 1.0, 0.0, device) == (0.0, 0.0)
    assert gradients("pseudo_huber", 0.0, 0.0, device) == (0.0, 0.0)


@pytest.mark.filterwarnings("error")
def test_log_ndtr_far_out(device: str) -> None:
    """The derivative is x + 1/x - ... below, and vanishes above, at second order too."""
    x = tensor([-1e5, -40.0, 50.0, 1e3], device)
    _, slope, curvature = derivatives(special.log_ndtr, x, 2)
    np.testing.assert_allclose(slope, [1e5 + 1e-5, 40 + 1 / 40 - 2 / 40**3 + 10 / 40**5, 0, 0], rtol=1e-8)
    np.testing.assert_allclose(curvature[1:], [-1 + 1 / 40**2 - 6 / 40**4, 0, 0], rtol=1e-5)


MISSING = [
    ("gammainc", (2.0, 1.0), (0,)),
    ("gammaincc", (2.0, 1.0), (0,)),
    ("gammaincinv", (2.0, 0.5), (0,)),
    ("betainc", (2.0, 3.0, 0.5), (0, 1)),
    ("betaincc", (2.0, 3.0, 0.5), (0, 1)),
    ("iv", (2.0, 1.0), (0,)),
    ("zeta", (2.0, 1.0), (0,)),
]


@pytest.mark.parametrize(("name", "values", "missing"), MISSING)
def test_a_derivative_that_is_not_known_is_an_error_where_it_is_wanted(
    name: str, values: tuple[float, ...], missing: tuple[int, ...], device: str
) -> None:
    inputs = [tensor(v, device) for v in values]
    for i in missing:
        out = getattr(special, name)(*inputs)
        with pytest.raises(NotImplementedError, match=rf"^{name}: expected no gradient for \w+, .* no closed form"):
            xgrad.autograd.grad(out, inputs[i])
    (slope,) = xgrad.autograd.grad(getattr(special, name)(*inputs), inputs[-1], create_graph=True)
    assert math.isfinite(slope.item())


def test_the_density_has_derivatives_by_the_shape(device: str) -> None:
    """That of `gammainc` by x is in closed form, and so is the derivative of that by a."""
    a, x = tensor(2.5, device), tensor(1.2, device)

    def density(a: xgrad.Tensor, x: xgrad.Tensor) -> xgrad.Tensor:
        (slope,) = xgrad.autograd.grad(special.gammainc(a, x), x, create_graph=True)
        return slope

    assert xgrad.testing.gradcheck(density, [a, x])
    assert xgrad.testing.gradgradcheck(density, [a, x])


# Sums of exponentials


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
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
    ],
)
def test_logsumexp_is_scipys(a: Any, b: Any, return_sign: bool, device: str) -> None:
    weights = None if b is None else tensor(b, device)
    got = special.logsumexp(tensor(a, device), b=weights, return_sign=return_sign)
    want = sc.logsumexp(np.array(a), b=None if b is None else np.array(b), return_sign=return_sign)
    for ours, theirs in zip(got if return_sign else (got,), want if return_sign else (want,), strict=True):
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-13)


def test_the_sum_of_no_exponentials_is_zero(device: str) -> None:
    """SciPy says -1 of its sign."""
    assert special.logsumexp(tensor([], device)).item() == -math.inf
    logarithm, sign = special.logsumexp(tensor(np.zeros((2, 0)), device), axis=1, return_sign=True)  # type: ignore[misc]
    assert logarithm.tolist() == [-math.inf] * 2
    assert sign.tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("name", ["log_softmax", "logsumexp", "softmax"])
def test_soft_maxima_of_infinities_are_scipys(name: str, device: str) -> None:
    rows = np.array(list(itertools.product([math.inf, -math.inf, math.nan, 0, 1], repeat=3)))
    got = getattr(special, name)(xgrad.asarray(rows, device=device), axis=-1).cpu().numpy()
    np.testing.assert_allclose(got, getattr(sc, name)(rows, axis=-1), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("return_sign", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1 + 10j, 2 - 20j], None),
        ([1e4 + 1j, 1e4], None),
        ([1.0, 2.0], [1j, 2.0]),
        ([1 + 1j, 1e4], [-1.0, 0.0]),
        ([-math.inf + 1j, 1j], None),
    ],
)
def test_logsumexp_of_complex_numbers_is_scipys(a: Any, b: Any, return_sign: bool, device: str) -> None:
    a, b = np.array(a), None if b is None else np.array(b)
    weights = None if b is None else xgrad.asarray(b, device=device)
    got = special.logsumexp(xgrad.asarray(a, device=device), b=weights, return_sign=return_sign)
    want = sc.logsumexp(a, b=b, return_sign=return_sign)
    for ours, theirs in zip(got if return_sign else (got,), want if return_sign else (want,), strict=True):
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-13)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["erf", "sinc"])
def test_kernels_of_complex_numbers_are_scipys(name: str, dtype: str, device: str) -> None:
    z = (np.array(REAL)[:, None] / 4 + 1j * np.array([0.0, -1.5, 0.25])).astype(dtype)
    got = getattr(special, name)(xgrad.asarray(z, device=device))
    assert got.dtype == dtype
    np.testing.assert_allclose(host(got), getattr(sc, name)(z), rtol=1e-12 if dtype == "complex128" else 1e-5)


def test_erf_of_complex_numbers_has_derivatives(device: str) -> None:
    z = xgrad.asarray(np.array([0.3 - 0.5j, 1j, -1.2 + 0.1j]), device=device, requires_grad=True)
    assert xgrad.testing.gradcheck(special.erf, [z])
    assert xgrad.testing.gradgradcheck(special.erf, [z])


def test_logsumexp_names_weights_that_it_cannot_take(device: str) -> None:
    with pytest.raises(TypeError, match=r"^logsumexp: expected a tensor, an array or a number for b, got list"):
        special.logsumexp(tensor([1.0], device), b=[1.0])  # type: ignore[arg-type]
    with pytest.raises(xgrad.DeviceError, match=r"^logsumexp: expected b on strict, where a is, got it on cpu"):
        special.logsumexp(tensor([1.0], "strict"), b=tensor([1.0], "cpu"))


NOT_OF_ONE = {"multigammaln", "polygamma", "softmax", "log_softmax", "logsumexp"}
OF_COMPLEX_NUMBERS = {"erf", "expit", "sinc"}


@pytest.mark.parametrize("name", sorted(set(special.__all__) - NOT_OF_ONE - OF_COMPLEX_NUMBERS))
def test_complex_numbers_are_refused(name: str, device: str) -> None:
    function = getattr(special, name)
    x = xgrad.asarray([1j], dtype=xgrad.complex64, device=device)
    count = len(inspect.signature(function).parameters)
    with pytest.raises(TypeError, match="expected real numbers, got"):
        function(*[0.5] * (count - 1), x)


def test_multigammaln_refuses_complex_numbers() -> None:
    with pytest.raises(TypeError, match="expected real numbers, got complex64"):
        special.multigammaln(xgrad.asarray([1j], dtype=xgrad.complex64), 3)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_signatures_are_scipys(name: str) -> None:
    ours, theirs = (list(inspect.signature(getattr(m, name)).parameters.values()) for m in (special, sc))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


# Packages


def run(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120,
        env=os.environ | environment,
    )  # fmt: skip
    return done.stdout.strip()


def test_scipy_is_loaded_when_it_is_used() -> None:
    script = (
        "import sys, xgrad\nfrom xgrad import special, fft\nspecial.sinc(xgrad.asarray(0.5))\n"
        "special.xlogy(xgrad.asarray(0.5), 2.0)\nprint('scipy' in sys.modules)"
    )
    assert run(script) == "False"


def test_says_in_one_line_that_scipy_is_missing() -> None:
    script = (
        "import sys\nsys.modules['scipy'] = None\nimport xgrad\nfrom xgrad import special\n"
        "special.entr(xgrad.asarray(0.5))\n"
        "try: special.erf(xgrad.asarray(0.5))\nexcept ImportError as error: print(error)"
    )
    text = "special.erf: the package SciPy, whose kernel it is, is missing: pip install 'xgrad[special]'"
    assert run(script) == text


DISPATCH = """
import json
import numpy as np, scipy.special, xgrad
from xgrad import special

found = {{}}
for name, values in json.loads({cases!r}).items():
    inputs = [xgrad.Tensor(v, dtype="float64", requires_grad=i == len(values) - 1) for i, v in enumerate(values)]
    if name == "polygamma":
        inputs[0] = 1
    out = getattr(scipy.special, name)(*inputs)
    out.sum().backward()
    found[name] = out.detach().numpy().tolist(), inputs[-1].grad.numpy().tolist()
print(json.dumps(found))
"""
# What SciPy makes of ours by formulas of its own.
GENERIC = {"chdtr": 2, "chdtrc": 2, "stdtr": 2}
NOT_DISPATCHED = set("erfcinv gammasgn ive iv jv kv kve yv".split()) | {"softmax", "log_softmax", "logsumexp"}


def test_scipys_own_functions_find_these() -> None:
    """``scipy.special.erf(tensor)`` is differentiable, without a word of SciPy's about xgrad."""
    pytest.importorskip("scipy", "1.17")  # before, SciPy hands on fewer functions
    place = [0.3, 0.6]
    counts = {name: len(columns) for name, columns in KERNELS.items()} | dict.fromkeys(BINARY, 2) | GENERIC
    counts |= {"entr": 1, "expit": 1, "sinc": 1, "polygamma": 2}
    names = {name: count for name, count in counts.items() if name not in NOT_DISPATCHED | {"beta"}}
    cases = {name: [[1.5, 2.5]] * (count - 1) + [place] for name, count in names.items()}
    script = DISPATCH.format(cases=json.dumps(cases))
    found = json.loads(run(script, SCIPY_ARRAY_API="1"))
    eps = 1e-6
    for name, (values, slopes) in found.items():
        function = getattr(sc, name)
        args = [1] if name == "polygamma" else [np.array(c) for c in cases[name][:-1]]
        x = np.array(place)
        np.testing.assert_allclose(values, function(*args, x), rtol=1e-12, err_msg=name)
        differences = (function(*args, x + eps) - function(*args, x - eps)) / (2 * eps)
        np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=1e-7, err_msg=name)
    assert len(found) > 45
