"""Updates of optimizers in place, by one launch: `xgrad.optim.sgd` and `xgrad.optim.adam`.

They have the operations of the generic rules, in the same order, and so their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad_cupy.kernels.elementwise import Elementwise, compiled

_SGD = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
p -= (T)lr * step;
"""

_SGD_WITH_MOMENTUM = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
if (momentum != 0) {
    T next = begins ? step : buffer * (T)momentum + (T)fresh * step;
    buffer = next;
    step = nesterov ? step + (T)momentum * next : next;
}
p -= (T)lr * step;
"""

_ADAM = """
T step = maximize ? -g : g;
T value = p * (T)shrink;
if (decay != 0) step = step + (T)decay * value;
T first = m * (T)beta1 + (T)(1 - beta1) * step;
T second = v * (T)beta2 + step * step * (T)(1 - beta2);
m = first;
v = second;
{largest}
p = value - first / (sqrt(second) + (T)eps) * (T)rate;
"""
_LARGEST = "second = largest > second || largest != largest ? largest : second; largest = second;"
_ADAM_INPUTS = (
    "T g, float64 beta1, float64 beta2, float64 shrink, float64 decay, float64 eps, float64 rate,"
    " bool maximize"
)
_MOMENTUM_INPUTS = (
    "T g, float64 lr, float64 decay, float64 momentum, float64 fresh, bool nesterov, bool maximize,"
    " bool begins"
)

_SOURCES = {
    "sgd": Elementwise("T g, float64 lr, float64 decay, bool maximize", "T p", _SGD),
    "sgd_with_momentum": Elementwise(_MOMENTUM_INPUTS, "T p, T buffer", _SGD_WITH_MOMENTUM),
    "adam": Elementwise(_ADAM_INPUTS, "T p, T m, T v", _ADAM.format(largest="")),
    "amsgrad": Elementwise(
        _ADAM_INPUTS, "T p, T m, T v, T largest", _ADAM.format(largest=_LARGEST)
    ),
}


class Optimizers:
    """Kernels for CuPy, the module `cp`."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, compiled(cp, _SOURCES)

    def sgd_step(
        self,
        p: Any,
        g: Any,
        buffer: Any,
        lr: Any,
        decay: Any,
        momentum: Any,
        new: Any,
        nesterov: bool,
        maximize: bool,
    ) -> Any:
        """Update in place as `optim.SGD` does."""
        lr, decay = self._float64(lr), self._float64(decay)
        if not self._is_array(momentum) and not momentum:
            self._kernels["sgd"](g, lr, decay, bool(maximize), p)
            return buffer
        begins, factors = buffer is None, (lr, decay, self._float64(momentum), self._float64(new))
        buffer = self._cp.empty_like(p) if begins else buffer
        self._kernels["sgd_with_momentum"](
            g, *factors, bool(nesterov), bool(maximize), begins, p, buffer
        )
        return buffer

    def adam_step(self, p: Any, g: Any, m: Any, v: Any, largest: Any, *factors: Any) -> None:
        """Update in place as `optim.Adam` and `AdamW` do; the last of the factors is `maximize`."""
        name, state = ("adam", (m, v)) if largest is None else ("amsgrad", (m, v, largest))
        self._kernels[name](g, *map(self._float64, factors[:-1]), bool(factors[-1]), p, *state)

    def _float64(self, value: Any) -> Any:
        return value.astype(np.float64, copy=False) if self._is_array(value) else float(value)

    def _is_array(self, value: Any) -> bool:
        return isinstance(value, self._cp.ndarray)
