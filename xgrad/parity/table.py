"""The table of operations that the tests and ``xgrad parity`` run through. A new op is one new row.

A row names the op, how far devices may be apart on it and why, how xgrad and PyTorch spell it, and the inputs to try.
"""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad import ops as F
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import INF, NAN, SPECIAL, Op, Sample, a, binary, ints, reduction, row, unary
from xgrad.parity.tolerance import (
    COMPOSED,
    EXACT,
    FUNCTIONS,
    POWERS,
    PRODUCTS,
    ROOTS,
    ROUNDED,
    SATURATING,
    SELECTED,
    SUMS,
)

STRICT_FLAGS = {"strict": "the shape of the result depends on the data"}
MASK = np.array([[True, False, True], [False, True, True]])
TIE = "a tie has no derivative"
NON_STANDARD_KEY = {"strict": "the standard does not have such keys"}

OPS: list[Op] = [
    # arithmetic
    binary("add", ROUNDED),
    binary("subtract", ROUNDED),
    binary("multiply", ROUNDED),
    binary("divide", ROUNDED, low2=0.5),
    binary("pow", POWERS, low=0.2, scalars=(2.0, 3, -1.5), special=(0.0, 1.0, 0.5, 2.0, 3.0, -1.0, -2.0), special_gradient=False),
    row("pow of negatives", POWERS, xgrad.pow, "pow", Sample((a(3, low=-2, high=-1), 3)), Sample((a(3, low=-2, high=-1), 2.0)),
        Sample((np.zeros(2), 2)), Sample((np.zeros(2), 1)), Sample((a(3), 0)), Sample((a(3), 1))),
    unary("negative", EXACT),
    unary("positive", EXACT),
    unary("abs", EXACT, special=SPECIAL[:-1]),  # of NaN: as sign
    unary("square", ROUNDED),
    unary("reciprocal", ROUNDED, low=0.5),
    binary("remainder", ROUNDED, low=0.6, low2=0.6, scalars=(), special=()),
    binary("maximum", SELECTED),
    binary("minimum", SELECTED),
    # exponentials, roots, trigonometry
    unary("exp", FUNCTIONS),
    unary("expm1", FUNCTIONS),
    unary("log", FUNCTIONS, low=0.2),
    unary("log1p", FUNCTIONS, low=-0.5),
    unary("sqrt", ROOTS, low=0.2),
    unary("sin", FUNCTIONS),
    unary("cos", FUNCTIONS),
    unary("tan", FUNCTIONS, low=-1, high=1),
    unary("tanh", SATURATING),
    unary("sigmoid", COMPOSED),
    unary("relu", EXACT),
    unary("softplus", COMPOSED, "nn.functional.softplus", special=(0.0, 1.0, -1.0, 15.0, -15.0, 1e4, -1e4, INF, NAN)),
    # steps
    unary("sign", EXACT, special=SPECIAL[:-1]),  # of NaN: NaN by the standard, 0 in PyTorch
    unary("floor", EXACT),
    unary("ceil", EXACT),
    unary("trunc", EXACT),
    unary("round", EXACT),
    # choosing
    row("where", SELECTED, lambda x, y, c: xgrad.where(c, x, y), lambda x, y, c: torch.where(c, x, y),
        Sample((a(2, 3), a(2, 3, key=1), MASK)), Sample((a(3), a(2, 1), MASK)), Sample((a(), a(2, 3), MASK)),
        Sample((a(2, 3), 0.5, MASK)), Sample((1.5, a(2, 3), MASK)), Sample((a(0, 3), a(3), MASK[:0]))),
    row("clip", SELECTED, xgrad.clip, pytorch.clip,
        Sample((a(2, 3), -1.0, 1.0)), Sample((a(2, 3), None, 0.5)), Sample((a(2, 3), -0.5, None)), Sample((a(2, 3),)),
        Sample((a(2, 3), a(3, low=-1, high=0), a(2, 1, low=0, high=1))), Sample((a(4), a(4, key=1), None)),
        Sample((a(4), a(4, key=1), a(4, key=2))), Sample((a(), -0.1, 0.1)), Sample((a(0), -1.0, 1.0))),
    # reductions
    reduction("sum", SUMS, pytorch.reduction("sum")),
    reduction("mean", SUMS, pytorch.reduction("mean"), empty=False),
    reduction("max", EXACT, pytorch.extremum("amax"), empty=False),
    reduction("min", EXACT, pytorch.extremum("amin"), empty=False),
    row("max with ties", EXACT, xgrad.max, pytorch.extremum("amax"), Sample((np.array([1.0, 3.0, 3.0]),)),
        Sample((np.array([[1.0, 1.0], [2.0, 1.0]]),), {"axis": 1}), no_derivative=TIE),
    reduction("prod", PRODUCTS, pytorch.prod),
    row("prod through zeros", PRODUCTS, xgrad.prod, pytorch.prod, Sample((np.array([2.0, 0.0, 3.0, 4.0]),)),
        Sample((np.array([2.0, 0.0, 3.0, 0.0]),)), Sample((np.array([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]),), {"axis": 0})),
    reduction("var", SUMS, pytorch.reduction("var"), empty=False),
    row("var with a correction", SUMS, xgrad.var, pytorch.reduction("var"), Sample((a(2, 3),), {"axis": 1, "correction": 1}),
        Sample((a(5),), {"correction": 1.5})),
    row("std", SUMS, xgrad.std, pytorch.reduction("std"), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 1}),
        Sample((a(2, 3),), {"axis": 0, "keepdims": True, "correction": 1}), Sample((a(2, 3, 2),), {"axis": (0, 2)}),
        Sample((a(2, 3),), {"axis": 1}, "transposed")),
    reduction("logsumexp", COMPOSED, pytorch.reduction("logsumexp"), empty=False),
    row("cumulative_sum", SUMS, xgrad.cumulative_sum, pytorch.cumulative_sum, Sample((a(4),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(2, 3),), {"axis": -1, "include_initial": True}), Sample((a(4),), {"include_initial": True}),
        Sample((a(0),)), Sample((a(2, 3),), {"axis": 1}, "transposed")),
    # shapes
    row("reshape", EXACT, xgrad.reshape, lambda x, shape: torch.reshape(x, shape), Sample((a(2, 3),), {"shape": (3, 2)}),
        Sample((a(2, 3),), {"shape": (-1,)}), Sample((a(),), {"shape": (1, 1)}), Sample((a(0, 3),), {"shape": (3, 0)}),
        Sample((a(2, 3),), {"shape": (6,)}, "transposed")),
    row("permute_dims", EXACT, xgrad.permute_dims, lambda x, axes: torch.permute(x, axes), Sample((a(2, 3, 4),), {"axes": (2, 0, 1)}),
        Sample((a(2, 3),), {"axes": (-1, 0)}), Sample((a(),), {"axes": ()}), Sample((a(2, 0),), {"axes": (1, 0)})),
    row("matrix_transpose", EXACT, xgrad.matrix_transpose, lambda x: x.mT, Sample((a(2, 3),)), Sample((a(2, 3, 4),)), Sample((a(0, 3),))),
    row("expand_dims", EXACT, xgrad.expand_dims, lambda x, axis=0: torch.unsqueeze(x, axis), Sample((a(2, 3),), {"axis": 1}),
        Sample((a(2),), {"axis": -1}), Sample((a(),)), Sample((a(0),), {"axis": 0})),
    row("squeeze", EXACT, xgrad.squeeze, lambda x, axis: torch.squeeze(x, axis), Sample((a(2, 1, 3),), {"axis": 1}),
        Sample((a(1, 2, 1),), {"axis": (0, -1)}), Sample((a(1),), {"axis": 0})),
    row("broadcast_to", SELECTED, xgrad.broadcast_to, lambda x, shape: torch.broadcast_to(x, shape), Sample((a(3),), {"shape": (2, 3)}),
        Sample((a(2, 1),), {"shape": (2, 4)}), Sample((a(),), {"shape": (2, 2)}), Sample((a(1),), {"shape": (0,)})),
    row("flip", EXACT, xgrad.flip, pytorch.flip,
        Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 2),), {"axis": (0, -1)}), Sample((a(0),))),
    row("concat", EXACT, lambda *xs, axis=0: xgrad.concat(xs, axis=axis), lambda *xs, axis=0: torch.cat([x.reshape(-1) for x in xs] if axis is None else xs, axis or 0),
        Sample((a(2, 3), a(1, 3, key=1))), Sample((a(2, 3), a(2, 1), a(2, 0)), {"axis": 1}), Sample((a(2), a(3)), {"axis": -1}),
        Sample((a(2, 2), a(3)), {"axis": None}), Sample((a(2),))),
    row("stack", EXACT, lambda *xs, axis=0: xgrad.stack(xs, axis=axis), lambda *xs, axis=0: torch.stack(xs, axis),
        Sample((a(2, 3), a(2, 3, key=1))), Sample((a(2), a(2, key=1), a(2, key=2)), {"axis": -1}), Sample((a(), a(key=1))), Sample((a(0),))),
    row("unstack", EXACT, xgrad.unstack, lambda x, axis=0: torch.unbind(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": -1}),
        Sample((a(3),))),
    # indexing
    row("getitem", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": 1}), Sample((a(4),), {"key": -1}), Sample((a(4),), {"key": slice(1, None, 2)}),
        Sample((a(2, 3),), {"key": (slice(None), 1)}), Sample((a(2, 3),), {"key": (Ellipsis, None, slice(0, 2))}),
        Sample((a(2, 3, 2),), {"key": (1, Ellipsis)}), Sample((a(),), {"key": ()}), Sample((a(4),), {"key": slice(2, 2)}),
        Sample((a(2, 3),), {"key": (1, 2)}), Sample((a(2, 3),), {"key": (slice(None), slice(1, None))}, "transposed")),
    row("getitem with negative steps", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": slice(None, None, -1)}), Sample((a(5),), {"key": slice(4, 0, -2)}),
        Sample((a(2, 3),), {"key": (None, 1, slice(None, None, -1))}),
        Sample((a(2, 3),), {"key": (slice(None), slice(None, None, -1))}, "transposed"),
        not_on={"torch": "PyTorch's arrays take no negative steps"}),
    row("getitem with integer arrays", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": (ints(0, 2, 2, -1),)}), Sample((a(2, 3),), {"key": (ints(0, 1, 0), ints(2, 2, 2))}),
        Sample((a(2, 3),), {"key": (ints([0], [1]), ints(2, 0))}), Sample((a(2, 3),), {"key": (1, ints(2, 2, 0))})),
    row("getitem with integer arrays and slices", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4, 2),), {"key": ints(0, 0, 3)}), Sample((a(2, 3),), {"key": (slice(None), ints(1, 1))}),
        Sample((a(2, 3, 2),), {"key": (ints(0, 0), slice(None), ints(1, 1))}),
        Sample((a(3),), {"key": ints()}), not_on=NON_STANDARD_KEY),
    row("getitem with a mask", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(2, 3),), {"key": MASK}), Sample((a(2, 3),), {"key": (slice(None), MASK[0])}), Sample((a(2, 3),), {"key": ~MASK & MASK}),
        not_on=STRICT_FLAGS),
    row("setitem", SELECTED, lambda x, value, key: xgrad.ops.setitem(x, key, value), pytorch.setitem,
        Sample((a(4), a(2)), {"key": slice(1, 3)}), Sample((a(4), a()), {"key": 1}), Sample((a(2, 3), a(3)), {"key": Ellipsis}),
        Sample((a(2, 3), 0.5), {"key": (slice(None), 1)}), Sample((a(2, 3), a(2, 1)), {"key": (slice(None), slice(0, 2))})),
    row("scatter", SUMS, lambda x, key: xgrad.ops.scatter(x, key, (4,)), pytorch.scatter,
        Sample((a(3),), {"key": (ints(0, 0, 2),)}), Sample((a(4),), {"key": (ints(3, 3, 3, 3),)})),
    row("take", SELECTED, xgrad.take, lambda x, i, axis=0: torch.index_select(x, axis, i), Sample((a(4), ints(0, 0, 3))),
        Sample((a(2, 3), ints(2, 0)), {"axis": 1}), Sample((a(2, 3), ints(1, 1, 0)), {"axis": 0}), Sample((a(2, 3), ints()), {"axis": -1})),
    row("take_along_axis", SELECTED, xgrad.take_along_axis, lambda x, i, axis=-1: torch.take_along_dim(x, i, axis),
        Sample((a(2, 3), ints([0, 0], [2, 1]))), Sample((a(2, 3), ints([0, 1, 1])), {"axis": 0}), Sample((a(4), ints(3, 3, 0)), {"axis": 0}),
        Sample((a(2, 3), ints([2])), {"axis": 1})),
    # products
    row("matmul", SUMS, xgrad.matmul, "matmul", Sample((a(2, 3), a(3, 4))), Sample((a(3), a(3, key=1))), Sample((a(3), a(3, 2))),
        Sample((a(2, 3), a(3))), Sample((a(4, 2, 3), a(4, 3, 2))), Sample((a(4, 2, 3), a(3, 2))), Sample((a(2, 3), a(4, 3, 2))),
        Sample((a(2, 1, 2, 3), a(3, 3, 2))), Sample((a(3), a(2, 3, 2))), Sample((a(2, 2, 3), a(3))),
        Sample((a(0, 3), a(3, 2))), Sample((a(2, 0), a(0, 2))), Sample((a(2, 3), a(3, 4)), {}, "transposed")),
    # types
    row("astype", EXACT, lambda x: xgrad.astype(x, xgrad.float64), lambda x: x.to(torch.float64), Sample((a(2, 3),)), Sample((a(),)), Sample((a(0),))),
    # networks
    row("linear", SUMS, F.linear, "nn.functional.linear", Sample((a(2, 3), a(4, 3), a(4))), Sample((a(2, 3), a(4, 3))),
        Sample((a(3), a(4, 3), a(4))), Sample((a(2, 2, 3), a(4, 3), a(4))), Sample((a(0, 3), a(4, 3), a(4))),
        Sample((a(2, 3), a(4, 3), a(4)), {}, "transposed")),
    row("softmax", COMPOSED, F.softmax, lambda x, axis=-1: torch.softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(4),)),
        Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    row("log_softmax", COMPOSED, F.log_softmax, lambda x, axis=-1: torch.log_softmax(x, axis), Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}),
        Sample((a(4),)), Sample((np.array([1e4, -1e4, 0.0]),)), Sample((np.array([[1e4, 1e4], [-1e4, -1e4]]),))),
    row("cross_entropy", COMPOSED, F.cross_entropy, "nn.functional.cross_entropy", Sample((a(4, 3), ints(0, 2, 1, 1))), Sample((a(3), np.array(1))),
        Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "sum"}), Sample((a(4, 3), ints(0, 2, 1, 1)), {"reduction": "none"}),
        Sample((a(2, 3, 2), ints([0, 2], [1, 1]))), Sample((a(4, 3), ints(0, 2, 1, 1)), {"label_smoothing": 0.1}),
        Sample((np.array([[1e4, -1e4], [1e4, -1e4]]), ints(0, 1))), Sample((a(2, 3), ints(0, 2)), {}, "transposed")),
    row("mse_loss", SUMS, F.mse_loss, "nn.functional.mse_loss", Sample((a(2, 3), a(2, 3, key=1))), Sample((a(4), a(4, key=1)), {"reduction": "sum"}),
        Sample((a(4), a(4, key=1)), {"reduction": "none"}), Sample((a(), a(key=1))), Sample((np.array([1e4, -1e4]), np.array([-1e4, 1e4])))),
    row("dropout by a mask", ROUNDED, lambda x, mask: F.nn._dropout(x, xgrad.astype(mask, x.dtype) * 1.25), lambda x, mask: x * mask * 1.25,
        Sample((a(2, 3), MASK)), Sample((a(2, 3), MASK), {}, "transposed"), Sample((a(0, 3), MASK[:0]))),
    # without a derivative
    *[binary(name, EXACT, torch_name, differentiable=False)
      for name, torch_name in [("equal", "eq"), ("not_equal", "ne"), ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge")]],
    binary("floor_divide", EXACT, low2=0.5, differentiable=False, special=()),
    *[unary(name, EXACT, differentiable=False) for name in ("isnan", "isinf", "isfinite")],
    *[row(name, EXACT, getattr(xgrad, name), name, Sample((MASK, ~MASK)), Sample((MASK, MASK[0])), differentiable=False)
      for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")],
    *[row(name, EXACT, getattr(xgrad, name), other, Sample((MASK,)), differentiable=False)
      for name, other in (("logical_not", "logical_not"), ("bitwise_invert", "bitwise_not"))],
    row("bitwise of integers", EXACT, xgrad.bitwise_and, "bitwise_and", Sample((ints(6, 5), ints(3, 4))), Sample((ints(6, 5), 3)), differentiable=False),
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=axis, keepdim=keepdims),
           Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3),), {"axis": -1, "keepdims": True}), differentiable=False)
      for name in ("argmax", "argmin")],
    *[row(name, EXACT, getattr(xgrad, name), lambda x, axis=None, keepdims=False, name=name: getattr(torch, name)(x, dim=pytorch.axes(x, axis), keepdim=keepdims),
           Sample((MASK,)), Sample((MASK,), {"axis": 0}), Sample((MASK,), {"axis": (0, 1), "keepdims": True}), differentiable=False)
      for name in ("any", "all")],
]  # fmt: skip


def find(name: str) -> Op:
    """Return the row of a name; KeyError if there is none."""
    return {op.name: op for op in OPS}[name]
