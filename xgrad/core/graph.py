"""The recorded graph: nodes, leaves, and the clock that orders recordings and changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar
from weakref import ref

from xgrad.backend.device import Placement

Hook = Callable[[Any], Any]
N = TypeVar("N", bound="Node")


class Clock:
    """One running number for recordings and changes, so that comparing two tells which came first."""

    def __init__(self) -> None:
        self.numbers, self.last_change = count(1), 0

    def change(self) -> int:
        """Note that a value changed behind the graph's back, and return when."""
        self.last_change = next(self.numbers)
        return self.last_change


clock = Clock()


class Leaf:
    """Where the gradients of a tensor that the user made end up; it keeps them, and never the tensor."""

    __slots__ = ("changed", "grad", "hooks", "moved", "order", "placement", "shape", "slot", "viewed")
    name = "leaf"
    edges = ()

    def __init__(self, shape: tuple[int, ...], placement: Placement) -> None:
        self.order = -next(clock.numbers)  # before every recording
        self.shape, self.placement = shape, placement
        self.grad: Any = None
        self.slot: Any = None  # where an optimizer keeps the gradient
        self.hooks: dict[Any, Hook] | None = None
        self.changed = self.moved = 0
        self.viewed = False  # whether the tensor may have views, or be one

    def __repr__(self) -> str:
        return f"<leaf {self.shape}>"

    def change(self, shape: tuple[int, ...], placement: Placement, when: int) -> None:
        """Follow a tensor to another value; its gradient goes along to another device or dtype, not shape."""
        if shape != self.shape or placement is not self.placement:
            grad = None
            if self.grad is not None and shape == self.shape:
                grad = self.grad.detach().to(placement.device, dtype=placement.dtype)
            if shape != self.shape or placement.device is not self.placement.device:
                self.moved = when
            self.grad, self.slot = grad, None  # with no call from here on, after which a signal handler could run
        self.shape, self.placement, self.changed = shape, placement, when


class Node:
    """One recorded call of a function: what its rules need, and where their results go.

    `saved` is one tuple: the values for the rules, weak references to those of them that are constants, and an
    edge for each input, None where no gradient is needed. The walk lets go of it. A node holds arrays and other
    nodes, never its own output, so a graph has no reference cycle.
    """

    # One tuple, not several, and few slots: Python's collector visits them all.
    __slots__ = ("changed", "hooks", "order", "placement", "saved", "shape", "spec")

    spec: Any
    saved: tuple[Any, ...] | None
    order: int
    shape: Any
    placement: Placement
    hooks: dict[Any, Hook] | None
    changed: int

    @property
    def edges(self) -> tuple[Edge | None, ...]:
        """Where the gradients of the inputs go, none once the node was freed."""
        return () if self.saved is None else self.saved[self.spec.first :]

    @property
    def name(self) -> str:
        """The name of the op."""
        return str(self.spec.op.name)

    @property
    def inputs(self) -> dict[str, Edge | None]:
        """The nodes and leaves behind the op's inputs, by name; None where no gradient is needed; {} once freed."""
        return dict(self.spec.op.named(self.edges))

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} from {edge.name}" for name, edge in self.inputs.items() if edge is not None)
        return f"<{self.name} {self.shape}: {inputs or 'freed'}>"

    def change(self, shape: tuple[int, ...], placement: Placement, when: int) -> None:
        """Note when the result was given another value."""
        if shape != self.shape or placement is not self.placement:
            raise ValueError(
                f"data: expected shape {tuple(self.shape)}, {self.placement} for a computed tensor, got "
                f"{tuple(shape)}, {placement}: use .detach()"
            )
        self.changed = when


def record(node: N, spec: Any, saved: tuple[Any, ...], shape: Any, placement: Placement) -> N:
    """Fill in a new node."""
    node.spec, node.saved, node.shape, node.placement = spec, saved, shape, placement
    node.order, node.hooks, node.changed = next(clock.numbers), None, 0
    return node


class MultiOutputNode(Node):
    """A call that had several results. It knows their edges while they live, to find them again."""

    __slots__ = ("outputs", "placements")
    outputs: list[Callable[[], OutputEdge | None]]
    placements: list[Placement]

    def edge(self, slot: int) -> OutputEdge:
        """Return the edge of one result."""
        edge: OutputEdge | None = self.outputs[slot]()
        if edge is None:
            edge = record(OutputEdge(), self.spec, (self,), self.shape[slot], self.placements[slot])
            edge.slot = slot
            self.outputs[slot] = ref(edge)
        return edge


class OutputEdge(Node):
    """One result of a function that has several: it passes its gradient on to its place in the node's."""

    __slots__ = ("__weakref__", "slot")
    saved: tuple[MultiOutputNode]
    slot: int

    @property
    def name(self) -> str:
        """The name of the op, and which of its results this is."""
        return f"{super().name}[{self.slot}]"

    @property
    def edges(self) -> tuple[Edge | None, ...]:
        """The node, freed or not."""
        return self.saved

    @property
    def inputs(self) -> dict[str, Edge | None]:
        """The nodes and leaves behind the op's inputs, by name."""
        return self.saved[0].inputs

    def change(self, shape: tuple[int, ...], placement: Placement, when: int) -> None:
        """Note when this result was given another value."""
        super().change(shape, placement, when)
        self.saved[0].changed = when


Edge = Node | Leaf


class RetainedGradient:
    """The last hook of a computed tensor whose gradients are to be kept: it adds them up. Its key is this class."""

    __slots__ = ("grad",)

    def __init__(self) -> None:
        self.grad: Any = None

    def __call__(self, g: Any) -> None:
        self.grad = g if self.grad is None else self.grad + g


class HookHandle:
    """What `Tensor.register_hook` returns: it takes the hook away again."""

    def __init__(self, edge: Edge, hook: Hook) -> None:
        self._hooks = edge.hooks = {} if edge.hooks is None else edge.hooks
        self._hooks[self] = hook
        if (retained := self._hooks.get(RetainedGradient)) is not None:
            del self._hooks[RetainedGradient]
            self._hooks[RetainedGradient] = retained

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._hooks.pop(self, None)
