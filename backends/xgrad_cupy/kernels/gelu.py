"""GELU and its derivative in one launch: the operations of `xgrad.ops.gelu`, in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.ops.gelu import _CUBIC, _DENSITY_AT_0, _FAR, _SCALE, _TAIL_32, _TAIL_64
from xgrad_cupy.kernels.elementwise import EXACT

#: The names of the kernels, which have the bits of the rules.
GELU = ("probability_below", "gelu_values", "gelu_tanh_values")

_TANH = f"""
T tangent = tanh(x * ((T)1 + (T){_CUBIC!r} * (x * x)) * (T){_SCALE!r});
T near = x > (T){_FAR} ? (T){_FAR} : x;
T part = ((T)1 - tangent * tangent) * near;
part = part * (T){_SCALE!r} + part * near * near * (T){3 * _SCALE * _CUBIC!r};
out = x * ((T)1 + tangent) * (T)0.5;
slope = ((T)1 + tangent + part) * (T)0.5;
"""


def _probability(tail: tuple[float, tuple[float, ...]]) -> str:
    """Return statements that compute the probability of numbers below `x`, and the density."""
    c, (first, *middle, last) = tail
    steps = "".join([f"tail += (T){x!r}; tail *= t;\n" for x in middle])
    return f"""
T relative = exp(x * x * (T)-0.5);
T distance = fabs(x) + (T){c!r};
T t = (T)1 - (T){2 * c!r} / distance;
T tail = t * (T){first!r};
{steps}tail += (T){last!r};
tail *= relative;
tail /= distance;
T probability = x >= 0 ? (T)1 - tail : tail;
"""


_VALUES = f"""
T near = x > (T){_FAR} ? (T){_FAR} : x;
out = x * probability;
slope = probability + near * (relative * (T){_DENSITY_AT_0!r});
"""


def gelu_kernels(cp: Any) -> dict[str, Callable[..., Any]]:
    """Return the kernels by the names of the rules that they replace, for CuPy, the module `cp`."""

    def kernel(outputs: str, operation: str, name: str) -> Any:
        return cp.ElementwiseKernel("T x", outputs, operation, f"xgrad_{name}", options=EXACT)

    def by_dtype(outputs: str, after: str, name: str) -> Callable[..., Any]:
        tails = {np.dtype("float32"): _TAIL_32, np.dtype("float64"): _TAIL_64}
        kernels = {
            dtype: kernel(outputs, _probability(tail) + after, f"{name}_{dtype}")
            for dtype, tail in tails.items()
        }
        return lambda x: kernels[x.dtype](x)

    return {
        "probability_below": by_dtype("T out", "out = probability;", "probability_below"),
        "gelu_values": by_dtype("T out, T slope", _VALUES, "gelu"),
        "gelu_tanh_values": kernel("T out, T slope", _TANH, "gelu_tanh"),
    }
