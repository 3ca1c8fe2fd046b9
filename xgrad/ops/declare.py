"""Declarations of ops: derivative rules beside the forward rule, and helpers of rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from sys import intern
from typing import Any, Concatenate, ParamSpec

from xgrad.core.arguments import front_axis
from xgrad.core.dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGER, NAMES, SCALARS
from xgrad.core.fast_paths import binary_fast_path, unary_fast_path
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.signatures import LazySignature
from xgrad.core.tensor import Tensor
from xgrad.core.views import Views
from xgrad.support.docstrings import write_out

P = ParamSpec("P")
Axis = int | tuple[int, ...] | None
Unary = Callable[[Any], Tensor]
Binary = Callable[[Any, Any], Tensor]


def derivative(
    *rules: Rule | None,
    kind: int | None = None,
    highest: int = COMPLEX,
    broadcasts: bool = False,
    residual: str = "",
    joint: bool = False,
    holomorphic: bool = True,
    scipy_promotion: bool = False,
    views: Views = False,
    autocast: str | None = None,
    upcast: bool = False,
    own_rule: bool = False,
    native: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare an op: its forward rule is decorated, its derivative rules, one for each input, are given here.

    `rules` has for each of the first parameters after `xp` the rule of its gradient, or None. The names of a rule's
    parameters choose what is saved: see `Function`. Where the forward rule takes ``*arrays``, one rule returns the
    gradients of all; with `joint`, one rule returns those of all inputs, as a tuple, and its `g` has those of all
    results. `kind` is the lowest kind of dtype (`dtypes.INTEGER`, ...) that the op works on; arrays of several
    kinds are promoted, unless it is None. The other options are attributes of `Op`.
    """

    def declare(forward: Callable[Concatenate[Any, P], Any]) -> Callable[P, Tensor]:
        flags = {"lowest": kind, "highest": highest, "holomorphic": holomorphic, "scipy_promotion": scipy_promotion}
        more: dict[str, Any] = {"broadcasts": broadcasts, "residual": residual, "views": views, "joint": joint}
        more |= {"autocast": autocast, "upcast": upcast, "own_rule": own_rule, "native": native}
        name = forward.__name__.lstrip("_")
        function = Function.of(name, forward, rules, **flags, **more)
        return make_callable(function, forward.__doc__, forward.__module__)

    return declare


def make_callable(function: Function, doc: str | None, module: str) -> Callable[..., Tensor]:
    """Return a function's callable with the name, signature and documentation that users look up."""
    f, count = function, len(function.inputs)
    one = count == 1 and "dtype" not in f.positional
    two = count == 2 and f.lowest is not None and not f.options
    call: Any
    if (all(f.rules) if one else two and all(f.rules) == any(f.rules)) and not (
        f.joint_backward or f.residual or f.cross_device
    ):
        call = (
            binary_fast_path(f.name, lambda: function, bool(f.autocast))
            if two
            else unary_fast_path(f.name, lambda: function, f.views, bool(f.autocast))
        )
    else:
        call = lambda *inputs, **options: function(*inputs, **options)  # noqa: E731
    function.public = call
    call.__name__ = call.__qualname__ = function.name
    call.__doc__, call.__module__ = doc, module
    call.__signature__, call.function = LazySignature(function), function
    return call  # type: ignore[no-any-return]


def call_op(op: Any, xp: Any, *inputs: Any, **options: Any) -> Any:
    """Call an op of the library in a rule: on tensors the op, which is recorded; on arrays its kernel or rule."""
    if isinstance(inputs[0], Tensor):
        return op(*inputs, **options)
    kernel = xp.__dict__.get("kernels", {}).get(op.function.name)  # its own: a failed lookup in a namespace is slow
    return op.function.forward(xp, *inputs, **options) if kernel is None else kernel(*inputs, **options)


