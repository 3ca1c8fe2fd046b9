"""Functions of the standard along axes: how they are declared, and what their rules share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xgrad.core.arguments import as_int
from xgrad.core.dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGER
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import make_callable
from xgrad.support.docstrings import write_out

Axis = int | tuple[int, ...] | None

#: A keyword of a function along axes: its name, its default, and its type and its meaning in the documentation.
Option = tuple[str, Any, str, str]

AXES: Option = ("axis", None, "int or tuple of int, optional", "What to reduce; by default all.")
SEARCHED: Option = ("axis", None, "int, optional", "Along what to search; by default all elements in row order.")
RUNNING: Option = ("axis", None, "int, optional", "Along what to go; it may be left out where there is just one axis.")
LAST: Option = ("axis", -1, "int, default -1", "Along what to sort.")
KEEPDIMS: Option = ("keepdims", False, "bool, default False", "Whether reduced axes stay, with length 1.")
DTYPE: Option = (
    "dtype",
    None,
    "dtype, optional",
    "That to compute in and to return; by default that of `x`, and at least int64 for integers.",
)
CORRECTION: Option = (
    "correction",
    0.0,
    "float, default 0",
    "What to take off the number of elements: 1 for the unbiased variance, which is PyTorch's default.",
)
INITIAL: Option = (
    "include_initial",
    False,
    "bool, default False",
    "Whether the result starts with that of no elements, and so is longer by one.",
)
DESCENDING: Option = ("descending", False, "bool, default False", "Whether the largest comes first.")
STABLE: Option = ("stable", True, "bool, default True", "Whether equal elements keep their order.")

_TAKES = {
    BOOLEAN: "Real numbers or bools",
    INTEGER: "Numbers; bools count as integers",
    FLOATING: "Integers and bools count as float32",
}

_DOC = """{summary}

x : Tensor -- {takes}.
{options}
returns Tensor -- {returns}
{raises}
{notes}

>>> xgrad.{name}(xgrad.asarray({data}){keywords})
Tensor({value})
"""


def along_axes(
    name: str,
    rule: Rule | None,
    *options: Option,
    doc: str,
    example: str,
    returns: str,
    section: str = "statistical",
    kind: int = BOOLEAN,
    highest: int = COMPLEX,
    some: bool = False,
    takes: str = "",
    raises: str = "",
    notes: str = "",
) -> Callable[..., Tensor]:
    """Declare a function of the standard of one tensor and these options, given its rule.

    `doc` is its summary, `example` reads ``data, options -> values``, and `raises` what makes it a ValueError; `some`
    says that there must be some axis, `kind` and `highest` which dtypes it takes.
    """

    def forward(xp: Any, x: Any, /, **options: Any) -> Any:
        if some and not x.shape:
            raise ValueError("expected x with at least one axis")
        return getattr(xp, name)(x, **options)

    arguments, _, value = example.partition(" -> ")
    data, bracket, keywords = arguments.rpartition("]")
    text = _DOC.format(
        name=name,
        summary=doc,
        takes=takes or _TAKES[kind],
        options="\n".join([f"{name} : {kind} -- {meaning}" for name, _, kind, meaning in options]),
        returns=returns,
        raises=f"raises ValueError -- {raises}\n" if raises else "",
        notes=notes or ("Differentiable to any order." if rule else "Not differentiable: no gradient flows."),
        data=data + bracket,
        keywords=keywords,
        value=value,
    )
    defaults = {name: default for name, default, *_ in options}
    function = Function.of(name, forward, (rule,), lowest=kind, highest=highest, _keywords=defaults, native=not some)
    return make_callable(function, write_out(text, name, f"{section} functions"), "xgrad.ops." + section)


def reduction(name: str, rule: Rule | None, *more: Option, axis: Option = AXES, **rest: Any) -> Callable[..., Tensor]:
    """Declare a function that reduces axes: see `along_axes`."""
    returns = rest.pop("returns", "Of the shape of `x` without the reduced axes.")
    return along_axes(name, rule, axis, *more, KEEPDIMS, returns=returns, **rest)


def cumulative(name: str, rule: Rule | None, **rest: Any) -> Callable[..., Tensor]:
    """Declare a function that accumulates along an axis: see `along_axes`."""
    returns = "Of the shape of `x`, or longer by one along `axis`."
    raises = "If there are no axes, or several and none is named."
    more = {"returns": returns, "raises": raises, **rest}
    return along_axes(name, rule, RUNNING, DTYPE, INITIAL, kind=INTEGER, some=True, **more)


def normalize_axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    """Return the axes that are reduced, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,)))) if ndim else ()


def axis_of_reals(op: str, x: Tensor, axis: int | None) -> int:
    """Return an axis of real numbers, counted from the front; None stands for the only one."""
    if x.dtype.kind == "c":
        raise TypeError(f"{op}: expected real numbers for x, got {x.dtype}")
    if not x.ndim:
        raise ValueError(f"{op}: expected x with at least one axis, got shape ()")
    if axis is None and x.ndim > 1:
        raise ValueError(f"{op}: expected an axis for x of shape {x.shape}")
    return front_axis(op, x, 0 if axis is None else as_int(op, "axis", axis))


def front_axis(op: str, x: Tensor, axis: int) -> int:
    """Return an axis counted from the front; IndexError names the op."""
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"{op}: axis {axis} is out of bounds for shape {x.shape}")
    return axis % x.ndim


def count(shape: tuple[int, ...], axis: Axis) -> int:
    """Return how many elements are reduced to one."""
    return math.prod(shape[a] for a in normalize_axes(len(shape), axis))


def restore_axes(xp: Any, reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Give a reduced array its axes back, with length 1, so that it broadcasts against what it came from."""
    axes = normalize_axes(len(shape), axis)
    return xp.reshape(reduced, tuple(1 if a in axes else n for a, n in enumerate(shape)))


def broadcast_back(xp: Any, g: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Return a reduced array repeated over the axes that were reduced."""
    return xp.broadcast_to(restore_axes(xp, g, shape, axis), shape)


def slice_axis(axis: int, start: int | None, stop: int | None = None) -> tuple[Any, ...]:
    """Return the key that selects from `start` to `stop` along an axis that is counted from the front."""
    return (*(slice(None),) * axis, slice(start, stop), ...)
