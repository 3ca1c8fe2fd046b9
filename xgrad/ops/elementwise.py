"""Ops that work element by element: arithmetic, exponentials, comparisons, logic."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import BOOLEAN, FLOATING, INTEGER, SCALARS, is_complex
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import Binary, Unary, as_arrays, call_op, derivative, elementwise
from xgrad.ops.tensor_conversion import astype
from xgrad.support.docstrings import documented

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "relu", "remainder", "round", "sigmoid", "sign", "signbit", "sin", "sinh",
    "softplus", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def _split_tie_gradient(g: Any, xp: Any, loses: Any, ties: Any) -> Any:
    """Return the gradient of the larger operand, or half of it for a tie; all of it for a NaN."""
    return xp.where(ties, g / 2, xp.where(loses, 0, g))


@overridable
def _relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def _logistic_weight(g: Any, xp: Any, x: Any) -> Any:
    """The share of the first of two exponentials in their sum, given the difference of the exponents."""
    return g * call_op(sigmoid, xp, x)


def _logaddexp(xp: Any, x1: Any, x2: Any, /) -> Any:
    """The standard's is for real numbers; of complex ones the larger real part is taken out."""
    x1, x2 = as_arrays(xp, x1, x2)
    if not is_complex(x1.dtype):
        return xp.logaddexp(x1, x2)
    first = xp.real(x1) >= xp.real(x2)
    top, other = xp.where(first, x1, x2), xp.where(first, x2, x1)
    return top + xp.log1p(xp.exp(other - xp.where(xp.isfinite(top), top, 0)))


def _nonzero_norm(xp: Any, distance: Any) -> Any:
    """Return a distance from the origin to divide by: 1 for 0, so that derivatives there are 0."""
    return xp.where(distance == 0, 1, distance)


def _atan2_partial(g: Any, xp: Any, x: Any, x1: Any, x2: Any) -> Any:
    """The derivative of the angle of a point: a coordinate over the squared distance."""
    distance = _nonzero_norm(xp, xp.hypot(x1, x2))
    return g * (x / distance / distance)


def _copysign_rule(g: Any, xp: Any, x1: Any, out: Any) -> Any:
    flipped = (x1 < 0) != (out < 0)
    return xp.where(x1 == 0, 0, xp.where(flipped, -g, g))


def _floor_divide(xp: Any, x1: Any, x2: Any, /) -> Any:
    """The standard's result for infinite operands, the quotient; libraries follow Python: NaN, or -1."""
    out = xp.floor_divide(x1, x2)
    if not xp.isdtype(out.dtype, "real floating"):
        return out
    x1, x2 = as_arrays(xp, x1, x2)
    return xp.where(xp.isinf(x1) | xp.isinf(x2), x1 / x2, out)


@derivative(None, None, kind=INTEGER, highest=FLOATING)
def _floor_quotient(xp: Any, x2: Any, x1: Any, /) -> Any:
    """The multiple of the divisor that `remainder` subtracts: -1 for a number and an infinity of the other sign."""
    return xp.floor_divide(x1, x2)


def _remainder(xp: Any, x1: Any, x2: Any, /) -> Any:
    """The standard's result by an infinity, NaN in CuPy, and with the sign of the divisor where it is 0."""
    out = xp.remainder(x1, x2)
    if not xp.isdtype(out.dtype, "real floating"):
        return out
    x1, x2 = as_arrays(xp, x1, x2)
    kept = (x1 == 0) | ((x1 < 0) == (x2 < 0))
    out = xp.where(xp.isinf(x2) & xp.isfinite(x1), xp.where(kept, x1, x2), out)
    return xp.where(out == 0, xp.copysign(out, x2), out)


def _expm1(xp: Any, x: Any, /) -> Any:
    """The standard's result for infinite and NaN parts, which libraries multiply by 0, and 0 for a real part of -0."""
    if not is_complex(x.dtype):
        return xp.expm1(x)
    out = xp.where(xp.isfinite(x), xp.expm1(x), xp.exp(x) + complex(-1.0, -0.0))
    return out - complex(-0.0, 0.0)


