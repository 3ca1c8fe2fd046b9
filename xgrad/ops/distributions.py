"""Distributions, hypergeometric functions and others of SciPy's special functions.

Each is beside its derivative, as in `special`. The formulas are those of the NIST Digital Library of Mathematical
Functions, https://dlmf.nist.gov, chapters 5, 8, 13 to 15, 19 and 25.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_tensor
from xgrad.core.namespace import namespace
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import as_arrays
from xgrad.ops.special import beta_density, gamma_density, gammaln, kernel, no_closed_form
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown

_DEGREE = math.pi / 180


def _t_density(xp: Any, df: Any, t: Any) -> Any:
    df, t = as_arrays(xp, df, t)
    return xp.exp(-(df + 1) / 2 * xp.log1p(t * t / df) - xp.special.betaln(df / 2, 0.5)) / df**0.5


def _f_density(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    total = dfn * x + dfd
    return beta_density(xp, dfn / 2, dfd / 2, dfn * x / total) * (dfn * dfd / (total * total))


def _boxcox_by_power(xp: Any, logarithm: Any, lmbda: Any) -> Any:
    """The derivative of (exp(lmbda * logarithm) - 1) / lmbda by lmbda, exact where that is 0."""
    return logarithm * logarithm * xp.special.hyp1f1(2.0, 3.0, lmbda * logarithm) / 2


def _expn_rule(g: Any, xp: Any, n: Any, x: Any) -> Any:
    """Derivative of ``expn``: the negative of the order below, which SciPy lacks for order 0."""
    n, x = as_arrays(xp, n, x)
    return -g * xp.where(n == 0, xp.exp(-x) * (1 + 1 / x) / x, xp.special.expn(xp.where(n == 0, 0, n - 1), x))


def _lpmv_rule(g: Any, xp: Any, m: Any, v: Any, x: Any, out: Any) -> Any:
    m, x = as_arrays(xp, m, x)
    return g * ((v * x * out - (v + xp.astype(m, x.dtype)) * xp.special.lpmv(m, v - 1, x)) / (x * x - 1))


# fmt: off
# Discrete distributions, given counts

bdtr = kernel("bdtr", "k n p", None, None, lambda g, xp, k, n, p: -g * beta_density(xp, k + 1, n - k, p),
    doc="Return the distribution function of the binomial distribution: of up to `k` successes in `n` trials.", count="n", example="2, 5, [0.2, 0.5] -> [0.942..., 0.5    ]")
bdtrc = kernel("bdtrc", "k n p", None, None, lambda g, xp, k, n, p: g * beta_density(xp, k + 1, n - k, p),
    doc="Return 1 - bdtr(k, n, p), exact where that is small.", count="n", example="2, 5, [0.2, 0.5] -> [0.057..., 0.5    ]")
bdtri = kernel("bdtri", "k n y", None, None, lambda g, xp, k, n, out: -g / beta_density(xp, k + 1, n - k, out),
    doc="Return the inverse of `bdtr` in `p`.", count="n", example="2, 5, [0.2, 0.5] -> [0.673..., 0.5      ]")
nbdtr = kernel("nbdtr", "k n p", None, None, lambda g, xp, k, n, p: g * beta_density(xp, n, k + 1, p),
    doc="Return the distribution function of the negative binomial distribution: of up to `k` failures before success `n`.", example="2, 5, [0.2, 0.5] -> [0.004... , 0.226...]")
nbdtrc = kernel("nbdtrc", "k n p", None, None, lambda g, xp, k, n, p: -g * beta_density(xp, n, k + 1, p),
    doc="Return 1 - nbdtr(k, n, p), exact where that is small.", example="2, 5, [0.2, 0.5] -> [0.995... , 0.773...]")
nbdtri = kernel("nbdtri", "k n y", None, None, lambda g, xp, k, n, out: g / beta_density(xp, n, k + 1, out),
    doc="Return the inverse of `nbdtr` in `p`.", example="2, 5, [0.2, 0.5] -> [0.483..., 0.635... ]")
pdtr = kernel("pdtr", "k m", None, lambda g, xp, k, m: -g * gamma_density(xp, k + 1, m),
    doc="Return the distribution function of the Poisson distribution of mean `m`: of up to `k` events.", example="2, [1.0, 3.0] -> [0.919..., 0.423...]")
pdtrc = kernel("pdtrc", "k m", None, lambda g, xp, k, m: g * gamma_density(xp, k + 1, m),
    doc="Return 1 - pdtr(k, m), exact where that is small.", example="2, [1.0, 3.0] -> [0.080... , 0.576...]")
pdtri = kernel("pdtri", "k y", None, lambda g, xp, k, out: -g / gamma_density(xp, k + 1, out),
    doc="Return the inverse of `pdtr` in `m`.", example="2, [0.2, 0.5] -> [4.279...  , 2.674...]")

# Continuous distributions

chdtr = kernel("chdtr", "v x", no_closed_form, lambda g, xp, v, x: g * (gamma_density(xp, v / 2, x / 2) / 2),
    doc="Return the distribution function of the chi-squared distribution with `v` degrees of freedom.", example="2.0, [1.0, 3.0] -> [0.393..., 0.776...]")
chdtrc = kernel("chdtrc", "v x", no_closed_form, lambda g, xp, v, x: -g * (gamma_density(xp, v / 2, x / 2) / 2),
    doc="Return 1 - chdtr(v, x), exact where that is small.", example="2.0, [1.0, 3.0] -> [0.606..., 0.223...]")
chdtri = kernel("chdtri", "v p", no_closed_form, lambda g, xp, v, out: -2 * g / gamma_density(xp, v / 2, out / 2),
    doc="Return the inverse of `chdtrc` in `x`.", example="2.0, [0.2, 0.5] -> [3.218... , 1.386...]")
gdtr = kernel("gdtr", "a b x",
    lambda g, xp, a, b, x: g * (x * gamma_density(xp, b, a * x)), no_closed_form, lambda g, xp, a, b, x: g * (a * gamma_density(xp, b, a * x)),
    doc="Return the distribution function of the gamma distribution of rate `a` and shape `b`.", example="2.0, 3.0, [1.0, 2.0] -> [0.323..., 0.761...]")
gdtrc = kernel("gdtrc", "a b x",
    lambda g, xp, a, b, x: -g * (x * gamma_density(xp, b, a * x)), no_closed_form, lambda g, xp, a, b, x: -g * (a * gamma_density(xp, b, a * x)),
    doc="Return 1 - gdtr(a, b, x), exact where that is small.", example="2.0, 3.0, [1.0, 2.0] -> [0.676..., 0.238...]")
fdtr = kernel("fdtr", "dfn dfd x",
    no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, x: g * _f_density(xp, dfn, dfd, x),
    doc="Return the distribution function of the F distribution.", example="2.0, 4.0, [1.0, 2.0] -> [0.555..., 0.75     ]")
fdtrc = kernel("fdtrc", "dfn dfd x",
    no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, x: -g * _f_density(xp, dfn, dfd, x),
    doc="Return 1 - fdtr(dfn, dfd, x), exact where that is small.", example="2.0, 4.0, [1.0, 2.0] -> [0.444..., 0.25      ]")
fdtri = kernel("fdtri", "dfn dfd p",
    no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, out: g / _f_density(xp, dfn, dfd, out),
    doc="Return the inverse of `fdtr` in `x`.", example="2.0, 4.0, [0.2, 0.5] -> [0.236..., 0.828...]")
stdtr = kernel("stdtr", "df t", no_closed_form, lambda g, xp, df, t: g * _t_density(xp, df, t),
    doc="Return the distribution function of Student's t distribution.", example="3.0, [0.0, 1.0] -> [0.5      , 0.804...]")
stdtrit = kernel("stdtrit", "df p", no_closed_form, lambda g, xp, df, out: g / _t_density(xp, df, out),
    doc="Return the inverse of `stdtr` in `t`.", example="3.0, [0.75, 0.9] -> [0.764..., 1.637...]")

# Power transformations

boxcox = kernel("boxcox", "x lmbda",
    lambda g, xp, x, lmbda: g * x ** (lmbda - 1), lambda g, xp, x, lmbda: g * _boxcox_by_power(xp, xp.log(as_arrays(xp, x, lmbda)[0]), lmbda),
    doc="Return (x**lmbda - 1) / lmbda, or log(x) where `lmbda` is 0.", example="[1.0, 4.0], 0.5 -> [0., 2.]")
boxcox1p = kernel("boxcox1p", "x lmbda",
    lambda g, xp, x, lmbda: g * (1 + x) ** (lmbda - 1), lambda g, xp, x, lmbda: g * _boxcox_by_power(xp, xp.log1p(as_arrays(xp, x, lmbda)[0]), lmbda),
    doc="Return ((1 + x)**lmbda - 1) / lmbda, or log1p(x) where `lmbda` is 0.", example="[0.0, 3.0], 0.5 -> [0., 2.]")
inv_boxcox = kernel("inv_boxcox", "y lmbda",
    lambda g, lmbda, out: g * out ** (1 - lmbda),
    lambda g, xp, lmbda, out: -g * (_boxcox_by_power(xp, xp.log(out), lmbda) * out ** (1 - lmbda)),
    doc="Return the inverse of `boxcox` in `x`.", example="[0.0, 2.0], 0.5 -> [1., 4.]")
inv_boxcox1p = kernel("inv_boxcox1p", "y lmbda",
    lambda g, lmbda, out: g * (1 + out) ** (1 - lmbda),
    lambda g, xp, lmbda, out: -g * (_boxcox_by_power(xp, xp.log1p(out), lmbda) * (1 + out) ** (1 - lmbda)),
    doc="Return the inverse of `boxcox1p` in `x`.", example="[0.0, 2.0], 0.5 -> [0., 3.]")

# Hypergeometric functions, and functions with derivatives among them

hyp1f1 = kernel("hyp1f1", "a b x", no_closed_form, no_closed_form, lambda g, xp, a, b, x: g * (a / b * xp.special.hyp1f1(a + 1, b + 1, x)),
    doc="Return Kummer's confluent hypergeometric function.", example="1.0, 2.0, [0.0, 1.0] -> [1.       , 1.718...]")
hyp2f1 = kernel("hyp2f1", "a b c z", no_closed_form, no_closed_form, no_closed_form,
    lambda g, xp, a, b, c, z: g * (a * b / c * xp.special.hyp2f1(a + 1, b + 1, c + 1, z)),
    doc="Return Gauss' hypergeometric function.", example="1.0, 1.0, 2.0, [0.0, 0.5] -> [1.       , 1.386...]")
exprel = kernel("exprel", "x", lambda g, xp, x: g * (xp.special.hyp1f1(2.0, 3.0, x) / 2),
    doc="Return (exp(x) - 1) / x, which is 1 at 0.", example="[0.0, 1.0] -> [1.       , 1.718...]")
spence = kernel("spence", "z", lambda g, xp, z: -g * xp.special.hyp2f1(1.0, 1.0, 2.0, 1 - z),
    doc="Return Spence's function, the integral of log(t) / (1 - t) from 1 to `z`.", example="[0.0, 1.0] -> [1.644..., 0.      ]")
ellipk = kernel("ellipk", "m", lambda g, xp, m: g * (math.pi / 8 * xp.special.hyp2f1(1.5, 1.5, 2.0, m)),
    doc="Return the complete elliptic integral of the first kind, of the parameter `m`, the modulus squared.", example="[0.0, 0.5] -> [1.570..., 1.854...]")
ellipkm1 = kernel("ellipkm1", "p", lambda g, xp, p: -g * (math.pi / 8 * xp.special.hyp2f1(1.5, 1.5, 2.0, 1 - p)),
    doc="Return ellipk(1 - p), exact where `p` is small.", example="[1.0, 0.5] -> [1.570..., 1.854...]")
expn = kernel("expn", "n x", None, _expn_rule,
    doc="Return the exponential integral of order `n`: of exp(-x t) / t**n over t from 1 on.", example="2, [0.0, 1.0] -> [1.        , 0.148...]")
lpmv = kernel("lpmv", "m v x", None, no_closed_form, _lpmv_rule,
    doc="Return the associated Legendre function of order `m` and degree `v`, between -1 and 1.", example="1, 2.0, [0.0, 0.5] -> [ 0.      , -1.299...]")
yn = kernel("yn", "n x", None, lambda g, xp, n, x: g * ((xp.special.yv(n - 1, x) - xp.special.yv(n + 1, x)) / 2),
    doc="Return the Bessel function of the second kind of integer order `n`.", example="2, [1.0, 2.0] -> [-1.650..., -0.617...]")

# Products and quotients of gamma functions

rgamma = kernel("rgamma", "z", lambda g, xp, z, out: -g * (out * xp.special.psi(z)),
    doc="Return 1 / gamma(z), which is 0 at the poles of `gamma`, where its derivative is NaN.", example="[0.0, 5.0] -> [0.        , 0.041...]")
binom = kernel("binom", "x y",
    lambda g, xp, x, y, out: g * (out * (xp.special.psi(x + 1) - xp.special.psi(x - y + 1))),
    lambda g, xp, x, y, out: g * (out * (xp.special.psi(x - y + 1) - xp.special.psi(y + 1))),
    doc="Return the binomial coefficient, of real numbers as well.", example="[5.0, 4.0], 2.0 -> [10.,  6.]")
poch = kernel("poch", "z m",
    lambda g, xp, z, m, out: g * (out * (xp.special.psi(z + m) - xp.special.psi(z))), lambda g, xp, z, m, out: g * (out * xp.special.psi(z + m)),
    doc="Return Pochhammer's symbol, gamma(z + m) / gamma(z).", example="[2.0, 3.0], 2.0 -> [ 6., 12.]")

# Angles in degrees

sindg = kernel("sindg", "x", lambda g, xp, x: g * (xp.special.cosdg(x) * _DEGREE),
    doc="Return the sine of an angle in degrees, exact at multiples of 30 and 90.", example="[30.0, 90.0] -> [0.5, 1. ]")
cosdg = kernel("cosdg", "x", lambda g, xp, x: -g * (xp.special.sindg(x) * _DEGREE),
    doc="Return the cosine of an angle in degrees, exact at multiples of 60 and 90.", example="[0.0, 60.0] -> [1. , 0.5]")
tandg = kernel("tandg", "x", lambda g, out: g * ((1 + out * out) * _DEGREE),
    doc="Return the tangent of an angle in degrees.", example="[0.0, 45.0] -> [0., 1.]")
cotdg = kernel("cotdg", "x", lambda g, out: -g * ((1 + out * out) * _DEGREE),
    doc="Return the cotangent of an angle in degrees.", example="[45.0, 90.0] -> [1., 0.]")
radian = kernel("radian", "d m s", lambda g: g * _DEGREE, lambda g: g * (_DEGREE / 60), lambda g: g * (_DEGREE / 3600),
    doc="Return an angle of degrees, minutes and seconds in radians.", example="[90.0, 180.0], 30.0, 0.0 -> [1.579... , 3.150...]")
# fmt: on


@documented()
def multigammaln(a: Any, d: int, /) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `d`.

    a : Tensor -- Real, above ``(d - 1) / 2``, which is not looked at on ``cuda``; integers count as float32.
    d : int -- From 1 on.
    returns Tensor -- Of the same shape; float32 stays float32.
    raises ValueError -- If `d` is no positive int, or an element of `a` too small.

    Differentiable to any order. Like ``scipy.special.multigammaln``.

    >>> from xgrad import asarray, special
    >>> special.multigammaln(asarray([2.0, 4.0]), 3)
    Tensor([1.596..., 5.402... ])
    """
    a = as_tensor("multigammaln", "a", a)
    if not isinstance(d, int) or d < 1:
        raise ValueError(f"multigammaln: expected a positive int for d, got {shown(d)}")
    backend = a.device.backend
    if not backend.asynchronous and not check_true(a.device, namespace.all(~(a.detach() <= (d - 1) / 2))._data):
        raise ValueError(f"multigammaln: expected every a above (d - 1) / 2 = {(d - 1) / 2}, got one that is not")
    terms = [gammaln(a - j / 2) for j in range(d)]
    return sum(terms[1:], terms[0]) + d * (d - 1) / 4 * math.log(math.pi)
