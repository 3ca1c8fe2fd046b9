"""Real parts, imaginary parts and complex conjugates."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import elementwise

__all__ = ["conj", "imag", "real"]


@elementwise(lambda g: g, holomorphic=False, views="shared")
def real(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the real part.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = \operatorname{Re}(x)

    - Gradient for `x`: :math:`\bar y`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``real``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.real(xgrad.asarray([1.0 + 2.0j]))
    Tensor([1.])
    """
    return xp.real(x)


@elementwise(lambda g: g * 1j, holomorphic=False, views="shared")
def imag(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the imaginary part.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = \operatorname{Im}(x)

    - Gradient for `x`: :math:`i\, \bar y`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``imag``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.imag(xgrad.asarray([1.0 + 2.0j]))
    Tensor([2.])
    """
    return xp.imag(x)


@elementwise(lambda g, xp: xp.conj(g), holomorphic=False)
def conj(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the complex conjugate.

    Parameters
    ----------
    x : Tensor
        Numbers, of any shape; bools count as integers.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Notes
    -----
    .. math:: y = \overline{x}

    - Gradient for `x`: :math:`\overline{\bar y}`

    Differentiable to any order.

    Python array API standard, elementwise functions: ``conj``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.conj(xgrad.asarray([1.0 + 2.0j]))
    Tensor([1.-2.j], dtype=complex64)
    """
    return xp.conj(x)
