"""Special functions computed by kernels of the array libraries, under SciPy's names, each beside its derivative.

Derivatives consist of functions of this module, and so are differentiable to any order. The formulas are those of the
NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 5 to 8, 10 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from xgrad.core.dtypes import COMPLEX, FLOATING, SCALARS
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import as_arrays, call_op, derivative, make_callable
from xgrad.support.docstrings import documented, write_out
from xgrad.support.hints import shown

_DOC = """{summary}

{names} : Tensor -- {kind}, of any shape{broadcast}, on one device; integers count as float32.{scalar}
returns Tensor -- Of {result}; float32 stays float32.
{type_error}{import_error}raises DeviceError
{no_rule}
{gradient}. Like ``scipy.special.{name}``{computed}.

>>> from xgrad import asarray, special
>>> special.{name}({call})
Tensor({value})
"""
_NO_RULE = "raises NotImplementedError -- In a backward pass to {names}, whose derivative has no closed form.\n"


def no_closed_form(g: Any) -> Any:
    """Mark a parameter whose derivative has no closed form: silent zeros would be wrong."""
    raise NotImplementedError


def kernel(
    name: str,
    names: str,
    *rules: Rule | None,
    doc: str,
    example: str,
    count: str = "",
    highest: int = FLOATING,
    forward: Callable[..., Any] | None = None,
    notes: str = "Differentiable to any order",
) -> Callable[..., Tensor]:
    """Declare a function that works element by element, given its parameters and a rule for each, None for integers.

    `doc` is its summary, and `example` reads ``arguments -> values``, with lists for tensors. Where `count` names a
    parameter, the kernel wants integers for it: an int is made an array, for a float32 beside it would make it one.
    `highest` is COMPLEX where SciPy's kernel takes complex numbers. `forward` is the forward rule of a function that
    is no kernel of the array libraries.
    """
    parameters = names.split()
    counted = parameters.index(count) if count else None

    def call_kernel(xp: Any, *inputs: Any) -> Any:
        if counted is not None and type(inputs[counted]) is int:
            like = next(x for x in inputs if type(x) not in SCALARS)
            whole = xp.full_like(like, inputs[counted], dtype=xp.int64)
            inputs = (*inputs[:counted], whole, *inputs[counted + 1 :])
        return getattr(xp.special, name)(*inputs)

    # What the rules' parameters refer to.
    call_kernel.__signature__ = Signature([Parameter(p, Parameter.POSITIONAL_ONLY) for p in ["xp", *parameters]])  # type: ignore[attr-defined]
    flags = {"lowest": FLOATING, "highest": highest, "broadcasts": True, "scipy_promotion": True, "upcast": True}
    refusing = [_refuse(name, p) if rule is no_closed_form else rule for p, rule in zip(parameters, rules, strict=True)]
    function = Function.of(name, forward or call_kernel, refusing, **flags)

    closed = [p for p, rule in zip(parameters, rules, strict=True) if rule not in (None, no_closed_form)]
    missing = [f"`{p}`" for p, rule in zip(parameters, rules, strict=True) if rule is no_closed_form]
    several, real = len(parameters) > 1, highest == FLOATING
    arguments, _, value = example.partition(" -> ")
    text = _DOC.format(
        name=name,
        kind="Real" if real else "Numbers",
        summary=doc,
        names=", ".join(parameters),
        broadcast="s that broadcast" if several else "",
        scalar=" All but one may be Python scalars, which promote nothing." if several else "",
        result="the shape that the inputs broadcast to" if several else "the same shape",
        type_error="raises TypeError -- If an input is complex.\n" if real else "",
        import_error="" if forward else "raises ImportError -- If SciPy is missing and the kernel is SciPy's.\n",
        no_rule=_NO_RULE.format(names=" or ".join(missing)) if missing else "",
        gradient=notes + ("" if closed == parameters else f" in {', '.join([f'`{p}`' for p in closed])}"),
        computed="" if forward else ", computed as `xgrad.special` says",
        call=arguments.replace("[", "asarray([").replace("]", "])"),
        value=value,
    )
    return make_callable(function, write_out(text, name), "xgrad.special")


def _refuse(name: str, parameter: str) -> Rule:
    """Return a rule that raises an error: there is no derivative by a parameter."""

    def rule(g: Any) -> Any:
        raise NotImplementedError(
            f"{name}: expected no gradient for {parameter}, whose derivative has no closed form: .detach() {parameter}, "
            "or ask for the gradients of other inputs alone"
        )

    return rule


def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    a, x = as_arrays(xp, a, x)
    return xp.exp(xp.special.xlogy(a - 1, x) - x - xp.special.gammaln(a))


def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    (a, x), (b, _) = as_arrays(xp, a, x), as_arrays(xp, b, x)
    return xp.exp(xp.special.xlogy(a - 1, x) + xp.special.xlog1py(b - 1, -x) - xp.special.betaln(a, b))


def _log_ndtr_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """The density over the distribution: far below 0 by erfcx, since both vanish; it overflows above."""
    below = xp.special.erfcx(xp.where(x > 0, 0, x) * -math.sqrt(0.5))
    return g * xp.where(x > 0, xp.exp(-(x * x) / 2 - out) / _ROOT_TAU, math.sqrt(2 / math.pi) / below)


def _erfcx_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi), which cancels for large x: there by a continued fraction, of repeated integrals."""
    bound = 1.5 if x.dtype == xp.float32 else 3  # above which 36 terms are enough
    large = x > bound
    above, ratio = xp.where(large, x, bound), 0.0
    for k in range(36, 1, -1):
        ratio = 1 / (2 * above + 2 * k * ratio)
    return g * xp.where(large, -2 * ratio * out, 2 * x * out - 2 / _ROOT_PI)


