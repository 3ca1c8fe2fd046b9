"""Cases of indexing: reads and writes."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.ops.indexing import getitem_function
from xgrad.parity import pytorch
from xgrad.parity.op_case import MASK, OpCase, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import SELECTED, SUMS

NON_STANDARD_KEY = {"strict": "the standard does not have such keys"}
SHAPE_OF_DATA = {"strict": "the shape of the result depends on the data"}


def _torch_setitem(x: Any, value: Any, key: Any) -> Any:
    x = x * 1
    x[key] = value
    return x


CASES: list[OpCase] = [
    op_case(
        "getitem",
        SELECTED,
        sample((4,), key=1),
        sample((4,), key=-1),
        sample((4,), key=slice(1, None, 2)),
        sample((2, 3), key=(slice(None), 1)),
        sample((2, 3), key=(Ellipsis, None, slice(0, 2))),
        sample((2, 3, 2), key=(1, Ellipsis)),
        sample((), key=()),
        sample((4,), key=slice(2, 2)),
        sample((2, 3), key=(1, 2)),
        sample((2, 3), key=(slice(None), slice(1, None)), layout="transposed"),
        fn=xgrad.ops.getitem,
        torch=pytorch.getitem,
        complex=True,
    ),
    op_case(
        "getitem with negative steps",
        SELECTED,
        sample((4,), key=slice(None, None, -1)),
        sample((5,), key=slice(4, 0, -2)),
        sample((2, 3), key=(None, 1, slice(None, None, -1))),
        sample((2, 3), key=(slice(None), slice(None, None, -1)), layout="transposed"),
        fn=xgrad.ops.getitem,
        torch=pytorch.getitem,
        unsupported={"torch": "PyTorch's arrays take no negative steps"},
        complex=True,
    ),
    op_case(
        "getitem with integer arrays",
        SELECTED,
        sample((4,), key=(ints(0, 2, 2, -1),)),
        sample((2, 3), key=(ints(0, 1, 0), ints(2, 2, 2))),
        sample((2, 3), key=(ints([0], [1]), ints(2, 0))),
        sample((2, 3), key=(1, ints(2, 2, 0))),
        fn=xgrad.ops.getitem,
        torch=pytorch.getitem,
        complex=True,
    ),
    op_case(
        "getitem with integer arrays and slices",
        SELECTED,
        sample((4, 2), key=ints(0, 0, 3)),
        sample((2, 3), key=(slice(None), ints(1, 1))),
        sample((2, 3, 2), key=(ints(0, 0), slice(None), ints(1, 1))),
        sample((3,), key=ints()),
        fn=xgrad.ops.getitem,
        torch=pytorch.getitem,
        unsupported=NON_STANDARD_KEY,
        complex=True,
    ),
    op_case(
        "getitem with a mask",
        SELECTED,
        sample((2, 3), key=MASK),
        sample((2, 3), key=(slice(None), MASK[0])),
        sample((2, 3), key=~MASK & MASK),
        fn=xgrad.ops.getitem,
        torch=pytorch.getitem,
        unsupported=SHAPE_OF_DATA,
        complex=True,
    ),
    op_case(
        "setitem",
        SELECTED,
        sample((4,), (2,), key=slice(1, 3)),
        sample((4,), (), key=1),
        sample((2, 3), (3,), key=Ellipsis),
        sample((2, 3), 0.5, key=(slice(None), 1)),
        sample((2, 3), (2, 1), key=(slice(None), slice(0, 2))),
        fn=lambda x, value, key: xgrad.ops.setitem(x, key, value),
        torch=_torch_setitem,
        complex=True,
    ),
    op_case(
        "setitem with integer arrays",
        SELECTED,
        sample((4,), (2,), key=ints(2, 0)),
        sample((2, 3), (2,), key=(ints(0, 1), ints(2, 2))),
        sample((3, 2), (2, 2), key=ints(2, 0)),
        sample((2, 3), 0.5, key=(slice(None), ints(0, 2))),
        sample((3,), (), key=ints()),
        fn=lambda x, value, key: xgrad.ops.setitem(x, key, value),
        torch=_torch_setitem,
        unsupported=NON_STANDARD_KEY,
        complex=True,
    ),
    op_case(
        "put",
        SELECTED,
        sample((2, 3), (3, 2), axes=(1, 0)),
        sample((2, 3, 2), (3, 2, 2), axes=(1, 2, 0)),
        sample((), (), axes=()),
        sample((2, 0), (0, 2), axes=(1, 0)),
        sample((2, 3), (3, 2), axes=(1, 0), layout="transposed"),
        fn=lambda x, value, axes: xgrad.ops.put(x, value, xgrad.permute_dims, axes=axes),
        torch=lambda x, value, axes: (
            torch.permute(value, sorted(range(len(axes)), key=axes.__getitem__)) + 0 * x
        ),
        complex=True,
    ),
    op_case(
        "put of a part",
        SELECTED,
        sample((4,), (2,), key=slice(1, 3)),
        sample((2, 3), (2,), key=(slice(None), 1)),
        sample((2, 3), (3,), key=(1, Ellipsis)),
        sample((4,), (2,), key=slice(1, 3), layout="reversed"),
        fn=lambda x, value, key: xgrad.ops.put(x, value, getitem_function, key=key),
        torch=_torch_setitem,
        complex=True,
    ),
    op_case(
        "index_add",
        SUMS,
        sample((4,), (3,), key=(ints(0, 0, 2),)),
        sample((2, 3), (), key=(ints(1, 1), ints(2, 2))),
        fn=lambda x, value, key: xgrad.ops.index_add(x, key, value),
        torch=lambda x, value, key: torch.index_put(
            x, tuple(map(torch.as_tensor, key)), value, accumulate=True
        ),
        complex=True,
    ),
    op_case(
        "scatter",
        SUMS,
        sample((3,), key=(ints(0, 0, 2),)),
        sample((4,), key=(ints(3, 3, 3, 3),)),
        fn=lambda x, key: xgrad.ops.scatter(x, key, (4,)),
        torch=lambda x, key: torch.zeros(4, dtype=x.dtype).index_add(0, torch.as_tensor(key[0]), x),
        complex=True,
    ),
    op_case(
        "take",
        SELECTED,
        sample((4,), ints(0, 0, 3)),
        sample((2, 3), ints(2, 0), axis=1),
        sample((2, 3), ints(1, 1, 0), axis=0),
        sample((2, 3), ints(), axis=-1),
        sample((2, 3, 2), ints(2, 2, 0, 2), axis=-2),
        sample((3, 2), ints(0, 0), axis=1, layout="transposed"),
        torch=lambda x, i, axis=0: torch.index_select(x, axis, i),
        complex=True,
    ),
    op_case(
        "take_along_axis",
        SELECTED,
        sample((2, 3), ints([0, 0], [2, 1])),
        sample((2, 3), ints([0, 1, 1]), axis=0),
        sample((4,), ints(3, 3, 0), axis=0),
        sample((2, 3), ints([2]), axis=1),
        sample((2, 3, 2), ints([[0, 1]], [[1, 1]]), axis=-2),
        sample((1, 3), ints([0, 0], [2, 2])),
        sample((2, 3, 2), ints([[0], [1], [1]]), axis=0),
        sample((2, 3), ints([], []), axis=1),
        sample((2, 3), ints([0, 0], [1, 1]), layout="transposed"),
        torch=lambda x, i, axis=-1: torch.take_along_dim(x, i, axis),
        complex=True,
    ),
]
