"""xgrad: automatic differentiation over the Python array API standard, on NumPy and CuPy.

This module is itself a namespace of the standard, for arrays with gradients.
"""

import math as _math
import typing as _typing
from importlib import import_module as _import_module

from xgrad import ops
from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.backend.devices import default_device, devices, set_tf32
from xgrad.capture import capture
from xgrad.core import providers as _providers
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
from xgrad.core.modes import enable_grad, is_grad_enabled, no_grad
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import *
from xgrad.ops.dtype_functions import *
from xgrad.ops.elementwise import *
from xgrad.ops.indexing import *
from xgrad.ops.joining import *
from xgrad.ops.manipulation import *
from xgrad.ops.matrix_products import *
from xgrad.ops.searching import *
from xgrad.ops.statistical import *
from xgrad.ops.tensor_conversion import *
from xgrad.support.hints import MissingNameError as _MissingNameError

# PyTorch's names; imported after the submodules of the same names, which they replace
from xgrad.backend.device import Device as device  # isort: skip
from xgrad.core.tensor import Tensor as tensor  # isort: skip

_providers.register(
    autograd="xgrad.autograd",
    differences="xgrad.ops.differences",
    dlpack="xgrad.ops.dlpack",
    functions="xgrad",
    lost_gradients="xgrad.diagnostics.lost_gradients",
    memory="xgrad.diagnostics.memory",
    nonfinite="xgrad.ops.nonfinite",
    norms="xgrad.ops.norms",
    numpy_protocol="xgrad.numpy_protocol",
    precision="xgrad.ops.precision",
    recomputation="xgrad.transforms.recomputation",
    remainders="xgrad.ops.remainders",
    special="xgrad.special",
    softmaxes="xgrad.ops.softmaxes",
    standard_2024_12="xgrad.standard_2024_12",
    writing=ops.writing,
)

if _typing.TYPE_CHECKING:
    from xgrad import (
        amp,
        autograd,
        data,
        distributed,
        distributions,
        fft,
        linalg,
        nn,
        onnx,
        optim,
        random,
        special,
        testing,
        training,
    )
    from xgrad.backend.threads import get_num_threads as get_num_threads
    from xgrad.backend.threads import set_num_threads as set_num_threads
    from xgrad.diagnostics.lost_gradients import LostGradientWarning as LostGradientWarning
    from xgrad.diagnostics.lost_gradients import warn_lost_gradients as warn_lost_gradients
    from xgrad.diagnostics.memory import memory_held as memory_held
    from xgrad.inspection.graph import graph as graph
    from xgrad.inspection.profile import profile as profile
    from xgrad.integration import odeint as odeint
    from xgrad.integration import odeint_adjoint as odeint_adjoint
    from xgrad.namespace_info import __array_namespace_info__ as __array_namespace_info__
    from xgrad.ops.comparing import *
    from xgrad.ops.contractions import *
    from xgrad.ops.covariance import *
    from xgrad.ops.diagonals import *
    from xgrad.ops.differences import *
    from xgrad.ops.distances import *
    from xgrad.ops.dlpack import *
    from xgrad.ops.encoding import *
    from xgrad.ops.histograms import *
    from xgrad.ops.integration import *
    from xgrad.ops.matrix_products import kron as kron
    from xgrad.ops.matrix_products import outer as outer
    from xgrad.ops.nonfinite import *
    from xgrad.ops.padding import *
    from xgrad.ops.quantiles import *
    from xgrad.ops.remainders import *
    from xgrad.ops.scans import *
    from xgrad.ops.selection import *
    from xgrad.ops.sets import *
    from xgrad.ops.triangle_indices import *
    from xgrad.random import manual_seed as manual_seed
    from xgrad.serialization import *
    from xgrad.transforms import *

__version__ = "0.2.0"
"""The version of xgrad."""
__array_api_version__ = "2025.12"
"""The version of the Python array API standard that the namespace follows."""

e = _math.e
"""Euler's number, the base of natural logarithms: 2.718281828459045."""
inf = _math.inf
"""Infinity."""
nan = _math.nan
"""Not a number, which is unequal to all numbers and itself: see `xgrad.isnan`."""
newaxis = None
"""A new axis of length 1 in an index: ``x[:, xgrad.newaxis]``."""
pi = _math.pi
"""Half the circumference of the unit circle: 3.141592653589793."""

#: Modules and functions that are loaded at their first use.
_MODULES = (
    "amp",
    "autograd",
    "data",
    "distributed",
    "distributions",
    "fft",
    "linalg",
    "nn",
    "onnx",
    "optim",
    "random",
    "serialization",
    "special",
    "testing",
    "training",
)
_FUNCTIONS = {
    "namespace_info": ("__array_namespace_info__",),
    "inspection.graph": ("graph",),
    "inspection.profile": ("profile",),
    "diagnostics.lost_gradients": ("LostGradientWarning", "warn_lost_gradients"),
    "diagnostics.memory": ("memory_held",),
    "ops.comparing": ("allclose", "isclose"),
    "ops.contractions": ("einsum",),
    "ops.covariance": ("corrcoef", "cov"),
    "ops.diagonals": ("diag", "diagonal"),
    "ops.differences": ("diff", "gradient"),
    "ops.distances": ("cdist",),
    "ops.dlpack": ("from_dlpack",),
    "ops.encoding": ("one_hot",),
    "ops.nonfinite": ("nan_to_num", "nanmean", "nansum"),
    "ops.histograms": ("bincount", "histogram"),
    "ops.integration": ("interp", "trapezoid"),
    "ops.padding": ("pad",),
    "ops.quantiles": ("median", "nanmedian", "quantile"),
    "ops.remainders": ("fmod",),
    "ops.matrix_products": ("kron", "outer"),
    "ops.scans": ("cummax", "cummin", "logcumsumexp"),
    "ops.selection": ("partition", "topk"),
    "ops.sets": ("isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "ops.triangle_indices": ("tril_indices", "triu_indices"),
    "backend.threads": ("get_num_threads", "set_num_threads"),
    "integration": ("odeint", "odeint_adjoint"),
    "random": ("manual_seed",),
    "serialization": ("load", "save"),
    "transforms": (
        "grad",
        "hessian",
        "hvp",
        "jacfwd",
        "jacobian",
        "jacrev",
        "jvp",
        "scan",
        "value_and_grad",
        "vjp",
        "vmap",
    ),
}


if not _typing.TYPE_CHECKING:  # type checkers should reject other names

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
    "Device",
    "DeviceError",
    "Function",
    "Tensor",
    "__array_api_version__",
    "__version__",
    "amp",
    "autograd",
    "bool",
    "capture",
    "complex64",
    "complex128",
    "data",
    "default_device",
    "device",
    "devices",
    "distributed",
    "distributions",
    "e",
    "enable_grad",
    "fft",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "linalg",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "onnx",
    "ops",
    "optim",
    "pi",
    "random",
    "set_default_dtype",
    "set_tf32",
    "special",
    "tensor",
    "testing",
    "training",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += [name for names in _FUNCTIONS.values() for name in names]
__all__ += ops.STANDARD
