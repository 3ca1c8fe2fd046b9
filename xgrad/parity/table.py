"""The table of operations that the systematic tests run through. A new op is one new row.

A row names the op, how xgrad and PyTorch spell it, and the inputs to try. Inputs are NumPy arrays in float64;
arrays of integers or bools, and Python scalars, are passed on as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import xgrad
from xgrad import ops as F

try:
    import torch
except ImportError:
    torch = None

INF, NAN = np.inf, np.nan
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4, 1e-30, INF, -INF, NAN)


@dataclass(frozen=True)
class Sample:
    """One set of arguments. `layout` says how float arrays lie in memory: "plain", "transposed" or "reversed"."""

    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    layout: str = "plain"

    def __str__(self) -> str:
        parts = [str(x.shape).replace(" ", "") if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        parts += [f"{k}={v}" for k, v in self.options.items()]
        return ",".join(parts).replace(" ", "") + ("" if self.layout == "plain" else "-" + self.layout)


@dataclass(frozen=True)
class Op:
    """One row.

    `special` are values that every input takes in turn, in every combination. `not_on` gives for a device the
    reason why the op itself cannot run there; `loose` a relative tolerance for float64 with its reason.
    """

    name: str
    fn: Callable[..., Any]
    torch: Callable[..., Any] | None
    samples: list[Sample]
    differentiable: bool = True
    special: tuple[float, ...] = ()
    special_gradient: bool = True
    not_on: dict[str, str] = field(default_factory=dict)
    loose: tuple[float, str] | None = None

    def __str__(self) -> str:
        return self.name


def _values(shape: tuple[int, ...], low: float, high: float, *key: Any) -> np.ndarray:
    random = np.random.default_rng(zlib.crc32(repr((shape, *key)).encode()))
    return random.uniform(low, high, shape)


SHAPES: list[tuple[tuple[int, ...], str]] = [
    ((), "plain"), ((3,), "plain"), ((2, 3), "plain"), ((0,), "plain"), ((2, 0, 3), "plain"),
    ((2, 3), "transposed"), ((4,), "reversed"),
]  # fmt: skip
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
    ((), (), "plain"), ((2, 3), (2, 3), "plain"), ((2, 3), (3,), "plain"), ((2, 1), (1, 3), "plain"),
    ((), (2, 2), "plain"), ((0, 3), (3,), "plain"), ((2, 3), (2, 3), "transposed"), ((3,), (2, 3), "reversed"),
]  # fmt: skip


def unary(
    name: str,
    torch_fn: Callable[..., Any] | None = None,
    low: float = -2,
    high: float = 2,
    fn: Callable[..., Any] | None = None,
    special: tuple[float, ...] = SPECIAL,
    **row: Any,
) -> Op:
    samples = [Sample((_values(shape, low, high, name),), layout=layout) for shape, layout in SHAPES]
    other = torch_fn or (getattr(torch, name) if torch else None)
    return Op(name, fn or getattr(xgrad, name), other, samples, special=special, **row)


def binary(
    name: str,
    torch_fn: Callable[..., Any] | None = None,
    low: float = -2,
    high: float = 2,
    low2: float | None = None,
    scalars: tuple[float, ...] = (2.0, -1.5),
    special: tuple[float, ...] = SPECIAL,
    **row: Any,
) -> Op:
    samples = []
    for a, b, layout in PAIRS:
        second = _values(b, low if low2 is None else low2, high, name, 2)
        samples.append(Sample((_values(a, low, high, name, 1), second), layout=layout))
    for scalar in scalars:
        samples.append(Sample((_values((3,), low, high, name, 3), scalar)))
        samples.append(Sample((scalar, _values((3,), low if low2 is None else low2, high, name, 4))))
    other = torch_fn or (getattr(torch, name) if torch else None)
    return Op(name, getattr(xgrad, name), t_binary(other), samples, special=special, **row)


AXES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3), {}), ((2, 3), {"axis": 0}), ((2, 3), {"axis": -1, "keepdims": True}), ((2, 3, 2), {"axis": (0, 2)}),
    ((2, 3, 2), {"axis": (-1, 0), "keepdims": True}), ((4,), {"axis": 0}), ((), {}), ((1, 3), {"axis": 0}),
]  # fmt: skip


def reduction(
    name: str, torch_fn: Callable[..., Any], low: float = -2, high: float = 2, empty: bool = True, **row: Any
) -> Op:
    samples = [Sample((_values(shape, low, high, name),), options) for shape, options in AXES]
    samples.append(Sample((_values((2, 3), low, high, name, "t"),), {"axis": 1}, "transposed"))
    samples.append(Sample((_values((4,), low, high, name, "r"),), {}, "reversed"))
    if empty:
        samples += [
            Sample((np.zeros((0, 3)),), {"axis": 0}),
            Sample((np.zeros((0,)),)),
            Sample((np.zeros((3, 0)),), {"axis": 0}),
        ]
    else:
        samples += [Sample((np.zeros((3, 0)),), {"axis": 0})]
    return Op(name, getattr(xgrad, name), torch_fn, samples, **row)


def rows(name: str, fn: Callable[..., Any], torch_fn: Callable[..., Any] | None, *samples: Sample, **row: Any) -> Op:
    return Op(name, fn, torch_fn, list(samples), **row)


def a(*shape: int, low: float = -2, high: float = 2, key: Any = 0) -> np.ndarray:
    return _values(shape, low, high, "a", key)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# How PyTorch spells what is not a function of one name there. `axis` and `keepdims` it takes as they are.


def t_binary(fn: Any) -> Callable[..., Any]:
    """Give PyTorch 0-d tensors for scalars, which few of its functions take on either side."""

    def call(x1: Any, x2: Any) -> Any:
        dtype = x1.dtype if torch.is_tensor(x1) else x2.dtype
        return fn(*[x if torch.is_tensor(x) else torch.tensor(x, dtype=dtype) for x in (x1, x2)])

    return call


def _axes(x: Any, axis: Any) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


def t_prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = sorted(i % x.ndim for i in ((axis,) if isinstance(axis, int) else _axes(x, axis))) if x.ndim else []
    for i in reversed(axes):
        x = torch.prod(x, dim=i, keepdim=keepdims)
    return x


def t_extremum(fn: str) -> Callable[..., Any]:
    return lambda x, axis=None, keepdims=False: getattr(torch, fn)(
        x, dim=_axes(x, axis) if x.ndim else (), keepdim=keepdims
    )


def t_reduce(fn: str) -> Callable[..., Any]:
    def call(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
        options = {"correction": correction} if fn in ("var", "std") else {}
        return getattr(torch, fn)(x, dim=_axes(x, axis) if x.ndim else 0, keepdim=keepdims, **options)

    return call


def t_cumulative_sum(x: Any, axis: Any = None, include_initial: bool = False) -> Any:
    axis = 0 if axis is None else axis
    out = torch.cumsum(x, axis)
    if include_initial:
        first = (
            torch.zeros_like(x.narrow(axis, 0, 1))
            if x.shape[axis]
            else x.new_zeros([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)])
        )
        out = torch.cat([first, out], axis)
    return out


def t_clip(x: Any, min: Any = None, max: Any = None) -> Any:
    if torch.is_tensor(min) or torch.is_tensor(max):
        like = [v if v is None or torch.is_tensor(v) else torch.tensor(v, dtype=x.dtype) for v in (min, max)]
        return torch.clamp(x, *like)
    return x + 0 if min is None and max is None else torch.clamp(x, min, max)


def t_getitem(x: Any, key: Any) -> Any:
    """Index with negative steps through flips, which PyTorch has and slices of them it has not."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in [p for p in parts if not isinstance(p, np.ndarray)]:
        i = next(i for i, p in enumerate(parts) if p is Ellipsis)
        used = sum(p is not None and p is not Ellipsis for p in parts)
        parts[i : i + 1] = [slice(None)] * (x.ndim - used)
    axis = 0
    for n, part in enumerate(parts):
        if part is None:
            continue
        if isinstance(part, slice) and (part.step or 1) < 0:
            picked = torch.tensor(list(range(*part.indices(x.shape[axis]))), dtype=torch.int64)
            x, parts[n] = x.index_select(axis, picked), slice(None)
        axis += 1
    return x[tuple(torch.as_tensor(p) if isinstance(p, np.ndarray) else p for p in parts)]


