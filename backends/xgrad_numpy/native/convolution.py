"""Calls of the native kernels of convolution, convolution.c.

All functions return None where there is no kernel: products must have NumPy's bits, see `ways`.
Trying that takes as long as some calls, so it waits until a shape is seen again.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.products import Product, ProductStruct, layout_of
from xgrad_numpy.native.runtime import loaded_runtime
from xgrad_numpy.native.ways import NO_WAY, Ways, ways_of
from xgrad_numpy.native.windows import (
    TYPES,
    StepsStruct,
    WindowStruct,
    contiguous,
    function,
    steps,
    table,
    with_adjacent_columns,
)  # fmt: skip

Pair = tuple[int, int]

_LINE = 64  # bytes of a cache line
_CACHE = 1 << 20  # bytes of shifted rows that are copied at once
_SMALL = 10**6  # products of two numbers up to which OpenBLAS makes no copies of its own
_RARE = 2  # number of calls for a shape that are left to NumPy
_MOST = 1 << 24  # elements of scratch memory for products


class Plane(NamedTuple):
    """A window over two axes, with the padding before them only; it may be negative."""

    kernel: Pair
    stride: Pair
    before: Pair
    dilation: Pair
    out: Pair


class _Convolution(ctypes.Structure):
    """``struct convolution`` of windows.h."""

    _fields_ = (
        *[
            (name, ctypes.c_int64)
            for name in ("height", "width", "channels", "images", "top", "left")
        ],
        *[(name, WindowStruct) for name in ("down", "right")],
        ("input", StepsStruct),
        ("product", ProductStruct),
        *[(name, ctypes.c_int64) for name in ("block", "together", "pitch")],
        *[(name, ctypes.c_int32) for name in ("direct", "threads")],
        *[(name, ctypes.c_int64) for name in ("scratch", "panels", "image")],
        *[(name, ctypes.c_void_p) for name in ("x", "y", "bias", "result", "rows", "progress")],
    )


class _Call(NamedTuple):
    struct: Any  # address of the struct
    scratch: int  # elements of scratch memory


def correlate(x: Any, weight: Any, bias: Any, plane: Plane) -> Any:
    """Return the correlation of rows with a weight, plus a bias unless it is None.

    The weight is a matrix of shape (out, ...).
    """
    x = with_adjacent_columns(x)
    call = _prepared("correlate", x, plane, len(weight), x.shape)
    if call is None:
        return None
    out = np.empty((plane.out[0], len(weight), x.shape[2], plane.out[1]), x.dtype)
    scratch = _scratch(call, x.dtype)
    biases = () if bias is None else (contiguous(bias),)
    arrays = table(x, weight, out, scratch, *biases)
    warn_of(function("correlate", x.dtype)(call.struct, arrays, len(biases)))
    return out


def weight_gradient(x: Any, g: Any, plane: Plane) -> Any:
    """Return the gradient for a weight of shape (kernel height · in · kernel width, out)."""
    x, g = with_adjacent_columns(x), contiguous(g)
    call = _prepared("weight_gradient", x, plane, g.shape[1], x.shape)
    if call is None:
        return None
    out = np.empty(
        (plane.out[0], plane.kernel[0] * x.shape[1] * plane.kernel[1], g.shape[1]), x.dtype
    )
    scratch = _scratch(call, x.dtype)
    warn_of(function("weight_gradient", x.dtype)(call.struct, table(x, g, out, scratch)))
    return out[0].copy()  # a view would keep the products of all rows alive


def scatter(g: Any, weight: Any, plane: Plane, size: Pair) -> Any:
    """Return the transpose of a correlation, for rows of this size; the weight is a matrix."""
    g, channels = contiguous(g), weight.shape[1] // (plane.kernel[0] * plane.kernel[1])
    shape = size[0], channels, g.shape[2], size[1]
    call = _prepared("scatter", g, plane, g.shape[1], shape)
    if call is None:
        return None
    out, scratch = np.empty(shape, g.dtype), _scratch(call, g.dtype)
    warn_of(function("scatter", g.dtype)(call.struct, table(g, weight, out, scratch)))
    return out


def _scratch(call: _Call, dtype: Any) -> Any:
    """Return scratch memory, with a cache line more than is used, to start at a whole one."""
    return np.empty(call.scratch + _LINE // dtype.itemsize, dtype)


def _prepared(
    name: str, x: Any, plane: Plane, outputs: int, shape: tuple[int, ...]
) -> _Call | None:
    runtime = loaded_runtime()
    if runtime is None or not runtime.has_products or x.dtype not in TYPES:
        return None
    threads = min(64, int(runtime.functions.threads()))
    key = name, plane, outputs, shape, x.strides, x.dtype, bool(x.flags.c_contiguous), threads
    count = _calls(*key)
    count[0] += 1
    return _call(*key) if count[0] > _RARE else None


@lru_cache(1024)
def _calls(*key: Any) -> list[int]:
    """Return the number of calls for a shape, in a list that the caller updates."""
    return [0]


@lru_cache(256)
def _call(
    name: str,
    plane: Plane,
    outputs: int,
    shape: Any,
    strides: Any,
    dtype: Any,
    is_contiguous: bool,
    threads: int,
) -> _Call | None:
    """Return the argument of a kernel for an input of a shape; C adds the arrays."""
    height, channels, images, width = shape
    (high, wide), (down, right), (top, left), dilation, (rows, columns) = plane
    inner = high * channels * wide
    plain = (wide, right, top, left, columns) == (1, 1, 0, 0, width) and is_contiguous
    under = (rows - 1) * down + high  # rows under the kernels of all rows of the output
    direct = name != "scatter" and plain and under <= height
    lengths = outputs, inner, images * columns
    item = (
        columns * dtype.itemsize * (rows * inner if name == "scatter" else under * channels * wide)
    )
    is_gradient = name == "weight_gradient"
    product = None if is_gradient else _in_place(name, *lengths, dtype)
    in_place, together = product is not None, images
    if in_place:
        together = images if direct else _together_in_place(images, columns, item, threads, dtype)
    elif name == "correlate":
        together = _together_multiplied(outputs, inner, images, columns, dtype)
    elif name == "scatter":
        together = _together_scattered(outputs, inner, images, columns, item, threads, dtype)
    pitch = images * columns if direct or name == "scatter" else _pitch(together * columns, dtype)
    size = channels * wide * pitch  # elements from row to row under the kernel
    layout = together * columns, pitch, down * size
    if product is not None:
        product = _of_part(name, product, *layout[:2])
    else:
        ways = _ways(name, *lengths, *layout, dtype)
        product = ways.fastest if is_gradient else ways.by_blas
    if product is None:
        return None
    struct = _Convolution(height, width, channels, images, top, left)
    struct.down = WindowStruct(high, down, dilation[0], rows)
    struct.right = WindowStruct(wide, right, dilation[1], columns)
    struct.input = steps(strides, dtype.itemsize)
    struct.product = replace(product, stacks=1, count=1).struct()
    struct.together, struct.direct, struct.pitch = together, direct, pitch
    if name == "scatter":
        struct.scratch = rows * inner * together * columns
    else:
        block = max(1, (_CACHE // (size * dtype.itemsize) - high) // down + 1)
        blocks = -(-rows // block)
        if not in_place or images // together < threads:
            blocks = min(rows, -(-blocks // threads) * threads)  # the same number for each thread
        struct.block = -(-rows // blocks)
        struct.scratch = struct.panels = 0 if direct else ((struct.block - 1) * down + high) * size
        if is_gradient and product.most:
            struct.scratch += columns * images * _in_panels(outputs, dtype)
    scratch = struct.scratch * min(threads, images // together if name == "scatter" else threads)
    if scratch > _MOST or (is_gradient and rows * inner * outputs > _MOST):
        return None
    struct.threads = threads
    return _Call(ctypes.byref(struct), scratch)


def _in_place(name: str, outputs: int, inner: int, columns: int, dtype: Any) -> Product | None:
    """Return the product of a row of the output with panels of columns that are read in place.

    None if it does not have NumPy's bits. Each number of the result is a separate sum, so parts of
    the images have the same bits.
    """
    if columns % _panel_lanes(dtype):
        return None
    return _ways(name, outputs, inner, columns, columns, columns, inner * columns, dtype).in_panels


def _of_part(name: str, product: Product, columns: int, stride: int) -> Product:
    """Return a product in place for some of the images.

    Rows under the kernel are `stride` elements long.
    """
    if name == "scatter":
        return replace(product, columns=columns, out_stride=columns)
    return replace(product, columns=columns, second_stride=stride)


@cache
def _panel_lanes(dtype: Any) -> int:
    """Return the columns of a vector; without panels, a number that divides no other."""
    return int(function("panel_lanes", dtype)()) or 1 << 62


def _pitch(columns: int, dtype: Any) -> int:
    """Return the elements from row to row of scratch memory: an odd number of cache lines.

    Rows that are a power of two apart share few sets of the cache, so that a panel would not stay
    in it.
    """
    line = _LINE // int(dtype.itemsize)
    return (-(-columns // line) | 1) * line


def _in_panels(columns: int, dtype: Any) -> int:
    """Return the total number of columns of the panels that hold these columns."""
    return -(-columns // _panel_lanes(dtype)) * _panel_lanes(dtype)


def _together_in_place(images: int, columns: int, item: int, threads: int, dtype: Any) -> int:
    """Return the number of images for which a thread copies rows at once.

    The rows fit into its cache, and consist of whole vectors.
    """
    parts = [n for n in _divisors(images) if n * columns % _panel_lanes(dtype) == 0]
    parts = [n for n in parts if images // n >= threads] or parts
    return max((n for n in parts if n * item <= _CACHE), default=min(parts))


def _together_multiplied(outputs: int, inner: int, images: int, columns: int, dtype: Any) -> int:
    """Return the number of images of one product.

    It is small enough for a small product, if that does not change the bits; otherwise it is all.
    """
    for together in _divisors(images)[-2::-1]:
        part = together * columns
        if part < 48 or outputs * inner * images * columns <= _SMALL:
            break
        if part % 16 == 0 and outputs * inner * part <= _SMALL:
            return (
                together if _may_split((outputs, inner), images * columns, part, dtype) else images
            )
    return images


def _together_scattered(
    outputs: int, inner: int, images: int, columns: int, item: int, threads: int, dtype: Any
) -> int:
    """Return the number of images that are scattered at once.

    Their products fit into a cache, if that does not change the bits.
    """
    parts = [n for n in _divisors(images) if n * columns >= 32 and images // n >= threads]
    together = max((n for n in parts if n * item <= _CACHE), default=min(parts, default=images))
    if together == images or _may_split(
        (inner, outputs), images * columns, together * columns, dtype, mT=True
    ):
        return together
    return images


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _may_split(shape: Pair, columns: int, part: int, dtype: Any, mT: bool = False) -> bool:
    """Return whether a product has the bits of its parts.

    Its matrix has this shape, and may be transposed.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape[::-1] if mT else shape).astype(dtype)
    x, y = x.T if mT else x, rng.standard_normal((shape[1], columns)).astype(dtype)
    parts = [np.matmul(x, y[:, i : i + part]) for i in range(0, columns, part)]
    return np.array_equal(np.concatenate(parts, 1), np.matmul(x, y))


def _ways(
    name: str,
    outputs: int,
    inner: int,
    all_columns: int,
    columns: int,
    stride: int,
    step: int,
    dtype: Any,
) -> Ways:
    """Return the ways to compute the product for a row of the output.

    Rows under the kernel are `stride` elements long. The rows under one output row begin `step`
    elements before the rows under the next.
    """
    weight = np.empty((2, outputs, inner), dtype)
    memory, size = np.empty(inner * stride + step, dtype), dtype.itemsize
    rows: Any = np.ndarray(
        (2, inner, columns), dtype, memory, 0, (step * size, stride * size, size)
    )
    g: Any = np.empty((2, outputs, all_columns), dtype)[..., :columns]
    operands = {
        "correlate": (np.broadcast_to(weight[0], weight.shape), rows, g),
        "weight_gradient": (rows, g.mT, np.empty((2, inner, outputs), dtype)),
        "scatter": (
            np.broadcast_to(weight[0], weight.shape).mT,
            g,
            np.empty((2, inner, columns), dtype),
        ),
    }[name]
    product = layout_of(np.matmul, operands)
    runtime: Any = loaded_runtime()
    return ways_of(product, np.matmul, operands, runtime) if product else NO_WAY
