"""Instructions that are one call of a C function: products, NumPy's loops, reductions, indices.

Checks of indices are calls, too. Each kind of call has a method `of`, which returns None for other
instructions, the `places` that the call accesses, the one that it writes to last, and its `text` in
C.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from xgrad_numpy import functions
from xgrad_numpy.codegen import Instruction, is_planned
from xgrad_numpy.instructions import check_bound, take_elements, take_rows
from xgrad_numpy.native.expressions import MEMORY_TYPES
from xgrad_numpy.native.loops import Loop, dot_loop_of, loop_of
from xgrad_numpy.native.places import Bounds, Place, places_of
from xgrad_numpy.native.products import Product, product_of
from xgrad_numpy.native.reductions import (
    REDUCTIONS,
    ReducedAxes,
    reduced_axes,
    reductions_have_bits_of_numpy,
)
from xgrad_numpy.native.runtime import Runtime
from xgrad_numpy.native.ways import with_bits_of_numpy

#: Functions whose loops give the same bits however the elements are shared out; a test checks it.
LOOPS = frozenset(
    {np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.tanh, np.sin, np.cos}
)
_INDICES = frozenset(map(np.dtype, ("int32", "int64")))
_SYMBOLS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


@dataclass(slots=True, eq=False)
class NativeCall(ABC):
    """A call of a C function.

    Attributes
    ----------
    instruction : Instruction
        The instruction.
    places : list of Place
        The places that it reads, and last the one that it writes to.
    may_fail : bool
        Whether its text is an expression, which is nonzero if the replay must not go on.
    """

    instruction: Instruction
    places: list[Place]
    may_fail: ClassVar[bool] = False

    @property
    def loops(self) -> Mapping[str, Loop]:
        """The NumPy loops that it needs, by the names of their variables."""
        return {}

    @abstractmethod
    def text(self, first: int) -> str:
        """Return the call in C.

        `first` is the index of its first place in the table of addresses, ``p``.
        """

    def has_bits_of_numpy(self, runtime: Runtime) -> bool:
        """Return whether C computes NumPy's bits, if that has to be tried out.

        Called before `text`, and again if the number of threads has changed.
        """
        return True

    def is_worth_a_call(self, least: int) -> bool:
        """Return whether C should execute it alone.

        `least` is the number of elements from which C is worth it for single loops.
        """
        return self.places[-1].array.size >= least


@dataclass(slots=True, eq=False)
class Multiplication(NativeCall):
    """A matrix product: as its arrays describe it, and the way to compute it."""

    product: Product
    way: Product

    @classmethod
    def of(cls, x: Instruction, buffers: Bounds) -> Multiplication | None:
        """Return an instruction as a product of matrices, or of a matrix and a vector."""
        product = product_of(x, buffers)
        places = None if product is None else places_of(x.operands)
        return None if product is None or places is None else cls(x, places, product, product)

    def text(self, first: int) -> str:
        """Return the call in C."""
        product = self.way.initializer()
        arguments = ", ".join([f"p[{first + i}]" for i in range(3)])
        return (
            f"{{ static const struct product x = {product}; runtime->multiply(&x, {arguments}); }}"
        )

    def has_bits_of_numpy(self, runtime: Runtime) -> bool:
        """Return whether the runtime computes NumPy's bits; choose the way to compute them."""
        # slots may get other arrays before the next call
        arrays = [place.array for place in self.places]
        way = with_bits_of_numpy(self.product, self.instruction.function, arrays, runtime)
        self.way = way or self.product
        return way is not None

    def is_worth_a_call(self, least: int) -> bool:
        """Return whether threads share it out."""
        return self.product.work > 1 << 17


@dataclass(slots=True, eq=False)
class CallWithLoop(NativeCall):
    """A call with a NumPy loop as an argument, by the name of a variable."""

    name: str
    loop: Loop

    @property
    def loops(self) -> Mapping[str, Loop]:
        """The loop by the name of its variable."""
        return {self.name: self.loop}