def _tanh(xp: Any, x: Any, /) -> Any:
    """The standard's result for an infinite real part; C's has a zero of the sign of ``sin(2 * imag(x))``."""
    if not is_complex(x.dtype):
        return xp.tanh(x)
    limit = xp.astype(xp.sign(xp.real(x)), x.dtype)
    limit = xp.where(xp.signbit(xp.imag(x)), xp.conj(limit), limit)
    return xp.where(xp.isinf(xp.real(x)), limit, xp.tanh(x))


def _sign_rule(g: Any, xp: Any, x: Any, out: Any) -> Any:
    """The derivative of the sign: along the unit circle for complex numbers, 0 for real ones."""
    if not is_complex(g.dtype):
        return xp.zeros_like(g)
    size = xp.abs(x)
    across = g - out * xp.real(xp.conj(out) * g)
    return xp.where(size == 0, 0, across / xp.where(size == 0, 1, size))


def _pow_base(g: Any, xp: Any, x1: Any, x2: Any) -> Any:
    if type(x2) not in SCALARS:
        x1 = xp.where((x1 == 0) & (x2 == 0), 1, x1)  # else 0 * inf, where the derivative is 0
        return g * (x2 * x1 ** (x2 - 1))
    if x2 == 0:
        return xp.zeros_like(g)
    if x2 == 2:
        return g * (2 * x1)  # a GPU rounds the first power
    return g * (x2 * xp.pow(x1, x2 - 1))


def _pow_exponent(g: Any, xp: Any, x1: Any, x2: Any, out: Any) -> Any:
    x1 = xp.full_like(x2, x1) if type(x1) in SCALARS else x1
    limit = x1 == 0 if is_complex(out.dtype) else (x1 == 0) & (x2 >= 0)
    return g * (out * xp.log(xp.where(limit, 1, x1)))  # else 0 * -inf, where the limit is 0


def _pow(xp: Any, x1: Any, x2: Any, /) -> Any:
    return x1**x2 if type(x1) in SCALARS or type(x2) in SCALARS else xp.pow(x1, x2)


def _sigmoid(xp: Any, x: Any, /) -> Any:
    if is_complex(x.dtype):
        left = xp.real(x) < 0
        small = xp.exp(xp.where(left, x, -x))
        return xp.where(left, small, 1) / (1 + small)
    small = xp.exp(-xp.abs(x))
    return xp.where(x < 0, small, 1) / (1 + small)


# fmt: off
# Arithmetic

add = elementwise("add", lambda g: g, lambda g: g,
    doc="Add; of bools alone, logical or, as NumPy and PyTorch have it.", example="[1.0, 2.0], 3.0 -> [4., 5.]",
    of_bools="logical_or")
subtract = elementwise("subtract", lambda g: g, lambda g: -g,
    doc="Subtract the second from the first.", example="[1.0, 2.0], 3.0 -> [-2., -1.]")
multiply = elementwise("multiply", lambda g, x2: g * x2, lambda g, x1: g * x1,
    doc="Multiply; of bools alone, logical and, as NumPy and PyTorch have it.", example="[1.0, 2.0], 3.0 -> [3., 6.]",
    of_bools="logical_and")
divide = elementwise("divide", lambda g, x2: g / x2, lambda g, x2, out: -(g * out) / x2,
    doc="Divide the first by the second.", example="[1.0, 2.0], 4.0 -> [0.25, 0.5 ]", kind=FLOATING)
negative = elementwise("negative", lambda g: -g,
    doc="Change the sign.", example="[1.0, -2.0] -> [-1.,  2.]", instead_for_bools="write ~x, or cast first")
positive = elementwise("positive", lambda g: g,
    doc="Return the same numbers.", example="[1.0, -2.0] -> [ 1., -2.]")
abs = elementwise("abs", lambda g, xp, x: g * xp.sign(x),
    doc="Return the absolute value; its derivative at 0 is 0.", example="[1.0, -2.0] -> [1., 2.]", holomorphic=False)
square = elementwise("square", lambda g, x: g * (2 * x),
    doc="Return the square.", example="[1.0, -2.0] -> [1., 4.]")
