"""The recorded graph behind a tensor as text, DOT and SVG, with the ops of modules folded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np

from xgrad.backend.device import Placement
from xgrad.core.graph import Edge, Leaf, MultiOutputNode, Node, OutputEdge
from xgrad.core.tensor import Tensor
from xgrad.inspection import dot, drawing, tree
from xgrad.support.hints import shown

#: The largest numbers of boxes that are left unfolded by default, and that a notebook draws.
READABLE, DRAWABLE = 40, 400

Path = tuple[str, ...]
Sources = dict[Edge, list[tuple[str, Edge]]]


@dataclass(eq=False)
class Box:
    """A part of a graph: an op, a leaf, or the ops of one call of a module.

    Attributes
    ----------
    kind, title : str
        "op", "leaf" or "module"; the name of the op or of the leaf, or the class and path of the
        module.
    path : tuple of str
        The path of the module that contains it.
    shape : str
        The shape, or shapes, of the result.
    placement : Placement
        The device and dtype of the result.
    inputs : list of (str, Box)
        The boxes of the inputs, with the names of the inputs.
    ops, parameters : int
        The number of ops of a module, and the number of elements of the parameters folded into it.
    values : str
        The values of the result, if they were requested and saved.
    """

    kind: str
    title: str
    path: Path
    shape: str
    placement: Placement
    inputs: list[tuple[str, Box]] = field(default_factory=list)
    ops: int = 1
    parameters: int = 0
    values: str = ""

    @property
    def place(self) -> str:
        """The dtype and device of the result."""
        return (
            f"{self.placement.device.backend.numpy_dtype(self.placement.dtype)} on"
            f" {self.placement.device}"
        )

    @property
    def contents(self) -> str:
        """The numbers of ops and parameters that are folded into it."""
        if self.kind != "module":
            return ""
        return (f"{self.ops} ops, " if self.ops > 1 else "") + f"{self.parameters:,} parameters"


class Graph:
    """A recorded graph, as returned by `graph`: text in a terminal, a picture in a notebook.

    `boxes` are its parts in the order of execution, leaves first; `classes` has the class of each
    module, by path.
    """

    def __init__(self, boxes: list[Box], classes: dict[Path, str]) -> None:
        self.boxes, self.classes = boxes, classes

    def __repr__(self) -> str:
        return tree.text(self.boxes)

    def dot(self) -> str:
        """Return the graph in the DOT language of Graphviz."""
        return dot.source(self.boxes, self.classes)

    def svg(self) -> str:
        """Return the graph as SVG."""
        return drawing.svg(self.boxes, self.classes)

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook, or None if it would be too large."""
        return self.svg() if len(self.boxes) <= DRAWABLE else None

    def _repr_html_(self) -> str:
        """Return the picture for a notebook, or the text of a large graph."""
        return dot.scrollable(self._repr_svg_(), repr(self))


