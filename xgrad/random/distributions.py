"""Random numbers from distributions, identical for equal seeds on every device."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.random.generator import Generator, Shape, generator_of
from xgrad.support.hints import explained


@explained
def rand(
    shape: Shape,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers from the uniform distribution over [0, 1).

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If the shape or the dtype is invalid.
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.rand((2, 3)).shape
    (2, 3)
    """
    source = generator_of("rand", generator)
    return source.rand(shape, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
def randn(
    shape: Shape,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers from the normal distribution with mean 0 and standard deviation 1.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If the shape or the dtype is invalid.
    ValueError
        If a length is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.randn((2, 3)).shape
    (2, 3)
    """
    source = generator_of("randn", generator)
    return source.randn(shape, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
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
    """Return uniform random numbers from `low` to `high`.

    Only rounding can produce `high` itself.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    low, high : float
        The bounds, by default 0 and 1.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If the shape or the dtype is invalid.
    ValueError
        If a length is negative, or `low` is above `high` or infinite.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.random.uniform(100, -1.0, 1.0)
    >>> bool(xgrad.all(xgrad.abs(x) <= 1))
    True
    """
    source = generator_of("uniform", generator)
    return source.uniform(shape, low, high, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
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
    """Return random numbers from a normal distribution.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    mean, std : float
        The mean and the standard deviation, by default 0 and 1.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    TypeError
        If the shape or the dtype is invalid.
    ValueError
        If a length or `std` is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.normal(2, 5.0, 0.0)
    Tensor([5., 5.])
    """
    source = generator_of("normal", generator)
    return source.normal(shape, mean, std, dtype=dtype, device=device, requires_grad=requires_grad)


@explained
def randint(
    low: int,
    high: int,
    shape: Shape,
    *,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers from `low` up to `high`, which is excluded.

    All are equally likely, to within 2**-64.

    Parameters
    ----------
    low, high : int
        The bounds.
    shape : int or tuple of int
        The length of each axis.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the given shape, int64.

    Raises
    ------
    TypeError
        If a length or a bound is not an int.
    ValueError
        If a length is negative, or no int64 lies between the bounds.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.randint(3, 4, (2, 2))
    Tensor([[3, 3],
            [3, 3]])
    """
    return generator_of("randint", generator).randint(low, high, shape, device=device)


def randperm(
    n: int, *, device: str | Device | None = None, generator: Generator | None = None
) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order, all orders equally likely.

    Parameters
    ----------
    n : int
        The number of integers.
    device : str or Device, optional
        By default the `default_device`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of shape (n,), int64.

    Raises
    ------
    ValueError
        If `n` is not an int of 0 or more.

    Examples
    --------
    >>> import xgrad
    >>> sorted(xgrad.random.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    return generator_of("randperm", generator).randperm(n, device=device)


def multinomial(
    weights: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn with probabilities proportional to weights; not differentiable.

    The indices are the same on every device.

    Parameters
    ----------
    weights : Tensor
        Real numbers of shape (n,) or (rows, n), finite, at least 0, and not all 0 in a row; they
        need not sum to 1.
    num_samples : int
        The number of draws from each row.
    replacement : bool, default False
        Whether an index may be drawn again; if not, each index is drawn at most once.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        int64, of shape (num_samples,) or (rows, num_samples), on the device of the weights.

    Raises
    ------
    ValueError
        If weights are negative, infinite, NaN or all 0, or there are fewer than `num_samples`
        without replacement; not checked on ``cuda``, where the check would have to synchronize.
    TypeError
        If weights are complex, or `num_samples` is no int.

    Notes
    -----
    With replacement, weights are rounded to 2**-40 of the largest in a row, for up to four million
    weights. The counterpart in PyTorch is ``torch.multinomial``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.multinomial(xgrad.asarray([0.0, 3.0, 0.0]), 2, replacement=True)
    Tensor([1, 1])
    """
    return generator_of("multinomial", generator).multinomial(weights, num_samples, replacement)
