"""`torch.utils.data.dataloader`: batches, as PyTorch collates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import xgrad
from xgrad import data
from xgrad.compat.torch.tensor import as_torch

__all__ = ["DataLoader", "default_collate"]


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
    return as_torch(data.default_collate(batch))


class DataLoader:
    """Batches of a data set: see `xgrad.data.DataLoader`.

    Workers are threads. ``pin_memory``, ``persistent_workers`` and ``multiprocessing_context``
    have no effect.
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
        for name, value in (("timeout", timeout), ("worker_init_fn", worker_init_fn)):
            if value:
                raise NotImplementedError(
                    f"DataLoader: {name}= is not available in xgrad.compat.torch"
                )
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise ValueError(
                "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
            )
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.batch_sampler, self.num_workers, self.generator = batch_sampler, num_workers, generator
        self.pin_memory = pin_memory
        # Without batches, each sample is returned by itself.
        plain = batch_size is None and batch_sampler is None
        self.collate_fn = collate_fn or (as_torch if plain else default_collate)
        options = {
            "num_workers": num_workers,
            "generator": generator,
            "prefetch_factor": 2 if prefetch_factor is None else prefetch_factor,
        }
        if plain:
            self._loader = data.DataLoader(
                dataset, 1, bool(shuffle), sampler, collate_fn=self._collate_one, **options
            )
        elif batch_sampler is None:
            self._loader = data.DataLoader(
                dataset,
                batch_size,  # type: ignore[arg-type]
                bool(shuffle),
                sampler,
                collate_fn=self._collate,
                drop_last=drop_last,
                **options,
            )
        self.sampler = sampler

    def _collate(self, samples: list[Any]) -> Any:
        return as_torch(self.collate_fn(as_torch(samples)))

    def _collate_one(self, samples: list[Any]) -> Any:
        return self._collate(samples[0])

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            return self._by_batches()
        return iter(self._loader)

    def _by_batches(self) -> Iterator[Any]:
        for indices in self.batch_sampler:
            yield self._collate([self.dataset[i] for i in indices])

    def __len__(self) -> int:
        return len(self._loader) if self.batch_sampler is None else len(self.batch_sampler)
