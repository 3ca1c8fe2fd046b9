"""Bessel functions: DLMF, chapter 10.

Derivatives are computed from the functions of neighbouring orders, which is exact at 0, too.
"""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import ArrayLike
from xgrad.ops.special.kernels import kernel, no_closed_form

__all__ = [
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "y0",
    "y1",
    "yn",
    "yv",
]


def _scaled_bessel(xp: Any, v: Any, z: Any, out: Any, slope: Any, sign: int) -> Any:
    """Return `slope`, except for large z, where it cancels.

    There, the derivative is computed from Hankel's expansions, DLMF 10.40.1 (sign -1) and 10.40.2.
    """
    size, bound = xp.abs(z), v * v + 30
    large = size > bound
    above, total, slopes = xp.where(large, size, bound), 1.0, 18.5
    for k in range(18, 0, -1):  # enough terms for float64 above the bound
        ratio = sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * above)
        total, slopes = 1 + ratio * total, k - 0.5 + ratio * slopes
    return xp.where(large, -slopes / (total * above) * xp.sign(z) * out, slope)


@kernel(
    no_closed_form,
    lambda g, xp, v, z: g * ((xp.special.iv(v - 1, z) + xp.special.iv(v + 1, z)) / 2),
)
def iv(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the first kind of order `v`.

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = I_v(z)

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`\frac{\bar y}{2} \left(I_{v - 1}(z) + I_{v + 1}(z)\right)`

    Differentiable to any order in `z`. Like ``scipy.special.iv``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.iv(2.0, asarray([0.0, 1.0]))
    Tensor([0.        , 0.13574767])
    """
    return xp.special.iv(v, z)


@kernel(
    no_closed_form,
    lambda g, xp, v, z, out: (
        g
        * _scaled_bessel(
            xp,
            v,
            z,
            out,
            (xp.special.ive(v - 1, z) + xp.special.ive(v + 1, z)) / 2 - xp.sign(z) * out,
            -1,
        )
    ),
)
def ive(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return iv(v, z) * exp(-abs(z)).

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = I_v(z)\, e^{-|z|}

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`\bar y \left(\frac{I_{v - 1}(z) + I_{v + 1}(z)}{2}\, e^{-|z|} -
      \operatorname{sign}(z)\, y\right)`

    Differentiable to any order in `z`. Like ``scipy.special.ive``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.ive(2.0, asarray([0.0, 1.0]))
    Tensor([0.        , 0.04993878])
    """
    return xp.special.ive(v, z)


@kernel(lambda g, xp, x: g * xp.special.i1(x))
def i0(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the first kind of order 0.

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
    .. math:: y = I_0(x)

    - Gradient for `x`: :math:`\bar y\, I_1(x)`

    Differentiable to any order. Like ``scipy.special.i0``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.i0(asarray([0.0, 1.0]))
    Tensor([1.       , 1.2660658])
    """
    return xp.special.i0(x)


@kernel(
    lambda g, xp, x, out: (
        g * _scaled_bessel(xp, 0, x, out, xp.special.i1e(x) - xp.sign(x) * out, -1)
    )
)
def i0e(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return i0(x) * exp(-abs(x)).

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
    .. math:: y = I_0(x)\, e^{-|x|}

    - Gradient for `x`: :math:`\bar y \left(I_1(x)\, e^{-|x|} - \operatorname{sign}(x)\, y\right)`

    Differentiable to any order. Like ``scipy.special.i0e``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.i0e(asarray([0.0, 1.0]))
    Tensor([1.       , 0.4657596])
    """
    return xp.special.i0e(x)


@kernel(lambda g, xp, x: g * ((xp.special.i0(x) + xp.special.iv(2, x)) / 2))
def i1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the first kind of order 1.

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
    .. math:: y = I_1(x)

    - Gradient for `x`: :math:`\frac{\bar y}{2} \left(I_0(x) + I_2(x)\right)`

    Differentiable to any order. Like ``scipy.special.i1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.i1(asarray([0.0, 1.0]))
    Tensor([0.       , 0.5651591])
    """
    return xp.special.i1(x)


@kernel(
    lambda g, xp, x, out: (
        g
        * _scaled_bessel(
            xp, 1, x, out, (xp.special.i0e(x) + xp.special.ive(2, x)) / 2 - xp.sign(x) * out, -1
        )
    )
)
def i1e(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return i1(x) * exp(-abs(x)).

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
    .. math:: y = I_1(x)\, e^{-|x|}

    - Gradient for `x`: :math:`\bar y \left(\frac{I_0(x) + I_2(x)}{2}\, e^{-|x|} -
      \operatorname{sign}(x)\, y\right)`

    Differentiable to any order. Like ``scipy.special.i1e``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.i1e(asarray([0.0, 1.0]))
    Tensor([0.        , 0.20791042])
    """
    return xp.special.i1e(x)


@kernel(
    no_closed_form,
    lambda g, xp, v, z: g * ((xp.special.jv(v - 1, z) - xp.special.jv(v + 1, z)) / 2),
)
def jv(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the first kind of order `v`.

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = J_v(z)

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`\frac{\bar y}{2} \left(J_{v - 1}(z) - J_{v + 1}(z)\right)`

    Differentiable to any order in `z`. Like ``scipy.special.jv``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.jv(2.0, asarray([0.0, 1.0]))
    Tensor([0.        , 0.11490349])
    """
    return xp.special.jv(v, z)


@kernel(lambda g, xp, x: -g * xp.special.j1(x))
def j0(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the first kind of order 0.

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
    .. math:: y = J_0(x)

    - Gradient for `x`: :math:`-\bar y\, J_1(x)`

    Differentiable to any order. Like ``scipy.special.j0``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.j0(asarray([0.0, 1.0]))
    Tensor([1.       , 0.7651977])
    """
    return xp.special.j0(x)


@kernel(lambda g, xp, x: g * ((xp.special.j0(x) - xp.special.jv(2, x)) / 2))
def j1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the first kind of order 1.

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
    .. math:: y = J_1(x)

    - Gradient for `x`: :math:`\frac{\bar y}{2} \left(J_0(x) - J_2(x)\right)`

    Differentiable to any order. Like ``scipy.special.j1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.j1(asarray([0.0, 1.0]))
    Tensor([0.        , 0.44005057])
    """
    return xp.special.j1(x)


@kernel(
    no_closed_form,
    lambda g, xp, v, z: g * ((xp.special.yv(v - 1, z) - xp.special.yv(v + 1, z)) / 2),
)
def yv(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the second kind of order `v`.

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = Y_v(z)

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`\frac{\bar y}{2} \left(Y_{v - 1}(z) - Y_{v + 1}(z)\right)`

    Differentiable to any order in `z`. Like ``scipy.special.yv``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.yv(2.0, asarray([1.0, 2.0]))
    Tensor([-1.6506826, -0.6174081])
    """
    return xp.special.yv(v, z)


@kernel(lambda g, xp, x: -g * xp.special.y1(x))
def y0(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the second kind of order 0.

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
    .. math:: y = Y_0(x)

    - Gradient for `x`: :math:`-\bar y\, Y_1(x)`

    Differentiable to any order. Like ``scipy.special.y0``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.y0(asarray([1.0, 2.0]))
    Tensor([0.08825696, 0.5103757 ])
    """
    return xp.special.y0(x)


@kernel(lambda g, xp, x: g * ((xp.special.y0(x) - xp.special.yv(2, x)) / 2))
def y1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the second kind of order 1.

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
    .. math:: y = Y_1(x)

    - Gradient for `x`: :math:`\frac{\bar y}{2} \left(Y_0(x) - Y_2(x)\right)`

    Differentiable to any order. Like ``scipy.special.y1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.y1(asarray([1.0, 2.0]))
    Tensor([-0.7812128 , -0.10703243])
    """
    return xp.special.y1(x)


@kernel(
    no_closed_form,
    lambda g, xp, v, z: -g * ((xp.special.kv(v - 1, z) + xp.special.kv(v + 1, z)) / 2),
)
def kv(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the second kind of order `v`.

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = K_v(z)

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`-\frac{\bar y}{2} \left(K_{v - 1}(z) + K_{v + 1}(z)\right)`

    Differentiable to any order in `z`. Like ``scipy.special.kv``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.kv(2.0, asarray([1.0, 2.0]))
    Tensor([1.624839  , 0.25375974])
    """
    return xp.special.kv(v, z)


@kernel(
    no_closed_form,
    lambda g, xp, v, z, out: (
        g
        * _scaled_bessel(
            xp, v, z, out, out - (xp.special.kve(v - 1, z) + xp.special.kve(v + 1, z)) / 2, 1
        )
    ),
)
def kve(xp: Any, v: ArrayLike, z: ArrayLike, /) -> Any:
    r"""Return kv(v, z) * exp(z).

    Parameters
    ----------
    v, z : Tensor
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
    .. math:: y = K_v(z)\, e^z

    - Gradient for `v`: none, since it has no closed form
    - Gradient for `z`: :math:`\bar y \left(y - \frac{K_{v - 1}(z) + K_{v + 1}(z)}{2}\, e^z\right)`

    Differentiable to any order in `z`. Like ``scipy.special.kve``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.kve(2.0, asarray([1.0, 2.0]))
    Tensor([4.41677  , 1.8750451])
    """
    return xp.special.kve(v, z)


@kernel(lambda g, xp, x: -g * xp.special.k1(x))
def k0(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the second kind of order 0.

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
    .. math:: y = K_0(x)

    - Gradient for `x`: :math:`-\bar y\, K_1(x)`

    Differentiable to any order. Like ``scipy.special.k0``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.k0(asarray([1.0, 2.0]))
    Tensor([0.42102444, 0.11389387])
    """
    return xp.special.k0(x)


@kernel(lambda g, xp, x, out: g * _scaled_bessel(xp, 0, x, out, out - xp.special.k1e(x), 1))
def k0e(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return k0(x) * exp(x).

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
    .. math:: y = K_0(x)\, e^x

    - Gradient for `x`: :math:`\bar y \left(y - K_1(x)\, e^x\right)`

    Differentiable to any order. Like ``scipy.special.k0e``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.k0e(asarray([1.0, 2.0]))
    Tensor([1.1444631 , 0.84156823])
    """
    return xp.special.k0e(x)


@kernel(lambda g, xp, x: -g * ((xp.special.k0(x) + xp.special.kv(2, x)) / 2))
def k1(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return the modified Bessel function of the second kind of order 1.

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
    .. math:: y = K_1(x)

    - Gradient for `x`: :math:`-\frac{\bar y}{2} \left(K_0(x) + K_2(x)\right)`

    Differentiable to any order. Like ``scipy.special.k1``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.k1(asarray([1.0, 2.0]))
    Tensor([0.60190725, 0.13986588])
    """
    return xp.special.k1(x)


@kernel(
    lambda g, xp, x, out: (
        g * _scaled_bessel(xp, 1, x, out, out - (xp.special.k0e(x) + xp.special.kve(2, x)) / 2, 1)
    )
)
def k1e(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return k1(x) * exp(x).

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
    .. math:: y = K_1(x)\, e^x

    - Gradient for `x`: :math:`\bar y \left(y - \frac{K_0(x) + K_2(x)}{2}\, e^x\right)`

    Differentiable to any order. Like ``scipy.special.k1e``; `xgrad.special` says which library
    computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.k1e(asarray([1.0, 2.0]))
    Tensor([1.6361535, 1.0334768])
    """
    return xp.special.k1e(x)


@kernel(None, lambda g, xp, n, x: g * ((xp.special.yv(n - 1, x) - xp.special.yv(n + 1, x)) / 2))
def yn(xp: Any, n: ArrayLike, x: ArrayLike, /) -> Any:
    r"""Return the Bessel function of the second kind of integer order `n`.

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
    .. math:: y = Y_n(x)

    - Gradient for `x`: :math:`\frac{\bar y}{2} \left(Y_{n - 1}(x) - Y_{n + 1}(x)\right)`

    Differentiable to any order in `x`. Like ``scipy.special.yn``; `xgrad.special` says which
    library computes it.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.yn(2, asarray([1.0, 2.0]))
    Tensor([-1.6506826, -0.6174081])
    """
    return xp.special.yn(n, x)
