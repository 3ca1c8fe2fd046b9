"""Native kernels of captured steps have the bits of NumPy and of eager steps.

The subjects are fused loops, which instructions share one, and when kernels take over from NumPy.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import math
import operator
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xgrad
from benchmarks.models import MODELS, QUICK
from benchmarks.peers import models_xgrad
from capture.test_random_programs import Writer
from capture.twins import assert_same, snapshot
from helpers import skip_without_compiler, wait_for
from xgrad import nn, optim
from xgrad.capture import CaptureWarning
from xgrad.ops.normalization import _normalize
from xgrad_numpy import executor, sums
from xgrad_numpy.codegen import ArraySlot, Instruction
from xgrad_numpy.instructions import PUTMASK, choose
from xgrad_numpy.native import expressions, kernels, library, ways
from xgrad_numpy.native.calls import Multiplication
from xgrad_numpy.native.fusion import Run, fuse
from xgrad_numpy.native.kernels import Kernels
from xgrad_numpy.native.printer import Source
from xgrad_numpy.native.runtime import loaded_runtime, runtime

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.usefixtures("compiler"),
]


@pytest.fixture(scope="module")
def compiler() -> None:
    skip_without_compiler()


FLOATS = [0.0, -0.0, 1.0, -1.5, 3e-38, 1e-42, 1e30, -1e30, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
VALUES: dict[str, list[Any]] = {
    "float32": FLOATS,
    "float64": [*FLOATS, 5e-324, 1e308],
    "bool": [False, True],
    "int32": INTEGERS,
    "int64": [*INTEGERS, 2**63 - 1, -(2**63)],
}
SIZES = [1, 7, 8, 33, 130]  # around the lengths of vectors
FUNCTIONS = [
    (function, np.dtype(name))
    for name in VALUES
    for function in dict.fromkeys(
        [
            *expressions._ARITHMETIC,
            *expressions._COMPARISONS,
            *expressions._OF_BOOLS,
            *expressions._OF_INTEGERS,
            np.maximum,
            np.minimum,
        ]
    )
    if expressions.expression(function, np.dtype(name))
]


def static(array: np.ndarray) -> ArraySlot:
    return ArraySlot(array=array)


def bits(x: np.ndarray) -> bytes:
    """Return the bytes of an array, in which all NaNs have the same bits."""
    return (
        np.where(np.isnan(x), np.full_like(x, np.nan), x) if x.dtype.kind == "f" else x
    ).tobytes()


def run(
    instructions: list[Instruction], memory: np.ndarray | None = None, outputs: Any = ()
) -> list[Any]:
    """Execute instructions, the fused ones in C; return the instructions and runs after fusion."""
    source = Source()
    (fused,) = fuse([instructions], np.empty(0) if memory is None else memory, outputs)
    named = [
        x for x in (source.add(x) if isinstance(x, Run) else x for x in fused) if x is not None
    ]
    compiled = library.load(source.text) if source.count else None
    if compiled is not None:
        runtime().connect(compiled, source.loops)
    for x in named:
        if isinstance(x, Instruction):
            x.entry()[0](*x.entry()[1:])
        else:
            name, places, _ = x
            addresses = [place.array.__array_interface__["data"][0] for place in places]
            compiled[name]((ctypes.c_void_p * len(addresses))(*addresses))
            runtime().take_raised()  # or the next product would warn of it
    return fused


def operands(function: Any, dtype: Any, size: int) -> list[np.ndarray]:
    """Return operands that pair each special value with each other one, repeatedly."""
    pairs = np.array(list(itertools.product(VALUES[dtype.name], repeat=2)), dtype)
    return [np.resize(pairs[:, i], size).copy() for i in range(function.nin)]


def test_every_expression_has_the_bits_of_numpy_at_every_size() -> None:
    """Each function is alone in a loop with a copy of its result, all in one compilation."""
    instructions, expected, results = list[Instruction](), [], []
    for (function, dtype), size in itertools.product(FUNCTIONS, SIZES):
        inputs = operands(function, dtype, size)
        right = function(*inputs)
        out, copy = np.empty_like(right), np.empty_like(right)
        instructions.append(Instruction(function, (*map(static, inputs), static(out)), {}))
        instructions.append(Instruction(operator.setitem, (static(copy), ..., static(out)), {}))
        expected.append((function, dtype, size, right))
        results.append((out, copy))
    (row,) = run(instructions)
    assert {len(nest.statements) for nest in row.parts} == {
        1,
        2,
    }  # of one element nothing is at hand
    for (function, dtype, size, right), arrays in zip(expected, results, strict=True):
        for array in arrays:
            assert bits(array) == bits(right), (function, dtype, size, array, right)


CASTS = [
    ("float32", "float64"),
    ("float64", "float32"),
    ("bool", "float32"),
    ("bool", "float64"),
    ("bool", "int32"),
    ("bool", "int64"),
    ("int32", "int64"),
    ("int64", "int32"),
    ("bool", "bool"),
]


def test_casts_have_the_bits_of_numpy() -> None:
    instructions, pairs = list[Instruction](), []
    for one, other in CASTS:
        for size in SIZES:
            x = np.resize(np.array(VALUES[one], one), size)
            out, twice = np.empty(size, other), np.empty(size, other)
            instructions.append(Instruction(operator.setitem, (static(out), ..., static(x)), {}))
            instructions.append(
                Instruction(operator.setitem, (static(twice), ..., static(out)), {})
            )
            pairs.append((x.astype(other), twice))
    run(instructions)
    for right, got in pairs:
        assert bits(right) == bits(got)


def test_masked_writes_have_the_bits_of_numpy() -> None:
    for name, size in itertools.product(("float32", "float64", "int64"), SIZES):
        x = np.resize(np.array(VALUES[name], name), size)
        out, zero, mask = x.copy(), np.zeros((), name), np.empty(size, bool)
        run([
            Instruction(np.less_equal, (static(out), static(zero), static(mask)), {}),
            Instruction(PUTMASK, (static(out), static(mask), static(zero)), {}),
        ])  # fmt: skip
        assert bits(out) == bits(np.where(x <= 0, zero, x)) and (mask == (x <= 0)).all()


def test_choices_have_the_bits_of_numpy() -> None:
    for name, size in itertools.product(("float32", "float64"), SIZES):
        x = np.resize(np.array(VALUES[name], name), size)
        out, mask, zero = np.empty(size, name), np.empty(size, bool), np.zeros((), name)
        for sides in (
            [x, x[::-1].copy()],
            [x, -1e9],
            [float("nan"), x],
            [x, x[:1]],
            [-0.0, x],
            [2, x],
        ):
            operands = [static(y) if type(y) is np.ndarray else y for y in sides]
            run([
                Instruction(np.less_equal, (static(x), static(zero), static(mask)), {}),
                Instruction(choose, (static(mask), *operands, static(out)), {}),
            ])  # fmt: skip
            assert bits(out) == bits(np.where(x <= 0, *sides))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [5, 300])
def test_captured_choices_have_the_bits_of_eager_ones(rows: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (xgrad.asarray(rng.standard_normal((rows, 77)).astype(dtype)) for _ in range(2))
    row = xgrad.asarray(rng.standard_normal(77).astype(dtype))

    def step(x: Any, y: Any, row: Any) -> list[Any]:
        twice, mask = x * 2, y > 0.0
        chosen = [
            (twice, -1e9),
            (row, twice),
            (twice, x),
            (twice, math.nan),
            (0.0, twice),
            (twice, -0.0),
            (twice, 3),
        ]
        return [xgrad.where(mask, *sides) * 1 for sides in chosen] + [
            xgrad.where(row > 0.0, twice, x)
        ]

    right = [z.numpy().tobytes() for z in step(x, y, row)]
    for native in (True, False):
        captured = xgrad.capture(step, native=native)
        for _ in range(4):
            assert [z.numpy().tobytes() for z in captured(x, y, row)] == right


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole": lambda x: x.copy(),
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(0, 2)).swapaxes(0, 2),
    "every other": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "row": lambda x: x[0, 0].copy(),
    "column": lambda x: x[:, :, :1].copy(),
    "planes": lambda x: x[:, :1].copy(),
    "number": lambda x: x[0, 0, 0].copy(),
    "broadcast": lambda x: np.broadcast_to(x[:1].copy(), x.shape),
}


def test_operands_of_any_layout() -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for shape in [(3, 4, 5), (2, 1, 17)]:
        for one, other, result in itertools.product(
            LAYOUTS, LAYOUTS, ("whole", "transposed", "every other")
        ):
            x, y = (LAYOUTS[name](rng.normal(size=shape).astype("f4")) for name in (one, other))
            right = np.broadcast_to(x * y, shape) - x
            out = LAYOUTS[result](np.empty(shape, "f4"))
            instructions.append(Instruction(np.multiply, (static(x), static(y), static(out)), {}))
            instructions.append(Instruction(np.subtract, (static(out), static(x), static(out)), {}))
            pairs.append((right, out))
    run(instructions)
    for right, out in pairs:
        assert right.tobytes() == out.tobytes()


# Instructions that share a loop


def nests(*instructions: Instruction, memory: Any = None) -> list[Any]:
    (fused,) = fuse([list(instructions)], np.empty(0) if memory is None else memory, [])
    return fused


def test_statements_of_overlapping_memory_are_not_executed_together() -> None:
    x, y = np.arange(9.0), np.empty(8)
    ahead, behind, whole = static(x[1:]), static(x[:-1]), static(y)
    read_after_write = [
        Instruction(np.negative, (behind, behind), {}),
        Instruction(np.add, (behind, ahead, whole), {}),
    ]
    (row,) = nests(*read_after_write)
    assert len(row.parts) == 2
    write_after_read = [
        Instruction(np.negative, (behind, whole), {}),
        Instruction(np.add, (behind, whole, ahead), {}),
    ]
    assert all(isinstance(entry, Instruction) for entry in nests(*write_after_read))
    into_itself = Instruction(np.negative, (behind, ahead), {})
    assert nests(into_itself, into_itself) == [into_itself, into_itself]
    reversed_ = [
        Instruction(np.negative, (whole, whole), {}),
        Instruction(np.add, (static(y[::-1]), whole, whole), {}),
    ]
    assert nests(*reversed_) == reversed_


def test_views_of_buffers_keep_what_they_see() -> None:
    memory, x = np.zeros(16), np.arange(8.0)
    first, second, view = static(memory[:8]), static(memory[8:]), ArraySlot(dynamic=True)
    calls = [
        Instruction(np.add, (static(x), static(x), first), {}),
        Instruction(np.multiply, (first, first, second), {}),
        Instruction(operator.getitem, (first, slice(2, 4)), {}, view),
        Instruction(np.negative, (second, static(x.copy())), {}),
    ]
    (fused,) = fuse([calls], memory, [])
    assert [len(nest.stored) for nest in fused[0].parts] == [2]


def test_result_with_a_repeated_element_is_left_to_numpy() -> None:
    x, y = np.arange(8.0), np.lib.stride_tricks.as_strided(np.zeros(1), (8,), (0,))
    write = Instruction(np.add, (static(x), static(x), static(y)), {})
    assert nests(write, write) == [write, write]


@pytest.mark.parametrize("buffers", ["none", "half", "all"])
def test_random_instructions_on_shared_memory_have_the_values_of_numpy(buffers: str) -> None:
    """Buffers that nothing reads may keep other values."""
    functions = [
        np.add,
        np.subtract,
        np.multiply,
        np.negative,
        np.square,
        np.absolute,
        *[operator.setitem] * 3,
    ]
    for seed in range(25):
        rng = np.random.default_rng(seed)
        memory = rng.normal(size=64).astype("f4")
        other = memory.copy()

        def part(x: np.ndarray, rng: Any) -> np.ndarray:
            start, step = rng.integers(0, 12) * 4, rng.choice([1, 1, 1, 2, -1])
            return x[start:][:16:step][:8] if rng.random() < 0.9 else x[start : start + 1]

        instructions = []
        for _ in range(12):
            function, at = functions[rng.integers(len(functions))], rng.integers(1 << 30, size=3)
            arrays = [[part(x, np.random.default_rng(n)) for n in at] for x in (memory, other)]
            if arrays[0][2].size < 8:
                continue
            for each, execute in zip(arrays, (None, True), strict=True):
                count = 1 if function is operator.setitem else function.nin
                *inputs, out = each[:count] + each[2:]
                if any(x.size not in (1, out.size) for x in inputs):
                    break
                call = (out, ..., *inputs) if function is operator.setitem else (*inputs, out)
                if execute:
                    function(*call)
                else:
                    instructions.append(
                        Instruction(
                            function, tuple([static(x) if x is not ... else x for x in call]), {}
                        )
                    )
        if buffers == "half":
            run(instructions, memory[32:])
            assert memory[:32].tobytes() == other[:32].tobytes(), seed
        else:
            run(instructions, memory if buffers == "all" else None, [static(memory)])
            assert memory.tobytes() == other.tobytes(), seed


def test_results_that_nothing_reads_are_not_stored() -> None:
    memory, x, out = np.full(16, 7.0), np.arange(8.0), np.empty(8)
    first, second = static(memory[:8]), static(memory[8:])
    instructions = [
        Instruction(np.add, (static(x), static(x), first), {}),
        Instruction(np.multiply, (first, first, second), {}),
        Instruction(np.negative, (second, static(out)), {}),
    ]
    run(instructions, memory)
    assert (memory == 7).all() and (out == -4 * x * x).all()
    run([*instructions, Instruction(np.sin, (second, static(x)), {})], memory)
    assert (memory[:8] == 7).all() and (memory[8:] == 4 * np.arange(8.0) ** 2).all()
    x[...] = np.arange(8.0)
    before = memory.copy()
    (unread,) = run([instructions[0], instructions[1]], memory)
    assert (memory == before).all() and Source().add(unread) is None
    run(instructions, memory, [first])
    assert (memory[:8] == 2 * x).all()


# Copies, which statements do not read


def copied(
    memory: np.ndarray, source: ArraySlot, *between: Instruction
) -> tuple[list[Any], list[Instruction]]:
    """Copy a row to the rows of a matrix in a buffer, to be read after other instructions.

    Return the statements that are executed, and the instructions.
    """
    row = static(memory[:8])
    matrix = static(memory[8:24].reshape(2, 8))
    out = static(memory[24:40].reshape(2, 8))
    calls = [
        Instruction(operator.setitem, (row, ..., source), {}),
        *between,
        Instruction(np.add, (matrix, row, matrix), {}),
        Instruction(np.multiply, (matrix, row, out), {}),
    ]
    (fused,) = fuse([calls], memory, [out])
    parts = [part for x in fused if isinstance(x, Run) for part in x.parts]
    return [y for part in parts for y in part.statements], calls


def test_copies_are_read_where_they_come_from() -> None:
    memory, x = np.zeros(64), static(np.arange(8.0))
    statements, _ = copied(memory, x)
    assert [[place.operand for place in y.inputs][1:] for y in statements] == [[x], [x]]


@pytest.mark.parametrize("written", ["source", "copy"])
def test_copies_are_read_after_a_write_to_what_they_come_from(written: str) -> None:
    memory, source = np.zeros(64), np.arange(8.0)
    target = source if written == "source" else memory[:8]
    negated = Instruction(np.negative, (static(source.copy()), static(target)), {})
    statements, _ = copied(memory, static(source), negated)
    assert [y.inputs[-1].bounds for y in statements[-2:]] == [statements[0].out.bounds] * 2


def test_copies_of_inputs_are_read_after_a_write_to_the_state() -> None:
    """An input may be the state itself."""
    memory, state = np.zeros(64), np.zeros(8)
    example = np.arange(8.0)
    given = ArraySlot(dynamic=True, early=True, example=example)
    to_state = Instruction(np.negative, (static(np.ones(8)), static(state)), {})
    to_buffer = Instruction(np.negative, (static(np.ones(8)), static(memory[48:56])), {})
    for write, reads_input in ((to_state, False), (to_buffer, True)):
        statements, _ = copied(memory, given, write)
        assert [y.inputs[-1].operand is given for y in statements[-2:]] == [reads_input] * 2


def test_statements_that_write_to_the_state_read_copies_of_inputs() -> None:
    memory, state = np.zeros(64), np.zeros((2, 8))
    row, given = static(memory[:8]), ArraySlot(dynamic=True, early=True, example=np.arange(8.0))
    calls = [
        Instruction(operator.setitem, (row, ..., given), {}),
        Instruction(np.multiply, (static(np.ones((2, 8))), row, static(state)), {}),
    ]
    (fused,) = fuse([calls], memory, [])
    copy, statement = [y for x in fused for part in x.parts for y in part.statements]
    assert copy.inputs[0].operand is given and statement.inputs[1].operand is row


def test_unread_copies_are_no_instructions() -> None:
    memory, out = np.zeros(24), np.zeros(8)
    row = static(memory[:8])
    copy = Instruction(operator.setitem, (row, ..., static(np.full(1, 3.0))), {})
    (read,) = run([copy, Instruction(np.negative, (row, static(out)), {})], memory)
    assert (
        [len(part.statements) for part in read.parts] == [1]
        and (memory == 0).all()
        and (out == -3).all()
    )
    after_copy = Instruction(np.sin, (row, static(out)), {})
    run([copy, after_copy], memory)
    assert (memory[:8] == 3).all() and (out == np.sin(3.0)).all()


def test_memory_that_is_overwritten_in_parts_is_not_stored() -> None:
    memory, x, out = np.zeros(24), np.arange(8.0), np.zeros(8)
    first, low, high = static(memory[:8]), static(memory[:4]), static(memory[4:8])
    result = static(memory[8:16])
    calls = [
        Instruction(np.add, (static(x), static(x), first), {}),
        Instruction(np.multiply, (first, first, result), {}),
        Instruction(np.sin, (static(x[:4].copy()), low), {}),
        Instruction(np.sin, (static(x[4:].copy()), high), {}),
        Instruction(np.sin, (first, static(out)), {}),
        Instruction(np.sin, (result, static(np.zeros(8))), {}),
    ]
    ((nest, *_), *_) = [x.parts for x in fuse([calls], memory, [])[0] if isinstance(x, Run)]
    assert [place.operand for place in nest.stored] == [result]
    ((nest, *_), *_) = [
        x.parts for x in fuse([[*calls[:3], *calls[4:]]], memory, [])[0] if isinstance(x, Run)
    ]
    assert [place.operand for place in nest.stored] == [first, result]


@pytest.mark.parametrize("dynamic", [False, True])
def test_operand_of_a_product_is_stored(dynamic: bool) -> None:
    """The product's result is in a buffer, or in new memory, whose slot has no array."""
    memory, x = np.zeros(24), np.arange(8.0)
    first, second, out = static(memory[:8]), static(memory[8:16]), static(memory[16:17].reshape(()))
    calls = [
        Instruction(np.add, (static(x), static(x), first), {}),
        Instruction(np.multiply, (first, first, second), {}),
        Instruction(
            np.matmul, (static(x), second, ArraySlot(dynamic=True) if dynamic else out), {}
        ),
    ]
    (fused,) = fuse([calls], memory, [])
    assert [place.operand for nest in fused[0].parts for place in nest.stored] == [second]