reciprocal = elementwise("reciprocal", lambda g, out: -g * out * out,
    doc="Return one over each element.", example="[1.0, -2.0] -> [ 1. , -0.5]", kind=FLOATING)
floor_divide = elementwise("floor_divide", None, None,
    doc="Divide and round towards minus infinity.", example="[5, -5], 3 -> [ 1, -2]", highest=FLOATING,
    forward=_floor_divide)
remainder = elementwise("remainder", lambda g: g, lambda g, xp, x1, x2: -g * call_op(_floor_quotient, xp, x2, x1),
    doc="Return the remainder of `floor_divide`, with the sign of the divisor.", example="[5, -5], 3 -> [2, 1]", highest=FLOATING,
    forward=_remainder)
maximum = elementwise("maximum",
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x1 < x2, x1 == x2),
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x2 < x1, x1 == x2),
    doc="Return the larger of two; a tie shares its gradient.", example="[1.0, 5.0], 3.0 -> [3., 5.]", highest=FLOATING)
minimum = elementwise("minimum",
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x1 > x2, x1 == x2),
    lambda g, xp, x1, x2: _split_tie_gradient(g, xp, x2 > x1, x1 == x2),
    doc="Return the smaller of two; a tie shares its gradient.", example="[1.0, 5.0], 3.0 -> [1., 3.]", highest=FLOATING)

# Exponentials, logarithms, roots

exp = elementwise("exp", lambda g, out: g * out,
    doc="Return e to the power of each element.", example="[0.0, 1.0] -> [1.       , 2.71828...]", kind=FLOATING)
expm1 = elementwise("expm1", lambda g, out: g * (out + 1),
    doc="Return exp(x) - 1, exact near 0.", example="[0.0, 1e-9] -> [0.e+00, 1.e-09]", kind=FLOATING,
    forward=_expm1, native_of_reals=True)
log = elementwise("log", lambda g, x: g / x,
    doc="Return the natural logarithm.", example="[1.0, 10.0] -> [0.       , 2.3025...]", kind=FLOATING)
log1p = elementwise("log1p", lambda g, x: g / (1 + x),
    doc="Return log(1 + x), exact near 0.", example="[0.0, 1e-9] -> [0.e+00, 1.e-09]", kind=FLOATING)
log2 = elementwise("log2", lambda g, x: g / (x * math.log(2)),
    doc="Return the logarithm to base 2.", example="[1.0, 8.0] -> [0., 3.]", kind=FLOATING)
log10 = elementwise("log10", lambda g, x: g / (x * math.log(10)),
    doc="Return the logarithm to base 10.", example="[1.0, 10.0] -> [0., 1.]", kind=FLOATING)
logaddexp = elementwise("logaddexp",
    lambda g, xp, x1, x2: _logistic_weight(g, xp, x1 - x2), lambda g, xp, x1, x2: _logistic_weight(g, xp, x2 - x1),
    doc="Return log(exp(x1) + exp(x2)), without overflow.", example="[1e4, 0.0], 1e4 -> [10000.693, 10000.   ]", kind=FLOATING, forward=_logaddexp)
pow: Binary = elementwise("pow", _pow_base, _pow_exponent,
    doc="Raise the first to the power of the second.", example="[1.0, 2.0], 3 -> [1., 8.]", forward=_pow,
    notes="Differentiable to any order; by the exponent at a base of 0 the derivative is 0, or infinite where the power is.")
sqrt = elementwise("sqrt", lambda g, out: g / (2 * out),
    doc="Return the square root.", example="[1.0, 4.0] -> [1., 2.]", kind=FLOATING)
hypot = elementwise("hypot",
    lambda g, xp, x1, out: g * (x1 / _nonzero_norm(xp, out)), lambda g, xp, x2, out: g * (x2 / _nonzero_norm(xp, out)),
    doc="Return sqrt(x1 * x1 + x2 * x2), without overflow; its derivative where both are 0 is 0.",
    example="[3.0, 0.0], 4.0 -> [5., 4.]", kind=FLOATING, highest=FLOATING)