def _scaled_bessel(xp: Any, v: Any, z: Any, out: Any, slope: Any, sign: int) -> Any:
    """Return the slope, which cancels for large z: there by Hankel's expansions, DLMF 10.40.1 (sign -1) and 10.40.2."""
    size, bound = xp.abs(z), v * v + 30
    large = size > bound
    above, total, slopes = xp.where(large, size, bound), 1.0, 18.5
    for k in range(18, 0, -1):  # enough for float64 above the bound
        ratio = sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * above)
        total, slopes = 1 + ratio * total, k - 0.5 + ratio * slopes
    return xp.where(large, -slopes / (total * above) * xp.sign(z) * out, slope)


_ROOT_PI, _ROOT_TAU = math.sqrt(math.pi), math.sqrt(2 * math.pi)

# fmt: off
# The error function and the normal distribution

erf = kernel("erf", "x", lambda g, xp, x: g * (xp.exp(-(x * x)) * (2 / _ROOT_PI)),
    doc="Return the error function.", example="[0.0, 1.0] -> [0.       , 0.842...]", highest=COMPLEX)
erfc = kernel("erfc", "x", lambda g, xp, x: g * (xp.exp(-(x * x)) * (-2 / _ROOT_PI)),
    doc="Return 1 - erf(x), exact where that is small.", example="[0.0, 1.0] -> [1.       , 0.157...]")
erfcx = kernel("erfcx", "x", _erfcx_rule,
    doc="Return exp(x**2) * erfc(x).", example="[0.0, 1.0] -> [1.       , 0.427...]")
erfinv = kernel("erfinv", "y", lambda g, xp, out: g * (xp.exp(out * out) * (_ROOT_PI / 2)),
    doc="Return the inverse of the error function.", example="[0.0, 0.5] -> [0.       , 0.476...]")
erfcinv = kernel("erfcinv", "y", lambda g, xp, out: g * (xp.exp(out * out) * (-_ROOT_PI / 2)),
    doc="Return the inverse of `erfc`.", example="[1.5, 0.5] -> [-0.476...,  0.476...]")
