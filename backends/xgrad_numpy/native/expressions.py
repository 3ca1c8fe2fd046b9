"""C expressions for NumPy's elementwise functions, with NumPy's bits.

IEEE 754 defines arithmetic, roots, comparisons and casts for both, as long as the compiler neither
contracts a product and a sum nor reorders. Other functions, such as ``exp``, have bits of NumPy's
own, and no expression. For two zeros, the results of `maximum` and `minimum` depend on the
instructions that NumPy uses: they are tried out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

#: C types by dtype, in memory.
MEMORY_TYPES: dict[np.dtype[Any], str] = {
    np.dtype("float32"): "float", np.dtype("float64"): "double", np.dtype("bool"): "uint8_t",
    np.dtype("int32"): "int32_t", np.dtype("int64"): "int64_t",
}  # fmt: skip
_SUFFIXES = {np.dtype("float32"): "f", np.dtype("float64"): ""}

_ARITHMETIC: dict[Any, str] = {
    np.add: "{0} + {1}", np.subtract: "{0} - {1}", np.multiply: "{0} * {1}", np.divide: "{0} / {1}",
    np.negative: "-{0}", np.positive: "{0}", np.square: "{0} * {0}", np.reciprocal: "1 / {0}",
    np.sqrt: "sqrt{f}({0})", np.absolute: "fabs{f}({0})",
}  # fmt: skip
_COMPARISONS: dict[Any, str] = {
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
}
#: For floats of a type ``{t}``: functions of runtime.h that raise no exception for NaN, because
#: NumPy does not warn of it.
_QUIET: dict[Any, str] = {
    np.less: "less_{t}({0}, {1})",
    np.less_equal: "less_equal_{t}({0}, {1})",
    np.greater: "less_{t}({1}, {0})",
    np.greater_equal: "less_equal_{t}({1}, {0})",
}
_OF_BOOLS: dict[Any, str] = {
    np.logical_and: "{0} & {1}",
    np.logical_or: "{0} | {1}",
    np.logical_xor: "{0} ^ {1}",
    np.logical_not: "!{0}",
    np.bitwise_and: "{0} & {1}",
    np.bitwise_or: "{0} | {1}",
    np.bitwise_xor: "{0} ^ {1}",
    np.invert: "!{0}",
}
#: In unsigned arithmetic, which wraps around like NumPy's, and is defined in C.
_OF_INTEGERS: dict[Any, str] = {
    np.add: "({t})(({u}){0} + ({u}){1})",
    np.subtract: "({t})(({u}){0} - ({u}){1})",
    np.multiply: "({t})(({u}){0} * ({u}){1})",
    np.negative: "({t})(0 - ({u}){0})",
    np.bitwise_and: "{0} & {1}",
    np.bitwise_or: "{0} | {1}",
    np.bitwise_xor: "{0} ^ {1}",
    np.invert: "~{0}",
}


def expression(function: Any, dtype: Any) -> str | None:
    """Return the C expression of a NumPy function that computes in a dtype; None if there is none.

    Its operands are ``{0}`` and ``{1}``.
    """
    if dtype not in MEMORY_TYPES:
        return None
    if function in _COMPARISONS:
        if dtype in _SUFFIXES and function in _QUIET:
            return _QUIET[function].replace("{t}", MEMORY_TYPES[dtype])
        return _COMPARISONS[function]
    if dtype.kind == "b":
        return _OF_BOOLS.get(function)
    if dtype in _SUFFIXES:
        if function in (np.maximum, np.minimum):
            return _extremum(function, dtype)
        text = _ARITHMETIC.get(function)
        return None if text is None else text.replace("{f}", _SUFFIXES[dtype])
    text = _OF_INTEGERS.get(function)
    return (
        None
        if text is None
        else text.replace("{t}", MEMORY_TYPES[dtype]).replace("{u}", "u" + MEMORY_TYPES[dtype])
    )


def _extremum(function: Any, dtype: Any) -> str | None:
    """Return the expression of `maximum` or `minimum`.

    It chooses the first operand if that is NaN, or more extreme, or equal and preferred.
    """
    first = chooses_first(function, dtype)
    if first is None:
        return None
    names = (np.greater, np.greater_equal) if function is np.maximum else (np.less, np.less_equal)
    return (
        f"choose_{MEMORY_TYPES[dtype]}({expression(names[first], dtype)} | ({{0}} != {{0}}), {{0}},"
        " {1})"
    )


@cache
def chooses_first(function: Any, dtype: Any) -> bool | None:
    """Return whether `maximum` or `minimum` returns the first of two zeros.

    None if neither operand is always returned. The choice depends on the instructions that NumPy
    uses, and may depend on the size of an array.
    """
    for first in (False, True):
        if all(_chooses_first(function, dtype, size) == first for size in range(1, 130)):
            return first
    return None


def _chooses_first(function: Any, dtype: Any, size: int) -> bool | None:
    """Return whether a function of zeros of both signs returns the first operand.

    None if neither operand is always returned.
    """
    plus, minus = np.zeros(size, dtype), np.full(size, -0.0, dtype)
    signs = np.signbit(function(plus, minus)), ~np.signbit(function(minus, plus))
    if not any(map(np.any, signs)):
        return True
    return False if all(map(np.all, signs)) else None
