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
            near = mp.mpf(float(getattr(import_module("scipy.special"), name)(*map(float, args))))
            return mp.findroot(lambda x: function(*args[:-1], x) - args[-1], (near, near * (1 - mp.mpf(2) ** -40)))

        return solve

    def gammainc(a: Any, x: Any) -> Any:
        return mp.gammainc(a, 0, x, regularized=True)

    def gammaincc(a: Any, x: Any) -> Any:
        return mp.gammainc(a, x, mp.inf, regularized=True)

    def betainc(a: Any, b: Any, x: Any) -> Any:
        return mp.betainc(a, b, 0, x, regularized=True)

    return {
        "beta": mp.beta,
        "betainc": betainc,
        "betaincc": lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
        "betaincinv": inverse("betaincinv", betainc),
        "betaln": lambda a, b: mp.log(abs(mp.beta(a, b))),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "cosm1": lambda x: -2 * mp.sin(x / 2) ** 2,
        "erfcinv": lambda y: mp.erfinv(1 - y),
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "exp1": mp.e1,
        "exp10": lambda x: mp.power(10, x),
        "exp2": lambda x: mp.power(2, x),
        "expi": mp.ei,
        "gammainc": gammainc,
        "gammaincc": gammaincc,
        "gammainccinv": inverse("gammainccinv", gammaincc),
        "gammaincinv": inverse("gammaincinv", gammainc),
        "gammaln": lambda x: mp.log(abs(mp.gamma(x))),
        "gammasgn": lambda x: mp.sign(mp.gamma(x)),
        "i0": lambda x: mp.besseli(0, x),
        "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
        "i1": lambda x: mp.besseli(1, x),
        "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
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
        "ndtr": lambda x: mp.erfc(-x / mp.sqrt(2)) * half,
        "ndtri": ndtri,
        "polygamma": lambda n, x: mp.polygamma(int(n), x),
        "psi": mp.digamma,
        "xlog1py": lambda x, y: x and x * mp.log1p(y),
        "xlogy": lambda x, y: x and x * mp.log(y),
        "y0": lambda x: mp.bessely(0, x),
        "y1": lambda x: mp.bessely(1, x),
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
