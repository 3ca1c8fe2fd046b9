"""xgrad: automatic differentiation over the Python array API standard, on NumPy and CuPy.

This module is itself a namespace of the standard, whose arrays carry gradients.
"""

import typing as _typing
from importlib import import_module as _import_module
from math import e, inf, nan, pi

from xgrad import autograd, ops
from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.devices import default_device, devices, set_tf32
from xgrad.capture import capture
from xgrad.core.dtypes import (
    bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from xgrad.core.function import Function
from xgrad.core.grad_mode import enable_grad, is_grad_enabled, no_grad
from xgrad.core.lost_gradients import LostGradientWarning, warn_lost_gradients
from xgrad.core.tensor import Tensor
from xgrad.ops.standard import *
from xgrad.support.hints import MissingNameError as _MissingNameError

# PyTorch's names, in the place of the submodules of these names, which are loaded by now
from xgrad.backend.device import Device as device  # isort: skip
from xgrad.core.tensor import Tensor as tensor  # isort: skip

if _typing.TYPE_CHECKING:
    from xgrad import data, fft, linalg, nn, optim, random, special, testing
    from xgrad.backend.threads import get_num_threads, set_num_threads
    from xgrad.core.inspection import __array_namespace_info__
    from xgrad.ops.comparing import allclose, isclose
    from xgrad.ops.contractions import einsum
    from xgrad.ops.diagonals import diag, diagonal
    from xgrad.ops.differences import diff, gradient
    from xgrad.ops.dlpack import from_dlpack
    from xgrad.ops.encoding import one_hot
    from xgrad.ops.padding import pad
    from xgrad.ops.products import kron, outer
    from xgrad.ops.scans import cummax, cummin, logcumsumexp
    from xgrad.ops.selection import partition, topk
    from xgrad.ops.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
    from xgrad.random import manual_seed
    from xgrad.serialization import load, save
    from xgrad.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

newaxis = None

#: Modules and functions that are loaded when they are first asked for, since not all programs need them.
_MODULES = ("data", "fft", "linalg", "nn", "optim", "random", "serialization", "special", "testing")
_FUNCTIONS = {
    "core.inspection": ("__array_namespace_info__",),
    "ops.comparing": ("allclose", "isclose"),
    "ops.contractions": ("einsum",),
    "ops.diagonals": ("diag", "diagonal"),
    "ops.differences": ("diff", "gradient"),
    "ops.dlpack": ("from_dlpack",),
    "ops.encoding": ("one_hot",),
    "ops.padding": ("pad",),
    "ops.products": ("kron", "outer"),
    "ops.scans": ("cummax", "cummin", "logcumsumexp"),
    "ops.selection": ("partition", "topk"),
    "ops.sets": ("isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "backend.threads": ("get_num_threads", "set_num_threads"),
    "random": ("manual_seed",),
    "serialization": ("load", "save"),
    "transforms": ("grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"),
}


if not _typing.TYPE_CHECKING:  # type checkers are to refuse other names

    def __getattr__(name: str) -> _typing.Any:
        if name in _MODULES:
            return _import_module(f"xgrad.{name}")
        for module, functions in _FUNCTIONS.items():
            if name in functions:
                return globals().setdefault(name, getattr(_import_module(f"xgrad.{module}"), name))
        raise _MissingNameError("xgrad", name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Device", "DeviceError", "Function", "LostGradientWarning", "Tensor", "__array_api_version__",
    "__array_namespace_info__", "__version__", "allclose", "autograd", "bool", "capture", "complex64", "complex128",
    "cummax", "cummin", "data", "default_device", "device", "devices", "diag", "diagonal", "diff", "e", "einsum",
    "enable_grad", "fft", "float16", "float32", "float64", "from_dlpack", "get_default_dtype", "get_num_threads",
    "grad", "gradient", "hessian", "hvp", "inf", "int8", "int16", "int32", "int64", "is_grad_enabled", "isclose",
    "isin", "jacobian", "jvp", "kron", "linalg", "load", "logcumsumexp", "manual_seed", "nan", "newaxis", "nn",
    "no_grad", "one_hot", "ops", "optim", "outer", "pad", "partition", "pi", "random", "save", "set_default_dtype",
    "set_num_threads", "set_tf32", "special", "tensor", "testing", "topk", "uint8", "uint16", "uint32", "uint64",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "value_and_grad", "vjp", "warn_lost_gradients",
]  # fmt: skip
__all__ += [name for name in vars(ops.standard) if not name.startswith("_")]
