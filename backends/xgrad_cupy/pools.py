"""Private memory pools of CUDA graphs: nothing else takes memory from them."""

from __future__ import annotations

import contextlib
from typing import Any

_pools: dict[Any, Any] = {}  # pools that have memory, with the device if retired, else None


def new_pool(cp: Any) -> Any:
    """Return a pool that stays alive until its memory is free.

    CuPy would lose blocks that are freed after their pool is dropped.
    """
    pool = cp.cuda.MemoryPool()
    _pools[pool] = None
    return pool


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
