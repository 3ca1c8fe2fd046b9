"""`torch.utils.data.dataloader`: batches, as PyTorch collates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xgrad
from xgrad import data as xdata
from xgrad.compat.torch.tensor import as_torch

__all__ = ["DataLoader", "default_collate", "default_convert"]


def default_collate(batch: Any) -> Any:
    """Collate samples: tuples become lists, and Python floats float64, as in PyTorch."""
    first = batch[0]
    if isinstance(first, float):
        return as_torch(xgrad.asarray(list(batch), dtype=xgrad.float64))
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError("default_collate: expected samples of one length")
        fields = [default_collate(field) for field in zip(*batch, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else fields
    return as_torch(xdata.default_collate(batch))


def default_convert(data: Any) -> Any:
    """Return a sample with tensors in place of NumPy arrays."""
    return as_torch(xdata.default_convert(data))


class DataLoader(xdata.DataLoader[Any]):
    """Batches of a data set: see `xgrad.data.DataLoader`.

    Workers are threads. ``multiprocessing_context`` and ``pin_memory_device`` have no effect.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        # Without batches, each sample is returned by itself.
        plain = batch_size is None and batch_sampler is None
        collate = collate_fn or (default_convert if plain else default_collate)
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers=num_workers,
            collate_fn=lambda samples: as_torch(collate(as_torch(samples))),
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
        )