def graph(
    output: Tensor,
    module: Any = None,
    *,
    depth: int | None = None,
    values: bool = False,
    **named: Tensor,
) -> Graph:
    """Return the recorded graph behind a tensor, for a terminal, a notebook, or a file.

    The text reads from the result to the leaves: the input with the most ops continues on the line
    below an op, and the other inputs are branches. ``.svg()`` returns a picture, and ``.dot()`` the
    graph in the language of Graphviz. Inspect a graph before the backward pass, which frees it.

    Parameters
    ----------
    output : Tensor
        A tensor with a graph.
    module : Module, optional
        The model. Its parameters are shown by name, and large graphs are folded: the ops of a
        module become one box. An op without parameters belongs to the innermost module that has
        parameters in both an earlier and a later op.
    depth : int, optional
        The depth in the model at which modules are folded: 1 for the layers of a `Sequential`. The
        default is the largest depth that leaves at most 40 boxes, and at least 4; a small graph is
        not folded.
    values : bool, default False
        Whether to show the values, or the range of values, of tensors saved for backward.
    named : Tensor
        Tensors to show by these names.

    Returns
    -------
    Graph
        The graph, with ``dot()``, ``svg()``, and ``boxes``.

    Raises
    ------
    TypeError
        If `output` is not a tensor, or `module` not a module.
    ValueError
        If `output` has no graph, or `depth` is below 1.

    Examples
    --------
    >>> import xgrad
    >>> x, w = xgrad.ones((4, 3)), xgrad.ones((3, 2), requires_grad=True)
    >>> xgrad.graph(xgrad.tanh(x @ w).sum(), w=w)
    3 ops, 1 leaf; float32 on cpu
    ● sum      ()
    ● tanh     (4, 2)
    ● matmul   (4, 2)
    └─○ x2: w  (3, 2)
    """
    if not isinstance(output, Tensor):
        raise TypeError(f"graph: expected a tensor, got {type(output).__name__}")
    if module is not None and not hasattr(module, "named_parameters"):
        raise TypeError(f"graph: expected a module after the tensor, got {shown(module)}")
    if isinstance(output._edge, Leaf | None):
        raise ValueError(
            "graph: expected a tensor computed from leaves that require a gradient, got one without"
            " a graph: results of captured steps and of no_grad() have none"
        )
    if depth is not None and depth < 1:
        raise ValueError(
            f"graph: expected a depth of 1 or more, got {depth}: leave it out for the default"
        )
    parameters = dict(module.named_parameters()) if module is not None else {}
    classes = (
        {tuple(path.split(".")): type(m).__name__ for path, m in module.named_modules() if path}
        if module
        else {}
    )
    names = {x._leaf: name for name, x in (parameters | named).items()}
    owners = {x._leaf: tuple(name.split(".")[:-1]) for name, x in parameters.items()}
    sources = _sources(_node(output._edge))
    paths = _paths(sources, owners)
    boxes: dict[Edge, Box] = {}
    for level in (
        [depth] if depth is not None else [99, *range(max(map(len, paths.values())), 0, -1)]
    ):
        finer, boxes = boxes, _boxes(sources, names, owners, paths, classes, level)
        count = len(set(boxes.values()))
        # so few boxes show too little
        if count < 4 and len(set(finer.values())) in range(1, DRAWABLE):
            boxes = finer
        if count <= READABLE:
            break
    if values:
        for edge, text in _values(paths, [output, *parameters.values(), *named.values()]).items():
            if edge in boxes and boxes[edge].kind != "module":
                boxes[edge].values = text
    return Graph(list(dict.fromkeys(boxes.values())), classes)


def _node(edge: Edge) -> Edge:
    """Return the node or leaf of an edge; for one of several results, the node of all of them."""
    return edge.saved[0] if isinstance(edge, OutputEdge) else edge


def _sources(root: Edge) -> Sources:
    """Return the nodes and leaves behind a node, each with its inputs' nodes and leaves.

    They are in the order of execution, leaves first.
    """
    sources: Sources = {}
    stack = [root]
    while stack:
        edge = stack.pop()
        if edge not in sources:
            inputs = edge.inputs if isinstance(edge, Node) else {}
            sources[edge] = [(name, _node(e)) for name, e in inputs.items() if e is not None]
            stack += [e for _, e in sources[edge]]
    order = sorted(sources, key=lambda edge: (isinstance(edge, Node), abs(edge.order)))
    return {edge: sources[edge] for edge in order}


def _paths(sources: Sources, owners: dict[Any, Path]) -> dict[Edge, Path]:
    """Return the path of the module that each node belongs to."""
    nodes = [edge for edge in sources if isinstance(edge, Node)]
    known = [next((owners[e] for _, e in sources[node] if e in owners), None) for node in nodes]

    def nearest(paths: Iterable[Path | None]) -> list[Path]:
        last: Path = ()
        return [last := path if path is not None else last for path in paths]

    around = zip(nearest(known), reversed(nearest(reversed(known))), strict=True)
    pairs = [
        takewhile(lambda pair: pair[0] == pair[1], zip(*paths, strict=False)) for paths in around
    ]
    return {
        node: tuple([name for name, _ in pair]) for node, pair in zip(nodes, pairs, strict=True)
    }


