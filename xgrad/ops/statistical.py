"""Reductions: the standard's statistical functions, running sums and products, and `all` and `any`."""

from __future__ import annotations

import math
from typing import Any

from xgrad.core.dtypes import FLOATING, INTEGER, is_complex
from xgrad.ops.declare import (
    CORRECTION,
    DTYPE,
    Axis,
    broadcast_back,
    count,
    cumulative,
    derivative,
    normalize_axes,
    reduction,
    restore_axes,
    slice_axis,
)
from xgrad.support.docstrings import documented

__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "logsumexp", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip

sum = reduction("sum", lambda g, xp, x_shape, axis: broadcast_back(xp, g, x_shape, axis), DTYPE,
    doc="Return the sum along axes; 0 where there is nothing to sum.",
    example="[[1.0, 2.0], [3.0, 4.0]], axis=0 -> [4., 6.]", kind=INTEGER)  # fmt: skip

mean = reduction("mean", lambda g, xp, x_shape, axis: broadcast_back(xp, g / count(x_shape, axis), x_shape, axis),
    doc="Return the mean along axes.",
    example="[[1.0, 2.0], [3.0, 4.0]], axis=0 -> [2., 3.]", kind=FLOATING, upcast=True)  # fmt: skip


def _extremum_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    """Distribute the gradient of an extremum evenly among the elements that equal it."""
    ties = xp.astype(x == restore_axes(xp, out, x.shape, axis), g.dtype)
    share = restore_axes(xp, g, x.shape, axis) / xp.sum(ties, axis=axis, keepdims=True)
    return share * ties


max = reduction("max", _extremum_rule, raises="If there are no elements to reduce.", highest=FLOATING,
    doc="Return the largest element along axes; those that tie share the gradient equally.",
    example="[[1.0, 4.0], [3.0, 2.0]], axis=0 -> [3., 4.]")  # fmt: skip

min = reduction("min", _extremum_rule, raises="If there are no elements to reduce.", highest=FLOATING,
    doc="Return the smallest element along axes; those that tie share the gradient equally.",
    example="[[1.0, 4.0], [3.0, 2.0]], axis=0 -> [1., 2.]")  # fmt: skip


def exclusive_cumprod(xp: Any, x: Any) -> Any:
    """Return for each element of the last axis the product of those before it."""
    return xp.cumulative_prod(x, axis=-1, include_initial=True)[..., :-1]


def _prod_rule(g: Any, xp: Any, x: Any, axis: Axis) -> Any:
    """The derivative by an element is the product of all the others: of those before and after it."""
    shape, axes = tuple(x.shape), normalize_axes(len(x.shape), axis)
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    rows = xp.reshape(xp.permute_dims(x, kept + axes), (*(shape[a] for a in kept), count(shape, axis)))
    others = exclusive_cumprod(xp, rows) * xp.flip(exclusive_cumprod(xp, xp.flip(rows, axis=-1)), axis=-1)
    others = xp.reshape(others, tuple(shape[a] for a in kept + axes))
    inverse = tuple((kept + axes).index(a) for a in range(len(shape)))
    return restore_axes(xp, g, shape, axis) * xp.permute_dims(others, inverse)


prod = reduction("prod", _prod_rule, DTYPE,
    doc="Return the product along axes; 1 where there is nothing to multiply.", example="[2.0, 0.0, 5.0] -> 0.",
    notes="The derivatives are exact at zeros too, at any order.", kind=INTEGER, upcast=True)  # fmt: skip


def _deviation(xp: Any, x: Any, axis: Axis, correction: float) -> Any:
    """Return the distance from the mean over the degrees of freedom, NaN where there are none."""
    degrees = count(x.shape, axis) - correction
    return (x - xp.mean(x, axis=axis, keepdims=True)) * (1 / degrees if degrees > 0 else math.nan)


var = reduction("var",
    lambda g, xp, x, axis, correction: restore_axes(xp, g, x.shape, axis) * (2 * _deviation(xp, x, axis, correction)),
    CORRECTION,
    doc="Return the variance along axes.", example="[1.0, 3.0], correction=1 -> 2.", kind=FLOATING,
    upcast=True)  # fmt: skip


