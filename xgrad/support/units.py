"""Sizes and times as texts."""

from __future__ import annotations


def size(count: float) -> str:
    """Return a number of bytes as text, such as "1.5 kB"."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.95 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return a time as text, such as "1.5 ms"."""
    units = (("s", 1.0), ("ms", 1e3))
    unit, factor = next(
        ((unit, factor) for unit, factor in units if seconds * factor >= 0.9995), ("µs", 1e6)
    )
    value = seconds * factor
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
