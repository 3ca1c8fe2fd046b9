"""Counterparts of NumPy's functions that xgrad has under other names, or composes of several.

Their parameters are NumPy's; inputs are positional only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import xgrad as namespace
from xgrad.core.arguments import as_tensor, front_axis
from xgrad.core.tensor import Tensor

_INTS = (int, np.integer)

# Shapes and order


def _ordered(name: str, a: Any, shape: Any, order: str) -> Any:
    """Return elements in another shape, read and written row by row or column by column."""
    if order == "C":
        return namespace.reshape(a, shape)
    if order != "F":
        raise TypeError(f"{name}: expected order 'C' or 'F', got {order!r}")
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    return _transpose(namespace.reshape(_transpose(a), lengths[::-1]))


def _reshape(a: Any, /, shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    if order == "C":
        return namespace.reshape(a, (shape,) if isinstance(shape, int) else shape, copy=copy)
    return _ordered("reshape", a, shape, order)


def _ravel(a: Any, /, order: str = "C") -> Any:
    return _ordered("ravel", a, (-1,), order)


def _with_axes(name: str, x: Any, count: int) -> Any:
    """Return a tensor with at least `count` axes, new ones first."""
    x = as_tensor(name, "tup", x)
    return namespace.reshape(x, (1,) * (count - x.ndim) + x.shape)


def _with_three_axes(name: str, x: Any) -> Any:
    """Return a tensor with at least three axes: an axis of one or two keeps its place in NumPy."""
    x = as_tensor(name, "tup", x)
    return x if x.ndim > 2 else namespace.expand_dims(_with_axes(name, x, 2), axis=2)


def _at_least(count: int) -> Callable[..., Any]:
    name = f"atleast_{count}d"

    def at_least(*arys: Any) -> Any:
        parts = [
            _with_three_axes(name, x) if count == 3 else _with_axes(name, x, count) for x in arys
        ]
        return parts[0] if len(parts) == 1 else tuple(parts)

    return at_least


def _rot90(m: Any, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    first, second = axes
    if k % 4 == 2:
        return namespace.flip(m, axis=(first, second))
    if k % 4 == 1:
        return _swapped(namespace.flip(m, axis=second), first, second)
    return namespace.flip(_swapped(m, first, second), axis=second) if k % 4 else m


def _swapped(x: Any, first: int, second: int) -> Any:
    return namespace.moveaxis(x, (first, second), (second, first))


def _rollaxis(a: Any, /, axis: int, start: int = 0) -> Any:
    axis = front_axis("rollaxis", a, axis, of="a")
    start = front_axis("rollaxis", a, start, "start", of="a", added=1) if start >= 0 else start
    start += a.ndim if start < 0 else 0
    return namespace.moveaxis(a, axis, start - (axis < start))


# Joining and splitting


def _append(arr: Any, values: Any, /, axis: int | None = None) -> Any:
    parts: list[Any] = [x if isinstance(x, Tensor) else np.asarray(x) for x in (arr, values)]
    if axis is None:
        parts, axis = [namespace.reshape(x, (-1,)) for x in parts], 0
    return namespace.concat(parts, axis=axis)


def _hstack(tup: Sequence[Any], /) -> Any:
    arrays = [_with_axes("hstack", x, 1) for x in tup]
    return namespace.concat(arrays, axis=0 if arrays[0].ndim == 1 else 1)


def _vstack(tup: Sequence[Any], /) -> Any:
    return namespace.concat([_with_axes("vstack", x, 2) for x in tup])


def _dstack(tup: Sequence[Any], /) -> Any:
    return namespace.concat([_with_three_axes("dstack", x) for x in tup], axis=2)


def _column_stack(tup: Sequence[Any], /) -> Any:
    columns = [as_tensor("column_stack", "tup", x) for x in tup]
    return namespace.concat(
        [x if x.ndim > 1 else namespace.reshape(x, (-1, 1)) for x in columns], axis=1
    )


def _block(arrays: Any, /) -> Any:
    depth, inner = 0, arrays
    while isinstance(inner, list) and inner:
        depth, inner = depth + 1, inner[0]

    def joined(x: Any, axes_left: int, count: int) -> Any:
        is_list = isinstance(x, list)
        if is_list != (axes_left > 0) or (is_list and not x):
            raise ValueError("block: expected lists of one depth, with a tensor or more in each")
        if not is_list:
            return _with_axes("block", x, count)
        return namespace.concat([joined(part, axes_left - 1, count) for part in x], axis=-axes_left)

    return joined(arrays, depth, max(depth, _most_axes(arrays)))


def _most_axes(x: Any) -> int:
    return max(map(_most_axes, x)) if isinstance(x, list) else np.ndim(x)


def _split(ary: Any, indices_or_sections: Any, /, axis: int = 0) -> list[Any]:
    axis = front_axis("split", ary, axis, of="ary")
    length, count = ary.shape[axis], indices_or_sections
    if isinstance(count, _INTS) and count > 0 and length % count:
        raise ValueError(
            f"split: expected a length that {count} divides, got {length}: use array_split"
        )
    return _array_split(ary, count, axis)


def _array_split(ary: Any, indices_or_sections: Any, /, axis: int = 0) -> list[Any]:
    axis = front_axis("array_split", ary, axis, of="ary")
    length, ends = ary.shape[axis], indices_or_sections
    if isinstance(ends, _INTS):
        if ends < 1:
            raise ValueError(f"split: expected one section or more, got {ends}")
        size, longer = divmod(length, ends)
        ends = [size * i + min(i, longer) for i in range(1, ends)]
    key = (slice(None),) * axis
    return [
        ary[*key, slice(start, stop), ...]
        for start, stop in zip((0, *ends), (*ends, length), strict=True)
    ]


def _vsplit(ary: Any, indices_or_sections: Any, /) -> list[Any]:
    if ary.ndim < 2:
        raise ValueError(f"vsplit: expected 2 axes or more, got shape {ary.shape}")
    return _split(ary, indices_or_sections)


def _hsplit(ary: Any, indices_or_sections: Any, /) -> list[Any]:
    return _split(ary, indices_or_sections, axis=1 if ary.ndim > 1 else 0)


def _repeat(a: Any, repeats: Any, /, axis: int | None = None) -> Any:
    if not isinstance(repeats, (int, Tensor)):
        repeats = namespace.asarray(np.asarray(repeats), device=a.device)
    return namespace.repeat(a, repeats, axis=axis)


def _tile(A: Any, reps: Any, /) -> Any:
    return namespace.tile(A, (reps,) if isinstance(reps, int) else tuple(reps))


# Choosing elements


def _take(a: Any, indices: Any, /, axis: int | None = None) -> Any:
    if axis is None:
        a, axis = namespace.reshape(a, (-1,)), 0
    axis = front_axis("take", a, axis, of="a")
    if not isinstance(indices, Tensor):
        indices = namespace.asarray(np.asarray(indices), device=a.device)
    taken = namespace.take(a, namespace.reshape(indices, (-1,)), axis=axis)
    return namespace.reshape(taken, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])


def _select(condlist: Any, choicelist: Any, /, default: Any = 0) -> Any:
    if not condlist or len(condlist) != len(choicelist):
        raise ValueError(
            "select: expected one condition or more, and as many choices, got"
            f" {len(choicelist)} choices and"
            f" {len(condlist)} conditions"
        )
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        default = namespace.where(condition, choice, default)
    return default


def _argwhere(a: Any, /) -> Any:
    return namespace.stack(list(namespace.nonzero(a)), axis=-1)


# Elements


def _angle(z: Any, /, deg: bool = False) -> Any:
    if z.dtype.kind == "c":
        angle = namespace.atan2(namespace.imag(z), namespace.real(z))
    else:
        angle = namespace.atan2(namespace.zeros_like(z), z)
    return angle * (180 / math.pi) if deg else angle


def _without_nan(name: str) -> Callable[..., Any]:
    """Return the extremum of two arrays, the other one where one is NaN."""

    def extremum(x1: Any, x2: Any, /) -> Any:
        dtype = namespace.result_type(x1, x2)
        device = next(x.device for x in (x1, x2) if isinstance(x, Tensor))
        x1, x2 = (
            namespace.asarray(x, dtype=dtype, device=device)
            if isinstance(x, (int, float))
            else as_tensor(f"f{name[:3]}", "x", x)
            for x in (x1, x2)
        )
        larger = getattr(namespace, name)(x1, x2)
        return namespace.where(
            namespace.isnan(x1), x2, namespace.where(namespace.isnan(x2), x1, larger)
        )

    return extremum


def _logaddexp2(x1: Any, x2: Any, /) -> Any:
    two = math.log(2)
    return namespace.logaddexp(x1 * two, x2 * two) / two


# Reductions and differences


def _average(a: Any, /, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return namespace.mean(a, axis=axis, keepdims=keepdims)
    weights = as_tensor("average", "weights", weights)
    if weights.shape != np.shape(a):
        if not isinstance(axis, int) or weights.ndim != 1:
            raise TypeError(
                "average: expected weights of the shape of a, or of one axis that is given, got"
                f" weights of shape {weights.shape}, a of shape {np.shape(a)}, axis={axis!r}"
            )
        weights = _along(weights, np.ndim(a), axis)
    total = namespace.sum(a * weights, axis=axis, keepdims=keepdims)
    weights = namespace.broadcast_to(weights, np.shape(a))
    return total / namespace.sum(weights, axis=axis, keepdims=keepdims)


def _along(x: Any, count: int, axis: int) -> Any:
    """Return an array of one axis with `count` axes, of which only one is longer than 1."""
    return namespace.reshape(x, (-1,) + (1,) * (count - 1 - axis % count))


def _ptp(a: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    largest = namespace.max(a, axis=axis, keepdims=keepdims)
    return largest - namespace.min(a, axis=axis, keepdims=keepdims)


def _diff(a: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    shape = tuple([1 if i == axis % a.ndim else length for i, length in enumerate(a.shape)])
    ends = [
        namespace.broadcast_to(namespace.asarray(x, dtype=a.dtype, device=a.device), shape)
        if isinstance(x, (int, float, complex))
        else x
        for x in (prepend, append)
    ]
    parts = [x for x in (ends[0], a, ends[1]) if x is not None]
    joined = namespace.concat(parts, axis=axis) if len(parts) > 1 else a
    return namespace.diff(joined, n=n, axis=axis)


# Products


def _einsum(*operands: Any, optimize: Any = False) -> Any:
    """Sum products: also in NumPy's form of arrays, each followed by the list of its axes."""
    if isinstance(operands[0], str):
        return namespace.einsum(*operands)
    count = len(operands) // 2
    inputs = ",".join(map(_letters, operands[1 : 2 * count : 2]))
    out = f"->{_letters(operands[-1])}" if len(operands) % 2 else ""
    return namespace.einsum(inputs + out, *operands[0 : 2 * count : 2])


