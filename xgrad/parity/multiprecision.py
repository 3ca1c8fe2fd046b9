"""Special functions in more digits than SciPy has: those of mpmath, for references in long double."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

BITS = 128  # of mantissa: twice those of a long double, for some formulas cancel


def _functions(mp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions that are not mpmath's own of the same name."""
    half = mp.mpf(1) / 2

    def ndtri(y: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * y - 1)

    def inverse(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the inverse in the last argument, by the secant method from what SciPy says."""

        def solve(*args: Any) -> Any:
            numbers = [int(x) if x == int(x) else float(x) for x in args]  # bdtri wants an int for its trials
            near = mp.mpf(float(getattr(import_module("scipy.special"), name)(*numbers)))
            return mp.findroot(lambda x: function(*args[:-1], x) - args[-1], (near, near * (1 - mp.mpf(2) ** -40)))

        return solve

    def gammainc(a: Any, x: Any) -> Any:
        return mp.gammainc(a, 0, x, regularized=True)

    def gammaincc(a: Any, x: Any) -> Any:
        return mp.gammainc(a, x, mp.inf, regularized=True)

    def betainc(a: Any, b: Any, x: Any) -> Any:
        return mp.betainc(a, b, 0, x, regularized=True)

    def bdtr(k: Any, n: Any, p: Any) -> Any:
        return betainc(n - k, k + 1, 1 - p)

    def nbdtr(k: Any, n: Any, p: Any) -> Any:
        return betainc(n, k + 1, p)

    def fdtr(dfn: Any, dfd: Any, x: Any) -> Any:
        return betainc(dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd))

    def stdtr(df: Any, t: Any) -> Any:
        tail = betainc(df / 2, half, df / (df + t * t)) / 2
        return tail if t < 0 else 1 - tail

    def pdtr(k: Any, m: Any) -> Any:
        return gammaincc(k + 1, m)

    def chdtrc(v: Any, x: Any) -> Any:
        return gammaincc(v / 2, x / 2)

    def boxcox(x: Any, lmbda: Any) -> Any:
        return mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x)

    def inv_boxcox(y: Any, lmbda: Any) -> Any:
        return mp.exp(mp.log1p(lmbda * y) / lmbda) if lmbda else mp.exp(y)

    def degrees(x: Any) -> Any:
        return x * mp.pi / 180

    return {
        "bdtr": bdtr,
        "bdtrc": lambda k, n, p: 1 - bdtr(k, n, p),
        "bdtri": inverse("bdtri", bdtr),
        "beta": mp.beta,
        "betainc": betainc,
        "betaincc": lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
        "betaincinv": inverse("betaincinv", betainc),
        "betaln": lambda a, b: mp.log(abs(mp.beta(a, b))),
        "binom": mp.binomial,
        "boxcox": boxcox,
        "boxcox1p": lambda x, lmbda: boxcox(1 + x, lmbda),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "chdtr": lambda v, x: gammainc(v / 2, x / 2),
        "chdtrc": chdtrc,
        "chdtri": inverse("chdtri", chdtrc),
        "cosdg": lambda x: mp.cos(degrees(x)),
        "cosm1": lambda x: -2 * mp.sin(x / 2) ** 2,
        "cotdg": lambda x: mp.cot(degrees(x)),
        "ellipkm1": lambda p: mp.ellipk(1 - p),
        "erfcinv": lambda y: mp.erfinv(1 - y),
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "exp1": mp.e1,
        "exp10": lambda x: mp.power(10, x),
        "exp2": lambda x: mp.power(2, x),
        "expi": mp.ei,
        "expn": mp.expint,
        "exprel": lambda x: mp.expm1(x) / x if x else mp.one,
        "fdtr": fdtr,
        "fdtrc": lambda dfn, dfd, x: 1 - fdtr(dfn, dfd, x),
        "fdtri": inverse("fdtri", fdtr),
        "gammainc": gammainc,
        "gammaincc": gammaincc,
        "gammainccinv": inverse("gammainccinv", gammaincc),
        "gammaincinv": inverse("gammaincinv", gammainc),
        "gammaln": lambda x: mp.log(abs(mp.gamma(x))),
        "gammasgn": lambda x: mp.sign(mp.gamma(x)),
        "gdtr": lambda a, b, x: gammainc(b, a * x),
        "gdtrc": lambda a, b, x: gammaincc(b, a * x),
        "i0": lambda x: mp.besseli(0, x),
        "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        "i1": lambda x: mp.besseli(1, x),
        "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
        "inv_boxcox": inv_boxcox,
        "inv_boxcox1p": lambda y, lmbda: inv_boxcox(y, lmbda) - 1,
        "iv": mp.besseli,
        "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)),
        "j0": lambda x: mp.besselj(0, x),
        "j1": lambda x: mp.besselj(1, x),
        "jv": mp.besselj,
        "k0": lambda x: mp.besselk(0, x),
        "k0e": lambda x: mp.besselk(0, x) * mp.exp(x),
        "k1": lambda x: mp.besselk(1, x),
        "k1e": lambda x: mp.besselk(1, x) * mp.exp(x),
        "kv": mp.besselk,
        "kve": lambda v, x: mp.besselk(v, x) * mp.exp(x),
        "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) * half),
        "logit": lambda x: mp.log(x / (1 - x)),
        "lpmv": lambda m, v, x: mp.legenp(v, m, x),
        "nbdtr": nbdtr,
        "nbdtrc": lambda k, n, p: 1 - nbdtr(k, n, p),
        "nbdtri": inverse("nbdtri", nbdtr),
        "ndtr": lambda x: mp.erfc(-x / mp.sqrt(2)) * half,
        "ndtri": ndtri,
        "pdtr": pdtr,
        "pdtrc": lambda k, m: gammainc(k + 1, m),
        "pdtri": inverse("pdtri", pdtr),
        "poch": mp.rf,
        "polygamma": lambda n, x: mp.polygamma(int(n), x),
        "psi": mp.digamma,
        "radian": lambda d, m, s: degrees(d + m / 60 + s / 3600),
        "sindg": lambda x: mp.sin(degrees(x)),
        "spence": lambda z: mp.polylog(2, 1 - z),
        "stdtr": stdtr,
        "stdtrit": inverse("stdtrit", stdtr),
        "tandg": lambda x: mp.tan(degrees(x)),
        "xlog1py": lambda x, y: x and x * mp.log1p(y),
        "xlogy": lambda x, y: x and x * mp.log(y),
        "y0": lambda x: mp.bessely(0, x),
        "y1": lambda x: mp.bessely(1, x),
        "yn": mp.bessely,
        "yv": mp.bessely,
    }


class Multiprecision:
    """Special functions by their names in SciPy, of NumPy's arrays of long doubles, one element at a time."""

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        mpmath = import_module("mpmath")
        mp = mpmath.mp.clone()
        mp.prec = BITS
        function = _functions(mp).get(name) or getattr(mp, name)

        @lru_cache(1 << 14)  # derivatives by differences ask for the same places again
        def one(*values: Any) -> np.longdouble:
            numbers = [_exactly(mp, v) for v in values]
            return np.longdouble(mpmath.nstr(function(*numbers), 30))

        kernel = np.vectorize(one, otypes=[np.longdouble])
        setattr(self, name, kernel)
        return kernel


def _exactly(mp: Any, value: Any) -> Any:
    """Return a long double, which mpmath does not take, as the sum of two doubles."""
    head = float(value)
    return mp.mpf(head) + mp.mpf(float(value - np.longdouble(head)))
