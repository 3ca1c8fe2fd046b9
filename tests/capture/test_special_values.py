"""Steps traced with finite numbers, replayed with infinities, NaNs and zeros.

Replays have the bits of eager steps.
"""

from __future__ import annotations

import itertools
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import assert_same, snapshot
from xgrad.capture import capture

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")


def gradient_of_power(x: xgrad.Tensor, exponent: float) -> xgrad.Tensor:
    x = x.detach().requires_grad_()
    return xgrad.autograd.grad((x**exponent).sum(), x)[0]


SPECIAL = [0.0, -0.0, 1.0, -1.5, 1e30, inf, -inf, nan]
PAIRS = np.array(list(itertools.product(SPECIAL, repeat=2)))
STEPS: dict[str, Any] = {
    "floor_divide": lambda x, y: xgrad.floor_divide(x, y) * 2,
    "floor_divide in place": lambda x, y: x.clone().__ifloordiv__(y) + 1,
    "floor_divide by a number": lambda x, y: (x // 2.0) + (3.0 // y),
    "remainder": lambda x, y: xgrad.remainder(x, y) * 2,
    "expm1": lambda x, y: xgrad.expm1(x) * 1 + y,
    "tanh": lambda x, y: xgrad.tanh(x) * 1 + y,
    "whole powers": lambda x, y: xgrad.stack([x**k for k in (2.0, 3, 3.0, 4, 5, 8, -2, -3)]) * y,
    "whole powers in place": lambda x, y: x.clone().__ipow__(3).__ipow__(5) + y,
    "gradients of whole powers": lambda x, y: (
        xgrad.stack([gradient_of_power(x, k) for k in (3, 4.0, 6, -2)]) * y
    ),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *itertools.product(STEPS, ["float32", "float64"]),
        *itertools.product(["expm1", "tanh"], ["complex64", "complex128"]),
    ],
)
def test_replays_with_special_values_have_the_bits_of_eager_steps(name: str, dtype: str) -> None:
    xs = PAIRS.T.astype(dtype)
    if "complex" in dtype:
        xs[0] = 0
        xs[0].real, xs[0].imag = PAIRS.T
        xs[1] = 0
    step = capture(STEPS[name])
    for transposed in (False, True):
        for special in (False, False, True, False):
            rows = xs if special else np.where(np.isfinite(xs), xs, 2)
            x, y = (xgrad.asarray(row.reshape(8, 8)) for row in rows)
            inputs = (x.mT, y.mT) if transposed else (x, y)
            assert_same([snapshot(STEPS[name](*inputs))], [snapshot(step(*inputs))])
    assert step.refusal is None and step.recordings == 2
