"""The array functions of the device ``cuda``: array-api-compat's for CuPy, with replacements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad_cupy.cublas import CurrentCublas, supports, takes_tf32
from xgrad_cupy.kernels.sums import sum_of
from xgrad_cupy.matmul import Products


def namespace(cp: Any) -> SimpleNamespace:
    """Return array-api-compat's namespace for CuPy, with replacements.

    They replace functions that synchronize, are slow, or are wrong.
    """
    compat: Any = import_module("array_api_compat.cupy")
    own = SimpleNamespace(**vars(compat))
    for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
        setattr(own, name, _on_device(cp, getattr(cp, name)))
    for name in ("empty_like", "full_like", "ones_like", "zeros_like"):
        setattr(own, name, _on_device(cp, getattr(cp, name), like=True))
    frequencies = {
        name: _on_device(cp, getattr(compat.fft, name)) for name in ("fftfreq", "rfftfreq")
    }
    own.fft = SimpleNamespace(**vars(compat.fft) | frequencies)
    linalg = {name: _with_geev_hint(getattr(compat.linalg, name)) for name in ("eig", "eigvals")}
    linalg["cholesky"] = _with_nan(cp, compat.linalg.cholesky)
    linalg |= {name: _passing_nan(cp, getattr(compat.linalg, name)) for name in ("inv", "solve")}
    own.linalg = SimpleNamespace(**vars(compat.linalg) | linalg)
    own.log = partial(_log, cp)
    own.sign = cp.sign  # compat's synchronizes
    own.clip = lambda x, /, min=None, max=None: x.clip(min, max)  # compat's synchronizes
    own.matmul, own.vecdot = _matmul_of(cp), _vecdot
    own.sum = sum_of(cp, compat.sum)
    own.cumulative_sum = partial(_scan, cp.cumsum, compat.cumulative_sum)
    own.cumulative_prod = partial(_scan, cp.cumprod, compat.cumulative_prod)
    return own


def _with_geev_hint(solve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Name the remedy in the error of a cuSOLVER without the solver of general eigenproblems."""

    @wraps(solve)
    def solved(x: Any, /) -> Any:
        try:
            return solve(x)
        except RuntimeError as error:
            if "geev" not in str(error):
                raise
            raise RuntimeError(
                f"cuSOLVER has no geev here: install a newer CUDA, or use x.to('cpu'): {error}"
            ) from error

    return solved


def _with_nan(cp: Any, cholesky: Callable[..., Any]) -> Callable[..., Any]:
    """Return NaN for a matrix that is not positive definite.

    CuPy returns a partial factorization.
    """

    @wraps(cholesky)
    def factorized(x: Any, /, *, upper: bool = False) -> Any:
        out = cholesky(x, upper=upper)
        positive = (out.diagonal(0, -2, -1).real > 0).all(axis=-1)
        return cp.where(positive[..., None, None], out, np.nan)

    return factorized


def _passing_nan(cp: Any, solve: Callable[..., Any]) -> Callable[..., Any]:
    """Return NaN for a matrix that contains NaN.

    cuSOLVER's LU decomposition can return finite results for it.
    """

    @wraps(solve)
    def solved(x: Any, /, *others: Any) -> Any:
        out = solve(x, *others)
        wrong = cp.isnan(x).any(axis=(-2, -1))
        vector = bool(others) and others[0].ndim == 1
        return cp.where(wrong[..., None] if vector else wrong[..., None, None], np.nan, out)

    return solved


def _log(cp: Any, x: Any, /) -> Any:
    """Return the logarithm, with an infinite real part for every infinite complex number.

    CuPy's result lacks it for a number with an infinite part and a NaN.
    """
    out = cp.log(x)
    if x.dtype.kind == "c":
        out.real[...] = cp.where(cp.isinf(x), np.inf, out.real)
    return out


def _on_device(cp: Any, create: Callable[..., Any], like: bool = False) -> Callable[..., Any]:
    """Add the parameter `device` to a creation function of CuPy: array-api-compat's ignores it."""

    @wraps(create)
    def created(*args: Any, device: Any = None, **options: Any) -> Any:
        if device is None and like:
            device = args[0].device
        with cp.cuda.Device(device):  # the current one, if None
            return create(*args, **options)

    return created


def _matmul_of(cp: Any) -> Callable[..., Any]:
    """Return the function for matrix products, by the same cuBLAS calls as in a CUDA graph.

    For contiguous real matrices CuPy itself makes these calls, in half the time. It copies other
    layouts, multiplies stacks and complex numbers by other functions, and rounds each term when it
    multiplies rows by columns in float16.
    """
    products = Products(cp, CurrentCublas(cp))

    def matmul(x1: Any, x2: Any, /, out: Any = None) -> Any:
        if x1.ndim > 2 and x2.ndim == 2 and out is None:
            rows = x1.reshape(math.prod(x1.shape[:-1]), x1.shape[-1])
            return matmul(rows, x2).reshape(*x1.shape[:-1], x2.shape[1])
        dtype = np.result_type(x1.dtype, x2.dtype)
        if not supports(dtype) or (dtype.char in "fd" and is_plain(x1) and is_plain(x2)):
            return x1 @ x2 if out is None else x1.dot(x2, out)
        products.cublas.tf32 = takes_tf32(cp)
        return products.matmul(x1, x2, out)

    def is_plain(x: Any) -> bool:
        return bool(x.ndim <= 2 and (x.flags.c_contiguous or x.flags.f_contiguous))

    return matmul


def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the sums of products along an axis, by elementwise multiplication.

    array-api-compat multiplies stacks of 1 by 1 matrices.
    """
    dtype = np.result_type(x1.dtype, x2.dtype)
    if dtype == np.float16:  # products overflow above 65504
        return _vecdot(x1.astype(np.float32), x2.astype(np.float32), axis=axis).astype(dtype)
    return (x1.conj() * x2).sum(axis=axis, dtype=dtype)


def _scan(flat: Callable[..., Any], general: Callable[..., Any], x: Any, /, **options: Any) -> Any:
    """Accumulate along an axis; CuPy has a fast kernel for one axis, unless `axis` is passed."""
    if (
        x.ndim == 1
        and x.size
        and options.get("axis") in (None, 0, -1)
        and not options.get("include_initial")
    ):
        return flat(x, dtype=options.get("dtype"))
    return general(x, **options)
