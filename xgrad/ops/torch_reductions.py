"""Methods of tensors with PyTorch's names: reductions, running results and comparisons."""

from __future__ import annotations

from typing import Any

from xgrad.core import providers
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.ops import searching, statistical
from xgrad.support.hints import explained, shown

Dim = int | tuple[int, ...] | None


@explained
def amax(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`.

    Parameters
    ----------
    dim : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdim : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    return statistical.max(self, axis=dim, keepdims=keepdim)


@explained
def amin(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`.

    Parameters
    ----------
    dim : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdim : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    return statistical.min(self, axis=dim, keepdims=keepdim)


@explained
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort this tensor along an axis: see `xgrad.argsort`.

    Parameters
    ----------
    dim : int, default -1
        The axis.
    descending : bool, default False
        Whether the largest element comes first.
    stable : bool, default True
        Whether equal elements keep their order.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([3.0, 1.0, 2.0]).argsort(descending=True)
    Tensor([0, 2, 1])
    """
    return searching.argsort(self, axis=dim, descending=descending, stable=stable)


@explained
def count_nonzero(self: Tensor, dim: Dim = None) -> Tensor:
    """Return the number of nonzero elements over axes, or of all.

    Parameters
    ----------
    dim : int or tuple of int, optional
        The axes to reduce; by default all.

    Returns
    -------
    Tensor
        Of int64.
    """
    return searching.count_nonzero(self, axis=dim)


@explained
def cumprod(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the products of the elements so far along an axis: see `xgrad.cumulative_prod`.

    Parameters
    ----------
    dim : int
        The axis.
    dtype : dtype, optional
        The dtype of the computation and the result.
    """
    return statistical.cumulative_prod(self, axis=dim, dtype=dtype)


@explained
def cumsum(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the sums of the elements so far along an axis: see `xgrad.cumulative_sum`.

    Parameters
    ----------
    dim : int
        The axis.
    dtype : dtype, optional
        The dtype of the computation and the result.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([1.0, 2.0, 3.0]).cumsum(0)
    Tensor([1., 3., 6.])
    """
    return statistical.cumulative_sum(self, axis=dim, dtype=dtype)


@explained
def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Return the differences of neighbours along an axis, `n` times: see `xgrad.diff`.

    Parameters
    ----------
    n : int, default 1
        How often differences are taken.
    dim : int, default -1
        The axis.
    prepend, append : scalar or Tensor, optional
        Values before the first and after the last element.
    """
    out: Tensor = providers.module("differences").diff(
        self, axis=dim, n=n, prepend=prepend, append=append
    )
    return out


@explained
def log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax` along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    dtype : dtype, optional
        A floating dtype, to which this tensor is cast first.
    """
    out: Tensor = providers.module("softmaxes").log_softmax(self, axis=dim, dtype=dtype)
    return out


@explained
def logsumexp(self: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes: see `xgrad.logsumexp`.

    Parameters
    ----------
    dim : int or tuple of int
        The axes to reduce.
    keepdim : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.
    """
    return statistical.logsumexp(self, axis=dim, keepdims=keepdim)


@explained
def norm(self: Tensor, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the vector norm over axes, or of all elements: see `xgrad.linalg.vector_norm`.

    Parameters
    ----------
    p : float or "fro", default 2
        The order: the root of the sum of powers; for infinity, the largest absolute value.
    dim : int or tuple of int, optional
        The axes to reduce; by default all.
    keepdim : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Of the shape of this tensor without the reduced axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([3.0, -4.0]).norm(), xgrad.asarray([3.0, -4.0]).norm(1)
    (Tensor(5.), Tensor(7.))
    """
    out: Tensor = providers.module("norms").vector_norm(
        self, axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p
    )
    return out


@explained
def softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return exponentials divided by their sum along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    dtype : dtype, optional
        A floating dtype, to which this tensor is cast first.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([0.0, 0.0]).softmax(0)
    Tensor([0.5, 0.5])
    """
    out: Tensor = providers.module("softmaxes").softmax(self, axis=dim, dtype=dtype)
    return out


@explained
def topk(
    self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the `k` largest elements along an axis and their indices: see `xgrad.topk`.

    Parameters
    ----------
    k : int
        How many.
    dim : int, default -1
        The axis.
    largest : bool, default True
        Whether the largest elements are taken, or the smallest ones.
    sorted : bool, default True
        Accepted: they are sorted in any case.

    Returns
    -------
    TopKResult
        The elements, as `values`, and their `indices`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([3.0, 1.0, 2.0]).topk(2)
    TopKResult(values=Tensor([3., 2.]), indices=Tensor([0, 2]))
    """
    if not isinstance(sorted, bool):
        raise TypeError(f"topk: expected a bool for sorted, got {shown(sorted)}")
    out: tuple[Tensor, Tensor] = _functions().topk(self, k, axis=dim, largest=largest)
    return out


def isclose(
    self: Tensor, other: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether elements are equal within a tolerance: see `xgrad.isclose`.

    Parameters
    ----------
    other : scalar or Tensor
        What to compare with.
    rtol, atol : float
        The difference may be ``atol + rtol * abs(other)``.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        Of bools.
    """
    out: Tensor = _functions().isclose(self, other, rtol, atol, equal_nan)
    return out


def allclose(
    self: Tensor, other: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are equal within a tolerance: see `xgrad.allclose`.

    Parameters
    ----------
    other : scalar or Tensor
        What to compare with.
    rtol, atol : float
        The difference may be ``atol + rtol * abs(other)``.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    bool
    """
    out: bool = _functions().allclose(self, other, rtol, atol, equal_nan)
    return out


def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each integer occurs: see `xgrad.bincount`.

    Parameters
    ----------
    weights : Tensor, optional
        What each integer counts, of the shape of this tensor; by default 1.
    minlength : int, default 0
        The least length of the result.
    """
    out: Tensor = _functions().bincount(self, weights=weights, minlength=minlength)
    return out


def cov(
    self: Tensor, *, correction: float = 1, fweights: Any = None, aweights: Any = None
) -> Tensor:
    """Return the covariance matrix of variables, one a row: see `xgrad.cov`.

    Parameters
    ----------
    correction : float, default 1
        What is subtracted from the number of observations in the divisor.
    fweights, aweights : Tensor, optional
        How often each observation counts, as an integer, and its weight.
    """
    out: Tensor = _functions().cov(
        self, correction=correction, fweights=fweights, aweights=aweights
    )
    return out


def corrcoef(self: Tensor) -> Tensor:
    """Return the matrix of correlation coefficients of variables: see `xgrad.corrcoef`."""
    out: Tensor = _functions().corrcoef(self)
    return out


def _functions() -> Any:
    return providers.module("functions")


METHODS: dict[str, Any] = {
    method.__name__: method
    for method in (
        amax, amin, argsort, count_nonzero, cumprod, cumsum, diff, log_softmax, logsumexp, norm,
        softmax, topk, isclose, allclose, bincount, cov, corrcoef,
    )
}  # fmt: skip
