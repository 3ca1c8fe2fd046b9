"""Elementwise calls fused into groups give the results of the separate calls.

Groups of random programs are executed on NumPy arrays, element by element in random order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from xgrad.backend.ownership import owner_of
from xgrad.capture.fusion import Access, Group, Statement, fuse, reshaped_strides
from xgrad.capture.program import Call, Program, Storage, Value, map_leaves

IN_PLACE = {operator.iadd: operator.add, operator.isub: operator.sub}


def statement_of(call: Call) -> Statement | None:
    """Return the statement for a sum, a difference, or an assignment to a whole array, or None."""
    if call.function in (operator.add, operator.sub):
        return Statement(call, call.function, call.args, call.results[0])
    if call.function in IN_PLACE:
        return Statement(call, IN_PLACE[call.function], call.args, call.args[0])
    if call.function is operator.setitem and call.args[1] is Ellipsis:
        return Statement(call, operator.pos, call.args[2:], call.args[0])
    return None


class Writer:
    """Runs calls on arrays, and writes the program that consists of them."""

    def __init__(self) -> None:
        self.program = Program([], [], [], [], {})
        self.arrays: dict[Value, np.ndarray] = {}
        self._storages: dict[int, Storage] = {}

    def value(self, array: np.ndarray, kind: str = "temporary") -> Value:
        storage = self._storages.setdefault(id(owner_of(array)), Storage(kind))
        value = Value(len(self.arrays), storage, array)
        self.arrays[value] = array
        return value

    def add(self, kind: str, array: np.ndarray) -> Value:
        value = self.value(array, kind)
        (self.program.inputs if kind == "input" else self.program.state).append(value)
        return value

    def call(self, function: Callable[..., Any], *args: Any, writes: bool = False) -> Value:
        """Call a function of values; return the value of its result, or what it writes to."""
        result = function(*map_leaves(lambda x: self.arrays[x] if type(x) is Value else x, args))
        values = [] if writes else [self.value(np.asarray(result))]
        self.program.calls.append(Call(function, args, {}, args[:1] if writes else (), values))
        return args[0] if writes else values[0]


def execute(
    program: Program, parts: list[Call | Group], arrays: list[np.ndarray], seed: int
) -> list[np.ndarray]:
    """Execute calls and groups, and the elements of a group in random order."""
    live = dict(zip([*program.inputs, *program.state], arrays, strict=True))
    for part in parts:
        if isinstance(part, Group):
            execute_group(part, live, np.random.default_rng(seed))
            continue
        result = part.function(*map_leaves(lambda x: live[x] if type(x) is Value else x, part.args))
        live.update(dict.fromkeys(part.results, np.asarray(result)))
    return [live[x] for x in program.outputs] + arrays


def execute_group(group: Group, live: dict[Value, np.ndarray], rng: np.random.Generator) -> None:
    """Execute statements as the threads of a kernel: in any order of the elements."""
    memory = {
        x: as_strided(live[x.value], group.shape, x.strides) for x in (*group.loads, *group.writes)
    }
    results = {x: np.empty(group.shape, x.dtype) for x in group.results}
    indices = list(np.ndindex(group.shape))
    for i in rng.permutation(len(indices)):
        index = indices[i]
        variables: dict[Any, Any] = {}
        for load in group.loads:
            variables[load] = variables[load.value] = memory[load][index]
        for statement, operands, out in zip(
            group.statements, group.operands, group.outs, strict=True
        ):
            operands = [variables[x] if isinstance(x, (Value, Access)) else x for x in operands]
            variables[out] = statement.operation(*operands)
        for x, array in results.items():
            array[index] = variables[x]
        for access in group.writes:
            memory[access][index] = variables[access.value]
    live.update({x: array.reshape(x.shape) for x, array in results.items()})


def random_program(rng: np.random.Generator) -> Writer:
    writer = Writer()
    values = [
        writer.add("input", rng.integers(0, 9, (2, 6))),
        writer.add("input", rng.integers(0, 9, 6)),
    ]
    values += [
        writer.add("state", rng.integers(0, 9, (2, 6))),
        writer.add("state", rng.integers(0, 9, (3, 4))),
    ]

    def pick(count: int = 1) -> list[Value]:
        return [values[max(0, len(values) - 1 - int(rng.exponential(3)))] for _ in range(count)]

    for _ in range(20):
        kind = rng.choice(
            ["two", "two", "two", "in place", "in place", "assign", "view", "view", "sum"]
        )
        x, y = pick(2)
        fits = np.broadcast_shapes(x.shape, y.shape) if _broadcast(x.shape, y.shape) else None
        if kind == "two" and fits:
            values.append(
                writer.call(
                    rng.choice([operator.add, operator.sub]), x, y if rng.random() < 0.8 else 3
                )
            )
        elif kind in ("in place", "assign") and fits == x.shape and 0 not in (x.strides or ()):
            overlap = x.storage is y.storage and x is not y
            if kind == "in place":
                writer.call(rng.choice([operator.iadd, operator.isub]), x, y, writes=True)
            elif not overlap:
                writer.call(operator.setitem, x, ..., y, writes=True)
        elif kind == "view":
            views: list[Callable[[Any], Any]] = [
                lambda x: x.T,
                lambda x: x.reshape(-1),
                lambda x: x[None],
                lambda x: x,
            ]
            views += [
                lambda x: x[..., ::2],
                lambda x: x[1:],
                lambda x: x.reshape(2, -1),
                lambda x: x[..., :1],
            ]
            try:
                view = writer.call(views[rng.integers(len(views))], x)
            except (ValueError, IndexError):
                continue
            if 0 not in view.shape and len(view.shape) < 4:
                values.append(view)
        elif kind == "sum" and x.shape:
            values.append(writer.call(lambda x: x.sum(axis=0), x))
    writer.program.outputs = (
        [values[i] for i in rng.integers(4, len(values), 3)] if len(values) > 4 else []
    )
    return writer


def _broadcast(*shapes: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_random_programs_are_the_same_in_groups(first: int) -> None:
    fused = 0
    for seed in range(first, first + 100):
        program = random_program(np.random.default_rng(seed)).program
        parts = fuse(program, statement_of)
        rng = np.random.default_rng(seed)
        shapes = [(2, 6), (6,), (2, 6), (3, 4)]
        arrays = [rng.integers(0, 9, shape) for shape in shapes]
        expected = execute(program, list(program.calls), [x.copy() for x in arrays], 0)
        found = execute(program, parts, [x.copy() for x in arrays], seed)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}")
        fused += sum([len(x.statements) for x in parts if isinstance(x, Group)])
    assert fused > 200  # or the test shows nothing


def test_result_that_only_a_group_needs_is_not_stored() -> None:
    writer = Writer()
    x = writer.add("input", np.arange(6))
    total = writer.call(operator.add, x, 1)
    flat = writer.call(lambda x: x.reshape(2, 3), total)
    writer.program.outputs = [writer.call(operator.add, flat, flat)]
    (group,) = fuse(writer.program, statement_of)
    assert isinstance(group, Group) and group.results == writer.program.outputs
    assert [x.value for x in group.loads] == [x]


def test_result_that_other_calls_read_is_stored() -> None:
    writer = Writer()
    x = writer.add("input", np.arange(6))
    total = writer.call(operator.add, x, 1)
    more = writer.call(operator.add, total, 2)
    peak = writer.call(lambda x: x.max(keepdims=True), more)
    writer.program.outputs = [writer.call(operator.sub, total, peak)]
    first, _, last = fuse(writer.program, statement_of)
    assert isinstance(first, Group) and first.results == [total, more]
    assert isinstance(last, Call) and last.results == writer.program.outputs


def test_write_to_state_is_not_moved_across_a_read_of_a_view_of_it() -> None:
    writer = Writer()
    state = writer.add("state", np.arange(6))
    back = writer.call(lambda x: x[::-1], state)
    before = writer.call(operator.add, back, back)
    writer.call(operator.iadd, state, before, writes=True)
    writer.program.outputs = [writer.call(operator.add, back, before)]
    parts = fuse(writer.program, statement_of)
    assert not any(isinstance(part, Group) for part in parts)


@pytest.mark.parametrize(
    ("shape", "strides", "new", "expected"),
    [
        ((12, 6), (24, 4), (3, 4, 6), (96, 24, 4)),
        ((12, 6), (0, 4), (3, 4, 6), (0, 0, 4)),
        ((3, 4, 6), (96, 24, 4), (12, 6), (24, 4)),
        ((3, 4, 6), (0, 24, 4), (12, 6), None),
        ((2, 3), (12, 4), (3, 2), (8, 4)),
        ((2, 3), (4, 8), (3, 2), None),
        ((1, 4), (0, 4), (4,), (4,)),
        ((), (), (1, 1), (0, 0)),
    ],
)
def test_strides_after_a_reshape(shape: Any, strides: Any, new: Any, expected: Any) -> None:
    assert reshaped_strides(shape, strides, new) == expected
