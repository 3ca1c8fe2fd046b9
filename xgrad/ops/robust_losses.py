"""Robust losses under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from xgrad.ops.declare import Binary, as_arrays
from xgrad.ops.special import kernel


def _huber(xp: Any, delta: Any, r: Any, /) -> Any:
    delta, r = as_arrays(xp, delta, r)
    size = xp.abs(r)
    loss = xp.where(size <= delta, r * r / 2, delta * (size - delta / 2))
    return xp.where(delta < 0, math.inf, loss)


def _huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * xp.where(xp.abs(r) <= delta, 0, xp.abs(r) - delta)


def _huber_residual(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * xp.maximum(xp.minimum(r, delta), -delta)


huber: Binary = kernel(
    "huber",
    "delta r",
    _huber_delta,
    _huber_residual,
    forward=_huber,
    doc="Return Huber's loss of residuals `r`: half the square up to `delta`, and linear beyond.\n\n"
    "Where `delta` is negative, the loss is infinite.",
    example="1.0, [0.5, 2.0] -> [0.125, 1.5  ]",
    notes="Differentiable to any order, but at ``abs(r) == delta`` the second derivative is half that of the square",
)


def _root(xp: Any, delta: Any, r: Any) -> Any:
    """Return the root of the sum of squares, and 1 where it is 0, for there it is divided by."""
    squares = delta * delta + r * r
    return xp.sqrt(xp.where(squares == 0, 1, squares))


def _pseudo_huber(xp: Any, delta: Any, r: Any, /) -> Any:
    delta, r = as_arrays(xp, delta, r)
    loss = delta * r * (r / (xp.abs(delta) + _root(xp, delta, r)))  # the definition's difference, without cancellation
    return xp.where(delta < 0, math.inf, loss)


def _pseudo_huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    root = _root(xp, delta, r)
    part = r / (delta + root) * r
    return g * (part * part / root)


def _pseudo_huber_residual(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * (delta / _root(xp, delta, r) * r)


pseudo_huber: Binary = kernel(
    "pseudo_huber",
    "delta r",
    _pseudo_huber_delta,
    _pseudo_huber_residual,
    forward=_pseudo_huber,
    doc="Return delta**2 * (sqrt(1 + (r / delta)**2) - 1), a smooth loss, linear for residuals `r` beyond `delta`.\n\n"
    "Where `delta` is negative, the loss is infinite.",
    example="1.0, [0.0, 2.0] -> [0.       , 1.236...]",
)
