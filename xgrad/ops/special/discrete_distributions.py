"""Distribution functions of discrete distributions, given counts."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import SCALARS
from xgrad.ops.special.kernels import beta_density, gamma_density, kernel

__all__ = ["bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri"]


def as_count(xp: Any, n: Any, *others: Any) -> Any:
    """Return a count of trials as integers, which kernels expect.

    An int beside float32 arrays would become float32.
    """
    if type(n) is not int:
        return n
    like = next(x for x in others if type(x) not in SCALARS)
    return xp.full_like(like, n, dtype=xp.int64)


@kernel(None, None, lambda g, xp, k, n, p: -g * beta_density(xp, k + 1, n - k, p))
def bdtr(xp: Any, k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return the binomial distribution function: at most `k` successes in `n` trials.

    Parameters
    ----------
    k, n, p : Tensor
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
    .. math:: y = \sum_{j = 0}^k \binom{n}{j} p^j (1 - p)^{n - j}

    - Gradient for `p`: :math:`-\bar y\, f(p)`, with
      :math:`f(p) = \frac{p^k (1 - p)^{n - k - 1}}{B(k + 1, n - k)}`

    Differentiable to any order in `p`. Like ``scipy.special.bdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.bdtr(2, 5, asarray([0.2, 0.5]))
    Tensor([0.94208, 0.5    ])
    """
    return xp.special.bdtr(k, as_count(xp, n, k, p), p)


