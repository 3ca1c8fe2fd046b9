"""Errors in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np

Reals = np.ndarray[Any, Any]


def ulp(x: Reals, dtype: np.dtype) -> Reals:
    """Return the distance between neighbouring numbers of a dtype at the magnitude of `x`.

    Subnormal numbers and zero have the ULP of the smallest normal number; numbers that overflow
    have the ULP of the largest number.

    Examples
    --------
    >>> import numpy as np
    >>> (ulp(np.array([1.0, 3.0, 0.0]), np.dtype("float32")) * 2.0**23).astype(float)
    array([1.00000000e+00, 2.00000000e+00, 1.17549435e-38])
    """
    info = np.finfo(dtype)
    magnitude = np.clip(np.abs(x).astype(np.longdouble), info.smallest_normal, info.max)
    _, exponent = np.frexp(magnitude)  # for a mantissa from 0.5 to below 1
    return np.asarray(np.ldexp(np.longdouble(1), exponent - 1 - info.nmant))


def distance(
    got: Reals, want: Reals, dtype: np.dtype, extra: Reals | float = 0.0
) -> tuple[Reals, Reals]:
    """Return for each element the error in units, and relative to the same magnitude.

    `dtype` is the dtype of `got`. `want` is the reference, in at least this precision; numbers that
    overflow in `dtype` count as infinite. `extra` is added to the magnitude of the reference before
    its ULP is taken. Errors of integers and bools are 0 or infinite; errors of complex numbers are
    distances in the plane.

    Both errors are 0 for equal infinities and for two NaNs, and infinite for other NaNs and
    infinities. A float32 of 0 has no error where the reference is subnormal, because GPUs flush
    subnormal results.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([1.0, np.nan]), np.array([1 + 2**-52, np.nan])
    >>> distance(x, y, np.dtype("float64"))[0].astype(float)
    array([1., 0.])
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc":
        wrong = np.where(got == want, 0.0, np.inf)
        return wrong, wrong
    with np.errstate(all="ignore"):
        wanted = want.astype(dtype)
        wide = want.astype(np.clongdouble if dtype.kind == "c" else np.longdouble)
        finite = np.isfinite(got) & np.isfinite(wanted)
        error = np.abs(got.astype(wide.dtype) - wide)
        magnitude = np.abs(wide) + extra
        alike = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        flushed = (
            (got == 0)
            & (np.abs(wide) < np.finfo(dtype).smallest_normal)
            & (dtype in (np.float32, np.complex64))
        )
        exact = (error == 0) | (flushed & finite)
        units, relative = (
            np.where(finite, np.where(exact, 0.0, error / scale), np.where(alike, 0.0, np.inf))
            for scale in (
                ulp(magnitude, dtype),
                np.maximum(magnitude, np.finfo(dtype).smallest_normal),
            )
        )
    return units, relative
