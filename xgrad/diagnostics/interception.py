"""Interception of ops together with their derivative rules, to check or measure them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from xgrad.backend.device import Device, Interceptor, intercepting
from xgrad.core.backward_spec import BackwardSpec
from xgrad.core.graph import Edge, Node, OutputEdge
from xgrad.core.op import Op, Rule


class WatchedRule(NamedTuple):
    """A derivative rule of a node: of an op that was called at a line, "" before the mode."""

    op: Op
    line: str
    device: Device
    first: int  # the index of the first edge in what the node saves
    edge: int  # ... and of that which the rule is for
    rule: Rule


class RuleInterceptor(Interceptor):
    """An interceptor that also runs derivative rules.

    They are the rules of nodes that it watches, and of nodes that a backward pass reaches.
    """

    def watch(self, edge: Edge | None, line: str) -> None:
        """Intercept the derivative rules of a node: of an op that was called at a line."""
        node = edge.saved[0] if type(edge) is OutputEdge else edge
        if isinstance(node, Node) and type(node.spec) is not WatchedSpec:
            node.spec = WatchedSpec(node, line)

    def before_backward(self, edges: Iterable[Any]) -> None:
        """Watch the nodes of a graph, of which parts may be from before."""
        stack: list[Edge | None] = list(edges)
        seen: set[Edge] = set()
        while stack:
            edge = stack.pop()
            if edge is not None and edge not in seen:
                seen.add(edge)
                self.watch(edge, "")
                stack += edge.edges


class WatchedSpec(BackwardSpec):
    """The specification of one node, whose derivative rules pass through the current mode."""

    __slots__ = ()

    def __init__(self, node: Node, line: str) -> None:
        for name in BackwardSpec.__slots__:
            setattr(self, name, getattr(node.spec, name))
        watched = partial(WatchedRule, self.op, line, node.placement.device, self.first_edge)
        self.vjp_calls = [
            (i, partial(_run_rule, watched(i, rule)), writes) for i, rule, writes in self.vjp_calls
        ]


def _run_rule(watched: WatchedRule, *args: Any) -> Any:
    mode = intercepting.get()
    return watched.rule(*args) if mode is None else mode.run_rule(watched, *args)
