"""Elementwise kernels, by the names of the rules that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EXACT = ("--fmad=false",)  # each operation is rounded, as in the generic rules: same bits


class Elementwise(NamedTuple):
    """An elementwise kernel: its parameters, its results, and the operation for an element."""

    inputs: str
    outputs: str
    operation: str


# Exact, like NumPy's; infinite operands as the standard has them
_FMOD = """
T rest = fmod(x1, x2);
bool opposite = rest != 0 && (rest < 0) != (x2 < 0);
"""

# Like Python's: CuPy's floor_divide rounds the quotient, and gives inf for an infinite dividend
_FLOOR_QUOTIENT = """
T quotient = x1 / x2, whole = (x1 - rest) / x2 - (T)opposite, down = floor(whole);
if (x2 == 0) out = quotient;
else if (whole == 0) out = copysign((T)0, quotient);
else out = whole - down > (T)0.5 ? down + 1 : down;
"""

SOURCES = {
    "sigmoid": Elementwise(
        "T x", "T out", "T small = exp(-fabs(x)); out = (x < 0 ? small : (T)1) / ((T)1 + small)"
    ),
    "sigmoid_gradient": Elementwise("T g, T out", "T result", "result = g * (out * ((T)1 - out))"),
    "softplus": Elementwise(
        "T x", "T out", "out = (x > 0 || x != x ? x : (T)0) + log1p(exp(-fabs(x)))"
    ),
    "softplus_gradient": Elementwise("T g, T out", "T result", "result = g * -expm1(-out)"),
    "tanh_gradient": Elementwise("T g, T out", "T result", "result = g * ((T)1 - out * out)"),
    "relu_gradient": Elementwise("T g, T out", "T result", "result = out <= 0 ? (T)0 : g"),
    "remainder": Elementwise(
        "T x1, T x2",
        "T out",
        _FMOD + "out = rest == 0 ? copysign(rest, x2) : opposite ? rest + x2 : rest",
    ),
    "floor_quotient": Elementwise("T x2, T x1", "T out", _FMOD + _FLOOR_QUOTIENT),
    "floor_divide": Elementwise(
        "T x1, T x2",
        "T out",
        _FMOD + _FLOOR_QUOTIENT + "if (isinf(x1) || isinf(x2)) out = quotient;",
    ),
}


def compiled(cp: Any, sources: Mapping[str, Elementwise]) -> dict[str, Any]:
    """Return CuPy's elementwise kernels of these sources, by name."""
    return {
        name: cp.ElementwiseKernel(*parts, f"xgrad_{name}", options=EXACT)
        for name, parts in sources.items()
    }