@dataclass(slots=True, eq=False)
class LoopCall(CallWithLoop):
    """A function without an expression, computed by NumPy's inner loop.

    Its operands are contiguous, and have the dtype of the result.
    """

    @classmethod
    def of(cls, x: Instruction) -> LoopCall | None:
        """Return an instruction as the call of a loop."""
        if (
            x.function not in LOOPS
            or not is_planned(x)
            or x.options
            or len(x.operands) != x.function.nargs
        ):
            return None
        places = places_of(x.operands)
        if places is None:
            return None
        out = places[-1].array
        for array in (place.array for place in places):
            if (array.shape, array.dtype, array.strides) != (out.shape, out.dtype, out.strides):
                return None
        if not (out.size and out.flags.forc):
            return None
        if not all(place.is_same(places[-1]) or place.is_apart(places[-1]) for place in places):
            return None
        loop = loop_of(x.function, out.dtype)
        return None if loop is None else cls(x, places, f"{x.function.__name__}_{out.dtype}", loop)

    def text(self, first: int) -> str:
        """Return the call in C."""
        out = self.places[-1].array
        return (
            f"runtime->loop(&{self.name}, p + {first}, {len(self.places)}, {out.size},"
            f" {out.itemsize});"
        )


@dataclass(slots=True, eq=False)
class Extremes(NativeCall):
    """The largest or the smallest element of each row of a contiguous matrix."""

    smallest: bool

    @classmethod
    def of(cls, x: Instruction) -> Extremes | None:
        """Return an instruction as a search for extremes."""
        if x.function not in (
            functions.largest_of_rows,
            functions.smallest_of_rows,
        ) or not is_planned(x):
            return None
        places = places_of(x.operands)
        if places is None:
            return None
        operand, out = (place.array for place in places)
        if (
            operand.dtype != out.dtype
            or operand.dtype.kind != "f"
            or operand.dtype not in MEMORY_TYPES
        ):
            return None
        if not (operand.flags.c_contiguous and out.flags.c_contiguous and operand.size):
            return None
        return cls(x, places, x.function is functions.smallest_of_rows)

    def text(self, first: int) -> str:
        """Return the call in C."""
        x = self.places[0].array
        double, smallest = int(x.itemsize == 8), int(self.smallest)
        return (
            f"runtime->extremes(p[{first}], p[{first + 1}], {x.shape[0]}, {x.shape[1]}, {double},"
            f" {smallest});"
        )


@dataclass(slots=True, eq=False)
class Reduction(CallWithLoop):
    """Sums, or extremes, over some axes of an array without gaps, by NumPy's inner loop."""

    layout: ReducedAxes

    @classmethod
    def of(cls, x: Instruction) -> Reduction | None:
        """Return an instruction as a reduction."""
        function = REDUCTIONS.get(x.function)
        if function is None or not is_planned(x) or x.options or len(x.operands) != 5:
            return None
        operand, axis, dtype, out, _ = x.operands
        places = places_of((operand, out))
        if dtype is not None or places is None:
            return None
        source, target = (place.array for place in places)
        if (
            source.dtype != target.dtype
            or source.dtype.kind != "f"
            or not places[0].is_apart(places[1])
        ):
            return None
        layout, loop = reduced_axes(source, axis), loop_of(function, source.dtype)
        if layout is None or loop is None or not target.flags.c_contiguous:
            return None
        return cls(x, places, f"{function.__name__}_{source.dtype}", loop, layout)

    def has_bits_of_numpy(self, runtime: Runtime) -> bool:
        """Return whether the runtime computes NumPy's bits."""
        function, axis = REDUCTIONS[self.instruction.function], self.instruction.operands[1]
        return reductions_have_bits_of_numpy(
            function, self.layout, self.places[0].array, axis, self.loop, runtime
        )

    def is_worth_a_call(self, least: int) -> bool:
        """Return whether threads share it out."""
        return not self.layout.is_whole and self.places[0].array.size >= least

    def text(self, first: int) -> str:
        """Return the call in C."""
        starts_at_0 = int(self.instruction.function == np.add.reduce)
        numbers = ", ".join(map(str, (*self.layout, self.places[0].array.itemsize, starts_at_0)))
        return f"runtime->reduce(&{self.name}, p[{first}], p[{first + 1}], {numbers});"