def _boxes(
    sources: Sources,
    names: dict[Any, str],
    owners: dict[Any, Path],
    paths: dict[Edge, Path],
    classes: dict[Path, str],
    depth: int,
) -> dict[Edge, Box]:
    """Return the boxes of nodes and leaves.

    Consecutive ops of a module at `depth` share a box, which makes no cycles.
    """
    boxes: dict[Edge, Box] = {}
    users: dict[Edge, list[Box]] = {}
    folded: Path = ()
    for node, path in paths.items():
        if len(path) < depth:
            folded, boxes[node] = (), Box("op", node.name, path, _shape(node), node.placement)
        else:
            if path[:depth] != folded:
                folded, title = path[:depth], f"{'.'.join(path[:depth])} {classes[path[:depth]]}"
                box = Box("module", title, path[: depth - 1], "", node.placement, ops=0)
            box.ops, box.shape, boxes[node] = box.ops + 1, _shape(node), box
        for _, edge in sources[node]:
            users.setdefault(edge, []).append(boxes[node])
    leaves: dict[Edge, Box] = {}
    for leaf in list(sources)[: len(sources) - len(paths)]:
        first, *others = dict.fromkeys(users[leaf])
        if leaf in owners and all(user.kind == "module" for user in users[leaf]):
            first.parameters += math.prod(leaf.shape)
        else:
            path = first.path if leaf in owners and not others else ()
            leaves[leaf] = Box("leaf", names.get(leaf, "leaf"), path, _shape(leaf), leaf.placement)
    boxes = leaves | boxes
    drawn: set[tuple[Box, Box]] = set()
    for node in paths:
        box = boxes[node]
        for name, edge in sources[node]:
            source = boxes.get(edge, box)
            if source is not box and (box, source) not in drawn:
                drawn.add((box, source))
                box.inputs.append((name, source))
    return boxes


def _shape(edge: Edge) -> str:
    """Return the shape of a result, or the shapes of several results, as text."""
    shapes = [
        str(tuple(shape))
        for shape in (edge.shape if isinstance(edge, MultiOutputNode) else [edge.shape])
    ]
    return (
        ", ".join(shapes)
        if len(set(shapes)) > 1 or len(shapes) == 1
        else f"{len(shapes)} of {shapes[0]}"
    )


def _values(nodes: Iterable[Any], tensors: list[Tensor]) -> dict[Edge, str]:
    """Return the values of tensors, and of tensors that nodes have saved, as texts."""
    arrays: dict[Any, Any] = {}
    for node in nodes:
        for role, value in zip(node.spec.saved_roles, node.saved or (), strict=False):
            if role == "out" and not isinstance(value, tuple):
                arrays[node] = value
            elif type(role) is int and node.edges[role] is not None:
                arrays[node.edges[role]] = value
    arrays |= {x._edge or x._leaf: x._data for x in tensors}
    known = [
        (edge, edge.placement.device.backend.to_host(x))
        for edge, x in arrays.items()
        if edge is not None
    ]
    return {edge: _text(x) for edge, x in known}


def _text(x: np.ndarray) -> str:
    """Return the values of a small tensor, or the range and the mean of a large one."""
    if x.size == 1 or (x.size and (x == x.flat[0]).all()):
        return ("all " if x.size > 1 else "") + f"{x.flat[0]:.4g}"
    if x.size <= 4 or x.dtype.kind == "c":
        return np.array2string(x.reshape(-1)[:4], precision=4, separator=", ")
    with np.errstate(all="ignore"):
        return f"{x.min():.4g} to {x.max():.4g}, mean {x.mean(dtype=np.float64):.4g}"
