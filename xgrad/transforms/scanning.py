"""The transform `scan`: a loop over the first axis, with memory bounded by recomputation in the backward pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.engine import run_backward
from xgrad.core.function import Function
from xgrad.core.grad_mode import is_grad_enabled
from xgrad.core.graph import Edge
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.ops import asarray, stack, unstack
from xgrad.random.generator import replaying
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown
from xgrad.support.trees import leaves, matched, rebuild
from xgrad.transforms.call import TransformCall

Step = Callable[[Any, Any], tuple[Any, Any]]


@documented()
def scan(
    fn: Step,
    init: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[Any, Any]:
    """Call a function for each element along the first axis, which passes a state from one call to the next.

    fn : callable -- Takes the state and an element of `xs`, and returns the next state, and a result to stack, None
        for none.
    init : Tensor or containers of them -- The first state. All states have its containers, shapes and dtypes.
    xs : Tensor, containers of them or None -- The elements along the first axes, of one length.
    length : int, optional -- The number of steps, which is needed where `xs` is None.
    reverse : bool, default False -- Whether to go from the last element to the first. Results keep the places of the
        elements.
    checkpoint : bool or int, default False -- The number of steps in a segment: only the states between segments are
        saved for backward, which computes each segment again. True stands for the square root of the length.
    returns tuple -- The last state, and the results, stacked along a first axis.
    raises TypeError -- If `fn` does not return a pair, or the containers of a state differ from those of `init`.
    raises ValueError -- If lengths, or shapes or dtypes of states, differ.

    Like ``jax.lax.scan``, differentiable to any order with and without `checkpoint`, by all arguments and all tensors
    that `fn` uses. Without it, the results are those of a plain loop to the bit. With it, the memory of a backward pass
    grows by the states between segments, and the steps of one segment, rather than by all steps. Steps must then
    compute the same numbers when they run again: of tensors that change meanwhile, those with a gradient are refused;
    random numbers of xgrad are drawn again as they were.

    >>> def step(total, x):
    ...     return total + x, total * x
    >>> xgrad.scan(step, xgrad.asarray(0.0), xgrad.asarray([1.0, 2.0, 3.0]))
    (Tensor(6.), Tensor([0., 2., 9.]))
    """
    if not callable(fn):
        raise TypeError(f"scan: expected a function, got {type(fn).__name__}: write xgrad.scan(step, init, xs)")
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
        raise ValueError(f"scan: expected xs, and length where it is given, of one length, got {got}")
    return lengths.pop()


def _segment_size(checkpoint: bool | int, count: int) -> int:
    if checkpoint is True:
        return max(1, math.isqrt(count))
    if checkpoint is not False and (not isinstance(checkpoint, int) or checkpoint < 1):
        raise ValueError(f"scan: expected checkpoint of True, False or a number of steps, got {shown(checkpoint)}")
    return checkpoint or max(1, count)


class _Segment:
    """Some steps of a scan, as a function of lists of tensors."""

    def __init__(self, fn: Step, init: Any, xs: Any) -> None:
        self.fn, self.init, self.xs = fn, init, xs
        self.result: Any = None  # of the last step, for its containers

    def __call__(self, state: list[Tensor], steps: list[list[Tensor]]) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return the state after the steps, and the results of each."""
        outs = []
        for elements in steps:
            pair = self.fn(rebuild(self.init, state), rebuild(self.xs, elements))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(f"scan: expected (state, result) of the function, got {type(pair).__name__}")
            pairs = matched("scan: state", rebuild(self.init, state), pair[0])
            state = [_checked_state(path, before, x) for path, before, x in pairs]
            self.result = pair[1]
            outs.append([_checked_result(path, x) for path, x in leaves(self.result)])
        return state, outs

    def checkpointed(self, state: list[Tensor], steps: list[list[Tensor]]) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return what the call returns, with a graph that saves only the arguments."""
        if not is_grad_enabled():
            return self(state, steps)
        with replaying() as draws:
            inputs = _Inputs(state, steps)
            call = inputs.run(self)
        edges = call.outer_edges()
        if not edges and not any(x.requires_grad for x in inputs.floating):
            outs = [call.visible(x) for x in call.outputs]
        else:
            # Tensors without values of their own stand for those that the steps use beside the arguments.
            others = [from_placement(_blank(edge), edge.placement, edge) for edge in edges]
            arrays = tuple([x._data for x in call.outputs])
            recomputed = _Recomputed(self, inputs.without_values(), edges, draws, call.outputs[0].device)
            outs = list(_checkpoint(*inputs.floating, *others, values=[arrays], segment=recomputed))
        split = iter(outs)
        return [next(split) for _ in state], [[next(split) for _ in part] for part in call.result[1]]


def _checked_state(path: str, before: Tensor, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"scan: expected a tensor as the state{path}, got {type(x).__name__}: return tensors")
    if (x.shape, x.dtype) != (before.shape, before.dtype):
        raise ValueError(
            f"scan: expected a state{path} of shape {before.shape}, {before.dtype}, as that before, got shape "
            f"{x.shape}, {x.dtype}: give init in this form"
        )
    return x


def _checked_result(path: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"scan: expected a tensor as the result{path}, got {type(x).__name__}: return tensors")
    return x


class _Inputs:
    """The tensors of a segment: floating ones, which are differentiated, and others."""

    def __init__(self, state: list[Tensor], steps: list[list[Tensor]]) -> None:
        self.counts = len(state), [len(part) for part in steps]
        tensors = [*state, *(x for part in steps for x in part)]
        self.are_floating = [x.dtype.kind in "fc" for x in tensors]
        self.floating = [x for x in tensors if x.dtype.kind in "fc"]
        self.others = [x for x in tensors if x.dtype.kind not in "fc"]

    def without_values(self) -> _Inputs:
        """Return the inputs without the floating tensors, which the graph saves."""
        copy = object.__new__(_Inputs)
        vars(copy).update(vars(self), floating=[])
        return copy

    def run(self, segment: _Segment) -> TransformCall:
        """Call a segment, and return the call with its graph."""

        def flat(floating: list[Tensor]) -> Any:
            sources = iter(floating), iter(self.others)
            tensors = [next(sources[not floats]) for floats in self.are_floating]
            size, counts = self.counts
            parts, rest = tensors[:size], iter(tensors[size:])
            return segment(parts, [[next(rest) for _ in range(n)] for n in counts])

        return TransformCall("scan", flat, (self.floating,), {}, 0, False)


class _Recomputed:
    """A segment to compute again in the backward pass."""

    def __init__(self, segment: _Segment, inputs: _Inputs, edges: list[Edge], draws: Any, device: Device) -> None:
        self.segment, self.inputs, self.edges, self.draws, self.device = segment, inputs, edges, draws, device

    def gradients(self, floating: list[Tensor], gradients: list[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the arguments and of other edges, given those of the outputs."""
        inputs, recording = self.inputs.without_values(), is_grad_enabled()
        inputs.floating = floating
        with replaying(self.draws):
            call = inputs.run(self.segment)
        start: dict[Edge, Tensor] = {}
        for out, g in zip(call.outputs, gradients, strict=True):
            if (edge := out._edge) is not None:
                start[edge] = start[edge] + g if edge in start else g
        wanted: list[Any] = [*(x._edge for x in call.inputs), *self.edges]
        found = run_backward(start, set(wanted), retain_graph=recording, create_graph=recording, stop=True)
        return [found.get(edge) for edge in wanted]


class _Checkpoint(Function):
    """The outputs of a segment that has run, as a function of its inputs, and of tensors that stand for other edges."""

    name, holomorphic = "checkpoint", False

    @staticmethod
    def forward(xp: Any, *arrays: Any, values: list[Any], segment: _Recomputed) -> Any:
        return values.pop()

    @staticmethod
    def backward(xp: Any, g: Any, arrays: Any, segment: _Recomputed) -> Any:
        floating = arrays[: len(arrays) - len(segment.edges)]
        if any(isinstance(x, Tensor) for x in (*g, *arrays)):  # in a recorded pass
            return segment.gradients(list(floating), list(g))
        tensors = [[from_array(x, segment.device) for x in part] for part in (floating, g)]
        return [None if x is None else x._data for x in segment.gradients(*tensors)]


_checkpoint = _Checkpoint()


def _blank(edge: Edge) -> Any:
    """Return an array of zeros of the shape and dtype of an edge, in the memory of one number."""
    device = edge.placement.device
    with device.active():
        zero = device.xp.zeros((), dtype=edge.placement.dtype, device=device.native)
        return device.xp.broadcast_to(zero, tuple(edge.shape))
