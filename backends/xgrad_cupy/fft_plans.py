"""Plans of Fourier transforms for CUDA graphs, apart from the plans in CuPy's cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def own_plans(cp: Any) -> Iterator[list[Any]]:
    """Give the current thread a new cache of plans for the current device, without a limit.

    At the end, the list has all plans that were made, and the old cache is back. A graph needs its
    plans as long as it lives: they have memory that its kernels use. CuPy's cache drops the oldest
    of more than sixteen, and eager transforms on other streams write to the memory of cached plans.
    """
    cache, plans = cp.fft.config.get_plan_cache(), list[Any]()
    size, memsize, before = cache.get_size(), cache.get_memsize(), _entries(cache)
    cache.set_size(-1)
    cache.set_memsize(-1)
    _remove_all(cache)
    try:
        yield plans
    finally:
        plans += [plan for _, plan in _entries(cache)]
        _remove_all(cache)
        cache.set_size(size)
        cache.set_memsize(memsize)
        for key, plan in before:
            cache[key] = plan


def _entries(cache: Any) -> list[tuple[Any, Any]]:
    """Return the keys and plans of a cache, the least recently used first."""
    return [(key, node.plan) for key, node in cache][::-1]


def _remove_all(cache: Any) -> None:
    """Empty a cache; its own method `clear` would also collect garbage."""
    for key, _ in _entries(cache):
        del cache[key]
