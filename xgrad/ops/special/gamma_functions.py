"""The gamma and beta functions, complete and incomplete, and zeta: DLMF, chapters 5, 8 and 25."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import FLOATING, SCALARS
from xgrad.core.tensor import Tensor
from xgrad.ops import statistical
from xgrad.ops.declare import as_arrays, call_op, derivative
from xgrad.ops.special.gamma_quantiles import gamma_quantile_slope
from xgrad.ops.special.kernels import beta_density, gamma_density, kernel, no_closed_form
from xgrad.support.hints import shown

__all__ = [
    "beta",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "binom",
    "digamma",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "loggamma",
    "multigammaln",
    "poch",
    "polygamma",
    "psi",
    "rgamma",
    "zeta",
]


@kernel(lambda g, xp, z, out: g * (out * xp.special.psi(z)))
def gamma(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return the gamma function, which is (z - 1)! where `z` is an integer.

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
    .. math:: y = \Gamma(z) = \int_0^\infty t^{z - 1}\, e^{-t}\, dt

    - Gradient for `z`: :math:`\bar y\, y\, \psi(z)`

    Differentiable to any order. Like ``scipy.special.gamma``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gamma(asarray([0.5, 5.0]))
    Tensor([ 1.7724539, 24.       ])
    """
    return xp.special.gamma(z)


