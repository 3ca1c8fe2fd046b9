"""References by mpmath in 128 bits: special functions and linear algebra.

The linear algebra replaces functions that LAPACK has in double precision only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

BITS = 128  # of mantissa: twice as many as a long double, for formulas that cancel
LONG = {
    np.dtype(np.float64): np.dtype(np.longdouble),
    np.dtype(np.complex128): np.dtype(np.clongdouble),
}
DOUBLE = {long: double for double, long in LONG.items()}


@cache
def _mpmath() -> Any:
    """Return the functions of mpmath at the precision of the references."""
    mp = import_module("mpmath").mp.clone()
    mp.prec = BITS
    return mp


def _to_mpmath(x: Any) -> Any:
    """Return a long double as a number of mpmath, which is the sum of two doubles."""
    if isinstance(x, np.complexfloating):
        return _mpmath().mpc(_to_mpmath(x.real), _to_mpmath(x.imag))
    head = float(x)
    return _mpmath().mpf(head) + _mpmath().mpf(float(x - np.longdouble(head)))


def _from_mpmath(x: Any) -> Any:
    """Return a number of mpmath as a long double."""
    if isinstance(x, _mpmath().mpc):
        return _from_mpmath(x.real) + 1j * _from_mpmath(x.imag)
    return np.longdouble(_mpmath().nstr(x, 30))


def _special_functions(mp: Any) -> Any:
    """Return SciPy's functions that differ from mpmath's functions of the same name."""

    def inverse(name: str, function: str) -> Callable[..., Any]:
        """Return the inverse in the last argument: the secant method, from SciPy's result."""

        def solve(*args: Any) -> Any:
            # ints where possible: bdtri takes an int for its trials
            numbers = [int(x) if x == int(x) else float(x) for x in args]
            near = mp.mpf(float(getattr(import_module("scipy.special"), name)(*numbers)))
            if not mp.isfinite(near):
                return near
            start = near, near * (1 - mp.mpf(2) ** -40)
            return mp.findroot(lambda x: getattr(f, function)(*args[:-1], x) - args[-1], start)

        return solve

    def legendre(m: Any, v: Any, x: Any) -> Any:
        """Return Ferrers' function of an integer order: DLMF 14.3.4.

        It is 20 times as fast as `mpmath.legenp`.
        """
        factor = (
            (-1) ** int(m)
            * mp.rf(v - m + 1, 2 * m)
            * (1 - x * x) ** (m / 2)
            / 2**m
            / mp.factorial(m)
        )
        return factor * mp.hyp2f1(v + m + 1, m - v, m + 1, (1 - x) / 2)

    bessel = {"i": mp.besseli, "j": mp.besselj, "k": mp.besselk, "y": mp.bessely}
    inverses = {
        "bdtri": "bdtr",
        "nbdtri": "nbdtr",
        "pdtri": "pdtr",
        "chdtri": "chdtrc",
        "fdtri": "fdtr",
        "stdtrit": "stdtr",
        "betaincinv": "betainc",
        "gammaincinv": "gammainc",
        "gammainccinv": "gammaincc",
    }
    f: Any = SimpleNamespace(
        # gamma and beta functions
        betainc=lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        betaincc=lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True),
        betaln=lambda a, b: mp.log(abs(mp.beta(a, b))),
        binom=mp.binomial,
        gammainc=lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        gammaincc=lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        gammaln=lambda x: mp.log(abs(mp.gamma(x))),
        gammasgn=lambda x: mp.sign(mp.gamma(x)),
        poch=mp.rf,
        polygamma=lambda n, x: mp.polygamma(int(n), x),
        psi=mp.digamma,
        # distributions
        bdtr=lambda k, n, p: f.betainc(n - k, k + 1, 1 - p),
        nbdtr=lambda k, n, p: f.betainc(n, k + 1, p),
        pdtr=lambda k, m: f.gammaincc(k + 1, m),
        pdtrc=lambda k, m: f.gammainc(k + 1, m),
        chdtr=lambda v, x: f.gammainc(v / 2, x / 2),
        chdtrc=lambda v, x: f.gammaincc(v / 2, x / 2),
        fdtr=lambda dfn, dfd, x: f.betainc(dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd)),
        gdtr=lambda a, b, x: f.gammainc(b, a * x),
        gdtrc=lambda a, b, x: f.gammaincc(b, a * x),
        stdtr=lambda df, t: (
            (mp.sign(t) * (1 - f.betainc(df / 2, mp.mpf(1) / 2, df / (df + t * t))) + 1) / 2
        ),
        ndtr=lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
        ndtri=lambda y: mp.sqrt(2) * mp.erfinv(2 * y - 1),
        log_ndtr=lambda x: mp.log(f.ndtr(x)),
        **{
            f"{name}c": lambda *args, name=name: 1 - getattr(f, name)(*args)
            for name in ("bdtr", "nbdtr", "fdtr")
        },
        **{name: inverse(name, function) for name, function in inverses.items()},
        # powers, exponentials and logarithms
        boxcox=lambda x, lmbda: mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x),
        boxcox1p=lambda x, lmbda: f.boxcox(1 + x, lmbda),
        inv_boxcox=lambda y, lmbda: mp.exp(mp.log1p(lmbda * y) / lmbda) if lmbda else mp.exp(y),
        inv_boxcox1p=lambda y, lmbda: f.inv_boxcox(y, lmbda) - 1,
        cbrt=lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        exp2=lambda x: mp.power(2, x),
        exp10=lambda x: mp.power(10, x),
        exprel=lambda x: mp.expm1(x) / x if x else mp.one,
        logit=lambda x: mp.log(x / (1 - x)),
        xlogy=lambda x, y: x and x * mp.log(y),
        xlog1py=lambda x, y: x and x * mp.log1p(y),
        # error functions and exponential integrals
        erfcinv=lambda y: mp.erfinv(1 - y),
        erfcx=lambda x: mp.exp(x * x) * mp.erfc(x),
        exp1=mp.e1,
        expi=mp.ei,
        expn=mp.expint,
        # Bessel functions
        **{f"{kind}{n}": partial(function, n) for kind, function in bessel.items() for n in (0, 1)},
        **{f"{kind}v": function for kind, function in bessel.items()},
        yn=mp.bessely,
        i0e=lambda x: f.ive(0, x),
        i1e=lambda x: f.ive(1, x),
        ive=lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)),
        k0e=lambda x: f.kve(0, x),
        k1e=lambda x: f.kve(1, x),
        kve=lambda v, x: (
            mp.sqrt(mp.pi) * (2 * x) ** v * mp.hyperu(v + 0.5, 2 * v + 1, 2 * x)
        ),  # DLMF 10.39.6
        # others
        ellipkm1=lambda p: mp.ellipk(1 - p),
        lpmv=legendre,
        spence=lambda z: mp.polylog(2, 1 - z),
        cosm1=lambda x: -2 * mp.sin(x / 2) ** 2,
        radian=lambda d, m, s: (d + m / 60 + s / 3600) * mp.pi / 180,
        **{
            f"{name}dg": lambda x, name=name: getattr(mp, name)(x * mp.pi / 180)
            for name in ("sin", "cos", "tan", "cot")
        },
    )
    return f


