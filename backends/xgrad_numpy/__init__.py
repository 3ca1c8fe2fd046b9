"""NumPy arrays as the device ``cpu``."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from xgrad.backend import Backend
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.support.refcounts import references
from xgrad_numpy import functions, products, sums

# NumPy functions that conform to the standard. An older NumPy lacks some of them: array-api-compat
# has these.
_NATIVE = """
abs acos acosh add all any arange argmax argmin asarray asin asinh atan atan2 atanh bitwise_and \
bitwise_invert
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_to concat conj copysign \
cos cosh
cumulative_prod divide empty empty_like equal exp expm1 eye flip floor_divide from_dlpack full
full_like greater greater_equal hypot imag isdtype isfinite isin isinf isnan less less_equal \
linspace log log10 log1p
log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum moveaxis multiply \
negative
nextafter not_equal ones ones_like permute_dims positive prod real reciprocal remainder repeat \
roll round
searchsorted sign signbit sin sinh sqrt square std subtract take take_along_axis tan tanh tile \
tril triu
var vecdot zeros zeros_like
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128 e inf \
nan newaxis pi
""".split()

#: Functions of the namespace, and kernels, by the module that defines them.
_OWN: dict[Any, str] = {
    functions: (
        "argsort astype expand_dims matrix_transpose max min pow reshape sort squeeze stack where"
    ),
    products: "matmul",
    sums: "cumulative_sum mean sum",
}
_KERNELS: dict[Any, str] = {
    functions: "clip expm1 floor_divide relu tanh uniform",
    products: "multiply_add",
    sums: "sum_products",
}
#: Kernels by module; a module is loaded at the first call of one of its kernels.
_LAZY_KERNELS = {
    "recurrent": "lstm_steps lstm_gradient gru_steps gru_gradient",
    "convolution": "convolution convolution_input convolution_weight",
    "pooling": "maximum_pool maximum_pool_gradient",
}
#: Elementwise rules of several functions, which are compiled for large arrays.
_COMPILED = frozenset({
    "probability_below", "gelu_tanh_values", "gelu_values", "relu_gradient",
})  # fmt: skip
#: Rules of several calls, for which programs are made if arrays are large.
_PROGRAMS = frozenset(
    {"standardize", "normalization_gradient", "attention_values", "attention_gradient"}
)
#: Update rules of optimizers, which are compiled for large arrays.
_UPDATES = frozenset({"sgd_step", "adam_step"})
_MANY = 1 << 14  # elements from which an array is large
#: Bytes of an array that is freed at once and never touched. It makes glibc keep freed memory:
#: glibc returns only blocks larger than the largest that it has mapped and freed, up to 32 MiB, and
#: the system zeroes each page of memory that is allocated after that.
_LARGEST = (1 << 25) - (1 << 16)


class _Namespace:
    """NumPy where it conforms; array-api-compat, loaded at its first use, for the rest."""

    def __init__(self) -> None:
        vars(self).update({name: getattr(np, name) for name in _NATIVE if hasattr(np, name)})
        vars(self).update(_members(_OWN))

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module("array_api_compat.numpy"), name)
        if name == "linalg":
            # not at the top: loaded at the first use
            from xgrad.backend.finite_linalg import finite_linalg

            value = finite_linalg(value, np.asarray)
        setattr(self, name, value)
        return value


def _members(names: dict[Any, str]) -> dict[str, Any]:
    """Return members of modules by name."""
    return {name: getattr(module, name) for module, text in names.items() for name in text.split()}


def _lazy(module: str, name: str) -> Callable[..., Any]:
    """Return a kernel whose module is loaded at its first call, because it imports ops."""

    load = cache(lambda: getattr(import_module(f"xgrad_numpy.{module}"), name))

    def kernel(*inputs: Any, **options: Any) -> Any:
        return load()(*inputs, **options)

    kernel.__name__ = name
    return kernel


def _compiled(name: str, xp: Any) -> Callable[..., Any]:
    """Return the kernel of an elementwise rule, which is compiled at the first large array."""

    def kernel(*arrays: Any) -> Any:
        if arrays[0].size >= _MANY:
            from xgrad_numpy.native import rule_kernels  # not at the top: it starts a compiler

            if (compiled := rule_kernels.find(name, arrays)) is not None:
                return compiled(arrays)
        return OVERRIDABLE[name].generic(xp, *arrays)

    kernel.__name__ = name
    return kernel


def _as_program(name: str, xp: Any) -> Callable[..., Any]:
    """Return the kernel of a rule of several calls.

    Programs are made for it from the first large array on.
    """

    def kernel(*args: Any) -> Any:
        if args[0].size >= _MANY:
            from xgrad_numpy.native import rule_programs  # not at the top: it starts a compiler

            if (result := rule_programs.call(name, args)) is not None:
                return result
        return OVERRIDABLE[name].generic(xp, *args)

    kernel.__name__ = name
    return kernel


def _as_update(name: str, xp: Any) -> Callable[..., Any]:
    """Return the kernel of an update rule, which is compiled at the first large array.

    Plain SGD, which has no moments, is compiled only if there are several threads: on one thread
    NumPy is as fast.
    """

    def kernel(*args: Any) -> Any:
        if args[0].size >= _MANY and (args[2] is not None or products.sharing.several):
            from xgrad_numpy.native import update_kernels  # not at the top: it starts a compiler

            updated, result = update_kernels.update(name, args)
            if updated:
                return result
        return OVERRIDABLE[name].generic(xp, *args)

    kernel.__name__ = name
    return kernel


class NumpyBackend(Backend):
    """The CPU through NumPy; always usable."""

    library = "numpy"
    array_type = np.ndarray
    devices = ("cpu",)
    supports_out = True
    tile_size = 1 << 16
    executor = "xgrad_numpy.executor"
    rule_kernels = _COMPILED | _PROGRAMS | _UPDATES | {"multiply_add"}

    def __init__(self) -> None:
        np.empty(_LARGEST, np.uint8)
        self.xp = _Namespace()
        self.xp.index_add = self.index_add
        self.kernels = {"remainder": np.remainder} | _members(_KERNELS)
        for module, names in _LAZY_KERNELS.items():
            self.kernels |= {name: _lazy(module, name) for name in names.split()}
        self.kernels |= {name: _compiled(name, self.xp) for name in _COMPILED}
        self.kernels |= {name: _as_program(name, self.xp) for name in _PROGRAMS}
        self.kernels |= {name: _as_update(name, self.xp) for name in _UPDATES}

    def describe(self, index: int) -> str:
        return f"NumPy {np.__version__}, {os.cpu_count()} cores"

    def to_host(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x)

    def from_host(self, x: np.ndarray, index: int) -> np.ndarray:
        return x

    def array_converter(self, index: int) -> Callable[[Any], np.ndarray]:
        return np.asarray

    def is_exclusive(self, arrays: list[np.ndarray]) -> bool:
        owner = arrays[0] if arrays[0].base is None else arrays[0].base
        if type(owner) is not np.ndarray or owner.base is not None or not owner.flags.writeable:
            return False
        views = sum([x.base is owner for x in arrays])
        owners = len(arrays) - views
        if owners > 1 or (owners and arrays[0] is not owner):
            return False
        of_owner = 1 + views  # references by this variable and by the base of each view
        if owners:
            return references(arrays) == len(arrays) + of_owner
        return references(arrays) == len(arrays) and references([owner]) == of_owner

    def export_buffer(self, x: np.ndarray, *, read_only: bool, copy: bool) -> np.ndarray:
        # A negative stride crashes PyTorch.
        if copy and (min(x.strides, default=0) < 0 or not (read_only or x.flags.writeable)):
            return x.copy()
        view = x.view()
        view.flags.writeable = x.flags.writeable and not read_only
        return view

    def index_add(self, x: np.ndarray, key: Any, values: np.ndarray) -> np.ndarray:
        out: np.ndarray = functions.index_add(x, key, values)
        return out
