"""The types of the arguments of a `DataLoader`, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypedDict

from xgrad import random
from xgrad.support.hints import shown


class Ranks(Protocol):
    """Processes that share each batch: see `xgrad.distributed.Communicator`."""

    size: int

    def part(self, count: int) -> slice: ...


class Options(TypedDict, total=False):
    """The keywords that do not decide the type of a batch."""

    num_workers: int
    drop_last: bool
    generator: random.Generator | None
    worker_init_fn: Callable[[int], object] | None
    pin_memory: bool
    persistent_workers: bool
    timeout: float
    prefetch_factor: int | None
    ranks: Ranks | None


def check_arguments(
    dataset: Any,
    indexed: bool,
    batch_size: Any,
    shuffle: Any,
    sampler: Any,
    batch_sampler: Any,
    num_workers: Any,
    drop_last: Any,
    prefetch_factor: Any,
) -> None:
    """Raise TypeError or ValueError if the choice of samples and batches is invalid."""
    if not (indexed or isinstance(dataset, Iterable)) or isinstance(dataset, Mapping):
        raise TypeError(
            "DataLoader: expected a dataset with __len__ and __getitem__(index), or an"
            f" iterable, got {type(dataset).__name__}: of arrays, make one with"
            " xgrad.data.TensorDataset(images, labels)"
        )
    for name, value, low in (
        ("batch_size", 1 if batch_size is None else batch_size, 1),
        ("num_workers", num_workers, 0),
        ("prefetch_factor", prefetch_factor, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError(f"DataLoader: expected a {name} of {low} or more, got {shown(value)}")
    _check_flags(shuffle=shuffle, drop_last=drop_last)
    if shuffle and sampler is not None:
        raise ValueError(
            "DataLoader: expected either shuffle or a sampler, got both: leave out shuffle"
        )
    if batch_sampler is not None:
        others = {
            "batch_size": batch_size != 1,
            "shuffle": shuffle,
            "sampler": sampler is not None,
            "drop_last": drop_last,
        }
        if given := [name for name, is_given in others.items() if is_given]:
            raise ValueError(
                f"DataLoader: expected batch_sampler without {' and '.join(given)}, got both:"
                f" leave out {' and '.join(given)}"
            )
    if batch_size is None and drop_last:
        raise ValueError(
            "DataLoader: expected a batch_size for drop_last, got None, for single samples"
        )
    if not indexed and (shuffle or sampler is not None or batch_sampler is not None):
        name = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
        raise ValueError(
            f"DataLoader: expected a dataset with __len__ and __getitem__ for {name}, got an"
            f" iterable, {type(dataset).__name__}: make it a list, or leave out {name}"
        )
    if sampler is not None and not isinstance(sampler, Iterable):
        raise TypeError(
            f"DataLoader: expected an iterable of int as sampler, got {type(sampler).__name__}"
        )
    if batch_sampler is not None and not isinstance(batch_sampler, Iterable):
        raise TypeError(
            "DataLoader: expected an iterable of lists of int as batch_sampler, got"
            f" {type(batch_sampler).__name__}"
        )


def check_options(
    num_workers: int,
    worker_init_fn: Any,
    pin_memory: Any,
    persistent_workers: Any,
    timeout: Any,
) -> None:
    """Raise TypeError or ValueError if an option of workers is invalid."""
    _check_flags(pin_memory=pin_memory, persistent_workers=persistent_workers)
    if persistent_workers and not num_workers:
        raise ValueError(
            "DataLoader: expected num_workers of 1 or more for persistent_workers, got 0"
        )
    if not isinstance(timeout, int | float) or timeout != 0:
        raise ValueError(
            f"DataLoader: expected a timeout of 0, got {shown(timeout)}: workers are threads,"
            " which cannot be ended; limit the time where the dataset waits"
        )
    if worker_init_fn is not None and not callable(worker_init_fn):
        raise TypeError(
            f"DataLoader: expected a function for worker_init_fn, got {shown(worker_init_fn)}"
        )


def _check_flags(**flags: Any) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"DataLoader: expected True or False for {name}, got {shown(flag)}")
