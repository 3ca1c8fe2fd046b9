"""Worker threads of a `DataLoader`, as a dataset sees them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from threading import local
from typing import Any


@dataclass(frozen=True)
class WorkerInfo:
    """A worker thread: its number `id`, the number of workers, and the dataset, which they share.

    The workers of an iterable are a single one.
    """

    id: int
    num_workers: int
    dataset: Any


_info: ContextVar[WorkerInfo | None] = ContextVar("xgrad.data.worker", default=None)


def get_worker_info() -> WorkerInfo | None:
    """Return the worker of a `DataLoader` that calls it; None in any other code.

    Which worker loads a batch depends on the threads' timing: samples must not depend on ``id``.
    An iterable is read by a single worker, so that code that gives each worker a part of the
    samples reads all of them.

    Returns
    -------
    WorkerInfo or None
        The number of the worker under ``id``, ``num_workers`` and ``dataset``.

    Examples
    --------
    >>> import xgrad
    >>> class Numbers(xgrad.data.IterableDataset):
    ...     def __iter__(self):
    ...         worker = xgrad.data.get_worker_info()
    ...         start, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
    ...         return iter(range(start, 5, step))
    >>> [x.tolist() for x in xgrad.data.DataLoader(Numbers(), 2, num_workers=2)]
    [[0, 1], [2, 3], [4]]
    """
    return _info.get()


class Workers:
    """The worker threads of one iteration; each has a number, and runs `initialize` once."""

    def __init__(
        self, number: int, dataset: Any, initialize: Callable[[int], object] | None
    ) -> None:
        self.number, self.dataset, self.initialize = number, dataset, initialize
        self._ids, self._thread = count(), local()

    def enter(self) -> None:
        """Make the current thread a worker, in the current context."""
        worker: WorkerInfo | None = getattr(self._thread, "worker", None)
        if worker is not None:
            _info.set(worker)
            return
        worker = WorkerInfo(next(self._ids), self.number, self.dataset)
        _info.set(worker)
        if self.initialize is not None:
            try:
                self.initialize(worker.id)
            except Exception as error:
                error.add_note(f"DataLoader: raised by worker_init_fn({worker.id})")
                raise
        self._thread.worker = worker
