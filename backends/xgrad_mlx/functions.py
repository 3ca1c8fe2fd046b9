"""The functions of the standard on MLX's arrays.

They are MLX's own, adapted where they differ, or NumPy's on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Functions that MLX lacks, or whose options or special values differ from the standard: NumPy's,
#: on the host.
_HOSTED = "argsort floor_divide hypot isin nextafter nonzero remainder repeat sort".split()
_HOSTED += [f"unique_{kind}" for kind in ("all", "counts", "inverse", "values")]
_INEXACT = "cos exp logaddexp sin".split()  # in float64 they have the precision of float32
_REDUCTIONS = "all any max mean min".split()
_CREATION = (
    "arange empty empty_like eye full full_like linspace ones ones_like zeros zeros_like".split()
)


def functions(mx: Any, from_host: Callable[[np.ndarray], Any]) -> SimpleNamespace:
    """Return the namespace, given MLX's and a function that converts NumPy arrays to MLX's."""
    compat = import_module("array_api_compat.numpy")

    def hosted(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a NumPy function as a function of MLX arrays, which pass through the host."""

        def to_host(x: Any) -> Any:
            return np.array(x) if isinstance(x, mx.array) else x

        def from_results(out: Any) -> Any:
            if isinstance(out, tuple):
                parts = list(map(from_results, out))
                return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
            return from_host(np.asarray(out))

        return lambda *args, **options: from_results(
            function(*map(to_host, args), **{name: to_host(x) for name, x in options.items()})
        )

    def without_device(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, device=None, **options: function(*args, **options)

    def exact(name: str) -> Callable[..., Any]:
        rounded, exactly = getattr(mx, name), hosted(getattr(compat, name))
        return lambda *args: (exactly if args[0].dtype == mx.float64 else rounded)(*args)

    def sum_dtype(dtype: Any) -> Any:
        """Return the default dtype of a sum."""
        if dtype == mx.bool_ or mx.issubdtype(dtype, mx.signedinteger):
            return mx.int64
        return mx.uint64 if mx.issubdtype(dtype, mx.unsignedinteger) else dtype

    def reduction(name: str) -> Callable[..., Any]:
        """Return a reduction of MLX, or NumPy's for an array without elements.

        For such an array MLX reads memory outside it.
        """
        some, none = getattr(mx, name), hosted(getattr(compat, name))
        return lambda x, /, **options: (some if x.size else none)(x, **options)

    def total(name: str) -> Callable[..., Any]:
        function = reduction(name)

        def call(x: Any, /, *, dtype: Any = None, **options: Any) -> Any:
            return function(x.astype(dtype or sum_dtype(x.dtype)), **options)

        return call

    def indices(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that converts MLX's narrower integers to int64."""
        return lambda *args, **options: function(*args, **options).astype(mx.int64)

    def cumulative(function: Callable[..., Any], first: int) -> Callable[..., Any]:
        def call(
            x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
        ) -> Any:
            axis, x = axis or 0, x.astype(dtype or sum_dtype(x.dtype))
            if include_initial:
                shape = [1 if a == axis % x.ndim else n for a, n in enumerate(x.shape)]
                x = mx.concatenate([mx.full(shape, first, dtype=x.dtype), x], axis=axis)
            return function(x, axis=axis) if x.size else x

        return call

    def variance(
        x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Any:
        centered = x - reduction("mean")(x, axis=axis, keepdims=True)
        squares = total("sum")(centered * centered, axis=axis, keepdims=keepdims)
        return squares / max(x.size / max(squares.size, 1) - correction, 0)

    def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
        sources, targets = (
            [a % x.ndim for a in np.atleast_1d(axes).tolist()] for axes in (source, destination)
        )
        order = [axis for axis in range(x.ndim) if axis not in sources]
        for to, axis in sorted(zip(targets, sources, strict=True)):
            order.insert(to, axis)
        return mx.transpose(x, order)

    def signbit(x: Any, /) -> Any:
        return mx.view(x, {2: mx.int16, 4: mx.int32, 8: mx.int64}[x.dtype.size]) < 0

    def copysign(x: Any, y: Any, /) -> Any:
        x, y = (
            a if isinstance(a, mx.array) else mx.array(a, dtype=b.dtype)
            for a, b in ((x, y), (y, x))
        )
        return mx.where(signbit(y), -mx.abs(x), mx.abs(x))

    own = {name: getattr(mx, name) for name in dir(mx) if not name.startswith("_")}
    own |= {name: without_device(own[name]) for name in _CREATION}
    own |= {name: hosted(getattr(compat, name)) for name in _HOSTED}
    own |= {name: exact(name) for name in _INEXACT}
    own |= {name: reduction(name) for name in _REDUCTIONS}
    own |= {
        "argmax": indices(reduction("argmax")),
        "argmin": indices(reduction("argmin")),
        "asarray": lambda x, *, dtype=None, device=None, copy=None: mx.array(x, dtype=dtype),
        "astype": lambda x, dtype, /, *, copy=True, device=None: mx.array(x, dtype=dtype),
        "bool": mx.bool_,
        "copysign": copysign,
        "count_nonzero": indices(mx.count_nonzero),
        "cumulative_prod": cumulative(mx.cumprod, 1),
        "cumulative_sum": cumulative(mx.cumsum, 0),
        "moveaxis": moveaxis,
        "prod": total("prod"),
        "searchsorted": indices(mx.searchsorted),
        "signbit": signbit,
        "std": lambda x, **options: mx.sqrt(variance(x, **options)),
        "sum": total("sum"),
        "var": variance,
        "vecdot": lambda x, y, /, *, axis=-1: total("sum")(mx.conj(x) * y, axis=axis),
    }
    for part in ("fft", "linalg"):
        module = import_module(f"array_api_compat.numpy.{part}")
        names = [
            name for name in module.__all__ if name.islower() and callable(getattr(module, name))
        ]
        own[part] = SimpleNamespace(**{name: hosted(getattr(module, name)) for name in names})
    vars(own["linalg"]).update(
        {name: own[name] for name in ("matmul", "matrix_transpose", "outer", "vecdot")}
    )
    return SimpleNamespace(**own)
