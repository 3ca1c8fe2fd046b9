"""Dropout layers."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.checks import checked_flag
from xgrad.nn.functional import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from xgrad.nn.module import Module
from xgrad.ops.dropout import check_probability


class Dropout(Module):
    r"""Random zeros in training mode, the identity in evaluation mode: see `functional.dropout`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each element is replaced by 0. The others are
        divided by ``1 - p``.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1.
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Notes
    -----
    .. math:: y = \frac{m\, x}{1 - p}, \quad m \in \{0, 1\}, \quad P(m = 0) = p

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Dropout(0.75)
    >>> sorted(set(layer(xgrad.ones(100)).tolist()))
    [0.0, 4.0]
    >>> layer.eval()(xgrad.ones(2))
    Tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        check_probability(name, p)
        self.p, self.inplace = p, checked_flag(name, "inplace", inplace)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace=True" if self.inplace else f"p={self.p}"


class Dropout1d(Dropout):
    """Dropout of whole channels of sequences: see `functional.dropout1d`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each channel is replaced by 0.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1; in the call, if the input is not of shape (channels, length)
        or (batch, channels, length).
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.Dropout1d(0.75)(xgrad.ones((1, 100, 2)))
    >>> sorted(set(map(tuple, y[0].tolist())))
    [(0.0, 0.0), (4.0, 4.0)]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """Dropout of whole channels of images: see `functional.dropout2d`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each channel is replaced by 0.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1; in the call, if the input is not of shape (batch, channels,
        height, width).
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Dropout2d().eval()(xgrad.ones((1, 1, 1, 2)))
    Tensor([[[[1., 1.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropout):
    """Dropout of whole channels of volumes: see `functional.dropout3d`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each channel is replaced by 0.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1; in the call, if the input is not of shape (channels, depth,
        height, width) or (batch, channels, depth, height, width).
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Dropout3d().eval()(xgrad.ones((1, 1, 1, 2)))
    Tensor([[[[1., 1.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropout):
    """Dropout that preserves mean 0 and variance 1: see `functional.alpha_dropout`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each element is replaced.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1.
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> len(set(xgrad.nn.AlphaDropout()(xgrad.zeros(100)).tolist()))
    2
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(Dropout):
    """Dropout of whole channels that preserves mean 0 and variance 1.

    See `functional.feature_alpha_dropout`.

    Parameters
    ----------
    p : float, default 0.5
        The probability, from 0 to 1, with which each channel is replaced.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1; in the call, if the input has fewer than two axes.
    TypeError
        If `p` is not a number; in the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.FeatureAlphaDropout()(xgrad.zeros((10, 8, 5)))
    >>> xgrad.all(xgrad.min(y, axis=2) == xgrad.max(y, axis=2))
    Tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return feature_alpha_dropout(input, self.p, self.training, self.inplace)
