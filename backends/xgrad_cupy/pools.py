"""Private memory pools of CUDA graphs, which nothing else may take memory from."""

from __future__ import annotations

import contextlib
from typing import Any

_pools: dict[Any, Any] = {}  # pools that have memory; the device of those to be freed, else None


def new_pool(cp: Any) -> Any:
    """Return a pool that stays alive until its memory is free: CuPy would lose blocks that are
    freed later.
    """
    pool = cp.cuda.MemoryPool()
    _pools[pool] = None
    return pool


def pools() -> list[Any]:
    """Return the pools that have memory."""
    return list(_pools)


def retire(device: Any, pool: Any) -> None:
    """Retire a pool, and free the memory of retired ones that nothing refers to: CuPy keeps it in
    dropped pools.
    """
    _pools[pool] = device
    for retired, of in list(_pools.items()):
        if of is not None:
            with contextlib.suppress(Exception), of:  # another thread may free it
                retired.free_all_blocks()
                if not retired.total_bytes():
                    _pools.pop(retired, None)
