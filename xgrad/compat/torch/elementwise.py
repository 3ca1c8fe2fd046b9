"""Functions that work element by element, with PyTorch's names, promotion and options."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xgrad
from xgrad import special as xspecial
from xgrad.compat.torch.promotion import as_operands, result_type
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.tensor import Tensor
from xgrad.ops import torch_arithmetic


def as_tensor_argument(name: str, x: Any) -> Any:
    """Return the argument of a function that takes a tensor; TypeError names the function."""
    if not isinstance(x, xgrad.Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(x).__name__}: make one with tensor()"
        )
    return x


def unary(name: str, op: Callable[[Any], Any]) -> Callable[..., Tensor]:
    """Return the function ``name(input, *, out=None)`` of a function of xgrad."""

    def function(input: Tensor) -> Any:
        return op(as_tensor_argument(name, input))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def binary(name: str, op: Callable[[Any, Any], Any]) -> Callable[..., Tensor]:
    """Return the function ``name(input, other, *, out=None)`` of a function of xgrad."""

    def function(input: Tensor, other: Any) -> Any:
        return op(*as_operands(input, other))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _of_bools(op: Callable[..., Any], instead: Callable[..., Any], *operands: Any) -> Any:
    """Call a function, or another one in its place if the operands are bools, which stay bools."""
    bools = all(x is True or x is False or getattr(x, "dtype", None) == "bool" for x in operands)
    return (instead if bools else op)(*operands)


def _nextafter(x1: Any, x2: Any) -> Any:
    """Return the next numbers: see `xgrad.nextafter`, which has no derivative."""
    if xgrad.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in (x1, x2)):
        raise NotImplementedError(
            "nextafter: its gradient is not available in xgrad.compat.torch: use .detach()"
        )
    return xgrad.nextafter(x1, x2)


def power(x1: Any, x2: Any) -> Any:
    """Return ``x1 ** x2``, of bools alone as bools: see `xgrad.pow`."""
    return _of_bools(xgrad.pow, lambda x, y: xgrad.logical_or(x, xgrad.logical_not(y)), x1, x2)


def maximum(x1: Any, x2: Any) -> Any:
    """Return the larger elements: see `xgrad.maximum`."""
    return _of_bools(xgrad.maximum, xgrad.logical_or, x1, x2)


def minimum(x1: Any, x2: Any) -> Any:
    """Return the smaller elements: see `xgrad.minimum`."""
    return _of_bools(xgrad.minimum, xgrad.logical_and, x1, x2)


def _ignoring_nan(compare: Callable[..., Any], extremum: Callable[..., Any]) -> Any:
    """Return the larger or smaller of two elements, of which one may be NaN.

    The gradient goes to the first one of equal elements.
    """

    def op(x1: Any, x2: Any) -> Any:
        if any(getattr(x, "dtype", xgrad.bool).kind == "f" for x in (x1, x2)):
            return xgrad.where(xgrad.logical_or(compare(x1, x2), xgrad.isnan(x2)), x1, x2)
        return extremum(x1, x2)

    return op


def _exp2(x: Any) -> Any:
    return xgrad.exp(x * math.log(2)) if x.dtype.kind == "c" else xspecial.exp2(x)


def _ldexp(x1: Any, x2: Any) -> Any:
    return x1 * xgrad.pow(2.0, x2)


def _logaddexp2(x1: Any, x2: Any) -> Any:
    return xgrad.logaddexp(x1 * math.log(2), x2 * math.log(2)) / math.log(2)


def _heaviside(x1: Any, x2: Any) -> Any:
    step = xgrad.astype(x1 > 0, x1.dtype)
    step = xgrad.where(xgrad.isnan(x1), x1, step) if x1.dtype.kind == "f" else step
    return xgrad.where(xgrad.equal(x1, 0), x2, step)


#: Functions of one tensor, by PyTorch's names.
UNARY: dict[str, Callable[..., Any]] = {
    "abs": xgrad.abs,
    "acos": xgrad.acos,
    "acosh": xgrad.acosh,
    "asin": xgrad.asin,
    "asinh": xgrad.asinh,
    "atan": xgrad.atan,
    "atanh": xgrad.atanh,
    "bitwise_not": xgrad.bitwise_invert,
    "ceil": xgrad.ceil,
    "cos": xgrad.cos,
    "cosh": xgrad.cosh,
    "digamma": xspecial.digamma,
    "erf": xspecial.erf,
    "erfc": xspecial.erfc,
    "erfinv": xspecial.erfinv,
    "exp": xgrad.exp,
    "exp2": _exp2,
    "expm1": xgrad.expm1,
    "floor": xgrad.floor,
    "i0": xspecial.i0,
    "isfinite": xgrad.isfinite,
    "isinf": xgrad.isinf,
    "isnan": xgrad.isnan,
    "lgamma": xspecial.gammaln,
    "log": xgrad.log,
    "log10": xgrad.log10,
    "log1p": xgrad.log1p,
    "log2": xgrad.log2,
    "logical_not": xgrad.logical_not,
    "negative": xgrad.negative,
    "reciprocal": xgrad.reciprocal,
    "relu": xgrad.relu,
    "sgn": lambda x: x if x.dtype.kind == "b" else xgrad.sign(x),
    "sigmoid": xgrad.sigmoid,
    "signbit": xgrad.signbit,
    "sin": xgrad.sin,
    "sinc": xspecial.sinc,
    "sinh": xgrad.sinh,
    "sqrt": xgrad.sqrt,
    "square": xgrad.square,
    "tan": xgrad.tan,
    "tanh": xgrad.tanh,
    "trunc": xgrad.trunc,
    "deg2rad": lambda x: x * 0.017453292519943295,
    "rad2deg": lambda x: x * 57.29577951308232,
    "frac": lambda x: x - xgrad.trunc(x),
    "isneginf": lambda x: xgrad.equal(x, -xgrad.inf),
    "isposinf": lambda x: xgrad.equal(x, xgrad.inf),
    "isreal": lambda x: (
        xgrad.equal(xgrad.imag(x), 0)
        if x.dtype.kind == "c"
        else xgrad.ones_like(x, dtype=xgrad.bool)
    ),
    "rsqrt": lambda x: xgrad.reciprocal(xgrad.sqrt(x)),
}

#: Functions of two tensors, or of a tensor and a number.
BINARY: dict[str, Callable[..., Any]] = {
    "atan2": xgrad.atan2,
    "bitwise_and": xgrad.bitwise_and,
    "bitwise_left_shift": xgrad.bitwise_left_shift,
    "bitwise_or": xgrad.bitwise_or,
    "bitwise_right_shift": xgrad.bitwise_right_shift,
    "bitwise_xor": xgrad.bitwise_xor,
    "copysign": xgrad.copysign,
    "eq": xgrad.equal,
    "floor_divide": xgrad.floor_divide,
    "fmax": _ignoring_nan(xgrad.greater_equal, maximum),
    "fmin": _ignoring_nan(xgrad.less_equal, minimum),
    "fmod": xgrad.fmod,
    "ge": xgrad.greater_equal,
    "gt": xgrad.greater,
    "heaviside": _heaviside,
    "hypot": xgrad.hypot,
    "igamma": xspecial.gammainc,
    "igammac": xspecial.gammaincc,
    "ldexp": _ldexp,
    "le": xgrad.less_equal,
    "logaddexp": xgrad.logaddexp,
    "logaddexp2": _logaddexp2,
    "logical_and": xgrad.logical_and,
    "logical_or": xgrad.logical_or,
    "logical_xor": xgrad.logical_xor,
    "lt": xgrad.less,
    "maximum": maximum,
    "minimum": minimum,
    "mul": xgrad.multiply,
    "ne": xgrad.not_equal,
    "nextafter": _nextafter,
    "pow": power,
    "remainder": xgrad.remainder,
    "true_divide": xgrad.divide,
    "xlogy": xspecial.xlogy,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: unary(name, op) for name, op in UNARY.items()},
    **{name: binary(name, op) for name, op in BINARY.items()},
}
#: Other names of the same functions.
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "neg": "negative",
    "not_equal": "ne",
}
FUNCTIONS |= {alias: FUNCTIONS[name] for alias, name in ALIASES.items()}


@torch_function
def add(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``input + alpha * other``: see `xgrad.add`."""
    x1, x2 = as_operands(input, other)
    return xgrad.add(x1, x2 if alpha == 1 else alpha * x2)


