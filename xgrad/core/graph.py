"""The recorded graph: nodes, leaves, and the clock that orders recordings and changes.

An `Edge` is named by what it leads to: the edge of a tensor, or of the input of an op, is the node
that computed the value, or the leaf that stands for the tensor of a user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from threading import RLock
from typing import Any, TypeVar
from weakref import ref

from xgrad.backend.device import Placement

Hook = Callable[[Any], Any]
N = TypeVar("N", bound="Node")


class Clock:
    """One counter of recordings and changes, which orders them."""

    numbers: Iterator[int]
    last_change: int

    def __init__(self) -> None:
        self.numbers, self.last_change = count(1), 0
        self._lock = RLock()  # a signal handler may change a value, too

    def change(self) -> int:
        """Take and return a number for a change of a value that the graph does not record."""
        with self._lock:  # else a thread could replace a later change by its own
            number = self.last_change = next(self.numbers)
        return number


clock: Clock = Clock()


class GradientReceiver:
    """Base class of objects that receive the gradients of a leaf in memory of their own.

    An optimizer sets one, to have all gradients in one buffer; the engine knows no more of it.
    """

    __slots__ = ()

    def lend(self, leaf: Leaf, running: Sequence[bool]) -> Any:
        """Return an array for a rule to write the gradient to, or None if there is none.

        A backward pass has it until the pass empties `running`.
        """
        raise NotImplementedError

    def receive(self, leaf: Leaf, g: Any) -> None:
        """Add the array of a gradient to the leaf's gradient."""
        raise NotImplementedError

    def write(self, array: Any) -> Any:
        """Write a new value of the leaf to where the receiver keeps values; return its array."""
        raise NotImplementedError

    def expose(self) -> None:
        """Note that a user has seen the gradient: its memory is then not written to again."""
        raise NotImplementedError


class Leaf:
    """The end of the graph at a tensor of the user: it holds the gradient, never the tensor.

    `changed` is the time of the last change of the value, and `moved` of its last change of shape
    or device, 0 without one: see `changes`.
    """

    __slots__ = (
        "changed",
        "grad",
        "hooks",
        "is_view",
        "moved",
        "order",
        "placement",
        "receiver",
        "shape",
        "viewed",
    )
    name = "leaf"
    edges: tuple[()] = ()
    shape: tuple[int, ...]
    placement: Placement
    order: int
    changed: int
    moved: int
    viewed: bool
    is_view: bool

    def __init__(self, shape: tuple[int, ...], placement: Placement) -> None:
        self.order = -next(clock.numbers)  # before every recording
        self.shape, self.placement = shape, placement
        self.grad: Any = None
        self.receiver: Any = None  # a `GradientReceiver`, or None
        self.hooks: dict[Any, Hook] | None = None
        self.changed = self.moved = 0
        self.viewed = False  # whether the tensor may have views, or be one
        self.is_view = False  # whether it may be one

    def __repr__(self) -> str:
        return f"<leaf {self.shape}>"

    def accept(self, shape: tuple[int, ...], placement: Placement, when: int) -> None:
        """Take the shape and placement of a new value of the tensor, given at some time.

        The gradient moves to another device or dtype with it; a new shape drops the gradient.
        """
        if shape != self.shape or placement is not self.placement:
            grad = None
            if self.grad is not None and shape == self.shape:
                grad = self.grad.detach().to(placement.device, dtype=placement.dtype)
            if shape != self.shape or placement.device is not self.placement.device:
                self.moved = when
            self.grad, self.receiver = grad, None
        self.shape, self.placement = shape, placement


class Node:
    """One recorded call of a function: the values that its rules need, and the edges of its inputs.

    `saved` is one tuple: the values for the rules, weak references to those of them that are
    constants, and an edge for each input, None where no gradient is needed. The backward pass frees
    it; `BackwardSpec` describes the layout. A node holds arrays and other nodes, never the tensor
    of its result, so a graph has no reference cycle. `changed` is the time of the last change of
    the result, 0 without one: see `changes`.
    """

    # One tuple and few slots: the garbage collector visits them all.
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
        """The edges of the inputs, none once the node was freed."""
        return () if self.saved is None else self.saved[self.spec.first_edge :]

    @property
    def name(self) -> str:
        """The name of the op."""
        return str(self.spec.op.name)

    @property
    def inputs(self) -> dict[str, Edge | None]:
        """The nodes and leaves behind the op's inputs, by name.

        An input that needs no gradient has None, and a freed node no inputs.
        """
        return dict(self.spec.op.named(self.edges))

    def __repr__(self) -> str:
        inputs = ", ".join(
            f"{name} from {edge.name}" for name, edge in self.inputs.items() if edge is not None
        )
        return f"<{self.name} {self.shape}: {inputs or 'freed'}>"

    def accept(self, shape: tuple[int, ...], placement: Placement, when: int) -> None:
        """Raise ValueError if a new value of the result has another shape or placement."""
        if shape != self.shape or placement is not self.placement:
            raise ValueError(
                f"data: expected shape {tuple(self.shape)}, {self.placement} for a computed tensor,"
                f" got {tuple(shape)}, {placement}: use .detach()"
            )


def record(node: N, spec: Any, saved: tuple[Any, ...], shape: Any, placement: Placement) -> N:
    """Fill in a new node. The fast paths of one and two inputs do the same, inline."""
    node.spec, node.saved, node.shape, node.placement = spec, saved, shape, placement
    node.order, node.hooks, node.changed = next(clock.numbers), None, 0
    return node


class MultiOutputNode(Node):
    """A call with several results. It has weak references to their edges."""

    __slots__ = ("outputs", "placements")
    outputs: list[Callable[[], OutputEdge | None]]
    placements: list[Placement]

    def edge(self, index: int) -> OutputEdge:
        """Return the edge of one result."""
        edge: OutputEdge | None = self.outputs[index]()
        if edge is None:
            shape, placement = self.shape[index], self.placements[index]
            edge = record(OutputEdge(), self.spec, (self,), shape, placement)
            edge.index = index
            self.outputs[index] = ref(edge)
        return edge


class OutputEdge(Node):
    """One result of a `MultiOutputNode`: it passes on its gradient to the node.

    The node is all that it saves, although its `spec` is the node's.
    """

    __slots__ = ("__weakref__", "index")
    saved: tuple[MultiOutputNode]
    index: int

    @property
    def name(self) -> str:
        """The name of the op, and which of its results this is."""
        return f"{super().name}[{self.index}]"

    @property
    def edges(self) -> tuple[Edge | None, ...]:
        """The node, freed or not."""
        return self.saved

    @property
    def inputs(self) -> dict[str, Edge | None]:
        """The nodes and leaves behind the op's inputs, by name."""
        return self.saved[0].inputs


Edge = Node | Leaf


class RetainedGradient:
    """The hook of `Tensor.retain_grad`, which adds up gradients.

    Its key among the hooks is this class, and it runs after all others.
    """

    __slots__ = ("grad",)

    def __init__(self) -> None:
        self.grad: Any = None

    def __call__(self, g: Any) -> None:
        self.grad = g if self.grad is None else self.grad + g


class HookHandle:
    """A registered hook, as `Tensor.register_hook` returns it."""

    def __init__(self, edge: Edge, hook: Hook) -> None:
        self._hooks = edge.hooks = {} if edge.hooks is None else edge.hooks
        self._hooks[self] = hook
        if (retained := self._hooks.get(RetainedGradient)) is not None:
            del self._hooks[RetainedGradient]
            self._hooks[RetainedGradient] = retained

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self, None)
