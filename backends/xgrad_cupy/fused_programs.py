"""Fused kernels of captured steps: a group of elementwise calls as one ElementwiseKernel of CuPy.

`xgrad.capture.fusion` finds the groups. The expression of each call is CuPy's own: the routine of
the ufunc, for the dtypes that the ufunc chooses, or the operation of one of xgrad's elementwise
kernels. The compiler must not contract a product and a sum (``--fmad=false``), because separate
kernels cannot be contracted. So a group gives the same bits as its calls one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend.device import Device
from xgrad.capture.fusion import Access, Group, Statement, fuse
from xgrad.capture.program import Call, Program, Unusable, Value
from xgrad_cupy.calls import summed_values
from xgrad_cupy.interpreter import NumberOperand
from xgrad_cupy.kernels.c_types import C_TYPES
from xgrad_cupy.kernels.elementwise import EXACT

_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "neg": "negative",
    "pos": "positive",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "invert",
    "iadd": "add",
    "isub": "subtract",
    "imul": "multiply",
    "itruediv": "true_divide",
    "iand": "bitwise_and",
    "ior": "bitwise_or",
    "ixor": "bitwise_xor",
}
#: Names of CuPy's ufuncs for which the compiler makes the same machine code in a group as alone,
#: where it may contract products and sums; tests compare the results. For the names in `_SINGLE`
#: this does not hold in float64.
_EXACT = frozenset(
    (
        "add subtract multiply true_divide negative positive absolute sqrt square reciprocal sign"
        " maximum minimum fmax fmin floor ceil trunc rint less less_equal greater greater_equal"
        " equal not_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or"
        " bitwise_xor invert isnan isinf isfinite signbit copysign nextafter exp expm1 tanh sinh"
        " cosh sin cos tan arcsin arctan cbrt arctan2 hypot where copy clip"
    ).split()
)
_SINGLE = frozenset("exp2 log log2 log10 log1p arccos arcsinh arccosh arctanh power".split())
_KINDS = "biuf"  # kinds of dtypes, from narrow to wide


@cache
def fusion(cp: Any) -> Fusion | None:
    """Return the fusion for CuPy, the module `cp`; None if this CuPy has other internals.

    It is cached, so programs share kernels.
    """
    try:
        return Fusion(cp, Device("cuda").backend.xp)
    except (AttributeError, ImportError):
        return None


class Operation(NamedTuple):
    """C++ for one element: statements that compute `out` from `inputs`.

    Inputs and output are names with dtypes. `types` are the type names that the statements use.
    """

    name: str
    code: str
    inputs: tuple[tuple[str, np.dtype[Any]], ...]
    out: tuple[str, np.dtype[Any]]
    types: tuple[tuple[str, np.dtype[Any]], ...]
    preamble: str = ""


class Fusion:
    """Fusion of programs for CuPy, the module `cp`, with the backend's array functions `xp`."""

    def __init__(self, cp: Any, xp: Any) -> None:
        self._cp = cp
        self._copy: Any = cp._core.core.elementwise_copy
        self._where: Any = import_module("cupy._sorting.search")._where_ufunc
        self._clip: Any = cp._core._routines_math._clip
        self._ufuncs: dict[Any, Any] = {
            getattr(operator, x): getattr(cp, y) for x, y in _OPERATORS.items()
        }
        internals = attrgetter("_preamble", "_ops._guess_routine_from_in_types", "_ops.ops")
        for ufunc in (self._copy, self._where, self._clip, *self._ufuncs.values()):
            internals(ufunc)  # raises AttributeError if CuPy's internals differ
        self._functions = {
            xp.where: "where",
            xp.clip: "clip",
            xp.astype: "copy",
            xp.asarray: "copy",
        }
        self._functions |= {xp.full: "full", xp.zeros: "full"}
        self._sum = xp.sum
        self._kernel = cache(self._compiled)

    def __call__(
        self, program: Program, operands: Callable[[Call], tuple[Any, dict[str, Any]]]
    ) -> list[Call]:
        """Return the calls of a program with kernels in place of groups.

        `operands` returns the arguments and options of a call, with operands in place of numbers
        that change.
        """
        summed = summed_values(program.calls, self._sum)
        parts = fuse(
            program,
            lambda call: self._statement(call, *operands(call)),
            lambda call: not summed.isdisjoint(call.results),
        )
        return [self._call(x) if isinstance(x, Group) else x for x in parts]

    def ufunc(self, name: str) -> Any:
        """Return the CuPy ufunc of a name that has no prefix."""
        own = {x.name.removeprefix("cupy_"): x for x in (self._copy, self._where, self._clip)}
        return own.get(name) or getattr(self._cp, name)

    # Calls as statements

    def _statement(
        self, call: Call, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Statement | None:
        """Return an elementwise call as a statement; None for any other call."""
        if len(call.results) + len(call.writes) != 1 or call.check is not None or not call.single:
            return None
        out = (*call.results, *call.writes)[0]
        function = call.function
        if function is operator.setitem:
            target, key, value = args
            whole = key is Ellipsis and target is out
            return self._of_ufunc(call, self._copy, (_filling(value),), out) if whole else None
        kind = self._functions.get(function)
        if kind == "copy":
            return self._of_ufunc(call, self._copy, args[:1], out)
        if kind == "full":
            return self._of_ufunc(
                call, self._copy, (_filling(args[1]) if len(args) > 1 else 0,), out
            )
        if options.keys() - {"out"}:
            return None
        if kind == "where":
            condition = args[0]
            if len(args) != 3 or type(condition) is not Value or condition.dtype.kind != "b":
                return None
            return self._of_ufunc(call, self._where, args, out)
        if kind == "clip":
            return (
                self._of_ufunc(call, self._clip, args, out)
                if len(args) == 3 and None not in args
                else None
            )
        if isinstance(function, self._cp.ufunc):
            return self._of_ufunc(call, function, args, out)
        if function in self._ufuncs:
            return self._of_ufunc(call, self._ufuncs[function], args, out)
        kernel = getattr(function, "elementwise", None)
        return (
            self._of_kernel(call, kernel, args, out)
            if kernel is not None and call.results
            else None
        )

    def _of_ufunc(
        self, call: Call, ufunc: Any, args: Sequence[Any], out: Value
    ) -> Statement | None:
        """Return the call of a ufunc as a statement.

        It has the routine that CuPy chooses for the dtypes.
        """
        name = ufunc.name.removeprefix("cupy_")
        if len(args) != ufunc.nin or name not in _EXACT | _SINGLE:
            return None
        dtypes = tuple([_dtype(x) for x in args])
        if any(x is None for x in dtypes):  # `in` does not do: None equals the dtype float64
            return None
        op = ufunc._ops._guess_routine_from_in_types(dtypes, _weak(args))
        if (
            op is None
            or type(op.routine) is not str
            or any(str(x) not in C_TYPES for x in op.in_types + op.out_types)
        ):
            return None
        if name in _SINGLE and set(op.in_types) != {np.dtype(np.float32)}:
            return None
        (result,) = op.out_types
        if str(out.dtype) not in C_TYPES or (
            call.results and ufunc is not self._copy and result != out.dtype
        ):
            return None
        inputs = tuple([(f"in{i}", np.dtype(x)) for i, x in enumerate(op.in_types)])
        types = tuple(
            [(f"{name}_type", dtype) for name, dtype in (*inputs, ("out0", np.dtype(result)))]
        )
        operation = Operation(
            name, op.routine, inputs, ("out0", np.dtype(result)), types, ufunc._preamble
        )
        return _statement(call, operation, args, out)

    def _of_kernel(
        self, call: Call, kernel: Any, args: Sequence[Any], out: Value
    ) -> Statement | None:
        """Return the call of an elementwise kernel as a statement.

        None unless all of its parameters have the type T.
        """
        dtype = out.dtype
        parameters = (*kernel.in_params, *kernel.out_params)
        if len(args) != kernel.nin or kernel.nout != 1 or any(x.ctype != "T" for x in parameters):
            return None
        if dtype not in (np.float32, np.float64) or any(
            type(x) is not Value or x.dtype != dtype for x in args
        ):
            return None
        inputs = tuple([(x.name, dtype) for x in kernel.in_params])
        name = kernel.name.removeprefix("xgrad_")
        operation = Operation(
            name, kernel.operation, inputs, (kernel.out_params[0].name, dtype), (("T", dtype),)
        )
        return _statement(call, operation, args, out)

    # Groups as kernels

    def _call(self, group: Group) -> Call:
        """Return a call of the group's kernel."""
        source = Source(group)
        kernel = self._kernel(
            source.inputs, source.outputs, source.code, source.preamble, source.name
        )
        function = FusedKernel(self._cp, kernel, group, source)
        reads = [x.value for x in source.loads]
        writes = [x.value for x in group.writes]
        line = group.statements[0].call.line
        return Call(
            function,
            (*reads, *source.numbers, *writes),
            {},
            tuple(writes),
            group.results,
            single=False,
            line=line,
        )

    def _compiled(self, inputs: str, outputs: str, code: str, preamble: str, name: str) -> Any:
        return self._cp.ElementwiseKernel(
            inputs, outputs, code, name, preamble=preamble, options=EXACT
        )


class FusedKernel:
    """The kernel of a group, as a function.

    Its arguments are the arrays that it loads, 0-d arrays of numbers, and arrays to write to.
    """

    def __init__(self, cp: Any, kernel: Any, group: Group, source: Source) -> None:
        self._cp, self._kernel, self.source = cp, kernel, source
        self.shape, self.__name__ = group.shape, source.name
        self.accesses = [*source.loads, *[None for _ in source.numbers], *group.writes]
        self.results, self.writes, self.scalars = group.results, group.writes, source.scalars
        self.inputs = len(source.loads) + len(source.numbers)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Launch the kernel, and return the results."""
        self.check(arrays)
        views = [
            x if y is None else self._view(x, y) for x, y in zip(arrays, self.accesses, strict=True)
        ]
        results = [self._cp.empty(x.shape, x.dtype) for x in self.results]
        outs = [x.reshape(self.shape) for x in results]
        self._kernel(*views[: self.inputs], *self.scalars, *outs, *views[self.inputs :])
        return tuple(results)

    def check(self, arrays: Sequence[Any]) -> None:
        """Raise Unusable unless the arrays have the layouts of the trace."""
        for array, access in zip(arrays, self.accesses, strict=True):
            value = None if access is None else access.value
            if value is not None and (
                array.dtype != value.dtype
                or array.shape != value.shape
                or not _same_layout(array, value)
            ):
                raise Unusable(f"{value} has another layout than in the trace")

    def _view(self, array: Any, access: Access) -> Any:
        """Return an array as a view with the shape of the group and the strides of an access."""
        if array.size == 1:
            return array.reshape((1,) * len(self.shape))
        if array.shape == self.shape and array.strides == access.strides:
            return array
        return self._cp.ndarray(self.shape, array.dtype, array.data, access.strides)


class Source:
    """The parameters and the code of the kernel of a group, with names in the order of use.

    These names let the layers of a model share kernels. `loads` and `numbers` are the arrays that
    the kernel reads, `scalars` its constants.
    """

    def __init__(self, group: Group) -> None:
        stored = {x.value for x in group.writes}
        self.loads = [x for x in group.loads if x.value not in stored]
        self.numbers = list(
            dict.fromkeys([x for row in group.operands for x in row if type(x) is NumberOperand])
        )
        self.scalars: list[Any] = []
        self._variables: dict[Any, str] = {}
        self._lines: list[str] = []
        inputs = []
        for i, access in enumerate(self.loads):
            inputs.append(f"{access.value.dtype} x{i}")
            self._declare(access, f"x{i}")
        for i, number in enumerate(self.numbers):
            inputs.append(f"raw {number.dtype} n{i}")
            self._variables[number] = f"n{i}[0]"
        outputs = [f"{x.dtype} y{i}" for i, x in enumerate(group.results)]
        for i, access in enumerate(group.writes, len(outputs)):
            outputs.append(f"{access.value.dtype} y{i}")
            if any(load.value is access.value for load in group.loads):
                self._declare(access, f"y{i}")
        preambles: dict[str, None] = {}
        for statement, operands, out in zip(
            group.statements, group.operands, group.outs, strict=True
        ):
            preambles[statement.operation.preamble] = None
            self._add(statement.operation, operands, out, inputs)
        for i, x in enumerate([*group.results, *[access.value for access in group.writes]]):
            self._lines.append(f"y{i} = {self._variables[x]};")
        self.inputs, self.outputs, self.code = (
            ", ".join(inputs),
            ", ".join(outputs),
            "\n".join(self._lines),
        )
        self.preamble = "\n".join(filter(None, preambles))
        names = [x.operation.name for x in group.statements]
        self.name = (
            "xgrad_"
            + "_".join(names[:6])
            + (f"_and_{len(names) - 6}_more" if len(names) > 6 else "")
        )

    def _declare(self, access: Access, parameter: str) -> None:
        """Declare a variable for an array element that is read from memory."""
        name = f"v{len(self._variables)}"
        self._lines.append(f"{C_TYPES[str(access.value.dtype)]} {name} = {parameter};")
        self._variables[access] = self._variables[access.value] = name

    def _add(
        self, operation: Operation, operands: Sequence[Any], out: Value, inputs: list[str]
    ) -> None:
        """Add a statement: a block that uses the names of the operation."""
        block = [
            f"typedef {C_TYPES[str(dtype)]} {name};"
            for name, dtype in operation.types
            if name in operation.code
        ]
        for x, (name, dtype) in zip(operands, operation.inputs, strict=True):
            value = (
                self._variables.get(x) if isinstance(x, (Value, Access, NumberOperand)) else None
            )
            if value is None:
                value = f"s{len(self.scalars)}"
                inputs.append(f"{dtype} {value}")
                self.scalars.append(dtype.type(x))
            block.append(f"const {C_TYPES[str(dtype)]} {name} = {value};")
        if out not in self._variables:
            self._variables[out] = f"v{len(self._variables)}"
            self._lines.append(f"{C_TYPES[str(out.dtype)]} {self._variables[out]};")
        name, dtype = operation.out
        block += [
            f"{C_TYPES[str(dtype)]} {name};",
            f"{operation.code};",
            f"{self._variables[out]} = {name};",
        ]
        self._lines += ["{", *[f"    {line}" for line in block], "}"]


def _statement(
    call: Call, operation: Operation, args: Sequence[Any], out: Value
) -> Statement | None:
    """Return a statement; None if a constant does not fit into its dtype."""
    for x, (_, dtype) in zip(args, operation.inputs, strict=True):
        if (
            type(x) is int
            and dtype.kind in "iu"
            and not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max
        ):
            return None
    return Statement(call, operation, tuple(args), out)


def _dtype(x: Any) -> np.dtype[Any] | None:
    """Return the dtype of an operand; None if `x` is no operand."""
    if type(x) in (bool, int, float):
        return np.dtype(type(x))
    dtype: np.dtype[Any] | None = (
        x.dtype if isinstance(x, (Value, NumberOperand, np.generic)) else None
    )
    return dtype


def _weak(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return for each operand its type if it takes the dtype of the others, else False.

    This is the form in which CuPy chooses routines.
    """
    kinds = {int: _KINDS.index("i"), float: _KINDS.index("f")}
    scalars = [kinds[type(x)] for x in args if type(x) in kinds]
    arrays = [
        _KINDS.find(x.dtype.kind) if hasattr(x, "dtype") else 0
        for x in args
        if type(x) not in kinds
    ]
    weak = scalars and arrays and max(scalars) <= max(arrays)
    return tuple([type(x) if weak and type(x) in kinds else False for x in args])


def _filling(x: Any) -> Any:
    """Return the value that CuPy stores for a number: it drops the sign of a zero."""
    return type(x)(0) if isinstance(x, (int, float, np.generic)) and x == 0 else x


def _same_layout(array: Any, value: Value) -> bool:
    pairs = zip(value.shape, array.strides, value.strides or (), strict=True)
    return all(n == 1 or stride == other for n, stride, other in pairs)
