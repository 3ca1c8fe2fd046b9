"""Special functions of CuPy, or of SciPy, as the namespace ``xp.special``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend.scipy_kernels import SciPyKernels


class CupySpecial(SciPyKernels):
    """Special functions of ``cupyx.scipy.special``, or of SciPy where it has none.

    Arrays pass through the host for SciPy's functions.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if (
            name.startswith("_")
            or name in _OVERFLOWING
            or not hasattr(import_module("cupyx.scipy.special"), name)
        ):
            return super().__getattr__(name)
        kernel: Callable[..., Any] = _in_dtype_of_floats(
            getattr(import_module("cupyx.scipy.special"), name)
        )
        if name == "polygamma":
            kernel = _with_array_order(kernel)
        elif name == "erf":
            kernel = _with_complex(kernel, SciPyKernels(self._backend))
        setattr(self, name, kernel)
        return kernel


#: CuPy multiplies an exponential by the unscaled function: NaN from about 90 on in float32.
_OVERFLOWING = frozenset(("i0e", "i1e", "k0e", "k1e"))


def _in_dtype_of_floats(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return results in the dtype to which the float inputs promote.

    CuPy's functions of integer orders return float64.
    """

    @wraps(kernel)
    def computed(*inputs: Any) -> Any:
        floats = [x.dtype for x in inputs if hasattr(x, "dtype") and x.dtype.kind in "fc"]
        out = kernel(*inputs)
        return out.astype(np.result_type(*floats), copy=False) if floats else out

    return computed


def _with_array_order(polygamma: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the order to CuPy's polygamma as an array of the dtype of `x`.

    An integer order would make the result float64.
    """
    return lambda n, x: polygamma(
        n.astype(x.dtype) if hasattr(n, "dtype") else np.full_like(x, n, shape=()), x
    )


def _with_complex(erf: Callable[..., Any], by_scipy: SciPyKernels) -> Callable[..., Any]:
    """Use SciPy's erf for complex numbers, which CuPy's erf refuses.

    SciPy is optional: it is loaded when the first complex number comes.
    """
    return lambda x: by_scipy.erf(x) if x.dtype.kind == "c" else erf(x)
