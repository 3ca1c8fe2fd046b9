"""`softmax`, `log_softmax` and `logsumexp` with SciPy's signatures and defaults."""

from __future__ import annotations

import math

import numpy as np

from xgrad import ops
from xgrad.backend import DeviceError
from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import SCALARS, get_default_dtype
from xgrad.core.tensor import Tensor
from xgrad.ops import softmaxes, statistical
from xgrad.ops.precision import upcast
from xgrad.support.hints import explained

Axis = int | tuple[int, ...] | None


@explained
def softmax(x: Tensor, axis: Axis = None) -> Tensor:
    r"""Return exponentials, scaled to a sum of 1 along axes, without overflow.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty along the axes; integers count as float32.
    axis : int or tuple of int, optional
        The axes along which the result sums to 1; by default all.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Notes
    -----
    .. math:: y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    - Gradient for `x`: :math:`y_i \left(\bar y_i - \sum_j \bar y_j y_j\right)`

    Differentiable to any order. Like ``scipy.special.softmax``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.softmax(asarray([[0.0, 0.0], [1e4, 1e4]]), axis=1)
    Tensor([[0.5, 0.5],
            [0.5, 0.5]])
    """
    return softmaxes.softmax(x, axis=axis)


@explained
def log_softmax(x: Tensor, axis: Axis = None) -> Tensor:
    r"""Return the logarithm of `softmax`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Real numbers, not empty along the axes; integers count as float32.
    axis : int or tuple of int, optional
        The axes along which probabilities sum to 1; by default all.

    Returns
    -------
    Tensor
        Same shape as `x`; float32 stays float32.

    Notes
    -----
    .. math:: y_i = x_i - \ln\left(\sum_j e^{x_j}\right)

    - Gradient for `x`: :math:`\bar y_i - e^{y_i} \sum_j \bar y_j`

    Differentiable to any order. Like ``scipy.special.log_softmax``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.log_softmax(asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """
    return softmaxes.log_softmax(x, axis=axis)


@upcast
@explained
def logsumexp(
    a: Tensor,
    axis: Axis = None,
    b: Tensor | float | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Return the logarithm of the sum of exponentials along axes, optionally weighted.

    Parameters
    ----------
    a : Tensor
        The exponents; integers count as float32.
    axis : int or tuple of int, optional
        The axes to reduce; by default all.
    b : Tensor or scalar, optional
        The weights, of a shape that broadcasts with `a`. An element with a weight of 0 is ignored,
        whatever its value.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.
    return_sign : bool, default False
        Whether to return the logarithm of the sum's absolute value, and the sum's sign. The sign of
        a complex number has an absolute value of 1.

    Returns
    -------
    Tensor or (Tensor, Tensor)
        Of the shape of `a` without the reduced axes; minus infinity for no elements, NaN for a
        negative sum unless `return_sign`. float32 stays float32. For complex numbers, the result is
        the principal value.

    Raises
    ------
    DeviceError
        If `b` is on another device than `a`.

    Notes
    -----
    .. math:: y = \ln\left(\sum_i b_i\, e^{a_i}\right)

    - Gradient for `a`: :math:`\bar y\, b_i\, e^{a_i - y}`
    - Gradient for `b`: :math:`\bar y\, e^{a_i - y}`

    With `return_sign`, :math:`y` is the logarithm of the absolute value, and the gradients are
    multiplied by the sign.

    Differentiable to any order. Like ``scipy.special.logsumexp``.

    Examples
    --------
    >>> from xgrad import asarray, special
    >>> special.logsumexp(asarray([1e4, 1e4]))
    Tensor(10000.693)
    >>> special.logsumexp(asarray([0.0, 0.0]), b=asarray([1.0, -3.0]), return_sign=True)
    (Tensor(0.6931472), Tensor(-1.))
    """
    xp, a = ops, as_tensor("logsumexp", "a", a)
    b = b if b is None or type(b) in SCALARS else as_tensor("logsumexp", "b", b)
    dtypes = [x.dtype for x in (a, b) if isinstance(x, Tensor)]
    a = xp.astype(
        a,
        np.result_type(*dtypes) if any(t.kind in "fc" for t in dtypes) else get_default_dtype(),
        copy=False,
    )
    if b is None and not return_sign:
        return statistical.logsumexp(a, axis=axis, keepdims=keepdims)
    weights = xp.ones_like(a) if b is None else b if isinstance(b, Tensor) else xp.full_like(a, b)
    # within a vmap, tensors of one device may be on two levels
    if weights.device.root is not a.device.root:
        raise DeviceError(
            f"logsumexp: expected b on {a.device}, where a is, got it on {weights.device}: use"
            " .to(device)"
        )
    exponents = xp.real(a) if a.dtype.kind == "c" else a
    counted = xp.where(weights == 0, -math.inf, exponents.detach())
    if 0 in counted.shape:
        sums = xp.sum(a * weights, axis=axis, keepdims=keepdims)
        return (sums - math.inf, sums) if return_sign else sums - math.inf
    top = xp.max(counted, axis=axis, keepdims=True)  # any number here gives the same result
    top = xp.where(xp.isfinite(top), top, 0)
    # An element with a weight of 0 has a derivative by the weight, unless its exponential
    # overflows.
    fits = (weights != 0) | (exponents - top < math.log(np.finfo(a.dtype).max))
    total = xp.sum(weights * xp.exp(xp.where(fits, a - top, -math.inf)), axis=axis, keepdims=True)
    sign = xp.sign(total if total.dtype.kind == "c" else total.detach())
    result = xp.log(xp.abs(total) if return_sign else total) + top
    if not keepdims:
        axes = tuple(range(total.ndim)) if axis is None else axis
        result, sign = xp.squeeze(result, axis=axes), xp.squeeze(sign, axis=axes)
    return (result, sign) if return_sign else result