# Captured steps


@pytest.mark.parametrize("name", QUICK)
def test_steps_of_models_have_the_bits_of_eager_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compilations(monkeypatch)
    replayed, eager = models_xgrad.step_captured(**QUICK[name]), models_xgrad.step(**QUICK[name])
    assert [float(replayed()) for _ in range(6)] == [float(eager()) for _ in range(6)] and compiled


@pytest.mark.parametrize("name", ["sum", "max"])
def test_results_with_axes_of_length_1_are_written(name: str) -> None:
    """Axes of length 1 may have other strides than new memory would have."""
    x = xgrad.asarray(
        np.random.default_rng(0).standard_normal((1, 2, 64, 300)).transpose(2, 3, 0, 1)
    )

    def reduced(x: xgrad.Tensor) -> tuple[xgrad.Tensor, ...]:
        return tuple(
            [getattr(xgrad, name)(x, axis=-1, keepdims=keepdims) for keepdims in (False, True)]
        )

    captured = xgrad.capture(reduced, native=True)
    for _ in range(3):
        for one, other in zip(captured(x), reduced(x), strict=True):
            one, other = one.numpy(), other.numpy()
            assert one.strides == other.strides and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (1, 2)])
def test_sums_of_products_of_any_layout_have_the_bits_of_eager(
    axes: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """Over the first and the last axes in memory, BLAS adds rows.

    Sums over other axes, and of factors in two layouts, are left to NumPy.
    """
    rng, shape = np.random.default_rng(0), (4, 6, 1, 40)
    x = rng.standard_normal([shape[i] for i in order]).astype("f4").transpose(np.argsort(order))
    same, other = 2 * x, rng.standard_normal(x.shape).astype("f4")
    step = normalized(axes)
    for y in (same, other):
        for z in (None, x, y):
            expected = np.sum(x if z is None else x * z, axes, keepdims=True)
            np.testing.assert_allclose(sums.sum_products(x, z, axes), expected, 1e-4, 1e-4)
        captured = xgrad.capture(step, native=True)
        for scale in (1, 1, 3):
            given = xgrad.asarray(x * np.float32(scale)), xgrad.asarray(y)
            assert_same([snapshot(step(*given))], [snapshot(captured(*given))])
        assert captured.refusal is None


def normalized(axes: tuple[int, ...]) -> Callable[..., Any]:
    """Return a step that normalizes over axes, and its gradient."""

    def step(x: xgrad.Tensor, y: xgrad.Tensor) -> Any:
        x = x.detach().requires_grad_()
        (out := _normalize(x, axes=axes, eps=1e-5)).backward(y)
        assert x.grad is not None
        return out.detach(), x.grad

    return step


PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "by its transpose": lambda x: (x * 2) @ x.mT,
    "of its transpose": lambda x: x.mT @ (x * 2) + 1,
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_inputs_that_are_not_aligned_have_the_bits_of_eager(
    name: str, dtype: str
) -> None:
    """NumPy multiplies a copy of them in another layout, and BLAS then adds in another order."""
    x = np.random.default_rng(0).standard_normal((8, 16, 36)).astype(dtype)
    unaligned = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(dtype).reshape(x.shape)
    captured = xgrad.capture(PRODUCTS[name], native=True)
    for each in (x, x, unaligned, x, unaligned):
        given = xgrad.asarray(each, copy=False)
        assert_same([snapshot(PRODUCTS[name](given))], [snapshot(captured(given))])
    assert captured.refusal is None


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the code of each program that is compiled."""
    made: list[Any] = []
    code = Kernels.code
    monkeypatch.setattr(Kernels, "code", lambda self, x: made.append(code(self, x)) or made[-1])
    return made


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_bits_of_eager(seed: int) -> None:
    program = Writer(seed)
    scope: dict[str, Any] = {"xgrad": xgrad}
    exec(compile(program.source, f"program {seed}", "exec"), scope)
    captured = xgrad.capture(scope["step"], native=True)
    for turn in (0, 0, 1, 2):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", CaptureWarning)
            expected = snapshot(scope["step"](*program.inputs(turn)))
            assert_same([expected], [snapshot(captured(*program.inputs(turn)))])


@pytest.mark.parametrize(
    "make", [optim.Adam, optim.AdamW, lambda p, lr: optim.SGD(p, lr=lr, momentum=0.9)]
)
def test_training_follows_numbers_and_parameters_that_move(make: Any) -> None:
    weights = []
    for native in (None, True):
        xgrad.manual_seed(0)
        model = nn.MLP([6, 7, 3])
        optimizer = make(model.parameters(), lr=0.01)

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run_step = step if native is None else xgrad.capture(step, native=True)
        rng = np.random.default_rng(0)
        for i in range(12):
            x = xgrad.asarray(rng.normal(size=(5, 6)).astype("f4"))
            y = xgrad.asarray(rng.integers(0, 3, 5))
            run_step(x, y)
            if i == 5:
                optimizer.param_groups[0]["lr"] = 0.003
            if i == 8:
                model[0].weight.data = model[0].weight.data * 0.5
        weights.append([p.numpy().tobytes() for p in map(xgrad.Tensor.detach, model.parameters())])
    assert weights[0] == weights[1]


@pytest.mark.parametrize("native", [True, None])
@pytest.mark.parametrize("setter", ["xgrad", "threadpoolctl"])
def test_programs_follow_the_number_of_threads(
    native: bool | None, setter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums by BLAS have other bits with other threads."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    set_threads = {
        "xgrad": xgrad.set_num_threads,
        "threadpoolctl": threadpoolctl.threadpool_limits,
    }[setter]
    monkeypatch.setattr(executor, "WARM", 2)
    compiled, before = compilations(monkeypatch), xgrad.get_num_threads()
    x = xgrad.asarray(np.random.default_rng(0).standard_normal((40, 300, 300)).astype("f4"))

    def sums(x: xgrad.Tensor) -> list[xgrad.Tensor]:
        return [xgrad.mean(x, axis=(0, 1)), xgrad.sum(x[0] * 2, axis=0), x[0] @ (x[1] * 2)]

    captured = xgrad.capture(sums, native=native)
    try:
        for turn, threads in enumerate((2, 1, 2, 2, 1), 1):
            set_threads(threads)
            for _ in range(100):
                assert_same([snapshot(sums(x))], [snapshot(captured(x))])
                if len(compiled) >= turn - (turn > 3):  # not anew for a number that is the same
                    break
                time.sleep(0.05)
            assert_same([snapshot(sums(x))], [snapshot(captured(x))])
        assert len(compiled) == 4
    finally:
        xgrad.set_num_threads(before)


def chain(x: Any) -> Any:
    y = x * 2.0
    return (y + 1.0) * y - x


def test_kernels_take_over_after_some_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compilations(monkeypatch)
    monkeypatch.setattr(executor, "WARM", 3)
    step, x = xgrad.capture(chain), xgrad.asarray(np.linspace(-1, 1, 100))
    right = chain(x).tolist()
    for _ in range(4):
        assert step(x).tolist() == right and not compiled
    (program,) = step._programs.values()
    program.executor._compilation.wait()
    assert [step(x).tolist() for _ in range(3)] == [right] * 3 and len(compiled) == 1
    assert program.executor._code is compiled[0]


def overflows_of(step: Any, *args: xgrad.Tensor) -> int:
    """Return how many overflows NumPy reports during a call, which may raise IndexError."""
    seen = list[str]()

    def note(kind: str, _: int) -> None:
        seen.append(kind)

    with np.errstate(all="ignore", over="call", call=note), suppress(IndexError):
        step(*args)
    return len(seen)


def test_a_replay_that_finds_no_index_warns_of_nothing() -> None:
    """The eager step that follows warns, once."""
    table = xgrad.asarray(np.random.default_rng(0).standard_normal((5000, 8)).astype("f"))
    large = xgrad.asarray(np.full(3000, 100, "f"))

    def step(index: xgrad.Tensor) -> tuple[xgrad.Tensor, ...]:
        exponential = xgrad.exp(large) * 2.0
        factor = xgrad.sort(exponential[:8])  # NumPy's, between two functions of C
        return exponential, xgrad.take(table, index, axis=0) * factor

    captured = xgrad.capture(step, native=True)
    for number in (3, 4, 5000):
        index = xgrad.asarray(np.array([1, number]))
        assert overflows_of(captured, index) == overflows_of(step, index) == 1
    assert captured.recordings == 1


def test_a_replay_that_is_given_an_unaligned_array_warns_of_nothing() -> None:
    rng = np.random.default_rng(0)
    x, factors = (rng.standard_normal(shape).astype("f") for shape in ((3, 5, 16), (3, 16, 16)))
    large, weight = xgrad.asarray(np.full(3000, 100, "f")), xgrad.asarray(factors)
    unaligned = np.ndarray(x.shape, "f", np.zeros(x.nbytes + 1, np.uint8), 1)
    unaligned[...] = x

    def step(x: xgrad.Tensor) -> tuple[xgrad.Tensor, ...]:
        return xgrad.matmul(x, weight), xgrad.exp(large * 2.0)

    captured = xgrad.capture(step, native=True)
    for array in (x, x, unaligned):
        tensor = xgrad.asarray(array, copy=False)
        assert overflows_of(captured, tensor) == overflows_of(step, tensor) == 1
    assert captured.recordings == 1


def traced_peak(step: Callable[[], Any]) -> int:
    """Return the most memory that a call of a step takes."""
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", MODELS)
def test_replays_take_no_more_memory_for_arrays_than_by_numpy(name: str) -> None:
    """Copies in C, at most some MiB for a thread, are not counted, as the memory of BLAS is not."""
    sizes = {**MODELS[name], "batch": 4}
    peaks = list[int]()
    if not library.enabled():
        pytest.skip("needs native kernels")
    wait_for(loaded_runtime)  # without it, kernels of eager mode compute by NumPy, in other memory
    for native in (False, True):
        captured = xgrad.capture(models_xgrad.step(**sizes), native=native)
        # after some calls, convolutions and large products have kernels of eager mode
        for _ in range(12):
            captured()
        (program,) = captured._programs.values()
        gc.collect()
        peaks.append(program.executor.nbytes + min(traced_peak(captured) for _ in range(3)))
    assert peaks[1] <= 1.02 * peaks[0] + (1 << 14)


def test_an_interrupt_of_a_trial_delays_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    if not runtime().has_products:
        pytest.skip("needs OpenBLAS")
    monkeypatch.setattr(ways, "_KNOWN", {})
    make, interrupts = ways._tried, [KeyboardInterrupt]

    def tried(*args: Any) -> Any:
        if interrupts:
            raise interrupts.pop()
        return make(*args)

    monkeypatch.setattr(ways, "_tried", tried)
    x, y = (
        xgrad.asarray(np.random.default_rng(i).standard_normal((64, 64)).astype("f"))
        for i in range(2)
    )
    step = xgrad.capture(lambda: xgrad.tanh(x @ y) * 2.0 + 1.0)
    right = step().tolist()
    (program,) = step._programs.values()
    program.executor._compile()
    with pytest.raises(KeyboardInterrupt):
        program.executor._compilation.wait()
    assert step().tolist() == right and program.executor.run != program.executor._run_kernels
    program.executor._compilation.wait()
    assert step().tolist() == right and program.executor.run == program.executor._run_kernels


def test_a_step_may_be_called_during_a_trial_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As signal handlers do."""
    if not runtime().has_products:
        pytest.skip("needs OpenBLAS")
    monkeypatch.setattr(ways, "_KNOWN", {})
    make, results = ways._tried, list[Any]()
    monkeypatch.setattr(
        ways, "_tried", lambda *args: results.append(step().tolist()) or make(*args)
    )
    x, y = (
        xgrad.asarray(np.random.default_rng(i).standard_normal((64, 64)).astype("f"))
        for i in range(2)
    )
    step = xgrad.capture(lambda: xgrad.tanh(x @ y) * 2.0 + 1.0)
    right = step().tolist()
    (program,) = step._programs.values()
    program.executor._compile()
    while program.executor.run != program.executor._run_kernels:
        assert step().tolist() == right
    assert results and all(result == right for result in results)


def test_a_step_may_be_called_just_after_its_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal handler runs between the end of the compilation and its use."""
    advance, results = kernels.Compilation.advance, list[Any]()

    def interrupted(compilation: kernels.Compilation) -> bool:
        is_left = advance(compilation)
        if not is_left and not results:
            results.append(None)
            results.append(step(x).tolist())
        return is_left

    step, x = xgrad.capture(chain), xgrad.asarray(np.linspace(-1, 1, 100))
    right = step(x).tolist()
    (program,) = step._programs.values()
    program.executor._compile()
    monkeypatch.setattr(kernels.Compilation, "advance", interrupted)
    while program.executor._compilation is not None:
        assert step(x).tolist() == right
    assert results == [None, right] and step(x).tolist() == right
    assert program.executor.run == program.executor._run_kernels


def test_products_are_tried_again_with_another_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not runtime().has_products:
        pytest.skip("needs OpenBLAS")
    monkeypatch.setattr(kernels, "_AT_ONCE", 0)  # a trial at a time
    rng, before = np.random.default_rng(0), xgrad.get_num_threads()
    x, y, z = (
        xgrad.asarray(rng.standard_normal(shape).astype("f"))
        for shape in ((130, 700), (700, 72), (72, 90))
    )
    step = xgrad.capture(lambda: xgrad.tanh(x @ y) @ z, native=False)
    step()
    step()
    (program,) = step._programs.values()

    def ways_of(tried: Kernels) -> list[Any]:
        return [call.way for call in tried._calls() if isinstance(call, Multiplication)]

    try:
        xgrad.set_num_threads(2)
        right, changing = (Kernels(program.executor._lowering) for _ in range(2))
        assert len([*right.trials(runtime())]) >= 2
        trials = changing.trials(runtime())
        for threads in (2, 1, 2):
            xgrad.set_num_threads(threads)
            next(trials)
        assert [*trials] and changing.threads == 2
    finally:
        xgrad.set_num_threads(before)
    assert ways_of(changing) == ways_of(right) and len(ways_of(right)) == 2


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_kernels_are_turned_off(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "WARM", 1)
    if how == "environment":
        monkeypatch.setenv("XGRAD_NATIVE", "0")
    step, x = xgrad.capture(chain, native=False if how == "argument" else None), xgrad.ones(4)
    for _ in range(3):
        assert step(x).tolist() == chain(x).tolist()
    (program,) = step._programs.values()
    assert (
        program.executor._compilation is None and program.executor.run == program.executor._code.run
    )


def failing(source: str) -> Any:
    raise library.Unavailable("there is no compiler")


def test_without_a_compiler_numpy_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", failing)
    monkeypatch.setattr(executor, "WARM", 2)
    step, x = xgrad.capture(chain), xgrad.ones(4)
    for _ in range(5):
        assert step(x).tolist() == chain(x).tolist()
    told = xgrad.capture(chain, native=True)
    with pytest.warns(CaptureWarning, match="native=True: there is no compiler"):
        told(x)
    assert told(x).tolist() == chain(x).tolist() and told.refusal is None


@pytest.mark.filterwarnings("default:.*encountered in.*:RuntimeWarning")
def test_numpy_warns_of_exceptions_in_kernels() -> None:
    step = xgrad.capture(lambda x: x * 2.0 / (x - x) + x, native=True)
    with np.errstate(all="ignore"):
        step(xgrad.ones(4))
        step(xgrad.ones(4))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        step(xgrad.ones(4))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        step(xgrad.ones(4))
    with pytest.warns(RuntimeWarning, match="invalid value"):
        step(xgrad.zeros(4))
    compared = xgrad.capture(
        lambda x: xgrad.where(x > 1.0, 0, x * 1.0) + xgrad.maximum(x, 0.5), native=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            compared(xgrad.asarray([np.nan, 1.0, 2.0]))


def test_equal_programs_share_a_library() -> None:
    def steps() -> Iterator[str]:
        for _ in range(2):
            step = xgrad.capture(chain, native=False)
            step(xgrad.ones(5))
            step(xgrad.ones(5))
            (program,) = step._programs.values()
            of_step = Kernels(program.executor._lowering)
            assert not list(of_step.trials(runtime()))  # there are no products
            yield of_step.source().text

    one, other = steps()
    assert one == other != ""
