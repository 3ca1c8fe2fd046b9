"""A call of a function that a transform differentiates, and the graph from inputs to outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import index
from typing import Any

from xgrad import autograd
from xgrad.backend.device import batching
from xgrad.core.backward_spec import BackwardSpec
from xgrad.core.dtypes import SCALARS
from xgrad.core.function import Function
from xgrad.core.graph import Edge, Leaf, Node, clock, record
from xgrad.core.modes import enable_grad, is_grad_enabled
from xgrad.core.tensor import Tensor, from_placement
from xgrad.ops import asarray, eye, ones_like, reshape, stack, zeros, zeros_like
from xgrad.support.hints import shown
from xgrad.support.trees import leaves, matched, rebuild
from xgrad.transforms.batching import is_differentiated

Argnums = int | Sequence[int]


class Input(Node):
    """The node of an argument in the graph of one call of a transform.

    It has an edge to the outer graph, if there is one. Like a leaf, it is not freed, because the
    function may call `backward` itself.
    """

    __slots__ = ("_saved",)

    @property
    def saved(self) -> tuple[Any, ...] | None:
        return self._saved

    @saved.setter
    def saved(self, saved: tuple[Any, ...] | None) -> None:
        if saved is not None:
            self._saved = saved


class TransformCall:
    """A call of a function with copies of its arguments as inputs, and the recorded graph.

    Attributes
    ----------
    inputs : list of Tensor
        Copies of the leaves of the arguments that are differentiated.
    outputs : list of Tensor
        The leaves of the result, with the graph that leads to the inputs.
    result, aux : object
        The results of the function, with a graph only if they depend on the outer one.
    has_outer_graph, aux_has_outer_graph : bool
        Whether the outputs, and the tensors in `aux`, depend on the outer graph.
    """

    def __init__(
        self,
        title: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        argnums: Argnums,
        has_aux: bool,
    ) -> None:
        self.title, self.has_aux, self.recording = title, has_aux, is_grad_enabled()
        self.first_order = next(clock.numbers)
        self.own_nodes: set[Edge] = set()
        self.inner_edges: set[Edge] = set()  # edges known not to lead to the outer graph
        self.single = not isinstance(argnums, Iterable)
        arguments, indices = list(args), argument_indices(title, argnums, len(args))
        self.inputs, self.trees = [], [args[i] for i in indices]
        for i, tree in zip(indices, self.trees, strict=True):
            inputs = [
                self.add_input(as_floating(title, f"argument {i}{path}", x))
                for path, x in leaves(tree)
            ]
            self.inputs += inputs
            # Copies, because the function may assign to them.
            arguments[i] = rebuild(
                tree, [from_placement(x._data, x._placement, x._edge) for x in inputs]
            )
        with enable_grad():
            result, aux = fn(*arguments, **kwargs), None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(
                    f"{title}: expected (result, aux) of a function with has_aux=True, got"
                    f" {type(result).__name__}"
                )
            result, aux = result
        self.last_order = next(clock.numbers)
        self.outputs = [self._checked(path, out) for path, out in leaves(result)]
        self.has_outer_graph = any(
            self._depends_on_outside(x) or self._has_graph_around(x) for x in self.outputs
        )
        self.result = rebuild(result, [self.visible(out) for out in self.outputs])
        visible = [self.visible(x) if isinstance(x, Tensor) else x for _, x in leaves(aux)]
        self.aux = rebuild(aux, visible)
        self.aux_has_outer_graph = any(isinstance(x, Tensor) and x.requires_grad for x in visible)

    def add_input(self, x: Tensor) -> Tensor:
        """Return a copy of a tensor as an input of this call."""
        batch = batching.get()
        if batch is not None and x.device.level < batch.level:
            x = batch.lift(x)  # its gradient may differ among the elements of the batch
        edge = x._edge if self.recording else None
        node = record(Input(), _spec(edge is not None), (edge,), x._data.shape, x._placement)
        self.own_nodes.add(node)
        return from_placement(x._data, x._placement, node)

    def visible(self, x: Tensor) -> Tensor:
        """Return a tensor for use outside of the call.

        It keeps its graph only if the graph leads to the outer one.
        """
        if not is_grad_enabled():
            return x.detach()
        return from_placement(
            x._data, x._placement, x._edge if self._depends_on_outside(x) else None
        )

    def in_containers(self, gradients: Sequence[Tensor]) -> Any:
        """Return the gradients of the inputs in the containers of the arguments."""
        values = map(self.visible, gradients)
        containers = tuple([rebuild(tree, values) for tree in self.trees])
        return containers[0] if self.single else containers

    def with_aux(self, value: Any) -> Any:
        """Return a value, in a pair with `aux` if the function returns one."""
        return (value, self.aux) if self.has_aux else value

    def is_recorded(self, tensors: Sequence[Tensor | None]) -> bool:
        """Return whether derivatives computed with the given tensors have a graph."""
        vectors = [x for x in tensors if x is not None]
        return is_grad_enabled() and (
            self.has_outer_graph
            or any(x.requires_grad or self._has_graph_around(x) for x in vectors)
        )

    def gradient(self, create: bool = False) -> list[Tensor]:
        """Return the gradients of the only output, which must be real and have one element."""
        if not isinstance(self.result, Tensor):
            raise TypeError(
                f"{self.title}: expected a tensor of the function, got"
                f" {type(self.result).__name__}: for functions of several results use jacobian or"
                " vjp; for a result with others beside it, has_aux=True"
            )
        (out,) = self.outputs
        self.check_real("", out)
        if out.size != 1:
            raise ValueError(
                f"{self.title}: expected a scalar of the function, or one element in any shape, got"
                f" shape {out.shape}: sum it, or use jacobian or vjp"
            )
        retain = self.aux_has_outer_graph or not self.recording
        return pull_back(
            [out],
            [ones_like(out)],
            self.inputs,
            create=create or self.has_outer_graph,
            retain=retain,
        )

    def push_forward(self, tangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Return the derivatives of the outputs in a direction.

        The gradients of the inputs are linear in the gradients of the outputs.
        """
        weights = [self.add_input(zeros_like(out)) for out in self.outputs]
        transposed = pull_back(self.outputs, weights, self.inputs, create=True)
        return pull_back(transposed, tangents, weights, create=self.is_recorded(tangents))

    def jacobians(self) -> Iterator[list[Tensor]]:
        """Yield for each output its derivatives with respect to each input.

        Their shape is ``output.shape + input.shape``.
        """
        for (path, _), out in zip(leaves(self.result), self.outputs, strict=True):
            self.check_real(path, out)
            rows = []
            for i in range(out.size):
                unit = reshape(eye(1, out.size, k=i, dtype=out.dtype, device=out.device), out.shape)
                rows.append(pull_back([out], [unit], self.inputs, create=self.has_outer_graph))
            blocks = []
            for k, x in enumerate(self.inputs):
                shape = out.shape + x.shape
                empty = zeros(shape, dtype=x.dtype, device=x.device)
                blocks.append(reshape(stack([row[k] for row in rows]), shape) if rows else empty)
            yield blocks

    def match(self, kind: str, tree: Any, vectors: Any) -> list[Tensor | None]:
        """Return the leaves of tangents or cotangents, after checking them against `tree`.

        Containers, shapes, dtypes and devices must match.
        """
        likes = self.outputs if kind == "cotangent" else self.inputs
        title = f"{self.title}: {kind}"
        pairs = matched(title, tree, vectors)
        return [
            _check_like(f"{title}{path}", like, x)
            for like, (path, _, x) in zip(likes, pairs, strict=True)
        ]

    def outer_edges(self) -> list[Edge]:
        """Return the outer edges that the outputs depend on, other than through the inputs."""
        found: dict[Edge, None] = {}
        seen: set[Edge] = set(self.own_nodes)
        stack: list[Edge | None] = [x._edge for x in self.outputs]
        while stack:
            edge = stack.pop()
            if edge is None or edge in seen:
                continue
            seen.add(edge)
            if edge.order < self.first_order or type(edge) is Leaf:
                found[edge] = None
            else:
                stack += edge.edges
        return list(found)

    def _checked(self, path: str, out: Any) -> Tensor:
        if not isinstance(out, Tensor):
            at = f" at {path}" if path else ""
            hint = (
                "a number has no history: return the tensor"
                if type(out) in SCALARS
                else "return tensors"
            )
            raise TypeError(
                f"{self.title}: expected a tensor of the function{at}, got {type(out).__name__}:"
                f" {hint}"
            )
        return out

    def check_real(self, path: str, out: Tensor) -> None:
        if out.dtype.kind != "f":
            at = f" at {path}" if path else ""
            hint = "take real and imag apart" if out.dtype.kind == "c" else "cast it"
            raise TypeError(
                f"{self.title}: expected a real floating result of the function{at}, got"
                f" {out.dtype}: {hint}"
            )

    def _has_graph_around(self, x: Tensor) -> bool:
        """Return whether a tensor of a `vmap` has a graph outside of the `vmap`."""
        return is_differentiated(x._data) and is_grad_enabled()

    def _depends_on_outside(self, x: Tensor) -> bool:
        """Return whether the graph of a tensor leads outside of the call.

        It then reaches an earlier node, a leaf, or an input of a later call.
        """
        seen: set[Edge] = set()
        stack: list[Edge | None] = [x._edge] if is_grad_enabled() else []
        while stack:
            edge = stack.pop()
            if edge is None or edge in seen or edge in self.inner_edges:
                continue
            later = edge.order > self.last_order and edge not in self.own_nodes
            if (
                edge.order < self.first_order
                or type(edge) is Leaf
                or (later and type(edge) is Input)
            ):
                return True
            seen.add(edge)
            stack += edge.edges
        self.inner_edges |= seen
        return False


