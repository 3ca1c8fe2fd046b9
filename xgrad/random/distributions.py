"""Random numbers of distributions, identical for equal seeds on every device."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.random.generator import Generator, Shape, generator_of
from xgrad.support.docstrings import by_name, documented
from xgrad.support.hints import explained

_SHARED = by_name(
    "TypeError -- If the shape or dtype is none of the above.",
)


@explained
@documented(shared=_SHARED)
def rand(
    shape: Shape,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the uniform distribution over [0, 1).

    shape, dtype, device, generator, requires_grad
    returns Tensor -- Of the given shape.
    raises TypeError
    raises ValueError -- If a length is negative.

    >>> xgrad.random.rand((2, 3)).shape
    (2, 3)
    """
    source = generator_of("rand", generator)
    return source.rand(shape, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
@documented(shared=_SHARED)
def randn(
    shape: Shape,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the normal distribution with mean 0 and standard deviation 1.

    shape, dtype, device, generator, requires_grad
    returns Tensor -- Of the given shape.
    raises TypeError
    raises ValueError -- If a length is negative.

    >>> xgrad.random.randn((2, 3)).shape
    (2, 3)
    """
    source = generator_of("randn", generator)
    return source.randn(shape, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
@documented(shared=_SHARED)
def uniform(
    shape: Shape,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of the uniform distribution from `low` to `high`, which rounding alone can reach.

    shape
    low, high : float -- The bounds, by default 0 and 1.
    dtype, device, generator, requires_grad
    returns Tensor -- Of the given shape.
    raises TypeError
    raises ValueError -- If a length is negative, or `low` is above `high` or infinite.

    >>> x = xgrad.random.uniform(100, -1.0, 1.0)
    >>> bool(xgrad.all(xgrad.abs(x) <= 1))
    True
    """
    source = generator_of("uniform", generator)
    return source.uniform(shape, low, high, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
@documented(shared=_SHARED)
def normal(
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers of a normal distribution.

    shape
    mean, std : float -- Its mean and standard deviation, by default 0 and 1.
    dtype, device, generator, requires_grad
    returns Tensor -- Of the given shape.
    raises TypeError
    raises ValueError -- If a length or `std` is negative.

    >>> xgrad.random.normal(2, 5.0, 0.0)
    Tensor([5., 5.])
    """
    source = generator_of("normal", generator)
    return source.normal(shape, mean, std, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
@documented()
def randint(
    low: int,
    high: int,
    shape: Shape,
    *,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers from `low` up to `high`, which is left out, all equally likely (to 2**-64).

    low, high : int -- The bounds.
    shape
    device, generator
    returns Tensor -- Of the given shape, int64.
    raises TypeError -- If the shape or a bound is not of ints.
    raises ValueError -- If a length is negative, or no int64 lies between the bounds.

    >>> xgrad.random.randint(3, 4, (2, 2))
    Tensor([[3, 3],
            [3, 3]])
    """
    return generator_of("randint", generator).randint(low, high, shape, device=device)


@documented()
def randperm(n: int, *, device: str | Device | None = None, generator: Generator | None = None) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order, all orders equally likely.

    n : int -- The number of integers.
    device, generator
    returns Tensor -- Of shape (n,), int64.
    raises ValueError -- If `n` is not an int of 0 or more.

    >>> sorted(xgrad.random.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return generator_of("randperm", generator).randperm(n, device=device)


@documented()
def multinomial(
    weights: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return indices drawn with probabilities in proportion to weights, the same on every device; not differentiable.

    weights : Tensor -- Real numbers of shape (n,) or (rows, n), finite, at least 0, and not all 0 in a row; they need
        not sum to 1.
    num_samples : int -- The number of draws from each row.
    replacement : bool, default False -- Whether an index may be drawn again; otherwise each one is drawn at most once.
    generator
    returns Tensor -- int64, of shape (num_samples,) or (rows, num_samples), on the device of the weights.
    raises ValueError -- If weights are negative, infinite, NaN or all 0, or there are fewer than `num_samples` without
        replacement; not checked on ``cuda``, which would have to synchronize.
    raises TypeError -- If weights are complex, or `num_samples` is no int.

    With replacement, weights are rounded to 2**-40 of the largest in a row, for up to four million weights. As
    ``torch.multinomial``.

    >>> xgrad.random.multinomial(xgrad.asarray([0.0, 3.0, 0.0]), 2, replacement=True)
    Tensor([1, 1])
    """
    return generator_of("multinomial", generator).multinomial(weights, num_samples, replacement)
