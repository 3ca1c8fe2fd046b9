"""The transform `scan`: a loop over the first axis, with optional recomputation to save memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

from xgrad.core.tensor import Tensor
from xgrad.ops import asarray, stack, unstack
from xgrad.support.hints import shown
from xgrad.support.trees import leaves, matched, rebuild
from xgrad.transforms.recomputation import recomputed

Step = Callable[[Any, Any], tuple[Any, Any]]
State = TypeVar("State")
Element = TypeVar("Element")
Result = TypeVar("Result")


@overload
def scan(
    fn: Callable[[State, Element], tuple[State, Result]],
    init: State,
    xs: Element,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[State, Result]: ...
@overload
def scan(
    fn: Callable[[State, None], tuple[State, Result]],
    init: State,
    xs: None = None,
    *,
    length: int,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[State, Result]: ...
def scan(
    fn: Step,
    init: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[Any, Any]:
    r"""Call a function for each element along the first axis, passing a state along.

    Parameters
    ----------
    fn : callable
        Takes the state and an element of `xs`, and returns the next state and a result to stack, or
        None for no result.
    init : Tensor or containers of them
        The first state. All states have the same containers, shapes and dtypes.
    xs : Tensor, containers of them or None
        The elements, along first axes of equal length.
    length : int, optional
        The number of steps; required if `xs` is None.
    reverse : bool, default False
        Whether to go from the last element to the first. Results are in the order of the elements.
    checkpoint : bool or int, default False
        The number of steps in a segment. Only the states between segments are saved for backward,
        which recomputes each segment. True means the square root of the length.

    Returns
    -------
    tuple
        The last state, and the results, stacked along a first axis.

    Raises
    ------
    TypeError
        If `fn` does not return a pair, or a state and `init` have different containers.
    ValueError
        If lengths, or shapes or dtypes of states, differ.

    Notes
    -----
    .. math:: (c_{t+1}, y_t) = f(c_t, x_t)

    Like ``jax.lax.scan``. It is differentiable to any order, with and without `checkpoint`, with
    respect to all arguments and all tensors that `fn` uses. Without `checkpoint`, the results equal
    a plain loop bit for bit. With it, the memory of a backward pass grows with the states between
    segments and the steps of one segment, rather than with all steps. Steps must then compute the
    same numbers when they run again. A tensor with a gradient that changes in between is refused;
    xgrad's random numbers are drawn again with the same values.

    Examples
    --------
    >>> import xgrad
    >>> def step(total, x):
    ...     return total + x, total * x
    >>> xgrad.scan(step, xgrad.asarray(0.0), xgrad.asarray([1.0, 2.0, 3.0]))
    (Tensor(6.), Tensor([0., 2., 9.]))
    """
    if not callable(fn):
        raise TypeError(
            f"scan: expected a function, got {type(fn).__name__}: write xgrad.scan(step, init, xs)"
        )
    elements = [x if isinstance(x, Tensor) else asarray(x, copy=True) for _, x in leaves(xs)]
    count = _length(elements, length)
    columns = [unstack(x) for x in elements]
    order = range(count - 1, -1, -1) if reverse else range(count)
    size = _segment_size(checkpoint, count)
    state = [x if isinstance(x, Tensor) else asarray(x, copy=True) for _, x in leaves(init)]
    run = _Segment(fn, init, xs)
    results: list[list[Tensor]] = []
    for start in range(0, count, size):
        steps = [[column[i] for column in columns] for i in order[start : start + size]]
        state, outs = (run.checkpointed if checkpoint is not False else run)(state, steps)
        results += outs
    results = results[::-1] if reverse else results
    stacked = [stack(list(column)) for column in zip(*results, strict=True)]
    return rebuild(init, state), None if run.result is None else rebuild(run.result, stacked)


def _length(elements: list[Tensor], length: int | None) -> int:
    """Return the number of steps."""
    if any(not x.ndim for x in elements):
        raise ValueError("scan: expected xs with a first axis to go along, got shape ()")
    lengths = {x.shape[0] for x in elements} | ({length} if length is not None else set())
    if len(lengths) != 1:
        got = f"lengths {sorted(lengths)}" if lengths else "neither xs nor length"
        raise ValueError(
            f"scan: expected xs, and length where it is given, of one length, got {got}"
        )
    return lengths.pop()


def _segment_size(checkpoint: bool | int, count: int) -> int:
    if checkpoint is True:
        return max(1, math.isqrt(count))
    if checkpoint is not False and (not isinstance(checkpoint, int) or checkpoint < 1):
        raise ValueError(
            "scan: expected checkpoint of True, False or a number of steps, got"
            f" {shown(checkpoint)}"
        )
    return checkpoint or max(1, count)


class _Segment:
    """Some steps of a scan, as a function of lists of tensors."""

    def __init__(self, fn: Step, init: Any, xs: Any) -> None:
        self.fn, self.init, self.xs = fn, init, xs
        self.result: Any = None  # the result of the last step, for its containers

    def __call__(
        self, state: list[Tensor], steps: list[list[Tensor]]
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return the state after the steps, and the results of each step."""
        outs = []
        for elements in steps:
            pair = self.fn(rebuild(self.init, state), rebuild(self.xs, elements))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"scan: expected (state, result) of the function, got {type(pair).__name__}"
                )
            pairs = matched("scan: state", rebuild(self.init, state), pair[0])
            state = [_checked_state(path, before, x) for path, before, x in pairs]
            self.result = pair[1]
            outs.append([_checked_result(path, x) for path, x in leaves(self.result)])
        return state, outs

    def checkpointed(
        self, state: list[Tensor], steps: list[list[Tensor]]
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return the same as a call, with a graph that saves only the arguments."""
        # without the tensors
        containers = rebuild((state, steps), range(len(state) + sum(map(len, steps))))
        tensors = [x for _, x in leaves((state, steps))]
        result: tuple[list[Tensor], list[list[Tensor]]]
        result = recomputed("scan", lambda tensors: self(*rebuild(containers, tensors)), tensors)
        return result


def _checked_state(path: str, before: Tensor, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"scan: expected a tensor as the state{path}, got {type(x).__name__}: return tensors"
        )
    if (x.shape, x.dtype) != (before.shape, before.dtype):
        raise ValueError(
            f"scan: expected a state{path} of shape {before.shape}, {before.dtype}, as that before,"
            f" got shape {x.shape}, {x.dtype}: give init in this form"
        )
    return x


def _checked_result(path: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"scan: expected a tensor as the result{path}, got {type(x).__name__}: return tensors"
        )
    return x
