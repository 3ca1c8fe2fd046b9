"""Rules of batching: how an array function runs once for a whole batch.

A rule takes the function, which takes tensors, the size of the batch, and the arguments of a call,
some of which are batched arrays. It returns the result with the batch as the first axis. `RULES`
has the rules by the standard's function names; functions without a rule run in a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xgrad.ops as xp
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise as elementwise_ops

F = Callable[..., Any]


def is_batched(x: Any) -> bool:
    """Return whether an argument differs among the elements of the batch."""
    return getattr(x, "batched", False) is True


def in_front(size: int, x: Any) -> Tensor:
    """Return the tensor of a batched array, repeated if it is the same for the whole batch."""
    return x.tensor if x.batched else xp.broadcast_to(x.tensor, (size, *x.shape))


def aligned(x: Any, ndim: int) -> Any:
    """Return the tensor of an array with `ndim` axes besides the batch axis.

    Anything else is returned as it is.
    """
    if not hasattr(x, "batched"):
        return x
    return (
        xp.reshape(x.tensor, (x.tensor.shape[0], *(1,) * (ndim - x.ndim), *x.shape))
        if x.batched
        else x.tensor
    )


def loop(name: str, function: F, size: int, *args: Any, **options: Any) -> Any:
    """Call a function for each element of the batch, and stack the results."""
    if name.rpartition(".")[2] in (
        "nonzero",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    ):
        raise ValueError(
            f"vmap: the shape of what {name} returns depends on values: loop over the batch"
        )
    if not size:
        raise ValueError(
            f"vmap: {name} runs in a loop over the batch, and needs one element at least, got none"
        )

    def pick(x: Any, i: int) -> Any:
        if hasattr(x, "batched"):
            return x.tensor[i, ...] if x.batched else x.tensor
        return type(x)([pick(part, i) for part in x]) if type(x) in (list, tuple) else x

    outs = [
        function(*pick(args, i), **{k: pick(x, i) for k, x in options.items()}) for i in range(size)
    ]
    if isinstance(outs[0], Tensor):
        return xp.stack(outs)
    parts = [xp.stack(column) for column in zip(*outs, strict=True)]
    return outs[0]._make(parts) if hasattr(outs[0], "_make") else type(outs[0])(parts)


def elementwise(function: F, size: int, *args: Any, **options: Any) -> Any:
    """Apply a function whose operands broadcast."""
    ndim = max(x.ndim for x in args if hasattr(x, "batched"))
    return function(*[aligned(x, ndim) for x in args], **options)


def stackwise(function: F, size: int, x: Any, *args: Any, **options: Any) -> Any:
    """Apply a function of vectors or matrices in the last axes of one operand."""
    return function(x.tensor, *args, **options)


def axes(x: Any, axis: Any, extra: int = 0) -> Any:
    """Return one or several axes of a batched array as axes of its tensor, counted from the end."""
    if isinstance(axis, (tuple, list)):
        return tuple([axes(x, a, extra) for a in axis])
    ndim = x.ndim + extra
    if not -ndim <= axis < ndim:
        raise IndexError(f"axis {axis} is out of bounds for shape {x.shape}")
    return axis % ndim - ndim


def reduction(function: F, size: int, x: Any, *, axis: Any = None, **options: Any) -> Any:
    """Apply a function that reduces some axes, by default all."""
    if not x.ndim:
        return function(xp.expand_dims(x.tensor, axis=-1), axis=-1, **options | {"keepdims": False})
    return function(
        x.tensor, axis=axes(x, tuple(range(x.ndim)) if axis is None else axis), **options
    )


def along(default: int | None, option: str = "axis") -> F:
    """Return the rule of functions along one or several axes.

    If the axis is None, they run along all elements as one axis.
    """

    def rule(function: F, size: int, x: Any, *args: Any, **options: Any) -> Any:
        axis = options.pop(option, default)
        if axis is None and option == "axis":
            ones = (1,) * x.ndim if options.get("keepdims") else None
            out = function(
                xp.reshape(x.tensor, (size, math.prod(x.shape))), *args, axis=-1, **options
            )
            return out if ones is None else xp.reshape(out, (size, *ones))
        axis = (
            tuple(range(x.ndim))[-len(options["s"]) :]
            if axis is None and options.get("s")
            else axis
        )
        axis = tuple(range(x.ndim)) if axis is None else axis
        return function(x.tensor, *args, **{option: axes(x, axis)}, **options)

    return rule


def flip(function: F, size: int, x: Any, *, axis: Any = None) -> Any:
    return function(x.tensor, axis=axes(x, tuple(range(x.ndim)) if axis is None else axis))


def roll(function: F, size: int, x: Any, shift: Any, *, axis: Any = None) -> Any:
    if axis is None:
        flat = xp.reshape(x.tensor, (size, math.prod(x.shape)))
        return xp.reshape(function(flat, shift, axis=-1), x.tensor.shape)
    return function(x.tensor, shift, axis=axes(x, axis))


def reshape(function: F, size: int, x: Any, shape: Any, **options: Any) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if -1 in shape:
        known = math.prod([n for n in shape if n != -1])
        shape = tuple([x.size // known if n == -1 and known else n for n in shape])
    return function(x.tensor, (size, *shape), **options)


def broadcast_to(function: F, size: int, x: Any, shape: Any) -> Any:
    return function(aligned(x, len(shape)), (size, *shape))


def broadcast_arrays(function: F, size: int, *arrays: Any) -> Any:
    ndim = max(x.ndim for x in arrays)
    return function(*[aligned(x, ndim) if x.batched else in_front(size, x) for x in arrays])


def permute_dims(function: F, size: int, x: Any, axes_: Any = (), **options: Any) -> Any:
    return function(
        x.tensor, (0, *[a + x.ndim + 1 if a < 0 else a + 1 for a in options.get("axes", axes_)])
    )


def moveaxis(function: F, size: int, x: Any, source: Any, destination: Any) -> Any:
    return function(x.tensor, axes(x, source), axes(x, destination))


def expand_dims(function: F, size: int, x: Any, *, axis: Any = 0) -> Any:
    extra = len(axis) if isinstance(axis, tuple) else 1
    return function(x.tensor, axis=axes(x, axis, extra))


def tile(function: F, size: int, x: Any, repetitions: Any) -> Any:
    missing = len(repetitions) - x.ndim
    return function(
        aligned(x, max(len(repetitions), x.ndim)),
        (1,) * (1 + max(-missing, 0)) + tuple(repetitions),
    )


def repeat(function: F, size: int, x: Any, repeats: Any, *, axis: Any = None) -> Any:
    if is_batched(repeats):
        raise ValueError(
            "vmap: the shape of what repeat returns depends on values: loop over the batch"
        )
    repeats = getattr(repeats, "tensor", repeats)
    flat = xp.reshape(x.tensor, (size, math.prod(x.shape))) if axis is None else x.tensor
    return function(flat, repeats, axis=-1 if axis is None else axes(x, axis))


def concat(function: F, size: int, arrays: Any, *, axis: Any = 0) -> Any:
    parts = [in_front(size, x) for x in arrays]
    if axis is None:
        return function([xp.reshape(x, (size, math.prod(x.shape[1:]))) for x in parts], axis=1)
    return function(parts, axis=axes(arrays[0], axis))


def stack(function: F, size: int, arrays: Any, *, axis: int = 0) -> Any:
    return function([in_front(size, x) for x in arrays], axis=axes(arrays[0], axis, 1))


def take(function: F, size: int, x: Any, indices: Any, *, axis: Any = None) -> Any:
    if not is_batched(indices):
        return function(x.tensor, indices.tensor, axis=axes(x, 0 if axis is None else axis))
    a = (axis or 0) % x.ndim
    front = type(x)(x.batch, xp.moveaxis(x.tensor, a + x.batched, int(x.batched)), x.batched)
    return xp.moveaxis(getitem(function, size, front, indices), 1, a + 1)


def take_along_axis(function: F, size: int, x: Any, indices: Any, *, axis: int = -1) -> Any:
    x_, indices_ = [
        y.tensor if y.batched else xp.expand_dims(y.tensor, axis=0) for y in (x, indices)
    ]
    return function(x_, indices_, axis=axes(x, axis))


def searchsorted(function: F, size: int, x1: Any, x2: Any, **options: Any) -> Any:
    if is_batched(x1) or any(map(is_batched, options.values())):
        return loop("searchsorted", function, size, x1, x2, **options)
    return function(
        x1.tensor, x2.tensor, **{k: getattr(x, "tensor", x) for k, x in options.items()}
    )


def matmul(function: F, size: int, x: Any, y: Any) -> Any:
    """Apply a matrix product; the products of a batch with one matrix are a single product."""
    if not (x.ndim and y.ndim):
        raise ValueError(
            f"matmul: expected operands of one axis or more, got shapes {x.shape} and {y.shape}"
        )
    if not y.batched and y.ndim <= 2:
        return function(x.tensor, y.tensor)
    if not x.batched and x.ndim <= 2 and y.ndim == 1:
        return function(y.tensor, x.tensor if x.ndim == 1 else xp.matrix_transpose(x.tensor))
    ndim = max(x.ndim, y.ndim, 2)
    left, right = [y if y.batched else xp.expand_dims(y.tensor, axis=0) for y in (x, y)]
    left, right = getattr(left, "tensor", left), getattr(right, "tensor", right)
    left = xp.expand_dims(left, axis=-2) if x.ndim == 1 else left
    right = xp.expand_dims(right, axis=-1) if y.ndim == 1 else right
    left, right = [
        (
            xp.reshape(z, (z.shape[0], *(1,) * (ndim + 1 - z.ndim), *z.shape[1:]))
            if z.ndim <= ndim
            else z
        )
        for z in (left, right)
    ]
    out = function(left, right)
    out = xp.squeeze(out, axis=-2) if x.ndim == 1 else out
    return xp.squeeze(out, axis=-1) if y.ndim == 1 else out


def tensordot(function: F, size: int, x: Any, y: Any, *, axes: Any = 2) -> Any:
    """Apply a sum of products over axes, as a matrix product of the free axes and the others."""
    if isinstance(axes, int):
        axes = range(x.ndim - axes, x.ndim), range(axes)
    inner = [
        [a % z.ndim for a in ((of,) if isinstance(of, int) else of)]
        for z, of in zip((x, y), axes, strict=True)
    ]
    outer = [
        [a for a in range(z.ndim) if a not in bound] for z, bound in zip((x, y), inner, strict=True)
    ]
    left, right = _as_matrix(x, outer[0], inner[0]), _as_matrix(y, inner[1], outer[1])
    free = [z.shape[a] for z, part in zip((x, y), outer, strict=True) for a in part]
    return xp.reshape(xp.matmul(left, right), (size, *free))


def _as_matrix(x: Any, rows: list[int], columns: list[int]) -> Tensor:
    """Return the tensor of an array with two axes besides the batch axis.

    Each of the two combines several axes.
    """
    lead = tuple(range(x.batched))
    shape = [math.prod([x.shape[a] for a in part]) for part in (rows, columns)]
    moved = xp.permute_dims(x.tensor, (*lead, *[a + len(lead) for a in rows + columns]))
    return xp.reshape(moved, (*moved.shape[: len(lead)], *shape))


def vecdot(function: F, size: int, x: Any, y: Any, *, axis: int = -1) -> Any:
    ndim = max(x.ndim, y.ndim)
    return function(aligned(x, ndim), aligned(y, ndim), axis=axis if axis < 0 else axis - ndim)


def outer(function: F, size: int, x: Any, y: Any) -> Any:
    return xp.expand_dims(x.tensor, axis=-1) * xp.expand_dims(y.tensor, axis=-2)


def solve(function: F, size: int, x: Any, y: Any) -> Any:
    if y.ndim > 1:
        return elementwise(function, size, x, y)
    column = xp.expand_dims(y.tensor, axis=-1)
    return xp.squeeze(
        function(x.tensor, column if y.batched or x.ndim > 2 else column[None, ...]), axis=-1
    )


def cross(function: F, size: int, x: Any, y: Any, *, axis: int = -1) -> Any:
    return vecdot(function, size, x, y, axis=axis)


# Indexing


def _batched_key(size: int, x: Any, key: Any) -> tuple[Any, Any, Any]:
    """Return the key for an array's tensor, and from and to where axes of the result must move.

    Index arrays get a batch axis in front. If the array is batched too, an index for that axis
    joins them.
    """
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if not hasattr(part, "batched") or part.tensor.dtype.kind != "b":
            parts.append(part)
        elif part.batched or not part.ndim:
            raise ValueError("vmap: the shape of x[mask] depends on values: use where(mask, x, 0)")
        else:
            parts += xp.nonzero(part.tensor)
    if not any(part is ... for part in parts) and sum(part is not None for part in parts) < x.ndim:
        parts.append(...)
    arrays = [part for part in parts if hasattr(part, "ndim")]
    if not arrays:
        return (slice(None), *parts), (), ()
    ndim = max(part.ndim for part in arrays)
    picks = [i for i, part in enumerate(parts) if hasattr(part, "ndim") or type(part) is int]
    before = parts[: picks[0]]
    # the axis of the result at which the index arrays' axes start, without the batch
    first = len(before)
    if any(part is ... for part in before):
        # the number of axes of the ellipsis, less one
        first += x.ndim - sum(part is not None for part in parts)
    if picks[-1] - picks[0] >= len(picks):  # separated from each other
        first = 0
    parts = [aligned(part, ndim) for part in parts]
    if not x.batched:
        return tuple(parts), (first,) * bool(first), (0,) * bool(first)
    numbers = xp.arange(
        size, device=arrays[0].tensor.device if hasattr(arrays[0], "tensor") else arrays[0].device
    )
    now, then = range(1, ndim + 1), range(first + 1, first + ndim + 1)
    return (
        (xp.reshape(numbers, (size, *(1,) * ndim)), *parts),
        tuple(now) if first else (),
        tuple(then) if first else (),
    )


def getitem(function: F, size: int, x: Any, key: Any) -> Any:
    key, now, then = _batched_key(size, x, key)
    out = x.tensor[key]
    return xp.moveaxis(out, now, then) if now else out


def write(function: F, size: int, x: Any, key: Any, value: Any) -> Any:
    """Apply a function that writes to the elements of a key, or adds to them."""
    x = type(x)(x.batch, in_front(size, x), True)
    key, now, then = _batched_key(size, x, key)
    if hasattr(value, "batched"):
        shape = x.tensor.detach()[key].shape
        value = aligned(value, len(shape) - 1)
        if now:
            moved = [n for n in range(len(shape)) if n not in now]
            for n, axis in zip(now, then, strict=True):
                moved.insert(axis, n)
            value = xp.moveaxis(xp.broadcast_to(value, tuple([shape[n] for n in moved])), then, now)
    return function(x.tensor, key, value)


_FFT = {f"fft.{kind}fft": along(-1) for kind in ("", "i", "r", "ir", "h", "ih")}
_FFT |= {f"fft.{kind}fftn": along(None, "axes") for kind in ("", "i", "r", "ir")}
_FFT |= {f"fft.{kind}fftshift": along(None, "axes") for kind in ("", "i")}
_OF_AXES = "all any count_nonzero max mean min prod std sum var linalg.vector_norm".split()
_OF_MATRICES = (
    "cholesky det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_power matrix_rank"
    " matrix_transpose pinv qr slogdet svd svdvals trace"
).split()
_OF_OPERANDS = [*elementwise_ops.__all__, *"add astype clip special. where".split()]

#: The rules, by function name; operators have the rule of `add`, special functions the rule of
#: ``special.``.
RULES: dict[str, F] = {
    **dict.fromkeys(_OF_OPERANDS, elementwise),
    **dict.fromkeys(_OF_AXES, reduction),
    **dict.fromkeys([f"linalg.{name}" for name in _OF_MATRICES], stackwise),
    **dict.fromkeys(("asarray", "matrix_transpose", "tril", "triu"), stackwise),
    **dict.fromkeys(("argmax", "argmin", "cumulative_sum", "cumulative_prod"), along(None)),
    **dict.fromkeys(("argsort", "sort", "diff"), along(-1)),
    **dict.fromkeys(("index_add", "setitem"), write),
    **dict.fromkeys(("matmul", "linalg.matmul"), matmul),
    **dict.fromkeys(("tensordot", "linalg.tensordot"), tensordot),
    **dict.fromkeys(("vecdot", "linalg.vecdot"), vecdot),
    **_FFT,
    "broadcast_arrays": broadcast_arrays,
    "broadcast_to": broadcast_to,
    "concat": concat,
    "expand_dims": expand_dims,
    "flip": flip,
    "getitem": getitem,
    "linalg.cross": cross,
    "linalg.outer": outer,
    "linalg.solve": solve,
    "moveaxis": moveaxis,
    "permute_dims": permute_dims,
    "repeat": repeat,
    "reshape": reshape,
    "roll": roll,
    "searchsorted": searchsorted,
    "squeeze": along(-1),
    "stack": stack,
    "take": take,
    "take_along_axis": take_along_axis,
    "tile": tile,
}
