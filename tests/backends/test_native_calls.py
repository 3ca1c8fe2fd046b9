"""Calls within native code have the bits of NumPy and of eager steps, on one thread and on several.

The subjects are NumPy's inner loops, extremes of rows, matrix products, indexing, and how threads
share the work.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import skip_without_compiler
from xgrad import nn, optim
from xgrad.backend.recording import run_array_code
from xgrad.capture.program import Diverged
from xgrad_numpy import functions
from xgrad_numpy.codegen import ArraySlot, Instruction
from xgrad_numpy.instructions import check_bound, take_elements, take_rows
from xgrad_numpy.native import library, products, ways
from xgrad_numpy.native.calls import (
    LOOPS,
    Additions,
    BoundCheck,
    Dots,
    Elements,
    Extremes,
    LoopCall,
    Multiplication,
    NativeCall,
    Reduction,
    Rows,
)
from xgrad_numpy.native.fusion import Nest, Run, fuse
from xgrad_numpy.native.kernels import _without
from xgrad_numpy.native.printer import Source
from xgrad_numpy.native.runtime import Runtime, runtime

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")


@pytest.fixture(autouse=True)
def compiler() -> None:
    skip_without_compiler()
    runtime()


@pytest.fixture(params=[1, 3])  # rows divide evenly by two threads, not by three
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(request.param)
    yield request.param
    xgrad.set_num_threads(before)


def static(array: np.ndarray) -> ArraySlot:
    return ArraySlot(array=array)


def execute(instructions: list[Instruction]) -> list[Any]:
    """Execute instructions as a captured step does; return the parts of the calls of C."""
    (fused,) = fuse([instructions], np.empty(0), [], products=True)
    tried = [y for x in fused if isinstance(x, Run) for y in x.parts if isinstance(y, NativeCall)]
    refused = {y for y in tried if not y.has_bits_of_numpy(runtime())}
    members = [y for x in fused for y in (_without(refused, x) if isinstance(x, Run) else [x])]
    source = Source()
    calls = [source.add(x) if isinstance(x, Run) else x for x in members]
    compiled = library.load(source.text)
    runtime().connect(compiled, source.loops)
    for x in calls:
        if isinstance(x, Instruction):
            x.entry()[0](*x.entry()[1:])
        elif x is not None:
            addresses = [place.array.__array_interface__["data"][0] for place in x.places]
            failed = compiled[x.name]((ctypes.c_void_p * len(addresses))(*addresses))
            runtime().take_raised()  # or the next product would warn of it
            if x.may_fail and failed:
                raise Diverged
    return [part for x in members if isinstance(x, Run) for part in x.parts]


def bits(x: np.ndarray) -> bytes:
    """Return the bytes of an array, in which all NaNs have the same bits."""
    return np.where(np.isnan(x), np.full_like(x, np.nan), x).tobytes()


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42, 1e30, -1e30, 88.7, -103.9, 709.7]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_have_the_bits_of_numpy_however_elements_are_shared_out(dtype: str) -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for function in sorted(LOOPS, key=lambda function: function.__name__):
        for size in (1, 7, 4095, 4096, 4097, 4096 * 3 + 5):
            x = (rng.standard_normal(size) * 5).astype(dtype)
            x[: len(SPECIAL)] = SPECIAL[:size]
            x[-1] = SPECIAL[size % len(SPECIAL)]
            inside, out = x.copy(), np.empty_like(x)
            instructions.append(Instruction(function, (static(x), static(out)), {}))
            instructions.append(Instruction(function, (static(inside), static(inside)), {}))
            pairs += [(function, size, function(x), out), (function, size, function(x), inside)]
    parts = execute(instructions)
    assert {type(part) for part in parts} == {LoopCall} and len(parts) == len(instructions)
    for function, size, right, got in pairs:
        assert bits(got) == bits(right), (function, size)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_rows_are_the_elements_that_numpy_finds(dtype: str) -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for rows, columns in [(1, 1), (3, 5), (40, 16), (7, 33), (2000, 17), (5, 1000)]:
        for values in (
            [0.0, -0.0],
            [-0.0, -1.0, 0.0],
            [np.nan, 1.0, 0.0],
            [np.inf, -np.inf, 1.0],
            None,
        ):
            x = (
                rng.standard_normal((rows, columns))
                if values is None
                else rng.choice(values, (rows, columns))
            )
            x = x.astype(dtype)
            for function, method in (
                (functions.largest_of_rows, "argmax"),
                (functions.smallest_of_rows, "argmin"),
            ):
                out = np.empty(rows, dtype)
                instructions.append(Instruction(function, (static(x), static(out)), {}))
                indices = getattr(x, method)(-1)
                pairs.append((np.take_along_axis(x, indices[:, None], -1)[:, 0], out))
    parts = execute(instructions)
    assert {type(part) for part in parts} == {Extremes}
    for right, got in pairs:
        assert bits(got) == bits(right)


# shapes, reduced axes, and the order in memory
REDUCED: list[tuple[tuple[int, ...], Any, tuple[int, ...]]] = [
    *[((size,), None, (0,)) for size in (1, 2, 7, 8, 9, 127, 128, 129, 8191, 8192, 8193, 20_000)],
    ((16, 10), 1, (0, 1)),
    ((300, 9), -1, (0, 1)),
    ((5, 1000), (1,), (0, 1)),
    ((9, 5), 0, (0, 1)),
    ((700, 33), 0, (0, 1)),
    ((8, 12), None, (0, 1)),
    ((8, 12), None, (1, 0)),
    ((8, 12), 0, (1, 0)),
    ((8, 12), 1, (1, 0)),
    ((16, 64, 128), 1, (0, 1, 2)),
    ((16, 64, 128), (0, 1), (0, 1, 2)),
    ((16, 64, 40), (0, 2), (0, 1, 2)),
    ((64, 6, 28, 28), (0, 2, 3), (0, 1, 2, 3)),
    ((64, 16, 10, 10), (0, 2, 3), (2, 1, 0, 3)),
    ((3, 1, 4), 1, (0, 1, 2)),
    ((3, 1, 4), (1, 2), (0, 1, 2)),
    ((2, 3, 4), (0, 2), (0, 1, 2)),
    ((4, 1), 0, (0, 1)),
    ((2, 1), 0, (0, 1)),
]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [np.add, np.maximum, np.minimum])
def test_reductions_have_the_bits_of_numpy(dtype: str, function: np.ufunc) -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for shape, axis, order in REDUCED:
        for values in (
            [-0.0],
            [0.0, -0.0],
            [np.nan, 1.0],
            [np.inf, -np.inf, 1.0],
            [1e30, -1e30, 1e-42],
            None,
        ):
            lengths = [shape[i] for i in order]
            x = (
                rng.standard_normal(lengths) if values is None else rng.choice(values, lengths)
            ).astype(dtype)
            x = x.transpose(np.argsort(order))
            right = function.reduce(x, axis, keepdims=True)
            for keepdims in (False, True):
                out = np.full(right.shape if keepdims else function.reduce(x, axis).shape, 7, dtype)
                operands = static(x), axis, None, static(out), keepdims
                instructions.append(Instruction(function.reduce, operands, {}))
                pairs.append((shape, axis, right.reshape(out.shape), out))
    parts = execute(instructions)
    assert {type(part) for part in parts} == {Reduction} and len(parts) > 0.8 * len(instructions)
    for shape, axis, right, got in pairs:
        assert bits(got) == bits(right), (shape, axis)


def test_reductions_of_arrays_with_gaps_are_left_to_numpy() -> None:
    x, out = np.arange(24.0).reshape(2, 3, 4), np.zeros(())
    for operand in (x[..., ::2], x[::-1], x[:, :0], np.broadcast_to(x[0], (5, 3, 4))):
        assert (
            Reduction.of(
                Instruction(np.add.reduce, (static(operand), None, None, static(out), False), {})
            )
            is None
        )
    for array, axis, target in [
        (x, 0, x[0]),
        (x.T, 1, np.zeros((4, 2))),
        (np.ones((2, 3, 4, 5)), (0, 2), np.zeros((3, 5))),
    ]:
        assert (
            Reduction.of(
                Instruction(np.add.reduce, (static(array), axis, None, static(target), False), {})
            )
            is None
        )


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dots_of_rows_have_the_bits_of_numpy(dtype: str) -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for shape in [(1, 1), (3, 5), (40, 16), (2, 3, 33), (700, 128), (5, 1000), (3, 8192), (7,)]:
        for values in ([0.0, -0.0], [np.nan, 1.0, 0.0], [np.inf, -np.inf, 1.0], None):
            x, y = (
                (
                    rng.standard_normal(shape) if values is None else rng.choice(values, shape)
                ).astype(dtype)
                for _ in range(2)
            )
            for other in (y, x):
                out = np.empty(shape[:-1], dtype)
                instructions.append(
                    Instruction(np.vecdot, (static(x), static(other), static(out)), {})
                )
                pairs.append((np.vecdot(x, other), out))
    parts = execute(instructions)
    assert {type(part) for part in parts} == {Dots} and len(parts) == len(instructions)
    for right, got in pairs:
        assert bits(got) == bits(right)
    long = static(np.ones((2, 20_000)))
    # BLAS shares it out
    assert Dots.of(Instruction(np.vecdot, (long, long, static(np.empty(2))), {})) is None


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_at_indices_are_those_of_numpy(dtype: str, index: str) -> None:
    rng = np.random.default_rng(0)
    for shape, count in [
        ((5,), (7,)),
        ((10, 3), (4, 5)),
        ((100, 128), (512,)),
        ((3, 40, 50), (1,)),
        ((20, 1), (300,)),
    ]:
        x = (rng.standard_normal(shape) * 10).astype(dtype)
        rows = rng.integers(-shape[0], shape[0], count).astype(index)
        out = [np.empty((*count, *shape[1:]), dtype) for _ in range(2)]
        parts = execute(
            [Instruction(take_rows, (static(x), static(rows), static(y)), {}) for y in out]
        )
        assert {type(part) for part in parts} == {Rows}
        assert out[0].tobytes() == out[1].tobytes() == x[rows].tobytes()
        rows.reshape(-1)[-1] = shape[0]
        out[0][...] = out[1][...] = 0
        with pytest.raises(Diverged):
            execute([Instruction(take_rows, (static(x), static(rows), static(y)), {}) for y in out])
        assert not any(map(np.any, out))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_are_added_in_the_order_of_numpy(dtype: str, index: str) -> None:
    rng = np.random.default_rng(0)
    for shape, count in [
        ((5,), (70,)),
        ((10, 3), (4, 5)),
        ((100, 128), (512,)),
        ((3, 40, 50), (9,)),
        ((2, 1), (300,)),
    ]:
        values = (
            10.0 ** rng.integers(-4, 4, (*count, *shape[1:]))
            * rng.standard_normal((*count, *shape[1:]))
        ).astype(dtype)
        values.reshape(-1)[: len(SPECIAL)] = SPECIAL[: values.size]
        rows = rng.integers(-shape[0], shape[0], count).astype(index)
        start = rng.standard_normal(shape).astype(dtype)
        right, out = start.copy(), [start.copy() for _ in range(2)]
        np.add.at(right, rows, values)
        keys = (static(rows),), static(rows)
        calls = [
            Instruction(functions.index_add, (static(y), key, static(values)), {})
            for y, key in zip(out, keys, strict=True)
        ]
        parts = execute(calls)
        assert {type(part) for part in parts} == {Additions}
        assert bits(out[0]) == bits(out[1]) == bits(right)
        rows.reshape(-1)[-1] = -shape[0] - 1
        with pytest.raises(Diverged):
            execute(calls)
        assert bits(out[0]) == bits(out[1]) == bits(right)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("layout", ["whole", "transposed", "every other", "reversed"])
def test_elements_at_indices_are_those_of_numpy(dtype: str, layout: str) -> None:
    rng = np.random.default_rng(0)
    x = LAYOUTS[layout](rng.standard_normal((30, 7)) * 100).astype(dtype, order="K")
    for one, other in itertools.product(("int32", "int64"), repeat=2):
        rows, columns = rng.integers(-30, 30, 50).astype(one), rng.integers(-7, 7, 50).astype(other)
        out, twice = np.empty(50, dtype), np.empty(50, dtype)
        key = static(rows), columns
        parts = execute(
            [Instruction(take_elements, (static(x), key, static(y)), {}) for y in (out, twice)]
        )
        assert {type(part) for part in parts} == {Elements}
        assert bits(out) == bits(twice) == bits(x[rows, columns])


@pytest.mark.parametrize("place", [0, 24, 49])
@pytest.mark.parametrize("index", [7, -8, 2**62, -(2**62)])
def test_an_index_out_of_range_ends_the_call(place: int, index: int) -> None:
    x, rows, columns = np.ones((50, 7)), np.arange(50), np.zeros(50, np.int64)
    columns[place] = index
    out, kept = np.zeros((2, 52)), np.ones(3)
    for key in ((rows, columns), (columns * 0 + 50, rows % 7)):
        calls = [Instruction(take_elements, (static(x), key, static(y[1:51])), {}) for y in out]
        with pytest.raises(Diverged):
            execute([*calls, Instruction(np.negative, (static(kept), static(kept)), {})])
    assert not out[:, [0, 51]].any() and not out[1].any()
    assert (kept == 1).all()  # nothing is done after a failure


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bounds_are_checked_as_in_the_recording(dtype: str) -> None:
    compare = {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
    # Sizes matter to how the bound is searched for, comparisons and bounds to what is done with it.
    cases = [(3, *case) for case in itertools.product((-5, 0, 4, 2**40), (True, False), compare)]
    cases += [(size, 4, largest, operator.lt) for size in (1, 100) for largest in (True, False)]
    for size, bound, largest, comparison in cases:
        x = np.random.default_rng(size).integers(-5, 5, size).astype(dtype)
        x[size // 2] = 4 if largest else -5
        right = comparison(int(x.max() if largest else x.min()), bound)
        done = np.zeros(2)
        call = Instruction(np.add, (static(np.ones(2)), static(np.ones(2)), static(done)), {})
        checks = [
            Instruction(check_bound, (expected, static(x), largest, comparison, bound), {})
            for expected in (right, right, not right)
        ]
        parts = execute([*checks[:2], call])
        assert {type(part) for part in parts} == {BoundCheck, Nest} and done.all()
        with pytest.raises(Diverged):
            execute([checks[0], checks[2], call])


LAYOUTS = {
    "whole": lambda x: x.copy(),
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "part": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "heads": lambda x: np.ascontiguousarray(x.swapaxes(0, -2)).swapaxes(0, -2),
    "every other": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}
SHAPES = [
    ((2, 2), (2, 2)),
    ((1, 5), (5, 3)),
    ((5, 1), (1, 3)),
    ((33, 17), (17, 65)),
    ((300, 70), (70, 200)),
    ((64, 600), (600, 64)),
    ((2, 3, 8, 5), (2, 3, 5, 7)),
    ((4, 2, 64, 32), (4, 2, 32, 64)),
    ((30, 40), (40,)),
    ((200, 300), (300,)),
]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_have_the_bits_of_numpy_in_every_layout(dtype: str) -> None:
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for one, other in SHAPES:
        x, y = (rng.standard_normal(shape).astype(dtype) for shape in (one, other))
        x[..., 0, 0] = np.nan
        for a in [layout(x) for layout in LAYOUTS.values()]:
            for b in (
                [layout(y) for layout in LAYOUTS.values()]
                if y.ndim > 1
                else [y, np.repeat(y, 2)[::2], y[::-1]]
            ):
                function: Any = np.matmul if a.ndim > 2 else np.ndarray.dot
                right = function(a, b)
                out = np.full_like(right, 7)
                instructions.append(Instruction(function, (static(a), static(b), static(out)), {}))
                pairs.append((right, out))
    parts = execute(instructions)
    assert len([part for part in parts if isinstance(part, Multiplication)]) > len(instructions) / 4
    for right, got in pairs:
        assert bits(got) == bits(right)


PANELS = [
    ((2, 3), (3, 64)),
    ((7, 1), (1, 200)),
    ((50, 129), (129, 33)),
    ((13, 447), (447, 70)),
    ((29, 460), (460, 128)),
    ((64, 784), (784, 96)),
    ((100, 1000), (1000, 180)),
    ((20, 900), (900, 700)),
    ((2, 3, 11, 20), (2, 3, 20, 40)),
    ((1200, 130), (130, 1060)),
]
IN_PLACE = [
    ((32, 2), (2, 16)),
    ((40, 100), (100, 32)),
    ((7, 1000), (1000, 16)),
    ((5, 300), (300, 64)),
]


def force_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let panels multiply wherever they have the bits of NumPy."""
    if not runtime().functions.panel_lanes_float():
        pytest.skip("needs instructions that multiply and add without rounding between")
    monkeypatch.setattr(ways, "_KNOWN", {})
    monkeypatch.setattr(ways, "_CLEARLY", np.inf)
    monkeypatch.setattr(ways, "_FILLED", 0)
    monkeypatch.setattr(ways, "_ROWS", 2)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [False, True])
