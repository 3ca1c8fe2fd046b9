"""The backward walk: from results to leaves through the recorded graph, freeing it on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from operator import attrgetter
from threading import Lock
from typing import Any

from xgrad.backend.device import Placement, tracing
from xgrad.core import errors
from xgrad.core.dtypes import is_complex
from xgrad.core.grad_mode import grad_enabled
from xgrad.core.graph import Edge, Leaf, Node, OutputEdge, clock
from xgrad.core.namespace import namespace
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor, from_placement

_lock = Lock()


def run_backward(
    gradients: dict[Edge, Tensor], wanted: Collection[Edge] | None, *, retain_graph: bool, create_graph: bool
) -> dict[Edge, Tensor]:
    """Carry `gradients`, given for the edges of results, back through the graph, newest node first.

    Return those of the `wanted` edges that the results depend on; None adds to the ``.grad`` of every leaf instead.
    In a first-order pass the rules run on the arrays of the device. With `create_graph` they run on tensors, and
    are recorded themselves.
    """
    needed = None if wanted is None else _reachable(wanted, gradients)
    adds = wanted is None and not create_graph  # then rules may write where an optimizer keeps the gradient of a leaf
    found: dict[Edge, Tensor] = {}
    leaves: list[tuple[Leaf, Any]] = []
    pending: dict[Edge, Any] = {edge: g if create_graph else g._data for edge, g in gradients.items()}
    newest = sorted([(-edge.order, edge) for edge in gradients])
    replaced: list[Edge] = []  # inputs of which no value is left: see `Function.replaces`
    sums: set[Edge] = set()  # whose pending gradient is an array made here, that nothing else sees
    running = [True]  # emptied at the end: what slots are reserved by
    recording, here, guard = grad_enabled.get(), None, None
    try:
        grad_enabled.set(create_graph)
        while newest:
            node: Any = heappop(newest)[1]
            g = pending.pop(node)
            if node.hooks:
                g = _run_hooks(node, g, create_graph)
            if wanted is not None and node in wanted:
                found[node] = _tensor(node, g)
            if type(node) is Leaf:
                leaves.append((node, g))
                continue
            saved = node.saved
            if saved is None:
                raise RuntimeError(
                    f"backward: the graph behind {node.name!r} was freed by an earlier backward pass: give "
                    "retain_graph=True to the first pass, or compute the result again"
                )
            if type(node) is OutputEdge:
                parent: Any = saved[0]
                if parent not in pending:
                    pending[parent] = [None] * len(parent.shape)
                    heappush(newest, (-parent.order, parent))
                pending[parent][node.slot] = g
                continue
            if clock.last_change > node.order:
                errors.check_unchanged(node)
            if node.placement.device is not here:
                here = node.placement.device
                if (trace := tracing.get()) is not None and here is not trace.device:
                    trace.refuse("a graph from before the step is walked")
                if guard is not None:
                    left, guard = guard, None
                    left.__exit__(None, None, None)
                if here.device_context is not None:
                    guard = here.device_context()
                    guard.__enter__()
                xp = namespace if create_graph else here.xp
            spec = node.spec
            values = spec.tensors(node) if create_graph else saved
            if type(g) is list:
                g = tuple([_zeros(node, i, create_graph) if part is None else part for i, part in enumerate(g)])
            vjp_calls = _shared(node, spec.vjp_calls[0][1](g, xp, values, None)) if spec.joint else spec.vjp_calls
            if spec.op.replaces and node.edges[0] is not None:
                replaced.append(node.edges[0])
            for i, rule, writes in vjp_calls:
                edge = saved[i]
                if needed is not None and edge not in needed:
                    continue
                into = None
                if adds and writes and edge not in pending and type(edge) is Leaf and edge.slot and not edge.hooks:
                    with _lock:  # what a hook is given may be kept
                        into = edge.slot.reserve(edge, running)
                result = rule(g, xp, values, into)
                if result.shape != edge.shape or result.dtype is not edge.placement.dtype:
                    result = _unbroadcast_and_cast(node, edge, result, xp)
                if edge not in pending:
                    pending[edge] = result
                    heappush(newest, (-edge.order, edge))
                    continue
                if edge.placement.device is not here:  # of a transfer
                    with edge.placement.device.active():
                        pending[edge] = pending[edge] + result
                elif edge in sums:
                    pending[edge] += result
                else:
                    pending[edge] = pending[edge] + result
                    if not create_graph:
                        sums.add(edge)
            if not retain_graph:
                node.saved = None
        if replaced:
            _add_zeros(replaced, found, leaves, wanted, retain_graph)
        if wanted is None:
            _accumulate(leaves)
    except Exception as error:
        error.add_note(f"in the backward pass, at {node!r}")
        raise
    finally:  # in an order in which signal handlers, that run after a call, leave out nothing
        del running[:]
        try:
            if guard is not None:
                guard.__exit__(None, None, None)
        finally:
            grad_enabled.set(recording)
    return found


def _add_zeros(
    replaced: list[Edge],
    found: dict[Edge, Tensor],
    leaves: list[tuple[Leaf, Any]],
    wanted: Collection[Edge] | None,
    retain_graph: bool,
) -> None:
    """Give zeros to what results depend on only through values that were replaced.

    No rule runs: where a derivative is infinite, it would make NaN of zeros.
    """
    seen: set[Edge] = {leaf for leaf, _ in leaves} | found.keys()
    for edge in replaced:  # which grows on the way
        if edge in seen:
            continue
        seen.add(edge)
        if type(edge) is Leaf if wanted is None else edge in wanted:
            device, shape = edge.placement.device, edge.shape
            with device.active():
                zeros: Any = device.xp.zeros(shape, dtype=edge.placement.dtype, device=device.native)
            zeros = _run_hooks(edge, zeros, False) if edge.hooks else zeros
            if type(edge) is Leaf and wanted is None:
                leaves.append((edge, zeros))
            else:
                found[edge] = from_placement(zeros, edge.placement)
        replaced += [behind for behind in edge.edges if behind is not None]
        if not retain_graph and isinstance(edge, Node) and type(edge) is not OutputEdge:
            edge.saved = None


def _reachable(wanted: Collection[Edge], roots: Iterable[Edge]) -> set[Edge]:
    """Return the edges behind the roots from which a wanted one can be reached; the others need no gradient."""
    nodes = list(roots)
    seen = set(nodes)
    oldest = min((edge.order for edge in wanted), default=0)  # what is older cannot depend on it
    for node in nodes:  # which grows on the way
        for edge in node.edges:
            if edge is not None and edge.order >= oldest and edge not in seen:
                seen.add(edge)
                nodes.append(edge)
    # A node that was freed may have led there: the walk is to come to it, and refuse.
    needed = {*wanted, *(node for node in nodes if not isinstance(node, Leaf) and node.saved is None)}
    for node in sorted(nodes, key=attrgetter("order")):
        if not needed.isdisjoint(node.edges):
            needed.add(node)
    return needed


def _shared(node: Node, results: Any) -> list[tuple[int, Rule, bool]]:
    """Return the steps of a node whose one rule has returned the gradients of all inputs: each hands over its own."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    edges = node.edges
    if len(results) != len(edges) or not all(r is None or hasattr(r, "dtype") for r in results):
        got = [None if r is None else type(r).__name__ for r in results]
        raise RuntimeError(f"{node.name}: backward returned {got}: expected an array or None for each of {len(edges)}")
    found = enumerate(zip(edges, results, strict=True), node.spec.first)
    return [(i, lambda *_, result=r: result, False) for i, (edge, r) in found if not (edge is None or r is None)]


