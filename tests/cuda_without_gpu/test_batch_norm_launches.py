"""Launches of batch normalization in training, and bits of its kernel of running statistics."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from tests.cuda_without_gpu import counters
from xgrad import nn
from xgrad.backend.overridable import OVERRIDABLE

CUDA = xgrad.Device("cuda")


def launches(layer: Any, x: xgrad.Tensor) -> dict[str, int]:
    """Return the launches of a call, by name."""
    layer(x)  # compiles the kernels, and allocates memory
    CUDA.synchronize()
    counters.reset()
    layer(x)
    CUDA.synchronize()
    return counters.launches()


@pytest.mark.parametrize(
    ("momentum", "size", "count"),
    [(0.1, 6, 3), (1, 6, 3), (None, 6, 6), (0.1, 40, 4)],
)
def test_launches_of_forward_in_training(momentum: float | None, size: int, count: int) -> None:
    """One for the result, one for both running statistics, and one for the number of batches.

    Two blocks or more for each channel take one more, and the momentum of a cumulative average
    three.
    """
    layer = nn.BatchNorm2d(8, momentum=momentum, device=CUDA)
    names = launches(layer, xgrad.random.randn((4, 8, size, size), device=CUDA))
    assert names["xgrad_running_statistics"] == 1
    assert sum(names.values()) == count, names


@pytest.mark.parametrize("name", ["running_mean", "running_var"])
def test_buffer_of_another_dtype_is_updated_without_the_kernel(name: str) -> None:
    layer = nn.BatchNorm2d(8, device=CUDA)
    layer.register_buffer(name, xgrad.ones(8, dtype="float64", device=CUDA))
    names = launches(layer, xgrad.random.randn((4, 8, 6, 6), device=CUDA))
    assert "xgrad_running_statistics" not in names


@pytest.mark.parametrize("momentum", [0.3, "array"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kernel_has_the_bits_of_the_rule(dtype: str, momentum: Any) -> None:
    """With statistics of any layout, NaN and infinities among them."""
    numbers = cp.asarray(np.random.default_rng(0).standard_normal((4, 30)).astype(dtype))
    numbers[:, :3] = cp.array([cp.nan, cp.inf, -cp.inf], dtype)
    mean, var, average, variance = numbers[:, ::2]
    args = (mean, var, average[None, :, None], variance[None, :, None], 24 / 23)
    factor = cp.array(0.3, dtype) if momentum == "array" else momentum
    expected = OVERRIDABLE["running_statistics"].generic(CUDA.xp, *args, factor)
    got = CUDA.backend.kernels["running_statistics"](*args, factor)
    for x, y in zip(got, expected, strict=True):
        # the sign of a NaN depends on the compiler
        x, y = (cp.where(cp.isnan(part), cp.nan, part).get() for part in (x, y))
        assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
        assert np.isfinite(x).any()