ndtr = kernel("ndtr", "x", lambda g, xp, x: g * (xp.exp(-(x * x) / 2) / _ROOT_TAU),
    doc="Return the distribution function of the standard normal distribution.", example="[0.0, 1.0] -> [0.5      , 0.841...]")
ndtri = kernel("ndtri", "y", lambda g, xp, out: g * (xp.exp(out * out / 2) * _ROOT_TAU),
    doc="Return the quantiles of the standard normal distribution.", example="[0.5, 0.9] -> [0.       , 1.281...]")
log_ndtr = kernel("log_ndtr", "x", _log_ndtr_rule,
    doc="Return log(ndtr(x)), exact where `ndtr` is small.", example="[0.0, -1e3] -> [-6.93147...e-01, -5.00007...e+05]")
logit = kernel("logit", "x", lambda g, x: g / (x * (1 - x)),
    doc="Return log(x / (1 - x)), the inverse of `expit`.", example="[0.5, 0.9] -> [0.       , 2.197...]")

# Powers

cbrt = kernel("cbrt", "x", lambda g, out: g / (3 * out * out),
    doc="Return the cube root.", example="[8.0, -1.0] -> [ 2., -1.]")
exp2 = kernel("exp2", "x", lambda g, out: g * (out * math.log(2)),
    doc="Return 2 to the power of each element.", example="[0.0, 3.0] -> [1., 8.]")
exp10 = kernel("exp10", "x", lambda g, out: g * (out * math.log(10)),
    doc="Return 10 to the power of each element.", example="[0.0, 2.0] -> [  1., 100.]")
cosm1 = kernel("cosm1", "x", lambda g, xp, x: -g * xp.sin(x),
    doc="Return cos(x) - 1, exact near 0.", example="[0.0, 1e-4] -> [ 0...e+00, -4.99999...e-09]")

# The gamma and beta functions, and their distributions

gamma = kernel("gamma", "z", lambda g, xp, z, out: g * (out * xp.special.psi(z)),
    doc="Return the gamma function: (z - 1)! where z is an integer.", example="[0.5, 5.0] -> [ 1.772..., 24.       ]")
gammaln = kernel("gammaln", "x", lambda g, xp, x: g * xp.special.psi(x),
    doc="Return the logarithm of the gamma function's absolute value.", example="[1.0, 1e4] -> [    0.   , 82099.7...]")
loggamma = kernel("loggamma", "z", lambda g, xp, z: g * xp.special.psi(z),
    doc="Return the logarithm of the gamma function, which is NaN for negative numbers.", example="[1.0, 1e4] -> [    0.   , 82099.7...]")
gammasgn = kernel("gammasgn", "x", lambda g, xp: xp.zeros_like(g),
    doc="Return the sign of the gamma function; its derivative is 0.", example="[0.5, -0.5] -> [ 1., -1.]")
psi = kernel("psi", "z", lambda g, xp, z: g * xp.special.polygamma(1, z),
    doc="Return the derivative of the logarithm of the gamma function.", example="[1.0, 2.0] -> [-0.577...,  0.422...]")
digamma = psi
beta = kernel("beta", "a b",
    lambda g, xp, a, b, out: g * (out * (xp.special.psi(a) - xp.special.psi(a + b))),
    lambda g, xp, a, b, out: g * (out * (xp.special.psi(b) - xp.special.psi(a + b))),
    doc="Return the beta function, gamma(a) * gamma(b) / gamma(a + b).", example="[1.0, 2.0], 3.0 -> [0.333..., 0.083...]")
betaln = kernel("betaln", "a b",
    lambda g, xp, a, b: g * (xp.special.psi(a) - xp.special.psi(a + b)),
    lambda g, xp, a, b: g * (xp.special.psi(b) - xp.special.psi(a + b)),
    doc="Return the logarithm of the beta function's absolute value.", example="[1.0, 2.0], 3.0 -> [-1.098..., -2.484...]")
