"""Matrix products of a captured step, for products.c: their shapes and memory layouts.

`ways` chooses how a product is computed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xgrad_numpy.codegen import Instruction, is_planned
from xgrad_numpy.native.places import Bounds, is_within, places_of

_FLOATS = (np.dtype("float32"), np.dtype("float64"))
_FUNCTIONS: tuple[Any, ...] = (np.ndarray.dot, np.matmul)

#: Members of ``struct product`` of products.c, in order: of 8 bytes, and of 4 bytes.
_LONG = """rows columns inner stacks count first_leap second_leap out_leap first_step second_step \
out_step
first_stride second_stride out_stride most unit
all_rows all_columns row_ranges column_ranges""".split()
_SHORT = "first_transposed second_transposed is_double by_vector pieces keeps_zeros".split()


class ProductStruct(ctypes.Structure):
    """``struct product`` of products.c."""

    _fields_ = [(name, ctypes.c_int64) for name in _LONG] + [
        (name, ctypes.c_int32) for name in _SHORT
    ]


@dataclass(frozen=True)
class Product:
    """The shape and the layout of a product, or of a stack of products.

    The members are described at ``struct product`` in products.c.
    """

    rows: int
    columns: int
    inner: int
    stacks: int
    count: int
    first_leap: int
    second_leap: int
    out_leap: int
    first_step: int
    second_step: int
    out_step: int
    first_stride: int
    second_stride: int
    out_stride: int
    first_transposed: bool
    second_transposed: bool
    is_double: bool
    by_vector: bool = False
    pieces: int = 1
    keeps_zeros: bool = False
    most: int = 0
    unit: int = 0
    all_rows: int = 0
    all_columns: int = 0
    row_ranges: int = 0
    column_ranges: int = 0

    @property
    def work(self) -> int:
        """The number of products of two numbers."""
        return self.rows * self.columns * self.inner * self.stacks * self.count

    @property
    def may_be_square(self) -> bool:
        """Whether the operands may be a matrix and its transpose, in one memory.

        NumPy multiplies these in another way.
        """
        same = self.rows == self.columns and self.first_stride == self.second_stride
        return same and self.first_transposed != self.second_transposed

    def initializer(self) -> str:
        """Return the initializer in C."""
        return "{" + ", ".join([str(int(getattr(self, name))) for name in (*_LONG, *_SHORT)]) + "}"

    def struct(self) -> ProductStruct:
        """Return the struct for C."""
        return ProductStruct(*[int(getattr(self, name)) for name in (*_LONG, *_SHORT)])


def product_of(x: Instruction, buffers: Bounds) -> Product | None:
    """Return an instruction as a product; None if it is none that one call of BLAS computes.

    Two inputs, or an input and a parameter, may share memory in a later call, and NumPy may then
    compute the product in another way. Memory in `buffers`, and memory that the run itself makes,
    is shared with neither.
    """
    if x.function not in _FUNCTIONS or not is_planned(x) or x.options or len(x.operands) != 3:
        return None
    places = places_of(x.operands)
    if places is None or (places[2].moves and not places[2].is_new):
        return None
    given = [not place.is_new and not is_within(place.bounds, buffers) for place in places[:2]]
    may_meet = all(given) and any(place.moves for place in places[:2])
    if may_meet and all(place.moves for place in places[:2]):
        return None
    product = layout_of(x.function, [place.array for place in places])
    return None if product and may_meet and product.may_be_square else product


def layout_of(function: Any, arrays: Sequence[Any]) -> Product | None:
    """Return the shape and the layout of a product, given two operands and the result.

    Only the shapes and layouts of the three matter. None for products that are left to NumPy:
    products of vectors, of a matrix and its own transpose, and of empty matrices.
    """
    if not all(isinstance(array, np.ndarray) and array.flags.aligned for array in arrays):
        return None
    first, second, out = arrays
    if first.dtype not in _FLOATS or not first.dtype == second.dtype == out.dtype:
        return None
    double = bool(first.dtype == _FLOATS[1])
    if (first.ndim, second.ndim, out.ndim) == (2, 1, 1) and function is np.ndarray.dot:
        return _by_vector(first, second, out, double)
    if not 2 <= first.ndim == second.ndim == out.ndim or (
        first.ndim > 2 and function is not np.matmul
    ):
        return None
    one, other, result, steps = _matrix(first), _matrix(second), _matrix(out), _steps(arrays)
    if one is None or other is None or result is None or steps is None or result[1]:
        return None
    rows, inner, columns = first.shape[-2], first.shape[-1], second.shape[-1]
    if min(rows, inner, columns) < 2 or 0 in out.shape:
        return None
    if second.shape[-2] != inner or out.shape[-2:] != (rows, columns):
        return None
    if first.__array_interface__["data"] == second.__array_interface__["data"]:
        return None
    if first.ndim > 2 and np.may_share_memory(first, second):  # a matrix may meet its own transpose
        return None
    strides = one[0], other[0], result[0]
    return Product(rows, columns, inner, *steps, *strides, one[1], other[1], double)


def _by_vector(
    first: np.ndarray, second: np.ndarray, out: np.ndarray, double: bool
) -> Product | None:
    """Return the product of a matrix and a vector."""
    layout, item = _matrix(first), first.itemsize
    if layout is None or min(first.shape) < 2 or out.strides[0] != item:
        return None
    if second.shape[0] != first.shape[1] or out.shape[0] != first.shape[0]:
        return None
    if second.strides[0] % item or second.strides[0] < item:
        return None
    rows, inner = first.shape
    stride, transposed = layout
    steps = (0,) * 6
    strides = stride, second.strides[0] // item, 1
    return Product(
        rows, 1, inner, 1, 1, *steps, *strides, transposed, False, double, by_vector=True
    )


def _matrix(x: np.ndarray) -> tuple[int, bool] | None:
    """Return the row stride in elements, and whether the matrix is transposed.

    None if it has no row stride.
    """
    (rows, columns), (down, right), item = x.shape[-2:], x.strides[-2:], x.itemsize
    if right == item and down % item == 0 and down >= columns * item:
        return down // item, False
    if down == item and right % item == 0 and right >= rows * item:
        return right // item, True
    return None


def _steps(arrays: Sequence[np.ndarray]) -> tuple[int, int, int, int, int, int, int, int] | None:
    """Return the numbers of stacks and of matrices in each, and the bytes from one to the next.

    None if there are more axes.
    """
    shape = arrays[2].shape[:-2]
    if any(array.shape[:-2] != shape for array in arrays):
        return None
    axes: list[list[int]] = []  # lengths, and strides of the three arrays
    for axis in (axis for axis, n in enumerate(shape) if n > 1):
        strides = [array.strides[axis] for array in arrays]
        if axes and axes[-1][1:] == [stride * shape[axis] for stride in strides]:
            axes[-1] = [axes[-1][0] * shape[axis], *strides]
        else:
            axes.append([shape[axis], *strides])
    if len(axes) > 2:
        return None
    (stacks, *leaps), (count, *steps) = [*[[1, 0, 0, 0]] * (2 - len(axes)), *axes]
    return stacks, count, leaps[0], leaps[1], leaps[2], steps[0], steps[1], steps[2]