# Angles, in radians, and the hyperbola

sin = elementwise("sin", lambda g, xp, x: g * xp.cos(x),
    doc="Return the sine.", example="[0.0, 1.0] -> [0.        , 0.8414...]", kind=FLOATING)
cos = elementwise("cos", lambda g, xp, x: -g * xp.sin(x),
    doc="Return the cosine.", example="[0.0, 1.0] -> [1.        , 0.5403...]", kind=FLOATING)
tan = elementwise("tan", lambda g, out: g * (1 + out * out),
    doc="Return the tangent.", example="[0.0, 1.0] -> [0.       , 1.5574...]", kind=FLOATING)
asin = elementwise("asin", lambda g, xp, x: g / xp.sqrt(1 - x * x),
    doc="Return the arcsine, from -pi/2 to pi/2.", example="[0.0, 1.0] -> [0.       , 1.5707...]", kind=FLOATING)
acos = elementwise("acos", lambda g, xp, x: -g / xp.sqrt(1 - x * x),
    doc="Return the arccosine, from 0 to pi.", example="[1.0, 0.0] -> [0.       , 1.5707...]", kind=FLOATING)
atan = elementwise("atan", lambda g, x: g / (1 + x * x),
    doc="Return the arctangent, from -pi/2 to pi/2.", example="[0.0, 1.0] -> [0.       , 0.7853...]", kind=FLOATING)
atan2 = elementwise("atan2",
    lambda g, xp, x1, x2: _atan2_partial(g, xp, x2, x1, x2), lambda g, xp, x1, x2: -_atan2_partial(g, xp, x1, x1, x2),
    doc="Return the angle of the point (x2, x1), from -pi to pi; its derivative where both are 0 is 0.",
    example="[0.0, 1.0], -1.0 -> [3.1415..., 2.3561...]", kind=FLOATING, highest=FLOATING)
sinh = elementwise("sinh", lambda g, xp, x: g * xp.cosh(x),
    doc="Return the hyperbolic sine.", example="[0.0, 1.0] -> [0.       , 1.1752...]", kind=FLOATING)
cosh = elementwise("cosh", lambda g, xp, x: g * xp.sinh(x),
    doc="Return the hyperbolic cosine.", example="[0.0, 1.0] -> [1.       , 1.5430...]", kind=FLOATING)
tanh = elementwise("tanh", overridable(lambda xp, g, out: g * (1 - out * out), "tanh_gradient"),
    doc="Return the hyperbolic tangent.", example="[0.0, 0.5] -> [0.        , 0.4621...]", kind=FLOATING,
    forward=_tanh, native_of_reals=True)
asinh = elementwise("asinh", lambda g, xp, x: g / xp.sqrt(1 + x * x),
    doc="Return the inverse of `sinh`.", example="[0.0, 1.0] -> [0.       , 0.8813...]", kind=FLOATING)
acosh = elementwise("acosh", lambda g, xp, x: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)),
    doc="Return the inverse of `cosh`.", example="[1.0, 2.0] -> [0.       , 1.3169...]", kind=FLOATING)
atanh = elementwise("atanh", lambda g, x: g / (1 - x * x),
    doc="Return the inverse of `tanh`.", example="[0.0, 0.5] -> [0.       , 0.5493...]", kind=FLOATING)

# Activations

sigmoid: Unary = elementwise("sigmoid", overridable(lambda xp, g, out: g * (out * (1 - out)), "sigmoid_gradient"),
    doc="Return ``1 / (1 + exp(-x))``, of real numbers between 0 and 1, without overflow.",
    example="[-1e4, 0.0, 1e4] -> [0. , 0.5, 1. ]", kind=FLOATING, forward=_sigmoid, standard=False)
relu: Unary = elementwise("relu", overridable(lambda xp, g, out: xp.where(out <= 0, 0, g), "relu_gradient"),
    doc="Return positive elements, and 0 for the others; its derivative at 0 is 0.", example="[-1.0, 2.0] -> [0., 2.]",
    highest=FLOATING, forward=lambda xp, x, /: _relu(xp, x), standard=False)
