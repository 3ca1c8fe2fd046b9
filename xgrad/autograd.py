"""Gradients of tensors: `grad` returns them, `backward` adds them to ``.grad``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from xgrad.backend.device import Placement
from xgrad.backend.recording import active_recorder, broadcast_number, run_array_code
from xgrad.core import providers
from xgrad.core.arguments import check_tensors
from xgrad.core.engine import run_backward
from xgrad.core.graph import Edge
from xgrad.core.tensor import Tensor, from_placement
from xgrad.support import hints

if TYPE_CHECKING:
    from xgrad.diagnostics.anomalies import detect_anomaly, set_detect_anomaly

__all__ = [
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "grad",
    "set_detect_anomaly",
]
hints.install(__name__, lazy="xgrad.diagnostics.anomalies")

_P = ParamSpec("_P")
_R = TypeVar("_R")


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of one or several results to the ``.grad`` of every leaf in their graphs.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        The results, of any shape and on any device.
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The gradient of each result, of the same shape, dtype and device; may be None for a scalar.
    retain_graph : bool, optional
        Whether to keep the values that the graph saved; by default, the same as `create_graph`.
    create_graph : bool, default False
        Whether to record the backward pass itself.

    Raises
    ------
    RuntimeError
        If a result has no graph, the graph was freed, or a value that it saved has since changed.
    ValueError
        If a gradient is missing for a result that is not a real scalar, or a gradient does not
        match its result.

    Notes
    -----
    After Ctrl-C, or an exception from another signal handler, the graph may be partly freed, and
    some leaves may lack their gradients, as in PyTorch: clear the gradients, and compute the
    results again.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([1.0, 2.0], requires_grad=True)
    >>> xgrad.autograd.backward(x * x, xgrad.ones(2))
    >>> x.grad
    Tensor([2., 4.])
    """
    keep = create_graph if retain_graph is None else retain_graph or create_graph
    run_backward(
        _start("backward", tensors, grad_tensors),
        None,
        retain_graph=keep,
        create_graph=create_graph,
    )


@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: Literal[False] = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, leaves or computed tensors.

    No ``.grad`` changes, and only gradients on paths between outputs and inputs are computed.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        The results to differentiate; the gradients of several add up.
    inputs : Tensor or sequence of Tensor
        The tensors to differentiate with respect to.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        The gradient of each output, of the same shape, dtype and device; may be None for a scalar.
    create_graph : bool, default False
        Whether to record the backward pass, so that the gradients can be differentiated again, to
        any order.
    retain_graph : bool, optional
        Whether to keep the values that the graph saved; by default, the same as `create_graph`.
    allow_unused : bool, default False
        Whether to return None for an input that the outputs do not depend on, instead of raising an
        error.

    Returns
    -------
    tuple of Tensor
        One gradient for each input, of the input's shape, dtype and device.

    Raises
    ------
    RuntimeError
        As for `backward`, and if an input is not part of the graph.
    ValueError
        As for `backward`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor(3.0, requires_grad=True)
    >>> (first,) = xgrad.autograd.grad(x * x * x, x, create_graph=True)
    >>> xgrad.autograd.grad(first, x)
    (Tensor(18.),)
    """
    inputs = check_tensors("grad", "inputs", inputs)
    edges: list[Edge] = []
    for i, x in enumerate(inputs):
        if x._edge is None:
            raise RuntimeError(
                f"grad: inputs[{i}] needs no gradient: call requires_grad_() before it is used"
            )
        edges.append(x._edge)
    keep = create_graph if retain_graph is None else retain_graph
    start = _start("grad", outputs, grad_outputs)
    mapped = any(g.device.level > edge.placement.device.level for edge, g in start.items())
    # In a vmap over the gradients only, the rules run on tensors, only some of which are batched.
    gradients = run_backward(
        start, set(edges), retain_graph=keep, create_graph=create_graph or mapped
    )
    if mapped and not create_graph:
        gradients = {edge: g.detach() for edge, g in gradients.items()}
    unused = [i for i, edge in enumerate(edges) if edge not in gradients]
    if unused and not allow_unused:
        raise RuntimeError(
            f"grad: the outputs do not depend on inputs {unused}: allow_unused=True returns None"
            " for them"
        )
    return tuple(map(gradients.get, edges))


def checkpoint(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call a function, and call it again in the backward pass instead of saving its graph [1]_.

    Only the arguments are saved.

    Parameters
    ----------
    function : callable
        Returns tensors, in any containers.
    args, kwargs : object
        Its arguments; tensors may be in nested dicts, lists and tuples.

    Returns
    -------
    object
        The result of the function.

    Raises
    ------
    TypeError
        If `function` cannot be called, or returns anything but tensors in containers.

    Notes
    -----
    The gradients equal the gradients of a plain call, with respect to the arguments and all tensors
    that the function uses, to any order. The function must compute the same values when it runs
    again: xgrad's random numbers, as for dropout, are drawn again with the same values, and the
    `xgrad.amp.autocast` mode of the first call applies. A layer that changes its state, such as
    batch normalization in training, changes it in both calls. Checkpointed functions may call
    `checkpoint` themselves.

    References
    ----------
    .. [1] T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost",
       arXiv:1604.06174.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([1.0, 2.0], requires_grad=True)
    >>> y = xgrad.autograd.checkpoint(lambda x: xgrad.exp(xgrad.sin(x)) * x, x)
    >>> y.sum().backward()  # computes the sine, the exponential and the product again
    >>> x.grad
    Tensor([3.5731578 , 0.41634417])
    """
    result: _R = providers.module("recomputation").checkpoint(function, args, kwargs)
    return result


