"""A line search for the strong Wolfe conditions, with cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A point on a line: the step size, value, gradient, and slope along the line."""

    t: float
    value: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    scale: float,
    tolerance: float,
    limit: int,
) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, and the number of evaluations.

    Algorithms 3.5 and 3.6 of J. Nocedal, S. J. Wright, "Numerical optimization", 2006. The search
    ends early after `limit` evaluations besides the first, or if the length of the bracket times
    `scale`, the largest component of the direction, is below `tolerance`.
    """

    def too_high(point: Point) -> bool:
        return point.value > start.value + SUFFICIENT_DECREASE * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * start.slope

    before, point, count = start, evaluate(t), 1
    while count <= limit:
        if too_high(point) or (count > 2 and point.value >= before.value):
            break
        if flat(point):
            return point, count
        if point.slope >= 0:
            break
        bounds = point.t + 0.01 * (point.t - before.t), 10 * point.t
        before, point = point, evaluate(_cubic_minimum(before, point, bounds))
        count += 1
    else:
        before = start

    low, high = (before, point) if before.value <= point.value else (point, before)
    stalled = False
    while count <= limit and abs(high.t - low.t) * scale >= tolerance:
        left, right = sorted((low.t, high.t))
        t, margin = _cubic_minimum(low, high, (left, right)), 0.1 * (right - left)
        near_end = min(right - t, t - left) < margin
        if near_end and (stalled or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near_end = False
        stalled = near_end
        point = evaluate(t)
        count += 1
        if too_high(point) or point.value >= low.value:
            low, high = (low, point) if low.value <= point.value else (point, low)
            continue
        if flat(point):
            return point, count
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, count


def _cubic_minimum(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Return the minimum, within bounds, of the cubic through two points with their slopes."""
    if a.t > b.t:
        a, b = b, a
    inner = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = inner * inner - a.slope * b.slope
    if not square >= 0:
        return sum(bounds) / 2
    root: float = square**0.5
    t = b.t - (b.t - a.t) * ((b.slope + root - inner) / (b.slope - a.slope + 2 * root))
    return min(max(t, bounds[0]), bounds[1])