@dataclass(slots=True, eq=False)
class Dots(CallWithLoop):
    """The dot products of the rows of two arrays, by NumPy's inner loop."""

    @classmethod
    def of(cls, x: Instruction) -> Dots | None:
        """Return an instruction as dot products."""
        if x.function is not np.vecdot or not is_planned(x) or x.options or len(x.operands) != 3:
            return None
        places = places_of(x.operands)
        if places is None or not all(place.array.flags.c_contiguous for place in places):
            return None
        first, second, out = (place.array for place in places)
        if (
            first.shape != second.shape
            or out.shape != first.shape[:-1]
            or not first.dtype == second.dtype == out.dtype
        ):
            return None
        if not first.size or not all(place.is_apart(places[-1]) for place in places[:-1]):
            return None
        loop = dot_loop_of(first.dtype, first.shape[-1])
        return None if loop is None else cls(x, places, f"vecdot_{out.dtype}", loop)

    def is_worth_a_call(self, least: int) -> bool:
        """Return whether threads share it out."""
        return self.places[0].array.size >= least

    def text(self, first: int) -> str:
        """Return the call in C."""
        x, out = self.places[0].array, self.places[-1].array
        return f"runtime->dots(&{self.name}, p + {first}, {out.size}, {x.shape[-1]}, {x.itemsize});"


@dataclass(slots=True, eq=False)
class Rows(NativeCall):
    """The rows of an array at indices. An index out of range ends the replay."""

    may_fail: ClassVar[bool] = True

    @classmethod
    def of(cls, x: Instruction) -> Rows | None:
        """Return an instruction as a selection of rows."""
        if x.function is not take_rows or not is_planned(x):
            return None
        places = places_of(x.operands)
        if places is None or not _are_rows(*[place.array for place in places]):
            return None
        if not all(place.is_apart(places[-1]) for place in places[:-1]):
            return None
        return cls(x, places)

    def text(self, first: int) -> str:
        """Return the call in C."""
        x, rows, out = (place.array for place in self.places)
        bytes_ = out.nbytes // rows.size
        return (
            f"runtime->take_rows(p + {first}, {x.shape[0]}, {bytes_}, {rows.size}, {rows.itemsize})"
        )


@dataclass(slots=True, eq=False)
class Additions(NativeCall):
    """Rows added to an array's rows at indices, which may repeat.

    An index out of range is an error.
    """

    may_fail: ClassVar[bool] = True

    @classmethod
    def of(cls, x: Instruction) -> Additions | None:
        """Return an instruction as additions to rows."""
        if x.function is not functions.index_add or not is_planned(x) or x.options:
            return None
        target, key, values = x.operands
        if type(key) is tuple:
            if len(key) != 1:
                return None
            (key,) = key
        places = places_of((values, key, target))
        if places is None:
            return None
        added, rows, out = (place.array for place in places)
        if out.dtype.kind != "f" or not _are_rows(out, rows, added):
            return None
        if not all(place.is_apart(places[-1]) for place in places[:-1]):
            return None
        return cls(x, places)

    def text(self, first: int) -> str:
        """Return the call in C."""
        values, rows, out = (place.array for place in self.places)
        double, width = int(out.itemsize == 8), values.size // rows.size
        return (
            f"runtime->add_rows(p + {first}, {out.shape[0]}, {width}, {rows.size}, {rows.itemsize},"
            f" {double})"
        )


def _are_rows(x: np.ndarray, rows: np.ndarray, part: np.ndarray) -> bool:
    """Return whether an array has the shape of the rows of `x` at indices, and C can access all."""
    if rows.dtype not in _INDICES or not x.ndim or not x.size or not part.size:
        return False
    if (
        x.dtype not in MEMORY_TYPES
        or x.dtype != part.dtype
        or part.shape != (*rows.shape, *x.shape[1:])
    ):
        return False
    return all(array.flags.c_contiguous for array in (x, rows, part))


