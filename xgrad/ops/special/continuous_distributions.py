"""Distribution functions of continuous distributions."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.declare import as_arrays
from xgrad.ops.special.kernels import beta_density, gamma_density, kernel, no_closed_form

__all__ = [
    "chdtr",
    "chdtrc",
    "chdtri",
    "fdtr",
    "fdtrc",
    "fdtri",
    "gdtr",
    "gdtrc",
    "stdtr",
    "stdtrit",
]


def _t_density(xp: Any, df: Any, t: Any) -> Any:
    df, t = as_arrays(xp, df, t)
    return xp.exp(-(df + 1) / 2 * xp.log1p(t * t / df) - xp.special.betaln(df / 2, 0.5)) / df**0.5


def _f_density(xp: Any, dfn: Any, dfd: Any, x: Any) -> Any:
    total = dfn * x + dfd
    return beta_density(xp, dfn / 2, dfd / 2, dfn * x / total) * (dfn * dfd / (total * total))


@kernel(no_closed_form, lambda g, xp, v, x: g * (gamma_density(xp, v / 2, x / 2) / 2))
def chdtr(xp: Any, v: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the chi-squared distribution function with `v` degrees of freedom.

    Parameters
    ----------
    v, x : Tensor
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
    .. math:: y = \int_0^x f(t)\, dt, \quad
        f(t) = \frac{(t / 2)^{v / 2 - 1}\, e^{-t / 2}}{2\, \Gamma(v / 2)}

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, f(x)`

    Differentiable to any order in `x`. Like ``scipy.special.chdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.chdtr(2.0, asarray([1.0, 3.0]))
    Tensor([0.39346933, 0.77686983])
    """
    return xp.special.chdtr(v, x)