gammainc = kernel("gammainc", "a x",
    no_closed_form, lambda g, xp, a, x: g * gamma_density(xp, a, x),
    doc="Return the distribution function of the gamma distribution of shape `a`.", example="2.0, [0.0, 1.0] -> [0.       , 0.264...]")
gammaincc = kernel("gammaincc", "a x",
    no_closed_form, lambda g, xp, a, x: -g * gamma_density(xp, a, x),
    doc="Return 1 - gammainc(a, x), exact where that is small.", example="2.0, [0.0, 1.0] -> [1.       , 0.735...]")
gammaincinv = kernel("gammaincinv", "a y",
    no_closed_form, lambda g, xp, a, out: g / gamma_density(xp, a, out),
    doc="Return the inverse of `gammainc` in `x`.", example="2.0, [0.0, 0.5] -> [0.       , 1.678...]")
gammainccinv = kernel("gammainccinv", "a y",
    no_closed_form, lambda g, xp, a, out: -g / gamma_density(xp, a, out),
    doc="Return the inverse of `gammaincc` in `x`.", example="2.0, [1.0, 0.5] -> [0.       , 1.678...]")
betainc = kernel("betainc", "a b x",
    no_closed_form, no_closed_form, lambda g, xp, a, b, x: g * beta_density(xp, a, b, x),
    doc="Return the distribution function of the beta distribution.", example="2.0, 3.0, [0.0, 0.5] -> [0.    , 0.6875]")
betaincc = kernel("betaincc", "a b x",
    no_closed_form, no_closed_form, lambda g, xp, a, b, x: -g * beta_density(xp, a, b, x),
    doc="Return 1 - betainc(a, b, x), exact where that is small.", example="2.0, 3.0, [0.0, 0.5] -> [1.    , 0.3125]")
betaincinv = kernel("betaincinv", "a b y",
    no_closed_form, no_closed_form, lambda g, xp, a, b, out: g / beta_density(xp, a, b, out),
    doc="Return the inverse of `betainc` in `x`.", example="2.0, 3.0, [0.0, 0.6875] -> [0. , 0.5]")
zeta = kernel("zeta", "x q",
    no_closed_form, lambda g, xp, x, q: -g * (x * xp.special.zeta(x + 1, q)),
    doc="Return Hurwitz' zeta function, the sum of (q + k)**-x over k = 0, 1, 2, ...", example="2.0, [1.0, 2.0] -> [1.644..., 0.644...]")

# Exponential integrals

exp1 = kernel("exp1", "z", lambda g, xp, z: -g * (xp.exp(-z) / z),
    doc="Return the integral of exp(-t) / t from z to infinity.", example="[1.0, 2.0] -> [0.219..., 0.048...]")
expi = kernel("expi", "x", lambda g, xp, x: g * (xp.exp(x) / x),
    doc="Return the principal value of the integral of exp(t) / t up to x.", example="[1.0, 2.0] -> [1.895..., 4.954...]")

# Bessel functions: their derivatives by the neighbouring orders, which is exact at 0, too

iv = kernel("iv", "v z", no_closed_form, lambda g, xp, v, z: g * ((xp.special.iv(v - 1, z) + xp.special.iv(v + 1, z)) / 2),
    doc="Return the modified Bessel function of the first kind of order `v`.", example="2.0, [0.0, 1.0] -> [0.       , 0.135...]")
ive = kernel("ive", "v z", no_closed_form,
    lambda g, xp, v, z, out: g * _scaled_bessel(xp, v, z, out,
        (xp.special.ive(v - 1, z) + xp.special.ive(v + 1, z)) / 2 - xp.sign(z) * out, -1),
    doc="Return iv(v, z) * exp(-abs(z)).", example="2.0, [0.0, 1.0] -> [0.       , 0.049...]")
i0 = kernel("i0", "x", lambda g, xp, x: g * xp.special.i1(x),
    doc="Return the modified Bessel function of the first kind of order 0.", example="[0.0, 1.0] -> [1.       , 1.266...]")
