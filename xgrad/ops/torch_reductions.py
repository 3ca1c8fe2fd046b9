"""Methods of tensors with PyTorch's names: reductions, running results and comparisons."""

from __future__ import annotations

from typing import Any

from xgrad.core import providers
from xgrad.core.tensor import Tensor
from xgrad.ops import searching, statistical
from xgrad.support.hints import explained, shown

Dim = int | tuple[int, ...] | None


@explained
def amax(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the maximum over axes, or over all: see `xgrad.max`."""
    return statistical.max(self, axis=dim, keepdims=keepdim)


@explained
def amin(self: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the minimum over axes, or over all: see `xgrad.min`."""
    return statistical.min(self, axis=dim, keepdims=keepdim)


@explained
def argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort this tensor along an axis: see `xgrad.argsort`."""
    return searching.argsort(self, axis=dim, descending=descending, stable=stable)


@explained
def count_nonzero(self: Tensor, dim: Dim = None) -> Tensor:
    """Return the number of nonzero elements over axes, or of all."""
    return searching.count_nonzero(self, axis=dim)


@explained
def cumprod(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the products of the elements so far along an axis: see `xgrad.cumulative_prod`."""
    return statistical.cumulative_prod(self, axis=dim, dtype=dtype)


@explained
def cumsum(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the sums of the elements so far along an axis: see `xgrad.cumulative_sum`."""
    return statistical.cumulative_sum(self, axis=dim, dtype=dtype)


@explained
def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Return the differences of neighbours along an axis, `n` times: see `xgrad.diff`."""
    out: Tensor = providers.module("differences").diff(
        self, axis=dim, n=n, prepend=prepend, append=append
    )
    return out


@explained
def log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax` along an axis."""
    out: Tensor = providers.module("softmaxes").log_softmax(self, axis=dim, dtype=dtype)
    return out


@explained
def logsumexp(self: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over axes: see `xgrad.logsumexp`."""
    return statistical.logsumexp(self, axis=dim, keepdims=keepdim)


@explained
def norm(self: Tensor, p: Any = 2, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Return the vector norm over axes, or of all elements: see `xgrad.linalg.vector_norm`."""
    out: Tensor = providers.module("norms").vector_norm(
        self, axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p
    )
    return out


@explained
def softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return exponentials divided by their sum along an axis."""
    out: Tensor = providers.module("softmaxes").softmax(self, axis=dim, dtype=dtype)
    return out


@explained
def topk(
    self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the `k` largest elements along an axis and their indices: see `xgrad.topk`."""
    if not isinstance(sorted, bool):
        raise TypeError(f"topk: expected a bool for sorted, got {shown(sorted)}")
    out: tuple[Tensor, Tensor] = _functions().topk(self, k, axis=dim, largest=largest)
    return out


def isclose(
    self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether elements are equal within a tolerance: see `xgrad.isclose`."""
    out: Tensor = _functions().isclose(self, other, rtol, atol, equal_nan)
    return out


def allclose(
    self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are equal within a tolerance: see `xgrad.allclose`."""
    out: bool = _functions().allclose(self, other, rtol, atol, equal_nan)
    return out


def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each integer occurs: see `xgrad.bincount`."""
    out: Tensor = _functions().bincount(self, weights=weights, minlength=minlength)
    return out


def cov(
    self: Tensor, *, correction: float = 1, fweights: Any = None, aweights: Any = None
) -> Tensor:
    """Return the covariance matrix of variables, one a row: see `xgrad.cov`."""
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
