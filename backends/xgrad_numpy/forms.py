"""Forms of NumPy's functions in which they are quick, and give the same to the last bit, but for the sign of NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.operators import getitem
from xgrad.capturing.program import Call, Value
from xgrad_numpy.actions import Slot
from xgrad_numpy.layout import lies_in_order
from xgrad_numpy.planning import FLOATS, SMALL, Planning

REDUCTIONS = ("axis", "dtype", "out", "keepdims", "initial", "where")
_BITS: dict[Any, Any] = {np.dtype("float32"): np.dtype("int32"), np.dtype("float64"): np.dtype("int64")}
_PLACES, _UNSIGNED = np.dtype(np.intp), np.dtype(np.uintp)
_BY_STRIDES = frozenset({np.power, np.float_power})  # which compute x**2 otherwise where all exponents are one number
_POSITIVE = frozenset({np.exp, np.exp2})  # of whose results a sum is never -0
_PUTMASK = getattr(np.putmask, "__wrapped__", np.putmask)  # which does not ask whether arrays are of another library
#: Before NumPy 2.2 a sum runs backwards through negative strides, but not where it is given an array to write to.
_TURNS = np.lib.NumpyVersion(np.__version__) < "2.2.0"
_FEW = 1 << 11  # elements up to which a branch at each is sooner done than three passes


class Forms(Planning):
    """Actions in which elementwise functions, reductions, choices and one of each row have quick forms."""

    def _plan_ufunc(self, call: Call, function: np.ufunc, result: Value) -> bool:
        """Plan an elementwise function, or a product of matrices; return whether it is called as that."""
        if call.options.keys() - {"dtype", "casting"}:
            return False
        reuse: tuple[Value, ...] = ()
        if function.signature is None and not call.options:
            operands = self._operands(function, call.args, result)
            reuse = tuple([arg for arg in call.reads if self._replaceable(arg, result)])
        else:
            operands = [self._given(arg) for arg in call.args]
        self._add_writing(function, operands, self._new(result, reuse), result.shape, **call.options)
        return True

    def _operands(self, function: np.ufunc, args: tuple[Any, ...], result: Value) -> list[Any]:
        """Return the operands of an elementwise function, in a form in which NumPy is fast.

        Those are arrays of the dtype that it computes in, and as long as the result as far as that is small. Where one
        is reversed they stay as they are: NumPy then computes some functions otherwise, to the last bit.
        """
        if function in _BY_STRIDES or _alike(args, result) or _reversed(args):
            return [self._given(arg) for arg in args]
        dtypes = _computes_in(function, args)
        return [self._operand(function, arg, dtype, result) for arg, dtype in zip(args, dtypes, strict=True)]

    def _operand(self, function: np.ufunc, arg: Any, dtype: Any, result: Value) -> Any:
        kind = type(arg)
        if dtype is None or (kind is Value and dtype == arg.dtype and _is_like(arg, result)):
            return self._given(arg)
        if kind is Number:
            return self._cell(arg, dtype)
        count = math.prod(result.shape)
        constant = self._constants.get(arg.number) if kind is Value else arg if isinstance(arg, np.ndarray) else None
        if kind in (int, float):
            constant = _exactly(arg, dtype)
            if constant is None:
                return arg
        if isinstance(constant, np.generic):
            return self._kept(np.asarray(constant, dtype))
        if constant is not None:
            long = constant.size > 1 or function in (np.maximum, np.minimum)
            if constant.dtype != dtype or (constant.shape != result.shape and long and count <= SMALL):
                shape = result.shape if count <= SMALL else constant.shape
                whole = np.empty(shape, dtype)
                whole[...] = constant
                return self._kept(whole)
            return self._kept(constant) if kind in (int, float) else constant
        if kind is not Value:
            return arg
        long = math.prod(arg.shape) > 1 or function in (np.maximum, np.minimum)
        short = (
            arg.shape != result.shape and long and 0 < count <= SMALL and len(result.shape) and result.shape[-1] <= 256
        )
        if arg.dtype == dtype and not short:
            return self._given(arg)
        shape = result.shape if short else arg.shape
        spare = self._spare(shape, dtype)
        self._add_copy(spare, self._given(arg), shape)
        return spare

    def _plan_reduction(self, call: Call, result: Value) -> bool:
        """Plan a reduction by an elementwise function; return whether it is one."""
        function = call.function
        owner = getattr(function, "__self__", None)
        if not isinstance(owner, np.ufunc) or function.__name__ != "reduce" or call.options.keys() - {*REDUCTIONS}:
            return False
        given = dict(zip(REDUCTIONS, call.args[1:], strict=False)) | call.options
        if self._plan_pair(call, owner, given):
            return True
        if _TURNS and type(call.args[0]) is Value and min(call.args[0].strides, default=0) < 0:
            return False
        x, out = self._given(call.args[0]), self._new(result)
        rest = {name: self._given(given[name]) for name in ("initial", "where") if name in given}
        self._add(function, x, given.get("axis", 0), given.get("dtype"), out, given.get("keepdims", False), **rest)
        return True

    def _plan_pair(self, call: Call, function: np.ufunc, given: Mapping[str, Any]) -> bool:
        """Reduce an axis of two in one call for all pairs, not one for each; return whether."""
        x, result, axis = call.args[0], call.results[0], given.get("axis", 0)
        axis = axis[0] if type(axis) is tuple and len(axis) == 1 else axis
        plain = not given.keys() - {"axis", "keepdims", "dtype", "out"} and given.get("dtype") is None
        if not plain or type(axis) is not int or type(x) is not Value or x.number in self._constants:
            return False
        if x.dtype not in FLOATS or x.shape[axis] != 2 or function not in (np.add, np.maximum, np.minimum):
            return False
        axis %= len(x.shape)
        halves = [self._part(self._slots[x.number], axis, i, x.shape) for i in range(2)]
        out = self._new(result)
        if given.get("keepdims"):
            out = self._part(out, axis, 0, result.shape)
        self._add_writing(function, halves, out)
        if function is np.add and not self._is_positive(x):  # NumPy begins with 0, which makes a difference to -0
            self._add_writing(function, [out, self._kept(np.zeros((), x.dtype))], out)
        return True

    def _is_positive(self, x: Value) -> bool:
        """Return whether it is known that no element is less than 0, or -0."""
        makers = [call.function for call in self.calls if x in call.results]
        return len(makers) == 1 and makers[0] in _POSITIVE and not x.storage.writes

    def _part(self, whole: Slot, axis: int, i: int, shape: tuple[int, ...]) -> Slot:
        """Return what lies at a place of an axis."""
        key = (*[slice(None)] * axis, i, ...)
        return self._view(whole, lambda x: x[key], (*shape[:axis], *shape[axis + 1 :]))

    def _plan_choice(self, call: Call, result: Value) -> bool:
        """Choose between an array and 0 by its bits, where NumPy would branch at each element; return whether."""
        condition, *sides = call.args
        zeros = [type(side) in (int, float) and side == 0 and math.copysign(1, side) > 0 for side in sides]
        if sum(zeros) != 1:
            return False
        x = sides[zeros.index(False)]
        alike = all(type(v) is Value and v.shape == result.shape for v in (condition, x))
        if not alike or x.dtype != result.dtype or result.dtype not in _BITS or condition.dtype != bool:
            return False
        bits, shape = _BITS[result.dtype], result.shape
        mine = result.storage not in self._handed_out
        reuse = (x,) if self._replaceable(x, result) else ()
        if zeros[0] and mine and math.prod(shape) <= _FEW and reuse and self._plan.fills(x):
            self._new(result, reuse)  # where x is
            self._add(_PUTMASK, self._given(x), self._given(condition), self._kept(np.zeros((), result.dtype)))
            return True
        mask, source = self._spare(shape, bits), self._bits(x, bits)
        self._new(result, reuse)
        target = self._bits(result, bits)
        self._add_copy(mask, self._given(condition), shape)
        if zeros[0]:
            self._add_writing(np.subtract, [mask, self._kept(np.ones((), bits))], mask, shape)
        else:
            self._add_writing(np.negative, [mask], mask, shape)
        self._add_writing(np.bitwise_and, [source, mask], target, shape)
        return True

    def _bits(self, value: Value, dtype: Any) -> Any:
        """Return a value as integers of its bits."""
        if value.number in self._constants:
            return self._kept(self._constants[value.number].view(dtype))
        return self._view(self._slots[value.number], lambda x: x.view(dtype), value.shape)

    def _plan_one_of_each_row(self, call: Call, result: Value) -> bool:
        """Take one element of each row by its place among all: in less memory than for an index of arrays."""
        if call.function is not getitem or type(call.args[1]) is not tuple or len(call.args[1]) != 2:
            return False
        x, (rows, columns) = call.args
        if type(x) is not Value or type(rows) is not Value or type(columns) is not Value:
            return False
        numbers, shape = self._constants.get(rows.number), (x.shape[0],)
        if numbers is None or len(x.shape) != 2 or 0 in x.shape or not lies_in_order(x):
            return False
        if rows.shape != shape or columns.shape != shape or columns.dtype != _PLACES or numbers.dtype.kind == "b":
            return False
        if not np.array_equal(numbers, np.arange(*shape)):
            return False
        starts = self._kept(np.arange(*shape, dtype=_PLACES) * x.shape[1])
        places = self._spare(shape, _PLACES)
        given = self._given(x), self._given(columns), self._bits(columns, _UNSIGNED)
        self._add(_take_one_of_each_row, *given, numbers, starts, places, self._new(result))
        return True


def _take_one_of_each_row(x: Any, columns: Any, unsigned: Any, rows: Any, starts: Any, places: Any, out: Any) -> None:
    """Write ``x[rows, columns]``; `starts` is where rows begin, and `places` is written over.

    What is less than 0 is more than all as `unsigned` sees it.
    """
    if unsigned.item(unsigned.argmax()) < x.shape[1]:
        np.add(columns, starts, places)
        x.take(places, None, out, "clip")
    else:
        out[...] = x[rows, columns]


def _alike(args: tuple[Any, ...], result: Value) -> bool:
    """Return whether all operands are values as the result is: floating ones are computed with as they are."""
    dtype = result.dtype
    for arg in args:
        if type(arg) is not Value or arg.dtype != dtype or not _is_like(arg, result):
            return False
    return dtype in FLOATS


def _is_like(arg: Value, result: Value) -> bool:
    return arg.shape == result.shape and not arg.scalar


def _reversed(args: tuple[Any, ...]) -> bool:
    """Return whether an operand lies in memory in reverse."""
    for arg in args:
        strides = getattr(arg, "strides", None)
        if strides and min(strides) < 0:
            return True
    return False


def _computes_in(function: Any, args: tuple[Any, ...]) -> list[Any]:  # NumPy 2.0 declares no resolve_dtypes
    """Return the dtype in which a ufunc takes each operand; None where it is left alone."""
    given = []
    for arg in args:
        value = arg.value if type(arg) is Number else arg
        if type(value) in (int, float, complex):
            given.append(type(value))
        elif hasattr(value, "dtype"):
            given.append(value.dtype)
        else:
            return [None] * len(args)
    try:
        resolved = function.resolve_dtypes((*given, *[None] * function.nout))
    except TypeError:
        return [None] * len(args)
    return list(resolved[: len(args)])


def _exactly(value: Any, dtype: Any) -> np.ndarray | None:
    """Return a number as an array without axes that gives the same results; None if it may not."""
    if dtype in FLOATS:
        return None if math.isfinite(value) and abs(value) > np.finfo(dtype).max else np.asarray(value, dtype)
    if type(value) is int and dtype.kind in "iu" and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return np.asarray(value, dtype)
    return None
