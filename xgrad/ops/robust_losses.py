"""Robust losses under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import kernel


def _huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * xp.where(xp.abs(r) <= delta, 0, xp.abs(r) - delta)


def _huber_residual(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * xp.maximum(xp.minimum(r, delta), -delta)


@kernel(_huber_delta, _huber_residual)
def huber(xp: Any, delta: ArrayLike, r: ArrayLike, /) -> Any:
    r"""Return Huber's loss of residuals `r`: half the square up to `delta`, and linear beyond.

    Where `delta` is negative, the loss is infinite.

    Parameters
    ----------
    delta, r : Tensor
        Real numbers, of shapes that broadcast, on one device; integers count as float32. Any may be
        a Python scalar, which does not promote the others.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math::

        y = \begin{cases}
            r^2 / 2 & \text{if } |r| \le \delta \\
            \delta\, (|r| - \delta / 2) & \text{otherwise}
        \end{cases}

    - Gradient for `delta`: :math:`\bar y\, \max(|r| - \delta, 0)`
    - Gradient for `r`: :math:`\bar y\, \max(\min(r, \delta), -\delta)`

    Differentiable to any order, but at ``abs(r) == delta`` the second derivative is half its value
    in the quadratic part. Like ``scipy.special.huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.huber(1.0, asarray([0.5, 2.0]))
    Tensor([0.125, 1.5  ])
    """
    delta, r = as_arrays(xp, delta, r)
    size = xp.abs(r)
    loss = xp.where(size <= delta, r * r / 2, delta * (size - delta / 2))
    return xp.where(delta < 0, math.inf, loss)


def _root(xp: Any, delta: Any, r: Any) -> Any:
    """Return the root of the sum of squares, or 1 where it is 0, so that division is safe."""
    squares = delta * delta + r * r
    return xp.sqrt(xp.where(squares == 0, 1, squares))


def _pseudo_huber_delta(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    root = _root(xp, delta, r)
    part = r / (delta + root) * r
    return g * (part * part / root)


def _pseudo_huber_residual(g: Any, xp: Any, delta: Any, r: Any) -> Any:
    delta, r = as_arrays(xp, delta, r)
    return g * (delta / _root(xp, delta, r) * r)


@kernel(_pseudo_huber_delta, _pseudo_huber_residual)
def pseudo_huber(xp: Any, delta: ArrayLike, r: ArrayLike, /) -> Any:
    r"""Return delta**2 * (sqrt(1 + (r / delta)**2) - 1), a smooth form of Huber's loss.

    It is linear for residuals `r` beyond `delta`.

    Where `delta` is negative, the loss is infinite.

    Parameters
    ----------
    delta, r : Tensor
        Real numbers, of shapes that broadcast, on one device; integers count as float32. Any may be
        a Python scalar, which does not promote the others.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = \delta^2 \left(\sqrt{1 + (r / \delta)^2} - 1\right)

    - Gradient for `delta`: :math:`\bar y\, (s - \delta)^2 / s`, with
      :math:`s = \sqrt{\delta^2 + r^2}`
    - Gradient for `r`: :math:`\bar y\, \delta r / s`

    Differentiable to any order. Like ``scipy.special.pseudo_huber``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pseudo_huber(1.0, asarray([0.0, 2.0]))
    Tensor([0.      , 1.236068])
    """
    delta, r = as_arrays(xp, delta, r)
    # equals the definition, but does not cancel
    loss = delta * r * (r / (xp.abs(delta) + _root(xp, delta, r)))
    return xp.where(delta < 0, math.inf, loss)
