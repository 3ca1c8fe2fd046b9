"""Declarations of ops by forward and derivative rules, and helpers for rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from xgrad.core.arguments import front_axis
from xgrad.core.dtypes import COMPLEX, INTEGER, SCALARS
from xgrad.core.fast_paths import binary_fast_path, nary_fast_path, unary_fast_path
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.signatures import LazySignature
from xgrad.core.tensor import Tensor
from xgrad.core.views import Views

P = ParamSpec("P")
Axis = int | tuple[int, ...] | None
Unary = Callable[[Any], Tensor]
Binary = Callable[[Any, Any], Tensor]


def derivative(
    *rules: Rule | None,
    lowest: int | None = None,
    highest: int = COMPLEX,
    broadcasts: bool = False,
    residual: str = "",
    joint_backward: bool = False,
    holomorphic: bool = True,
    scipy_promotion: bool = False,
    views: Views = False,
    autocast: str | None = None,
    upcast: bool = False,
    own_rule: bool = False,
    native: bool = False,
    native_of_reals: bool = False,
    of_bools: str | None = None,
    instead_for_bools: str = "",
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare an op: decorate its forward rule, and pass one derivative rule for each input.

    `rules` has the rule of the gradient, or None, for each of the first parameters after `xp`. The
    names of a rule's parameters choose what is saved for backward: see `Function`. Where the
    forward rule takes ``*arrays``, one rule returns the gradients of all arrays. With
    `joint_backward`, one rule returns the gradients of all inputs as a tuple, and its `g` has the
    gradients of all results. `lowest` is the lowest kind of dtype (`dtypes.INTEGER`, ...) that the
    op works on; arrays of several kinds are promoted, unless it is None. The other options are
    attributes of `Op`.
    """

    def declare(forward: Callable[Concatenate[Any, P], Any]) -> Callable[P, Tensor]:
        function = Function.of(
            forward.__name__.lstrip("_"),
            forward,
            rules,
            lowest=lowest,
            highest=highest,
            broadcasts=broadcasts,
            residual=residual,
            joint_backward=joint_backward,
            holomorphic=holomorphic,
            scipy_promotion=scipy_promotion,
            views=views,
            autocast=autocast,
            upcast=upcast,
            own_rule=own_rule,
            native=native,
            native_of_reals=native_of_reals,
            of_bools=of_bools,
            instead_for_bools=instead_for_bools,
        )
        return make_callable(function, forward.__doc__, forward.__module__)

    return declare


def elementwise(
    *rules: Rule | None, lowest: int = INTEGER, **options: Any
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare a function that works element by element, with the options of `derivative`.

    The forward rule is the function of the same name in the namespace of each backend.
    """
    return derivative(*rules, lowest=lowest, broadcasts=True, native=True, **options)


def make_callable(function: Function, doc: str | None, module: str) -> Callable[..., Tensor]:
    """Return the public callable of a function, with its name, signature and documentation.

    Its source, as ``inspect`` and IPython's ``??`` show it, is the forward rule.
    """
    function.public = call = _path_of(function)
    call.__name__ = call.__qualname__ = function.name
    call.__doc__, call.__module__ = doc, module
    call.__signature__, call.function = LazySignature(function), function
    call.__wrapped__ = function.forward
    return call  # type: ignore[no-any-return]


def _path_of(function: Function) -> Any:
    """Return the fast path of a function, or its general call if it has none."""
    count, rules = len(function.inputs), function.rules
    is_plain = not (function.joint_backward or function.residual or function.cross_device)
    promotes_alone = function.lowest is not None and not function.options
    if is_plain and count == 1 and all(rules) and "dtype" not in function.positional:
        return unary_fast_path(function)
    if is_plain and count == 2 and promotes_alone and all(rules) == any(rules):
        return binary_fast_path(function)
    if is_plain and count > 2 and promotes_alone and all(rules) and not function.views:
        return nary_fast_path(function)

    def call_function(*inputs: Any, **options: Any) -> Any:
        return function(*inputs, **options)

    return call_function


def call_op(op: Any, xp: Any, *inputs: Any, **options: Any) -> Any:
    """Call an op of the library in a rule.

    On tensors, this calls the op, which is recorded; on arrays, its kernel or forward rule.
    """
    if isinstance(inputs[0], Tensor):
        return op(*inputs, **options)
    # Look in `__dict__`: a failed attribute lookup in a namespace is slow.
    kernel = xp.__dict__.get("kernels", {}).get(op.function.name)
    return (
        op.function.forward(xp, *inputs, **options)
        if kernel is None
        else kernel(*inputs, **options)
    )


def as_arrays(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two inputs as arrays; a scalar gets the dtype of the other input."""
    if type(x) in SCALARS:
        return xp.full_like(y, x), y
    return x, xp.full_like(x, y) if type(y) in SCALARS else y


def normalize_axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    """Return the reduced axes, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    return (
        tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,))))
        if ndim
        else ()
    )


def axis_of_reals(op: str, x: Tensor, axis: int | None) -> int:
    """Return an axis of a real tensor, counted from the front; None stands for the only axis."""
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
    """Restore reduced axes with length 1.

    The array then broadcasts against the input of the reduction.
    """
    axes = normalize_axes(len(shape), axis)
    return xp.reshape(reduced, tuple(1 if a in axes else n for a, n in enumerate(shape)))


def broadcast_back(xp: Any, g: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """Return a reduced array, repeated along the reduced axes."""
    return xp.broadcast_to(restore_axes(xp, g, shape, axis), shape)


def slice_axis(axis: int, start: int | None, stop: int | None = None) -> tuple[Any, ...]:
    """Return the key that selects from `start` to `stop` along an axis, counted from the front."""
    return (*(slice(None),) * axis, slice(start, stop), ...)


def diagonal_key(shape: tuple[int, ...], offset: int = 0) -> tuple[Any, ...]:
    """Return the key of the diagonals of matrices whose last two axes are flattened into one."""
    rows, columns = shape[-2:]
    size, start = rows * columns, offset if offset >= 0 else -offset * columns
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return (..., slice(min(start, size), min(start + length * (columns + 1), size), columns + 1))
