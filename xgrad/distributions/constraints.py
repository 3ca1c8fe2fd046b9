"""Sets of values: the valid parameters and the supports of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xgrad import linalg, ops
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "independent",
    "integer_interval",
    "interval",
    "lower_cholesky",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "open_interval",
    "positive",
    "positive_definite",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


@dataclass(frozen=True, repr=False)
class Constraint:
    """A set of values of a parameter, or of samples.

    Attributes
    ----------
    text : str
        What the values are, for errors.
    check : callable
        Takes a tensor, and returns for each value whether it is in the set, without the axes of
        one value.
    event_dim : int, default 0
        The number of axes of one value, such as 1 for vectors.
    is_discrete : bool, default False
        Whether the values are integers.

    Examples
    --------
    >>> import xgrad
    >>> positive = xgrad.distributions.constraints.positive
    >>> positive, positive.check(xgrad.asarray([-1.0, 2.0]))
    (numbers above 0, Tensor([False,  True]))
    """

    text: str
    check: Callable[[Tensor], Tensor]
    event_dim: int = 0
    is_discrete: bool = False

    def __repr__(self) -> str:
        return self.text


def _all_of_last(valid: Tensor, axes: int) -> Tensor:
    return ops.all(valid, axis=tuple(range(-axes, 0))) if axes else valid


def _is_integer(x: Tensor) -> Tensor:
    return ops.isfinite(x) & (ops.floor(x) == x) if x.dtype.kind == "f" else ops.isfinite(x)


def _is_simplex(x: Tensor) -> Tensor:
    return _all_of_last(x >= 0, 1) & (ops.abs(ops.sum(x, axis=-1) - 1) < 1e-6)


def _is_one_hot(x: Tensor) -> Tensor:
    return _all_of_last((x == 0) | (x == 1), 1) & (ops.sum(x, axis=-1) == 1)


def _is_lower_cholesky(x: Tensor) -> Tensor:
    lower = _all_of_last(ops.tril(x) == x, 2)
    return lower & _all_of_last(linalg.diagonal(x) > 0, 1)


def _is_symmetric(x: Tensor) -> Tensor:
    return _all_of_last(ops.abs(x - ops.matrix_transpose(x)) <= 1e-6, 2)


boolean = Constraint("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True)
"""The numbers 0 and 1."""
real = Constraint("real numbers", lambda x: ~ops.isnan(x))
"""Real numbers: all but NaN."""
real_vector = Constraint("real vectors", lambda x: _all_of_last(~ops.isnan(x), 1), 1)
"""Vectors of real numbers, along the last axis."""
positive = Constraint("numbers above 0", lambda x: x > 0)
"""Numbers above 0."""
nonnegative = Constraint("numbers of 0 or more", lambda x: x >= 0)
"""Numbers of 0 or more."""
nonnegative_integer = Constraint(
    "integers of 0 or more", lambda x: _is_integer(x) & (x >= 0), is_discrete=True
)
"""Integers of 0 or more."""
unit_interval = Constraint("numbers from 0 to 1", lambda x: (x >= 0) & (x <= 1))
"""Numbers from 0 to 1."""
simplex = Constraint("vectors of numbers of 0 or more with the sum 1", _is_simplex, 1)
"""Vectors of numbers of 0 or more with the sum 1, along the last axis."""
one_hot = Constraint("vectors of zeros and a 1", _is_one_hot, 1, is_discrete=True)
"""Vectors of zeros and a 1, along the last axis."""
lower_cholesky = Constraint(
    "lower triangular matrices with diagonals above 0", _is_lower_cholesky, 2
)
"""Lower triangular matrices with diagonals above 0, in the last two axes."""
positive_definite = Constraint("symmetric positive definite matrices", _is_symmetric, 2)
"""Symmetric positive definite matrices, in the last two axes.

