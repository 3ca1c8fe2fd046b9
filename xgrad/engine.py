"""The backward walk: from results to leaves through the recorded graph, freeing it on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from threading import Lock
from typing import Any

from xgrad import errors
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Edge, Leaf, Node, Output, clock
from xgrad.operators import namespace
from xgrad.tensor import Tensor, wrap

_lock = Lock()


def walk(
    gradients: dict[Edge, Tensor], wanted: Collection[Edge] | None, *, retain_graph: bool, create_graph: bool
) -> dict[Edge, Tensor]:
    """Carry `gradients`, given for the edges of results, back through the graph, newest node first.

    Return those of the `wanted` edges that the results depend on; None adds to the ``.grad`` of every leaf instead.
    In a first-order pass the rules run on the arrays of the device. With `create_graph` they run on tensors, and
    are recorded themselves.
    """
    nodes = _reachable(gradients)
    needed = None if wanted is None else _leading_to(wanted, nodes)
    changed = clock.last_change > next((node.order for node in nodes if node.order), clock.last_change)
    pending: dict[Edge, Any] = {e: g if create_graph else g._data for e, g in gradients.items()}
    found: dict[Edge, Tensor] = {}
    token = grad_enabled.set(create_graph)
    try:
        while nodes:
            node = nodes.pop()
            g = pending.pop(node, None)
            if g is None or (needed is not None and node not in needed):
                continue
            if node.hooks:
                g = _run_hooks(node, g, create_graph)
            if wanted is not None and node in wanted:
                found[node] = _tensor(node, g)
            if isinstance(node, Leaf):
                if wanted is None:
                    _accumulate(node, _tensor(node, g))
                continue
            if isinstance(node, Output):
                parent: Any = node[0]
                slots = pending.setdefault(parent, [None] * len(parent.shape))
                slots[node.slot] = g if slots[node.slot] is None else _plus(node, slots[node.slot], g)
            else:
                if changed:
                    errors.check_unchanged(node)
                if node.device.guard is None:
                    _apply_rules(node, g, pending, needed, create_graph)
                else:
                    with node.device.guard():
                        _apply_rules(node, g, pending, needed, create_graph)
            if not retain_graph:
                node.saved = node.constants = ()
                node.clear()
    except Exception as error:
        error.add_note(f"in the backward pass, at {node!r}")
        raise
    finally:
        grad_enabled.reset(token)
    return found


def _reachable(roots: Iterable[Edge]) -> list[Edge]:
    """Return what the roots depend on, in the order of recording: every node stands behind its inputs."""
    nodes = list(roots)
    seen = set(nodes)
    for node in nodes:  # which grows on the way
        if type(node) is not Leaf and not len(node):  # type: ignore[arg-type]
            raise RuntimeError(
                f"backward: the graph behind {node.name!r} was freed by an earlier backward pass: give "
                "retain_graph=True to the first pass, or compute the result again"
            )
        for edge in node:
            if edge is not None and edge not in seen:
                seen.add(edge)
                nodes.append(edge)
    nodes.sort(key=lambda node: node.order)
    return nodes


def _leading_to(wanted: Collection[Edge], nodes: list[Edge]) -> set[Edge]:
    """Return the nodes from which a wanted one can be reached; the others need no gradient."""
    needed = set(wanted)
    for node in nodes:
        if not needed.isdisjoint(node):
            needed.add(node)
    return needed


def _apply_rules(node: Node, g: Any, pending: dict[Edge, Any], needed: set[Edge] | None, create_graph: bool) -> None:
    """Run the rules of one node and add their results to what is pending for its inputs."""
    plan, xp = node.plan, namespace if create_graph else node.device.xp
    if type(g) is list:
        g = tuple([_zeros(node, i, create_graph) if part is None else part for i, part in enumerate(g)])
    arguments = plan.arguments(node, g, xp, create_graph)
    results: Iterable[tuple[Edge, Any]]
    for i, rule, pick in plan.steps:
        if i < 0:
            results = _pairs(node, rule(*pick(arguments)))
        elif needed is None or node[i] in needed:
            results = ((node[i], rule(*pick(arguments))),)
        else:
            continue
        for edge, result in results:
            if result.shape != edge.shape:
                result = _sum_to(node, edge, result, xp)
            if (result._data.dtype if create_graph else result.dtype) != edge.dtype:
                result = xp.astype(result, edge.dtype)
            earlier = pending.get(edge)
            pending[edge] = result if earlier is None else _plus(edge, earlier, result)


def _plus(edge: Edge, a: Any, b: Any) -> Any:
    with edge.device.active():  # which a transfer's is not yet
        return a + b


def _pairs(node: Node, results: Any) -> list[tuple[Any, Any]]:
    """Match what a joint rule returned with the inputs that need it."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != len(node) or not all(r is None or hasattr(r, "dtype") for r in results):
        got = [None if r is None else type(r).__name__ for r in results]
        raise RuntimeError(f"{node.name}: backward returned {got}: expected an array or None for each of {len(node)}")
    return [(e, r) for e, r in zip(node, results, strict=True) if e is not None and r is not None]


def _zeros(node: Node, i: int, create_graph: bool) -> Any:
    """Return the gradient of a result that nothing depends on."""
    raw = node.device.xp.zeros(node.shape[i], dtype=node.dtype[i], device=node.device.native)
    return wrap(raw, node.device) if create_graph else raw


def _sum_to(node: Node, edge: Edge, g: Any, xp: Any) -> Any:
    """Sum a gradient over the axes along which its input was broadcast."""
    shape, got = tuple(edge.shape), tuple(g.shape)
    lead = len(got) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, got[lead:], strict=True)):
        raise RuntimeError(
            f"{node.name}: a derivative rule returned a gradient of shape {got} for an input of shape {shape}: "
            "expected that shape, or one that it broadcasts to"
        )
    axes = tuple(range(lead)) + tuple(i for i, n in enumerate(shape, lead) if n == 1 != got[i])
    return xp.reshape(xp.sum(g, axis=axes), shape)


def _run_hooks(node: Edge, g: Any, create_graph: bool) -> Any:
    gradient = _tensor(node, g)
    for hook in list((node.hooks or {}).values()):
        new = hook(gradient)
        if new is not None:
            gradient._check_like("register_hook", new)
            gradient = new
    return gradient if create_graph else gradient._data


def _tensor(node: Edge, g: Any) -> Tensor:
    if isinstance(g, Tensor):
        return wrap(g._data, g._device, g._edge)  # one of its own, that may be assigned to
    return wrap(g if type(g) is node.device.array_type else node.device.coerce(g), node.device)


def _accumulate(leaf: Leaf, g: Tensor) -> None:
    with _lock:  # two threads may get here with one leaf
        leaf.grad = g if leaf.grad is None else leaf.grad + g
