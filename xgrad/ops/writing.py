"""Writes to tensors.

They happen in place where memory is exclusive, and reach all tensors that share it through views.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from xgrad.backend.recording import active_recorder, run_array_code
from xgrad.backend.recording import assign as write_to
from xgrad.core.changes import mark_changed
from xgrad.core.function import Function
from xgrad.core.graph import Leaf, RetainedGradient, clock
from xgrad.core.modes import grad_enabled
from xgrad.core.tensor import Tensor
from xgrad.core.views import (
    base_of,
    family_of,
    has_family,
    layout,
    link,
    taken_by,
    unlink,
    views_of,
    with_views,
)
from xgrad.ops.declare import call_op, derivative, diagonal_key
from xgrad.ops.indexing import assign_to, assignment_operands, setitem
from xgrad.ops.manipulation import reshape
from xgrad.support.hints import shown
from xgrad.support.user_code import user_location


def _take_view(g: Any, xp: Any, view: Function, options: dict[str, Any]) -> Any:
    return view(g, **options) if isinstance(g, Tensor) else view.forward(xp, g, **options)


def _zero_view(g: Any, xp: Any, view: Function, options: dict[str, Any]) -> Any:
    return call_op(_put, xp, g, 0, view=view, options=options)


@derivative(_zero_view, _take_view, holomorphic=False)
def _put(xp: Any, x: Any, value: Any, /, *, view: Function, options: dict[str, Any]) -> Any:
    # the result may have other memory, or be read-only
    if view.name in (
        "reshape",
        "broadcast_to",
    ):
        return (
            xp.asarray(xp.reshape(value, x.shape), copy=True)
            if hasattr(value, "shape")
            else xp.zeros_like(x)
        )
    if view.name == "diagonal":  # read-only in NumPy
        key = diagonal_key(x.shape, **options)
        flat = xp.asarray(xp.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1])), copy=True)
        flat[key] = value
        return xp.reshape(flat, x.shape)
    x = xp.asarray(x, copy=True)
    view.forward(xp, x, **options)[...] = value
    return x


class _PutAll(Function):
    """A write to all elements: see `Function.replaces`."""

    name, replaces, holomorphic, own_rule = "put", True, False, False
    forward = staticmethod(_put.function.forward)  # type: ignore[attr-defined]

    @staticmethod
    def backward(xp: Any, g: Any, view: Function, options: dict[str, Any]) -> Any:
        return None, _take_view(g, xp, view, options)


_put_all = _PutAll()


def put(x: Tensor, value: Tensor, view: Any, **options: Any) -> Tensor:
    r"""Return a copy of `x` in which one of its views has a new value, as after a write to it.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    value : Tensor
        Of the shape of the view.
    view : callable
        The function of `xgrad` that returns the view, for example ``xgrad.permute_dims``.
    **options
        The keyword arguments of the function.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`.

    Raises
    ------
    ValueError
        If elements of the view share their memory, as in a result of `broadcast_to`.

    Notes
    -----
    .. math:: y = v \text{ in the view}, \quad \text{else } x

    - Gradient for `x`: :math:`0` in the view, else :math:`\bar y`
    - Gradient for `value`: :math:`\bar y` in the view

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ops.put(
    ...     xgrad.zeros((2, 2)),
    ...     xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]),
    ...     xgrad.matrix_transpose,
    ... )
    Tensor([[1., 3.],
            [2., 4.]])
    """
    function: Function = getattr(view, "function", view)
    if function.name == "broadcast_to" and value.size != x.size:
        raise ValueError(
            "in place: x was made by broadcast_to, and its elements share their memory: write to a"
            f" copy of it, xgrad.asarray(x, copy=True), at {user_location()}"
        )
    made: Tensor = (_put if x.is_leaf or value.size < x.size else _put_all)(
        x, value, view=function, options=options
    )
    return made


def write(x: Tensor, key: Any, value: Any) -> None:
    """Assign to ``x[key]``."""
    if getattr(x, "_view", x) is None:
        raise TypeError(
            "in place: x is an element that was taken by integers, a value of its own: assign to"
            " the tensor that it was taken from"
        )
    recorded = grad_enabled.get() and getattr(value, "_edge", None) is not None
    if (
        x._edge is None
        and not recorded
        and _is_exclusive(x, value, *(key if isinstance(key, tuple) else (key,)))
    ):
        target, raw, new = assignment_operands(x, key, value)
        device = x._placement.device
        try:
            if target is x:
                with device.active():
                    assign_to(device.xp, x._data, getattr(new, "_data", new), raw)
                return
        except Exception:
            pass  # the op below raises an error that explains it
    assign(x, _checked_result(x, setitem, key, value))


def update(x: Tensor, compute: Callable[..., Tensor], other: Any) -> Tensor:
    """Return `x` after an update like ``x += other``, given the function of the operator."""
    new = _checked_result(x, compute, other)
    if has_family(x) and new._edge is None and _is_exclusive(x, new):
        with suppress(ValueError), x.device.active():  # a broadcast array is read-only
            run_array_code(x.device, write_to, x._data, new._data)
            return x
    assign(x, new)
    return x


def view(x: Tensor, shape: Any) -> Tensor:
    """Return a view of a tensor in another shape.

    Raises ValueError if its elements are not in the order of that shape.
    """
    out = reshape(x, shape)
    linked = base_of(out) is x
    if not out.size or (linked and base_of(x) is None):
        return out
    # Whether there is a view must not depend on the order in which an optimizer or a kernel stores
    # the elements.
    array = layout(x)
    if not np.may_share_memory(array, array.reshape(out.shape)):
        raise ValueError(
            f"view: expected a shape that x of shape {x.shape} has a view of, got {shown(shape)}: x"
            " is itself a view, with its elements in another order; use .reshape(...), which"
            " copies, or .contiguous().view(...)"
        )
    if not linked:
        link(
            x,
            out,
            reshape.function,  # type: ignore[attr-defined]
            {"shape": out.shape, "copy": None},
        )
    return out


def _checked_result(x: Tensor, compute: Callable[..., Tensor], *operands: Any) -> Tensor:
    """Return the result of an in-place op, checked for shape and dtype."""
    _check_leaf(x)
    new = compute(_with_view_history(x), *operands)
    if new._placement.device is not x._placement.device:
        new = as_new_value(x, new)
    if new._data.dtype != x._data.dtype:
        if "buifc".index(new.dtype.kind) > "buifc".index(x.dtype.kind):
            raise TypeError(
                f"in place: expected a result of a dtype that {x.dtype} can hold, got {new.dtype}:"
                " write x = x + y"
            )
        new = new.astype(x.dtype)
    if new._data.shape != x._data.shape:
        raise ValueError(
            f"in place: expected a result of shape {x.shape}, got {new.shape}: write x = x + y"
        )
    return new


def _check_leaf(x: Tensor) -> None:
    if type(x._edge) is Leaf and grad_enabled.get():
        raise RuntimeError(
            "in place: x is a leaf that requires a gradient, or a view of one, and would not stay"
            " one: write x -= y and x[key] = y under no_grad(), or x = x - y for another tensor"
        )


def as_new_value(x: Tensor, new: Tensor, name: str = "in place") -> Tensor:
    """Return a new value of `x` as a tensor at the level of `x` in nested calls of `vmap`.

    Raises RuntimeError if the value may differ among the elements of the batch, and `x` or one of
    its bases was made outside of the `vmap`.
    """
    level = x._placement.device.level
    if new._placement.device.level < level:
        return x._placement.device.lift(new)  # type: ignore[no-any-return, attr-defined]
    while new._placement.device.level > level and not new._data.batched and new._edge is None:
        new = new._data.tensor
    if new._placement.device.level > level:
        path: tuple[Any, ...] = new._data.batch.path
        member: Tensor | None = x
        while member is not None and _made_in(member)[: len(path)] == path:
            member = base_of(member)
        if member is None:
            return new
        raise RuntimeError(
            f"{name}: a tensor of a vmap is written to one of shape {x.shape} from outside of it,"
            " which all elements of the batch share: write to a copy that the function makes, as y"
            " = xgrad.asarray(x, copy=True), and return it; call eval() of layers with running"
            f" statistics, or give them track_running_stats=False: at {user_location()}"
        )
    return new


def _made_in(x: Tensor) -> tuple[Any, ...]:
    """Return the calls of `vmap` in which a tensor was made, outermost first."""
    of_array: tuple[Any, ...] = getattr(x._data, "made_in", ())
    return of_array or getattr(x, "_made_in", ())


def _with_view_history(x: Tensor) -> Tensor:
    """Return a tensor with its history as a view, even if it was taken under ``no_grad()``."""
    base = base_of(x) if x._edge is None and grad_enabled.get() else None
    function, options = x._view[1:] if base is not None and x._view else (None, {})
    if base is None or function is None or x._is_differentiated:
        return x
    if not (base := _with_view_history(base))._is_differentiated:
        return x
    made: Tensor = function(base, **options)
    return made


def _is_exclusive(x: Tensor, *operands: Any) -> bool:
    """Return whether the memory of a constant is used only by its base and the base's views.

    Returns False if one of them is an operand.
    """
    if active_recorder() is not None:  # a replay does not know which tensors share memory
        return False
    family = family_of(x)
    for member in family:
        if member._edge is not None or hasattr(member, "_saved_leaf"):
            return False
        for operand in operands:
            if member is operand:
                return False
    return x.device.backend.is_exclusive([member._data for member in family])


def assign(x: Tensor, new: Tensor, hidden: bool = False) -> None:
    """Assign a new value to a tensor, its base, and all views of the base.

    A `hidden` write bypasses autograd, like one to ``.data``.
    """
    while True:
        if not hidden:
            _check_leaf(x)
        base = base_of(x)
        if base is None or x._view is None:
            break
        if (recorder := active_recorder()) is not None and not recorder.knows(base._data):
            _write_outside(recorder, x, new, hidden)
            return
        function, options = taken_by(x)
        if function is None:  # a view made by .data
            hidden = True
        else:
            new = put(
                base._without_history() if hidden else _with_view_history(base),
                new,
                function,
                **options,
            )
        x = base
    _rebind(x, new, hidden)


_SHARED = (
    "a tensor is assigned to that shares its memory with another argument, as views of one that is"
    " none: pass that too, or name it in state="
)


def _write_outside(recorder: Any, x: Tensor, new: Tensor, hidden: bool) -> None:
    """Assign to a tensor of a recorded step that is a view of a tensor from outside the step.

    The new value is recorded. Its propagation to the base and the base's other views is not: a
    replay does it after the step. The capture is refused where this would be too late or wrong: if
    another tensor of the step is a view of the base, if autograd records the write, if the tensor
    has other strides than its value (its views and sums depend on them), or if the write is an
    error.
    """
    own = set(map(id, with_views(x)))
    if any(recorder.knows(member._data) and id(member) not in own for member in family_of(x)):
        recorder.refuse(_SHARED)
    elif _is_computed(new):
        recorder.refuse(
            "a write that is recorded reaches a tensor that is neither an argument nor found from"
            " the step"
        )
    elif not _is_contiguous(x):
        recorder.refuse(
            "a tensor is assigned to that is a view, with strides, of one that is no argument: pass"
            " that, or name it in state="
        )
    elif _overlaps(x):
        recorder.refuse("a tensor is assigned to that broadcast_to made: write to a copy of it")
    else:
        _rebind(x, new, hidden)
        with recorder.paused(with_views(x)):
            refresh(x)
        return
    assign(x, new, hidden)


def _is_computed(x: Tensor) -> bool:
    return x._edge is not None and type(x._edge) is not Leaf


def _is_contiguous(x: Tensor) -> bool:
    """Return whether the elements of a tensor are contiguous, as far as the device tells."""
    strides, expected = getattr(x._data, "strides", None), x.dtype.itemsize
    for n, stride in zip(reversed(x.shape), reversed(strides or ()), strict=False):
        if n > 1 and stride != expected:
            return False
        expected *= n
    return True


def _overlaps(x: Tensor) -> bool:
    """Return whether `broadcast_to` made a tensor or one of its bases.

    Writing to the tensor is an error if elements are repeated.
    """
    while (base := base_of(x)) is not None and x._view:
        if getattr(x._view[1], "name", "") == "broadcast_to":
            return True
        x = base
    return False


def set_data(x: Tensor, new: Tensor) -> None:
    """Assign to ``.data``, bypassing autograd; a value of another shape or dtype unlinks views."""
    new = as_new_value(x, new._without_history())
    if new._placement is not x._placement or new.shape != x.shape:
        for view in views_of(x):
            unlink(view)
        link = getattr(x, "_view", None)
        if link and link[1] is not None:
            unlink(x)
    assign(x, new, hidden=True)


def _rebind(x: Tensor, new: Tensor, hidden: bool) -> None:
    """Assign a new value to a tensor, and recompute its views."""
    device = new._placement.device
    # its graph is still outside the vmap
    if device is not x._placement.device and device.level and not x.is_leaf:
        lifted = device.lift(x)  # type: ignore[attr-defined]
        x._data, x._placement, x._edge = lifted._data, lifted._placement, lifted._edge
    edge = x._edge or x._leaf
    known = (
        edge is not None
        or not x._out_of_place_updates
        or (device.level > 0 and x._is_differentiated)
    )
    try:
        if hidden or (known and (type(edge) is Leaf or not grad_enabled.get())):
            replace(x, new._data, new._placement)
        else:
            _take_over(x, new, edge)
        if new._placement.device.backend.lazy:
            new._placement.device.backend.wrote(new._data)
        refresh_views(x, hidden)
    except BaseException:
        refresh_views(x, hidden)  # even if a signal handler raised: views follow their base
        raise


def _take_over(x: Tensor, new: Tensor, edge: Any) -> None:
    """Give a tensor the array and the graph of another one, and keep its retained gradient."""
    x._data, x._placement, x._edge = new._data, new._placement, new._edge
    if edge is not None and edge.hooks and new._edge is not None and RetainedGradient in edge.hooks:
        # retained for the new value from now on
        new._edge.hooks = {RetainedGradient: edge.hooks[RetainedGradient]}
        del edge.hooks[RetainedGradient]


def replace(x: Tensor, raw: Any, placement: Any) -> None:
    """Replace the array of a tensor, bypassing autograd.

    The time of the change is recorded, and checked by the graph.
    """
    edge, when, device = x._edge or x._leaf, clock.change(), x._placement.device
    if edge is not None:
        edge.accept(raw.shape, placement, when)  # may raise an error
        if type(edge) is Leaf and edge.receiver is not None:
            raw = edge.receiver.write(raw)  # the buffer in which an optimizer updates it
    if device.level:
        raw = device.rewritten(x._data, raw)
    x._data, x._placement = raw, placement
    mark_changed((x,), when)


def move(x: Tensor, raw: Any) -> None:
    """Move a tensor and its views to an array with equal values.

    This does not count as a change.
    """
    x._data = raw
    for view in views_of(x) if has_family(x) else ():
        function, options = taken_by(view)
        values = x._without_history()
        move(view, raw if function is None else function(values, **options)._data)


def refresh_views(x: Tensor, hidden: bool = True) -> None:
    """Recompute the views of a tensor."""
    recorder = active_recorder()
    for view in views_of(x):
        if recorder is None or recorder.knows(view._data):
            _refresh_view(view, x, hidden)
            continue
        # A view from outside of the recorded step: a replay writes to it after the step.
        if _is_computed(x) or any(recorder.knows(member._data) for member in with_views(view)):
            recorder.refuse(_SHARED)
        with recorder.paused(()):
            _refresh_view(view, x, hidden)


def _refresh_view(view: Tensor, base: Tensor, hidden: bool) -> None:
    function, options = taken_by(view)
    if function is None:
        _rebind(view, base._without_history(), True)
    else:
        _rebind(view, function(base._without_history() if hidden else base, **options), hidden)


def refresh(x: Tensor) -> None:
    """Propagate the value of a tensor to its base and views; recorded writes already did."""
    edge = x._edge or x._leaf
    if _is_computed(x):
        return
    if has_family(x):
        assign(x, x._without_history(), hidden=edge is not None)
    elif type(edge) is Leaf:
        edge.viewed = x._edge is None
