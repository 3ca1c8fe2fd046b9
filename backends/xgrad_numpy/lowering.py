"""Lowering of array API calls to instructions that write to buffers, with bit-identical results."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from xgrad.capture.numbers import Number, plain
from xgrad.capture.program import Call, Program, Value
from xgrad_numpy import functions, products, sums
from xgrad_numpy.buffer_assignment import is_contiguous, is_dense
from xgrad_numpy.codegen import ArraySlot
from xgrad_numpy.instruction_writer import FLOATS, KEYWORD_OUT, SMALL, InstructionWriter
from xgrad_numpy.instructions import PUTMASK, check, check_bound, choose, take_elements, take_rows

_NAMES = """add:add sub:subtract mul:multiply truediv:divide floordiv:floor_divide mod:remainder \
and_:bitwise_and
or_:bitwise_or xor:bitwise_xor lshift:left_shift rshift:right_shift matmul:matmul neg:negative \
pos:positive
invert:invert abs:absolute lt:less le:less_equal gt:greater ge:greater_equal eq:equal \
ne:not_equal"""
_UFUNCS = {name: getattr(np, ufunc) for name, ufunc in [pair.split(":") for pair in _NAMES.split()]}
_OPERATORS: dict[Any, Any] = {getattr(operator, name): ufunc for name, ufunc in _UFUNCS.items()}
_IN_PLACE: dict[Any, Any] = {
    getattr(operator, f"i{name.strip('_')}", None): ufunc for name, ufunc in _UFUNCS.items()
}
_COMPARISONS = frozenset(
    {operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne}
)
#: Operators that give the same bits for NumPy scalars as for arrays.
_OF_SCALARS = frozenset({operator.add, operator.sub, operator.mul, operator.truediv, operator.neg})
# they give other bits for exponents of stride 0
_STRIDE_SENSITIVE = frozenset({np.power, np.float_power})
_SPECIAL = {
    functions.expm1: "c",
    functions.floor_divide: "f",
    functions.tanh: "c",
}  # kinds of dtypes whose special operands they handle
#: Before NumPy 2.2 a sum runs backwards through negative strides unless `out` is given.
_REVERSED_SUMS = np.lib.NumpyVersion(np.__version__) < "2.2.0"
_SHORT = 256  # elements of the last axis up to which an inner loop is short
_FEW = 1 << 11  # elements up to which a branch per element is faster than three passes


class Lowering(InstructionWriter):
    """The instructions of a program, given the arrays of its state: see `InstructionWriter`."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray], native: bool = True) -> None:
        super().__init__(program, arrays, native)
        # extremes of integers: the array, and whether it is the largest
        self._extremes: dict[int, tuple[Any, bool]] = {}
        # the same, a comparison, and a number
        self._bounds: dict[int, tuple[Any, bool, Any, int]] = {}
        for at, call in enumerate(program.calls):
            self._at = at
            self._lower(call)
            self._release()
        self._finish()

    def _lower(self, call: Call) -> None:
        if call.check is not None:
            self._lower_check(call.check, call.args[0])
        elif call.writes:
            if any(x.storage.kind != "temporary" for x in call.writes):
                self._begin_writes()
            self._lower_write(call)
        elif call.results:
            result, shared = call.results[0], [x.storage for x in call.reads]
            if call.single and result.storage in shared and not call.numbers:
                options = self._operand(call.options)
                self._slots[result.number] = self._pure(
                    call.function, *self._operand(call.args), **options
                )
            elif not call.single or not (
                self._is_of_bound(call, result) or self._lower_result(call, result)
            ):
                self._lower_plainly(call)

    def _lower_check(self, expected: bool, value: Value) -> None:
        bound = self._bounds.get(value.number)
        if bound is None:
            self._emit(check, expected, self._operand(value))
        else:
            self._emit(check_bound, expected, *bound)

    def _is_of_bound(self, call: Call, result: Value) -> bool:
        """Return whether a call is needed only for checks of an array of integers.

        It finds or compares the largest or smallest integer. Each of the checks then does that
        itself.
        """
        x, readers_of = call.args[0], self._facts.readers
        if type(x) is not Value or not result.scalar:
            return False
        if call.function in _COMPARISONS and x.number in self._extremes:
            self._bounds[result.number] = (*self._extremes[x.number], call.function, call.args[1])
            return True
        if (
            call.function not in (functions.max, functions.min)
            or x.dtype.kind not in "iu"
            or 0 in x.shape
        ):
            return False
        if result.storage in self._facts.escaping:
            return False
        last, escaping = self._at, self._facts.escaping
        for reader in readers_of.get(result.number, []):
            first, *others = reader.args
            if (
                reader.function not in _COMPARISONS
                or first is not result
                or type(others[0]) is not int
            ):
                return False
            (truth,) = reader.results
            if truth.storage in escaping or any(
                y.check is None for y in readers_of.get(truth.number, [])
            ):
                return False
            last = max(last, self._facts.last_reads.get(truth.number, 0))
        self._facts.keep(x.storage, last)
        self._extremes[result.number] = self._operand(x), call.function is functions.max
        return True

    def _lower_write(self, call: Call) -> None:
        """Lower a call that writes to its arguments."""
        function, target, out = call.function, call.writes[0], call.options.get("out")
        ufunc: Any = _IN_PLACE.get(function) if out is None else _OPERATORS.get(function, function)
        x: Any = getattr(call.args[-1], "number", None) if function is operator.setitem else None
        if (
            self._facts.targets.get(x) is target
            and self._slots.get(x) is self._slots[target.number]
        ):
            return  # the value was computed in the target
        if (
            function is products.matmul
            and out is not None
            and {len(x.shape) for x in call.args} == {2}
        ):
            self._emit(np.ndarray.dot, *self._operand(call.args), self._operand(out))
        elif (
            isinstance(ufunc, np.ufunc)
            and ufunc.signature is None
            and not call.options.keys() - {"out"}
        ):
            self._emit_ufunc(
                ufunc, self._elementwise_operands(ufunc, call.args, target), self._operand(target)
            )
        elif call.name == "index_add":
            self._emit(functions.index_add, *self._operand(call.args))
        elif function is operator.setitem:
            self._emit(operator.setitem, *self._operand(call.args))
        else:
            self._lower_plainly(call)

    def _lower_result(self, call: Call, result: Value) -> bool:
        """Emit a call that writes to `_destination` if the function can; return whether it can."""
        function, rule = _OPERATORS.get(call.function, call.function), _RULES.get(call.function)
        of_floats = call.function in _OF_SCALARS or isinstance(call.function, np.ufunc)
        if not is_dense(result) or not (
            call.function in _REDUCTIONS or self._is_array(result, of_floats)
        ):
            return False
        if rule is not None:
            return bool(rule(self, call, result))
        if isinstance(function, np.ufunc) and function.nout == 1 and not call.options:
            if function.signature is None:
                return self._elementwise(function, call.args, result)
            self._emit(function, *self._operand(call.args), self._destination(result))
            return True
        if function is np.vecdot and call.options == {"axis": -1}:
            self._emit(function, *self._operand(call.args), self._destination(result))
            return True
        if not call.reads and not call.numbers:  # a constant that a later call writes to
            self._emit(
                operator.setitem,
                self._destination(result),
                ...,
                call.function(*call.args, **call.options),
            )
            return True
        return False

    def _is_array(self, value: Value, of_floats: bool = True) -> bool:
        """Return whether a value is computed in an array, not as a scalar.

        `of_floats` is whether the function can compute single floats in arrays. Scalars are faster,
        but not in C calls.
        """
        if not value.scalar or (
            self._current is self.after and value.number in self._facts.targets
        ):
            return True
        return self._native and of_floats and value.dtype in FLOATS

    def _elementwise(self, function: np.ufunc, args: tuple[Any, ...], result: Value) -> bool:
        operands = self._elementwise_operands(function, args, result)
        self._emit_ufunc(
            function, operands, self._destination(result, () if result.dtype.kind == "c" else args)
        )
        return True

    def _elementwise_operands(
        self, function: np.ufunc, args: tuple[Any, ...], result: Value
    ) -> list[Any]:
        """Return operands that are fast for NumPy.

        They have the dtype that the ufunc computes in, and are broadcast to the shape of a small
        result. Reversed and complex operands are unchanged: the bits of some functions depend on
        their strides.
        """
        kinds: list[Any] = [plain(arg) for arg in args]
        dtypes = _computed_in(
            function, tuple([x.dtype if hasattr(x, "dtype") else type(x) for x in kinds])
        )
        reverse = any(min(getattr(arg, "strides", None) or (0,)) < 0 for arg in args)
        if (
            reverse
            or function in _STRIDE_SENSITIVE
            or dtypes is None
            or any(dtype.kind == "c" for dtype in dtypes)
        ):
            return [self._operand(arg) for arg in args]
        return [
            self._elementwise_operand(function, *pair, result)
            for pair in zip(args, dtypes, strict=True)
        ]

    def _elementwise_operand(self, function: np.ufunc, arg: Any, dtype: Any, result: Value) -> Any:
        if type(arg) is Number:
            return self._number_array(arg, dtype)
        count, operand = math.prod(result.shape), self._operand(arg)
        shape = getattr(arg, "shape", ())
        # single numbers are fast in the other functions
        long = math.prod(shape) > 1 or function in KEYWORD_OUT
        if type(operand) is not ArraySlot:
            if not hasattr(operand, "dtype") and not _is_exact(operand, dtype):
                return operand
            full = (
                shape
                if not long
                else result.shape
                if count <= SMALL
                else shape or result.shape[-1:]
            )
            return self._constant(
                operand if shape == full else np.full(full, operand, dtype), dtype
            )
        if arg.scalar or (shape == result.shape and arg.dtype == dtype):
            return operand
        row = _row(shape, result, dtype)
        repeated = (
            long and math.prod(shape) < row.size and result.shape[-1] <= _SHORT and is_dense(result)
        )
        if not repeated and arg.dtype == dtype:
            return operand
        copy = self._scratch(row if repeated else np.empty(shape, dtype))
        self._emit(operator.setitem, copy, ..., operand)
        return copy

    def _copy(self, call: Call, result: Value) -> bool:
        x, facts = call.args[0], self._facts
        if type(x) is not Value or (not self._is_array(x) and result.storage in facts.escaping):
            return False
        if facts.targets.get(x.number) is not result or result.number not in self._slots:
            operand, out = self._operand(x), self._destination(result)
            out = out if x.shape == result.shape else self._view(out, np.reshape, x.shape)
            self._emit(operator.setitem, out, ..., operand)
        return True

    def _operator_pow(self, call: Call, result: Value) -> bool:
        x, exponent = call.args
        square = type(exponent) in (int, float) and exponent == 2 and result.dtype in FLOATS
        return square and self._elementwise(np.square, (x,), result)

    def _pow(self, call: Call, result: Value) -> bool:
        x, exponent = call.args
        if type(x) is type(exponent) is Value:
            return self._elementwise(np.power, call.args, result)
        if type(x) is not Value or not functions.has_own_power(
            x.dtype, math.prod(x.shape), exponent
        ):
            return self._operator_pow(call, result)
        self._emit(functions.pow, self._operand(x), exponent, self._destination(result))
        return True

    def _matmul(self, call: Call, result: Value) -> bool:
        x, y = call.args
        left, right = self._operand(call.args)
        dot = len(y.shape) == 2 <= len(x.shape) and x.dtype in FLOATS
        flat = dot and len(x.shape) > 2  # a stack of matrices as one matrix of all rows
        if (
            call.options
            or not is_contiguous(result)
            or (flat and not (is_contiguous(x) and all(x.shape + y.shape)))
        ):
            return False
        out = self._destination(result)
        if flat:
            left = self._view(left, np.reshape, (-1, x.shape[-1]))
            out = self._view(out, np.reshape, (-1, y.shape[1]))
        self._emit(np.ndarray.dot if dot else np.matmul, left, right, out)
        return True

    def _sum(self, call: Call, result: Value) -> bool:
        x, axis = call.args[0], call.options.get("axis")
        side = sums.summed_side(x, axis, is_contiguous(x), is_contiguous(x, range(len(x.shape))))
        if x.dtype == np.float16:
            return False
        few = not sums.is_for_blas(len(x.shape), math.prod(x.shape))
        if few or call.options.get("dtype") is not None:
            return self._reduce(np.add, call, result)
        if side is None and not sums.has_many_rows(x, axis, is_contiguous(x)):
            return self._reduce(np.add, call, result)
        shape = math.prod(x.shape[:-1]), x.shape[-1]
        if side is None:
            out = self._view(self._destination(result), np.reshape, -1)
            self._emit(sums.sum_rows, self._view(self._operand(x), np.reshape, shape), out)
            return True
        rows = self._view(self._operand(x), np.reshape, shape)
        ones = self._constant(np.ones(shape[side]), x.dtype)
        out = self._view(self._destination(result), np.reshape, -1)
        self._emit(np.ndarray.dot, rows if side else self._view(rows, np.transpose), ones, out)
        return True

    def _sum_products(self, call: Call, result: Value) -> bool:
        *factors, axes = call.args
        given = [z for z in factors if z is not None]
        if any(type(z) is not Value or z.strides is None for z in given) or not is_contiguous(
            result
        ):
            return False
        x, *others = given
        ends = sums.summed_ends(x.shape, x.strides, x.dtype, axes)
        if ends is None or any((z.strides, z.dtype) != (x.strides, x.dtype) for z in others):
            return False
        lengths = ends.outer, ends.middle, ends.inner
        ordered = [self._view(self._operand(z), np.transpose, ends.order) for z in given]
        rows = [self._view(z, np.reshape, lengths) for z in ordered]
        out = self._view(self._destination(result), np.reshape, lengths[1:2])
        like = np.empty(lengths[:2], x.dtype)
        part = self._scratch(like) if ends.outer > 1 else self._view(out, np.reshape, (1, -1))
        if not others:
            ones = self._constant(np.ones(ends.inner), x.dtype)
            matrix = self._view(rows[0], np.reshape, (-1, ends.inner))
            self._emit(np.ndarray.dot, matrix, ones, self._view(part, np.reshape, -1))
        else:
            self._emit(np.vecdot, *rows, part)
        if ends.outer > 1:
            self._emit(np.add.reduce, part, 0, None, out, False)
        return True

    def _mean(self, call: Call, result: Value) -> bool:
        x = call.args[0]
        if x.dtype not in FLOATS or 0 in x.shape or not self._sum(call, result):
            return False
        count, total = math.prod(x.shape) // math.prod(result.shape), self._slots[result.number]
        if not self._is_array(result):
            return self._emit_result(result, operator.truediv, total, count)
        self._emit(np.divide, total, self._constant(count, x.dtype), total)
        return True

    def _extremum(self, call: Call, result: Value) -> bool:
        x, largest = call.args[0], call.function is functions.max
        if not functions.has_rows(x, call.options.get("axis"), is_contiguous(x)):
            return self._reduce(np.maximum if largest else np.minimum, call, result)
        if not is_contiguous(result):
            return False
        rows = self._view(self._operand(x), np.reshape, (-1, x.shape[-1]))
        out = self._view(self._destination(result), np.reshape, -1)
        self._emit(functions.largest_of_rows if largest else functions.smallest_of_rows, rows, out)
        return True

    def _join(self, call: Call, result: Value) -> bool:
        """Copy each array to its part of the joined result."""
        parts = call.args[0]
        axis = call.options.get("axis", 0)
        stacked = call.function is functions.stack
        if (
            type(axis) is not int
            or len(call.args) != 1
            or call.options.keys() - {"axis"}
            or 0 in result.shape
        ):
            return False
        if any(type(x) is not Value or x.dtype != result.dtype for x in parts):
            return False
        operands, out, start = [self._operand(x) for x in parts], self._destination(result), 0
        before = (slice(None),) * (axis % len(result.shape))
        for value, x in zip(parts, operands, strict=True):
            end = start + (1 if stacked else value.shape[axis])
            if end > start:
                key = start if stacked else slice(start, end)
                self._emit(
                    operator.setitem, self._view(out, operator.getitem, (*before, key, ...)), ..., x
                )
            start = end
        return True

    def _reduce(self, function: np.ufunc, call: Call, result: Value) -> bool:
        x, axis, dtype, keepdims = (
            call.args[0],
            *map(call.options.get, ("axis", "dtype", "keepdims")),
        )
        operand = self._operand(x)
        if not self._is_array(result):
            return self._emit_result(result, function.reduce, operand, axis, dtype)
        single = axis[0] if type(axis) is tuple and len(axis) == 1 else axis
        may_be_pairs = dtype is None and x.dtype in FLOATS and not result.scalar
        if may_be_pairs and type(single) is int and x.shape[single] == 2:
            # one call for all pairs, instead of a loop for each
            before = (slice(None),) * (single % len(x.shape))
            halves = [self._view(operand, operator.getitem, (*before, i, ...)) for i in range(2)]
            out = self._view(
                self._destination(result), operator.getitem, (*before, 0, ...) if keepdims else ...
            )
            self._emit_ufunc(function, halves, out)
            if function is np.add:  # NumPy starts at 0, so the sum of -0. and -0. is 0.
                self._emit(np.add, out, self._constant(0, x.dtype), out)
        elif _REVERSED_SUMS and min(x.strides or (0,)) < 0:
            return False
        else:
            self._emit(
                function.reduce, operand, axis, dtype, self._destination(result), bool(keepdims)
            )
        return True

    def _getitem(self, call: Call, result: Value) -> bool:
        x, key = call.args
        if type(key) is not tuple or len(key) != len(x.shape):
            return False
        for index in key:
            if (
                getattr(index, "shape", None) != result.shape
                or index.dtype.kind != "i"
                or not result.shape
            ):
                return False
        operands = self._operand((x, key))
        self._emit(take_elements, *operands, self._destination(result))
        return True

    def _take(self, call: Call, result: Value) -> bool:
        x, rows = call.args[0], call.args[1] if len(call.args) == 2 else None
        if (
            not self._native
            or type(rows) is not Value
            or rows.dtype.kind != "i"
            or call.options != {"axis": 0}
        ):
            return False
        operands = self._operand((x, rows))
        self._emit(take_rows, *operands, self._destination(result))
        return True

    def _where(self, call: Call, result: Value) -> bool:
        """Choose between two operands; between 0 and an array by arithmetic on bits.

        NumPy's `where` branches at each element.
        """
        condition, *sides = call.args
        zeros = [
            type(side) in (int, float) and side == 0 and math.copysign(1, side) > 0
            for side in sides
        ]
        x, shape, dtype = sides[zeros[0]], result.shape, result.dtype
        if (
            sum(zeros) != 1
            or dtype not in FLOATS
            or not all(type(y) is Value for y in (x, condition))
        ):
            return self._choose(call, result)
        same = (x.shape, x.dtype, condition.shape, condition.dtype) == (
            shape,
            dtype,
            shape,
            np.bool,
        )
        if not same or x.scalar or condition.scalar:
            return self._choose(call, result)
        source, mask = self._operand(x), self._operand(condition)
        if zeros[0] and math.prod(shape) <= _FEW:
            out = self._destination(result, (x,))
            if out is not source:
                self._emit(operator.setitem, out, ..., source)
            self._emit(PUTMASK, out, mask, self._constant(0, dtype))
            return True
        bits = np.dtype(f"i{dtype.itemsize}")
        factors = self._scratch(np.ndarray(shape, bits, None, 0, result.strides))
        self._emit(operator.setitem, factors, ..., mask)  # 1 where the condition holds
        pair = (
            (factors, self._constant(1, bits)) if zeros[0] else (self._constant(0, bits), factors)
        )
        self._emit(np.subtract, *pair, factors)
        out = self._view(self._destination(result, (x,)), np.ndarray.view, bits)
        self._emit(np.bitwise_and, self._view(source, np.ndarray.view, bits), factors, out)
        return True

    def _choose(self, call: Call, result: Value) -> bool:
        """Choose between two arrays, or an array and a number, in one instruction.

        C can fuse the instruction with others. NumPy needs a temporary array for it.
        """
        condition, *sides = call.args
        dtypes, dtype = [getattr(side, "dtype", None) for side in sides], result.dtype
        if not self._native or dtype not in FLOATS or getattr(condition, "dtype", None) != np.bool:
            return False
        if any(
            x != dtype and not _is_exact(side, dtype) for x, side in zip(dtypes, sides, strict=True)
        ):
            return False
        self._emit(choose, *self._operand((condition, *sides)), self._destination(result))
        return True


