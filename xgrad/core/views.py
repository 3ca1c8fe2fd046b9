"""Links between tensors and their views: a write to one reaches the others.

A view holds its base, and the function and options that took it. A view that ``.data`` or `detach`
returns has no function, and holds its base weakly. A base has weak references to its views.
"""

from __future__ import annotations

from typing import Any, Literal
from weakref import ref

import numpy as np

from xgrad.core.graph import Leaf

Tensor = Any  # from `tensor`, which imports this module

#: Whether a function returns a view of its input: always, or where the result shares its memory.
Views = bool | Literal["shared"]

NO_OPTIONS: dict[str, Any] = {}  # of the views that `Tensor.data` and `Tensor.detach` return


def is_view(x: Tensor, out: Any, function: Any, options: dict[str, Any]) -> bool:
    """Return whether a result of a function with `Views` "shared" is a view of a tensor.

    It is if it shares memory. Of a parameter packed by an optimizer, whose buffer has another order
    of elements, and of the views of one, it is if it would share memory in row order: packing
    changes no answer.
    """
    if getattr(out, "base", None) is x._data:
        return True
    if _is_packed(x):
        array = layout(x)
        return np.may_share_memory(array, function.forward(np, array, **options))
    return bool(x._placement.device.backend.shares_memory(x._data, out))


def _root(x: Tensor) -> Tensor:
    """Return the tensor at the end of the bases of a view, or the tensor itself."""
    while (base := base_of(x)) is not None:
        x = base
    return x


def _is_packed(x: Tensor) -> bool:
    """Return whether a tensor is a parameter packed by an optimizer, or a view of one."""
    leaf = _root(x)._leaf
    return leaf is not None and leaf.receiver is not None


def link(base: Tensor, view: Tensor, function: Any, options: dict[str, Any]) -> None:
    """Make a tensor a view of another, taken by a function; the function of ``.data`` is None."""
    view._view = (base if function is not None else ref(base)), function, options
    leaf = base._edge if type(base._edge) is Leaf else None
    # a look in vain is slow
    views = getattr(base, "_views", None) if leaf is None or leaf.viewed else None
    if not views:
        if leaf is not None:
            leaf.viewed = True
        base._views = [ref(view)]
    elif views[-1]() is None:
        views[-1] = ref(view)
    else:
        views.append(ref(view))
        if not len(views) & (len(views) - 1):  # at each power of two, so that few are dead
            views[:] = [reference for reference in views if reference() is not None]


def layout(x: Tensor) -> np.ndarray:
    """Return an array without values that has the strides of a tensor.

    A tensor that is no view is in row order. Strides are the ones that functions of views give:
    optimizers and kernels may store the base itself in another order.
    """
    views = []
    while (base := base_of(x)) is not None:
        function, options = taken_by(x)
        views.append((function, options))
        x = base
    array = np.empty(x.shape, x.dtype)
    for function, options in reversed(views):
        if function is not None:  # of .data
            array = function.forward(np, array, **options)
    return array


def unlink(x: Any) -> Any:
    """Make a view an independent tensor, and return it."""
    if (base := base_of(x)) is not None:
        base._views[:] = [reference for reference in base._views if reference() is not x]
        del x._view
    return x


def taken_by(view: Tensor) -> tuple[Any, dict[str, Any]]:
    """Return the function that took a view, None of ``.data``, and its options."""
    _, function, options = view._view
    return function, options


def base_of(x: Tensor) -> Tensor | None:
    """Return the tensor that a tensor is a view of, or None."""
    view = getattr(x, "_view", None)
    if not view:
        return None
    base, function, _ = view
    return base if function is not None else base()


def views_of(x: Tensor) -> list[Tensor]:
    """Return the views of a tensor that still exist."""
    views = [view for reference in getattr(x, "_views", ()) if (view := reference()) is not None]
    if not views and hasattr(x, "_views"):
        del x._views  # updates in place look for views at each step
    return views


def with_views(x: Tensor) -> list[Tensor]:
    """Return a tensor, its views, and the views of those."""
    family = [x]
    for member in family:  # a list that grows in the loop
        if hasattr(member, "_views"):
            family += views_of(member)
    return family


def family_of(x: Tensor) -> list[Tensor]:
    """Return all tensors that a write to one reaches."""
    return with_views(_root(x))


def has_family(x: Tensor) -> bool:
    """Return whether a tensor is a view or has had views."""
    return hasattr(x, "_views") or bool(getattr(x, "_view", None))
