"""The normal distribution of vectors."""

from __future__ import annotations

from typing import ClassVar

from xgrad import linalg, ops
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.distribution import (
    LOG_2PI,
    Distribution,
    Shape,
    normal_noise,
    one_of,
    parameters,
)

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    r"""The normal distribution of vectors.

    .. math::

        \ln(p(x)) = -\tfrac{1}{2} (x - \mu)^\top \Sigma^{-1} (x - \mu)
        - \tfrac{1}{2} \ln(\det(\Sigma)) - \tfrac{n}{2} \ln(2 \pi)

    μ is `loc`, and Σ the covariance matrix.

    Parameters
    ----------
    loc : Tensor
        The means, along the last axis.
    covariance_matrix : Tensor, optional
        Symmetric positive definite, of shape (..., n, n).
    precision_matrix : Tensor, optional
        The inverse of the covariance.
    scale_tril : Tensor, optional
        The Cholesky factor of the covariance, lower triangular with a diagonal above 0. Exactly one
        of the three is given; this one is the fastest.
    validate_args : bool, optional
        See `Distribution`.

    Raises
    ------
    TypeError
        If a parameter is not floating.
    ValueError
        If not exactly one matrix is given, shapes do not fit, or a parameter is invalid.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite; not on ``cuda``.

    Examples
    --------
    >>> import xgrad
    >>> covariance = xgrad.asarray([[2.0, 1.0], [1.0, 2.0]])
    >>> normal = xgrad.distributions.MultivariateNormal(xgrad.zeros(2), covariance)
    >>> normal.log_prob(xgrad.asarray([1.0, 0.0]))
    Tensor(-2.7205164)
    >>> normal.sample((3,)).shape
    (3, 2)
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: ArrayLike,
        covariance_matrix: ArrayLike | None = None,
        precision_matrix: ArrayLike | None = None,
        scale_tril: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given, matrix = one_of(
            self._name,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        self.loc, self._matrix = parameters(self._name, (1, 2), **{"loc": loc, self._given: matrix})
        n = self.loc.shape[-1]
        if self._matrix.shape[-2:] != (n, n):
            raise ValueError(
                f"{self._name}: expected {self._given} of shape (..., {n}, {n}), as loc has {n}"
                f" numbers, got {self._matrix.shape}"
            )
        super().__init__(self.loc.shape[:-1], (n,), validate_args)
        self.scale_tril = _as_scale_tril(self._given, self._matrix)

    def _parameters(self) -> dict[str, Tensor]:
        return {"loc": self.loc, self._given: self._matrix}

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariances."""
        if self._given == "covariance_matrix":
            return self._matrix
        return self.scale_tril @ ops.matrix_transpose(self.scale_tril)

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariances."""
        if self._given == "precision_matrix":
            return self._matrix
        n = self._event_shape[0]
        identity = ops.eye(n, dtype=self.loc.dtype, device=self.loc.device)
        return linalg.cholesky_solve(identity, self.scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return ops.sum(ops.square(self.scale_tril), axis=-1)

    @property
    def half_log_det(self) -> Tensor:
        """Half the logarithm of the determinant of the covariances."""
        return ops.sum(ops.log(linalg.diagonal(self.scale_tril)), axis=-1)

    def _draw(self, sample_shape: Shape) -> Tensor:
        noise = normal_noise(self._full_shape(sample_shape), self.loc)
        return self.loc + _times_vectors(self.scale_tril, noise)

    def log_prob(self, value: ArrayLike) -> Tensor:
        difference = self._value(value, self.loc) - self.loc
        squares = squared_mahalanobis(self.scale_tril, difference)
        return -(self._event_shape[0] * LOG_2PI + squares) / 2 - self.half_log_det

    def entropy(self) -> Tensor:
        return self._event_shape[0] * (1 + LOG_2PI) / 2 + self.half_log_det


def squared_mahalanobis(scale_tril: Tensor, vectors: Tensor) -> Tensor:
    """Return the squared lengths of vectors, multiplied by the inverse of a Cholesky factor."""
    columns = ops.expand_dims(vectors, axis=-1)
    solved = linalg.solve_triangular(scale_tril, columns, upper=False)
    return ops.sum(ops.square(solved[..., 0]), axis=-1)


def _times_vectors(matrix: Tensor, vectors: Tensor) -> Tensor:
    return (matrix @ ops.expand_dims(vectors, axis=-1))[..., 0]


def _as_scale_tril(kind: str, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of the covariance."""
    if kind == "scale_tril":
        return matrix
    if kind == "covariance_matrix":
        return linalg.cholesky(matrix)
    # With the rows and columns in reverse, the Cholesky factor U of the precision U @ U.T is upper
    # triangular; the inverse of its transpose is lower triangular.
    flipped = linalg.cholesky(ops.flip(matrix, axis=(-2, -1)))
    upper = ops.flip(flipped, axis=(-2, -1))
    identity = ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    identity = ops.broadcast_to(identity, matrix.shape)
    return linalg.solve_triangular(ops.matrix_transpose(upper), identity, upper=False)
