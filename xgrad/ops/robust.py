"""Robust losses, by SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.dtypes import FLOATING
from xgrad.ops.declare import arrays, derivative


def _huber_rule(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = arrays(xp, delta, r)
    return g * xp.maximum(xp.minimum(r, delta), -delta)


def _huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = arrays(xp, delta, r)
    return g * xp.where(xp.abs(r) <= delta, 0, xp.abs(r) - delta)


@derivative(_huber_delta, _huber_rule, kind=FLOATING, highest=FLOATING, broadcasts=True, scipy_promotion=True)
def huber(xp: Any, delta: Any, r: Any, /) -> Any:
    """Return Huber's loss: half the square of a residual up to `delta`, and linear beyond.

    Parameters
    ----------
    delta : Tensor
        Where the loss becomes linear; where it is negative, the loss is infinite.
    r : Tensor
        Residuals, of a shape that broadcasts with `delta`; integers count as float32. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order, but at ``abs(r) == delta`` the second derivative is half that of the square. As
    ``scipy.special.huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.huber(1.0, asarray([0.5, 2.0]))
    Tensor([0.125, 1.5  ])
    """
    delta, r = arrays(xp, delta, r)
    size = xp.abs(r)
    loss = xp.where(size <= delta, r * r / 2, delta * (size - delta / 2))
    return xp.where(delta < 0, math.inf, loss)


def _pseudo_huber_parts(xp: Any, delta: Any, r: Any) -> tuple[Any, Any, Any, Any]:
    """Return both inputs, and the root of their squares' sum, harmless where it is 0."""
    delta, r = arrays(xp, delta, r)
    squares = delta * delta + r * r
    return delta, r, xp.sqrt(xp.where(squares == 0, 1, squares)), squares == 0


def _pseudo_huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    part = r / (delta + root) * r
    return g * (part * part / root)


def _pseudo_huber_rule(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    return g * (delta / root * r)


@derivative(
    _pseudo_huber_delta, _pseudo_huber_rule, kind=FLOATING, highest=FLOATING, broadcasts=True, scipy_promotion=True
)
def pseudo_huber(xp: Any, delta: Any, r: Any, /) -> Any:
    """Return delta**2 * (sqrt(1 + (r / delta)**2) - 1), a smooth loss that is linear for residuals beyond `delta`.

    Parameters
    ----------
    delta : Tensor
        Where the loss becomes linear; where it is negative, the loss is infinite.
    r : Tensor
        Residuals, of a shape that broadcasts with `delta`; integers count as float32. Either may be a Python
        scalar, which promotes nothing.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Notes
    -----
    Differentiable to any order. As ``scipy.special.pseudo_huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pseudo_huber(1.0, asarray([0.0, 2.0]))
    Tensor([0.       , 1.236...])
    """
    delta, r, root, _ = _pseudo_huber_parts(xp, delta, r)
    loss = delta * r * (r / (xp.abs(delta) + root))  # the difference of the definition, without cancellation
    return xp.where(delta < 0, math.inf, loss)
