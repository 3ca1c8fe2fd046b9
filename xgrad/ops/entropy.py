"""Logarithmic products and entropies under SciPy's names, as compositions of the standard's functions."""

from __future__ import annotations

import math
from typing import Any

from xgrad.ops.declare import Binary, Unary, as_arrays
from xgrad.ops.special import kernel


def _xlog(name: str, log: str, pole: float, *, doc: str, example: str, notes: str) -> Binary:
    """Declare the product of a number and a logarithm, whose pole is given."""

    def forward(xp: Any, x: Any, y: Any, /) -> Any:
        x, y = as_arrays(xp, x, y)
        return x * getattr(xp, log)(xp.where((x == 0) & ~xp.isnan(y), 1 + pole, y))

    def x_gradient(g: Any, xp: Any, x: Any, y: Any) -> Any:
        x, y = as_arrays(xp, x, y)
        return g * getattr(xp, log)(xp.where((x == 0) & (y <= pole), 1 + pole, y))

    def y_gradient(g: Any, xp: Any, x: Any, y: Any) -> Any:
        x, y = as_arrays(xp, x, y)
        return g * (x / xp.where((x == 0) & (y == pole), 1, y - pole))

    return kernel(name, "x y", x_gradient, y_gradient, forward=forward, doc=doc, example=example, notes=notes)


xlogy = _xlog(
    "xlogy",
    "log",
    0,
    doc="Return x * log(y), which is 0 where `x` is 0, for any `y` but NaN.",
    example="[0.0, 2.0], [0.0, 1.0] -> [0., 0.]",
    notes="Differentiable to any order; where `x` is 0 and `y` not positive, both derivatives are 0",
)
xlog1py = _xlog(
    "xlog1py",
    "log1p",
    -1,
    doc="Return x * log(1 + y), which is 0 where `x` is 0, for any `y` but NaN, and exact for small `y`.",
    example="[0.0, 2.0], [-1.0, 1e-9] -> [0.e+00, 2.e-09]",
    notes="Differentiable to any order; where `x` is 0 and `y` not above -1, both derivatives are 0",
)


def _entr(xp: Any, x: Any, /) -> Any:
    return xp.where(x < 0, -math.inf, 0 - x * xp.log(xp.where(x <= 0, 1, x)))


entr: Unary = kernel(
    "entr",
    "x",
    lambda g, xp, x: -g * (xp.log(x) + 1),
    forward=_entr,
    doc="Return -x * log(x), which is 0 at 0 and minus infinity below.",
    example="[0.0, 0.5, 1.0] -> [0.       , 0.346..., 0.       ]",
    notes="Differentiable to any order; the derivative at 0 is infinite, and below it is NaN",
)


def _log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y) of positive numbers, exact also where they are close, and where their ratio overflows."""
    distance = (x - y) / y
    close = xp.abs(distance) < 0.5
    return xp.where(close, xp.log1p(xp.where(close, distance, 0)), xp.log(x) - xp.log(y))


def _in_domain(xp: Any, x: Any, y: Any, inside: Any, at_zero: Any, outside: Any) -> Any:
    """Return ``inside(x, y)`` for positive numbers, ``at_zero(x, y)`` for an `x` of 0, and elsewhere a number."""
    x, y = as_arrays(xp, x, y)
    both, zero = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    # Elsewhere 1 takes part, so that no NaN enters a gradient.
    values = inside(xp.where(both, x, 1), xp.where(both, y, 1))
    rest = xp.where(xp.isnan(x) | xp.isnan(y), math.nan, xp.full_like(x + y, outside))
    return xp.where(both, values, xp.where(zero, at_zero(x, y), rest))


def _x_gradient(g: Any, xp: Any, x: Any, y: Any, constant: int) -> Any:
    """log(x / y), plus a constant; minus infinity for an `x` of 0."""

    def at_zero(x: Any, y: Any) -> Any:
        return xp.where(y > 0, -math.inf, xp.full_like(x + y, math.nan))

    return g * _in_domain(xp, x, y, lambda x, y: _log_ratio(xp, x, y) + constant, at_zero, math.nan)


def _rel_entr(xp: Any, x: Any, y: Any, /) -> Any:
    return _in_domain(xp, x, y, lambda x, y: x * _log_ratio(xp, x, y), lambda x, y: xp.zeros_like(x + y), math.inf)


def _rel_entr_y(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(xp, x, y, lambda x, y: -x / y, lambda x, y: xp.zeros_like(x + y), math.nan)


rel_entr: Binary = kernel(
    "rel_entr",
    "x y",
    lambda g, xp, x, y: _x_gradient(g, xp, x, y, 1),
    _rel_entr_y,
    forward=_rel_entr,
    doc="Return x * log(x / y), the terms of the relative entropy of one distribution to another.\n\n"
    "It is 0 where `x` is 0 and `y` not negative, and infinite elsewhere outside of positive numbers.",
    example="[0.0, 0.5], [0.5, 0.25] -> [0.       , 0.346...]",
    notes="Differentiable to any order. Where `x` is 0, the derivative by a positive `y` is 0, that by `x` minus "
    "infinity;\nwhere the result is infinite, they are NaN",
)


def _kl_div(xp: Any, x: Any, y: Any, /) -> Any:
    return _in_domain(xp, x, y, lambda x, y: x * _log_ratio(xp, x, y) - x + y, lambda x, y: x + y, math.inf)


def _kl_div_y(g: Any, xp: Any, x: Any, y: Any) -> Any:
    return g * _in_domain(xp, x, y, lambda x, y: (y - x) / y, lambda x, y: xp.ones_like(x + y), math.nan)


kl_div: Binary = kernel(
    "kl_div",
    "x y",
    lambda g, xp, x, y: _x_gradient(g, xp, x, y, 0),
    _kl_div_y,
    forward=_kl_div,
    doc="Return x * log(x / y) - x + y, the terms of the Kullback-Leibler divergence, none of them negative.\n\n"
    "It is `y` where `x` is 0 and `y` not negative, and infinite elsewhere outside of positive numbers. PyTorch's\n"
    "``kl_div`` is another function.",
    example="[0.0, 0.5], [0.5, 0.25] -> [0.5      , 0.096...]",
    notes="Differentiable to any order. Where `x` is 0, the derivative by a positive `y` is 1, that by `x` minus "
    "infinity;\nwhere the result is infinite, they are NaN",
)


def _log_expit(xp: Any, x: Any, /) -> Any:
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


log_expit: Unary = kernel(
    "log_expit",
    "x",
    lambda g, xp, x: g / (1 + xp.exp(x)),
    forward=_log_expit,
    doc="Return the logarithm of `expit`, without overflow or loss of small probabilities.",
    example="[-1e4, 0.0] -> [-1.00...e+04, -6.93...e-01]",
)
