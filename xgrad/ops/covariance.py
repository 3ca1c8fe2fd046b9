"""Covariances and correlation coefficients."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_number, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, manipulation, statistical
from xgrad.ops.diagonals import diagonal
from xgrad.ops.matrix_products import as_floating, matmul
from xgrad.ops.precision import upcast
from xgrad.ops.tensor_conversion import astype
from xgrad.support.hints import explained

__all__ = ["corrcoef", "cov"]


@upcast
@explained
def cov(
    x: Tensor,
    /,
    *,
    correction: float = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    r"""Return the covariance matrix of variables.

    Parameters
    ----------
    x : Tensor
        Of shape (variables, observations), or (observations,) of one variable; integers and bools
        count as float32.
    correction : float, default 1
        Subtracted from the number of observations: 0 for a mean of products.
    fweights : Tensor, optional
        Integers of shape (observations,): how often each observation occurs.
    aweights : Tensor, optional
        Numbers of shape (observations,): the weights of observations.

    Returns
    -------
    Tensor
        Of shape (variables, variables), or () for one variable. NaN if there are not more
        observations than `correction`.

    Raises
    ------
    ValueError
        If `x` has more than two axes, or weights another shape, or negative values, which is not
        checked on a GPU.
    TypeError
        If `fweights` are not integers.

    Notes
    -----
    .. math::

        Y = \frac{1}{d} \sum_k w_k z_k z_k^H,
        \quad z_k = x_k - \frac{1}{W} \sum_k w_k x_k,
        \quad d = W - \frac{c}{W} \sum_k w_k a_k

    :math:`x_k` is the vector of observation :math:`k`, :math:`f_k` and :math:`a_k` are its
    ``fweights`` and ``aweights``, by default 1, :math:`w_k = f_k a_k`, :math:`W = \sum_k w_k`, and
    :math:`c` is the ``correction``.

    - Gradient for `x`: :math:`\frac{w_k}{d} (\bar Y + \bar Y^H) z_k`
    - Gradient for `aweights`: :math:`f_k (z_k^\top \bar Y z_k - q - c q (A / W - 2 a_k) / W) / d`
      with :math:`q = \sum_{ij} \bar Y_{ij} Y_{ij}` and :math:`A = \sum_k w_k a_k`

    Differentiable to any order, in `aweights`, too. Like ``numpy.cov`` and ``torch.cov``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.cov(xgrad.asarray([[0.0, 2.0], [1.0, 5.0]]))
    Tensor([[2., 4.],
            [4., 8.]])
    """
    x, correction = as_floating("cov", "x", x), as_number("cov", "correction", correction)
    if x.ndim > 2:
        raise ValueError(f"cov: expected x with one or two axes, got shape {x.shape}")
    rows = manipulation.reshape(x, (1, -1)) if x.ndim < 2 else x
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        count: Any = rows.shape[1]
        total: Any = max(count - correction, 0)
        centered = rows - statistical.mean(rows, axis=1, keepdims=True)
        factors = centered
    else:
        count = statistical.sum(weights)
        share = statistical.sum(rows * weights, axis=1, keepdims=True) / count
        centered = rows - share
        factors = centered * weights
        if aweights is None:
            total = count - correction
        else:
            squares = statistical.sum(weights * astype(aweights, weights.dtype, copy=False))
            total = count - correction * squares / count
        total = elementwise.maximum(total, 0)
    products = matmul(factors, elementwise.conj(manipulation.matrix_transpose(centered)))
    if isinstance(total, Tensor):
        out = products / total
    else:
        out = products * (1 / total if total else math.nan)
    return manipulation.reshape(out, ()) if out.shape == (1, 1) else out


def _weights(x: Tensor, fweights: Any, aweights: Any) -> Tensor | None:
    """Return the weight of each observation, or None if all are equal."""
    product: Tensor | None = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        weights = as_tensor("cov", name, weights)
        if weights.shape != x.shape[1:]:
            raise ValueError(
                f"cov: expected {name} of shape {x.shape[1:]}, one an observation, got"
                f" {weights.shape}"
            )
        if name == "fweights" and weights.dtype.kind not in "iu":
            raise TypeError(f"cov: expected fweights of integers, got {weights.dtype}")
        if not x.device.backend.asynchronous and weights.dtype.kind in "if":
            positive = statistical.all(weights.detach() >= 0)
            if not check_true(positive.device, positive._data):
                raise ValueError(f"cov: expected {name} of 0 or more, got negative ones")
        real = elementwise.real(x).dtype if x.dtype.kind == "c" else x.dtype
        weights = astype(weights, real, copy=False)
        product = weights if product is None else product * weights
    return product


@upcast
@explained
def corrcoef(x: Tensor, /) -> Tensor:
    r"""Return the matrix of Pearson's correlation coefficients of variables.

    Parameters
    ----------
    x : Tensor
        Of shape (variables, observations), or (observations,) of one variable; integers and bools
        count as float32.

    Returns
    -------
    Tensor
        Of shape (variables, variables), or () for one variable; from -1 to 1. NaN for a variable
        that does not vary.

    Raises
    ------
    ValueError
        If `x` has more than two axes.

    Notes
    -----
    .. math:: Y = Z Z^H, \quad Z_i = \frac{x_i - m_i}{\lVert x_i - m_i \rVert}

    :math:`x_i` are the observations of variable :math:`i`, and :math:`m_i` is their mean.

    - Gradient for `x`: :math:`(\bar Z_i - (\bar Z_i \cdot Z_i) Z_i) / \lVert x_i - m_i \rVert`
      with :math:`\bar Z = (\bar Y + \bar Y^H) Z`

    Differentiable to any order. Like ``numpy.corrcoef`` and ``torch.corrcoef``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.corrcoef(xgrad.asarray([[0.0, 2.0, 4.0], [1.0, -1.0, -3.0]]))
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    products = cov(as_floating("corrcoef", "x", x))
    if not products.ndim:
        return products / products
    deviations = elementwise.sqrt(elementwise.real(diagonal(products)))
    out = products / manipulation.expand_dims(deviations, axis=1) / deviations
    if out.dtype.kind == "c":
        return out
    return elementwise.clip(out, -1, 1)
