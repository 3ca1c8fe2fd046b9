"""`torch.utils.data.dataset`: data sets whose samples are tensors of this namespace."""

from __future__ import annotations

from typing import Any

from xgrad import data
from xgrad.compat.torch.tensor import as_torch
from xgrad.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    random_split,
)

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class TensorDataset(data.TensorDataset):
    """Samples along the first axes of tensors."""

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return as_torch(super().__getitem__(key))  # type: ignore[no-any-return]


class StackDataset(data.StackDataset):
    """Samples of several data sets, as tuples or dicts."""

    def __getitem__(self, index: Any) -> Any:
        return as_torch(super().__getitem__(index))