softplus: Unary = elementwise("softplus", overridable(lambda xp, g, out: g * -xp.expm1(-out), "softplus_gradient"),
    doc="Return ``log(1 + exp(x))``, which is positive, without overflow.", example="[-1e4, 0.0, 1e4] -> [0.00...e+00, 6.93...e-01, 1.00...e+04]",
    kind=FLOATING, highest=FLOATING, forward=lambda xp, x, /: xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x))), standard=False)

# Parts of complex numbers

real = elementwise("real", lambda g: g,
    doc="Return the real part.", example="[1.0 + 2.0j] -> [1.]", holomorphic=False, views="shared")
imag = elementwise("imag", lambda g: g * 1j,
    doc="Return the imaginary part.", example="[1.0 + 2.0j] -> [2.]", holomorphic=False, views="shared")
conj = elementwise("conj", lambda g, xp: xp.conj(g),
    doc="Change the sign of the imaginary part.", example="[1.0 + 2.0j] -> [1.-2.j], dtype=complex64", holomorphic=False)

# Steps: their derivative is 0 wherever they have one

sign = elementwise("sign", _sign_rule,
    doc="Return -1, 0 or 1, of a complex number ``x / abs(x)``.", example="[-2.0, 0.0, 3.0] -> [-1.,  0.,  1.]", holomorphic=False)
floor = elementwise("floor", lambda g, xp: xp.zeros_like(g),
    doc="Round towards minus infinity.", example="[-1.5, 1.5] -> [-2.,  1.]", highest=FLOATING)
ceil = elementwise("ceil", lambda g, xp: xp.zeros_like(g),
    doc="Round towards infinity.", example="[-1.5, 1.5] -> [-1.,  2.]", highest=FLOATING)
trunc = elementwise("trunc", lambda g, xp: xp.zeros_like(g),
    doc="Round towards zero.", example="[-1.5, 1.5] -> [-1.,  1.]", highest=FLOATING)
round = elementwise("round", lambda g, xp: xp.zeros_like(g),
    doc="Round to the nearest integer, halves to even ones.", example="[0.5, 1.5] -> [0., 2.]")

copysign = elementwise("copysign", _copysign_rule, lambda g, xp: xp.zeros_like(g),
    doc="Return the magnitude of the first with the sign of the second; at 0 its derivative is 0.",
    example="[1.0, -2.0], -0.0 -> [-1., -2.]", kind=FLOATING, highest=FLOATING)
nextafter = elementwise("nextafter", None, None,
    doc="Return the number next to the first in the direction of the second.",
    example="[1.0], 2.0 -> [1.0000001]", kind=FLOATING, highest=FLOATING)

# Comparisons and logic

equal = elementwise("equal", None, None,
    doc="Return whether two are equal.", example="[1.0, 2.0], 2.0 -> [False,  True]", kind=BOOLEAN)
not_equal = elementwise("not_equal", None, None,
    doc="Return whether two differ.", example="[1.0, 2.0], 2.0 -> [ True, False]", kind=BOOLEAN)
less = elementwise("less", None, None,
    doc="Return whether the first is smaller.", example="[1.0, 2.0], 2.0 -> [ True, False]", highest=FLOATING)
less_equal = elementwise("less_equal", None, None,
    doc="Return whether the first is not larger.", example="[1.0, 3.0], 2.0 -> [ True, False]", highest=FLOATING)
greater = elementwise("greater", None, None,
    doc="Return whether the first is larger.", example="[1.0, 3.0], 2.0 -> [False,  True]", highest=FLOATING)
greater_equal = elementwise("greater_equal", None, None,
    doc="Return whether the first is not smaller.", example="[1.0, 2.0], 2.0 -> [False,  True]", highest=FLOATING)
signbit = elementwise("signbit", None,
    doc="Return whether the sign is minus, that of -0. included.", example="[-0.0, 0.0] -> [ True, False]",
    kind=FLOATING, highest=FLOATING)
isnan = elementwise("isnan", None,
    doc="Return whether each element is not a number.", example="[1.0, float('nan')] -> [False,  True]")
