"""The transform `vmap`: a function of one element, mapped over the axes of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from xgrad.backend.device import batching, intercepting
from xgrad.core.tensor import Tensor
from xgrad.ops import asarray, moveaxis
from xgrad.support.hints import shown
from xgrad.support.scopes import Scope
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms.batching import Batch

Axes = Any  # an int, None, or containers of these
P = ParamSpec("P")
R = TypeVar("R")


def vmap(fn: Callable[P, R], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[P, R]:
    """Return the function that maps another over an axis of its arguments, all at once.

    The results equal a loop with `stack`.

    Parameters
    ----------
    fn : callable
        A function of one element of the batch: of tensors, or nested containers of them. It returns
        tensors, or containers of them.
    in_axes : int, None or containers of them, default 0
        The batch axis of each argument, or None for an argument that is passed on unchanged. Give
        one axis for all arguments, or a tuple with one for each; for an argument that is a
        container, give one axis for all its tensors, or the same containers with axes.
    out_axes : int, None or containers of them, default 0
        The batch axis in each result: one for all results, or the containers of the result with
        axes. None for a result that is the same for the whole batch.

    Returns
    -------
    callable
        Takes the arguments of `fn` with the batch axis. Keyword arguments are passed on unchanged.

    Raises
    ------
    TypeError
        When called, if an argument with an axis is not a tensor or an array, or `fn` needs the
        values of a tensor, as in ``if x > 0:``.
    ValueError
        If an axis does not exist, the lengths of the axes differ, or a shape within `fn` depends on
        values.
    RuntimeError
        If `fn` draws random numbers; if it writes a batched value to a tensor from outside, which
        then stays unchanged; or if a tensor from inside `fn` is used after `fn` has returned.

    Notes
    -----
    Transforms nest freely: ``vmap(grad(loss), in_axes=(None, 0, 0))`` returns the gradient for each
    sample. Tensors that `fn` takes from outside are the same for the whole batch, and have
    gradients. A tensor that `fn` detaches, or computes under ``no_grad()``, is a constant for all
    transforms around it.

    Each function of arrays runs once for the whole batch. Functions without a batching rule in
    ``xgrad.transforms.batching_rules.RULES`` run in a loop, with the same results.

    Examples
    --------
    >>> import xgrad
    >>> weights = xgrad.asarray([1.0, 2.0])
    >>> xgrad.vmap(lambda x: x @ weights)(
    ...     xgrad.asarray([[1.0, 1.0], [0.0, 3.0], [2.0, 0.0]])
    ... )
    Tensor([3., 6., 2.])
    >>> xgrad.vmap(xgrad.grad(lambda x: x**3))(xgrad.asarray([1.0, 2.0]))
    Tensor([ 3., 12.])
    """
    if not callable(fn):
        raise TypeError(
            f"vmap: expected a function, got {type(fn).__name__}: write xgrad.vmap(f)(x)"
        )

    @wraps(fn, updated=())
    def mapped(*args: P.args, **kwargs: P.kwargs) -> R:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(
                f"vmap: expected in_axes for {len(args)} arguments, got {shown(in_axes)}"
            )
        values = [(f"argument {i}", *pair) for i, pair in enumerate(zip(args, axes, strict=True))]
        fronts = [[_in_front(*leaf) for leaf in _with_axes("in_axes", *value)] for value in values]
        sizes = {x.shape[0] for front in fronts for x, axis in front if axis is not None}
        if len(sizes) != 1:
            got = f"lengths {sorted(sizes)}" if sizes else "None for all"
            raise ValueError(f"vmap: expected axes of one length among the arguments, got {got}")
        with Scope(batching, Batch(sizes.pop())) as batch, Scope(intercepting, batch):
            lifted = [
                [batch.lift(x, True) if axis is not None else x for x, axis in front]
                for front in fronts
            ]
            result = fn(*map(rebuild, args, lifted), **kwargs)
            outs = [
                batch.unmapped(*leaf)
                for leaf in _with_axes("out_axes", "the result", result, out_axes)
            ]
        return rebuild(result, outs)  # type: ignore[no-any-return]

    return mapped


def _with_axes(
    title: str, path: str, tree: Any, axes: Axes
) -> Iterator[tuple[str, Any, int | None]]:
    """Yield the leaves of a tree with their paths and axes.

    A single axis may stand for all axes of a container.
    """
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        yield from ((inner, leaf, axes) for inner, leaf in leaves(tree, path))
        return
    alike = isinstance(axes, dict) == isinstance(tree, dict) and isinstance(
        tree, (dict, list, tuple)
    )
    if not isinstance(axes, (dict, list, tuple)) or not alike or len(axes) != len(tree):
        raise TypeError(
            f"vmap: expected {title} of an int or None, or the containers of {path}, got"
            f" {shown(axes)}"
        )
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield from _with_axes(title, f"{path}[{key!r}]", tree[key], axes[key])


def _in_front(path: str, x: Any, axis: int | None) -> tuple[Any, int | None]:
    """Return an argument with the batch axis first."""
    if axis is None:
        return x, None
    if not isinstance(x, Tensor) and not hasattr(x, "__array__"):
        raise TypeError(
            f"vmap: expected a tensor for {path}, got {type(x).__name__}: give it in_axes=None"
        )
    x = x if isinstance(x, Tensor) else asarray(x, copy=True)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"vmap: expected axis {axis} in {path}, got shape {x.shape}: give it in_axes=None"
        )
    return (moveaxis(x, axis, 0) if axis % x.ndim else x), axis
