"""The standard's utility functions: tests of all elements, and differences."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.dtypes import INTEGER
from xgrad.core.tensor import Tensor
from xgrad.ops.axes import cut, reduction
from xgrad.ops.declare import derivative
from xgrad.ops.manipulation import concat
from xgrad.support.hints import explained

any = reduction(
    "any",
    None,
    section="utility",
    doc="Return whether some element along axes is true, or not 0.",
    example="[False, True] -> True",
    takes="Of any shape and dtype",
    returns="Bools, of the shape of `x` without the reduced axes.",
)

all = reduction(
    "all",
    None,
    section="utility",
    doc="Return whether all elements along axes are true, or not 0.",
    example="[False, True] -> False",
    takes="Of any shape and dtype",
    returns="Bools, of the shape of `x` without the reduced axes.",
)


def _diff_rule(g: Any, xp: Any, x_shape: tuple[int, ...], axis: int, n: int) -> Any:
    """The transpose of a difference is a difference: of `g` between zeros, with its sign changed n times."""
    axis %= len(x_shape)
    before, behind = ((*g.shape[:axis], k, *g.shape[axis + 1 :]) for k in (n, x_shape[axis] - g.shape[axis]))
    like = {"dtype": g.dtype, "device": getattr(g, "device", None)}
    padded = xp.concat([xp.zeros(before, **like), g, xp.zeros(behind, **like)], axis=axis)
    return (-1) ** n * xp.diff(padded, axis=axis, n=n)


@derivative(_diff_rule, kind=INTEGER)
def _diff(xp: Any, x: Any, /, *, axis: int, n: int) -> Any:
    for _ in range(min(n, x.shape[axis])):
        x = x[cut(axis, 1)] - x[cut(axis, None, -1)]
    return x


@explained
def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the differences between neighbours along an axis, n times over.

    Parameters
    ----------
    x : Tensor
        Numbers, with at least one axis; bools count as integers.
    axis : int, default -1
        Along what to take differences.
    n : int, default 1
        How many times; 0 returns the elements themselves.
    prepend, append : Tensor, optional
        What to put before and behind `x` first: of its shape, but for the length of `axis`. They have gradients, too.

    Returns
    -------
    Tensor
        With `axis` shorter by `n`, and empty where there is not enough.

    Raises
    ------
    ValueError
        If `n` is negative, or the shapes do not agree.
    IndexError
        If there is no such axis.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    Differentiable to any order. Python array API standard, utility functions: ``diff``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.diff(xgrad.asarray([1.0, 4.0, 9.0]), prepend=xgrad.asarray([0.0]))
    Tensor([1., 3., 5.])
    """
    x = as_tensor("diff", "x", x)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"diff: axis {axis} is out of bounds for shape {x.shape}")
    if n < 0:
        raise ValueError(f"diff: expected n to be at least 0, got {n}")
    parts = [part for part in (prepend, x, append) if part is not None]
    return _diff(x if len(parts) == 1 else concat(parts, axis=axis), axis=axis % x.ndim, n=n)
