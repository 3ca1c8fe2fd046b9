"""Copies of several arrays by one launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

_COPIED = 16  # maximum number of arrays that a kernel copies


def copy_all(cp: Any, sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copy arrays to others of the same dtypes; one kernel copies all arrays of one shape."""
    shapes: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
    for x, target in zip(sources, targets, strict=True):
        shapes.setdefault(x.shape, []).append((x, target))
    for pairs in shapes.values():
        for i in range(0, len(pairs), _COPIED):
            part = pairs[i : i + _COPIED]
            _copies(cp, len(part))(*[x for x, _ in part], *[target for _, target in part])


@cache
def _copies(cp: Any, count: int) -> Any:
    names = [", ".join([f"T {side}{i}" for i in range(count)]) for side in "xy"]
    return cp.ElementwiseKernel(
        *names, "; ".join([f"y{i} = x{i}" for i in range(count)]), "xgrad_copies"
    )
