"""ONNX graphs for inputs of any size along some axes, from graphs for inputs of several sizes.

A model is traced with a few sizes of each axis. The graphs have the same nodes; only constants
differ, such as the shapes that arrays are reshaped to. Each of these is replaced by nodes that
compute it from the shapes of the inputs: an integer that is a sum of products of sizes, an array
that repeats along an axis, positions of elements, or a number divided by a size. One more graph,
with other sizes, is compared with the result. What does not fit is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

import numpy as np

#: Sizes to trace with.
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
_PREFIX = "xgrad_size"


class Terms(NamedTuple):
    """A sum of products of sizes: arrays of coefficients by the sizes that they multiply."""

    coefficients: dict[tuple[str, ...], np.ndarray]

    def of(self, sizes: Mapping[str, int]) -> np.ndarray:
        """Return the value for given sizes."""
        parts = [math.prod(map(sizes.__getitem__, s)) * c for s, c in self.coefficients.items()]
        return np.asarray(np.sum(parts, axis=0))


def trial_sizes(names: Sequence[str], taken: Sequence[int]) -> list[dict[str, int]]:
    """Return the sizes to trace with, the last for the comparison.

    All are different from each other and from the lengths `taken` of other axes.
    """
    free = [n for n in _PRIMES if n not in taken]
    low, high, other = [dict(zip(names, free[i::3], strict=False)) for i in range(3)]
    chosen = [
        {name: (high if name in part else low)[name] for name in names}
        for count in range(len(names) + 1)
        for part in combinations(names, count)
    ]
    return [*chosen, other]


def merged(
    models: Sequence[Any], sizes: Sequence[Mapping[str, int]], axes: Mapping[str, Mapping[int, str]]
) -> Any:
    """Return one model for all sizes.

    `models` are made with the sizes at the same place; `axes` names the sizes of inputs by axis.
    Raises ValueError if something depends on a size in a way that is not known here.
    """
    return _Merge(models, sizes, axes).model


class _Merge:
    def __init__(
        self,
        models: Sequence[Any],
        sizes: Sequence[Mapping[str, int]],
        axes: Mapping[str, Mapping[int, str]],
    ) -> None:
        self._onnx: Any = import_module("onnx")
        self._sizes, self._names = sizes, list(sizes[0])
        self._count = 0  # of new names
        self.model = self._onnx.ModelProto()
        self.model.CopyFrom(models[0])
        graph = self.model.graph
        self._graph(graph, [model.graph for model in models])
        for x in graph.input:
            for axis, name in axes.get(x.name, {}).items():
                x.type.tensor_type.shape.dim[axis].dim_param = name
        nodes = [*self._sizes_of(graph, axes), *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)

    def _new(self) -> str:
        self._count += 1
        return f"{_PREFIX}_{self._count}"

    def _node(self, kind: str, inputs: Sequence[str], out: str, **attributes: Any) -> Any:
        return self._onnx.helper.make_node(kind, list(inputs), [out], **attributes)

    def _constant(self, value: Any, out: str) -> Any:
        array = self._onnx.numpy_helper.from_array(np.array(value))
        return self._node("Constant", [], out, value=array)

    def _product(self, names: Sequence[str]) -> str:
        """Return the name of the product of sizes, an int64 without axes."""
        return "_".join([_PREFIX, "of", *names])

    def _sizes_of(self, graph: Any, axes: Mapping[str, Mapping[int, str]]) -> list[Any]:
        """Return nodes that compute the sizes, and their products."""
        nodes: list[Any] = []
        where = {
            name: (x.name, axis) for x in graph.input for axis, name in axes.get(x.name, {}).items()
        }
        for name, (owner, axis) in where.items():
            shape, index = self._new(), self._new()
            nodes.append(self._node("Shape", [owner], shape))
            nodes.append(self._constant(np.int64(axis), index))
            nodes.append(self._node("Gather", [shape, index], self._product([name])))
        for count in range(2, len(self._names) + 1):
            for part in combinations(self._names, count):
                factors = [self._product(part[:-1]), self._product(part[-1:])]
                nodes.append(self._node("Mul", factors, self._product(part)))
        return nodes

    # Graphs

    def _graph(self, graph: Any, graphs: Sequence[Any]) -> None:
        """Replace what differs between graphs in the first of them."""
        if len({len(x.node) for x in graphs}) > 1:
            self._refuse("the number of operators")
        nodes: list[Any] = []
        for node, others in zip(
            list(graph.node), zip(*[x.node for x in graphs], strict=True), strict=True
        ):
            nodes += self._merged_node(node, others)
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.value_info[:]
        for out, outs in zip(
            graph.output, zip(*[x.output for x in graphs], strict=True), strict=True
        ):
            self._dimensions(out, outs)

    def _merged_node(self, node: Any, nodes: Sequence[Any]) -> list[Any]:
        links = {(x.op_type, tuple(x.input), tuple(x.output)) for x in nodes}
        if len(links) > 1 or len({len(x.attribute) for x in nodes}) > 1:
            self._refuse(f"an operator, {node.op_type}")
        if len({x.SerializeToString(deterministic=True) for x in nodes}) == 1:
            return [node]
        kinds = self._onnx.AttributeProto
        for i, attributes in enumerate(zip(*[x.attribute for x in nodes], strict=True)):
            if attributes[0].type == kinds.GRAPH:
                self._graph(node.attribute[i].g, [x.g for x in attributes])
            elif node.op_type == "Constant" and attributes[0].type == kinds.TENSOR:
                arrays = [self._onnx.numpy_helper.to_array(x.t) for x in attributes]
                return self._computed(arrays, node.output[0])
            elif len({x.SerializeToString(deterministic=True) for x in attributes}) > 1:
                self._refuse(f"the attribute {attributes[0].name} of {node.op_type}")
        return [node]

    def _dimensions(self, value: Any, values: Sequence[Any]) -> None:
        """Name the sizes of a result, or leave them out."""
        shapes = [x.type.tensor_type.shape.dim for x in values]
        for i, lengths in enumerate(zip(*shapes, strict=True)):
            numbers = [x.dim_value for x in lengths]
            if len(set(numbers)) > 1:
                dimension = value.type.tensor_type.shape.dim[i]
                dimension.Clear()
                names = [n for n in self._names if numbers == [x[n] for x in self._sizes]]
                if names:
                    dimension.dim_param = names[0]

    # Constants

    def _computed(self, arrays: Sequence[np.ndarray], out: str) -> list[Any]:
        """Return nodes that compute a constant that depends on sizes."""
        if len({x.ndim for x in arrays}) > 1:
            self._refuse("the number of axes of a constant")
        shape = self._terms([np.asarray(x.shape, np.int64) for x in arrays])
        if shape is not None and len({x.shape for x in arrays}) == 1:
            nodes = self._numbers(arrays, out)
        else:
            nodes = None if shape is None else self._array(arrays, shape, out)
        if nodes is not None:
            return nodes
        self._refuse(f"a constant of shape {arrays[0].shape}, {arrays[0].dtype}")

    def _terms(self, values: Sequence[np.ndarray]) -> Terms | None:
        """Return integers as a sum of products of sizes, or None if they are no such sum."""
        terms, sizes, parts = Terms({}), self._sizes, self._parts()
        # as many equations as products: one for each trial but the last
        matrix = np.asarray([[math.prod(s[n] for n in part) for part in parts] for s in sizes[:-1]])
        flat = np.stack([np.ravel(x) for x in values[:-1]]).astype(np.float64)
        solved = np.rint(np.linalg.solve(matrix.astype(np.float64), flat)).astype(np.int64)
        for part, row in zip(parts, solved, strict=True):
            if not part or row.any():
                terms.coefficients[part] = row.reshape(values[0].shape)
        fits = all(
            np.array_equal(terms.of(s), value) for s, value in zip(sizes, values, strict=True)
        )
        return terms if fits else None

    def _sum(self, terms: Terms, out: str) -> list[Any]:
        """Return nodes that compute a sum of products, in int64."""
        nodes, total = list[Any](), ""
        for part, coefficient in terms.coefficients.items():
            name = self._new()
            nodes.append(self._constant(coefficient.astype(np.int64), name))
            if part:
                nodes.append(self._node("Mul", [name, self._product(part)], name := self._new()))
            if total:
                nodes.append(self._node("Add", [total, name], name := self._new()))
            total = name
        return [*nodes, self._node("Identity", [total], out)]

    def _numbers(self, arrays: Sequence[np.ndarray], out: str) -> list[Any] | None:
        """Return nodes for an array of one shape: integers, or numbers divided by sizes."""
        kind = arrays[0].dtype.kind
        if kind not in "iuf":
            return None
        dtype = self._onnx.helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        if all((x == np.rint(x)).all() for x in arrays):
            terms = self._terms(arrays)
            if terms is not None:
                nodes = self._sum(terms, total := self._new())
                return [*nodes, self._node("Cast", [total], out, to=dtype)]
        if kind != "f":
            return None
        for part in [part for part in self._parts() if part]:
            products = [math.prod(s[n] for n in part) for s in self._sizes]
            scaled = [x * n for x, n in zip(arrays, products, strict=True)]
            if all(np.allclose(x, scaled[0], rtol=1e-6, atol=0) for x in scaled):
                value, size = self._new(), self._new()
                return [
                    self._constant(scaled[0].astype(arrays[0].dtype), value),
                    self._node("Cast", [self._product(part)], size, to=dtype),
                    self._node("Div", [value, size], out),
                ]
        return None

    def _parts(self) -> list[tuple[str, ...]]:
        """Return the sizes that are multiplied by each other, in each product."""
        names = self._names
        return [part for count in range(len(names) + 1) for part in combinations(names, count)]

    def _array(self, arrays: Sequence[np.ndarray], shape: Terms, out: str) -> list[Any] | None:
        """Return nodes for an array whose shape depends on sizes."""
        lengths = zip(*[x.shape for x in arrays], strict=True)
        longer = [i for i, n in enumerate(lengths) if len(set(n)) > 1]
        key = tuple([slice(1) if i in longer else slice(None) for i in range(arrays[0].ndim)])
        first = [x[key] for x in arrays]
        repeats = all((x == x[key]).all() for x in arrays)
        if repeats and all(np.array_equal(x, first[0]) for x in first):
            nodes = self._sum(shape, wanted := self._new())
            part = self._new()
            return [
                *nodes,
                self._constant(first[0], part),
                self._node("Expand", [part, wanted], out),
            ]
        return self._positions(arrays, out) if arrays[0].dtype.kind in "iu" else None

    def _positions(self, arrays: Sequence[np.ndarray], out: str) -> list[Any] | None:
        """Return nodes for integers that increase evenly along each axis."""
        count, total, nodes = arrays[0].ndim, "", list[Any]()
        origin = (0,) * count
        corners = [x[origin] for x in arrays]
        steps: list[list[Any]] = []
        for axis in range(count):
            second = tuple([int(i == axis) for i in range(count)])
            steps.append([x[second] - x[origin] if x.shape[axis] > 1 else 0 for x in arrays])
        for x, corner, step in zip(arrays, corners, zip(*steps, strict=True), strict=True):
            indices = np.indices(x.shape, sparse=True)
            if not np.array_equal(x, corner + sum(map(operator.mul, step, indices))):
                return None
        for axis in range(-1, count):
            values = corners if axis < 0 else steps[axis]
            terms = self._terms([np.asarray(x, np.int64) for x in values])
            if terms is None:
                return None
            nodes += self._sum(terms, name := self._new())
            if axis >= 0:
                nodes += self._range(arrays, axis, along := self._new())
                nodes.append(self._node("Mul", [name, along], name := self._new()))
                nodes.append(self._node("Add", [total, name], name := self._new()))
            total = name
        dtype = self._onnx.helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        return [*nodes, self._node("Cast", [total], out, to=dtype)]

    def _range(self, arrays: Sequence[np.ndarray], axis: int, out: str) -> list[Any]:
        """Return nodes for the indices of an axis, as an array that is broadcast to the others."""
        length = self._terms([np.asarray(x.shape[axis], np.int64) for x in arrays])
        assert length is not None  # a part of the shape, which has terms
        names = [self._new() for _ in range(5)]
        shape = np.ones(arrays[0].ndim, np.int64)
        shape[axis] = -1
        return [
            *self._sum(length, names[0]),
            self._constant(np.int64(0), names[1]),
            self._constant(np.int64(1), names[2]),
            self._node("Range", [names[1], names[0], names[2]], names[3]),
            self._constant(shape, names[4]),
            self._node("Reshape", [names[3], names[4]], out),
        ]

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"onnx.export: {what} depends on the size of {' or '.join(self._names)} in a way that"
            " cannot be written to a file: leave the axis out of dynamic_axes, or export one file"
            " for each size"
        )