@dataclass(slots=True, eq=False)
class Elements(NativeCall):
    """The elements of a matrix at indices, which are given for each axis.

    An index out of range ends the replay.
    """

    may_fail: ClassVar[bool] = True

    @classmethod
    def of(cls, x: Instruction) -> Elements | None:
        """Return an instruction as a selection of elements."""
        if x.function is not take_elements or not is_planned(x):
            return None
        source, key, out = x.operands
        places = places_of((source, *key, out))
        if places is None or len(places) != 4:  # only for a matrix: rows and their labels
            return None
        matrix, *indices, target = (place.array for place in places)
        if matrix.dtype != target.dtype or matrix.ndim != 2 or not target.flags.c_contiguous:
            return None
        if matrix.dtype not in MEMORY_TYPES or matrix.itemsize not in (4, 8):
            return None
        for index in indices:
            if (
                index.dtype not in _INDICES
                or index.shape != target.shape
                or not index.flags.c_contiguous
            ):
                return None
        if not target.size or not all(place.is_apart(places[-1]) for place in places[:-1]):
            return None
        return cls(x, places)

    def text(self, first: int) -> str:
        """Return the call in C."""
        matrix, rows, columns, out = (place.array for place in self.places)
        lengths = f"{matrix.shape[0]}, {matrix.shape[1]}, {matrix.strides[0]}, {matrix.strides[1]}"
        sizes = f"{out.size}, {matrix.itemsize}, {rows.itemsize}, {columns.itemsize}"
        return f"runtime->elements(p + {first}, {lengths}, {sizes})"


@dataclass(slots=True, eq=False)
class BoundCheck(NativeCall):
    """A check of the largest or the smallest integer of an array. A failure ends the replay."""

    may_fail: ClassVar[bool] = True
    largest: bool
    condition: str

    def is_worth_a_call(self, least: int) -> bool:
        """Return False: NumPy's `argmin` is as fast."""
        return False

    @classmethod
    def of(cls, x: Instruction) -> BoundCheck | None:
        """Return an instruction as a check of a bound."""
        if x.function is not check_bound or not is_planned(x):
            return None
        expected, operand, largest, comparison, bound = x.operands
        places = places_of((operand,))
        if places is None or type(bound) is not int or not -(2**63) < bound < 2**63:
            return None
        array = places[0].array
        if array.dtype not in _INDICES or not array.size or not array.flags.forc:
            return None
        return cls(
            x, places, largest, f"{_SYMBOLS[comparison]} INT64_C({bound})) != {int(expected)}"
        )

    def text(self, first: int) -> str:
        """Return the call in C."""
        x = self.places[0].array
        return (
            f"(runtime->extreme_index(p[{first}], {x.size}, {x.itemsize}, {int(self.largest)})"
            f" {self.condition}"
        )


#: Functions that write all of their last operand, and do not read it.
WRITE_LAST = LOOPS | {np.ndarray.dot, np.matmul, np.vecdot, take_elements, take_rows}
WRITE_LAST |= {functions.largest_of_rows, functions.smallest_of_rows}


def call_of(x: Instruction, buffers: Bounds, *, products: bool, first: bool) -> NativeCall | None:
    """Return an instruction as a call of a C function; None if it is none.

    `buffers` is the memory that only the program uses. Matrix products and indices are calls only
    if `products`. Calls that may end a replay are only for the `first` part of a program.
    """
    call: NativeCall | None = LoopCall.of(x) or Extremes.of(x) or Reduction.of(x) or Dots.of(x)
    if call is None and products:
        call = Multiplication.of(x, buffers) or Additions.of(x)
        if call is None and first:
            call = Elements.of(x) or Rows.of(x) or BoundCheck.of(x)
    return call
