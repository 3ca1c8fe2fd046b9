"""Private memory pools of CUDA graphs: nothing else takes memory from them."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

_MEMORY_ALLOCATION = 2  # of cudaError_t

_pools: dict[Any, Any] = {}  # pools that have memory, with the device if retired, else None


def new_pool(cp: Any) -> Any:
    """Return a pool that stays alive until its memory is free.

    CuPy would lose blocks that are freed after their pool is dropped.
    """
    pool = cp.cuda.MemoryPool(partial(_malloc, cp))
    pool.set_limit(size=0)  # CuPy gives each pool the limit of the process, which `_malloc` checks
    _pools[pool] = None
    return pool


def _malloc(cp: Any, size: int) -> Any:
    """Allocate memory of the current device for a private pool.

    Raises CuPy's OutOfMemoryError if the device has no more, or if the private pools and the
    default pool together would exceed the limit of the default pool. After CUDA's error, or at a
    limit of its own, the pool would free its unused blocks and try again, although kernels that a
    stream has captured use these blocks.
    """
    default = cp.get_default_memory_pool()
    limit = default.get_limit()
    # the pool that asks has counted the size already
    total = sum([pool.total_bytes() for pool in (default, *pools())]) - size
    exceeded = cp.cuda.memory.OutOfMemoryError(size, total, limit)
    if limit and total + size > limit:
        raise exceeded
    try:
        return cp.cuda.MemoryPointer(cp.cuda.Memory(size), 0)
    except cp.cuda.runtime.CUDARuntimeError as error:
        if error.status != _MEMORY_ALLOCATION:
            raise
        raise exceeded from error


def pools() -> list[Any]:
    """Return the pools that have memory."""
    return list(_pools)


def retire(device: Any, pool: Any) -> None:
    """Retire a pool, and free the memory of retired pools that nothing refers to.

    CuPy does not free the memory of pools that are merely dropped.
    """
    _pools[pool] = device
    for retired, of in list(_pools.items()):
        if of is not None:
            with contextlib.suppress(Exception), of:  # another thread may free it
                retired.free_all_blocks()
                if not retired.total_bytes():
                    _pools.pop(retired, None)