i0e = kernel("i0e", "x",
    lambda g, xp, x, out: g * _scaled_bessel(xp, 0, x, out, xp.special.i1e(x) - xp.sign(x) * out, -1),
    doc="Return i0(x) * exp(-abs(x)).", example="[0.0, 1.0] -> [1.       , 0.465...]")
i1 = kernel("i1", "x", lambda g, xp, x: g * ((xp.special.i0(x) + xp.special.iv(2, x)) / 2),
    doc="Return the modified Bessel function of the first kind of order 1.", example="[0.0, 1.0] -> [0.       , 0.565...]")
i1e = kernel("i1e", "x",
    lambda g, xp, x, out: g * _scaled_bessel(xp, 1, x, out,
        (xp.special.i0e(x) + xp.special.ive(2, x)) / 2 - xp.sign(x) * out, -1),
    doc="Return i1(x) * exp(-abs(x)).", example="[0.0, 1.0] -> [0.       , 0.207...]")
jv = kernel("jv", "v z", no_closed_form, lambda g, xp, v, z: g * ((xp.special.jv(v - 1, z) - xp.special.jv(v + 1, z)) / 2),
    doc="Return the Bessel function of the first kind of order `v`.", example="2.0, [0.0, 1.0] -> [0.       , 0.114...]")
j0 = kernel("j0", "x", lambda g, xp, x: -g * xp.special.j1(x),
    doc="Return the Bessel function of the first kind of order 0.", example="[0.0, 1.0] -> [1.       , 0.765...]")
j1 = kernel("j1", "x", lambda g, xp, x: g * ((xp.special.j0(x) - xp.special.jv(2, x)) / 2),
    doc="Return the Bessel function of the first kind of order 1.", example="[0.0, 1.0] -> [0.       , 0.440...]")
yv = kernel("yv", "v z", no_closed_form, lambda g, xp, v, z: g * ((xp.special.yv(v - 1, z) - xp.special.yv(v + 1, z)) / 2),
    doc="Return the Bessel function of the second kind of order `v`.", example="2.0, [1.0, 2.0] -> [-1.650..., -0.617...]")
y0 = kernel("y0", "x", lambda g, xp, x: -g * xp.special.y1(x),
    doc="Return the Bessel function of the second kind of order 0.", example="[1.0, 2.0] -> [0.088..., 0.510...]")
y1 = kernel("y1", "x", lambda g, xp, x: g * ((xp.special.y0(x) - xp.special.yv(2, x)) / 2),
    doc="Return the Bessel function of the second kind of order 1.", example="[1.0, 2.0] -> [-0.781..., -0.107...]")
kv = kernel("kv", "v z", no_closed_form, lambda g, xp, v, z: -g * ((xp.special.kv(v - 1, z) + xp.special.kv(v + 1, z)) / 2),
    doc="Return the modified Bessel function of the second kind of order `v`.", example="2.0, [1.0, 2.0] -> [1.624..., 0.253...]")
kve = kernel("kve", "v z", no_closed_form,
    lambda g, xp, v, z, out: g * _scaled_bessel(xp, v, z, out,
        out - (xp.special.kve(v - 1, z) + xp.special.kve(v + 1, z)) / 2, 1),
    doc="Return kv(v, z) * exp(z).", example="2.0, [1.0, 2.0] -> [4.416..., 1.875...]")
k0 = kernel("k0", "x", lambda g, xp, x: -g * xp.special.k1(x),
    doc="Return the modified Bessel function of the second kind of order 0.", example="[1.0, 2.0] -> [0.421..., 0.113...]")
k0e = kernel("k0e", "x",
    lambda g, xp, x, out: g * _scaled_bessel(xp, 0, x, out, out - xp.special.k1e(x), 1),
    doc="Return k0(x) * exp(x).", example="[1.0, 2.0] -> [1.144..., 0.841...]")