def t_setitem(x: Any, value: Any, key: Any) -> Any:
    x = x * 1
    x[key] = value
    return x


def _torch(path: str) -> Any:
    """Return a name of PyTorch's, None where it is not installed."""
    found: Any = torch
    for part in path.split("."):
        found = found and getattr(found, part)
    return found


T = _torch
STRICT_FLAGS = {"strict": "the shape of the result depends on the data"}
MASK = np.array([[True, False, True], [False, True, True]])
NON_STANDARD_KEY = {"strict": "the standard does not have such keys"}

OPS: list[Op] = [
    # arithmetic
    binary("add"),
    binary("subtract"),
    binary("multiply"),
    binary("divide", low2=0.5),
    binary("pow", low=0.2, scalars=(2.0, 3, -1.5), special=(0.0, 1.0, 0.5, 2.0, 3.0, -1.0, -2.0), special_gradient=False),
    rows("pow of negatives", xgrad.pow, T("pow"), Sample((a(3, low=-2, high=-1), 3)), Sample((a(3, low=-2, high=-1), 2.0)),
         Sample((np.zeros(2), 2)), Sample((np.zeros(2), 1)), Sample((a(3), 0)), Sample((a(3), 1))),
    unary("negative"),
    unary("positive"),
    unary("abs", special=SPECIAL[:-1]),  # of NaN: as sign
    unary("square"),
    unary("reciprocal", low=0.5),
    binary("remainder", low=0.6, low2=0.6, scalars=(), special=()),
    binary("maximum"),
    binary("minimum"),
    # exponentials, roots, trigonometry
    unary("exp"),
    unary("expm1"),
    unary("log", low=0.2),
    unary("log1p", low=-0.5),
    unary("sqrt", low=0.2),
    unary("sin"),
    unary("cos"),
    unary("tan", low=-1, high=1),
    unary("tanh"),
    unary("sigmoid"),
    unary("relu"),
    unary("softplus", T("nn.functional.softplus"), special=(0.0, 1.0, -1.0, 15.0, -15.0, 1e4, -1e4, INF, NAN)),
    # steps
    unary("sign", special=SPECIAL[:-1]),  # of NaN: NaN by the standard, 0 in PyTorch
    unary("floor"),
    unary("ceil"),
    unary("trunc"),
    unary("round"),
    # choosing
    rows("where", lambda x, y, c: xgrad.where(c, x, y), lambda x, y, c: torch.where(c, x, y),
         Sample((a(2, 3), a(2, 3, key=1), MASK)), Sample((a(3), a(2, 1), MASK)), Sample((a(), a(2, 3), MASK)),
         Sample((a(2, 3), 0.5, MASK)), Sample((1.5, a(2, 3), MASK)), Sample((a(0, 3), a(3), MASK[:0]))),
    rows("clip", xgrad.clip, t_clip,
         Sample((a(2, 3), -1.0, 1.0)), Sample((a(2, 3), None, 0.5)), Sample((a(2, 3), -0.5, None)), Sample((a(2, 3),)),
         Sample((a(2, 3), a(3, low=-1, high=0), a(2, 1, low=0, high=1))), Sample((a(4), a(4, key=1), None)),
         Sample((a(4), a(4, key=1), a(4, key=2))), Sample((a(), -0.1, 0.1)), Sample((a(0), -1.0, 1.0))),
    # reductions
    reduction("sum", t_reduce("sum")),
    reduction("mean", t_reduce("mean"), empty=False),
    reduction("max", t_extremum("amax"), empty=False),
    reduction("min", t_extremum("amin"), empty=False),
    rows("max with ties", xgrad.max, t_extremum("amax"), Sample((np.array([1.0, 3.0, 3.0]),)),
         Sample((np.array([[1.0, 1.0], [2.0, 1.0]]),), {"axis": 1})),
    reduction("prod", t_prod),
    rows("prod through zeros", xgrad.prod, t_prod, Sample((np.array([2.0, 0.0, 3.0, 4.0]),)),
         Sample((np.array([2.0, 0.0, 3.0, 0.0]),)), Sample((np.array([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]),), {"axis": 0})),
    reduction("var", t_reduce("var"), empty=False),
    rows("var with a correction", xgrad.var, t_reduce("var"), Sample((a(2, 3),), {"axis": 1, "correction": 1}),
         Sample((a(5),), {"correction": 1.5})),
    rows("std", xgrad.std, t_reduce("std"), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 1}),
         Sample((a(2, 3),), {"axis": 0, "keepdims": True, "correction": 1}), Sample((a(2, 3, 2),), {"axis": (0, 2)}),
         Sample((a(2, 3),), {"axis": 1}, "transposed")),
    reduction("logsumexp", t_reduce("logsumexp"), empty=False),
    rows("cumulative_sum", xgrad.cumulative_sum, t_cumulative_sum, Sample((a(4),)), Sample((a(2, 3),), {"axis": 0}),
         Sample((a(2, 3),), {"axis": -1, "include_initial": True}), Sample((a(4),), {"include_initial": True}),
         Sample((a(0),)), Sample((a(2, 3),), {"axis": 1}, "transposed")),
    # shapes
    rows("reshape", xgrad.reshape, lambda x, shape: torch.reshape(x, shape), Sample((a(2, 3),), {"shape": (3, 2)}),
         Sample((a(2, 3),), {"shape": (-1,)}), Sample((a(),), {"shape": (1, 1)}), Sample((a(0, 3),), {"shape": (3, 0)}),
         Sample((a(2, 3),), {"shape": (6,)}, "transposed")),
    rows("permute_dims", xgrad.permute_dims, lambda x, axes: torch.permute(x, axes), Sample((a(2, 3, 4),), {"axes": (2, 0, 1)}),
         Sample((a(2, 3),), {"axes": (-1, 0)}), Sample((a(),), {"axes": ()}), Sample((a(2, 0),), {"axes": (1, 0)})),
    rows("matrix_transpose", xgrad.matrix_transpose, lambda x: x.mT, Sample((a(2, 3),)), Sample((a(2, 3, 4),)), Sample((a(0, 3),))),
    rows("expand_dims", xgrad.expand_dims, lambda x, axis=0: torch.unsqueeze(x, axis), Sample((a(2, 3),), {"axis": 1}),
         Sample((a(2),), {"axis": -1}), Sample((a(),)), Sample((a(0),), {"axis": 0})),
    rows("squeeze", xgrad.squeeze, lambda x, axis: torch.squeeze(x, axis), Sample((a(2, 1, 3),), {"axis": 1}),
         Sample((a(1, 2, 1),), {"axis": (0, -1)}), Sample((a(1),), {"axis": 0})),
    rows("broadcast_to", xgrad.broadcast_to, lambda x, shape: torch.broadcast_to(x, shape), Sample((a(3),), {"shape": (2, 3)}),
         Sample((a(2, 1),), {"shape": (2, 4)}), Sample((a(),), {"shape": (2, 2)}), Sample((a(1),), {"shape": (0,)})),
    rows("flip", xgrad.flip, lambda x, axis=None: torch.flip(x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis),
         Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 2),), {"axis": (0, -1)}), Sample((a(0),))),
    rows("concat", lambda *xs, axis=0: xgrad.concat(xs, axis=axis), lambda *xs, axis=0: torch.cat([x.reshape(-1) for x in xs] if axis is None else xs, axis or 0),
         Sample((a(2, 3), a(1, 3, key=1))), Sample((a(2, 3), a(2, 1), a(2, 0)), {"axis": 1}), Sample((a(2), a(3)), {"axis": -1}),
         Sample((a(2, 2), a(3)), {"axis": None}), Sample((a(2),))),
    rows("stack", lambda *xs, axis=0: xgrad.stack(xs, axis=axis), lambda *xs, axis=0: torch.stack(xs, axis),
         Sample((a(2, 3), a(2, 3, key=1))), Sample((a(2), a(2, key=1), a(2, key=2)), {"axis": -1}), Sample((a(), a(key=1))), Sample((a(0),))),
    rows("unstack", xgrad.unstack, lambda x, axis=0: torch.unbind(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": -1}),
         Sample((a(3),))),
    # indexing
    rows("getitem", xgrad.ops.getitem, t_getitem,
         Sample((a(4),), {"key": 1}), Sample((a(4),), {"key": -1}), Sample((a(4),), {"key": slice(1, None, 2)}),
         Sample((a(2, 3),), {"key": (slice(None), 1)}), Sample((a(2, 3),), {"key": (Ellipsis, None, slice(0, 2))}),
         Sample((a(2, 3, 2),), {"key": (1, Ellipsis)}), Sample((a(),), {"key": ()}), Sample((a(4),), {"key": slice(2, 2)}),
         Sample((a(2, 3),), {"key": (1, 2)}), Sample((a(2, 3),), {"key": (slice(None), slice(1, None))}, "transposed")),
    rows("getitem with negative steps", xgrad.ops.getitem, t_getitem,
         Sample((a(4),), {"key": slice(None, None, -1)}), Sample((a(5),), {"key": slice(4, 0, -2)}),
         Sample((a(2, 3),), {"key": (None, 1, slice(None, None, -1))}),
         Sample((a(2, 3),), {"key": (slice(None), slice(None, None, -1))}, "transposed"),
         not_on={"torch": "PyTorch's arrays take no negative steps"}),
    rows("getitem with integer arrays", xgrad.ops.getitem, t_getitem,
         Sample((a(4),), {"key": (ints(0, 2, 2, -1),)}), Sample((a(2, 3),), {"key": (ints(0, 1, 0), ints(2, 2, 2))}),
         Sample((a(2, 3),), {"key": (ints([0], [1]), ints(2, 0))}), Sample((a(2, 3),), {"key": (1, ints(2, 2, 0))})),
    rows("getitem with integer arrays and slices", xgrad.ops.getitem, t_getitem,
         Sample((a(4, 2),), {"key": ints(0, 0, 3)}), Sample((a(2, 3),), {"key": (slice(None), ints(1, 1))}),
         Sample((a(2, 3, 2),), {"key": (ints(0, 0), slice(None), ints(1, 1))}),
         Sample((a(3),), {"key": ints()}), not_on=NON_STANDARD_KEY),
    rows("getitem with a mask", xgrad.ops.getitem, t_getitem,
         Sample((a(2, 3),), {"key": MASK}), Sample((a(2, 3),), {"key": (slice(None), MASK[0])}), Sample((a(2, 3),), {"key": ~MASK & MASK}),
         not_on=STRICT_FLAGS),
    rows("setitem", lambda x, value, key: xgrad.ops.setitem(x, key, value), t_setitem,
         Sample((a(4), a(2)), {"key": slice(1, 3)}), Sample((a(4), a()), {"key": 1}), Sample((a(2, 3), a(3)), {"key": Ellipsis}),
         Sample((a(2, 3), 0.5), {"key": (slice(None), 1)}), Sample((a(2, 3), a(2, 1)), {"key": (slice(None), slice(0, 2))})),
    rows("scatter", lambda x, key: xgrad.ops.scatter(x, key, (4,)), lambda x, key: torch.zeros(4, dtype=x.dtype).index_add(0, torch.as_tensor(key[0]), x),
         Sample((a(3),), {"key": (ints(0, 0, 2),)}), Sample((a(4),), {"key": (ints(3, 3, 3, 3),)})),
    rows("take", xgrad.take, lambda x, i, axis=0: torch.index_select(x, axis, i), Sample((a(4), ints(0, 0, 3))),
         Sample((a(2, 3), ints(2, 0)), {"axis": 1}), Sample((a(2, 3), ints(1, 1, 0)), {"axis": 0}), Sample((a(2, 3), ints()), {"axis": -1})),
    rows("take_along_axis", xgrad.take_along_axis, lambda x, i, axis=-1: torch.take_along_dim(x, i, axis),
         Sample((a(2, 3), ints([0, 0], [2, 1]))), Sample((a(2, 3), ints([0, 1, 1])), {"axis": 0}), Sample((a(4), ints(3, 3, 0)), {"axis": 0}),
         Sample((a(2, 3), ints([2])), {"axis": 1})),
    # products
    rows("matmul", xgrad.matmul, T("matmul"), Sample((a(2, 3), a(3, 4))), Sample((a(3), a(3, key=1))), Sample((a(3), a(3, 2))),
         Sample((a(2, 3), a(3))), Sample((a(4, 2, 3), a(4, 3, 2))), Sample((a(4, 2, 3), a(3, 2))), Sample((a(2, 3), a(4, 3, 2))),
         Sample((a(2, 1, 2, 3), a(3, 3, 2))), Sample((a(3), a(2, 3, 2))), Sample((a(2, 2, 3), a(3))),
         Sample((a(0, 3), a(3, 2))), Sample((a(2, 0), a(0, 2))), Sample((a(2, 3), a(3, 4)), {}, "transposed")),
    # types
    rows("astype", lambda x: xgrad.astype(x, xgrad.float64), lambda x: x.to(torch.float64), Sample((a(2, 3),)), Sample((a(),)), Sample((a(0),))),
    # networks
    rows("linear", F.linear, T("nn.functional.linear"), Sample((a(2, 3), a(4, 3), a(4))), Sample((a(2, 3), a(4, 3))),
         Sample((a(3), a(4, 3), a(4))), Sample((a(2, 2, 3), a(4, 3), a(4))), Sample((a(0, 3), a(4, 3), a(4))),
         Sample((a(2, 3), a(4, 3), a(4)), {}, "transposed")),
    rows("softmax", F.softmax, lambda x, axis=-1: torch.softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(4),)),
         Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    rows("log_softmax", F.log_softmax, lambda x, axis=-1: torch.log_softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}),
         Sample((a(4),)), Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    rows("cross_entropy", F.cross_entropy, T("nn.functional.cross_entropy"), Sample((a(4, 3), ints(0, 2, 1, 1))), Sample((a(3), np.array(1))),
         Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "sum"}), Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "none"}),
         Sample((a(2, 3, 2), ints([0, 2], [1, 1]))), Sample((a(4, 3), ints(0, 2, 1, 1)), {"label_smoothing": 0.1}),
         Sample((np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1))), Sample((a(2, 3), ints(0, 2)), {}, "transposed")),
    rows("mse_loss", F.mse_loss, T("nn.functional.mse_loss"), Sample((a(2, 3), a(2, 3, key=1))), Sample((a(4), a(4, key=1)), {"reduction": "sum"}),
         Sample((a(4), a(4, key=1)), {"reduction": "none"}), Sample((a(), a(key=1))), Sample((np.array([1e4, -1e4]), np.array([-1e4, 1e4])))),
    # without a derivative
    *[binary(name, torch_name and _torch(torch_name), differentiable=False)
      for name, torch_name in [("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge")]],
    binary("floor_divide", low2=0.5, differentiable=False, special=()),
    *[unary(name, differentiable=False) for name in ("isnan", "isinf", "isfinite")],
    *[rows(name, getattr(xgrad, name), _torch(name), Sample((MASK, ~MASK)), Sample((MASK, MASK[0])), differentiable=False)
      for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")],
    *[rows(name, getattr(xgrad, name), _torch(other), Sample((MASK,)), differentiable=False)
      for name, other in (("logical_not", "logical_not"), ("bitwise_invert", "bitwise_not"))],
    rows("bitwise of integers", xgrad.bitwise_and, T("bitwise_and"), Sample((ints(6, 5), ints(3, 4))), Sample((ints(6, 5), 3)), differentiable=False),
    *[rows(name, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=axis, keepdim=keepdims),
           Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3),), {"axis": -1, "keepdims": True}), differentiable=False)
      for name in ("argmax", "argmin")],
    *[rows(name, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=_axes(x, axis), keepdim=keepdims),
           Sample((MASK,)), Sample((MASK,), {"axis": 0}), Sample((MASK,), {"axis": (0, 1), "keepdims": True}), differentiable=False)
      for name in ("any", "all")],
]  # fmt: skip
