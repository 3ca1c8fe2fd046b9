"""Recurrent layers over all time steps in C: see c/recurrent.c, c/gru.c and c/panels.c.

Each function writes the results that xgrad_numpy/recurrent.py has allocated, and returns whether it
did so. Products with vectors, and products that the runtime does not compute with the same bits,
are left to NumPy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.loops import Loop, loop_of
from xgrad_numpy.native.orders import orders_of, with_signs
from xgrad_numpy.native.products import Product, ProductStruct
from xgrad_numpy.native.runtime import Runtime, loaded_runtime
from xgrad_numpy.native.ways import let_underflow, undisturbed

Array = np.ndarray[Any, Any]

_FLOATS = np.dtype("float32"), np.dtype("float64")
_SHARED = 1 << 20  # products of two numbers in a sequence, from which threads share out its rows
_LEAST = 3  # number of steps from which a C call is faster than NumPy
_FEW = 48  # rows per thread up to which panels are faster than BLAS
_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64


class _Steps(ctypes.Structure):
    """``struct lstm_steps`` of recurrent.h."""

    _fields_ = (
        ("product", ProductStruct), ("exp", Loop), ("tanh", Loop),
        *[(name, _INTEGER) for name in ("steps", "reverse", "rows", "x_step", "x_row")],
        *[(name, _POINTER) for name in (
            "x", "weight", "h", "c", "states", "cells", "gates", "scratch", "panels", "raised",
        )],
    )  # fmt: skip


class _Gradient(ctypes.Structure):
    """``struct lstm_gradient`` of recurrent.h."""

    _fields_ = (
        ("product", ProductStruct),
        ("tanh", Loop),
        *[(name, _INTEGER) for name in ("steps", "reverse", "rows", "g_step", "g_row")],
        *[
            (name, _POINTER)
            for name in (
                "g_states",
                "weight",
                "c",
                "cells",
                "gates",
                "gradient",
                "dh",
                "dc",
                "scratch",
                "panels",
                "raised",
            )
        ],
    )


class _GRUSteps(ctypes.Structure):
    """``struct gru_steps`` of recurrent.h."""

    _fields_ = (
        ("product", ProductStruct), ("exp", Loop), ("tanh", Loop),
        *[(name, _INTEGER) for name in ("steps", "reverse", "rows", "x_step", "x_row")],
        *[(name, _POINTER) for name in (
            "x", "weight", "h", "bias", "states", "gates", "scratch", "panels", "raised",
        )],
    )  # fmt: skip


class _GRUGradient(ctypes.Structure):
    """``struct gru_gradient`` of recurrent.h."""

    _fields_ = (
        ("product", ProductStruct),
        *[(name, _INTEGER) for name in ("steps", "reverse", "rows", "g_step", "g_row")],
        *[
            (name, _POINTER)
            for name in (
                "g",
                "weight",
                "h",
                "states",
                "gates",
                "of_input",
                "of_state",
                "dh",
                "scratch",
                "panels",
                "raised",
            )
        ],
    )


def lstm_steps(
    x: Array,
    weight: Array,
    h: Array,
    c: Array,
    states: Array,
    cells: Array,
    gates: Array,
    reverse: bool,
) -> bool:
    """Write the hidden states, the cells and the gates of all steps.

    `weight` is transposed and negated.
    """
    (steps, batch, n), dtype = states.shape, states.dtype
    shapes = (steps, batch, 4 * n), (n, 4 * n), (batch, n), (batch, n)
    runtime = _runtime((x, weight, h, c), shapes, dtype)
    if runtime is None:
        return False
    exp = loop_of(np.exp, dtype)
    tanh = loop_of(np.tanh, dtype)
    product = _product(batch, n, 4 * n, dtype)
    way = _way(product, steps, runtime)
    if exp is None or tanh is None or way is None:
        return False
    x, weight, h, c = _contiguous_rows(x), _contiguous(weight), _contiguous(h), _contiguous(c)
    scratch = np.empty((2, batch, 4 * n), dtype)
    panels = np.empty(weight.size if way.product.most else 0, dtype)
    _call(
        runtime,
        "lstm_steps",
        _Steps,
        way.product,
        exp,
        tanh,
        steps,
        reverse,
        way.rows,
        *_strides(x),
        *map(_address, (x, weight, h, c, states, cells, gates, scratch, panels)),
    )
    return True


def lstm_gradient(
    g_states: Array,
    weight: Array,
    c: Array,
    cells: Array,
    gates: Array,
    gradient: Array,
    dh: Array,
    dc: Array,
    reverse: bool,
) -> bool:
    """Write the gradients of the projected input.

    Replace `dh` and `dc` by the gradients of the first hidden state and the first cell.
    """
    (steps, batch, n), dtype = cells.shape, cells.dtype
    state = batch, n
    shapes = (steps, *state), (4 * n, n), state, (steps, *state), (steps, 4, *state), state, state
    runtime = _runtime((g_states, weight, c, cells, gates, dh, dc), shapes, dtype)
    if runtime is None:
        return False
    tanh, product = loop_of(np.tanh, dtype), _product(batch, 4 * n, n, dtype)
    way = _way(product, steps, runtime)
    if tanh is None or way is None:
        return False
    g_states, weight, c = _contiguous_rows(g_states), _contiguous(weight), _contiguous(c)
    cells, gates = _contiguous(cells), _contiguous(gates)
    scratch = np.empty(state, dtype)
    panels = np.empty(weight.size if way.product.most else 0, dtype)
    _call(
        runtime,
        "lstm_gradient",
        _Gradient,
        way.product,
        tanh,
        steps,
        reverse,
        way.rows,
        *_strides(g_states),
        *map(_address, (g_states, weight, c, cells, gates, gradient, dh, dc, scratch, panels)),
    )
    return True


def gru_steps(
    x: Array, weight: Array, h: Array, bias: Array, states: Array, gates: Array, reverse: bool
) -> bool:
    """Write the hidden states and the gates of all steps.

    `weight` is transposed and negated, `bias` is negated.
    """
    (steps, batch, n), dtype = states.shape, states.dtype
    runtime = _runtime(
        (x, weight, h, bias), ((steps, batch, 3 * n), (n, 3 * n), (batch, n), (3 * n,)), dtype
    )
    if runtime is None:
        return False
    exp = loop_of(np.exp, dtype)
    tanh = loop_of(np.tanh, dtype)
    product = _product(batch, n, 3 * n, dtype)
    way = _way(product, steps, runtime)
    if exp is None or tanh is None or way is None:
        return False
    x, weight, h, bias = _contiguous_rows(x), _contiguous(weight), _contiguous(h), _contiguous(bias)
    scratch = np.empty((2, batch, 3 * n), dtype)
    panels = np.empty(weight.size if way.product.most else 0, dtype)
    _call(
        runtime,
        "gru_steps",
        _GRUSteps,
        way.product,
        exp,
        tanh,
        steps,
        reverse,
        way.rows,
        *_strides(x),
        *map(_address, (x, weight, h, bias, states, gates, scratch, panels)),
    )
    return True


def gru_gradient(
    g: Array,
    weight: Array,
    h: Array,
    states: Array,
    gates: Array,
    of_input: Array,
    of_state: Array,
    dh: Array,
    reverse: bool,
) -> bool:
    """Write the gradients of the projected input and of the projected states.

    Replace `dh` by the gradient of the first state.
    """
    (steps, batch, n), dtype = states.shape, states.dtype
    state = batch, n
    shapes = (steps, *state), (3 * n, n), state, (steps, *state), (steps, 4, *state), state
    runtime = _runtime((g, weight, h, states, gates, dh), shapes, dtype)
    if runtime is None:
        return False
    product = _product(batch, 3 * n, n, dtype)
    way = _way(product, steps, runtime)
    if way is None:
        return False
    g, weight, h = _contiguous_rows(g), _contiguous(weight), _contiguous(h)
    states, gates = _contiguous(states), _contiguous(gates)
    scratch = np.empty(state, dtype)
    panels = np.empty(weight.size if way.product.most else 0, dtype)
    _call(
        runtime, "gru_gradient", _GRUGradient, way.product, steps, reverse, way.rows, *_strides(g),
        *map(_address, (g, weight, h, states, gates, of_input, of_state, dh, scratch, panels)),
    )  # fmt: skip
    return True


def _call(runtime: Runtime, name: str, struct: Any, product: Product, *fields: Any) -> None:
    """Call a C kernel with a struct of its arguments.

    NumPy then warns of arithmetic exceptions.
    """
    raised = ctypes.c_int32()
    arguments = struct(product.struct(), *fields, ctypes.addressof(raised))
    runtime.functions[f"{name}_{_type(product)}"](ctypes.byref(arguments))
    warn_of(raised.value)


def _runtime(
    arrays: tuple[Array, ...], shapes: tuple[tuple[int, ...], ...], dtype: Any
) -> Runtime | None:
    """Return the runtime if kernels support arrays of these shapes and this dtype, else None."""
    if dtype not in _FLOATS or shapes[0][0] < _LEAST or shapes[0][1] < 2 or min(shapes[1]) < 2:
        return None
    if any(x.dtype != dtype or x.shape != shape for x, shape in zip(arrays, shapes, strict=True)):
        return None
    runtime = loaded_runtime()
    return runtime if runtime is not None and runtime.has_products else None


def _product(rows: int, inner: int, columns: int, dtype: Any) -> Product:
    """Return the product of contiguous matrices."""
    return Product(
        rows,
        columns,
        inner,
        1,
        1,
        *(0,) * 6,
        inner,
        columns,
        columns,
        False,
        False,
        dtype.itemsize == 8,
    )


class _Way(NamedTuple):
    """The rows of the batch for one thread, and the product, in panels or by BLAS."""

    rows: int
    product: Product


def _way(product: Product, steps: int, runtime: Runtime) -> _Way | None:
    """Return how to compute a sequence of products with NumPy's bits; None if no way is known.

    The first call for a shape takes as long as some products.
    """
    threads = int(runtime.functions.threads())
    wanted = threads if product.work * steps >= _SHARED else 1
    key = product, threads, wanted
    if key not in _KNOWN:
        ways = _ways(product, -(-product.rows // wanted), threads, runtime)
        _KNOWN[key] = next((way for way in ways if _has_bits_of_numpy(way, runtime)), None)
    return _KNOWN[key]


_KNOWN: dict[Any, _Way | None] = {}


def _ways(product: Product, rows: int, threads: int, runtime: Runtime) -> Iterator[_Way]:
    """Yield ways to compute products with this many rows per thread, the fastest first."""
    columns = int(runtime.functions[f"panel_lanes_{_type(product)}"]())
    if columns and not product.columns % columns and rows <= _FEW:
        orders = orders_of(product, threads, runtime)
        yield from [_Way(rows, x) for order in orders for x in with_signs(order)]
    yield _Way(-(-rows // 4) * 4, product)
    yield _Way(product.rows, product)


def _has_bits_of_numpy(way: _Way, runtime: Runtime) -> bool:
    """Return whether the products of a thread's rows, and of all rows, have NumPy's bits.

    A thread multiplies all rows if the others are busy. For some shapes OpenBLAS adds up in another
    order.
    """
    product = way.product
    rng, dtype = np.random.default_rng(0), np.dtype("f8" if product.is_double else "f4")
    others = rng.standard_normal((product.inner, product.columns)).astype(dtype)
    numbers = rng.standard_normal((product.rows, product.inner)).astype(dtype)
    zeros = np.copysign(dtype.type(0), numbers)
    underflowing = numbers.copy(), others.copy()
    let_underflow(*underflowing)
    for first, second in [(numbers, others), (zeros, others), underflowing]:
        expected = np.empty((product.rows, product.columns), dtype)
        if not undisturbed(partial(np.dot, first, second, expected), runtime):
            return False
        for size in {way.rows, product.rows}:
            out = np.empty_like(expected)
            for begin in range(0, product.rows, size):
                part = slice(begin, begin + size)
                # this would be a product with a vector
                if not product.most and len(first[part]) < 2:
                    return False
                _multiply(product, begin, first[part], second, out[part], runtime)
            if out.tobytes() != expected.tobytes():
                return False
    return True


def _multiply(
    product: Product, row: int, first: Array, second: Array, out: Array, runtime: Runtime
) -> None:
    """Multiply the rows of `first` as the kernels do; they start at `row` of the whole matrix."""
    panels, rows = np.empty_like(second), len(first)
    addresses = [_POINTER(_address(x)) for x in (first, second, panels, out)]
    if product.most:
        function = runtime.functions[f"multiply_packed_{_type(product)}"]
        function(ctypes.byref(product.struct()), _INTEGER(row), _INTEGER(rows), *addresses)
    else:
        part = replace(product, rows=rows)
        runtime.functions.multiply_alone(ctypes.byref(part.struct()), *addresses[:2], addresses[3])


def _type(product: Product) -> str:
    return "double" if product.is_double else "float"


def _contiguous(x: Array) -> Array:
    """Return an array that C can read: `x`, or a copy."""
    return x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C")


def _contiguous_rows(x: Array) -> Array:
    """Return an array whose last axis is contiguous.

    Its strides are whole numbers of elements.
    """
    whole = x.flags.aligned and not any(stride % x.itemsize for stride in x.strides)
    return x if whole and x.strides[-1] == x.itemsize else np.array(x, order="C")


def _strides(x: Array) -> list[int]:
    return [stride // x.itemsize for stride in x.strides[:2]]


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address
