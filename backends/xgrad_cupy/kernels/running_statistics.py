"""Running statistics of batch norm, both by one launch.

The kernel has the operations of the rule in `xgrad.ops.normalization`, in the same order, and so
its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad_cupy.kernels.elementwise import Elementwise, compiled

_SOURCE = Elementwise(
    "T mean, T var, T average, T variance, T correction, T momentum",
    "T new_mean, T new_var",
    "new_mean = mean + (average - mean) * momentum;"
    " new_var = var + (variance * correction - var) * momentum",
)


def running_statistics_of(cp: Any) -> Callable[..., Any]:
    """Return the kernel for CuPy, the module `cp`."""
    kernel = compiled(cp, {"running_statistics": _SOURCE})["running_statistics"]

    def running_statistics(mean: Any, var: Any, average: Any, variance: Any, *factors: Any) -> Any:
        batch = average.reshape(mean.shape), variance.reshape(var.shape)
        return kernel(mean, var, *batch, *factors)

    return running_statistics
