"""The Gaussian error linear unit, and the normal distribution function that it multiplies by."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.dtypes import FLOATING
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative
from xgrad.support.hints import shown

# The constant c, and the coefficients, highest degree first, of a polynomial in
# t = 1 - 2 c / (z + c): the Chebyshev interpolant on [-1, 1] of (z + c) * P(X > z) / exp(-z**2 / 2)
# for a standard normal X and z >= 0. Relative errors: 6e-8 and 2e-18.
_TAIL_32 = (
    3.125,
    (
        0.0001319771261,
        7.704097695e-06,
        -0.00111144958,
        -8.081320384e-05,
        0.007988796399,
        -0.005319897471,
        -0.0638251056,
        0.2526604764,
        -0.5249630382,
        0.7334536553,
    ),
)
_TAIL_64 = (
    5.0,
    (
        3.739586020518108e-11,
        1.2454987689223563e-10,
        -3.668771848230918e-10,
        -1.5327446792134331e-09,
        1.914301602439945e-09,
        1.1236740394470787e-08,
        -7.963852408411641e-09,
        -7.037494441348362e-08,
        3.961291147506015e-08,
        4.36305279754606e-07,
        -3.342510524929374e-07,
        -2.770665289718086e-06,
        3.97968779625356e-06,
        1.6681605367626834e-05,
        -4.976242894253767e-05,
        -5.937579705100071e-05,
        0.0005448989888059025,
        -0.0007978693910589953,
        -0.0029933767615333666,
        0.020795066799429305,
        -0.06911863870689271,
        0.165020366170399,
        -0.3135331566712872,
        0.49530561596997624,
        -0.6653825028900568,
        0.769193049750063,
    ),
)


_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_FAR = 40  # where the density is 0 in both dtypes


def _bounded(xp: Any, x: Any) -> Any:
    """Limit numbers from above: the product of inf and a density of 0 would be NaN.

    At -inf, the derivative is NaN, like the result.
    """
    return xp.minimum(x, _FAR)


def _relative_density(xp: Any, x: Any) -> Any:
    """Return the standard normal density at each element, relative to the density at 0."""
    return xp.exp(x * x * -0.5)


def _probability(xp: Any, x: Any, relative: Any) -> Any:
    c, (first, *rest) = _TAIL_64 if xp.finfo(x.dtype).bits > 32 else _TAIL_32
    distance = xp.abs(x) + c
    t = 1 - 2 * c / distance
    tail = t * first
    for coefficient in rest[:-1]:
        tail += coefficient
        tail *= t
    tail += rest[-1]
    tail *= relative
    tail /= distance
    return xp.where(x >= 0, 1 - tail, tail)


@derivative(
    lambda g, xp, x: g * (_relative_density(xp, x) * _DENSITY_AT_0),
    lowest=FLOATING,
    highest=FLOATING,
)
def _normal_probability(xp: Any, x: Any, /) -> Any:
    r"""Return the probability that a standard normal number is below each element.

    Small probabilities are exact. `special.ndtr` is a kernel of SciPy, which is optional.

    Notes
    -----
    .. math:: y = \Phi(x) = \frac{1}{\sqrt{2 \pi}} \int_{-\infty}^x e^{-t^2 / 2}\, dt

    - Gradient for `x`: :math:`\bar y\, \frac{1}{\sqrt{2 \pi}}\, e^{-x^2 / 2}`
    """
    return _probability_below(xp, x)


@overridable
def _probability_below(xp: Any, x: Any) -> Any:
    return _probability(xp, x, _relative_density(xp, x))


def _slope(xp: Any, x: Any, probability: Any, relative: Any) -> Any:
    return probability + _bounded(xp, x) * (relative * _DENSITY_AT_0)


def _gelu_rule(g: Any, xp: Any, x: Any, slope: Any) -> Any:
    if slope is None:
        slope = _slope(xp, x, call_op(_normal_probability, xp, x), _relative_density(xp, x))
    return g * slope


@overridable
def _gelu_values(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the results and the derivatives, which share most of the arithmetic."""
    relative = _relative_density(xp, x)
    probability = _probability(xp, x, relative)
    return x * probability, _slope(xp, x, probability, relative)


@derivative(_gelu_rule, lowest=FLOATING, highest=FLOATING, residual="slope", upcast=True)
def _gelu(xp: Any, x: Any, /) -> Any:
    return _gelu_values(xp, x)


_CUBIC, _SCALE = 0.044715, math.sqrt(2 / math.pi)


def _gelu_tanh_rule(g: Any, xp: Any, x: Any, slope: Any) -> Any:
    return g * (_tangent_and_slope(xp, x)[1] if slope is None else slope)


def _tangent_and_slope(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the hyperbolic tangents and the derivatives of `gelu`."""
    tangent = xp.tanh(x * (1 + _CUBIC * (x * x)) * _SCALE)
    x = _bounded(xp, x)
    part = (1 - tangent * tangent) * x
    part = part * _SCALE + part * x * x * (3 * _SCALE * _CUBIC)
    return tangent, (1 + tangent + part) * 0.5


@overridable
def _gelu_tanh_values(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the results and the derivatives, which share most of the arithmetic."""
    tangent, slope = _tangent_and_slope(xp, x)
    return x * (1 + tangent) * 0.5, slope


@derivative(_gelu_tanh_rule, lowest=FLOATING, highest=FLOATING, residual="slope", upcast=True)
def _gelu_tanh(xp: Any, x: Any, /) -> Any:
    return _gelu_tanh_values(xp, x)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    r"""Return ``x * P(X <= x)`` for a standard normal X, the Gaussian error linear unit.

    D. Hendrycks, K. Gimpel, "Gaussian error linear units", arXiv:1606.08415, 2016.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    approximate : {"none", "tanh"}, default "none"
        Whether to approximate the probability by a hyperbolic tangent, which is faster.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `approximate` is none of these.

    Notes
    -----
    .. math:: y = x\, \Phi(x), \quad \Phi(x) \approx \frac{1 + \tanh(u)}{2}, \quad
        u = \sqrt{\frac{2}{\pi}} \left(x + 0.044715\, x^3\right)

    - Gradient for `x`: :math:`\bar y \left(\Phi(x) + x\, \frac{1}{\sqrt{2 \pi}}\, e^{-x^2 /
      2}\right)`; of the approximation, :math:`\frac{\bar y}{2} \left(1 + \tanh(u) + x\, (1 -
      \tanh^2(u))\, u'\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.gelu(xgrad.asarray([-1.0, 0.0, 1.0]))
    Tensor([-0.15865526,  0.        ,  0.8413447 ])
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(
            f"gelu: expected approximate of 'none' or 'tanh', got {shown(approximate)}"
        )
    return _gelu_tanh(x) if approximate == "tanh" else _gelu(x)