class SpecialFunctions:
    """Special functions by SciPy's names, for NumPy arrays of long doubles.

    The result is NaN where a function is not real.
    """

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        function = getattr(_special_functions(_mpmath()), name, None) or getattr(_mpmath(), name)

        @lru_cache(1 << 14)  # finite differences repeat arguments
        def call(*numbers: Any) -> Any:
            try:
                value = function(*map(_to_mpmath, numbers))
            except (ValueError, ZeroDivisionError):  # at a pole, or outside the domain
                value = getattr(import_module("scipy.special"), name)(*map(float, numbers))
                if np.isfinite(value):
                    raise
                return np.longdouble(value)
            return np.longdouble(np.nan) if getattr(value, "imag", 0) else _from_mpmath(value)

        kernel = np.vectorize(call, otypes=[np.longdouble])
        setattr(self, name, kernel)
        return kernel


class LinearAlgebra:
    """The namespace ``xp.linalg`` of NumPy, with decompositions of long doubles by mpmath."""

    def __init__(self, linalg: Any) -> None:
        self._linalg = linalg

    def __getattr__(self, name: str) -> Callable[..., Any]:
        numpy_function, mpmath_function = getattr(self._linalg, name), _LINALG.get(name)

        def call(*arrays: np.ndarray, **options: Any) -> Any:
            if mpmath_function is None or arrays[0].dtype not in DOUBLE:
                return numpy_function(*arrays, **options)
            if all(x.size for x in arrays):
                return mpmath_function(*arrays, **options)
            results = numpy_function(*[x.astype(DOUBLE[x.dtype]) for x in arrays], **options)
            long = [
                y.astype(LONG.get(y.dtype, y.dtype))
                for y in (results if isinstance(results, tuple) else [results])
            ]
            return tuple(long) if isinstance(results, tuple) else long[0]

        setattr(self, name, call)
        return call


