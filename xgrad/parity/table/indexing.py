"""Rows of what reads and writes by index."""

from __future__ import annotations

import xgrad
from xgrad.ops.indexing import getitem_function
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import MASK, Op, Sample, a, ints, row
from xgrad.parity.tolerance import SELECTED, SUMS

NON_STANDARD_KEY = {"strict": "the standard does not have such keys"}
STRICT_FLAGS = {"strict": "the shape of the result depends on the data"}

ROWS: list[Op] = [
    row("getitem", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": 1}), Sample((a(4),), {"key": -1}), Sample((a(4),), {"key": slice(1, None, 2)}),
        Sample((a(2, 3),), {"key": (slice(None), 1)}), Sample((a(2, 3),), {"key": (Ellipsis, None, slice(0, 2))}),
        Sample((a(2, 3, 2),), {"key": (1, Ellipsis)}), Sample((a(),), {"key": ()}), Sample((a(4),), {"key": slice(2, 2)}),
        Sample((a(2, 3),), {"key": (1, 2)}), Sample((a(2, 3),), {"key": (slice(None), slice(1, None))}, "transposed"), complex=True),
    row("getitem with negative steps", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": slice(None, None, -1)}), Sample((a(5),), {"key": slice(4, 0, -2)}),
        Sample((a(2, 3),), {"key": (None, 1, slice(None, None, -1))}),
        Sample((a(2, 3),), {"key": (slice(None), slice(None, None, -1))}, "transposed"),
        not_on={"torch": "PyTorch's arrays take no negative steps"}, complex=True),
    row("getitem with integer arrays", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4),), {"key": (ints(0, 2, 2, -1),)}), Sample((a(2, 3),), {"key": (ints(0, 1, 0), ints(2, 2, 2))}),
        Sample((a(2, 3),), {"key": (ints([0], [1]), ints(2, 0))}), Sample((a(2, 3),), {"key": (1, ints(2, 2, 0))}), complex=True),
    row("getitem with integer arrays and slices", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(4, 2),), {"key": ints(0, 0, 3)}), Sample((a(2, 3),), {"key": (slice(None), ints(1, 1))}),
        Sample((a(2, 3, 2),), {"key": (ints(0, 0), slice(None), ints(1, 1))}),
        Sample((a(3),), {"key": ints()}), not_on=NON_STANDARD_KEY, complex=True),
    row("getitem with a mask", SELECTED, xgrad.ops.getitem, pytorch.getitem,
        Sample((a(2, 3),), {"key": MASK}), Sample((a(2, 3),), {"key": (slice(None), MASK[0])}), Sample((a(2, 3),), {"key": ~MASK & MASK}),
        not_on=STRICT_FLAGS, complex=True),
    row("setitem", SELECTED, lambda x, value, key: xgrad.ops.setitem(x, key, value), pytorch.setitem,
        Sample((a(4), a(2)), {"key": slice(1, 3)}), Sample((a(4), a()), {"key": 1}), Sample((a(2, 3), a(3)), {"key": Ellipsis}),
        Sample((a(2, 3), 0.5), {"key": (slice(None), 1)}), Sample((a(2, 3), a(2, 1)), {"key": (slice(None), slice(0, 2))}), complex=True),
    row("setitem with integer arrays", SELECTED, lambda x, value, key: xgrad.ops.setitem(x, key, value), pytorch.setitem,
        Sample((a(4), a(2)), {"key": ints(2, 0)}), Sample((a(2, 3), a(2)), {"key": (ints(0, 1), ints(2, 2))}), Sample((a(3, 2), a(2, 2)), {"key": ints(2, 0)}),
        Sample((a(2, 3), 0.5), {"key": (slice(None), ints(0, 2))}), Sample((a(3), a()), {"key": ints()}), not_on=NON_STANDARD_KEY, complex=True),
    row("put", SELECTED, lambda x, value, axes: xgrad.ops.put(x, value, xgrad.permute_dims, axes=axes),
        lambda x, value, axes: torch.permute(value, sorted(range(len(axes)), key=axes.__getitem__)) + 0 * x,
        Sample((a(2, 3), a(3, 2)), {"axes": (1, 0)}), Sample((a(2, 3, 2), a(3, 2, 2)), {"axes": (1, 2, 0)}), Sample((a(), a()), {"axes": ()}),
        Sample((a(2, 0), a(0, 2)), {"axes": (1, 0)}), Sample((a(2, 3), a(3, 2)), {"axes": (1, 0)}, "transposed"), complex=True),
    row("put of a part", SELECTED, lambda x, value, key: xgrad.ops.put(x, value, getitem_function, key=key), pytorch.setitem,
        Sample((a(4), a(2)), {"key": slice(1, 3)}), Sample((a(2, 3), a(2)), {"key": (slice(None), 1)}),
        Sample((a(2, 3), a(3)), {"key": (1, Ellipsis)}), Sample((a(4), a(2)), {"key": slice(1, 3)}, "reversed"), complex=True),
    row("index_add", SUMS, lambda x, value, key: xgrad.ops.index_add(x, key, value), pytorch.index_add,
        Sample((a(4), a(3)), {"key": (ints(0, 0, 2),)}), Sample((a(2, 3), a()), {"key": (ints(1, 1), ints(2, 2))}), complex=True),
    row("scatter", SUMS, lambda x, key: xgrad.ops.scatter(x, key, (4,)), pytorch.scatter,
        Sample((a(3),), {"key": (ints(0, 0, 2),)}), Sample((a(4),), {"key": (ints(3, 3, 3, 3),)}), complex=True),
    row("take", SELECTED, xgrad.take, lambda x, i, axis=0: torch.index_select(x, axis, i), Sample((a(4), ints(0, 0, 3))),
        Sample((a(2, 3), ints(2, 0)), {"axis": 1}), Sample((a(2, 3), ints(1, 1, 0)), {"axis": 0}), Sample((a(2, 3), ints()), {"axis": -1}),
        Sample((a(2, 3, 2), ints(2, 2, 0, 2)), {"axis": -2}), Sample((a(3, 2), ints(0, 0)), {"axis": 1}, "transposed"), complex=True),
    row("take_along_axis", SELECTED, xgrad.take_along_axis, lambda x, i, axis=-1: torch.take_along_dim(x, i, axis),
        Sample((a(2, 3), ints([0, 0], [2, 1]))), Sample((a(2, 3), ints([0, 1, 1])), {"axis": 0}), Sample((a(4), ints(3, 3, 0)), {"axis": 0}),
        Sample((a(2, 3), ints([2])), {"axis": 1}), Sample((a(2, 3, 2), ints([[0, 1]], [[1, 1]])), {"axis": -2}), Sample((a(1, 3), ints([0, 0], [2, 2]))),
        Sample((a(2, 3, 2), ints([[0], [1], [1]])), {"axis": 0}), Sample((a(2, 3), ints([], [])), {"axis": 1}), Sample((a(2, 3), ints([0, 0], [1, 1])), {}, "transposed"), complex=True),
]  # fmt: skip
