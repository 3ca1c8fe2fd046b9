"""Recomputation: functions whose graph saves only the arguments; backward calls them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.backend.device import Device, batching
from xgrad.backend.recording import as_arrays, broadcast_number, run_array_code
from xgrad.core.engine import run_backward
from xgrad.core.function import Function
from xgrad.core.graph import Edge
from xgrad.core.modes import autocast_dtypes, is_grad_enabled
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.random.generator import replaying
from xgrad.support.scopes import Scope
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms.call import TransformCall

OfTensors = Callable[[list[Tensor]], Any]  # returns tensors in containers


def recomputed(title: str, fn: OfTensors, tensors: list[Tensor]) -> Any:
    """Return the result of a function, with a graph that saves only its arguments, `tensors`."""
    if not is_grad_enabled():
        return fn(tensors)
    # outputs may belong to the batch even if no argument does
    if (batch := batching.get()) is not None:
        tensors = [batch.lift(x) if x.device.level < batch.level else x for x in tensors]
    segment = _Segment(title, fn, tensors)
    floating = [x for x in tensors if x.dtype.kind in "fc"]
    with replaying() as segment.draws:
        call = segment.run(floating)
    segment.edges = call.outer_edges()
    if not call.outputs or (not segment.edges and not any(x.requires_grad for x in floating)):
        return call.result
    segment.device = call.outputs[0].device
    # Tensors without values represent the tensors that the function uses besides its arguments.
    others = [from_placement(blank_of(edge), edge.placement, edge) for edge in segment.edges]
    arrays = tuple([x._data for x in call.outputs])
    return rebuild(call.result, _checkpoint(*floating, *others, values=[arrays], segment=segment))


def checkpoint(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Implement `xgrad.autograd.checkpoint`."""
    if not callable(function):
        raise TypeError(
            f"checkpoint: expected a function, got {type(function).__name__}: write"
            " checkpoint(f, x)"
        )
    values = [x for _, x in leaves((args, kwargs))]
    others = [None if isinstance(x, Tensor) else x for x in values]  # None is no leaf
    containers = rebuild((args, kwargs), range(len(values)))

    def call(tensors: list[Tensor]) -> Any:
        rest = iter(tensors)
        args, kwargs = rebuild(containers, [next(rest) if x is None else x for x in others])
        return function(*args, **kwargs)

    return recomputed("checkpoint", call, [x for x in values if isinstance(x, Tensor)])


class _Segment:
    """A function to call again in the backward pass.

    It has all arguments except the floating ones, which nodes save.
    """

    draws: Any  # the states of the generators that it draws from
    device: Device  # of its outputs
    edges: list[Edge]  # of tensors that it uses besides its arguments

    def __init__(self, title: str, fn: OfTensors, tensors: list[Tensor]) -> None:
        self.title = title
        self.fn = fn
        self.dtypes = autocast_dtypes.get()
        self.batch = batching.get()
        self.others = [None if x.dtype.kind in "fc" else x for x in tensors]

    def run(self, floating: list[Tensor]) -> TransformCall:
        """Call the function, and return the call with its graph."""

        def flat(floating: list[Tensor]) -> Any:
            source = iter(floating)
            return self.fn([next(source) if x is None else x for x in self.others])

        # In the vmap of the first call, since the pass may run in another one, over the gradients.
        with Scope(autocast_dtypes, self.dtypes), Scope(batching, self.batch):
            return TransformCall(self.title, flat, (floating,), {}, 0, False)

    def gradients(self, floating: list[Tensor], gradients: list[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the floating arguments and of other edges.

        `gradients` are the gradients of the outputs.
        """
        recording = is_grad_enabled()
        with replaying(self.draws):
            call = self.run(floating)
        start: dict[Edge, Tensor] = {}
        for out, g in zip(call.outputs, gradients, strict=True):
            if (edge := out._edge) is not None:
                start[edge] = start[edge] + g if edge in start else g
        wanted: list[Any] = [*(x._edge for x in call.inputs), *self.edges]
        del call, out, gradients  # the pass need not hold this memory
        found = run_backward(
            start, set(wanted), retain_graph=recording, create_graph=recording, stop=True
        )
        return [found.get(edge) for edge in wanted]


class _Checkpoint(Function):
    """The outputs of a segment that has run, as a function of its inputs.

    Further inputs are tensors that represent other edges.
    """

    name, holomorphic, own_rule = "checkpoint", False, False

    @staticmethod
    def forward(xp: Any, *arrays: Any, values: list[Any], segment: _Segment) -> Any:
        return values.pop()

    @staticmethod
    def backward(xp: Any, g: Any, arrays: Any, segment: _Segment) -> Any:
        floating = arrays[: len(arrays) - len(segment.edges)]
        if any(isinstance(x, Tensor) for x in (*g, *arrays)):  # in a recorded pass
            return segment.gradients(list(floating), list(g))
        tensors = [
            [from_array(x, segment.device) for x in part] for part in as_arrays((floating, g))
        ]
        return [None if x is None else x._data for x in segment.gradients(*tensors)]


_checkpoint = _Checkpoint()


def blank_of(edge: Edge) -> Any:
    """Return an array of zeros, with an edge's shape and dtype, in the memory of one number."""
    with edge.placement.device.active():
        return run_array_code(
            edge.placement.device, broadcast_number, 0, edge.placement.dtype, tuple(edge.shape)
        )