def checkpoint_sequential(
    functions: Iterable[Callable[[Tensor], Tensor]], segments: int, x: Tensor
) -> Tensor:
    """Call functions one after the other, in segments that the backward pass computes again.

    Only the inputs of the segments are saved, and the graph of the last segment, which is recorded
    as usual. The square root of the number of functions is a good number of segments.

    Parameters
    ----------
    functions : iterable of callable
        Functions or modules of one tensor, such as an `xgrad.nn.Sequential`.
    segments : int
        The number of segments.
    x : Tensor
        The input of the first function.

    Returns
    -------
    Tensor
        The result of the last function.

    Raises
    ------
    ValueError
        If the number of segments is not from 1 to the number of functions.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.MLP([4] * 10)
    >>> xgrad.autograd.checkpoint_sequential(model, 3, xgrad.ones((2, 4))).shape
    (2, 4)
    """
    steps = list(functions)
    if not 1 <= segments <= len(steps):
        raise ValueError(
            f"checkpoint_sequential: expected 1 to {len(steps)} segments, got {segments}"
        )
    starts = [len(steps) * i // segments for i in range(segments + 1)]
    for start, stop in pairwise(starts):
        part = partial(reduce, lambda x, step: step(x), steps[start:stop])
        x = part(x) if stop == len(steps) else checkpoint(part, x)
    return x


@lru_cache(64)
def _ones(placement: Placement, shape: tuple[int, ...]) -> Any:
    """Return the cached gradient of a scalar, which is broadcast, and so read-only in NumPy."""
    with placement.device.active():
        return run_array_code(placement.device, broadcast_number, 1, placement.dtype, shape)


def _start(
    name: str,
    results: Tensor | Sequence[Tensor],
    gradients: Tensor | Sequence[Tensor | None] | None,
) -> dict[Edge, Tensor]:
    """Pair each result's edge with its gradient."""
    results = check_tensors(name, "outputs" if name == "grad" else "tensors", results)
    many: Any = (
        gradients
        if isinstance(gradients, (list, tuple))
        else [gradients] + [None] * (len(results) - 1)
    )
    if len(many) != len(results):
        raise ValueError(
            f"{name}: expected a gradient for each of {len(results)} results, got {len(many)}"
        )
    start: dict[Edge, Tensor] = {}
    for tensor, gradient in zip(results, many, strict=True):
        if tensor._edge is None and tensor._is_differentiated:
            raise RuntimeError(
                f"{name}: this tensor of a vmap has a graph only outside of it: use xgrad.grad in"
                " the function, or the result of vmap"
            )
        if tensor._edge is None:
            raise RuntimeError(
                f"{name}: this tensor has no graph: nothing that it was computed from requires a"
                " gradient, or it was computed under no_grad()"
            )
        if gradient is None:
            if tensor.size != 1:
                raise ValueError(
                    f"{name}: expected a scalar or a gradient, got a tensor of shape {tensor.shape}"
                    " without one: sum it, or give a gradient of its shape"
                )
            if tensor.dtype.kind == "c":
                raise ValueError(
                    f"{name}: expected a real result or a gradient, got a tensor of {tensor.dtype}"
                    " without one: take a real part, an absolute value or the like of it, or give"
                    " a gradient"
                )
            # A cached array belongs neither to a step that is being recorded nor to a vmap.
            shared = active_recorder() is None and not tensor.device.level
            ones = _ones if shared else _ones.__wrapped__
            gradient = from_placement(
                ones(tensor._placement, tensor._data.shape), tensor._placement
            )
        else:
            tensor._check_gradient(name, gradient, mapped=name == "grad")
        earlier = start.get(tensor._edge)
        start[tensor._edge] = gradient if earlier is None else earlier + gradient
    return start
