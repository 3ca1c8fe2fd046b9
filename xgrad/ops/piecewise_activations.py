"""Activations that are pieces of lines or parabolas, under PyTorch's names.

At kinks, the derivatives are PyTorch's.
"""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_number
from xgrad.core.tensor import Tensor
from xgrad.ops.activations import REAL, as_floating
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import abs, clip
from xgrad.ops.in_place import in_place
from xgrad.ops.searching import where
from xgrad.support.hints import shown


@derivative(
    lambda g, xp, x, min_val, max_val: xp.where((x <= min_val) | (x >= max_val), 0, g), **REAL
)
def _hardtanh(xp: Any, x: Any, /, min_val: float, max_val: float) -> Any:
    return xp.minimum(xp.maximum(x, min_val), max_val)


def hardtanh(
    x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    r"""Limit numbers to an interval.

    At the ends of the interval, the derivative is 0, unlike in `xgrad.clip`.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    min_val, max_val : float
        The ends of the interval, by default -1 and 1.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `min_val` is not below `max_val`.

    Notes
    -----
    .. math:: y = \min(\max(x, a), b)

    - Gradient for `x`: :math:`\bar y\, [a < x < b]`, where :math:`a` is `min_val`,
      and :math:`b` `max_val`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.hardtanh(xgrad.asarray([-2.0, 0.5, 2.0]))
    Tensor([-1. ,  0.5,  1. ])
    """
    if not as_number("hardtanh", "min_val", min_val) < as_number("hardtanh", "max_val", max_val):
        raise ValueError(
            f"hardtanh: expected min_val < max_val, got {shown(min_val)} and {shown(max_val)}"
        )
    options = min_val, max_val
    return in_place(_hardtanh, x, *options) if inplace else _hardtanh(x, *options)


def relu6(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Limit numbers to the range from 0 to 6.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \min(\max(x, 0), 6)

    - Gradient for `x`: :math:`\bar y\, [0 < x < 6]`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.relu6(xgrad.asarray([-1.0, 2.0, 9.0]))
    Tensor([0., 2., 6.])
    """
    return in_place(_hardtanh, x, 0.0, 6.0) if inplace else _hardtanh(x, 0.0, 6.0)


def hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return ``x / 6 + 1 / 2``, limited to the range from 0 to 1.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \frac{\min(\max(x + 3, 0), 6)}{6}

    - Gradient for `x`: :math:`\frac{\bar y}{6}\, [-3 < x < 3]`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.hardsigmoid(xgrad.asarray([-4.0, 0.0, 1.5]))
    Tensor([0.  , 0.5 , 0.75])
    """
    if inplace:
        return in_place(hardsigmoid, x)
    return relu6(as_floating("hardsigmoid", x) + 3) / 6


@derivative(lambda g, xp, x: g * xp.where(x <= -3, 0, xp.where(x < 3, x / 3 + 0.5, 1)), **REAL)
def _hardswish(xp: Any, x: Any, /) -> Any:
    return x * (xp.minimum(xp.maximum(x + 3, 0), 6) / 6)


def hardswish(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return ``x * hardsigmoid(x)``.

    A. Howard et al., "Searching for MobileNetV3", ICCV, 2019.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = x\, \frac{\min(\max(x + 3, 0), 6)}{6}

    - Gradient for `x`: :math:`\bar y \left(\frac{x}{3} + \frac{1}{2}\right)` if :math:`-3 < x < 3`,
      else :math:`\bar y\, [x \ge 3]`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.hardswish(xgrad.asarray([-4.0, 0.0, 1.5, 4.0]))
    Tensor([-0.   ,  0.   ,  1.125,  4.   ])
    """
    return in_place(_hardswish, x) if inplace else _hardswish(x)


def _checked_lambda(op: str, lambd: float) -> float:
    if not as_number(op, "lambd", lambd) >= 0:
        raise ValueError(f"{op}: expected lambd >= 0, got {shown(lambd)}")
    return lambd


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Move numbers towards 0 by `lambd`; numbers closer to 0 become 0.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    lambd : float, default 0.5
        The distance, 0 or more.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `lambd` is negative.

    Notes
    -----
    .. math:: y = \operatorname{sign}(x) \max(|x| - \lambda, 0)

    - Gradient for `x`: :math:`\bar y\, [|x| > \lambda]`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softshrink(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-1.5,  0. ,  0.5])
    """
    x, lambd = as_floating("softshrink", x), _checked_lambda("softshrink", lambd)
    return x - clip(x, -lambd, lambd)


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Replace numbers from ``-lambd`` to ``lambd`` by 0.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    lambd : float, default 0.5
        The bound, 0 or more.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `lambd` is negative.

    Notes
    -----
    .. math:: y = x\, [|x| > \lambda]

    - Gradient for `x`: :math:`\bar y\, [|x| > \lambda]`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.hardshrink(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-2.,  0.,  1.])
    """
    x, lambd = as_floating("hardshrink", x), _checked_lambda("hardshrink", lambd)
    return where(abs(x) <= lambd, 0, x)


def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    r"""Replace numbers that are not above a threshold by a value.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    threshold, value : float
        The threshold and the replacement.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > t \\ v & \text{otherwise} \end{cases}

    - Gradient for `x`: :math:`\bar y\, [x > t]`, where :math:`t` is `threshold`, and
      :math:`v` `value`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.threshold(xgrad.asarray([0.5, 1.0, 1.5]), 1.0, 7.0)
    Tensor([7. , 7. , 1.5])
    """
    limit = as_number("threshold", "threshold", threshold)
    as_number("threshold", "value", value)
    if inplace:
        return in_place(lambda x: where(x <= limit, value, x), x)
    x = as_floating("threshold", x)
    return where(x <= limit, value, x)