@kernel(None, None, lambda g, xp, k, n, p: g * beta_density(xp, k + 1, n - k, p))
def bdtrc(xp: Any, k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return 1 - bdtr(k, n, p), accurate where it is small.

    Parameters
    ----------
    k, n, p : Tensor
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
    .. math:: y = \sum_{j = k + 1}^n \binom{n}{j} p^j (1 - p)^{n - j}

    - Gradient for `p`: :math:`\bar y\, f(p)`, with
      :math:`f(p) = \frac{p^k (1 - p)^{n - k - 1}}{B(k + 1, n - k)}`

    Differentiable to any order in `p`. Like ``scipy.special.bdtrc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.bdtrc(2, 5, asarray([0.2, 0.5]))
    Tensor([0.05792, 0.5    ])
    """
    return xp.special.bdtrc(k, as_count(xp, n, k, p), p)


@kernel(None, None, lambda g, xp, k, n, out: -g / beta_density(xp, k + 1, n - k, out))
def bdtri(xp: Any, k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `bdtr` in `p`.

    Parameters
    ----------
    k, n, y : Tensor
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
    .. math:: \operatorname{bdtr}(k, n, z) = y

    - Gradient for `y`: :math:`-\bar z / f(z)`, with
      :math:`f(z) = \frac{z^k (1 - z)^{n - k - 1}}{B(k + 1, n - k)}`

    Differentiable to any order in `y`. Like ``scipy.special.bdtri``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.bdtri(2, 5, asarray([0.2, 0.5]))
    Tensor([0.6734021, 0.5      ])
    """
    return xp.special.bdtri(k, as_count(xp, n, k, y), y)


@kernel(None, None, lambda g, xp, k, n, p: g * beta_density(xp, n, k + 1, p))
def nbdtr(xp: Any, k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return the negative binomial distribution function: at most `k` failures before success `n`.

    Parameters
    ----------
    k, n, p : Tensor
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
    .. math:: y = \sum_{j = 0}^k \binom{n + j - 1}{j} p^n (1 - p)^j

    - Gradient for `p`: :math:`\bar y\, f(p)`, with
      :math:`f(p) = \frac{p^{n - 1} (1 - p)^k}{B(n, k + 1)}`

    Differentiable to any order in `p`. Like ``scipy.special.nbdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.nbdtr(2, 5, asarray([0.2, 0.5]))
    Tensor([0.004672 , 0.2265625])
    """
    return xp.special.nbdtr(k, n, p)


@kernel(None, None, lambda g, xp, k, n, p: -g * beta_density(xp, n, k + 1, p))
def nbdtrc(xp: Any, k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return 1 - nbdtr(k, n, p), accurate where it is small.

    Parameters
    ----------
    k, n, p : Tensor
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
    .. math:: y = \sum_{j = k + 1}^\infty \binom{n + j - 1}{j} p^n (1 - p)^j

    - Gradient for `p`: :math:`-\bar y\, f(p)`, with
      :math:`f(p) = \frac{p^{n - 1} (1 - p)^k}{B(n, k + 1)}`

    Differentiable to any order in `p`. Like ``scipy.special.nbdtrc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.nbdtrc(2, 5, asarray([0.2, 0.5]))
    Tensor([0.995328 , 0.7734375])
    """
    return xp.special.nbdtrc(k, n, p)


@kernel(None, None, lambda g, xp, k, n, out: g / beta_density(xp, n, k + 1, out))
def nbdtri(xp: Any, k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `nbdtr` in `p`.

    Parameters
    ----------
    k, n, y : Tensor
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
    .. math:: \operatorname{nbdtr}(k, n, z) = y

    - Gradient for `y`: :math:`\bar z / f(z)`, with
      :math:`f(z) = \frac{z^{n - 1} (1 - z)^k}{B(n, k + 1)}`

    Differentiable to any order in `y`. Like ``scipy.special.nbdtri``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.nbdtri(2, 5, asarray([0.2, 0.5]))
    Tensor([0.48324224, 0.6358839 ])
    """
    return xp.special.nbdtri(k, n, y)


@kernel(None, lambda g, xp, k, m: -g * gamma_density(xp, k + 1, m))
def pdtr(xp: Any, k: ArrayLike, m: ArrayLike, /) -> Any:
    r"""Return the Poisson distribution function with mean `m`: at most `k` events.

    Parameters
    ----------
    k, m : Tensor
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
    .. math:: y = \sum_{j = 0}^k \frac{m^j}{j!}\, e^{-m}

    - Gradient for `m`: :math:`-\bar y\, \frac{m^k e^{-m}}{k!}`

    Differentiable to any order in `m`. Like ``scipy.special.pdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pdtr(2, asarray([1.0, 3.0]))
    Tensor([0.9196986, 0.4231901])
    """
    return xp.special.pdtr(k, m)


@kernel(None, lambda g, xp, k, m: g * gamma_density(xp, k + 1, m))
def pdtrc(xp: Any, k: ArrayLike, m: ArrayLike, /) -> Any:
    r"""Return 1 - pdtr(k, m), accurate where it is small.

    Parameters
    ----------
    k, m : Tensor
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
    .. math:: y = \sum_{j = k + 1}^\infty \frac{m^j}{j!}\, e^{-m}

    - Gradient for `m`: :math:`\bar y\, \frac{m^k e^{-m}}{k!}`

    Differentiable to any order in `m`. Like ``scipy.special.pdtrc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pdtrc(2, asarray([1.0, 3.0]))
    Tensor([0.0803014 , 0.57680994])
    """
    return xp.special.pdtrc(k, m)


@kernel(None, lambda g, xp, k, out: -g / gamma_density(xp, k + 1, out))
def pdtri(xp: Any, k: ArrayLike, y: ArrayLike, /) -> Any:
    r"""Return the inverse of `pdtr` in `m`.

    Parameters
    ----------
    k, y : Tensor
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
    .. math:: \operatorname{pdtr}(k, z) = y

    - Gradient for `y`: :math:`-\bar z\, \frac{k!}{z^k e^{-z}}`

    Differentiable to any order in `y`. Like ``scipy.special.pdtri``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.pdtri(2, asarray([0.2, 0.5]))
    Tensor([4.27903  , 2.6740603])
    """
    return xp.special.pdtri(k, y)
