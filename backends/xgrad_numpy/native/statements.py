"""Elementwise instructions as C statements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xgrad_numpy.codegen import Instruction, array_of, is_planned
from xgrad_numpy.instructions import PUTMASK, choose
from xgrad_numpy.native.expressions import MEMORY_TYPES, expression
from xgrad_numpy.native.places import Place, array_in


@dataclass(slots=True, eq=False)
class Statement:
    """``out = expression(inputs)`` for each element.

    The inputs are first converted to the dtypes `computed`.
    """

    text: str
    inputs: list[Place]
    out: Place
    computed: list[np.dtype[Any]]
    # whether the result is in a buffer or in new memory, not shared with inputs
    private: bool = False
    rewritten: bool = False  # whether it reads other places than its instruction

    @property
    def is_copy(self) -> bool:
        """Whether it copies the bits of its input."""
        return (
            self.text == "{0}"
            and self.inputs[0].array.dtype == self.computed[0] == self.out.array.dtype
        )

    @property
    def moves(self) -> bool:
        """Whether it reads memory that is elsewhere in each replay."""
        return any(place.moves for place in self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.out.array.shape

    @property
    def places(self) -> list[Place]:
        """The places that it reads, and the one that it writes to."""
        return [*self.inputs, self.out]


def statement_of(x: Instruction) -> Statement | None:
    """Return an instruction as a statement; None if C cannot make it one with the same bits."""
    if not is_planned(x):
        return None
    if x.function is operator.setitem:
        target, key, value = x.operands
        return _statement("{0}", [value], target) if key is Ellipsis else None
    if x.function is PUTMASK:
        target, mask, value = x.operands
        return _statement(
            _choice(array_of(target).dtype), [mask, value, target], target, condition=True
        )
    if x.function is choose:
        condition, *sides, out = x.operands
        dtype = array_of(out).dtype
        sides = [np.asarray(side, dtype) if type(side) in (int, float) else side for side in sides]
        return _statement(_choice(dtype), [condition, *sides], out, condition=True)
    function = x.function
    if (
        not isinstance(function, np.ufunc)
        or function.signature is not None
        or x.options.keys() - {"out"}
    ):
        return None
    operands = (*x.operands, *x.options.values())
    inputs, out = operands[:-1], operands[-1]
    arrays = [array_in(operand) for operand in inputs]
    if len(inputs) != function.nin or any(array is None for array in arrays):
        return None
    computed, *others = function.resolve_dtypes(
        (*[array.dtype for array in arrays if array is not None], None)
    )
    text = expression(function, computed)
    if text is None or any(dtype != computed for dtype in others[:-1]):
        return None
    statement = _statement(text, inputs, out, computed)
    return statement if statement is not None and statement.out.array.dtype == others[-1] else None


def _statement(
    text: str,
    inputs: Sequence[Any],
    out: Any,
    dtype: np.dtype[Any] | None = None,
    *,
    condition: bool = False,
) -> Statement | None:
    """Return the statement of an expression that computes in a dtype.

    The dtype defaults to the dtype of the result. The first input may be a `condition`, a bool.
    None if C has no type for a dtype or no cast between two, or if memory is not aligned, or an
    input overlaps with the result.
    """
    result = array_in(out)
    if result is None or not result.size:
        return None
    places = [place_in(operand, result.shape) for operand in (*inputs, out)]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        return None
    *sources, target = known
    if any(n > 1 and not stride for n, stride in zip(result.shape, target.strides, strict=True)):
        return None  # several elements share memory, and the last one remains
    computed = [dtype or result.dtype] * len(sources)
    if condition:
        computed[0] = np.dtype(np.bool)
    if not all(
        _is_cast(place.array.dtype, kind) for place, kind in zip(sources, computed, strict=True)
    ):
        return None
    if not all(place.is_same(target) or place.is_apart(target) for place in sources):
        return None
    return Statement(text, sources, target, computed)


def _choice(dtype: np.dtype[Any]) -> str:
    """Return the expression that selects the second operand if the first is true, else the third.

    For floats it is a function, which compilers vectorize: for ``?:`` some compute only the operand
    that is needed.
    """
    is_float = dtype in MEMORY_TYPES and dtype.kind == "f"
    return (
        f"choose_{MEMORY_TYPES[dtype]}({{0}} != 0, {{1}}, {{2}})" if is_float else "{0} ? {1} : {2}"
    )


def _is_cast(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether C defines a cast as NumPy does.

    C does not define the cast of a large float to an integer.
    """
    return one.kind == other.kind or one.kind == "b"


def place_in(operand: Any, shape: tuple[int, ...]) -> Place | None:
    """Return the place of an operand broadcast to a shape; None if C cannot access it."""
    array = array_in(operand)
    if array is None or array.ndim > len(shape):
        return None
    if not array.flags.aligned or array.dtype not in MEMORY_TYPES:
        return None
    missing = len(shape) - array.ndim
    lengths, strides = (1,) * missing + array.shape, (0,) * missing + array.strides
    if any(n not in (1, size) for n, size in zip(lengths, shape, strict=True)):
        return None
    return Place(
        operand, array, tuple([0 if n == 1 else s for n, s in zip(lengths, strides, strict=True)])
    )
