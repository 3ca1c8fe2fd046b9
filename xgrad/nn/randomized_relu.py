"""The activation with random slopes, as a module."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.checks import checked_flag
from xgrad.nn.functional import rrelu
from xgrad.nn.module import Module
from xgrad.ops.randomized_relu import check_slopes


class RReLU(Module):
    r"""Positive elements unchanged, and the others times a random slope: see `functional.rrelu`.

    In evaluation mode, the slope is the mean of the bounds.

    Parameters
    ----------
    lower, upper : float
        The bounds of the slopes, by default 1/8 and 1/3.
    inplace : bool, default False
        Whether the input gets the value, too.

    Raises
    ------
    ValueError
        If `lower` is above `upper`.
    TypeError
        If a bound is not a number.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ s\, x & \text{otherwise} \end{cases}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.RReLU(0.25, 0.75).eval()(xgrad.asarray([-2.0, 3.0]))
    Tensor([-1.,  3.])
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        check_slopes("RReLU", lower, upper)
        self.lower, self.upper = lower, upper
        self.inplace = checked_flag("RReLU", "inplace", inplace)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        text = f"lower={self.lower}, upper={self.upper}"
        return f"{text}, inplace=True" if self.inplace else text
