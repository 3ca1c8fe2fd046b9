"""Hypergeometric functions, elliptic integrals and Legendre functions.

DLMF, chapters 13 to 15 and 19.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import kernel, no_closed_form

__all__ = ["ellipk", "ellipkm1", "hyp1f1", "hyp2f1", "lpmv"]


def _lpmv_rule(g: Any, xp: Any, m: Any, v: Any, x: Any, out: Any) -> Any:
    m, x = as_arrays(xp, m, x)
    return g * (
        (v * x * out - (v + xp.astype(m, x.dtype)) * xp.special.lpmv(m, v - 1, x)) / (x * x - 1)
    )


@kernel(
    no_closed_form,
    no_closed_form,
    lambda g, xp, a, b, x: g * (a / b * xp.special.hyp1f1(a + 1, b + 1, x)),
)
def hyp1f1(xp: Any, a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return Kummer's confluent hypergeometric function.

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
    .. math:: y = {}_1F_1(a; b; x) = \sum_{k = 0}^\infty \frac{(a)_k}{(b)_k}\, \frac{x^k}{k!}

    - Gradient for `a`: none, since it has no closed form
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, \frac{a}{b}\, {}_1F_1(a + 1; b + 1; x)`

    Differentiable to any order in `x`. Like ``scipy.special.hyp1f1``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.hyp1f1(1.0, 2.0, asarray([0.0, 1.0]))
    Tensor([1.       , 1.7182819])
    """
    return xp.special.hyp1f1(a, b, x)


@kernel(
    no_closed_form,
    no_closed_form,
    no_closed_form,
    lambda g, xp, a, b, c, z: g * (a * b / c * xp.special.hyp2f1(a + 1, b + 1, c + 1, z)),
)
def hyp2f1(xp: Any, a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return Gauss' hypergeometric function.

    Parameters
    ----------
    a, b, c, z : Tensor
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
        If a backward pass needs the gradient of `a`, `b` or `c`, which has no closed form.

    Notes
    -----
    .. math:: y = {}_2F_1(a, b; c; z) =
        \sum_{k = 0}^\infty \frac{(a)_k (b)_k}{(c)_k}\, \frac{z^k}{k!}

    - Gradient for `a`: none, since it has no closed form
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `c`: none, since it has no closed form
    - Gradient for `z`: :math:`\bar y\, \frac{a b}{c}\, {}_2F_1(a + 1, b + 1; c + 1; z)`

    Differentiable to any order in `z`. Like ``scipy.special.hyp2f1``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.hyp2f1(1.0, 1.0, 2.0, asarray([0.0, 0.5]))
    Tensor([1.       , 1.3862944])
    """
    return xp.special.hyp2f1(a, b, c, z)


@kernel(lambda g, xp, m: g * (math.pi / 8 * xp.special.hyp2f1(1.5, 1.5, 2.0, m)))
def ellipk(xp: Any, m: ArrayLike, /) -> Any:
    r"""Return the complete elliptic integral of the first kind with parameter `m`.

    `m` is the square of the modulus.

    Parameters
    ----------
    m : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `m`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = K(m) = \int_0^{\pi / 2} \frac{dt}{\sqrt{1 - m \sin^2(t)}}

    - Gradient for `m`: :math:`\bar y\, \frac{\pi}{8}\, {}_2F_1(3/2, 3/2; 2; m)`

    Differentiable to any order. Like ``scipy.special.ellipk``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ellipk(asarray([0.0, 0.5]))
    Tensor([1.5707964, 1.8540747])
    """
    return xp.special.ellipk(m)


@kernel(lambda g, xp, p: -g * (math.pi / 8 * xp.special.hyp2f1(1.5, 1.5, 2.0, 1 - p)))
def ellipkm1(xp: Any, p: ArrayLike, /) -> Any:
    r"""Return ellipk(1 - p), accurate where `p` is small.

    Parameters
    ----------
    p : Tensor
        Real numbers, of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Same shape as `p`; float32 stays float32.

    Raises
    ------
    TypeError
        If an input is complex.
    ImportError
        If the kernel is SciPy's and SciPy is not installed.

    Notes
    -----
    .. math:: y = K(1 - p)

    - Gradient for `p`: :math:`-\bar y\, \frac{\pi}{8}\, {}_2F_1(3/2, 3/2; 2; 1 - p)`

    Differentiable to any order. Like ``scipy.special.ellipkm1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ellipkm1(asarray([1.0, 0.5]))
    Tensor([1.5707964, 1.8540747])
    """
    return xp.special.ellipkm1(p)


@kernel(None, no_closed_form, _lpmv_rule)
def lpmv(xp: Any, m: ArrayLike, v: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the associated Legendre function of order `m` and degree `v` for abs(x) <= 1.

    Parameters
    ----------
    m, v, x : Tensor
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
        If a backward pass needs the gradient of `v`, which has no closed form.

    Notes
    -----
    .. math:: y = P_v^m(x)

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, \frac{v x y - (v + m)\, P_{v - 1}^m(x)}{x^2 - 1}`

    Differentiable to any order in `x`. Like ``scipy.special.lpmv``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.lpmv(1, 2.0, asarray([0.0, 0.5]))
    Tensor([ 0.      , -1.299038])
    """
    return xp.special.lpmv(m, v, x)
