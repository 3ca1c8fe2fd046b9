"""`torch.utils.data.sampler`: orders of samples."""

from __future__ import annotations

from typing import Any, TypeVar

from xgrad import data
from xgrad.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


T_co = TypeVar("T_co", covariant=True)


class Sampler(data.Sampler[T_co]):
    """Base class of samplers: a subclass defines ``__iter__``, and ``__len__``."""

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source
