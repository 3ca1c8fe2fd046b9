"""Cases of manipulation functions, the matrix transpose, casting, and functions that create arrays
from arrays.
"""

from __future__ import annotations

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.cases.indexing import SHAPE_OF_DATA
from xgrad.parity.op_case import OpCase, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import EXACT, SELECTED, SUMS

TRIANGLES = [
    sample((3, 3)),
    sample((2, 4), k=1),
    sample((4, 2), k=-1),
    sample((2, 2, 3), k=-5),
    sample((0, 2)),
    sample((3, 2), layout="transposed"),
]

CASES: list[OpCase] = [
    op_case(
        "reshape",
        EXACT,
        sample((2, 3), shape=(3, 2)),
        sample((2, 3), shape=(-1,)),
        sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0)),
        sample((2, 3), shape=(6,), layout="transposed"),
        complex=True,
    ),
    op_case(
        "reshape into a copy",
        EXACT,
        sample((2, 3)),
        sample((2, 3), layout="transposed"),
        fn=lambda x: xgrad.reshape(x, (3, 2), copy=True),
        torch=lambda x: torch.reshape(x, (3, 2)),
        complex=True,
    ),
    op_case(
        "permute_dims",
        EXACT,
        sample((2, 3, 4), axes=(2, 0, 1)),
        sample((2, 3), axes=(-1, 0)),
        sample((2, 3, 4), axes=(-1, 0, -2)),
        sample((), axes=()),
        sample((2, 0), axes=(1, 0)),
        complex=True,
    ),
    op_case(
        "matrix_transpose", EXACT, sample((2, 3)), sample((2, 3, 4)), sample((0, 3)), complex=True
    ),
    op_case(
        "expand_dims",
        EXACT,
        sample((2, 3), axis=1),
        sample((2, 3), axis=(0, -2)),
        sample((2, 3), axis=(-5, 4, 1)),
        sample((2, 3), axis=()),
        sample((2,), axis=-1),
        sample((), axis=0),
        sample((0,), axis=0),
        torch=pytorch.expand_dims,
        complex=True,
    ),
    op_case(
        "squeeze",
        EXACT,
        sample((2, 1, 3), axis=1),
        sample((1, 2, 1), axis=(0, -1)),
        sample((1,), axis=0),
        complex=True,
    ),
    op_case(
        "broadcast_to",
        SELECTED,
        sample((3,), shape=(2, 3)),
        sample((2, 1), shape=(2, 4)),
        sample((), shape=(2, 2)),
        sample((1,), shape=(0,)),
        complex=True,
    ),
    op_case(
        "broadcast_arrays",
        SELECTED,
        sample((3,), (2, 1)),
        sample((), (2, 3), (3,)),
        sample((2,)),
        sample((0, 3), (1,)),
        fn=lambda *xs: xgrad.broadcast_arrays(*xs),
        complex=True,
    ),
    op_case(
        "moveaxis",
        EXACT,
        sample((2, 3, 4), source=0, destination=-1),
        sample((2, 3, 4), source=(0, -1), destination=(1, 0)),
        sample((2, 3, 1, 2), source=(3, 0), destination=(-4, 2)),
        sample((2, 0), source=1, destination=0),
        fn=lambda x, source, destination: xgrad.moveaxis(x, source, destination),
        torch=lambda x, source, destination: torch.movedim(x, source, destination),
        complex=True,
    ),
    op_case(
        "roll",
        EXACT,
        sample((4,), shift=1),
        sample((2, 3), shift=-2),
        sample((2, 3), shift=4, axis=1),
        sample((2, 3, 2), shift=(1, -1), axis=(0, -2)),
        sample((3, 3), shift=2, axis=(0, 1)),
        sample((3, 3), shift=(1, 1), axis=(0, 0)),
        sample((), shift=1),
        sample((0, 3), shift=1, axis=0),
        sample((2, 3), shift=1, layout="transposed"),
        torch=pytorch.roll,
        complex=True,
    ),
    op_case(
        "repeat",
        SUMS,
        sample((3,), repeats=2),
        sample((2, 3), repeats=2),
        sample((2, 3, 2), repeats=3, axis=-2),
        sample((2, 3), repeats=0, axis=0),
        sample((), repeats=3),
        sample((), repeats=3, axis=0),
        sample((0, 3), repeats=2, axis=0),
        sample((2, 3), repeats=2, axis=1, layout="transposed"),
        fn=lambda x, repeats, axis=None: xgrad.repeat(x, repeats, axis=axis),
        torch=lambda x, repeats, axis=None: torch.repeat_interleave(
            x, repeats, axis if x.ndim else None
        ),
        complex=True,
    ),
    op_case(
        "repeat by an array",
        SUMS,
        sample((3,), ints(2, 0, 3)),
        sample((2, 2), ints(1, 0, 3, 2)),
        sample((2, 3, 2), ints(2, 1, 0), axis=1),
        sample((2, 3), ints(2), axis=-1),
        sample((0, 3), ints(), axis=0),
        fn=lambda x, repeats, axis=None: xgrad.repeat(x, repeats, axis=axis),
        torch=lambda x, repeats, axis=None: torch.repeat_interleave(x, repeats, axis),
        unsupported=SHAPE_OF_DATA,
        complex=True,
    ),
    op_case(
        "tile",
        SUMS,
        sample((3,), repetitions=(2,)),
        sample((2, 3), repetitions=(3,)),
        sample((2, 3), repetitions=(2, 1, 2)),
        sample((2, 3), repetitions=(1, 0)),
        sample((2,), repetitions=()),
        sample((), repetitions=(2, 2)),
        sample((0, 3), repetitions=(2, 2)),
        sample((2, 3), repetitions=(2, 2), layout="transposed"),
        fn=lambda x, repetitions: xgrad.tile(x, repetitions),
        torch=lambda x, repetitions: torch.tile(x, repetitions),
        complex=True,
    ),
    op_case(
        "flip",
        EXACT,
        sample((2, 3)),
        sample((2, 3), axis=0),
        sample((2, 3, 2), axis=(0, -1)),
        sample((0,)),
        complex=True,
    ),
    op_case(
        "concat",
        EXACT,
        sample((2, 3), (1, 3)),
        sample((2, 3), (2, 1), (2, 0), axis=1),
        sample((2,), (3,), axis=-1),
        sample((2, 2), (3,), axis=None),
        sample((2,)),
        fn=lambda *xs, axis=0: xgrad.concat(xs, axis=axis),
        torch=lambda *xs, axis=0: torch.cat(
            [x.reshape(-1) for x in xs] if axis is None else xs, axis or 0
        ),
        complex=True,
    ),
    op_case(
        "stack",
        EXACT,
        sample((2, 3), (2, 3)),
        sample((2,), (2,), (2,), axis=-1),
        sample((), ()),
        sample((0,)),
        fn=lambda *xs, axis=0: xgrad.stack(xs, axis=axis),
        torch=lambda *xs, axis=0: torch.stack(xs, axis),
        complex=True,
    ),
    op_case("unstack", EXACT, sample((2, 3)), sample((2, 3), axis=-1), sample((3,)), complex=True),
    # casting and creation
    op_case(
        "astype",
        EXACT,
        sample((2, 3)),
        sample(()),
        sample((0,)),
        fn=lambda x: xgrad.astype(x, xgrad.float64),
        torch=lambda x: x.to(torch.float64),
    ),
    *[op_case(name, EXACT, *TRIANGLES, complex=True) for name in ("tril", "triu")],
    op_case(
        "meshgrid",
        SELECTED,
        sample((2,), (3,)),
        sample((2,), (3,), indexing="ij"),
        sample((2,), (1,), (3,)),
        sample((0,), (2,)),
        sample((2,)),
        fn=lambda *xs, indexing="xy": tuple(xgrad.meshgrid(*xs, indexing=indexing)),
        torch=lambda *xs, indexing="xy": torch.meshgrid(*xs, indexing=indexing),
        complex=True,
    ),
    *[
        op_case(
            name,
            EXACT,
            sample((2, 3)),
            sample((0,)),
            sample((2, 3), layout="transposed"),
            torch=name,
            differentiable=False,
        )
        for name in ("zeros_like", "ones_like")
    ],
    op_case(
        "full_like",
        SELECTED,
        sample(()),
        fn=lambda value: xgrad.full_like(
            xgrad.zeros((2, 3), dtype=value.dtype, device=value.device), value
        ),
        torch=lambda value: value.expand(2, 3),
    ),
]
