"""The backward pass: from results to leaves through the recorded graph, which it frees."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from operator import attrgetter
from threading import RLock
from typing import Any

from xgrad.backend.device import Placement, intercepting
from xgrad.backend.recording import active_recorder, as_arrays, recording, run_array_code
from xgrad.core import providers
from xgrad.core.changes import check_unchanged
from xgrad.core.dtypes import is_complex
from xgrad.core.graph import Edge, Leaf, Node, OutputEdge, clock
from xgrad.core.modes import grad_enabled
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor, from_placement

# a handler of NumPy's errors, which adding may call, may run a backward pass of its own
_lock = RLock()


def run_backward(
    gradients: dict[Edge, Tensor],
    wanted: Collection[Edge] | None,
    *,
    retain_graph: bool,
    create_graph: bool,
    stop: bool = False,
) -> dict[Edge, Tensor]:
    """Carry `gradients`, given for the edges of results, back through the graph, newest node first.

    Return the gradients of the `wanted` edges that the results depend on; None adds to the
    ``.grad`` of every leaf instead. With `stop`, wanted edges are taken as independent of each
    other: the pass ends at each, before its hooks. In a first-order pass the rules run on the
    arrays of the device. With `create_graph` they run on tensors, and are recorded themselves.
    """
    if (mode := intercepting.get()) is not None:
        mode.before_backward(gradients)
    recorder = None if create_graph else active_recorder()  # for the rules of this pass
    needed: set[Edge] = set()
    oldest = 0
    if wanted is not None:
        # older edges depend on no wanted one
        oldest = min((edge.order for edge in wanted), default=0)
        needed = _reachable(wanted, gradients, oldest)
    # rules may then write where an optimizer keeps the gradient
    accumulates = wanted is None and not create_graph
    results: dict[Edge, Tensor] = {}
    leaves: list[tuple[Leaf, Any]] = []
    pending: dict[Edge, Any] = {
        edge: g if create_graph else g._data for edge, g in gradients.items()
    }
    # a heap; orders are unique, so that edges are never compared
    queue = sorted([(-edge.order, edge) for edge in gradients])
    replaced: list[Edge] = []  # inputs of which no value is left: see `Op.replaces`
    # edges with a pending gradient in an array made here, that nothing else sees
    owned: set[Edge] = set()
    # emptied at the end of the pass: a receiver lends its array to one pass at a time
    running = [True]
    grad_before = grad_enabled.get()
    device = None  # the device of the last node, in whose context the rules run
    context: Any = None
    try:
        grad_enabled.set(create_graph)
        while queue:
            node: Any = heappop(queue)[1]
            g = pending.pop(node)
            if stop and wanted is not None and node in wanted:
                results[node] = _tensor(node, g)
                continue
            if node.hooks:
                g = _run_hooks(node, g, create_graph)
            if wanted is not None and node in wanted:
                results[node] = _tensor(node, g)
                known = type(node) is Leaf or node.saved is not None
                if node.order == oldest or (known and needed.isdisjoint(node.edges)):
                    continue  # nothing else that is wanted lies behind: its graph is not touched
            if type(node) is Leaf:
                leaves.append((node, g))
                continue
            saved = node.saved
            if saved is None:
                raise RuntimeError(
                    f"backward: the graph behind {node.name!r} was freed by an earlier backward"
                    " pass: give retain_graph=True to the first pass, or compute the result again"
                )
            if type(node) is OutputEdge:
                parent: Any = saved[0]
                if parent not in pending:
                    pending[parent] = [None] * len(parent.shape)
                    heappush(queue, (-parent.order, parent))
                pending[parent][node.index] = g
                continue
            if clock.last_change > node.order:
                check_unchanged(node)
            if node.placement.device is not device:
                device = node.placement.device
                previous, context = context, None
                if previous is not None:
                    previous.__exit__(None, None, None)
                if device.device_context is not None:
                    context = device.device_context()
                    context.__enter__()
                xp = providers.module("functions") if create_graph else device.xp
            spec = node.spec
            values = spec.tensors(node) if create_graph else saved
            if type(g) is list:
                g = tuple(
                    [
                        _zeros(node, i, create_graph) if part is None else part
                        for i, part in enumerate(g)
                    ]
                )
            if recorder is not None:
                within, (g, values), _ = recorder.enter(device, [g, saved], {})
                xp = within.xp
            vjp_calls = spec.vjp_calls
            if spec.joint_backward:
                vjp_calls = _split_joint_gradients(node, vjp_calls[0][1](g, xp, values, None))
            if spec.op.replaces and node.edges[0] is not None:
                replaced.append(node.edges[0])
            for i, rule, writes in vjp_calls:
                edge = saved[i]
                if wanted is not None and edge not in needed:
                    continue
                into = None
                # Not if a hook runs, which may keep its gradient.
                if (
                    accumulates
                    and writes
                    and edge not in pending
                    and type(edge) is Leaf
                    and edge.receiver
                    and not edge.hooks
                ):
                    with _lock:
                        into = edge.receiver.lend(edge, running)
                    if recorder is not None:
                        into = recorder.inside(into)
                result = rule(g, xp, values, into)
                if recorder is not None:  # the rule of a checkpoint returns arrays
                    result = recorder.inside(result)
                if result.shape != edge.shape or result.dtype is not edge.placement.dtype:
                    result = _unbroadcast_and_cast(node, edge, result, xp)
                if edge not in pending:
                    pending[edge] = result
                    heappush(queue, (-edge.order, edge))
                elif edge.placement.device is not device:  # of a transfer
                    with edge.placement.device.active():
                        pending[edge] = pending[edge] + result
                elif edge in owned:
                    pending[edge] += result
                else:
                    pending[edge] = pending[edge] + result
                    if not create_graph:
                        owned.add(edge)
            if not retain_graph:
                node.saved = None
        if replaced:
            _add_zeros(replaced, results, leaves, wanted, retain_graph)
        if wanted is None:
            _accumulate(leaves)
    except Exception as error:
        error.add_note(f"in the backward pass, at {node!r}")
        providers.module("errors").note_memory(error, device)
        raise
    finally:
        del running[:]
        try:
            if context is not None:
                context.__exit__(None, None, None)
        finally:
            grad_enabled.set(grad_before)
    if mode is not None:
        mode.after_backward()
    return results


def _add_zeros(
    replaced: list[Edge],
    results: dict[Edge, Tensor],
    leaves: list[tuple[Leaf, Any]],
    wanted: Collection[Edge] | None,
    retain_graph: bool,
) -> None:
    """Add zero gradients for edges that results depend on only through values that were replaced.

    No rule runs: where a derivative is infinite, it would turn zeros into NaN.
    """
    seen: set[Edge] = {leaf for leaf, _ in leaves} | results.keys()
    for edge in replaced:  # a list that grows in the loop
        if edge in seen:
            continue
        seen.add(edge)
        is_wanted = type(edge) is Leaf if wanted is None else edge in wanted
        if is_wanted:
            with edge.placement.device.active():
                zeros = _zero_array(edge.shape, edge.placement)
            zeros = _run_hooks(edge, zeros, False) if edge.hooks else zeros
            if type(edge) is Leaf and wanted is None:
                leaves.append((edge, zeros))
            else:
                results[edge] = from_placement(zeros, edge.placement)
        replaced += [behind for behind in edge.edges if behind is not None]
        if not retain_graph and isinstance(edge, Node) and type(edge) is not OutputEdge:
            edge.saved = None


def _reachable(wanted: Collection[Edge], roots: Iterable[Edge], oldest: int) -> set[Edge]:
    """Return the edges behind the roots that lead to a wanted edge: only they need a gradient."""
    nodes = list(roots)
    seen = set(nodes)
    for node in nodes:  # a list that grows in the loop
        for edge in node.edges:
            if edge is not None and edge.order >= oldest and edge not in seen:
                seen.add(edge)
                nodes.append(edge)
    # A freed node may have led to a wanted edge: the pass must reach it, and refuse.
    needed = {
        *wanted,
        *(node for node in nodes if not isinstance(node, Leaf) and node.saved is None),
    }
    for node in sorted(nodes, key=attrgetter("order")):
        if not needed.isdisjoint(node.edges):
            needed.add(node)
    return needed


def _split_joint_gradients(node: Node, results: Any) -> list[tuple[int, Rule, bool]]:
    """Return calls that hand over one by one the gradients that one rule returned."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    edges = node.edges
    if len(results) != len(edges) or not all(r is None or hasattr(r, "dtype") for r in results):
        got = [None if r is None else type(r).__name__ for r in results]
        raise RuntimeError(
            f"{node.name}: backward returned {got}: expected an array or None for each of"
            f" {len(edges)}"
        )
    indexed = enumerate(zip(edges, results, strict=True), node.spec.first_edge)
    return [
        (i, lambda *_, result=r: result, False)
        for i, (edge, r) in indexed
        if not (edge is None or r is None)
    ]