def _std_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis, correction: float) -> Any:
    some = xp.where(out == 0, 0, g / xp.where(out == 0, 1, out))
    return restore_axes(xp, some, x.shape, axis) * _deviation(xp, x, axis, correction)


std = reduction("std", _std_rule, CORRECTION,
    doc="Return the standard deviation along axes; where it is 0, and has a kink, so is its derivative.",
    example="[1.0, 3.0] -> 1.", kind=FLOATING, upcast=True)  # fmt: skip


def _logsumexp_rule(g: Any, xp: Any, x: Any, out: Any, axis: Axis) -> Any:
    return restore_axes(xp, g, x.shape, axis) * xp.exp(x - restore_axes(xp, out, x.shape, axis))


@derivative(_logsumexp_rule, kind=FLOATING, upcast=True)
@documented()
def logsumexp(xp: Any, x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials along axes, without overflow.

    x : Tensor -- Integers count as float32.
    axis : int or tuple of int, optional -- The axes to reduce; by default all.
    keepdims
    returns Tensor -- Of the shape of `x` without the reduced axes; minus infinity for no elements. Of complex numbers
        it is the principal value.

    >>> xgrad.logsumexp(xgrad.asarray([1e4, 1e4]))
    Tensor(10000.693)
    """
    if 0 in x.shape:
        return xp.full_like(xp.sum(x, axis=axis, keepdims=keepdims), -math.inf)
    top = xp.max(xp.real(x) if is_complex(x.dtype) else x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)  # inf - inf would be NaN
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else xp.squeeze(total, axis=normalize_axes(len(x.shape), axis))


def _cumulative_sum_rule(g: Any, xp: Any, x_shape: tuple[int, ...], axis: int | None, include_initial: bool) -> Any:
    axis = (axis or 0) % len(x_shape)
    g = g[slice_axis(axis, 1)] if include_initial else g
    return xp.flip(xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis), axis=axis)


cumulative_sum = cumulative("cumulative_sum", _cumulative_sum_rule,
    doc="Return the running sum along an axis.", example="[1.0, 2.0, 3.0] -> [1., 3., 6.]", upcast=True)  # fmt: skip


def _reverse_linear_scan(xp: Any, g: Any, x: Any) -> Any:
    """Return s with ``s[i] = g[i] + x[i + 1] * s[i + 1]`` along the last axis.

    By doubling, in log2(n) steps: no division, so zeros do no harm, and differentiable like any product.
    """
    n, step, factors = x.shape[-1], 1, x
    while step < n:  # factors[i] carries s[i + step] to s[i]
        factors = x[..., 1:] if step == 1 else factors[..., : n - step] * factors[..., step // 2 :]
        g = xp.concat([g[..., :-step] + factors * g[..., step:], g[..., -step:]], axis=-1)
        step *= 2
    return g


def _cumulative_prod_rule(g: Any, xp: Any, x: Any, axis: int | None, include_initial: bool) -> Any:
    """The derivative by an element is the product of those before it, times what the later ones make of `g`."""
    axis = (axis or 0) % len(x.shape)
    g = g[slice_axis(axis, 1)] if include_initial else g
    g, x = xp.moveaxis(g, axis, -1), xp.moveaxis(x, axis, -1)
    return xp.moveaxis(exclusive_cumprod(xp, x) * _reverse_linear_scan(xp, g, x), -1, axis)


cumulative_prod = cumulative("cumulative_prod", _cumulative_prod_rule,
    doc="Return the running product along an axis.", example="[1.0, 2.0, 3.0] -> [1., 2., 6.]",
    notes="The derivatives are exact at zeros too, at any order.", upcast=True)  # fmt: skip

any = reduction("any", None, section="utility",
    doc="Return whether some element along axes is true, or not 0.", example="[False, True] -> True",
    takes="Of any shape and dtype", returns="Bools, of the shape of `x` without the reduced axes.")  # fmt: skip

all = reduction("all", None, section="utility",
    doc="Return whether all elements along axes are true, or not 0.", example="[False, True] -> False",
    takes="Of any shape and dtype", returns="Bools, of the shape of `x` without the reduced axes.")  # fmt: skip
