"""PyTorch's namespace over xgrad's functions: ``import xgrad.compat.torch as torch``.

Programs that were written for PyTorch run with their imports changed. Names, signatures and the
meaning of each function are PyTorch's; each calls functions of xgrad, and nothing is implemented
twice. Names that are missing say so, with what to do instead.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from typing import Any as _Any

from numpy import dtype as dtype

from xgrad import __version__ as _xgrad_version
from xgrad.backend.device import Device as device
from xgrad.compat.torch import (
    creation,
    methods,
    miscellaneous,
    splitting,
    statistics,
)
from xgrad.compat.torch import random as random
from xgrad.compat.torch.compiling import compile
from xgrad.compat.torch.modes import *
from xgrad.compat.torch.serialization import load, save
from xgrad.compat.torch.shape import Size
from xgrad.compat.torch.tensor import Tensor
from xgrad.compat.torch.unavailable import raise_missing as _raise_missing
from xgrad.core.dtypes import bool as bool
from xgrad.core.dtypes import (
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

# imported after the submodule of the same name, which it replaces
from xgrad.compat.torch.creation import tensor as tensor  # isort: skip

__all__ = [
    "Size",
    "Tensor",
    "bool",
    "cdouble",
    "cfloat",
    "compile",
    "complex64",
    "complex128",
    "device",
    "double",
    "dtype",
    "e",
    "float",
    "float16",
    "float32",
    "float64",
    "half",
    "inf",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "load",
    "long",
    "nan",
    "pi",
    "save",
    "short",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

#: Functions of the namespace, by name.
FUNCTIONS: dict[str, _Any] = {
    **methods.FUNCTIONS,
    **creation.FUNCTIONS,
    **random.FUNCTIONS,
    **miscellaneous.FUNCTIONS,
    **splitting.PLAIN,
    **statistics.PLAIN,
}
#: Methods in place that are functions, too.
FUNCTIONS |= {
    name: methods.METHODS[name]
    for name in (
        "abs_ acos_ asin_ atan_ ceil_ clamp_ clamp_max_ clamp_min_ cos_ cosh_ detach_ erf_ erfc_"
        " exp2_ exp_ expm1_ fill_ floor_ frac_ index_put_ log10_ log1p_ log2_ log_ logit_ neg_"
        " reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_"
        " trunc_ xlogy_ zero_"
    ).split()
}
__all__ += sorted(FUNCTIONS)

__version__ = "2.13.0+xgrad." + _xgrad_version

# Other names of dtypes, layouts and memory formats
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
strided, contiguous_format, preserve_format, channels_last = (
    "torch.strided",
    "torch.contiguous_format",
    "torch.preserve_format",
    "torch.channels_last",
)
newaxis = None

_MODULES = frozenset(
    "accelerator amp autograd backends cuda distributions fft func linalg nn onnx optim"
    " special utils".split()
)
#: Names of the namespace that are loaded with a module.
_FROM_MODULES = {"GradScaler": "amp", "autocast": "amp", "vmap": "func"}


def is_storage(obj: _Any) -> _Any:
    """Return False: tensors have no storage objects."""
    return False


def typename(obj: _Any) -> str:
    """Return the name of a tensor's type, or of another object's class."""
    if isinstance(obj, Tensor):
        return str(obj.type())  # type: ignore[attr-defined]
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def __getattr__(name: str) -> _Any:
    if name in FUNCTIONS:
        return globals().setdefault(name, FUNCTIONS[name])
    if name in _FROM_MODULES:
        return getattr(_import_module(f"{__name__}.{_FROM_MODULES[name]}"), name)
    if name in _MODULES:
        try:
            return _import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    _raise_missing("torch", name)
