"""Images as a network takes them, and the probabilities that it returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import xgrad
from xgrad import nn
from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.data import (
    DataLoader,
    Split,
    TensorDataset,
)


@dataclass(frozen=True)
class Scaling:
    """Standardization of grey values to mean 0 and standard deviation 1.

    Mean and standard deviation are taken over the training images.
    """

    mean: float
    std: float

    @classmethod
    def of(cls, split: Split) -> Scaling:
        """Return the scaling of training images."""
        flat = split.images.reshape(-1)
        mean = int(flat.sum(dtype=np.int64)) / flat.size
        # exact, and without a copy of the images
        squares = int(np.einsum("i,i->", flat, flat, dtype=np.int64))
        return cls(mean, math.sqrt(squares / flat.size - mean**2))

    def __call__(self, images: np.ndarray, device: Device) -> Tensor:
        """Return scaled images on a device, one row each."""
        rows = images.reshape(len(images), math.prod(images.shape[1:])).astype(np.float32)
        rows -= self.mean
        rows /= self.std
        return xgrad.asarray(rows, device=device)


@xgrad.no_grad()
def probabilities(model: nn.Module, images: Tensor) -> np.ndarray:
    """Return the probabilities of all classes, of shape (images, classes)."""
    model.eval()
    batches = DataLoader(TensorDataset(images), batch_size=1000)
    return (
        xgrad.concat([nn.functional.softmax(model(rows), axis=1) for (rows,) in batches])
        .cpu()
        .numpy()
    )
