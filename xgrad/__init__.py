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
from xgrad.ops.creation import arange as arange
from xgrad.ops.creation import empty as empty
from xgrad.ops.creation import empty_like as empty_like
from xgrad.ops.creation import eye as eye
from xgrad.ops.creation import full as full
from xgrad.ops.creation import full_like as full_like
from xgrad.ops.creation import linspace as linspace
from xgrad.ops.creation import meshgrid as meshgrid
from xgrad.ops.creation import ones as ones
from xgrad.ops.creation import ones_like as ones_like
from xgrad.ops.creation import tril as tril
from xgrad.ops.creation import triu as triu
from xgrad.ops.creation import zeros as zeros
from xgrad.ops.creation import zeros_like as zeros_like
from xgrad.ops.dtype_functions import can_cast as can_cast
from xgrad.ops.dtype_functions import finfo as finfo
from xgrad.ops.dtype_functions import iinfo as iinfo
from xgrad.ops.dtype_functions import isdtype as isdtype
from xgrad.ops.dtype_functions import result_type as result_type
from xgrad.ops.elementwise import abs as abs
from xgrad.ops.elementwise import acos as acos
from xgrad.ops.elementwise import acosh as acosh
from xgrad.ops.elementwise import add as add
from xgrad.ops.elementwise import asin as asin
from xgrad.ops.elementwise import asinh as asinh
from xgrad.ops.elementwise import atan as atan
from xgrad.ops.elementwise import atan2 as atan2
from xgrad.ops.elementwise import atanh as atanh
from xgrad.ops.elementwise import bitwise_and as bitwise_and
from xgrad.ops.elementwise import bitwise_invert as bitwise_invert
from xgrad.ops.elementwise import bitwise_left_shift as bitwise_left_shift
from xgrad.ops.elementwise import bitwise_or as bitwise_or
from xgrad.ops.elementwise import bitwise_right_shift as bitwise_right_shift
from xgrad.ops.elementwise import bitwise_xor as bitwise_xor
from xgrad.ops.elementwise import ceil as ceil
from xgrad.ops.elementwise import clip as clip
from xgrad.ops.elementwise import conj as conj
from xgrad.ops.elementwise import copysign as copysign
from xgrad.ops.elementwise import cos as cos
from xgrad.ops.elementwise import cosh as cosh
from xgrad.ops.elementwise import divide as divide
from xgrad.ops.elementwise import equal as equal
from xgrad.ops.elementwise import exp as exp
from xgrad.ops.elementwise import expm1 as expm1
from xgrad.ops.elementwise import floor as floor
from xgrad.ops.elementwise import floor_divide as floor_divide
from xgrad.ops.elementwise import greater as greater
from xgrad.ops.elementwise import greater_equal as greater_equal
from xgrad.ops.elementwise import hypot as hypot
from xgrad.ops.elementwise import imag as imag
from xgrad.ops.elementwise import isfinite as isfinite
from xgrad.ops.elementwise import isinf as isinf
from xgrad.ops.elementwise import isnan as isnan
from xgrad.ops.elementwise import less as less
from xgrad.ops.elementwise import less_equal as less_equal
from xgrad.ops.elementwise import log as log
from xgrad.ops.elementwise import log1p as log1p
from xgrad.ops.elementwise import log2 as log2
from xgrad.ops.elementwise import log10 as log10
from xgrad.ops.elementwise import logaddexp as logaddexp
from xgrad.ops.elementwise import logical_and as logical_and
from xgrad.ops.elementwise import logical_not as logical_not
from xgrad.ops.elementwise import logical_or as logical_or
from xgrad.ops.elementwise import logical_xor as logical_xor
from xgrad.ops.elementwise import maximum as maximum
from xgrad.ops.elementwise import minimum as minimum
from xgrad.ops.elementwise import multiply as multiply
from xgrad.ops.elementwise import negative as negative
from xgrad.ops.elementwise import nextafter as nextafter
from xgrad.ops.elementwise import not_equal as not_equal
from xgrad.ops.elementwise import positive as positive
from xgrad.ops.elementwise import pow as pow
from xgrad.ops.elementwise import real as real
from xgrad.ops.elementwise import reciprocal as reciprocal
from xgrad.ops.elementwise import relu as relu
from xgrad.ops.elementwise import remainder as remainder
from xgrad.ops.elementwise import round as round
from xgrad.ops.elementwise import sigmoid as sigmoid
from xgrad.ops.elementwise import sign as sign
from xgrad.ops.elementwise import signbit as signbit
from xgrad.ops.elementwise import sin as sin
from xgrad.ops.elementwise import sinh as sinh
from xgrad.ops.elementwise import softplus as softplus
from xgrad.ops.elementwise import sqrt as sqrt
from xgrad.ops.elementwise import square as square
from xgrad.ops.elementwise import subtract as subtract
from xgrad.ops.elementwise import tan as tan
from xgrad.ops.elementwise import tanh as tanh
from xgrad.ops.elementwise import trunc as trunc
from xgrad.ops.indexing import take as take
from xgrad.ops.indexing import take_along_axis as take_along_axis
from xgrad.ops.joining import concat as concat
from xgrad.ops.joining import repeat as repeat
from xgrad.ops.joining import stack as stack
from xgrad.ops.joining import tile as tile
from xgrad.ops.joining import unstack as unstack
from xgrad.ops.manipulation import broadcast_arrays as broadcast_arrays
from xgrad.ops.manipulation import broadcast_shapes as broadcast_shapes
from xgrad.ops.manipulation import broadcast_to as broadcast_to
from xgrad.ops.manipulation import expand_dims as expand_dims
from xgrad.ops.manipulation import flip as flip
from xgrad.ops.manipulation import matrix_transpose as matrix_transpose
from xgrad.ops.manipulation import moveaxis as moveaxis
from xgrad.ops.manipulation import permute_dims as permute_dims
from xgrad.ops.manipulation import reshape as reshape
from xgrad.ops.manipulation import roll as roll
from xgrad.ops.manipulation import squeeze as squeeze
from xgrad.ops.matrix_products import matmul as matmul
from xgrad.ops.matrix_products import tensordot as tensordot
from xgrad.ops.matrix_products import vecdot as vecdot
from xgrad.ops.searching import argmax as argmax
from xgrad.ops.searching import argmin as argmin
from xgrad.ops.searching import argsort as argsort
from xgrad.ops.searching import count_nonzero as count_nonzero
from xgrad.ops.searching import nonzero as nonzero
from xgrad.ops.searching import searchsorted as searchsorted
from xgrad.ops.searching import sort as sort
from xgrad.ops.searching import where as where
from xgrad.ops.statistical import all as all
from xgrad.ops.statistical import any as any
from xgrad.ops.statistical import cumulative_prod as cumulative_prod
from xgrad.ops.statistical import cumulative_sum as cumulative_sum
from xgrad.ops.statistical import logsumexp as logsumexp
from xgrad.ops.statistical import max as max
from xgrad.ops.statistical import mean as mean
from xgrad.ops.statistical import min as min
from xgrad.ops.statistical import prod as prod
from xgrad.ops.statistical import std as std
from xgrad.ops.statistical import sum as sum
from xgrad.ops.statistical import var as var
from xgrad.ops.tensor_conversion import asarray as asarray
from xgrad.ops.tensor_conversion import astype as astype
from xgrad.ops.tensor_conversion import to_device as to_device
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
    from xgrad.ops.comparing import allclose as allclose
    from xgrad.ops.comparing import isclose as isclose
    from xgrad.ops.contractions import einsum as einsum
    from xgrad.ops.covariance import corrcoef as corrcoef
    from xgrad.ops.covariance import cov as cov
    from xgrad.ops.diagonals import diag as diag
    from xgrad.ops.diagonals import diagonal as diagonal
    from xgrad.ops.differences import diff as diff
    from xgrad.ops.differences import gradient as gradient
    from xgrad.ops.distances import cdist as cdist
    from xgrad.ops.dlpack import from_dlpack as from_dlpack
    from xgrad.ops.encoding import one_hot as one_hot
    from xgrad.ops.histograms import bincount as bincount
    from xgrad.ops.histograms import histogram as histogram
    from xgrad.ops.integration import interp as interp
    from xgrad.ops.integration import trapezoid as trapezoid
    from xgrad.ops.matrix_products import kron as kron
    from xgrad.ops.matrix_products import outer as outer
    from xgrad.ops.nonfinite import nan_to_num as nan_to_num
    from xgrad.ops.nonfinite import nanmean as nanmean
    from xgrad.ops.nonfinite import nansum as nansum
    from xgrad.ops.padding import pad as pad
    from xgrad.ops.quantiles import median as median
    from xgrad.ops.quantiles import nanmedian as nanmedian
    from xgrad.ops.quantiles import quantile as quantile
    from xgrad.ops.remainders import fmod as fmod
    from xgrad.ops.scans import cummax as cummax
    from xgrad.ops.scans import cummin as cummin
    from xgrad.ops.scans import logcumsumexp as logcumsumexp
    from xgrad.ops.selection import partition as partition
    from xgrad.ops.selection import topk as topk
    from xgrad.ops.sets import isin as isin
    from xgrad.ops.sets import unique_all as unique_all
    from xgrad.ops.sets import unique_counts as unique_counts
    from xgrad.ops.sets import unique_inverse as unique_inverse
    from xgrad.ops.sets import unique_values as unique_values
    from xgrad.ops.triangle_indices import tril_indices as tril_indices
    from xgrad.ops.triangle_indices import triu_indices as triu_indices
    from xgrad.random import manual_seed as manual_seed
    from xgrad.serialization import load as load
    from xgrad.serialization import save as save
    from xgrad.transforms import grad as grad
    from xgrad.transforms import hessian as hessian
    from xgrad.transforms import hvp as hvp
    from xgrad.transforms import jacfwd as jacfwd
    from xgrad.transforms import jacobian as jacobian
    from xgrad.transforms import jacrev as jacrev
    from xgrad.transforms import jvp as jvp
    from xgrad.transforms import scan as scan
    from xgrad.transforms import value_and_grad as value_and_grad
    from xgrad.transforms import vjp as vjp
    from xgrad.transforms import vmap as vmap

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