def as_arrays(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two inputs as arrays, a scalar with the dtype of the other."""
    if type(x) in SCALARS:
        return xp.full_like(y, x), y
    return x, xp.full_like(x, y) if type(y) in SCALARS else y


_KINDS = {
    (BOOLEAN, COMPLEX): "any dtype",
    (BOOLEAN, INTEGER): "integers or bools",
    (INTEGER, INTEGER): "integers; bools count as such",
    (INTEGER, FLOATING): "real numbers; bools count as integers",
    (INTEGER, COMPLEX): "numbers; bools count as integers",
    (FLOATING, FLOATING): "real numbers; integers count as float32",
    (FLOATING, COMPLEX): "numbers; integers count as float32",
}

_ELEMENTWISE = write_out(
    """{summary}

{names} : Tensor -- Of any shape{broadcast}, on one device; {kind}.{scalar}
returns Tensor -- {result}
raises DeviceError -- If the tensors are on several devices.{raises}

{gradient}{section}

>>> xgrad.{name}({call})
Tensor({value})""",
    "{name}",
)


def elementwise(
    name: str,
    *rules: Rule | None,
    doc: str,
    example: str,
    kind: int = INTEGER,
    highest: int = COMPLEX,
    holomorphic: bool = True,
    of_bools: str | None = None,
    instead_for_bools: str = "",
    forward: Callable[..., Any] | None = None,
    native_of_reals: bool = False,
    views: Views = False,
    notes: str = "",
    standard: bool = True,
) -> Callable[..., Tensor]:
    """Declare a function that works element by element, of the standard or not, given a rule for each input.

    `doc` is its summary, and `example` reads ``arguments -> values``, with lists for tensors. `of_bools` names the op
    to use for bools alone, which the standard leaves open, and `instead_for_bools` what to write for bools, which are
    then refused; for `views` see `derivative`. `forward` is a forward rule other than the namespace's function of this
    name; if `native_of_reals`, it is for complex numbers only.
    """
    native, names = (_unary, "x") if len(rules) == 1 else (_binary, "x1, x2")
    flags = {"lowest": kind, "highest": highest, "holomorphic": holomorphic, "of_bools": of_bools, "views": views}
    flags["instead_for_bools"] = instead_for_bools
    flags |= {"native": forward is None, "native_of_reals": native_of_reals}
    function = Function.of(name, forward or native(name), rules, broadcasts=True, **flags)
    text = _document(function, names, doc, example, notes, standard)
    return make_callable(function, text, "xgrad.ops.elementwise")


def _unary(name: str) -> Callable[..., Any]:
    def unary(xp: Any, x: Any, /) -> Any:
        return getattr(xp, name)(x)

    return unary


def _binary(name: str) -> Callable[..., Any]:
    def binary(xp: Any, x1: Any, x2: Any, /) -> Any:
        return getattr(xp, name)(x1, x2)

    return binary


def _document(function: Function, names: str, summary: str, example: str, notes: str, standard: bool) -> str:
    arguments, _, value = example.partition(" -> ")
    binary = "," in names
    raises = "\nValueError\n    If the shapes do not broadcast." if binary else ""
    kind = "numbers or bools" if function.of_bools else _KINDS[function.lowest or BOOLEAN, function.highest]
    if function.instead_for_bools:
        raises += f"\nTypeError\n    If the input is of bools: {function.instead_for_bools}."
        kind = "numbers"
    if function.highest < COMPLEX:
        raises += f"\nTypeError\n    If an input is not of {NAMES[function.highest]}."
    gradient = "Differentiable to any order." if any(function.rules) else "Not differentiable: no gradient flows."
    return _ELEMENTWISE.format(
        raises=raises,
        section=f"\nPython array API standard, elementwise functions: ``{function.name}``." if standard else "",
        name=function.name,
        names=names,
        summary=summary,
        kind=kind,
        broadcast="s that broadcast" if binary else "",
        scalar=" Either may be a Python scalar, which promotes nothing." if binary else "",
        result="Of the shape that the inputs broadcast to." if binary else "Of the same shape.",
        gradient=notes or gradient,
        call=arguments.replace("[", "xgrad.asarray([").replace("]", "])"),
        value=value,
    )


#: A keyword of a function along axes: its entry in the docstring, and its default.
Option = tuple[str, Any]

AXES: Option = "axis : int or tuple of int, optional -- The axes to reduce; by default all.", None
SEARCHED: Option = "axis : int, optional -- The axis to search along; by default all elements in row order.", None
RUNNING: Option = "axis : int, optional -- The axis to go along; optional for one axis.", None
LAST: Option = "axis : int, default -1 -- The axis to sort along.", -1
KEEPDIMS: Option = "keepdims : bool, default False -- Whether reduced axes stay, with length 1.", False
DTYPE: Option = (
    "dtype : dtype, optional -- The dtype to compute in and to return; by default that of `x`, and at least int64 for "
    "integers.",
    None,
)
CORRECTION: Option = (
    "correction : float, default 0 -- Subtracted from the number of elements: 1 for the unbiased variance, PyTorch's "
    "default.",
    0.0,
)
INITIAL: Option = (
    "include_initial : bool, default False -- Whether the result starts with that of no elements, and is longer by 1.",
    False,
)
DESCENDING: Option = "descending : bool, default False -- Whether the largest comes first.", False
STABLE: Option = "stable : bool, default True -- Whether equal elements keep their order.", True

_TAKES = {
    BOOLEAN: "Real numbers or bools",
    INTEGER: "Numbers; bools count as integers",
    FLOATING: "Integers and bools count as float32",
}

_ALONG_AXES = write_out(
    """{summary}

x : Tensor -- {takes}.
{options}
returns Tensor -- {returns}{raises}

{notes}

>>> xgrad.{name}(xgrad.asarray({data}){keywords})
Tensor({value})""",
    "{name}",
    "{section} functions",
)


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
    upcast: bool = False,
) -> Callable[..., Tensor]:
    """Declare a function of the standard of one tensor and these options, given its rule.

    `doc` is its summary, `example` reads ``data, options -> values``, and `raises` is the cause of a ValueError; `some`
    requires at least one axis, `kind` and `highest` are the least and highest kinds of dtypes, and for `upcast` see
    `Op`.
    """

    def forward(xp: Any, x: Any, /, **options: Any) -> Any:
        if some and not x.shape:
            raise ValueError("expected x with at least one axis")
        return getattr(xp, name)(x, **options)

    arguments, _, value = example.partition(" -> ")
    data, bracket, keywords = arguments.rpartition("]")
    text = _ALONG_AXES.format(
        name=name,
        summary=doc,
        takes=takes or _TAKES[kind],
        options="\n".join([entry.replace(" -- ", "\n    ") for entry, _ in options]),
        returns=returns,
        raises=f"\n\nRaises\n------\nValueError\n    {raises}" if raises else "",
        notes=notes or ("Differentiable to any order." if rule else "Not differentiable: no gradient flows."),
        data=data + bracket,
        keywords=keywords,
        value=value,
        section=section,
    )
    defaults = {intern(entry.partition(" ")[0]): default for entry, default in options}  # faster as keywords
    flags: dict[str, Any] = {"lowest": kind, "highest": highest, "native": not some, "upcast": upcast}
    function = Function.of(name, forward, (rule,), _keywords=defaults, **flags)
    return make_callable(function, text, "xgrad.ops." + section)


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
    return front_axis(op, x, 0 if axis is None else axis)


def count(shape: tuple[int, ...], axis: Axis) -> int:
    """Return the number of elements that are reduced to one."""
    return math.prod(shape[a] for a in normalize_axes(len(shape), axis))


def restore_axes(xp: Any, reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Restore reduced axes with length 1, so that the array broadcasts against the input of the reduction."""
    axes = normalize_axes(len(shape), axis)
    return xp.reshape(reduced, tuple(1 if a in axes else n for a, n in enumerate(shape)))


def broadcast_back(xp: Any, g: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Return a reduced array repeated over the axes that were reduced."""
    return xp.broadcast_to(restore_axes(xp, g, shape, axis), shape)


def slice_axis(axis: int, start: int | None, stop: int | None = None) -> tuple[Any, ...]:
    """Return the key that selects from `start` to `stop` along an axis that is counted from the front."""
    return (*(slice(None),) * axis, slice(start, stop), ...)


def diagonal_key(shape: tuple[int, ...], offset: int = 0) -> tuple[Any, ...]:
    """Return the key of the diagonals of matrices in which the last two axes are one."""
    rows, columns = shape[-2:]
    size, start = rows * columns, offset if offset >= 0 else -offset * columns
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return (..., slice(min(start, size), min(start + length * (columns + 1), size), columns + 1))
