"""Problems for all peers: networks, batches, operands and images.

They are made with NumPy from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from xgrad.data import digits, mnist

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MLP:
    """A network and a batch: layers with ReLU between them, softmax cross-entropy, plain SGD."""

    weights: list[Array]  # float32, of shape (out, in)
    biases: list[Array]
    x: Array  # float32
    y: Array  # int64 classes
    lr: float


def mlp(sizes: Sequence[int], batch: int) -> MLP:
    """Return the problem of a training step.

    He initialization preserves signals at any depth.
    """
    rng = np.random.default_rng(0)
    shapes = [(outputs, inputs) for inputs, outputs in pairwise(sizes)]
    weights = [
        rng.standard_normal(shape, np.float32) * np.float32((2 / shape[1]) ** 0.5)
        for shape in shapes
    ]
    biases = [0.1 * rng.standard_normal(shape[0], np.float32) for shape in shapes]
    x = rng.standard_normal((batch, sizes[0]), np.float32)
    return MLP(weights, biases, x, rng.integers(0, sizes[-1], batch), 1 / max(sizes))


def operands() -> tuple[Array, Array]:
    """Return two 8x8 matrices.

    With these, a chain of ``z = (z + y) * y`` neither overflows nor vanishes.
    """
    x, y = np.random.default_rng(0).uniform(0.4, 0.6, (2, 8, 8)).astype(np.float32)
    return x, y


@dataclass(frozen=True)
class Images:
    """Images as rows of float32 from 0 to 1, and their classes as int64."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


def images(quick: bool = False) -> Images:
    """Return MNIST, or for `quick` the embedded digits.

    `xgrad.data.mnist` finds MNIST; nothing is downloaded.
    """
    data = digits() if quick else mnist(download=False)
    scale = np.float32(1 / data.scale)
    rows = [split.images.reshape(len(split), -1) * scale for split in (data.train, data.test)]
    labels = [split.labels.astype(np.int64) for split in (data.train, data.test)]
    return Images(rows[0], labels[0], rows[1], labels[1])


def first_weights(sizes: Sequence[int], seed: int) -> tuple[list[Array], list[Array]]:
    """Return weights and biases uniform over ±1/√in, the initialization of PyTorch and xgrad."""
    rng = np.random.default_rng(seed)
    bounds = [(inputs, outputs, inputs**-0.5) for inputs, outputs in pairwise(sizes)]
    weights = [
        rng.uniform(-b, b, (outputs, inputs)).astype(np.float32) for inputs, outputs, b in bounds
    ]
    return weights, [rng.uniform(-b, b, outputs).astype(np.float32) for _, outputs, b in bounds]