@torch_function
def sub(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``input - alpha * other``: see `xgrad.subtract`."""
    x1, x2 = as_operands(input, other)
    return xgrad.subtract(x1, x2 if alpha == 1 else alpha * x2)


@torch_function
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """Return ``other - alpha * input``: see `xgrad.subtract`."""
    x1, x2 = as_operands(input, other)
    return xgrad.subtract(x2, x1 if alpha == 1 else alpha * x1)


@torch_function
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return ``input / other``, rounded as chosen: see `xgrad.divide` and `xgrad.floor_divide`."""
    x1, x2 = as_operands(input, other)
    if rounding_mode is None:
        return xgrad.divide(x1, x2)
    if rounding_mode == "floor":
        return xgrad.floor_divide(x1, x2)
    if rounding_mode != "trunc":
        raise RuntimeError(
            f"div: expected rounding_mode of None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    dtype = result_type(input, other)
    return xgrad.astype(xgrad.trunc(xgrad.divide(x1, x2)), dtype, copy=False)


@torch_function
def round(input: Tensor, *, decimals: int = 0) -> Any:
    """Return the elements rounded to the nearest, halves to even: see `xgrad.round`."""
    if not decimals or input.dtype.kind in "iub":
        return xgrad.round(input)
    if decimals > 0:
        return xgrad.round(input * 10.0**decimals) / 10.0**decimals
    return xgrad.round(input / 10.0**-decimals) * 10.0**-decimals


@torch_function
def sign(input: Tensor) -> Any:
    """Return the sign of each element: see `xgrad.sign`."""
    if input.dtype.kind == "c":
        raise RuntimeError("sign: expected real numbers, got complex ones: use sgn")
    return input if input.dtype.kind == "b" else xgrad.sign(input)


@torch_function
def positive(input: Tensor) -> Any:
    """Return the tensor itself."""
    return as_tensor_argument("positive", input)


@torch_function
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Any:
    """Return the elements, limited to at least `min` and at most `max`: see `xgrad.clip`."""
    if min is None and max is None:
        raise ValueError("clamp: expected min, max or both, got neither")
    dtype = result_type(*[x for x in (input, min, max) if x is not None])
    x, low, high = (
        xgrad.astype(x, dtype, copy=False) if isinstance(x, xgrad.Tensor) else x
        for x in (input, min, max)
    )
    return xgrad.clip(x, low, high)


@torch_function
def clamp_min(input: Tensor, min: Any) -> Any:
    """Return the elements, limited to at least `min`."""
    return FUNCTIONS["maximum"](input, min)


@torch_function
def clamp_max(input: Tensor, max: Any) -> Any:
    """Return the elements, limited to at most `max`."""
    return FUNCTIONS["minimum"](input, max)


@torch_function
def float_power(input: Any, exponent: Any) -> Any:
    """Return powers in double precision: see `xgrad.pow`."""
    dtype = xgrad.complex128 if result_type(input, exponent).kind == "c" else xgrad.float64
    x1, x2 = (
        xgrad.astype(x, dtype, copy=False) if isinstance(x, xgrad.Tensor) else x
        for x in (input, exponent)
    )
    return xgrad.pow(x1, x2)


@torch_function
def logit(input: Tensor, eps: float | None = None) -> Any:
    """Return the logarithm of the odds, of elements limited to `eps` from 0 and 1."""
    return xspecial.logit(input if eps is None else xgrad.clip(input, eps, 1 - eps))


@torch_function
def polygamma(n: int, input: Tensor) -> Any:
    """Return a derivative of the digamma function: see `xgrad.special.polygamma`."""
    return xspecial.polygamma(n, input)


@torch_function
def mvlgamma(input: Tensor, p: int) -> Any:
    """Return the logarithm of the multivariate gamma function: see `xgrad.special.multigammaln`."""
    return xspecial.multigammaln(input, p)


@torch_function
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return ``input + value * tensor1 * tensor2``."""
    x, x1, x2 = as_operands(input, tensor1, tensor2)
    product = xgrad.multiply(x1, x2)
    return xgrad.add(x, product if value == 1 else value * product)


@torch_function
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return ``input + value * tensor1 / tensor2``."""
    x, x1, x2 = as_operands(input, tensor1, tensor2)
    if x.dtype.kind in "iub":
        raise RuntimeError("addcdiv: expected floating tensors, got integers")
    quotient = xgrad.divide(x1, x2)
    return xgrad.add(x, quotient if value == 1 else value * quotient)


@torch_function
def lerp(input: Tensor, end: Tensor, weight: Any) -> Any:
    """Return ``input + weight * (end - input)``: see `xgrad.Tensor.lerp`."""
    return torch_arithmetic.lerp(input, end, weight)


@torch_function
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Return the tensor with numbers for NaNs and infinities: see `xgrad.nan_to_num`."""
    if input.dtype.kind in "iub":
        return xgrad.asarray(input, copy=True)
    nan = 0.0 if nan is None else nan
    return xgrad.nan_to_num(input, nan=nan, posinf=posinf, neginf=neginf)


@torch_function
def fill(input: Tensor, value: Any) -> Any:
    """Return a tensor like another with the same value in every element."""
    cast = value if isinstance(value, xgrad.Tensor) else xgrad.asarray(value)
    cast = xgrad.astype(cast, input.dtype, copy=False)
    return xgrad.asarray(xgrad.broadcast_to(cast, tuple(input.shape)), copy=True)


@torch_function
def real(input: Tensor) -> Any:
    """Return the real part; of a real tensor, the tensor itself: see `xgrad.real`."""
    return xgrad.real(input) if input.dtype.kind == "c" else input


@torch_function
def imag(input: Tensor) -> Any:
    """Return the imaginary part: see `xgrad.imag`."""
    if input.dtype.kind != "c":
        raise RuntimeError("imag: expected complex numbers, got real ones")
    return xgrad.imag(input)


@torch_function
def conj(input: Tensor) -> Any:
    """Return the complex conjugate; of a real tensor, the tensor itself: see `xgrad.conj`."""
    return xgrad.conj(input) if input.dtype.kind == "c" else input


@torch_function
def angle(input: Tensor) -> Any:
    """Return the angle of complex numbers: see `xgrad.atan2`."""
    if input.dtype.kind == "c":
        return xgrad.atan2(xgrad.imag(input), xgrad.real(input))
    x = input if input.dtype.kind == "f" else xgrad.astype(input, xgrad.get_default_dtype())
    return xgrad.where(xgrad.isnan(x), x, xgrad.where(x < 0, xgrad.pi, 0 * x))


@torch_function
def isclose(
    input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Return whether elements are close: see `xgrad.isclose`."""
    return xgrad.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(
    input: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close: see `xgrad.allclose`."""
    return bool(xgrad.allclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements."""
    return input.shape == other.shape and bool(xgrad.all(xgrad.equal(*as_operands(input, other))))


FUNCTIONS |= {
    function.__name__: function
    for function in (
        add, addcdiv, addcmul, allclose, angle, clamp, clamp_max, clamp_min, conj, div, equal, fill,
        float_power, imag, isclose, lerp, logit, mvlgamma, nan_to_num, polygamma, positive, real,
        round, rsub, sign, sub,
    )
}  # fmt: skip
FUNCTIONS |= {
    "clip": clamp,
    "conj_physical": conj,
    "divide": div,
    "subtract": sub,
}
