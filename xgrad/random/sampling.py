"""Random numbers with parameters, or with the form of a tensor; identical on every device."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.recording import check_true
from xgrad.core import providers
from xgrad.core.arguments import as_number, as_tensor
from xgrad.core.dtypes import float32, float64
from xgrad.core.tensor import Tensor
from xgrad.random.counts import open_uniform, poisson_quantile
from xgrad.random.generator import Generator, Shape, generator_of
from xgrad.support.hints import explained


def bernoulli(probs: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Return numbers that are 1 with given probabilities, or else 0; not differentiable.

    Parameters
    ----------
    probs : Tensor
        The probabilities of ones, of any shape: floating numbers from 0 to 1.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the shape, dtype and device of `probs`.

    Raises
    ------
    TypeError
        If `probs` is not real and floating.
    ValueError
        If a number is not from 0 to 1; not checked on ``cuda``, where the check would have to
        synchronize.

    Notes
    -----
    Probabilities are rounded to 2**-24 in float32, and to 2**-53 in float64. The numbers are the
    same on every device. The counterpart in PyTorch is ``torch.bernoulli``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.bernoulli(xgrad.asarray([0.0, 1.0, 1.0]))
    Tensor([0., 1., 1.])
    """
    xp, chosen = providers.module("functions"), generator_of("bernoulli", generator)
    probs = _floating("bernoulli", "probs", probs)
    _check("bernoulli", (probs >= 0) & (probs <= 1), "probs from 0 to 1")
    dtype = float64 if probs.dtype == float64 else float32
    drawn = chosen.rand(probs.shape, dtype=dtype, device=probs.device)
    ones: Tensor = xp.astype(drawn < probs, probs.dtype)
    return ones


def poisson(rates: Tensor, *, generator: Generator | None = None) -> Tensor:
    """Return random counts from Poisson distributions; not differentiable.

    Parameters
    ----------
    rates : Tensor
        The means, of any shape: floating numbers from 0 on.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Integers of the shape, dtype and device of `rates`.

    Raises
    ------
    TypeError
        If `rates` is not real and floating.
    ValueError
        If a rate is negative, infinite or NaN; not checked on ``cuda``, where the check would have
        to synchronize.
    ImportError
        If SciPy, which computes the distribution function on most devices, is not installed.

    Notes
    -----
    Each count is the quantile of a uniform number of 53 bits. The counts are the same on every
    device, except where that number is within rounding of a step of the distribution function. The
    counterpart in PyTorch is ``torch.poisson``.

    Examples
    --------
    >>> import xgrad
    >>> _ = xgrad.manual_seed(0)
    >>> counts = xgrad.random.poisson(xgrad.full(1000, 3.0))
    >>> 2.8 < float(counts.mean()) < 3.2
    True
    """
    xp, chosen = providers.module("functions"), generator_of("poisson", generator)
    rates = _floating("poisson", "rates", rates)
    _check("poisson", (rates >= 0) & xp.isfinite(rates), "finite rates of 0 or more")
    drawn = open_uniform(chosen, rates.shape, rates.device)
    counts: Tensor = xp.astype(poisson_quantile(xp.astype(rates, float64), drawn), rates.dtype)
    return counts


@explained
def exponential(
    shape: Shape,
    rate: float = 1.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers from an exponential distribution.

    Parameters
    ----------
    shape : int or tuple of int
        The length of each axis.
    rate : float, default 1.0
        One divided by the mean, as ``lambd`` of PyTorch's method ``exponential_``; `scale` of NumPy
        is the mean.
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
        If the shape, the rate or the dtype is invalid.
    ValueError
        If a length is negative, or the rate is not above 0.

    Examples
    --------
    >>> import xgrad
    >>> bool(xgrad.all(xgrad.random.exponential(100, 2.0) >= 0))
    True
    """
    if not as_number("exponential", "rate", rate) > 0:
        raise ValueError(f"exponential: expected a rate above 0, got {rate}")
    return generator_of("exponential", generator).exponential(
        shape, rate, dtype=dtype, device=device, requires_grad=requires_grad
    )


@explained
def rand_like(
    x: Tensor,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers as of `rand`, with the shape, dtype and device of a tensor.

    Parameters
    ----------
    x : Tensor
        A floating tensor, or any tensor with a `dtype` for the result.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    TypeError
        If the dtype is not float32 or float64.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.rand_like(xgrad.zeros((2, 3))).shape
    (2, 3)
    """
    x = as_tensor("rand_like", "x", x)
    return generator_of("rand_like", generator).rand(
        x.shape, requires_grad=requires_grad, **_like(x, dtype, device)
    )


@explained
def randn_like(
    x: Tensor,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random numbers as of `randn`, with the shape, dtype and device of a tensor.

    Parameters
    ----------
    x : Tensor
        A floating tensor, or any tensor with a `dtype` for the result.
    dtype : dtype, optional
        By default the dtype of `x`.
    device : str or Device, optional
        By default the device of `x`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.
    requires_grad : bool, default False
        Whether the result is a leaf that requires a gradient.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    TypeError
        If the dtype is not float32 or float64.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.randn_like(xgrad.zeros((2, 3))).shape
    (2, 3)
    """
    x = as_tensor("randn_like", "x", x)
    return generator_of("randn_like", generator).randn(
        x.shape, requires_grad=requires_grad, **_like(x, dtype, device)
    )


@explained
def randint_like(
    x: Tensor,
    low: int,
    high: int,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers as of `randint`, with the shape, dtype and device of a tensor.

    Parameters
    ----------
    x : Tensor
        Of any dtype.
    low, high : int
        The bounds; `high` is excluded.
    dtype : dtype, optional
        By default the dtype of `x`, in which integers that it does not have are rounded, or wrap.
    device : str or Device, optional
        By default the device of `x`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    TypeError
        If a bound is not an int.
    ValueError
        If no int64 lies between the bounds.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.random.randint_like(xgrad.zeros(2), 3, 4)
    Tensor([3., 3.])
    """
    x = as_tensor("randint_like", "x", x)
    options = _like(x, dtype, device)
    drawn = generator_of("randint_like", generator).randint(
        low, high, x.shape, device=options["device"]
    )
    return drawn.astype(options["dtype"])


def _like(x: Tensor, dtype: Any, device: str | Device | None) -> dict[str, Any]:
    return {
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }


def _floating(op: str, name: str, x: Any) -> Tensor:
    """Return a parameter as a tensor without a graph; TypeError if it is not real and floating."""
    tensor = as_tensor(op, name, x).detach()
    if tensor.dtype.kind != "f":
        raise TypeError(f"{op}: expected floating numbers for {name}, got {tensor.dtype}")
    return tensor


def _check(op: str, valid: Tensor, expected: str) -> None:
    """Raise ValueError unless all elements are valid; a replay repeats the check."""
    every: Tensor = providers.module("functions").all(valid)
    if not every.device.backend.asynchronous and not check_true(every.device, every._data):
        raise ValueError(f"{op}: expected {expected}, got others")
