"""Passes over the calls of captured steps on `cuda`: values, and what is moved or joined.

Sums are written to where they are copied, kernels of groups also make sums, and one launch makes
several copies. Each step here has the bits of the eager step, with these passes and without.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from tests.cuda_without_gpu import counters
from xgrad import nn, optim
from xgrad.capture.program import Call, Program, Storage, Value, map_leaves
from xgrad_cupy.calls import Uses
from xgrad_cupy.copy_elimination import join_copies, write_to_targets
from xgrad_cupy.fused_programs import fusion
from xgrad_cupy.fused_sums import with_sums
from xgrad_cupy.interpreter import Interpreter
from xgrad_cupy.kernels.copies import JointCopies

Step = Callable[..., Any]
COLUMNS = 4
#: Numbers of rows: of one chunk of a sum, and of three.
ROWS = [3, 700]


class State:
    """Tensors in one block of memory: parts of it, as (offset, shape), may overlap."""

    def __init__(self, *parts: tuple[int, tuple[int, ...]], dtype: str = "float32") -> None:
        ends = [begin + int(np.prod(shape)) for begin, shape in parts]
        self.memory = cp.arange(max(ends)).astype(dtype) / 8
        self.tensors = [
            xgrad.asarray(self.memory[begin:end].reshape(shape), copy=False)
            for (begin, shape), end in zip(parts, ends, strict=True)
        ]


def arguments(rows: int) -> list[np.ndarray]:
    """Return a matrix, a row and a square matrix."""
    rng = np.random.default_rng(0)
    shapes = (rows, COLUMNS), (COLUMNS,), (COLUMNS, COLUMNS)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def run(
    step: Step, make: Callable[[], State], arrays: Sequence[np.ndarray], native: bool | None
) -> tuple[list[bytes], list[Any]]:
    """Return the bits of three results and of the state, and the calls of the captured step.

    `native` is the option of `capture`; the step runs eagerly if it is None.
    """
    state = make()
    tensors = [xgrad.asarray(x, device="cuda") for x in arrays]

    def bound(*args: Any) -> Any:
        return step(*args, *state.tensors)

    call: Any = bound
    if native is not None:
        call = xgrad.capture(bound, state=state.tensors, native=native or False)
    found = []
    for _ in range(3):
        results = call(*tensors)
        found += [x.numpy().tobytes() for x in (results if results is not None else ())]
    found.append(state.memory.get().tobytes())
    if native is None:
        return found, []
    assert not call.refusal
    *_, program = call._programs.values()
    return found, list(program.executor._interpreter.calls)


def compared(
    step: Step, make: Callable[[], State], arrays: Sequence[np.ndarray]
) -> tuple[list[str], list[Any]]:
    """Compare captured steps with the eager step; return the names of the calls, and the calls."""
    eager, _ = run(step, make, arrays, None)
    fused, calls = run(step, make, arrays, True)
    single, _ = run(step, make, arrays, False)
    assert eager == fused
    assert eager == single
    return [x.name for x in calls], calls


def two_rows() -> State:
    return State((0, (COLUMNS,)), (COLUMNS, (COLUMNS,)))


def overlapping_rows() -> State:
    return State((0, (COLUMNS,)), (2, (COLUMNS,)))


def row_and_matrix() -> State:
    """Return a row, and a matrix that contains it as its second row."""
    return State((COLUMNS, (COLUMNS,)), (0, (3, COLUMNS)))


# Programs call by call


class Trace:
    """A program written call by call, on inputs, and on rows that are parts of one state.

    The rows begin at `offsets` in the memory of the state. Calls run as they are written.
    """

    def __init__(self, rows: int, offsets: Sequence[int]) -> None:
        self.xp: Any = xgrad.Device("cuda").xp
        self.start = cp.arange(max(offsets) + COLUMNS, dtype=np.float32) / 8
        self.offsets, self.calls = offsets, list[Call]()
        self.arrays = dict[Value, Any]()
        self.inputs = [self._add(x, Storage("input")) for x in self._inputs(rows)]
        storage = Storage("state")
        self.state = [self._add(x, storage) for x in self._rows(self.start.copy())]

    def _inputs(self, rows: int) -> list[Any]:
        return [cp.asarray(x) for x in arguments(rows)]

    def _rows(self, memory: Any) -> list[Any]:
        return [memory[i : i + COLUMNS] for i in self.offsets]

    def _add(self, array: Any, storage: Storage) -> Value:
        value = Value(len(self.arrays), storage, array)
        self.arrays[value] = array
        return value

    def call(
        self, function: Any, *args: Any, writes: tuple[Value, ...] = (), **options: Any
    ) -> Any:
        """Call a function of values, and return the result, unless it writes to one."""
        operands = [x for x in args if type(x) is Value]
        given = map_leaves(lambda x: self.arrays[x] if type(x) is Value else x, args)
        result = function(*given, **options)
        if writes:
            self.calls.append(Call(function, args, options, writes))
            return None
        base = result if result.base is None else result.base
        shared = [x for x in operands if base is self.arrays[x] or base is self.arrays[x].base]
        value = self._add(result, shared[0].storage if shared else Storage("temporary"))
        self.calls.append(Call(function, args, options, (), [value]))
        return value

    def copy(self, target: Value, source: Value) -> None:
        """Write the elements of a value to another."""
        self.call(operator.setitem, target, ..., source, writes=(target,))

    def compared(self, *outputs: Value) -> list[str]:
        """Compare the program with and without passes; return the names of the calls after them."""
        program = Program(self.inputs, self.state, self.calls, list(outputs), {})
        plain = Interpreter(program)
        expected = self._execute(plain)
        for fuse in (None, fusion(cp)):
            changed = Interpreter(program, fuse)
            uses = self._uses(changed.calls)
            calls = write_to_targets(changed.calls, self.xp.sum, program.outputs, uses)
            if fuse is not None:
                calls = with_sums(cp, calls, self.xp.sum, self._uses(calls))
            changed.replace_calls(join_copies(cp, calls, self._uses(calls)))
            assert self._execute(changed) == expected
        return [x.name for x in changed.calls]

    def _uses(self, calls: Sequence[Call]) -> Uses:
        begins = dict(zip(self.state, self.offsets, strict=True))
        return Uses(
            calls,
            lambda x, y: not {x, y} <= begins.keys() or abs(begins[x] - begins[y]) < COLUMNS,
        )

    def _execute(self, interpreter: Interpreter) -> list[bytes]:
        memory, rows = self.start.copy(), self.arrays[self.inputs[0]].shape[0]
        arrays = [*self._inputs(rows), *self._rows(memory)]
        values = [*self.inputs, *self.state]
        numbered = {value.number: x for value, x in zip(values, arrays, strict=True)}
        found = interpreter.execute(numbered, {}, lambda call: call.function)
        return [x.get().tobytes() for x in (*found, memory)]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("seed", range(25))
def test_random_program_has_the_same_results_after_the_passes(seed: int, rows: int) -> None:
    random = Random(seed)
    offsets = [random.choice([0, 2, COLUMNS, 2 * COLUMNS, 9]) for _ in range(random.randint(1, 4))]
    trace = Trace(rows, offsets)
    xp, (x, row, w) = trace.xp, trace.inputs
    matrices, vectors, written = [x], [row, *trace.state], list(trace.state)
    makers: dict[str, Callable[[], Any]] = {
        "add": lambda: trace.call(operator.add, random.choice(matrices), random.choice(vectors)),
        "product": lambda: trace.call(xp.matmul, random.choice(matrices), w),
        "part": lambda: trace.call(
            operator.getitem,
            random.choice(matrices),
            random.choice([slice(2), slice(1, None), slice(None, None, -1)]),
        ),
        "row": lambda: trace.call(
            operator.getitem, random.choice(matrices), random.choice([0, -1])
        ),
        "view": lambda: trace.call(
            operator.getitem, random.choice(vectors), slice(None, None, random.choice([1, -1]))
        ),
        "sum": lambda: trace.call(xp.sum, random.choice(matrices), axis=0),
    }
    for name in random.choices([*makers, "copy", "copy", "sum", "write", "add to"], k=16):
        target = random.choice(written)
        if name == "copy":
            trace.copy(target, random.choice(vectors))
        elif name == "write":
            trace.call(operator.setitem, target, slice(1, 3), 5.0, writes=(target,))
        elif name == "add to":
            trace.call(operator.iadd, target, random.choice(vectors), writes=(target,))
        else:
            made = makers[name]()
            (matrices if len(made.shape) == 2 else vectors).append(made)
            if len(made.shape) == 1 and made.storage.kind != "input":
                written.append(made)
    made = [part for part in (*matrices, *vectors) if part.storage.kind == "temporary"]
    trace.compared(*random.sample(made, min(3, len(made))))


# Sums in place


@pytest.mark.parametrize("rows", ROWS)
def test_sum_is_computed_where_it_is_copied(rows: int) -> None:
    trace = Trace(rows, [0])
    x, _, w = trace.inputs
    trace.copy(trace.state[0], trace.call(trace.xp.sum, trace.call(trace.xp.matmul, x, w), axis=0))
    assert trace.compared() == ["matmul", "sum"]


def test_sum_that_is_returned_is_copied() -> None:
    trace = Trace(3, [0])
    x, _, w = trace.inputs
    total = trace.call(trace.xp.sum, trace.call(trace.xp.matmul, x, w), axis=0)
    trace.copy(trace.state[0], total)
    assert trace.compared(total) == ["matmul", "sum", "setitem"]


@pytest.mark.parametrize("rows", ROWS)
def test_target_of_a_sum_that_is_read_after_the_group_keeps_its_content(rows: int) -> None:
    trace = Trace(rows, [0, 2])
    x, row, w = trace.inputs
    target, other = trace.state
    g = trace.call(operator.add, x, row)
    before = trace.call(trace.xp.matmul, other, w)
    trace.copy(target, trace.call(trace.xp.sum, g, axis=0))
    assert trace.compared(before, g)[-1] == "sum"


@pytest.mark.parametrize("rows", ROWS)
def test_kernel_of_a_group_also_makes_a_sum(rows: int) -> None:
    def step(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
        g = x * row + 1
        first[...] = g.sum(axis=0)
        return (g @ w,)

    names, _ = compared(step, two_rows, arguments(rows))
    assert [name for name in names if "and_sum" in name] and "setitem" not in names
    assert "sum" not in names


def test_kernel_of_a_group_reads_rows_columns_and_numbers() -> None:
    """Numbers of the optimizer change between the replays."""
    x, row, _ = arguments(700)
    results = []
    for capture in (False, True):
        p = xgrad.asarray(row, device="cuda").requires_grad_()
        optimizer = optim.SGD([p], lr=0.5, momentum=0.9)

        def step(x: Any, column: Any, p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (xgrad.relu(x + p) * column).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = xgrad.capture(step) if capture else step
        inputs = [xgrad.asarray(part, device="cuda") for part in (x, x[:, :1])]
        losses = []
        for lr in (0.5, 0.25, 0.1, 0.1):
            optimizer.param_groups[0]["lr"] = lr
            losses.append(call(*inputs).numpy().tobytes())
        results.append([*losses, p.detach().numpy().tobytes()])
    assert results[0] == results[1]


def read_between(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    total = (x * 2 + 1).sum(axis=0)
    before = first @ w
    first[...] = total
    return (before,)


def other_part_read_between(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    total = (x * 2 + 1).sum(axis=0)
    before = second @ w[:, :2] if second.ndim > 1 else second @ w
    first[...] = total
    return (before,)


def view_read_between(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    part = first[1:]
    total = (x * 2 + 1).sum(axis=0)
    before = part @ w[1:]
    first[...] = total
    return (before,)


def written_between(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    total = (x @ w).sum(axis=0)
    first[1:3] = row[1:3]
    again = (x @ w + 1).sum(axis=0)
    second[...] = total
    first[...] = again
    return (first @ w,)


def read_by_the_maker(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = (x * first + second).sum(axis=0)
    second[...] = (x * second + first).sum(axis=0)
    return (first @ w,)


def operand_written_after_it_is_made(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x * 2 + 1
    g[0] = 5.0
    return (g.sum(axis=0),)


def operand_written_after_its_sum(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x * 2 + 1
    total = g.sum(axis=0)
    g[0] = 5.0
    first[...] = total
    return g, g @ w


def operand_added_to_after_a_product(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x * 2 + 1
    h = g @ w
    g += h
    first[...] = g.sum(axis=0)
    return (g,)


def sum_of_a_part(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = xgrad.broadcast_to(row, (6, COLUMNS)) * 1.5
    return g, g[:3].sum(axis=0), g[3:].sum(axis=0)


def sum_of_a_part_of_other_columns(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    wide = xgrad.concat([row, 2 * row])
    g = xgrad.broadcast_to(wide, (6, 2 * COLUMNS)) * 1.5
    return g, xgrad.reshape(g, (12, COLUMNS))[:6].sum(axis=0)


def sum_of_a_part_of_a_number(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = xgrad.broadcast_to(row[0] * 2, (6, 2, COLUMNS)) * 1.5
    return g, g[:3].sum(axis=(0, 1))


def sum_that_is_returned(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x * row + 1
    total = g.sum(axis=0)
    first[...] = total
    first += row
    return g, total


def two_sums_of_one_value(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x * row + 1
    first[...] = g.sum(axis=0)
    second[...] = g.sum(axis=0)
    return g.sum(axis=1), g.sum(), xgrad.reshape(g, (-1,)).sum(axis=0)


def sums_of_two_values_of_one_group(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g, h = x * row + 1, x * row - 1
    second[...] = h.sum(axis=0)
    first[...] = g.sum(axis=0)
    return g @ w, h @ w


def copied_twice(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    total = (x @ w).sum(axis=0)
    first[...] = total
    second[...] = total
    return (first + second,)


def to_the_same_place(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    one, other = (x @ w).sum(axis=0), (x * row).sum(axis=0)
    first[...] = other
    first[...] = one
    return (first + second,)


def in_the_other_order(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    one, other = (x @ w).sum(axis=0), (x * row + 1).sum(axis=0)
    second[...] = one
    first[...] = other
    return (second @ w,)


SUMS = [
    read_between,
    other_part_read_between,
    view_read_between,
    written_between,
    read_by_the_maker,
    operand_written_after_it_is_made,
    operand_written_after_its_sum,
    operand_added_to_after_a_product,
    sum_of_a_part,
    sum_of_a_part_of_other_columns,
    sum_of_a_part_of_a_number,
    sum_that_is_returned,
    two_sums_of_one_value,
    sums_of_two_values_of_one_group,
    copied_twice,
    to_the_same_place,
    in_the_other_order,
]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("make", [two_rows, overlapping_rows])
@pytest.mark.parametrize("step", SUMS)
def test_sums_and_copies_around_them_keep_their_order(
    step: Step, make: Callable[[], State], rows: int
) -> None:
    compared(step, make, arguments(rows))


@pytest.mark.parametrize("rows", ROWS)
def test_sum_does_not_go_to_a_row_of_a_matrix_that_is_read_between(rows: int) -> None:
    def step(x: Any, row: Any, w: Any, part: Any, matrix: Any) -> Any:
        total = (x * row + 1).sum(axis=0)
        before = matrix @ w
        part[...] = total
        return before, matrix @ w

    compared(step, row_and_matrix, arguments(rows))


# Joint copies


def test_copies_of_small_arrays_are_one_launch() -> None:
    trace = Trace(3, [0, COLUMNS])
    x, row, _ = trace.inputs
    trace.copy(trace.state[0], row)
    trace.copy(trace.state[1], trace.call(operator.getitem, x, 1))
    assert trace.compared() == ["getitem", "joint_copies"]


def test_more_copies_than_a_kernel_makes() -> None:
    trace = Trace(3, [COLUMNS * i for i in range(35)])
    for part in trace.state:
        trace.copy(part, trace.inputs[1])
    assert trace.compared() == ["joint_copies"] * 3


def test_copies_of_several_dtypes_are_apart() -> None:
    arrays = [cp.ones(3, dtype) for dtype in ("float16", "float16", "float32", "float32")]
    sources = [Value(i, Storage("input"), x) for i, x in enumerate(arrays)]
    targets = [Value(i + 4, Storage("state"), x) for i, x in enumerate(arrays)]
    calls = [
        Call(operator.setitem, (target, ..., source), {}, (target,))
        for target, source in zip(targets, sources, strict=True)
    ]
    joined = join_copies(cp, calls, Uses(calls, lambda x, y: True))
    assert [x.args for x in joined] == [
        (tuple(sources[i : i + 2]), tuple(targets[i : i + 2])) for i in (0, 2)
    ]


@pytest.mark.parametrize(
    "dtype", "bool int8 uint16 float16 float32 int64 complex64 complex128".split()
)
def test_joint_copies_of_any_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    shapes = (5,), (0,), (), (300, 2)
    arrays = [(10 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    sources, targets = [cp.asarray(x) for x in arrays], [cp.zeros(x.shape, dtype) for x in arrays]
    JointCopies(cp)(sources, targets)
    assert [x.get().tobytes() for x in targets] == [x.tobytes() for x in arrays]
    JointCopies(cp)(sources[1:2] * 2, targets[1:2] * 2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "complex128"])
def test_step_that_copies_arrays_of_any_dtype_is_captured(dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [(10 * rng.standard_normal(shape)).astype(dtype) for shape in ((5,), (2, 3))]

    def step(a: Any, b: Any, *targets: Any) -> None:
        for x, target in zip((a, b), targets, strict=True):
            target[...] = x

    compared(step, lambda: State((0, (5,)), (8, (2, 3)), dtype=dtype), arrays)


def source_written_after(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = second
    second[1:3] = row[1:3]
    return (first @ w,)


def source_overwritten_by_the_next_copy(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = second
    second[...] = row
    return (first + second,)


def source_is_a_view_that_is_written(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    g = x @ w
    part = g[1]
    first[...] = part
    g[1] = row
    second[...] = part
    return (g,)


def target_read_through_an_earlier_view(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    part = first[1:]
    first[...] = row
    after = part @ w[1:]
    second[...] = x[0]
    return (after,)


def target_copied_on(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = row
    second[...] = first
    return (second @ w,)


def swapped(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    kept = first + 0
    first[...] = second
    second[...] = kept
    return (first - second,)


def one_target_twice(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = row
    first[...] = x[0]
    second[...] = x[1]
    second[...] = row


def target_returned(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
    first[...] = row
    seen = first + 0
    second[...] = x[1]
    first[...] = x[2]
    return seen, first + second


COPIES = [
    source_written_after,
    source_overwritten_by_the_next_copy,
    source_is_a_view_that_is_written,
    target_read_through_an_earlier_view,
    target_copied_on,
    swapped,
    one_target_twice,
    target_returned,
]


@pytest.mark.parametrize("make", [two_rows, overlapping_rows])
@pytest.mark.parametrize("step", COPIES)
def test_copies_keep_their_order(step: Step, make: Callable[[], State]) -> None:
    compared(step, make, arguments(3))


def test_input_that_is_written_after_it_is_copied() -> None:
    def step(x: Any, row: Any, w: Any, first: Any, second: Any) -> Any:
        first[...] = x[1]
        x[1] = row
        second[...] = x[1]
        return (x + 0,)

    compared(step, two_rows, arguments(3))


# Training


def trained(
    capture: bool | None, share: bool, losses: int = 1, steps: int = 4
) -> tuple[list[bytes], int]:
    """Return losses, parameters and gradients after steps, and the launches of the last step.

    Parameters are parts of one array if `share` is true; the two biases are then the same memory.
    """
    xgrad.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))
    model = model.to("cuda")
    if share:
        memory = cp.arange(8, dtype=np.float32) / 8
        for i in (0, 2):
            shared = xgrad.asarray(memory, copy=False)
            model[i].bias = nn.Parameter(shared)
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        for _ in range(losses):  # gradients accumulate
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
        grads = [p.grad * 2 for p in model.parameters()]
        optimizer.step()
        return loss.detach(), *grads

    call: Any = step if capture is None else xgrad.capture(step, native=None if capture else False)
    rng = np.random.default_rng(0)
    x = xgrad.asarray(rng.standard_normal((600, 4)).astype(np.float32), device="cuda")
    y = xgrad.asarray(rng.integers(0, 2, 600), device="cuda")
    found: list[bytes] = []
    for _ in range(steps):
        counters.reset()
        found += [part.numpy().tobytes() for part in call(x, y)]
    assert not getattr(call, "refusal", "")
    found += [p.detach().numpy().tobytes() for p in model.parameters()]
    found += [p.grad.numpy().tobytes() for p in model.parameters()]
    return found, sum(x.replayed for x in counters.calls().values())


@pytest.mark.parametrize("losses", [1, 2])
@pytest.mark.parametrize("share", [False, True], ids=["apart", "shared memory"])
def test_training_has_the_bits_of_eager_training(share: bool, losses: int) -> None:
    eager, _ = trained(None, share, losses)
    fused, _ = trained(True, share, losses)
    single, _ = trained(False, share, losses)
    assert eager == fused
    assert eager == single


# Random numbers


@pytest.mark.parametrize("seed", [0, 2**53 + 1, 2**63 + 3, 2**64 - 1])
def test_captured_draws_of_any_seed_have_the_bits_of_eager_draws(seed: int) -> None:
    """Seeds and numbers of calls are 0-d arrays in a captured step."""
    rng = np.random.default_rng(0)
    query = xgrad.asarray(rng.standard_normal((2, 3, 5, 4)).astype(np.float32), device="cuda")

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        out = nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3, is_causal=True)
        out = nn.functional.dropout(out, 0.4)
        out.sum().backward()
        return out.detach(), x.grad

    results = []
    for call in (step, xgrad.capture(step), xgrad.capture(step, native=False)):
        xgrad.manual_seed(seed)
        found = [part.numpy().tobytes() for _ in range(3) for part in call(query)]
        assert not getattr(call, "refusal", "")
        assert len(set(found[::2])) == 3
        results.append(found)
    assert results[0] == results[1] == results[2]