def _each(
    function: str | Callable[..., Any], x: np.ndarray, **options: Any
) -> tuple[np.ndarray, ...]:
    """Apply a function of mpmath to each matrix of a stack.

    The results are arrays of the dtype of `x`.
    """
    call = getattr(_mpmath(), function) if isinstance(function, str) else function
    matrix = _mpmath().matrix

    def array(result: Any) -> np.ndarray:
        if not isinstance(result, matrix):
            result = matrix(result if isinstance(result, list) else [result])
        return np.array([_from_mpmath(number) for number in result], x.dtype).reshape(
            result.rows, result.cols
        )

    def apply(a: np.ndarray) -> list[np.ndarray]:
        results = call(matrix([[_to_mpmath(number) for number in row] for row in a]), **options)
        return [array(result) for result in (results if isinstance(results, tuple) else (results,))]

    stacks = zip(*[apply(x[index]) for index in np.ndindex(x.shape[:-2])], strict=True)
    return tuple([np.stack(parts).reshape(x.shape[:-2] + parts[0].shape) for parts in stacks])


def _adjoint(x: np.ndarray) -> Any:
    return np.conj(x.mT)


def _inv(x: np.ndarray, /) -> Any:
    return _each("inverse", x)[0]


def _solve(x1: np.ndarray, x2: np.ndarray, /) -> Any:
    return (_inv(x1) @ x2[:, None])[..., 0] if x2.ndim == 1 else _inv(x1) @ x2


def _det(x: np.ndarray, /) -> Any:
    def det(a: Any) -> Any:
        try:
            return _mpmath().det(a)
        except TypeError:  # mpmath 1.3, for a column of zeros
            return 0

    return _each(det, x)[0][..., 0, 0]


def _slogdet(x: np.ndarray, /) -> Any:
    determinants = _det(x)
    return np.sign(determinants), np.log(np.abs(determinants))


def _cholesky(x: np.ndarray, /, *, upper: bool = False) -> Any:
    low = _each("cholesky", x)[0]
    return _adjoint(low) if upper else low


def _qr(x: np.ndarray, /, *, mode: str = "reduced") -> Any:
    count = min(x.shape[-2:])
    q = _each("qr", x[..., :count])[0]
    q = q if mode == "complete" else q[..., :count]
    return q, np.triu(_adjoint(q) @ x)


def _eig(x: np.ndarray, /) -> Any:
    values, vectors = _each("eig", x + 0j)
    return values[..., 0], vectors / np.sqrt(np.sum(np.abs(vectors) ** 2, axis=-2, keepdims=True))


def _eigvals(x: np.ndarray, /) -> Any:
    return _eig(x)[0]


def _eigh(x: np.ndarray, /) -> Any:
    values, vectors = _each("eigh", (x + _adjoint(x)) / 2)
    return np.real(values[..., 0]), vectors


def _eigvalsh(x: np.ndarray, /) -> Any:
    return _eigh(x)[0]


def _svd(x: np.ndarray, /, *, full_matrices: bool = True) -> Any:
    u, s, vh = _each("svd", x, full_matrices=full_matrices)
    return u, np.real(s[..., 0]), vh


def _svdvals(x: np.ndarray, /) -> Any:
    return _svd(x)[1]


def _above(x: np.ndarray, s: np.ndarray, rtol: Any) -> Any:
    """Return which singular values of a matrix count as nonzero."""
    rtol = (
        max(x.shape[-2:]) * np.finfo(np.float64).eps
        if rtol is None
        else np.asarray(rtol)[..., None]
    )
    return s > rtol * s[..., :1]


def _matrix_rank(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    return np.sum(_above(x, _svdvals(x), rtol), axis=-1)


def _pinv(x: np.ndarray, /, *, rtol: Any = None) -> Any:
    u, s, vh = _svd(x, full_matrices=False)
    keep = _above(x, s, rtol)
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0)
    return _adjoint(vh) @ (inverse[..., None] * _adjoint(u))


_LINALG: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "det": _det,
    "eig": _eig,
    "eigh": _eigh,
    "eigvals": _eigvals,
    "eigvalsh": _eigvalsh,
    "inv": _inv,
    "matrix_rank": _matrix_rank,
    "pinv": _pinv,
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": _solve,
    "svd": _svd,
    "svdvals": _svdvals,
}
