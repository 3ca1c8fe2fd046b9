"""Models for all peers: sizes, weights by PyTorch's names, and a batch, made with NumPy from a fixed seed.

To add a model, write its problem here, and a function of its name in `peers/models_xgrad.py`, `peers/models_torch.py`
and `peers/models_jax.py`; then name its sizes in `models.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A model and a batch: cross-entropy of rows of logits, plain SGD."""

    weights: dict[str, Array]  # float32, by the names of PyTorch's `state_dict`
    x: Array
    y: Array  # int64 classes, one for each row of logits
    lr: float = 0.1


def drawn(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Return weights uniform over ±1/√in; the scales of normalizations, which have `norm` in their names, are 1."""
    weights = {}
    for name, shape in shapes.items():
        bound = 1 / math.sqrt(math.prod(shape[1:]) if len(shape) > 1 else shape[0])
        scale = "norm" in name and name.endswith("weight")
        values = np.ones(shape) if scale else rng.uniform(-bound, bound, shape)
        weights[name] = values.astype(np.float32)
    return weights


def lstm(batch: int, length: int, width: int, classes: int) -> Problem:
    """Return an LSTM, and a linear layer on its last hidden state."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "lstm.weight_ih_l0": (4 * width, width),
        "lstm.weight_hh_l0": (4 * width, width),
        "lstm.bias_ih_l0": (4 * width,),
        "lstm.bias_hh_l0": (4 * width,),
        "output.weight": (classes, width),
        "output.bias": (classes,),
    }
    x = rng.standard_normal((batch, length, width), np.float32)
    return Problem(drawn(rng, shapes), x, rng.integers(0, classes, batch))


#: All models by name.
PROBLEMS = {"lstm": lstm}


def problem(model: str, **sizes: int) -> Problem:
    """Return the problem of a model and its sizes."""
    return PROBLEMS[model](**sizes)