@kernel(lambda g, xp, x: g * xp.special.psi(x))
def gammaln(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the logarithm of the gamma function's absolute value.

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
    .. math:: y = \ln|\Gamma(x)|

    - Gradient for `x`: :math:`\bar y\, \psi(x)`

    Differentiable to any order. Like ``scipy.special.gammaln``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammaln(asarray([1.0, 1e4]))
    Tensor([    0.  , 82099.72])
    """
    return xp.special.gammaln(x)


@kernel(lambda g, xp, z: g * xp.special.psi(z))
def loggamma(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return the logarithm of the gamma function, which is NaN for negative numbers.

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
    .. math:: y = \ln(\Gamma(z))

    - Gradient for `z`: :math:`\bar y\, \psi(z)`

    Differentiable to any order. Like ``scipy.special.loggamma``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.loggamma(asarray([1.0, 1e4]))
    Tensor([    0.  , 82099.72])
    """
    return xp.special.loggamma(z)


@kernel(lambda g, xp: xp.zeros_like(g))
def gammasgn(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the sign of the gamma function; its derivative is 0.

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
    .. math:: y = \operatorname{sign}(\Gamma(x))

    - Gradient for `x`: :math:`0`

    Differentiable to any order. Like ``scipy.special.gammasgn``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammasgn(asarray([0.5, -0.5]))
    Tensor([ 1., -1.])
    """
    return xp.special.gammasgn(x)


@kernel(lambda g, xp, z: g * xp.special.polygamma(1, z))
def psi(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return the digamma function, the derivative of `gammaln`.

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
    .. math:: y = \psi(z) = \frac{\Gamma'(z)}{\Gamma(z)}

    - Gradient for `z`: :math:`\bar y\, \psi^{(1)}(z)`

    Differentiable to any order. Like ``scipy.special.psi``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.psi(asarray([1.0, 2.0]))
    Tensor([-0.5772157 ,  0.42278433])
    """
    return xp.special.psi(z)


digamma = psi


@kernel(
    lambda g, xp, a, b, out: g * (out * (xp.special.psi(a) - xp.special.psi(a + b))),
    lambda g, xp, a, b, out: g * (out * (xp.special.psi(b) - xp.special.psi(a + b))),
)
def beta(xp: Any, a: ArrayLike, b: ArrayLike, /) -> Any:
    r"""Return the beta function, gamma(a) * gamma(b) / gamma(a + b).

    Parameters
    ----------
    a, b : Tensor
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
    .. math:: y = B(a, b) = \frac{\Gamma(a)\, \Gamma(b)}{\Gamma(a + b)}

    - Gradient for `a`: :math:`\bar y\, y\, (\psi(a) - \psi(a + b))`
    - Gradient for `b`: :math:`\bar y\, y\, (\psi(b) - \psi(a + b))`

    Differentiable to any order. Like ``scipy.special.beta``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.beta(asarray([1.0, 2.0]), 3.0)
    Tensor([0.33333334, 0.08333334])
    """
    return xp.special.beta(a, b)


@kernel(
    lambda g, xp, a, b: g * (xp.special.psi(a) - xp.special.psi(a + b)),
    lambda g, xp, a, b: g * (xp.special.psi(b) - xp.special.psi(a + b)),
)
def betaln(xp: Any, a: ArrayLike, b: ArrayLike, /) -> Any:
    r"""Return the logarithm of the beta function's absolute value.

    Parameters
    ----------
    a, b : Tensor
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
    .. math:: y = \ln|B(a, b)|

    - Gradient for `a`: :math:`\bar y\, (\psi(a) - \psi(a + b))`
    - Gradient for `b`: :math:`\bar y\, (\psi(b) - \psi(a + b))`

    Differentiable to any order. Like ``scipy.special.betaln``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.betaln(asarray([1.0, 2.0]), 3.0)
    Tensor([-1.0986123, -2.4849067])
    """
    return xp.special.betaln(a, b)


def _shape_slope(xp: Any, a: Any, x: Any) -> Any:
    """Return minus the derivative of `gammainc` by its shape `a`."""
    a, x = as_arrays(xp, a, x)
    inside = xp.where((x == 0) | (x == xp.inf), 1.0, x)  # the slope at both ends is 0
    return gamma_density(xp, a, inside) * call_op(gamma_quantile_slope, xp, a, x)


@kernel(
    lambda g, xp, a, x: -g * _shape_slope(xp, a, x),
    lambda g, xp, a, x: g * gamma_density(xp, a, x),
)
def gammainc(xp: Any, a: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the gamma distribution function with shape `a`.

    Parameters
    ----------
    a, x : Tensor
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
    NotImplementedError
        If a backward pass needs the second derivative by `a`, which has no closed form.

    Notes
    -----
    .. math:: y = P(a, x) = \int_0^x f(t)\, dt, \quad
        f(t) = \frac{t^{a - 1}\, e^{-t}}{\Gamma(a)}

    - Gradient for `a`: :math:`\bar y\, \frac{\partial P}{\partial a}(a, x)`, by a series or
      quadrature
    - Gradient for `x`: :math:`\bar y\, f(x)`

    Differentiable to any order in `x`, and once in `a`. Like ``scipy.special.gammainc``;
    `xgrad.special` says which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammainc(2.0, asarray([0.0, 1.0]))
    Tensor([0.        , 0.26424113])
    """
    return xp.special.gammainc(a, x)


@kernel(
    lambda g, xp, a, x: g * _shape_slope(xp, a, x),
    lambda g, xp, a, x: -g * gamma_density(xp, a, x),
)
def gammaincc(xp: Any, a: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return 1 - gammainc(a, x), accurate where it is small.

    Parameters
    ----------
    a, x : Tensor
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
    NotImplementedError
        If a backward pass needs the second derivative by `a`, which has no closed form.

    Notes
    -----
    .. math:: y = Q(a, x) = \int_x^\infty f(t)\, dt, \quad
        f(t) = \frac{t^{a - 1}\, e^{-t}}{\Gamma(a)}

    - Gradient for `a`: :math:`\bar y\, \frac{\partial Q}{\partial a}(a, x)`, by a series or
      quadrature
    - Gradient for `x`: :math:`-\bar y\, f(x)`

    Differentiable to any order in `x`, and once in `a`. Like ``scipy.special.gammaincc``;
    `xgrad.special` says which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammaincc(2.0, asarray([0.0, 1.0]))
    Tensor([1.       , 0.7357589])
    """
    return xp.special.gammaincc(a, x)


@kernel(
    lambda g, xp, a, out: g * call_op(gamma_quantile_slope, xp, a, out),
    lambda g, xp, a, out: g / gamma_density(xp, a, out),
)
def gammaincinv(xp: Any, a: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `gammainc` in `x`.

    Parameters
    ----------
    a, y : Tensor
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
    NotImplementedError
        If a backward pass needs the second derivative by `a`, which has no closed form.

    Notes
    -----
    .. math:: P(a, z) = y, \quad f(z) = \frac{z^{a - 1}\, e^{-z}}{\Gamma(a)}

    - Gradient for `a`: :math:`-\frac{\bar z}{f(z)}\, \frac{\partial P}{\partial a}(a, z)`
    - Gradient for `y`: :math:`\bar z / f(z)`

    Differentiable to any order in `y`, and once in `a`. Like ``scipy.special.gammaincinv``;
    `xgrad.special` says which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammaincinv(2.0, asarray([0.0, 0.5]))
    Tensor([0.      , 1.678347])
    """
    return xp.special.gammaincinv(a, y)


@kernel(
    lambda g, xp, a, out: g * call_op(gamma_quantile_slope, xp, a, out),
    lambda g, xp, a, out: -g / gamma_density(xp, a, out),
)
def gammainccinv(xp: Any, a: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `gammaincc` in `x`.

    Parameters
    ----------
    a, y : Tensor
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
    NotImplementedError
        If a backward pass needs the second derivative by `a`, which has no closed form.

    Notes
    -----
    .. math:: Q(a, z) = y, \quad f(z) = \frac{z^{a - 1}\, e^{-z}}{\Gamma(a)}

    - Gradient for `a`: :math:`\frac{\bar z}{f(z)}\, \frac{\partial Q}{\partial a}(a, z)`
    - Gradient for `y`: :math:`-\bar z / f(z)`

    Differentiable to any order in `y`, and once in `a`. Like ``scipy.special.gammainccinv``;
    `xgrad.special` says which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gammainccinv(2.0, asarray([1.0, 0.5]))
    Tensor([0.      , 1.678347])
    """
    return xp.special.gammainccinv(a, y)


@kernel(no_closed_form, no_closed_form, lambda g, xp, a, b, x: g * beta_density(xp, a, b, x))
def betainc(xp: Any, a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the beta distribution function.

    Parameters
    ----------
    a, b, x : Tensor
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
    NotImplementedError
        If a backward pass needs the gradient of `a` or `b`, which has no closed form.

    Notes
    -----
    .. math:: y = I_x(a, b) = \int_0^x f(t)\, dt, \quad
        f(t) = \frac{t^{a - 1} (1 - t)^{b - 1}}{B(a, b)}

    - Gradient for `a`: none, since it has no closed form
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, f(x)`

    Differentiable to any order in `x`. Like ``scipy.special.betainc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.betainc(2.0, 3.0, asarray([0.0, 0.5]))
    Tensor([0.    , 0.6875])
    """
    return xp.special.betainc(a, b, x)


@kernel(no_closed_form, no_closed_form, lambda g, xp, a, b, x: -g * beta_density(xp, a, b, x))
def betaincc(xp: Any, a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return 1 - betainc(a, b, x), accurate where it is small.

    Parameters
    ----------
    a, b, x : Tensor
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
    NotImplementedError
        If a backward pass needs the gradient of `a` or `b`, which has no closed form.

    Notes
    -----
    .. math:: y = 1 - I_x(a, b), \quad f(t) = \frac{t^{a - 1} (1 - t)^{b - 1}}{B(a, b)}

    - Gradient for `a`: none, since it has no closed form
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `x`: :math:`-\bar y\, f(x)`

    Differentiable to any order in `x`. Like ``scipy.special.betaincc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.betaincc(2.0, 3.0, asarray([0.0, 0.5]))
    Tensor([1.    , 0.3125])
    """
    return xp.special.betaincc(a, b, x)


@kernel(no_closed_form, no_closed_form, lambda g, xp, a, b, out: g / beta_density(xp, a, b, out))
def betaincinv(xp: Any, a: ArrayLike, b: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `betainc` in `x`.

    Parameters
    ----------
    a, b, y : Tensor
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
    NotImplementedError
        If a backward pass needs the gradient of `a` or `b`, which has no closed form.

    Notes
    -----
    .. math:: I_z(a, b) = y, \quad f(z) = \frac{z^{a - 1} (1 - z)^{b - 1}}{B(a, b)}

    - Gradient for `a`: none, since it has no closed form
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `y`: :math:`\bar z / f(z)`

    Differentiable to any order in `y`. Like ``scipy.special.betaincinv``; `xgrad.special` says
    which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.betaincinv(2.0, 3.0, asarray([0.0, 0.6875]))
    Tensor([0. , 0.5])
    """
    return xp.special.betaincinv(a, b, y)


@kernel(no_closed_form, lambda g, xp, x, q: -g * (x * xp.special.zeta(x + 1, q)))
def zeta(xp: Any, x: ArrayLike, q: ArrayLike, /) -> Any:
    r"""Return Hurwitz' zeta function, the sum of (q + k)**-x over the integers k from 0 on.

    Parameters
    ----------
    x, q : Tensor
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
    NotImplementedError
        If a backward pass needs the gradient of `x`, which has no closed form.

    Notes
    -----
    .. math:: y = \zeta(x, q) = \sum_{k = 0}^\infty \frac{1}{(q + k)^x}

    - Gradient for `x`: none, since it has no closed form
    - Gradient for `q`: :math:`-\bar y\, x\, \zeta(x + 1, q)`

    Differentiable to any order in `q`. Like ``scipy.special.zeta``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.zeta(2.0, asarray([1.0, 2.0]))
    Tensor([1.644934  , 0.64493406])
    """
    return xp.special.zeta(x, q)


@derivative(
    None,
    lambda g, xp, n, x: g * xp.special.polygamma(n + 1, x),
    lowest=FLOATING,
    highest=FLOATING,
    broadcasts=True,
    scipy_promotion=True,
)
def polygamma(xp: Any, n: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the derivative of `psi` of order `n`.

    Parameters
    ----------
    n : int or Tensor
        The orders: integers from 0 on, of a shape that broadcasts with `x`. They get no gradient.
    x : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to; float32 stays float32.

    Raises
    ------
    TypeError
        If the dtype of `n` is not integer.
    ValueError
        If `n` is a negative int; negative elements of a tensor give NaN.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = \psi^{(n)}(x)

    - Gradient for `x`: :math:`\bar y\, \psi^{(n + 1)}(x)`

    Differentiable to any order in `x`. Like ``scipy.special.polygamma``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.polygamma(1, asarray([1.0, 2.0]))
    Tensor([1.644934  , 0.64493406])
    """
    if type(n) in SCALARS:
        if type(n) is not int:
            raise TypeError(f"expected an int for n, got {shown(n)}")
        if n < 0:
            raise ValueError(f"expected n from 0 on, got {n}")
    elif not xp.isdtype(n.dtype, "integral"):
        raise TypeError(f"expected n of integers, got {n.dtype}: use .astype(int64)")
    return xp.special.polygamma(n, x)


@kernel(lambda g, xp, z, out: -g * (out * xp.special.psi(z)))
def rgamma(xp: Any, z: ArrayLike, /) -> Any:
    r"""Return 1 / gamma(z), which is 0 at the poles of `gamma`, where its derivative is NaN.

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
    .. math:: y = \frac{1}{\Gamma(z)}

    - Gradient for `z`: :math:`-\bar y\, y\, \psi(z)`

    Differentiable to any order. Like ``scipy.special.rgamma``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.rgamma(asarray([0.0, 5.0]))
    Tensor([0.        , 0.04166667])
    """
    return xp.special.rgamma(z)


@kernel(
    lambda g, xp, x, y, out: g * (out * (xp.special.psi(x + 1) - xp.special.psi(x - y + 1))),
    lambda g, xp, x, y, out: g * (out * (xp.special.psi(x - y + 1) - xp.special.psi(y + 1))),
)
def binom(xp: Any, x: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the binomial coefficient, also for real numbers.

    Parameters
    ----------
    x, y : Tensor
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
    .. math:: z = \binom{x}{y} = \frac{\Gamma(x + 1)}{\Gamma(y + 1)\, \Gamma(x - y + 1)}

    - Gradient for `x`: :math:`\bar z\, z\, (\psi(x + 1) - \psi(x - y + 1))`
    - Gradient for `y`: :math:`\bar z\, z\, (\psi(x - y + 1) - \psi(y + 1))`

    Differentiable to any order. Like ``scipy.special.binom``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.binom(asarray([5.0, 4.0]), 2.0)
    Tensor([10.,  6.])
    """
    return xp.special.binom(x, y)


@kernel(
    lambda g, xp, z, m, out: g * (out * (xp.special.psi(z + m) - xp.special.psi(z))),
    lambda g, xp, z, m, out: g * (out * xp.special.psi(z + m)),
)
def poch(xp: Any, z: ArrayLike, m: ArrayLike, /) -> Any:
    r"""Return Pochhammer's symbol, gamma(z + m) / gamma(z).

    Parameters
    ----------
    z, m : Tensor
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
    .. math:: y = (z)_m = \frac{\Gamma(z + m)}{\Gamma(z)}

    - Gradient for `z`: :math:`\bar y\, y\, (\psi(z + m) - \psi(z))`
    - Gradient for `m`: :math:`\bar y\, y\, \psi(z + m)`

    Differentiable to any order. Like ``scipy.special.poch``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.poch(asarray([2.0, 3.0]), 2.0)
    Tensor([ 6., 12.])
    """
    return xp.special.poch(z, m)


def multigammaln(a: ArrayLike, d: int, /) -> Tensor:
    r"""Return the logarithm of the multivariate gamma function of dimension `d`.

    Parameters
    ----------
    a : Tensor
        Real numbers above ``(d - 1) / 2``; integers count as float32. The bound is not checked on
        ``cuda``.
    d : int
        The dimension, from 1 on.

    Returns
    -------
    Tensor
        Same shape as `a`; float32 stays float32.

    Raises
    ------
    ValueError
        If `d` is not a positive int, or an element of `a` is too small.

    Notes
    -----
    .. math:: y = \frac{d (d - 1)}{4} \ln(\pi) + \sum_{j = 0}^{d - 1} \ln(\Gamma(a - j / 2))

    - Gradient for `a`: :math:`\bar y\, \sum_{j = 0}^{d - 1} \psi(a - j / 2)`

    Differentiable to any order. Like ``scipy.special.multigammaln``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.multigammaln(asarray([2.0, 4.0]), 3)
    Tensor([1.5963125, 5.402975 ])
    """
    a = as_tensor("multigammaln", "a", a)
    if not isinstance(d, int) or d < 1:
        raise ValueError(f"multigammaln: expected a positive int for d, got {shown(d)}")
    backend = a.device.backend
    if not backend.asynchronous and not check_true(
        a.device, statistical.all(~(a.detach() <= (d - 1) / 2))._data
    ):
        raise ValueError(
            f"multigammaln: expected every a above (d - 1) / 2 = {(d - 1) / 2}, got one that is not"
        )
    terms = [gammaln(a - j / 2) for j in range(d)]
    return sum(terms[1:], terms[0]) + d * (d - 1) / 4 * math.log(math.pi)
