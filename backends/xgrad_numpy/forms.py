"""Forms of NumPy's functions in which they are quick, and give the same to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Call, Value
from xgrad_numpy.code import FLOATS, SMALL, Code
from xgrad_numpy.layout import lies_in_order
from xgrad_numpy.statements import Passed

REDUCTIONS = ("axis", "dtype", "out", "keepdims", "initial", "where")
_BITS: dict[Any, Any] = {np.dtype("float32"): np.dtype("int32"), np.dtype("float64"): np.dtype("int64")}
_BY_STRIDES = frozenset({np.power, np.float_power})  # which compute x**2 otherwise where all exponents are one number
_FEW = 1 << 11  # elements up to which a branch at each is sooner done than three passes
ELEMENTWISE = frozenset(u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None)


class Forms(Code):
    """Code in which elementwise functions, reductions and choices have quick forms."""

    def _emit_elementwise(self, call: Call, function: np.ufunc, result: Value) -> bool:
        """Write the code of an elementwise function, or of a product of matrices."""
        elementwise = function.signature is None
        if call.options.keys() - {"dtype", "casting"}:
            return False
        reuse: tuple[Value, ...] = ()
        if elementwise and not call.options:
            texts = self._operands(function, call.args, result)
            reuse = tuple([arg for arg in call.reads if self._replaceable(arg, result)])
        else:
            texts = [self._text(arg) for arg in call.args]
        out = self._new(result, reuse)
        options = "".join(f", {name}={self._text(value)}" for name, value in call.options.items())
        self._add_elementwise(function, texts, out, result, options)
        return True

    def _add_elementwise(
        self, function: np.ufunc, texts: list[str], out: str, result: Value, options: str = ""
    ) -> None:
        """Write the code of a call of an elementwise function, or of a product."""
        keyword = "out" if options or function in (np.maximum, np.minimum) else ""  # which warn otherwise
        shape = result.shape if function in ELEMENTWISE else None
        self._add_call(function, *texts, out, shape=shape, keyword=keyword, options=options)

    def _operands(self, function: np.ufunc, args: tuple[Any, ...], result: Value) -> list[str]:
        """Return the operands of an elementwise function, in a form in which NumPy is fast.

        Those are arrays of the dtype that it computes in, and as long as the result as far as that is small. Where one
        is reversed they stay as they are: NumPy then computes some functions otherwise, to the last bit.
        """
        if function in _BY_STRIDES or _alike(args, result) or _reversed(args):
            return [self._text(arg) for arg in args]
        dtypes = _computes_in(function, args)
        return [self._operand(function, arg, dtype, result) for arg, dtype in zip(args, dtypes, strict=True)]

    def _operand(self, function: np.ufunc, arg: Any, dtype: Any, result: Value) -> str:
        kind = type(arg)
        if dtype is None or (kind is Value and dtype == arg.dtype and _is_like(arg, result)):
            return self._text(arg)
        if kind is Number:
            return self._cell(arg, dtype)
        count = math.prod(result.shape)
        constant = self._constants.get(arg.number) if kind is Value else arg if isinstance(arg, np.ndarray) else None
        if kind in (int, float):
            constant = _exactly(arg, dtype)
            if constant is None:
                return self._text(arg)
        if isinstance(constant, np.generic):
            return self._kept(np.asarray(constant, dtype))
        if constant is not None:
            long = constant.size > 1 or function in (np.maximum, np.minimum)
            if constant.dtype != dtype or (constant.shape != result.shape and long and count <= SMALL):
                shape = result.shape if count <= SMALL else constant.shape
                constant = np.broadcast_to(constant, shape).astype(dtype, order="C")
                return self._kept(constant)
            return self._kept(constant) if kind in (int, float) else self._text(arg)
        if kind is not Value:
            return self._text(arg)
        long = math.prod(arg.shape) > 1 or function in (np.maximum, np.minimum)
        short = (
            arg.shape != result.shape and long and 0 < count <= SMALL and len(result.shape) and result.shape[-1] <= 256
        )
        if arg.dtype == dtype and not short:
            return self._text(arg)
        spare = self._spare(result.shape if short else arg.shape, dtype)
        self._add_copy(spare, self._text(arg), result.shape if short else arg.shape)
        return spare

    def _emit_reduction(self, call: Call, result: Value) -> bool:
        """Write the code of a reduction by an elementwise function; return whether it is one."""
        function = call.function
        owner = getattr(function, "__self__", None)
        if not isinstance(owner, np.ufunc) or function.__name__ != "reduce" or call.options.keys() - {*REDUCTIONS}:
            return False
        given = dict(zip(REDUCTIONS, call.args[1:], strict=False)) | call.options
        if self._emit_pair(call, owner, given):
            return True
        x, out = self._text(call.args[0]), self._new(result)
        parts = [given.get("axis", 0), given.get("dtype")]
        rest = "".join(f", {name}={self._text(given[name])}" for name in ("initial", "where") if name in given)
        keeps = self._text(given.get("keepdims", False))
        self._add_call(function, x, *map(self._text, parts), out, keeps, options=rest)
        return True

    def _emit_pair(self, call: Call, function: np.ufunc, given: Mapping[str, Any]) -> bool:
        """Reduce an axis of two in one call for all pairs, not one for each; return whether."""
        x, result, axis = call.args[0], call.results[0], given.get("axis", 0)
        axis = axis[0] if type(axis) is tuple and len(axis) == 1 else axis
        plain = not given.keys() - {"axis", "keepdims", "dtype", "out"} and given.get("dtype") is None
        if not plain or type(axis) is not int or type(x) is not Value or x.number in self._constants:
            return False
        if x.dtype not in FLOATS or x.shape[axis] != 2 or function not in (np.add, np.maximum, np.minimum):
            return False
        mine, axis = self._name(x), axis % len(x.shape)
        halves = [self._part(mine, x.number in self._fixed, axis, i) for i in range(2)]
        out = self._new(result)
        fixed = result.number in self._fixed
        out = self._part(out, fixed, axis, 0) if bool(given.get("keepdims")) else out
        calls = [(halves, out)]
        if function is np.add:  # NumPy begins with 0, which makes a difference to -0
            calls.append(([out, self._kept(np.zeros((), x.dtype))], out))
        for operands, target in calls:
            self._add_call(function, *operands, target, keyword="" if function is np.add else "out")
        return True

    def _part(self, whole: str, fixed: bool, axis: int, i: int) -> str:
        """Return the name of what lies at a place of an axis."""
        key = (*[slice(None)] * axis, i, ...)
        name = self._names[-len(self._names) - 1] = f"h{len(self._names)}"
        if fixed:
            self._links.append((name, lambda: self._scope[whole][key]))
        else:
            self._add(f"{name} = {whole}[{self._object(key)}]")
        return name

    def _emit_choice(self, call: Call, result: Value) -> bool:
        """Choose between an array and 0 by its bits, where NumPy would branch at each element; return whether."""
        condition, *sides = call.args
        zeros = [type(side) in (int, float) and side == 0 and math.copysign(1, side) > 0 for side in sides]
        if sum(zeros) != 1:
            return False
        x = sides[zeros.index(False)]
        alike = all(type(v) is Value and v.shape == result.shape for v in (condition, x))
        if not alike or x.dtype != result.dtype or result.dtype not in _BITS or condition.dtype != bool:
            return False
        bits = _BITS[result.dtype]
        mine = result.storage not in self._handed_out
        alone = self._replaceable(x, result) and self._plan.fills(x)
        if zeros[0] and mine and math.prod(result.shape) <= _FEW and alone:
            source = self._text(x)
            self._links.append((self._name(result), self._plan.add(result, self._at, self._ends[result.storage], (x,))))
            self._fixed.add(result.number)
            zero = self._kept(np.zeros((), result.dtype))
            self._add_call(np.putmask, source, self._text(condition), zero)
            return True
        mask = self._spare(result.shape, bits)
        source = self._bits(x, bits)
        self._new(result, (x,) if self._replaceable(x, result) else ())
        target = self._bits(result, bits)
        self._add_copy(mask, self._text(condition), result.shape)
        if zeros[0]:
            self._add_elementwise(np.subtract, [mask, self._kept(np.ones((), bits))], mask, result)
        else:
            self._add_elementwise(np.negative, [mask], mask, result)
        self._add_elementwise(np.bitwise_and, [source, mask], target, result)
        return True

    def _bits(self, value: Value, dtype: Any) -> str:
        """Return the name of a value as integers of its bits."""
        if value.number in self._constants:
            return self._kept(self._constants[value.number].view(dtype))
        name = f"b{len(self._names)}"
        self._names[-len(self._names) - 1] = name
        mine = self._name(value)
        if value.number in self._fixed:
            self._links.append((name, lambda: self._scope[mine].view(dtype)))
        else:
            self._add(f"{name} = {mine}.view({self._object(dtype, 'd')})")
            self._passed[name] = self._passed.get(mine, Passed(value.shape, lies_in_order(value), ours=False))
        return name


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


def _computes_in(function: np.ufunc, args: tuple[Any, ...]) -> list[Any]:
    """Return the dtype in which an elementwise function takes each operand; None where it is left alone."""
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
        with np.errstate(all="ignore"):
            cell = np.asarray(value, dtype)
        return cell if np.isfinite(cell) == math.isfinite(value) else None
    if type(value) is int and dtype.kind in "iu" and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return np.asarray(value, dtype)
    return None
