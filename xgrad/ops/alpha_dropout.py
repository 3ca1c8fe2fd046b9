"""Dropout that preserves mean and variance, for layers with the activation `selu`."""

from __future__ import annotations

import math

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.dropout import channels, check_probability, dropout
from xgrad.ops.in_place import in_place
from xgrad.ops.searching import where
from xgrad.random.generator import Generator

#: The limit of `selu` far below 0, which replaces elements.
_LIMIT = -1.7580993408473766


def _replaced(x: Tensor, kept: Tensor, p: float) -> Tensor:
    """Return elements or the limit, scaled and shifted to mean 0 and variance 1."""
    if p == 1:
        return x * 0
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LIMIT**2))
    return where(kept != 0, x, _LIMIT) * scale - scale * _LIMIT * p


def _alpha_dropout(
    name: str,
    x: Tensor,
    p: float,
    training: bool,
    inplace: bool,
    generator: Generator | None,
    lead: int | None,
) -> Tensor:
    """Replace elements; those with the same index along the first `lead` axes together."""
    check_probability(name, p)
    x = as_tensor(name, "x", x)
    if x.dtype.kind != "f":
        raise TypeError(f"{name}: expected a floating x, got {x.dtype}: use .astype(float32)")
    if lead is not None and x.ndim < lead:
        raise ValueError(f"{name}: expected x of shape (batch, channels, ...), got {x.shape}")
    if not (training and p):
        return x
    kept = dropout(channels(x, x.ndim if lead is None else lead), p, generator=generator)
    return in_place(_replaced, x, kept, p) if inplace else _replaced(x, kept, p)


def alpha_dropout(
    x: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace elements by the limit of `selu`, each with probability `p`.

    The result is scaled and shifted, so that mean 0 and variance 1 are preserved.

    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, "Self-normalizing neural networks",
    NeurIPS, 2017.

    Parameters
    ----------
    x : Tensor
        Of any shape, floating.
    p : float, default 0.5
        The probability, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default False
        Whether to replace elements.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math::

        y = s\, (m\, x + (1 - m)\, a - p\, a), \quad m \in \{0, 1\}, \quad P(m = 0) = p,
        \quad s = ((1 - p) (1 + p\, a^2))^{-1/2}

    :math:`a` is the limit of `selu`, about -1.758.

    - Gradient for `x`: :math:`s\, m\, \bar y`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.alpha_dropout(xgrad.zeros(1000), p=0.5, training=True)
    >>> len(set(y.tolist()))
    2
    """
    return _alpha_dropout("alpha_dropout", x, p, training, inplace, generator, None)


def feature_alpha_dropout(
    x: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace whole channels by the limit of `selu`, each with probability `p`.

    The result is scaled and shifted, as by `alpha_dropout`.

    Parameters
    ----------
    x : Tensor
        Of shape (batch, channels, ...), floating.
    p : float, default 0.5
        The probability, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default False
        Whether to replace channels.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1, or `x` has fewer than two axes.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math::

        y = s\, (m\, x + (1 - m)\, a - p\, a), \quad m \in \{0, 1\}, \quad P(m = 0) = p,
        \quad s = ((1 - p) (1 + p\, a^2))^{-1/2}

    :math:`a` is the limit of `selu`, about -1.758, and :math:`m` is drawn for each channel.

    - Gradient for `x`: :math:`s\, m\, \bar y`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.feature_alpha_dropout(
    ...     xgrad.zeros((10, 8, 5)), training=True
    ... )
    >>> xgrad.all(xgrad.min(y, axis=2) == xgrad.max(y, axis=2))
    Tensor(True)
    """
    return _alpha_dropout("feature_alpha_dropout", x, p, training, inplace, generator, 2)
