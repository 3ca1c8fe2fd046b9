"""SciPy's special functions for the arrays of any library, copied through the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend import Backend


class SciPyKernels:
    """The namespace ``xp.special`` of a backend: SciPy's functions by name, loaded at first use.

    The functions take arrays of the backend and Python scalars, and return an array on the device
    of the arrays, with the dtype to which the floating ones promote. Arrays that are not in host
    memory are copied there and back. `native` has the library's own functions, which take
    precedence.
    """

    def __init__(
        self, backend: Backend, native: dict[str, Callable[..., Any]] | None = None
    ) -> None:
        self._backend = backend
        vars(self).update(native or {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        kernel = self.adapted(_CORRECTED.get(name) or getattr(_scipy_special(name), name))
        setattr(self, name, kernel)
        return kernel

    def adapted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a SciPy function as a function of arrays of the backend."""
        return _through_the_host(self._backend, function)


@cache
def _module() -> Any:
    return import_module("scipy.special")


def _scipy_special(name: str) -> Any:
    try:
        return _module()
    except ImportError as error:
        raise ImportError(
            f"special.{name}: the package SciPy, whose kernel it is, is missing: pip install"
            " 'xgrad[special]'"
        ) from error


def iv(v: Any, z: Any) -> Any:
    """Return the modified Bessel function; SciPy's is NaN, or 0, where z is below about 1e-300.

    There the result is the first term of the series, since the others vanish beside it.
    """
    special = _scipy_special("iv")
    out, tiny = special.iv(v, z), (np.abs(z) < 1e-30) & (z != 0)
    if not np.any(tiny):
        return out
    order = np.where(np.floor(v) == v, np.abs(v), v)  # I of order -n equals I of order n
    wide = np.asarray(z, np.result_type(z, np.float64))
    with np.errstate(all="ignore"):
        first = wide**order * (0.5**order * special.rgamma(order + 1))
    return np.where(tiny, first, out).astype(out.dtype)


#: Replacements of SciPy's functions that are wrong at special values.
_CORRECTED: dict[str, Callable[..., Any]] = {"iv": iv}


def _through_the_host(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(*inputs: Any) -> Any:
        arrays = [x for x in inputs if isinstance(x, backend.array_type)]
        hosts = [backend.to_host(x) if isinstance(x, backend.array_type) else x for x in inputs]
        out = np.asarray(function(*hosts))
        floats = [x.dtype for x in hosts if hasattr(x, "dtype") and x.dtype.kind in "fc"]
        out = out.astype(np.result_type(*floats), copy=False) if floats else out
        # Without an array, the inputs are NumPy scalars, to which NumPy's functions reduce 0-d
        # arrays; the result is then a scalar, too.
        return backend.from_host(out, backend.index_of(arrays[0])) if arrays else out[()]

    kernel.__name__ = function.__name__
    return kernel
