"""Plots as SVG, of a few lines each: strips of dots, and curves. Colours are classes of the page: ``c0`` ..."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

WIDTH, LEFT, RIGHT, BOTTOM = 720, 118, 14, 38
ROW = 46


class Dot(NamedTuple):
    """A value, what to say of it, whether it is a failure, and which of two marks it gets."""

    value: float
    title: str
    failed: bool = False
    hollow: bool = False


class Axis:
    """A logarithmic axis from `low` to `high`, powers of ten; what is below has its place at the start."""

    def __init__(self, values: Iterable[float], start: float, end: float, floor: float = 1e-20) -> None:
        positive = [v for v in values if math.isfinite(v) and v > floor] or [1.0]
        self.low = math.floor(math.log10(min(positive)))
        self.high = max(math.ceil(math.log10(max(positive))), self.low + 1)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        """Return where a value is."""
        if value == math.inf or math.isnan(value):
            return self.end
        power = math.log10(value) if value > 0 else self.low
        part = (min(max(power, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places and labels: powers of ten, and parts of them where these are few."""
        every = max(1, math.ceil((self.high - self.low) / 8))
        powers = range(self.low, self.high + 1, every)
        between = (
            [k * 10.0**n for n in powers[:-1] for k in (2, 5)]
            if self.low >= -3 and self.high <= 3 and len(powers) <= 4
            else []
        )
        return [(10.0**n, _power(n)) for n in powers] + [(value, f"{value:g}") for value in between]


def _power(n: int) -> str:
    if -3 <= n <= 3:
        return f"{10.0**n:g}"
    return f"10<tspan dy='-4' font-size='70%'>{n}</tspan>"


def strips(
    rows: Sequence[tuple[str, int, Sequence[Dot]]],
    label: str,
    *,
    zero: bool = True,
    unity: bool = False,
    limits: Sequence[float] = (),
) -> str:
    """Return one strip of dots for each row (name, colour, dots), on one logarithmic axis.

    With `zero`, dots of 0 have a lane of their own on the left; with `unity`, there is a line at 1. `limits` are
    marked, one in each row.
    """
    lane = 40 if zero else 0
    axis = Axis([*[d.value for _, _, dots in rows for d in dots], *limits], LEFT + lane, WIDTH - RIGHT)
    height = ROW * len(rows) + BOTTOM
    parts = [_open(height, label)]
    for value, text in axis.ticks():
        parts.append(_line(axis(value), 4, axis(value), height - BOTTOM, "grid"))
        parts.append(_text(axis(value), height - BOTTOM + 15, text, "tick"))
    if unity:
        parts.append(_line(axis(1), 4, axis(1), height - BOTTOM, "unity"))
    if zero:
        parts.append(_text(LEFT + 12, height - BOTTOM + 15, "0", "tick"))
    parts.append(_text((LEFT + WIDTH) / 2, height - 3, escape(label), "label"))
    for number, (name, colour, dots) in enumerate(rows):
        middle = ROW * number + ROW / 2
        parts.append(_text(LEFT - 10, middle + 4, escape(name), "name"))
        if limits:
            at = axis(limits[number])
            parts.append(_line(at, middle - ROW / 2 + 4, at, middle + ROW / 2 - 4, "limit"))
        for k, dot in enumerate(sorted(dots, key=lambda d: d.failed)):
            x = LEFT + 12 + (k * 7) % 15 - 7 if zero and dot.value == 0 else axis(dot.value)
            y = middle + ((k * 0.618034) % 1 - 0.5) * (ROW - 16)  # spread evenly, and always in the same way
            kind = "bad" if dot.failed else f"{'h' if dot.hollow else 'c'}{colour}"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 if dot.failed else 3}" class="{kind}">'
                f"<title>{escape(dot.title)}</title></circle>"
            )
    return "".join(parts) + "</svg>"


def curves(lines: Sequence[tuple[str, int, Sequence[float]]], label: str, *, log: bool) -> str:
    """Return curves (name, colour, values) over steps; zeros of a logarithmic one lie on its floor."""
    width, height, left, top = 352, 174, 52, 10
    values = [v for _, _, line in lines for v in line if math.isfinite(v)]
    parts = [_open(height, label, width)]
    bottom, right = height - BOTTOM, width - 14
    if log:
        axis = Axis(values, bottom, top)
        place, ticks = axis.__call__, axis.ticks()
    else:
        high = max([*values, 1e-9]) * 1.05

        def place(value: float) -> float:
            return bottom - min(value, high) / high * (bottom - top) if math.isfinite(value) else top

        ticks = [(high * k / 4, f"{high * k / 4:.2g}") for k in range(5)]
    for value, text in ticks:
        parts.append(_line(left, place(value), right, place(value), "grid"))
        parts.append(_text(left - 6, place(value) + 4, text, "name"))
    steps = max((len(line) for _, _, line in lines), default=1)
    for k in range(5):
        step = k * steps // 4
        parts.append(_text(left + (right - left) * k / 4, bottom + 15, str(step), "tick"))
    parts.append(_text((left + right) / 2, height - 3, "step", "label"))
    for number, (name, colour, line) in enumerate(lines):
        points = " ".join(
            f"{left + (right - left) * i / max(1, steps - 1):.1f},{place(v):.1f}" for i, v in enumerate(line)
        )
        dash = f' stroke-dasharray="{8 - 2 * number} {3 * number}"' if number else ""
        parts.append(
            f'<polyline points="{points}" class="l{colour}"{dash}><title>{escape(name)}</title></polyline>'
        )  # fmt: skip
    return "".join(parts) + "</svg>"


def _open(height: float, label: str, width: float = WIDTH) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{text}</text>'