@cache
def _spec(linked: bool) -> BackwardSpec:
    return BackwardSpec(Function.of("input", lambda xp, x: x, [lambda g: g]), [linked])


def pull_back(
    outputs: Sequence[Tensor],
    cotangents: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    *,
    create: bool,
    retain: bool = True,
) -> list[Tensor]:
    """Return the gradients of `inputs`, given the gradients of `outputs`.

    Inputs that the outputs do not depend on have zeros.
    """
    pairs = [
        (out, g)
        for out, g in zip(outputs, cotangents, strict=True)
        if g is not None and out.requires_grad
    ]
    gradients: Sequence[Tensor | None] = [None] * len(inputs)
    if pairs:
        outs, gs = zip(*pairs, strict=True)
        gradients = autograd.grad(
            outs, inputs, gs, create_graph=create, retain_graph=retain or create, allow_unused=True
        )
    return [zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]


def as_floating(title: str, name: str, x: Any) -> Tensor:
    """Return an argument as a floating tensor."""
    try:
        tensor = x if isinstance(x, Tensor) else asarray(x, copy=True)
    except TypeError:
        hint = " and nn.utils.functional_call" if hasattr(x, "named_parameters") else ""
        raise TypeError(
            f"{title}: expected a tensor, an array or a number for {name}, got {type(x).__name__}:"
            f" give tensors in dicts, lists or tuples{hint}"
        ) from None
    if tensor.dtype.kind not in "fc":
        raise TypeError(
            f"{title}: expected a floating dtype for {name}, which is differentiated, got"
            f" {tensor.dtype}: give floats, or choose other arguments by argnums, or by a lambda"
        )
    return tensor


