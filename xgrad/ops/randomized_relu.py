"""The activation with random slopes below 0: `rrelu`."""

from __future__ import annotations

from xgrad.core.arguments import as_number
from xgrad.core.dtypes import float16, float32
from xgrad.core.tensor import Tensor
from xgrad.ops.activations import as_floating, leaky_relu, sloped_relu
from xgrad.ops.in_place import in_place
from xgrad.ops.tensor_conversion import astype
from xgrad.random import Generator, uniform


def check_slopes(name: str, lower: float, upper: float) -> None:
    """Raise an error unless two slopes are numbers in order."""
    if not as_number(name, "lower", lower) <= as_number(name, "upper", upper):
        raise ValueError(f"{name}: expected lower <= upper, got {lower} and {upper}")


def rrelu(
    x: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Return `x` where it is positive, else `x` times a random slope.

    B. Xu, N. Wang, T. Chen, M. Li, "Empirical evaluation of rectified activations in convolutional
    network", arXiv:1505.00853, 2015.

    Parameters
    ----------
    x : Tensor
        Of any shape, floating.
    lower, upper : float
        The bounds of the slopes, by default 1/8 and 1/3.
    training : bool, default False
        Whether each element gets a slope of its own, uniform between the bounds; otherwise, the
        slope is their mean.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `lower` is above `upper`.
    TypeError
        If a bound is not a number.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ s\, x & \text{otherwise} \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, s`, by the random
      slope :math:`s`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.rrelu(xgrad.asarray([-2.0, 3.0]), 0.25, 0.75)
    Tensor([-1.,  3.])
    """
    check_slopes("rrelu", lower, upper)
    x = as_floating("rrelu", x)
    if not training or lower == upper:
        return leaky_relu(x, (lower + upper) / 2, inplace)
    drawn = float32 if x.dtype == float16 else x.dtype
    slopes = uniform(x.shape, lower, upper, dtype=drawn, device=x.device, generator=generator)
    slopes = astype(slopes, x.dtype, copy=False)
    return in_place(sloped_relu, x, slopes) if inplace else sloped_relu(x, slopes)