k1 = kernel("k1", "x", lambda g, xp, x: -g * ((xp.special.k0(x) + xp.special.kv(2, x)) / 2),
    doc="Return the modified Bessel function of the second kind of order 1.", example="[1.0, 2.0] -> [0.601..., 0.139...]")
k1e = kernel("k1e", "x",
    lambda g, xp, x, out: g * _scaled_bessel(xp, 1, x, out, out - (xp.special.k0e(x) + xp.special.kve(2, x)) / 2, 1),
    doc="Return k1(x) * exp(x).", example="[1.0, 2.0] -> [1.636..., 1.033...]")
# fmt: on


@derivative(
    None,
    lambda g, xp, n, x: g * xp.special.polygamma(n + 1, x),
    kind=FLOATING,
    highest=FLOATING,
    broadcasts=True,
    scipy_promotion=True,
)
@documented()
def polygamma(xp: Any, n: Any, x: Any, /) -> Any:
    """Return the derivatives of `psi` of order `n`.

    n : int or Tensor -- Orders from 0 on: integers, of a shape that broadcasts with `x`. They have no gradient.
    x : Tensor -- Real, of any shape; integers count as float32.
    returns Tensor -- Of the shape that the inputs broadcast to; float32 stays float32.
    raises TypeError -- If `n` is not of integers.
    raises ValueError -- If `n` is a negative number; for negative numbers in a tensor the result is NaN.
    raises ImportError -- If SciPy is missing and the kernel is SciPy's.

    Differentiable to any order in `x`. Like ``scipy.special.polygamma``, computed as `xgrad.special` says.

    >>> from xgrad import asarray, special
    >>> special.polygamma(1, asarray([1.0, 2.0]))
    Tensor([1.644..., 0.644...])
    """
    if type(n) in SCALARS:
        if type(n) is not int:
            raise TypeError(f"expected an int for n, got {shown(n)}")
        if n < 0:
            raise ValueError(f"expected n from 0 on, got {n}")
    elif not xp.isdtype(n.dtype, "integral"):
        raise TypeError(f"expected n of integers, got {n.dtype}: use .astype(int64)")
    return xp.special.polygamma(n, x)


def _sinc_series(xp: Any, t: Any, order: int) -> Any:
    """The derivative of sin(t) / t by its power series, for t up to order + 1: terms until they are negligible."""
    first = (order + 1) // 2
    total = xp.zeros_like(t)
    for k in range(first + 16 + 2 * order, first - 1, -1):
        total = total * (t * t) + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order))
    return total * t if order % 2 else total


def _sinc_rule(g: Any, xp: Any, x: Any, order: int) -> Any:
    return g * call_op(_sinc, xp, x, order=order + 1)


@derivative(_sinc_rule, kind=FLOATING, upcast=True)
def _sinc(xp: Any, x: Any, /, *, order: int) -> Any:
    """The derivatives of sinc: away from 0 by a recurrence, near 0, where that cancels, by the power series."""
    t = math.pi * x
    small = xp.abs(t) < order + 1 if order else t == 0
    away = xp.where(small, 1, t)
    values = xp.sin(away) / away
    for n in range(1, order + 1):  # of Leibniz' rule for the product of t and sin(t) / t
        wave = xp.cos(away) if n % 2 else xp.sin(away)
        values = (wave * (1, 1, -1, -1)[n % 4] - n * values) / away
    near = _sinc_series(xp, xp.where(small, t, 0), order) if order else xp.ones_like(t)
    return math.pi**order * xp.where(small, near, values)


@documented()
def sinc(x: Tensor, /) -> Tensor:
    """Return sin(pi x) / (pi x), which is 1 at 0.

    x : Tensor -- Of any shape; integers count as float32.
    returns Tensor -- Of the same shape; float32 stays float32.

    Differentiable to any order, at 0 as well. Like ``scipy.special.sinc``.

    >>> from xgrad import asarray, special
    >>> special.sinc(asarray([0.0, 0.5]))
    Tensor([1.       , 0.636...])
    """
    return _sinc(x, order=0)
