"""Cases of searching, sorting and set functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.cases.indexing import SHAPE_OF_DATA
from xgrad.parity.cases.statistical import TIE
from xgrad.parity.op_case import MASK, NAN, OpCase, ints, op_case, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import EXACT, SELECTED

SORTED = np.array([-1.0, 0.5, 0.5, 2.0])
TIES = np.array([[1.0, 0.0, 1.0, -0.0], [2.0, 2.0, 2.0, 1.0]])
REPEATED = np.array([[3.0, 1.0, 3.0], [-2.0, 1.0, 3.0]])
UNIQUE = (
    sample((2, 3)),
    sample(REPEATED),
    sample(ints([3, 1], [3, 3])),
    sample(MASK),
    sample(()),
    sample((0, 3)),
    sample(np.array([NAN, 1.0, NAN])),
)

CASES: list[OpCase] = [
    # searching
    op_case(
        "where",
        SELECTED,
        sample((2, 3), (2, 3), MASK),
        sample((3,), (2, 1), MASK),
        sample((), (2, 3), MASK),
        sample((2, 3), 0.5, MASK),
        sample(1.5, (2, 3), MASK),
        sample((0, 3), (3,), MASK[:0]),
        fn=lambda x, y, c: xgrad.where(c, x, y),
        torch=lambda x, y, c: torch.where(c, x, y),
        complex=True,
    ),
    *[
        op_case(
            name,
            EXACT,
            sample((2, 3)),
            sample((2, 3), axis=0),
            sample((2, 3), axis=-1, keepdims=True),
            sample(np.array([[1.0, 1.0], [0.0, 0.0]]), axis=1),
            sample(np.array([1.0, NAN, 3.0])),
            differentiable=False,
        )
        for name in ("argmax", "argmin")
    ],
    op_case(
        "count_nonzero",
        EXACT,
        sample((2, 3)),
        sample(MASK, axis=0),
        sample(MASK, axis=-1, keepdims=True),
        sample(ints([0, 2], [0, 0]), axis=(0, 1), keepdims=True),
        sample(()),
        sample((0, 3), axis=0),
        differentiable=False,
    ),
    op_case(
        "nonzero",
        EXACT,
        sample(MASK),
        sample(ints(0, 3, 0, -1)),
        sample(np.array([[0.0, -0.0, NAN]])),
        sample((0, 3)),
        differentiable=False,
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "searchsorted",
        EXACT,
        sample(SORTED, np.array([0.5, -2.0, 3.0])),
        sample(SORTED, np.array([[0.5, 1.0], [2.0, -1.0]]), side="right"),
        sample(SORTED[::-1].copy(), (3,), sorter=ints(3, 2, 1, 0)),
        sample(ints(1, 2, 4), ints(2, 3)),
        sample(ints(1, 2, 4), np.array([1.5, 2.0])),
        sample(SORTED, ()),
        sample(SORTED, 0.5),
        sample(ints(1, 2, 4), 2, side="right"),
        sample((0,), (2,)),
        torch=pytorch.searchsorted,
        differentiable=False,
    ),
    # sorting
    op_case(
        "sort",
        EXACT,
        sample((5,)),
        sample((2, 3), axis=0),
        sample((2, 3, 4), axis=-2, descending=True),
        sample((2, 3), stable=False),
        sample((0,)),
        sample((1, 3), axis=0, descending=True),
        sample((3, 4), layout="transposed"),
        sample((4,), descending=True, layout="reversed"),
    ),
    op_case(
        "sort with ties",
        EXACT,
        sample(TIES),
        sample(TIES, descending=True),
        sample(TIES, axis=0),
        no_derivative=TIE,
    ),
    op_case(
        "sort with NaN",
        EXACT,
        sample(np.array([1.0, NAN, -1.0, 3.0])),
        no_derivative="NaN has none",
    ),
    op_case(
        "argsort",
        EXACT,
        sample((5,)),
        sample((2, 3), axis=0),
        sample((2, 3, 4), axis=-2, descending=True),
        sample(TIES),
        sample(TIES, descending=True),
        sample(ints(3, 1, 3, 2)),
        sample((0,)),
        sample((3, 4), layout="transposed"),
        differentiable=False,
    ),
    # sets
    op_case(
        "isin",
        EXACT,
        sample(ints([3, 1], [2, 3]), ints(3, 5)),
        sample(ints(1, 2, 4), ints([2], [3]), invert=True),
        sample(ints(1, 2), 2),
        sample(2, ints(1, 2)),
        sample(ints(3, 1), ints()),
        sample(ints(), ints(1)),
        sample(ints(1), ints(1)[0]),
        differentiable=False,
    ),
    op_case(
        "isin of floats",
        EXACT,
        sample(REPEATED, np.array([3.0, NAN])),
        sample((2, 3), 0.5),
        sample(np.array([NAN, -0.0]), np.array([NAN, 0.0]), invert=True),
        differentiable=False,
        unsupported={"strict": "its isin takes integers alone"},
    ),
    op_case(
        "unique_values",
        EXACT,
        sample((5,)),
        sample((2, 3)),
        sample(()),
        sample((0,)),
        sample((2, 3), layout="transposed"),
        torch=lambda x: pytorch.unique_all(x)[0],
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "unique_values of repeated ones",
        EXACT,
        sample(REPEATED),
        torch=lambda x: pytorch.unique_all(x)[0],
        unsupported=SHAPE_OF_DATA,
        no_derivative=TIE,
    ),
    op_case(
        "unique_all",
        EXACT,
        *UNIQUE,
        torch=pytorch.unique_all,
        differentiable=False,
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "unique_counts",
        EXACT,
        *UNIQUE,
        torch=lambda x: pytorch.unique_all(x)[::3],
        differentiable=False,
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "unique_inverse",
        EXACT,
        *UNIQUE,
        torch=lambda x: pytorch.unique_all(x)[::2],
        differentiable=False,
        unsupported=SHAPE_OF_DATA,
    ),
]
