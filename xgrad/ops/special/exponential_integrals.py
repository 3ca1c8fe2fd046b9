"""Exponential integrals and Spence's function: DLMF, chapters 6 and 25."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import kernel

__all__ = ["exp1", "expi", "expn", "spence"]


@kernel(lambda g, xp, z: -g * (xp.exp(-z) / z))
def exp1(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return the integral of exp(-t) / t from `z` to infinity.

    Parameters
    ----------
    z : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `z`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = E_1(z) = \int_z^\infty \frac{e^{-t}}{t}\, dt

    - Gradient for `z`: :math:`-\bar y\, \frac{e^{-z}}{z}`

    Differentiable to any order. Like ``scipy.special.exp1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.exp1(asarray([1.0, 2.0]))
    Tensor([0.21938394, 0.04890051])
    """
    return xp.special.exp1(z)


@kernel(lambda g, xp, x: g * (xp.exp(x) / x))
def expi(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the principal value of the integral of exp(t) / t from minus infinity to `x`.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \operatorname{Ei}(x) = \int_{-\infty}^x \frac{e^t}{t}\, dt

    - Gradient for `x`: :math:`\bar y\, \frac{e^x}{x}`

    Differentiable to any order. Like ``scipy.special.expi``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.expi(asarray([1.0, 2.0]))
    Tensor([1.8951178, 4.954234 ])
    """
    return xp.special.expi(x)


def _expn_rule(g: Any, xp: Any, n: Any, x: Any) -> Any:
    """Return the gradient of `expn`: minus `g` times order n - 1, which SciPy lacks for n = 0."""
    n, x = as_arrays(xp, n, x)
    return -g * xp.where(
        n == 0, xp.exp(-x) * (1 + 1 / x) / x, xp.special.expn(xp.where(n == 0, 0, n - 1), x)
    )


@kernel(lambda g, xp, z: -g * xp.special.hyp2f1(1.0, 1.0, 2.0, 1 - z))
def spence(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return Spence's function, the integral of log(t) / (1 - t) from 1 to `z`.

    Parameters
    ----------
    z : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `z`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \int_1^z \frac{\ln(t)}{1 - t}\, dt

    - Gradient for `z`: :math:`\bar y\, \frac{\ln(z)}{1 - z} = -\bar y\, {}_2F_1(1, 1; 2; 1 - z)`

    Differentiable to any order. Like ``scipy.special.spence``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.spence(asarray([0.0, 1.0]))
    Tensor([1.644934, 0.      ])
    """
    return xp.special.spence(z)


@kernel(None, _expn_rule)
def expn(xp: Any, n: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the exponential integral of order `n`: of exp(-x t) / t**n over t from 1 to infinity.

    Parameters
    ----------
    n, x : Tensor
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
    ImportError
        If the kernel is SciPy's and SciPy is not installed.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = E_n(x) = \int_1^\infty \frac{e^{-x t}}{t^n}\, dt

    - Gradient for `x`: :math:`-\bar y\, E_{n - 1}(x)`

    Differentiable to any order in `x`. Like ``scipy.special.expn``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.expn(2, asarray([0.0, 1.0]))
    Tensor([1.        , 0.14849551])
    """
    return xp.special.expn(n, x)