@kernel(no_closed_form, lambda g, xp, v, x: -g * (gamma_density(xp, v / 2, x / 2) / 2))
def chdtrc(xp: Any, v: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return 1 - chdtr(v, x), accurate where it is small.

    Parameters
    ----------
    v, x : Tensor
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
    .. math:: y = \int_x^\infty f(t)\, dt, \quad
        f(t) = \frac{(t / 2)^{v / 2 - 1}\, e^{-t / 2}}{2\, \Gamma(v / 2)}

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `x`: :math:`-\bar y\, f(x)`

    Differentiable to any order in `x`. Like ``scipy.special.chdtrc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.chdtrc(2.0, asarray([1.0, 3.0]))
    Tensor([0.60653067, 0.22313017])
    """
    return xp.special.chdtrc(v, x)


@kernel(no_closed_form, lambda g, xp, v, out: -2 * g / gamma_density(xp, v / 2, out / 2))
def chdtri(xp: Any, v: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return the inverse of `chdtrc` in `x`.

    Parameters
    ----------
    v, p : Tensor
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
    .. math:: \int_y^\infty f(t)\, dt = p, \quad
        f(t) = \frac{(t / 2)^{v / 2 - 1}\, e^{-t / 2}}{2\, \Gamma(v / 2)}

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `p`: :math:`-\bar y / f(y)`

    Differentiable to any order in `p`. Like ``scipy.special.chdtri``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.chdtri(2.0, asarray([0.2, 0.5]))
    Tensor([3.218876 , 1.3862944])
    """
    return xp.special.chdtri(v, p)


@kernel(
    lambda g, xp, a, b, x: g * (x * gamma_density(xp, b, a * x)),
    no_closed_form,
    lambda g, xp, a, b, x: g * (a * gamma_density(xp, b, a * x)),
)
def gdtr(xp: Any, a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the gamma distribution function with rate `a` and shape `b`.

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
        If a backward pass needs the gradient of `b`, which has no closed form.

    Notes
    -----
    .. math:: y = \int_0^{a x} f(t)\, dt, \quad f(t) = \frac{t^{b - 1}\, e^{-t}}{\Gamma(b)}

    - Gradient for `a`: :math:`\bar y\, x\, f(a x)`
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, a\, f(a x)`

    Differentiable to any order in `a` and `x`. Like ``scipy.special.gdtr``; `xgrad.special` says
    which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gdtr(2.0, 3.0, asarray([1.0, 2.0]))
    Tensor([0.32332358, 0.76189667])
    """
    return xp.special.gdtr(a, b, x)


@kernel(
    lambda g, xp, a, b, x: -g * (x * gamma_density(xp, b, a * x)),
    no_closed_form,
    lambda g, xp, a, b, x: -g * (a * gamma_density(xp, b, a * x)),
)
def gdtrc(xp: Any, a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return 1 - gdtr(a, b, x), accurate where it is small.

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
        If a backward pass needs the gradient of `b`, which has no closed form.

    Notes
    -----
    .. math:: y = \int_{a x}^\infty f(t)\, dt, \quad f(t) = \frac{t^{b - 1}\, e^{-t}}{\Gamma(b)}

    - Gradient for `a`: :math:`-\bar y\, x\, f(a x)`
    - Gradient for `b`: none, since it has no closed form
    - Gradient for `x`: :math:`-\bar y\, a\, f(a x)`

    Differentiable to any order in `a` and `x`. Like ``scipy.special.gdtrc``; `xgrad.special` says
    which library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.gdtrc(2.0, 3.0, asarray([1.0, 2.0]))
    Tensor([0.6766764, 0.2381033])
    """
    return xp.special.gdtrc(a, b, x)


@kernel(no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, x: g * _f_density(xp, dfn, dfd, x))
def fdtr(xp: Any, dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the F distribution function.

    Parameters
    ----------
    dfn, dfd, x : Tensor
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
        If a backward pass needs the gradient of `dfn` or `dfd`, which has no closed form.

    Notes
    -----
    .. math:: y = F(x) = I_u\left(\frac{d_n}{2}, \frac{d_d}{2}\right), \quad
        u = \frac{d_n x}{d_n x + d_d}

    - Gradient for `dfn`: none, since it has no closed form
    - Gradient for `dfd`: none, since it has no closed form
    - Gradient for `x`: :math:`\bar y\, f(x)`, by the density
      :math:`f(x) = \frac{u^{d_n / 2 - 1} (1 - u)^{d_d / 2 - 1}}{B(d_n / 2, d_d / 2)}\,
      \frac{d_n d_d}{(d_n x + d_d)^2}`

    Differentiable to any order in `x`. Like ``scipy.special.fdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.fdtr(2.0, 4.0, asarray([1.0, 2.0]))
    Tensor([0.5555556, 0.75     ])
    """
    return xp.special.fdtr(dfn, dfd, x)


@kernel(no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, x: -g * _f_density(xp, dfn, dfd, x))
def fdtrc(xp: Any, dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return 1 - fdtr(dfn, dfd, x), accurate where it is small.

    Parameters
    ----------
    dfn, dfd, x : Tensor
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
        If a backward pass needs the gradient of `dfn` or `dfd`, which has no closed form.

    Notes
    -----
    .. math:: y = 1 - F(x)

    - Gradient for `dfn`: none, since it has no closed form
    - Gradient for `dfd`: none, since it has no closed form
    - Gradient for `x`: :math:`-\bar y\, f(x)`, by the density :math:`f` of `fdtr`

    Differentiable to any order in `x`. Like ``scipy.special.fdtrc``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.fdtrc(2.0, 4.0, asarray([1.0, 2.0]))
    Tensor([0.44444442, 0.25      ])
    """
    return xp.special.fdtrc(dfn, dfd, x)


@kernel(
    no_closed_form, no_closed_form, lambda g, xp, dfn, dfd, out: g / _f_density(xp, dfn, dfd, out)
)
def fdtri(xp: Any, dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return the inverse of `fdtr` in `x`.

    Parameters
    ----------
    dfn, dfd, p : Tensor
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
        If a backward pass needs the gradient of `dfn` or `dfd`, which has no closed form.

    Notes
    -----
    .. math:: F(y) = p

    - Gradient for `dfn`: none, since it has no closed form
    - Gradient for `dfd`: none, since it has no closed form
    - Gradient for `p`: :math:`\bar y / f(y)`, by the density :math:`f` of `fdtr`

    Differentiable to any order in `p`. Like ``scipy.special.fdtri``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.fdtri(2.0, 4.0, asarray([0.2, 0.5]))
    Tensor([0.23606798, 0.8284272 ])
    """
    return xp.special.fdtri(dfn, dfd, p)


@kernel(no_closed_form, lambda g, xp, df, t: g * _t_density(xp, df, t))
def stdtr(xp: Any, df: ArrayLike, t: ArrayLike, /) -> Any:
    r"""Return Student's t distribution function.

    Parameters
    ----------
    df, t : Tensor
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
        If a backward pass needs the gradient of `df`, which has no closed form.

    Notes
    -----
    .. math:: y = \int_{-\infty}^t f(s)\, ds, \quad
        f(s) = \frac{(1 + s^2 / \nu)^{-(\nu + 1) / 2}}{\sqrt{\nu}\, B(\nu / 2, 1 / 2)}

    - Gradient for `df`: none, since it has no closed form
    - Gradient for `t`: :math:`\bar y\, f(t)`; :math:`\nu` is `df`

    Differentiable to any order in `t`. Like ``scipy.special.stdtr``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.stdtr(3.0, asarray([0.0, 1.0]))
    Tensor([0.5      , 0.8044988])
    """
    return xp.special.stdtr(df, t)


@kernel(no_closed_form, lambda g, xp, df, out: g / _t_density(xp, df, out))
def stdtrit(xp: Any, df: ArrayLike, p: ArrayLike, /) -> Any:
    r"""Return the inverse of `stdtr` in `t`.

    Parameters
    ----------
    df, p : Tensor
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
        If a backward pass needs the gradient of `df`, which has no closed form.

    Notes
    -----
    .. math:: F(y) = p

    - Gradient for `df`: none, since it has no closed form
    - Gradient for `p`: :math:`\bar y / f(y)`, by the density :math:`f` of `stdtr`

    Differentiable to any order in `p`. Like ``scipy.special.stdtrit``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.stdtrit(3.0, asarray([0.75, 0.9]))
    Tensor([0.7648926, 1.6377447])
    """
    return xp.special.stdtrit(df, p)
