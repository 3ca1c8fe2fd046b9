"""Powers, exponentials and power transformations."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import kernel

__all__ = [
    "boxcox",
    "boxcox1p",
    "cbrt",
    "cosm1",
    "exp2",
    "exp10",
    "exprel",
    "inv_boxcox",
    "inv_boxcox1p",
]


@kernel(lambda g, out: g / (3 * out * out))
def cbrt(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the cube root.

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
    .. math:: y = \sqrt[3]{x}

    - Gradient for `x`: :math:`\frac{\bar y}{3 y^2}`

    Differentiable to any order. Like ``scipy.special.cbrt``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.cbrt(asarray([8.0, -1.0]))
    Tensor([ 2., -1.])
    """
    return xp.special.cbrt(x)


@kernel(lambda g, out: g * (out * math.log(2)))
def exp2(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return 2 to the power of each element.

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
    .. math:: y = 2^x

    - Gradient for `x`: :math:`\bar y\, y \ln(2)`

    Differentiable to any order. Like ``scipy.special.exp2``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.exp2(asarray([0.0, 3.0]))
    Tensor([1., 8.])
    """
    return xp.special.exp2(x)


@kernel(lambda g, out: g * (out * math.log(10)))
def exp10(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return 10 to the power of each element.

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
    .. math:: y = 10^x

    - Gradient for `x`: :math:`\bar y\, y \ln(10)`

    Differentiable to any order. Like ``scipy.special.exp10``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.exp10(asarray([0.0, 2.0]))
    Tensor([  1., 100.])
    """
    return xp.special.exp10(x)


@kernel(lambda g, xp, x: -g * xp.sin(x))
def cosm1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return cos(x) - 1, accurate near 0.

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
    .. math:: y = \cos(x) - 1

    - Gradient for `x`: :math:`-\bar y \sin(x)`

    Differentiable to any order. Like ``scipy.special.cosm1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.cosm1(asarray([0.0, 1e-4]))
    Tensor([ 0.0000000e+00, -4.9999995e-09])
    """
    return xp.special.cosm1(x)


def _boxcox_by_power(xp: Any, logarithm: Any, lmbda: Any) -> Any:
    """Return the derivative of (exp(lmbda * logarithm) - 1) / lmbda by lmbda, exact at 0."""
    return logarithm * logarithm * xp.special.hyp1f1(2.0, 3.0, lmbda * logarithm) / 2


@kernel(
    lambda g, xp, x, lmbda: g * x ** (lmbda - 1),
    lambda g, xp, x, lmbda: g * _boxcox_by_power(xp, xp.log(as_arrays(xp, x, lmbda)[0]), lmbda),
)
def boxcox(xp: Any, x: ArrayLike, lmbda: ArrayLike, /) -> Any:
    r"""Return (x**lmbda - 1) / lmbda, or log(x) where `lmbda` is 0.

    Parameters
    ----------
    x, lmbda : Tensor
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
    .. math:: y = \frac{x^\lambda - 1}{\lambda}

    - Gradient for `x`: :math:`\bar y\, x^{\lambda - 1}`
    - Gradient for `lmbda`: :math:`\bar y\, \frac{x^\lambda \ln(x) - y}{\lambda}`

    Differentiable to any order. Like ``scipy.special.boxcox``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.boxcox(asarray([1.0, 4.0]), 0.5)
    Tensor([0., 2.])
    """
    return xp.special.boxcox(x, lmbda)


@kernel(
    lambda g, xp, x, lmbda: g * (1 + x) ** (lmbda - 1),
    lambda g, xp, x, lmbda: g * _boxcox_by_power(xp, xp.log1p(as_arrays(xp, x, lmbda)[0]), lmbda),
)
def boxcox1p(xp: Any, x: ArrayLike, lmbda: ArrayLike, /) -> Any:
    r"""Return ((1 + x)**lmbda - 1) / lmbda, or log1p(x) where `lmbda` is 0.

    Parameters
    ----------
    x, lmbda : Tensor
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
    .. math:: y = \frac{(1 + x)^\lambda - 1}{\lambda}

    - Gradient for `x`: :math:`\bar y\, (1 + x)^{\lambda - 1}`
    - Gradient for `lmbda`:
      :math:`\bar y\, \frac{(1 + x)^\lambda \ln(1 + x) - y}{\lambda}`

    Differentiable to any order. Like ``scipy.special.boxcox1p``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.boxcox1p(asarray([0.0, 3.0]), 0.5)
    Tensor([0., 2.])
    """
    return xp.special.boxcox1p(x, lmbda)


@kernel(
    lambda g, lmbda, out: g * out ** (1 - lmbda),
    lambda g, xp, lmbda, out: -g * (_boxcox_by_power(xp, xp.log(out), lmbda) * out ** (1 - lmbda)),
)
def inv_boxcox(xp: Any, y: ArrayLike, lmbda: ArrayLike, /) -> Any:
    r"""Return the inverse of `boxcox` in `x`.

    Parameters
    ----------
    y, lmbda : Tensor
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
    .. math:: z = (1 + \lambda y)^{1 / \lambda}

    - Gradient for `y`: :math:`\bar z\, z^{1 - \lambda}`
    - Gradient for `lmbda`: :math:`-\bar z\, \frac{z \ln(z) - y z^{1 - \lambda}}{\lambda}`

    Differentiable to any order. Like ``scipy.special.inv_boxcox``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.inv_boxcox(asarray([0.0, 2.0]), 0.5)
    Tensor([1., 4.])
    """
    return xp.special.inv_boxcox(y, lmbda)


@kernel(
    lambda g, lmbda, out: g * (1 + out) ** (1 - lmbda),
    lambda g, xp, lmbda, out: (
        -g * (_boxcox_by_power(xp, xp.log1p(out), lmbda) * (1 + out) ** (1 - lmbda))
    ),
)
def inv_boxcox1p(xp: Any, y: ArrayLike, lmbda: ArrayLike, /) -> Any:
    r"""Return the inverse of `boxcox1p` in `x`.

    Parameters
    ----------
    y, lmbda : Tensor
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
    .. math:: z = (1 + \lambda y)^{1 / \lambda} - 1

    - Gradient for `y`: :math:`\bar z\, (1 + z)^{1 - \lambda}`
    - Gradient for `lmbda`:
      :math:`-\bar z\, \frac{(1 + z) \ln(1 + z) - y (1 + z)^{1 - \lambda}}{\lambda}`

    Differentiable to any order. Like ``scipy.special.inv_boxcox1p``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.inv_boxcox1p(asarray([0.0, 2.0]), 0.5)
    Tensor([0., 3.])
    """
    return xp.special.inv_boxcox1p(y, lmbda)


@kernel(lambda g, xp, x: g * (xp.special.hyp1f1(2.0, 3.0, x) / 2))
def exprel(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return (exp(x) - 1) / x, which is 1 at 0.

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
    .. math:: y = \frac{e^x - 1}{x}

    - Gradient for `x`: :math:`\frac{\bar y}{2}\, {}_1F_1(2; 3; x) = \bar y\, \frac{e^x - y}{x}`

    Differentiable to any order. Like ``scipy.special.exprel``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.exprel(asarray([0.0, 1.0]))
    Tensor([1.       , 1.7182819])
    """
    return xp.special.exprel(x)
