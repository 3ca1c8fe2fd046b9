"""Cases of the ops of neural networks."""

from __future__ import annotations

import math

import numpy as np

from xgrad.backend import philox
from xgrad.ops import dropout
from xgrad.parity.op_case import OpCase, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, ROUNDED, SUMS


def _mask(shape: tuple[int, ...], p: float) -> np.ndarray:
    """Return the factors of the dropout below, by a formula of its own."""
    fractions = (philox.bits(3, 7, 16, math.prod(shape)) + 2.0**15) / 2**16
    return np.where(fractions < p, 0.0, 1 / (1 - p)).reshape(shape)


CASES: list[OpCase] = [
    op_case("linear", SUMS, sample((2, 3), (4, 3), (4,)), sample((2, 3), (4, 3)), sample((3,), (4, 3), (4,)), sample((2, 2, 3), (4, 3), (4,)),
        sample((0, 3), (4, 3), (4,)), sample((2, 3), (4, 3), (4,), layout="transposed"), torch="nn.functional.linear"),
    *[op_case(name, COMPOSED, sample((2, 3)), sample((2, 3), axis=0), sample((4,)), sample(np.array([1e4, -1e4, 0.0])),
          sample(np.array([[1e4, 1e4], [-1e4, -1e4]])), sample((2, 0)), sample((0, 3), axis=0),
          torch=lambda x, axis=-1, name=name: getattr(torch, name)(x, axis))
      for name in ("softmax", "log_softmax")],
    op_case("cross_entropy", COMPOSED, sample((4, 3), ints(0, 2, 1, 1)), sample((3,), np.array(1)), sample((4, 3), ints(0, 2, 1, 1), reduction="sum"),
        sample((4, 3), ints(0, 2, 1, 1), reduction="none"), sample((2, 3, 2), ints([0, 2], [1, 1])),
        sample((4, 3), ints(0, 2, 1, 1), label_smoothing=0.1), sample(np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1)),
        sample((2, 3), ints(0, 2), layout="transposed"), torch="nn.functional.cross_entropy"),
    op_case("mse_loss", SUMS, sample((2, 3), (2, 3)), sample((4,), (4,), reduction="sum"), sample((4,), (4,), reduction="none"), sample((), ()),
        sample(np.array([1e4, -1e4]), np.array([-1e4, 1e4])), torch="nn.functional.mse_loss"),
    op_case("dropout of a seed", ROUNDED, sample((2, 3)), sample((5, 7), layout="transposed"), sample((2, 4, 2), layout="reversed"), sample((0, 3)),
        sample(()), fn=lambda x: dropout._dropout(x, seed=3, call=7, device=x.device, p=0.2), torch=lambda x: x * torch.tensor(_mask(x.shape, 0.2))),
]  # fmt: skip
