"""`torch.utils.data.dataset`: data sets whose samples are tensors of this namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from xgrad import data
from xgrad.compat.torch.tensor import as_torch
from xgrad.data import ConcatDataset, Dataset, Subset, random_split

__all__ = [
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class TensorDataset(data.TensorDataset):
    """Samples along the first axes of tensors."""

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return as_torch(super().__getitem__(key))  # type: ignore[no-any-return]


class IterableDataset(Generic[T_co]):
    """Base class of data sets that are read by iteration: a subclass defines ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a subclass that defines __iter__"
        )