def test_panels_have_the_bits_of_numpy(
    dtype: str, special: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    force_panels(monkeypatch)
    layouts = [LAYOUTS[name] for name in ("whole", "transposed", "part")]
    rng, instructions, pairs = np.random.default_rng(0), list[Instruction](), []
    for one, other in [*PANELS, *IN_PLACE]:
        x, y = (rng.standard_normal(shape).astype(dtype) for shape in (one, other))
        if special:
            values = np.array(
                [0.0, -0.0, np.inf, np.nan, 1e-30, -1e-30, 1e30, 1e-160, -1e-160], dtype
            )
            for operand in (x, y):
                np.putmask(
                    operand, rng.random(operand.shape) < 0.05, rng.choice(values, operand.size)
                )
                operand[..., -1, :] = rng.choice(
                    np.array([0.0, -0.0, 1e-30, -1e-170], dtype), operand.shape[-1]
                )
        for a in [layout(x) for layout in layouts]:
            for b in [layout(y) for layout in layouts]:
                function: Any = np.matmul if a.ndim > 2 else np.ndarray.dot
                right = function(a, b)
                out = np.full_like(right, 7)
                instructions.append(Instruction(function, (static(a), static(b), static(out)), {}))
                pairs.append((right, out))
    parts = [part for part in execute(instructions) if isinstance(part, Multiplication)]
    small = {(*one, other[1]) for one, other in IN_PLACE}
    shapes = [(part.product.rows, part.product.inner, part.product.columns) for part in parts]
    in_panels = [shape for shape, part in zip(shapes, parts, strict=True) if part.way.most]
    assert not small.isdisjoint(in_panels)
    # The rest keeps the sign of zeros.
    assert sum([x not in small for x in in_panels]) > sum([x not in small for x in shapes]) / 3
    for right, got in pairs:
        assert bits(got) == bits(right)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_panels_without_memory_have_the_same_bits(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    force_panels(monkeypatch)
    double, rng = dtype == "float64", np.random.default_rng(0)
    text = (
        "#define _POSIX_C_SOURCE 200809L\n#include <stdlib.h>\n#define aligned_alloc(border, size)"
        " NULL\n"
    )
    monkeypatch.setattr(library, "load", lambda source, load=library.load: load(text + source))
    poor = Runtime()
    ranges = [
        (0, 0),
        *([(1, 1), (4, 2)] if runtime().functions.panels_have_pairs() and not double else []),
    ]
    cases = itertools.product((False, True), (10, 70), ranges, (False, True))
    for transposed, columns, (row_ranges, column_ranges), keeps_zeros in cases:
        x = rng.standard_normal((20, 900)).astype(dtype)
        y = rng.standard_normal((900, columns)).astype(dtype)
        # underflow
        x[1], y[:, 1] = (-np.finfo(dtype).smallest_subnormal, np.finfo(dtype).smallest_subnormal)
        x, y = (LAYOUTS["transposed"](x), LAYOUTS["transposed"](y)) if transposed else (x, y)
        outs = np.zeros((20, columns), dtype), np.ones((20, columns), dtype)
        product = products.layout_of(np.ndarray.dot, (x, y, outs[0]))
        assert product is not None and product.is_double == double
        divided = {
            "all_rows": 20,
            "all_columns": columns,
            "row_ranges": row_ranges,
            "column_ranges": column_ranges,
        }
        struct = replace(product, most=448, unit=16, keeps_zeros=keeps_zeros, **divided).struct()
        for library_, out in zip((runtime(), poor), outs, strict=True):
            addresses = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
            library_.functions.multiply_alone(ctypes.byref(struct), *addresses)
        assert bits(outs[0]) == bits(outs[1])
        assert outs[0][1, 1] == 0 and np.signbit(outs[0][1, 1]) == keeps_zeros


@pytest.mark.parametrize("keeps_zeros", [False, True])
@pytest.mark.parametrize("columns", [2, 5, 16, 33, 64, 70, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_panels_keep_the_sign_of_zeros_or_add_them_to_zero(
    dtype: str, columns: int, keeps_zeros: bool
) -> None:
    if not runtime().functions.panel_lanes_float():
        pytest.skip("needs instructions that multiply and add without rounding between")
    tiny = np.finfo(dtype).smallest_subnormal
    layouts = itertools.product(("whole", "transposed"), repeat=2)
    for rows, inner, names in itertools.product((5, 6, 200), (20, 900), layouts):
        # all products underflow
        x, y = (np.full((rows, inner), -tiny, dtype), np.full((inner, columns), tiny, dtype))
        x, y = (LAYOUTS[name](array) for name, array in zip(names, (x, y), strict=True))
        out = np.ones((rows, columns), dtype)
        product = products.layout_of(np.ndarray.dot, (x, y, out))
        assert product is not None
        ways._multiply(
            replace(product, most=448, unit=16, keeps_zeros=keeps_zeros), (x, y, out), runtime()
        )
        assert not out.any() and (np.signbit(out) == keeps_zeros).all()


def test_the_faster_way_to_multiply_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (np.ones((64, 64), np.float32) for _ in range(2))
    by_blas = products.layout_of(np.ndarray.dot, (x, y, x.copy()))
    assert by_blas is not None
    in_panels = replace(by_blas, most=64)
    for slow, fast in ((by_blas, in_panels), (in_panels, by_blas)):
        clock = iter(range(100))

        def multiply(
            _: Any, product: products.Product, clock: Any = clock, slow: Any = slow
        ) -> None:
            for _ in range(5 * (product is slow)):
                next(clock)

        monkeypatch.setattr(ways._Trial, "multiply", multiply)
        monkeypatch.setattr(ways, "perf_counter", lambda clock=clock: next(clock))
        monkeypatch.setattr(ways, "_TIMED", 0)
        trial = ways._Trial(np.ndarray.dot, (x, y, x.copy()), runtime())
        assert ways._faster(by_blas, in_panels, trial) is fast
    assert ways._faster(by_blas, None, trial) is by_blas
    assert ways._faster(None, in_panels, trial) is in_panels
    assert ways._faster(None, None, trial) is None


def test_trials_leave_no_memory_to_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library keeps what NumPy allocates and frees, so trials allocate little by NumPy."""
    if not runtime().has_products:
        pytest.skip("needs OpenBLAS")
    monkeypatch.setattr(ways, "_KNOWN", {})
    x, y, out = (np.ones(shape, np.float32) for shape in ((1024, 64), (64, 1024), (1024, 1024)))
    product = products.layout_of(np.ndarray.dot, (x, y, out))
    assert product is not None
    tracemalloc.start()
    try:
        ways.ways_of(product, np.ndarray.dot, (x, y, out), runtime())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < out.nbytes


def test_a_product_with_itself_is_left_to_numpy() -> None:
    x = np.random.default_rng(0).standard_normal((50, 50)).astype(np.float32)
    out, other = np.empty_like(x), np.empty_like(x)
    parts = execute([
        Instruction(np.ndarray.dot, (static(x), static(x.T), static(out)), {}),
        Instruction(np.multiply, (static(out), static(x), static(other)), {}),
        Instruction(np.add, (static(other), static(x), static(other)), {}),
    ])  # fmt: skip
    assert not any(isinstance(part, Multiplication) for part in parts)
    assert bits(other) == bits(x.dot(x.T) * x + x)


@pytest.mark.usefixtures("threads")
def test_steps_in_several_threads_at_once_have_their_own_results() -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return xgrad.exp(x @ x.mT * 0.01) * 2 + 1

    inputs = [
        xgrad.asarray(np.random.default_rng(i).standard_normal((300, 200)), dtype=xgrad.float32)
        for i in range(3)
    ]
    right, wrong = [step(x).numpy() for x in inputs], list[int]()

    def call(i: int) -> None:
        captured = xgrad.capture(step, native=True)
        wrong.extend(i for _ in range(30) if bits(captured(inputs[i]).numpy()) != bits(right[i]))

    before = xgrad.get_num_threads()
    workers = [threading.Thread(target=call, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert xgrad.get_num_threads() == before


@pytest.mark.parametrize("shapes", [((8, 8), (8, 8)), ((8, 8), (8,)), ((3, 8, 8), (3, 8, 8))])
def test_products_warn_as_numpy_does(shapes: Any) -> None:
    x, y = (np.ones(shape, np.float32) for shape in shapes)
    x[..., 0, :2] = np.inf, -np.inf
    one, other = xgrad.asarray(x), xgrad.asarray(y)
    captured = xgrad.capture(lambda: (one @ other) * 2 + 1, native=True)
    with np.errstate(all="ignore"):
        captured()
        captured()
    function: Any = np.ndarray.dot if x.ndim == y.ndim == 2 else np.matmul  # see products.matmul
    with np.errstate(invalid="raise"):
        try:
            function(x, y)
        except FloatingPointError:
            with pytest.raises(FloatingPointError, match="invalid"):
                captured()
        else:
            captured()


@pytest.mark.parametrize("size", [3, 8, 100])
def test_comparisons_of_nan_raise_no_exception(size: int) -> None:
    for dtype in (xgrad.float32, xgrad.float64):
        x = xgrad.asarray(np.resize([np.nan, 1.0, -0.0], size), dtype=dtype)

        def step(x: xgrad.Tensor) -> Any:
            larger = (
                xgrad.where(x > 0.5, x * 1.0, 0)
                + xgrad.maximum(x, 0.5)
                - xgrad.minimum(x * 1.0, x + 1.0)
            )
            return larger * 2, (x < 1.0) & (x >= 0.0), (x <= x * 2.0) | (x == 1.0)

        captured = xgrad.capture(step, native=True)
        with np.errstate(all="raise"):
            for _ in range(3):
                for one, other in zip(step(x), captured(x), strict=True):
                    assert bits(one.numpy()) == bits(other.numpy())


@pytest.mark.parametrize("function", ["exp", "log", "sin"])
def test_a_loop_of_a_single_element_reads_what_was_stored(function: str) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return getattr(xgrad, function)((x * 2 + 1).reshape(()))

    captured = xgrad.capture(step, native=True)
    for number in (1.0, 1.5, 2.0, 0.5):
        x = xgrad.full((1, 1), number)
        assert captured(x).item() == step(x).item()


@pytest.mark.usefixtures("threads")
def test_products_are_tried_while_blas_has_its_threads() -> None:
    """While another thread has set BLAS to one thread, NumPy's products may have other bits."""
    loaded, operands = runtime(), [np.ones((128, 784), np.float32), np.ones((784, 64), np.float32)]
    arrays = [*operands, np.empty((128, 64), np.float32)]
    layout = products.layout_of(np.ndarray.dot, arrays)
    assert layout is not None
    ways._KNOWN.clear()
    loaded.functions.begin_products()
    try:
        assert ways.with_bits_of_numpy(layout, np.ndarray.dot, arrays, loaded) is None
        assert not ways._KNOWN
    finally:
        loaded.functions.end_products()


def test_exceptions_are_those_of_the_thread() -> None:
    wrong: list[str] = []
    stop = threading.Event()

    def call(number: float, mode: Any, raises: bool) -> None:
        x, clean = xgrad.full((200, 300), number), xgrad.ones((200, 300))
        captured = xgrad.capture(lambda x: xgrad.exp(x * 10.0 - x * 10.0) * 2 + x * 10, native=True)
        with np.errstate(all=mode):
            captured(clean)
            captured(clean)
            while not stop.is_set():
                try:
                    captured(x)
                    if raises:
                        wrong.append("an exception was lost")
                except FloatingPointError:
                    if not raises:
                        wrong.append("an exception of another thread")

    cases = [(1e38, "ignore", False), (1e38, "raise", True), (1.0, "raise", False)]
    workers = [threading.Thread(target=call, args=case) for case in cases]
    for worker in workers:
        worker.start()
    stop.wait(1.0)
    stop.set()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_step_that_ends_with_an_error_leaves_no_exception() -> None:
    x, index = xgrad.full((4,), 1e38), xgrad.asarray([0, 1])
    captured = xgrad.capture(lambda x, index: (x * 10.0 + 1)[index], native=True)
    with np.errstate(all="ignore"):
        captured(x, index)
        captured(x, index)
        with pytest.raises(IndexError):
            captured(x, xgrad.asarray([0, 9]))
    with np.errstate(all="raise"):
        captured(xgrad.ones(4), index)


def test_a_replay_that_ends_leaves_no_exception() -> None:
    captured = xgrad.capture(lambda x, i, j: (xgrad.log(x[i, j]), 1 / (x[i, j] + 0)), native=True)
    x = xgrad.asarray(np.random.default_rng(0).random((50, 7)) + 1, dtype=xgrad.float32)
    rows, columns = np.arange(50), np.arange(50) % 7
    wrong = np.where(rows == 3, 9, columns)
    for chosen in (columns, wrong, columns, wrong):
        if chosen is wrong:
            with pytest.raises(IndexError):
                captured(x, xgrad.asarray(rows), xgrad.asarray(chosen))
        else:
            captured(x, xgrad.asarray(rows), xgrad.asarray(chosen))
        assert runtime().take_raised() == 0


def _added(device: Any, x: Any, indices: Any, values: Any) -> None:
    device.xp.index_add(x, indices, values)


def test_an_index_out_of_range_after_a_write_is_an_error_and_the_rest_is_not_done() -> None:
    outcomes = []
    for native in (False, True):
        x, total = xgrad.zeros((6, 4)), xgrad.zeros(3)

        def step(x: Any, total: Any, indices: Any, values: Any) -> None:
            total += 1.0
            total *= 2.0
            run_array_code(x.device, _added, x._data, indices._data, values._data)
            total += 1.0
            total *= 3.0

        captured = xgrad.capture(step, native=native)
        for last in (3, 3, 3, 6, 3):
            args = x, total, xgrad.asarray([0, 1, last]), xgrad.ones((3, 4))
            if last == 6:
                with pytest.raises(IndexError):
                    captured(*args)
            else:
                captured(*args)
        outcomes.append((x.tolist()[3:], total.tolist()))
        assert captured.refusal is None
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (200, 100)])
@pytest.mark.parametrize(
    ("function", "value"), [("exp", 800.0), ("expm1", 800.0), ("log", 0.0), ("log", -1.0)]
)
def test_loops_raise_as_numpy_does(
    function: str, value: float, shape: tuple[int, ...], dtype: str
) -> None:
    captured = xgrad.capture(lambda x: getattr(xgrad, function)(x + 0.0) * 1.0, native=True)
    x = np.full(shape, 2.0, dtype)
    captured(xgrad.asarray(x))
    captured(xgrad.asarray(x))
    x[...] = value
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        captured(xgrad.asarray(x))
    with np.errstate(all="ignore"):
        captured(xgrad.asarray(x))


def test_single_numbers_raise_before_anything_is_written() -> None:
    outcomes = []
    for capture in (lambda step: step, lambda step: xgrad.capture(step, native=True)):
        w = nn.Parameter(xgrad.ones(3))
        optimizer = optim.SGD([w], lr=0.1)

        def step(x: Any, w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (w * x).sum()
            logarithm = xgrad.log(loss.detach())
            loss.backward()
            optimizer.step()
            return logarithm

        run = capture(step)
        with np.errstate(all="raise"):
            for value in (1.0, 1.0, -1.0, 1.0, 0.0, 1.0):
                if value <= 0:
                    with pytest.raises(FloatingPointError):
                        run(xgrad.full((3,), value))
                else:
                    run(xgrad.full((3,), value))
                outcomes.append(w.tolist())
    assert outcomes[: len(outcomes) // 2] == outcomes[len(outcomes) // 2 :]


@pytest.mark.filterwarnings("default:.*encountered in.*:RuntimeWarning")
def test_reductions_of_nan_raise_as_numpy_does() -> None:
    def step(x: Any) -> Any:
        return (
            x.max() + x.min(),
            (x * 1).sum(axis=1),
            (x * 1).max(axis=0),
            (x * 1).min(axis=1),
            (x * x).sum(),
        )

    captured, x = xgrad.capture(step, native=True), np.ones((40, 30))
    for value in (1.0, 1.0, np.nan, np.inf, -np.inf):
        x[3, 4] = value
        with np.errstate(all="raise"):
            for one, other in zip(step(xgrad.asarray(x)), captured(xgrad.asarray(x)), strict=True):
                assert bits(one.numpy()) == bits(other.numpy())
    x[:, 4], x[3, 5] = np.inf, 1e200
    x[5, 4] = -np.inf
    for compute in (step, captured):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            compute(xgrad.asarray(x))


def test_underflow_raises_as_numpy_does() -> None:
    captured = xgrad.capture(lambda x: x * 1e-30 * 2 + 1, native=True)
    with np.errstate(all="ignore"):
        captured(xgrad.ones(9))
        captured(xgrad.ones(9))
    with np.errstate(under="raise"):
        captured(xgrad.ones(9))
        with pytest.raises(FloatingPointError, match="underflow"):
            captured(xgrad.full((9,), 1e-20))


def test_a_view_of_a_parameter_as_an_input_has_the_bits_of_eager() -> None:
    w = xgrad.asarray(np.random.default_rng(0).standard_normal((100, 100)))
    captured = xgrad.capture(lambda x: ((x.mT @ w) * 2, (w @ x.mT) * 2), native=True)
    for x in (xgrad.ones((100, 100), dtype=xgrad.float64), w.detach(), w[:], w * 1):
        for one, other in zip(captured(x), ((x.mT @ w) * 2, (w @ x.mT) * 2), strict=True):
            assert bits(one.numpy()) == bits(other.numpy())


def test_stacks_in_which_a_matrix_meets_its_transpose_have_the_bits_of_numpy() -> None:
    x = xgrad.asarray(np.random.default_rng(0).standard_normal((5, 100, 100)))
    right = np.matmul(x.numpy().mT, x.numpy()[::-1])
    captured = xgrad.capture(lambda: (x.mT @ x[::-1]) * 1, native=True)
    for _ in range(12):
        assert bits((x.mT @ x[::-1]).numpy()) == bits(right)
        assert bits(captured().numpy()) == bits(right)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_the_ranges_of_a_task_cover_all_of_it_once(threads: int) -> None:
    pytest.importorskip("threadpoolctl")
    ranges: list[tuple[int, int]] = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        lambda _, begin, end: ranges.append((begin, end))
    )
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(threads)
    try:
        for total, chunk in itertools.product((0, 1, 2, 5, 16, 99, 1000), (1, 3, 16, 100)):
            ranges.clear()
            runtime().functions.parallel(note, None, ctypes.c_int64(total), ctypes.c_int64(chunk))
            ends = [0, *[end for _, end in sorted(ranges)]]
            assert (
                sorted(ranges) == [(x, y) for x, y in itertools.pairwise(ends) if x < y]
                and ends[-1] == total
            )
            assert len(ranges) == 1 or all(
                begin % chunk == 0 and end - begin <= chunk for begin, end in ranges
            )
    finally:
        xgrad.set_num_threads(before)


def test_the_number_of_threads_is_known_while_products_begin_and_end() -> None:
    pytest.importorskip("threadpoolctl")
    before, stop, functions = xgrad.get_num_threads(), threading.Event(), runtime().functions

    def multiply() -> None:
        while not stop.is_set():
            functions.begin_products()
            functions.end_products()

    worker = threading.Thread(target=multiply)
    xgrad.set_num_threads(2)
    worker.start()
    try:
        assert {functions.threads() for _ in range(100_000)} == {2}
    finally:
        stop.set()
        worker.join()
        xgrad.set_num_threads(before)


def test_threads_that_are_set_during_products_remain() -> None:
    x = xgrad.asarray(np.random.default_rng(0).standard_normal((700, 700)), dtype=xgrad.float32)
    captured = xgrad.capture(lambda x: (x @ (x + 1) * 2).sum(), native=True)
    before = xgrad.get_num_threads()
    try:
        for wanted in (1, 2, 1, 2):
            worker = threading.Thread(target=lambda: [captured(x) for _ in range(5)])
            worker.start()
            xgrad.set_num_threads(wanted)
            assert xgrad.get_num_threads() == wanted
            worker.join()
            assert xgrad.get_num_threads() == wanted
    finally:
        xgrad.set_num_threads(before)


@pytest.mark.parametrize("label", [10, -11, 2**40])
def test_labels_out_of_range_raise_as_in_eager_mode_and_change_nothing(label: int) -> None:
    xgrad.manual_seed(0)
    models = [nn.Linear(5, 10) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())

    def step_of(model: nn.Module) -> Any:
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager, captured = step_of(models[0]), xgrad.capture(step_of(models[1]), native=True)
    rng = np.random.default_rng(0)
    kept: list[Any] = []
    for number in range(9):
        x, y = rng.standard_normal((6, 5)).astype("float32"), rng.integers(0, 10, 6)
        batch = xgrad.asarray(x), xgrad.asarray(y)
        if number in (4, 6):
            y[3] = label
            batch = xgrad.asarray(x), xgrad.asarray(y)
            errors = []
            for step in (eager, captured):
                with pytest.raises((IndexError, ValueError)) as caught:
                    step(*batch)
                errors.append((type(caught.value), str(caught.value)))
            assert errors[0] == errors[1]
        else:
            kept.append((eager(*batch), captured(*batch)))
        for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
            assert bits(one.detach().numpy()) == bits(other.detach().numpy())
    assert captured.refusal is None and captured.recordings == 2  # the first packs the parameters
    assert [x.item() for x, _ in kept] == [
        y.item() for _, y in kept
    ]  # each loss has memory of its own


def _twice(x: Any) -> Any:
    total = x.sum()
    return total, total


def _view(x: Any) -> Any:
    total = (x * 2).mean()
    return total, total.reshape((1,)), total * 2


def _numbers(x: Any) -> Any:
    total, most = x.sum(), x.max()
    scaled = total / (most + 1.0) - x.mean()
    rows = xgrad.stack([total, most, scaled])
    return (
        scaled[None, None] * x,
        xgrad.sqrt(scaled * scaled),
        scaled**3,
        rows,
        xgrad.where(scaled > 0, total, most),
    )


def _unread(x: Any) -> Any:
    total = x.sum()
    x = x * total
    return x.sum() + total, x


@pytest.mark.parametrize("step", [_twice, _view, _numbers, _unread])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_single_numbers_have_the_bits_and_the_memory_of_eager(step: Any, dtype: str) -> None:
    rng, captured, kept = np.random.default_rng(0), xgrad.capture(step, native=True), []
    for _ in range(5):
        x = xgrad.asarray(rng.standard_normal((3, 4)), dtype=getattr(xgrad, dtype))
        kept.append((step(x), captured(x)))
    assert captured.refusal is None and captured.recordings == 1
    for right, got in kept:
        for x, y in zip(right, got, strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype and bits(x.numpy()) == bits(y.numpy())
        for i, j in itertools.combinations(range(len(right)), 2):
            assert np.shares_memory(right[i].numpy(), right[j].numpy()) == np.shares_memory(
                got[i].numpy(), got[j].numpy()
            )
    arrays = [y.numpy() for _, got in kept for y in got[:1]]
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations(arrays, 2))


def _bounds(device: Any, x: Any) -> bool:
    """Return whether bounds of two arrays hold, compared after both are made, as a rule may do."""
    xp = device.xp
    least = xp.min(xp.astype(x * 2.0, xp.int64))
    most = xp.max(xp.astype(x * x + 1.0, xp.int64))
    return bool(device.backend.check_true(least >= 0)) and bool(device.backend.check_true(most > 0))


def checked_later(x: Any) -> Any:
    return x + 1.0 if run_array_code(x.device, _bounds, x._data) else x - 1.0


@pytest.mark.parametrize("native", [False, True])
def test_arrays_whose_bounds_are_checked_later_are_kept_until_then(native: bool) -> None:
    captured = xgrad.capture(checked_later, native=native)
    for values in (
        [1.0, 2.0],
        [3.0, 4.0],
        [-5.0, 1.0],
        [2.0, 2.0],
        [1.0, 90.0],
        [-1.0, -2.0],
        [5.0, 5.0],
    ) * 2:
        x = xgrad.asarray(values)
        assert captured(x).tolist() == checked_later(x).tolist()
    assert captured.refusal is None and 1 < captured.recordings <= 6