isinf = elementwise("isinf", None,
    doc="Return whether each element is infinite.", example="[1.0, float('-inf')] -> [False,  True]")
isfinite = elementwise("isfinite", None,
    doc="Return whether each element is a finite number.", example="[1.0, float('nan')] -> [ True, False]")
logical_and = elementwise("logical_and", None, None,
    doc="Return whether both bools hold.", example="[True, True], [True, False] -> [ True, False]", kind=BOOLEAN)
logical_or = elementwise("logical_or", None, None,
    doc="Return whether one of two bools holds.", example="[True, False], [False, False] -> [ True, False]", kind=BOOLEAN)
logical_not = elementwise("logical_not", None,
    doc="Return whether a bool does not hold.", example="[True, False] -> [False,  True]", kind=BOOLEAN)
logical_xor = elementwise("logical_xor", None, None,
    doc="Return whether just one of two bools holds.", example="[True, True], [True, False] -> [False,  True]", kind=BOOLEAN)
bitwise_and = elementwise("bitwise_and", None, None,
    doc="Return the bits, or bools, that both have.", example="[6, 5], 3 -> [2, 1]", kind=BOOLEAN, highest=INTEGER)
bitwise_or = elementwise("bitwise_or", None, None,
    doc="Return the bits, or bools, that one of them has.", example="[6, 5], 3 -> [7, 7]", kind=BOOLEAN, highest=INTEGER)
bitwise_xor = elementwise("bitwise_xor", None, None,
    doc="Return the bits, or bools, that just one of them has.", example="[6, 5], 3 -> [5, 6]", kind=BOOLEAN, highest=INTEGER)
bitwise_left_shift = elementwise("bitwise_left_shift", None, None,
    doc="Move bits up, by a number that is not negative, and fill in zeros.", example="[6, -5], 1 -> [ 12, -10]", highest=INTEGER)
bitwise_right_shift = elementwise("bitwise_right_shift", None, None,
    doc="Move bits down, by a number that is not negative, and fill in the sign.", example="[6, -5], 1 -> [ 3, -3]", highest=INTEGER)
bitwise_invert = elementwise("bitwise_invert", None,
    doc="Invert every bit, or bool.", example="[6, 5] -> [-7, -6]", kind=BOOLEAN, highest=INTEGER)
# fmt: on


@derivative(
    lambda g, xp, x, min, max: xp.where(_inside(xp, x, min, max), g, 0),
    lambda g, xp, x, min, max: xp.where((x < min) & (True if max is None else min < max), g, 0),
    lambda g, xp, x, min, max: xp.where((x > max) | (False if min is None else (x < min) & (min >= max)), g, 0),
    kind=INTEGER,
    highest=FLOATING,
    broadcasts=True,
)
def _clip(xp: Any, x: Any, min: Any = None, max: Any = None, /) -> Any:
    x = x if min is None else xp.maximum(x, min)
    return xp.positive(x) if max is None else xp.minimum(x, max)


def _inside(xp: Any, x: Any, min: Any, max: Any) -> Any:
    above = xp.ones_like(x, dtype=xp.bool) if min is None else x >= min
    return above if max is None else above & (x <= max)


@documented("elementwise functions")
def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit elements to an interval.

    x : Tensor -- Numbers, of any shape.
    min, max : Tensor or scalar, optional -- The ends, of shapes that broadcast with `x`; None where there is none.
        Where `min` is the larger, the result is `max`.
    returns Tensor -- Of the shape that all broadcast to, and of the dtype of `x`; float32 where `x` is of integers and
        an end is not.
    raises ValueError -- If the shapes do not broadcast.
    raises TypeError -- If an input is complex.

    At an end exactly, the gradient goes to `x`.

    >>> xgrad.clip(xgrad.asarray([-2.0, 0.5, 2.0]), -1.0, 1.0)
    Tensor([-1. ,  0.5,  1. ])
    """
    x = x if type(x) in SCALARS else as_tensor("clip", "x", x)
    out = _clip(x, min, max)
    narrower = type(x) not in SCALARS and out.dtype.kind == x.dtype.kind
    return astype(out, x.dtype, copy=False) if narrower else out
