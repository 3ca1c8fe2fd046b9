"""Dask's arrays as the device ``dask``: rules build Dask's graphs, which its schedulers run, on a cluster too.

Dask's arrays are immutable: tensors hold mutable ones over them. Nothing is computed until values are read: by
``.numpy()``, ``.item()``, or a condition. Differences from ``cpu``:

- Checks of values are left out, for they would compute the graph.
- NumPy computes on whole arrays, not by chunks, in decompositions of matrices, in indexing by several arrays, and in
  sums of repeated indices.
- Functions whose shapes depend on values are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from xgrad.backend import Backend, DeviceError
from xgrad.backend.mutable import MutableArray, MutableNamespace, unwrapped
from xgrad.backend.scipy_kernels import SciPyKernels

_LINALG = "cholesky cross det eig eigh eigvals eigvalsh inv matrix_rank pinv qr slogdet solve svd svdvals".split()
_WHOLE = "repeat searchsorted take_along_axis".split()


def whole(function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Return the results of a function of NumPy of whole arrays; shapes and dtypes are those for other values."""
    dask, da = import_module("dask"), import_module("dask.array")
    with np.errstate(all="ignore"):
        example = function(*[_example(x) for x in inputs], **options)
    results = dask.delayed(function)(*inputs, **options)
    if not isinstance(example, tuple):
        return da.from_delayed(results, example.shape, dtype=example.dtype)
    parts = [da.from_delayed(results[i], x.shape, dtype=x.dtype) for i, x in enumerate(example)]
    return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)


def _example(x: Any) -> Any:
    """Return an array of NumPy like one of Dask, with values for which functions are defined."""
    if not hasattr(x, "dask"):
        return x
    values = np.eye(*x.shape[-2:]) if x.ndim > 1 and x.dtype.kind in "fc" else np.zeros(())
    return np.broadcast_to(values, x.shape).astype(x.dtype)


def _item(x: Any, *key: Any) -> Any:
    return np.asarray(x[key])


def _replaced(x: Any, value: Any, *key: Any) -> Any:
    x = x.copy()
    x[key] = value
    return x


def _added(x: Any, value: Any, *key: Any) -> Any:
    x = x.copy()
    np.add.at(x, key, value)
    return x


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


class DaskArray(MutableArray):
    """A mutable array over Dask's."""

    __slots__ = ()

    @staticmethod
    def namespace() -> Any:
        return import_module("array_api_compat.dask.array")

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        if any(hasattr(part, "dask") for part in _parts(key)):
            return whole(_replaced, x, value, *_parts(key))
        new = x.copy()
        if new[key].size:  # Dask refuses empty parts
            new[key] = value
        return new

    @property
    def device(self) -> str:
        return "cpu"

    def __getitem__(self, key: Any) -> MutableArray:
        if sum(isinstance(part, DaskArray) for part in _parts(key)) > 1:
            return DaskArray(whole(_item, self.native, *unwrapped(_parts(key))))
        return super().__getitem__(key)


class DaskBackend(Backend):
    """Dask, through array-api-compat."""

    library = "dask"
    devices = ("cpu",)
    array_type = DaskArray
    asynchronous = True

    def __init__(self) -> None:
        try:
            self._da: Any = import_module("dask.array")
            namespace = DaskArray.namespace()
        except ImportError as error:
            raise DeviceError("dask: the package Dask is missing: pip install 'xgrad[dask]'") from error
        linalg = {name: partial(whole, getattr(np.linalg, name)) for name in _LINALG}
        added: dict[str, Any] = {name: partial(whole, getattr(np, name)) for name in _WHOLE}
        added["linalg"] = SimpleNamespace(**vars(namespace.linalg) | linalg)
        library = SimpleNamespace(**vars(namespace) | added)
        self.xp = MutableNamespace(library, DaskArray, index_add=self.index_add, special=SciPyKernels(self))

    def versions(self) -> dict[str, str]:
        return {"dask": import_module("dask").__version__}

    def describe(self, index: int) -> str:
        return f"Dask {import_module('dask').__version__}"

    def to_host(self, x: Any) -> np.ndarray:
        return np.array(x.native.compute())

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return DaskArray(self._da.from_array(np.array(x)))

    def array_converter(self, index: int) -> Callable[[Any], Any]:
        return lambda value: DaskArray(value) if hasattr(value, "dask") else self.from_host(np.asarray(value), index)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return DaskArray(whole(_added, x.native, unwrapped(values), *unwrapped(_parts(key))))