def _zeros(node: Any, i: int, create_graph: bool) -> Any:
    """Return the gradient of a result that nothing depends on."""
    placement: Placement = node.placements[i]
    raw = placement.device.xp.zeros(node.shape[i], dtype=placement.dtype, device=placement.device.native)
    return from_placement(raw, placement) if create_graph else raw


def _unbroadcast_and_cast(node: Node, edge: Edge, g: Any, xp: Any) -> Any:
    """Sum a gradient over the axes along which its input was broadcast, and give it the input's dtype.

    A real input moves along the real axis alone: it gets the real part.
    """
    shape, got = tuple(edge.shape), tuple(g.shape)
    if got != shape:
        lead = len(got) - len(shape)
        if lead < 0 or (got[lead:] != shape and any(n not in (1, m) for n, m in zip(shape, got[lead:], strict=True))):
            raise RuntimeError(
                f"{node.name}: a derivative rule returned a gradient of shape {got} for an input of shape {shape}: "
                "expected that shape, or one that it broadcasts to"
            )
        axes = tuple(range(lead))
        if got[lead:] != shape:
            axes += tuple(i for i, n in enumerate(shape, lead) if n == 1 != got[i])
        g = xp.sum(g, axis=axes)
        g = g if g.shape == shape else xp.reshape(g, shape)
    dtype = edge.placement.dtype
    if getattr(g, "_data", g).dtype == dtype:
        return g
    return xp.astype(xp.real(g) if is_complex(g.dtype) and not is_complex(dtype) else g, dtype)


def _run_hooks(node: Edge, g: Any, create_graph: bool) -> Any:
    gradient = _tensor(node, g)
    for hook in list((node.hooks or {}).values()):
        new = hook(gradient)
        if new is not None:
            gradient._check_gradient("register_hook", new)
            gradient = new
    return gradient if create_graph else gradient._data


def _tensor(node: Edge, g: Any) -> Tensor:
    if isinstance(g, Tensor):
        return from_placement(g._data, g._placement, g._edge)  # one of its own, that may be assigned to
    device = node.placement.device
    return from_placement(g if type(g) is device.array_type else device.as_array(g), node.placement)


def _accumulate(leaves: list[tuple[Leaf, Any]]) -> None:
    """Add the gradients that reached leaves to those that they have."""
    with _lock:  # two threads may get here with one leaf
        for leaf, g in leaves:
            if leaf.slot is not None and not isinstance(g, Tensor):
                leaf.slot.receive(leaf, g)
            else:
                leaf.grad = _tensor(leaf, g) if leaf.grad is None else leaf.grad + _tensor(leaf, g)