def _zeros(node: Any, i: int, create_graph: bool) -> Any:
    """Return the gradient of a result that nothing depends on."""
    placement: Placement = node.placements[i]
    zeros = _zero_array(node.shape[i], placement)
    return from_placement(zeros, placement) if create_graph else zeros


def _zero_array(shape: tuple[int, ...], placement: Placement) -> Any:
    return run_array_code(placement.device, _zeros_of, shape, placement.dtype)


def _zeros_of(device: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return device.xp.zeros(shape, dtype=dtype, device=device.native)


def _unbroadcast_and_cast(node: Node, edge: Edge, g: Any, xp: Any) -> Any:
    """Sum a gradient over the axes along which its input was broadcast, and cast it.

    The dtype is the dtype of the input. A real input moves along the real axis alone: it gets the
    real part.
    """
    shape, got = tuple(edge.shape), tuple(g.shape)
    if got != shape:
        lead = len(got) - len(shape)
        if lead < 0 or (
            got[lead:] != shape
            and any(n not in (1, m) for n, m in zip(shape, got[lead:], strict=True))
        ):
            raise RuntimeError(
                f"{node.name}: a derivative rule returned a gradient of shape {got} for an input of"
                f" shape {shape}: expected that shape, or one that it broadcasts to"
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
        # a separate tensor, which may be assigned to
        return from_placement(g._data, g._placement, g._edge)
    device = node.placement.device
    g = as_arrays(g)
    return from_placement(g if type(g) is device.array_type else device.as_array(g), node.placement)


def _accumulate(leaves: list[tuple[Leaf, Any]]) -> None:
    """Add gradients to the ``.grad`` of leaves."""
    recorder = recording.get()  # also after a refusal: gradients may be proxies from before
    with _lock:  # two threads may have gradients of one leaf
        for leaf, g in leaves:
            if recorder is not None:
                g = recorder.outside(g)
            if leaf.receiver is not None and not isinstance(g, Tensor):
                leaf.receiver.receive(leaf, g)
            else:
                leaf.grad = _tensor(leaf, g) if leaf.grad is None else leaf.grad + _tensor(leaf, g)