A Cholesky decomposition, which the distribution computes, checks that they are definite.
"""


def greater_than(bound: Any) -> Constraint:
    """Return the set of numbers above a bound.

    Parameters
    ----------
    bound : float or Tensor
        Not in the set.

    Returns
    -------
    Constraint
        Of single numbers.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.constraints.greater_than(1.0).check(xgrad.asarray([1.0, 2.0]))
    Tensor([False,  True])
    """
    return Constraint(f"numbers above {_shown(bound, 'the bound')}", lambda x: x > bound)


def interval(low: ArrayLike, high: ArrayLike) -> Constraint:
    """Return the set of numbers from one bound to another, with both.

    Parameters
    ----------
    low, high : float or Tensor
        The bounds.

    Returns
    -------
    Constraint
        Of single numbers.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.constraints.interval(0.0, 1.0).check(xgrad.asarray([1.0, 2.0]))
    Tensor([ True, False])
    """
    text = f"numbers from {_shown(low, 'the lower')} to {_shown(high, 'the upper bound')}"
    return Constraint(text, lambda x: (x >= low) & (x <= high))


def open_interval(low: ArrayLike, high: ArrayLike) -> Constraint:
    """Return the set of numbers between two bounds.

    Parameters
    ----------
    low, high : float or Tensor
        Not in the set.

    Returns
    -------
    Constraint
        Of single numbers.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.constraints.open_interval(0.0, 1.0).check(
    ...     xgrad.asarray([0.5, 1.0])
    ... )
    Tensor([ True, False])
    """
    text = f"numbers above {_shown(low, 'the lower')} and below {_shown(high, 'the upper bound')}"
    return Constraint(text, lambda x: (x > low) & (x < high))


def integer_interval(low: ArrayLike, high: ArrayLike) -> Constraint:
    """Return the set of integers from one bound to another, with both.

    Parameters
    ----------
    low, high : int or Tensor
        The bounds.

    Returns
    -------
    Constraint
        Of single integers, in any dtype.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.constraints.integer_interval(0, 2).check(
    ...     xgrad.asarray([1.0, 1.5])
    ... )
    Tensor([ True, False])
    """
    text = f"integers from {_shown(low, 'the lower')} to {_shown(high, 'the upper bound')}"
    return Constraint(text, lambda x: _is_integer(x) & (x >= low) & (x <= high), is_discrete=True)


def multinomial(total: int) -> Constraint:
    """Return the set of vectors of integers of 0 or more with a given sum.

    Parameters
    ----------
    total : int
        The sum.

    Returns
    -------
    Constraint
        Of vectors.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.constraints.multinomial(3).check(xgrad.asarray([1.0, 2.0]))
    Tensor(True)
    """

    def check(x: Tensor) -> Tensor:
        return _all_of_last(_is_integer(x) & (x >= 0), 1) & (ops.sum(x, axis=-1) == total)

    return Constraint(f"vectors of integers of 0 or more with the sum {total}", check, 1, True)


def independent(base: Constraint, axes: int) -> Constraint:
    """Return the set of arrays whose elements are in another set.

    Parameters
    ----------
    base : Constraint
        The set of one element.
    axes : int
        The number of axes of an array.

    Returns
    -------
    Constraint
        Of arrays, with as many axes more.

    Examples
    --------
    >>> import xgrad
    >>> constraints = xgrad.distributions.constraints
    >>> vectors = constraints.independent(constraints.positive, 1)
    >>> vectors.check(xgrad.asarray([[-1.0, 2.0], [1.0, 2.0]]))
    Tensor([False,  True])
    """
    return Constraint(
        base.text,
        lambda x: _all_of_last(base.check(x), axes),
        base.event_dim + axes,
        base.is_discrete,
    )


def _shown(bound: Any, name: str) -> str:
    """Return a bound for a text: a tensor is named."""
    if isinstance(bound, Tensor):
        return name
    return "infinity" if bound == math.inf else str(bound)