def _letters(axes: Sequence[Any]) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join(["..." if axis is ... else letters[axis] for axis in axes])


def _tensordot(a: Any, b: Any, /, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple([(x,) if isinstance(x, int) else tuple(x) for x in axes])
    return namespace.tensordot(a, b, axes=axes)


def _multi_dot(arrays: Sequence[Any], /) -> Any:
    return reduce(namespace.matmul, arrays)


def _matvec(x1: Any, x2: Any, /) -> Any:
    return namespace.matmul(x1, namespace.expand_dims(x2, axis=-1))[..., 0]


def _vecmat(x1: Any, x2: Any, /) -> Any:
    x1 = as_tensor("vecmat", "x1", x1)
    row = namespace.expand_dims(namespace.conj(x1) if x1.dtype.kind == "c" else x1, axis=-2)
    return namespace.matmul(row, x2)[..., 0, :]


def _eigh(a: Any, /, UPLO: str = "L") -> Any:
    upper = UPLO.upper() == "U"
    return namespace.linalg.eigh(namespace.conj(namespace.matrix_transpose(a)) if upper else a)


def _svd(a: Any, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return namespace.linalg.svdvals(a)
    return namespace.linalg.svd(a, full_matrices=full_matrices)


def _fft2(name: str) -> Callable[..., Any]:
    def transform(a: Any, /, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
        return getattr(namespace.fft, name)(a, s=s, axes=axes, norm=norm or "backward")

    return transform


# Others


def _cumulative(name: str) -> Callable[..., Any]:
    def cumulative(a: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
        return getattr(namespace, name)(
            a if axis is not None else namespace.reshape(a, (-1,)), axis=axis or 0, dtype=dtype
        )

    return cumulative


def _divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    return namespace.floor_divide(x1, x2), namespace.remainder(x1, x2)


def _dot(a: Any, b: Any, /) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return namespace.multiply(a, b)
    return (
        namespace.matmul(a, b)
        if np.ndim(b) <= 2
        else namespace.tensordot(a, b, axes=((-1,), (-2,)))
    )


def _inner(a: Any, b: Any, /) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return namespace.multiply(a, b)
    return namespace.tensordot(a, b, axes=((-1,), (-1,)))


def _norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is not None and axis is None:
        axis = tuple(range(x.ndim))
    if ord is None or not isinstance(axis, tuple) or len(axis) == 1:
        return namespace.linalg.vector_norm(
            x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord
        )
    norm = namespace.linalg.matrix_norm(
        namespace.moveaxis(x, axis, (-2, -1)), keepdims=keepdims, ord=ord
    )
    return namespace.moveaxis(norm, (-2, -1), axis) if keepdims else norm


def _trace(a: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return namespace.sum(namespace.diagonal(a, offset, axis1, axis2), axis=-1)


def _transpose(a: Any, /, axes: Any = None) -> Any:
    return namespace.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else axes)


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    return namespace.nonzero(condition) if x is None else namespace.where(condition, x, y)


#: Counterparts of functions of NumPy, in `xgrad` unless a module is named; all others have the same
#: name in both.
COUNTERPARTS: dict[str, str | Callable[..., Any]] = {
    "absolute": "abs",
    "add.accumulate": "cumulative_sum",
    "add.reduce": "sum",
    "amax": "max",
    "amin": "min",
    "angle": _angle,
    "append": _append,
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "argwhere": _argwhere,
    "around": "round",
    "array_split": _array_split,
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "atleast_3d": _at_least(3),
    "average": _average,
    "block": _block,
    "column_stack": _column_stack,
    "concatenate": "concat",
    "conjugate": "conj",
    "copy": Tensor.clone,
    "cross": "linalg.cross",
    "cumprod": _cumulative("cumulative_prod"),
    "cumsum": _cumulative("cumulative_sum"),
    "deg2rad": lambda x, /: x * (math.pi / 180),
    "degrees": lambda x, /: x * (180 / math.pi),
    "diagflat": lambda v, /, k=0: namespace.diag(namespace.reshape(v, (-1,)), k),
    "diff": _diff,
    "divmod": _divmod,
    "dot": _dot,
    "dsplit": lambda ary, indices_or_sections, /: _split(ary, indices_or_sections, axis=2),
    "dstack": _dstack,
    "einsum": _einsum,
    "fabs": "abs",
    "fft.fft2": _fft2("fftn"),
    "fft.ifft2": _fft2("ifftn"),
    "fft.irfft2": _fft2("irfftn"),
    "fft.rfft2": _fft2("rfftn"),
    "fix": "trunc",
    "flatnonzero": lambda a, /: namespace.nonzero(namespace.reshape(a, (-1,)))[0],
    "fliplr": lambda m, /: namespace.flip(m, axis=1),
    "flipud": lambda m, /: namespace.flip(m, axis=0),
    "fmax": _without_nan("maximum"),
    "fmin": _without_nan("minimum"),
    "hsplit": _hsplit,
    "hstack": _hstack,
    "inner": _inner,
    "invert": "bitwise_invert",
    "iscomplexobj": lambda x, /: x.dtype.kind == "c",
    "isrealobj": lambda x, /: x.dtype.kind != "c",
    "left_shift": "bitwise_left_shift",
    "linalg.eigh": _eigh,
    "linalg.multi_dot": _multi_dot,
    "linalg.norm": _norm,
    "linalg.svd": _svd,
    "logaddexp2": _logaddexp2,
    "logical_and.reduce": "all",
    "logical_or.reduce": "any",
    "matvec": _matvec,
    "maximum.reduce": "max",
    "minimum.reduce": "min",
    "multiply.accumulate": "cumulative_prod",
    "multiply.reduce": "prod",
    "ndim": lambda a, /: a.ndim,
    "outer": lambda a, b, /: namespace.outer(
        namespace.reshape(a, (-1,)), namespace.reshape(b, (-1,))
    ),
    "power": "pow",
    "ptp": _ptp,
    "rad2deg": lambda x, /: x * (180 / math.pi),
    "radians": lambda x, /: x * (math.pi / 180),
    "ravel": _ravel,
    "repeat": _repeat,
    "reshape": _reshape,
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "rollaxis": _rollaxis,
    "rot90": _rot90,
    "save": "",  # another function in xgrad
    "shape": lambda a, /: a.shape,
    "select": _select,
    "size": lambda a, axis=None, /: a.size if axis is None else a.shape[axis],
    "split": _split,
    "squeeze": Tensor.squeeze,
    "swapaxes": Tensor.swapaxes,
    "take": _take,
    "tensordot": _tensordot,
    "tile": _tile,
    "trace": _trace,
    "transpose": _transpose,
    "vdot": lambda a, b, /: namespace.vecdot(
        namespace.reshape(a, (-1,)), namespace.reshape(b, (-1,))
    ),
    "vecmat": _vecmat,
    "vsplit": _vsplit,
    "vstack": _vstack,
    "where": _where,
}

#: What to write for functions that have no counterpart.
INSTEAD = {
    "apply_along_axis": "xgrad.vmap",
    "choose": "xgrad.where",
    "compress": "x[mask]",
    "convolve": "xgrad.nn.functional.conv1d, with the second one flipped",
    "correlate": "xgrad.nn.functional.conv1d",
    "delete": "xgrad.concat of the slices that remain",
    "extract": "x[mask]",
    "heaviside": "xgrad.where",
    "insert": "xgrad.concat of slices",
    "linalg.cond": "s[..., 0] / s[..., -1], with s = xgrad.linalg.svdvals(x)",
    "piecewise": "xgrad.where",
    "polyval": "the sum of coefficients times powers of x",
    "vander": "x[:, None] ** xgrad.arange(n)",
}