_REDUCTIONS: dict[Any, Any] = {sums.sum: Lowering._sum, sums.mean: Lowering._mean}
_REDUCTIONS |= dict.fromkeys((functions.max, functions.min), Lowering._extremum)
_RULES: dict[Any, Any] = {
    products.matmul: Lowering._matmul,
    functions.where: Lowering._where,
    **_REDUCTIONS,
}
_RULES |= dict.fromkeys((functions.stack, np.concatenate), Lowering._join)
_RULES |= {functions.pow: Lowering._pow, operator.pow: Lowering._operator_pow}
_RULES[sums.sum_products] = Lowering._sum_products
_RULES |= {operator.getitem: Lowering._getitem, np.take: Lowering._take}
_RULES |= dict.fromkeys((functions.astype, functions.reshape, np.asarray), Lowering._copy)
_RULES |= dict.fromkeys(
    _SPECIAL,
    lambda self, call, result: (
        result.dtype.kind != _SPECIAL[call.function]
        and (self._elementwise(getattr(np, call.name), call.args, result))
    ),
)
_RULES[functions.relu] = lambda self, call, result: self._elementwise(
    np.maximum, (call.args[0], 0), result
)


def _row(shape: tuple[int, ...], result: Value, dtype: Any) -> np.ndarray:
    """Return memory for an operand repeated along axes of a result, innermost first.

    The repetition makes inner loops long.
    """
    lengths = [1] * (len(result.shape) - len(shape)) + list(shape)
    axes = sorted(range(len(lengths)), key=lambda axis: -(result.strides or ())[axis])
    for axis in reversed(axes):
        if math.prod(lengths) * result.shape[axis] > SMALL * lengths[axis]:
            break
        lengths[axis] = result.shape[axis]
    return np.empty([lengths[axis] for axis in axes], dtype).transpose(np.argsort(axes))


@lru_cache(1024)
def _computed_in(function: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the dtypes in which a ufunc takes operands, given their dtypes, or types of numbers.

    None if they are unknown.
    """
    with suppress(TypeError, ValueError):
        return tuple(function.resolve_dtypes((*kinds, *[None] * function.nout))[: len(kinds)])
    return None


def _is_exact(value: Any, dtype: Any) -> bool:
    """Return whether a ufunc gives the same results for a number as for an array of it."""
    if dtype in FLOATS:
        return type(value) in (int, float) and not (
            math.isfinite(value) and abs(value) > np.finfo(dtype).max
        )
    return (
        type(value) is int
        and dtype.kind in "iu"
        and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    )