def _check_like(title: str, like: Tensor, x: Any) -> Tensor | None:
    if x is None:
        return None
    if like.dtype.kind not in "fc":
        raise TypeError(
            f"{title}: expected None for {like.dtype}, which has no derivative, got"
            f" {type(x).__name__}"
        )
    tensor = x if isinstance(x, Tensor) else asarray(x, device=like.device, copy=True)
    if tensor is not x and (tensor.dtype.kind != "c" or like.dtype.kind == "c"):
        tensor = tensor.astype(like.dtype)
    if tensor.device.level < like.device.level:
        tensor = like.device.lift(tensor)  # type: ignore[attr-defined]
    if tensor.dtype != like.dtype:
        raise TypeError(f"{title}: expected {like.dtype}, got {tensor.dtype}")
    if (tensor.shape, tensor.device.root) != (like.shape, like.device.root):
        raise ValueError(
            f"{title}: expected shape {like.shape} on {like.device}, got {tensor.shape} on"
            f" {tensor.device}"
        )
    return tensor


def argument_indices(title: str, argnums: Argnums, count: int) -> list[int]:
    """Return the indices of the arguments that are differentiated."""
    try:
        asked = [index(n) for n in (argnums if isinstance(argnums, Iterable) else [argnums])]
    except TypeError:
        raise TypeError(
            f"{title}: expected argnums of an int or a sequence of them, got {shown(argnums)}"
        ) from None
    positions = [n + count if n < 0 else n for n in asked]
    if any(not 0 <= n < count for n in positions) or len(set(positions)) < len(positions):
        raise ValueError(
            f"{title}: expected argnums among the {count} positional arguments, each once, got"
            f" {argnums}"
        )
    return positions
