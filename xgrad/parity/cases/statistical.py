"""Cases of statistics and utilities: reductions, cumulative sums and products, differences."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.op_case import MASK, OpCase, op_case, reduction, sample
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, EXACT, PRODUCTS, SUMS

TIE = "a tie has no derivative"
ZEROS = np.array([1 + 2j, 0, 3 - 1j, 0, 2j])


def _diff_with_ends(
    x: xgrad.Tensor, prepend: xgrad.Tensor, append: xgrad.Tensor, **options: int
) -> xgrad.Tensor:
    return xgrad.diff(x, prepend=prepend, append=append, **options)


CASES: list[OpCase] = [
    # reductions
    reduction("sum", SUMS, complex=True),
    reduction("mean", SUMS, empty=False, complex=True),
    reduction("max", EXACT, empty=False),
    reduction("min", EXACT, empty=False),
    op_case(
        "max with ties",
        EXACT,
        sample(np.array([1.0, 3.0, 3.0])),
        sample(np.array([[1.0, 1.0], [2.0, 1.0]]), axis=1),
        no_derivative=TIE,
    ),
    reduction("prod", PRODUCTS, complex=True),
    op_case(
        "prod through zeros",
        PRODUCTS,
        sample(np.array([2.0, 0.0, 3.0, 4.0])),
        sample(np.array([2.0, 0.0, 3.0, 0.0])),
        sample(np.array([[0.0, 2.0], [3.0, 0.0], [4.0, 0.0]]), axis=0),
        sample(
            np.array([[[0.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [4.0, 0.0]]]),
            axis=(0, 2),
            keepdims=True,
        ),
        sample(ZEROS),
    ),
    reduction("var", SUMS, empty=False),
    op_case(
        "var with a correction",
        SUMS,
        sample((2, 3), axis=1, correction=1),
        sample((5,), correction=1.5),
        torch=lambda x, axis=None, correction=0: torch.var(x, axis, correction=correction),
    ),
    op_case(
        "std",
        SUMS,
        sample((2, 3)),
        sample((2, 3), axis=1),
        sample((2, 3), axis=0, keepdims=True, correction=1),
        sample((2, 3, 2), axis=(0, 2)),
        sample((2, 3), axis=1, layout="transposed"),
    ),
    op_case(
        "std of equal numbers",
        SUMS,
        sample(np.array([[2.0, 2.0], [1.0, 3.0]]), axis=1),
        sample(np.zeros(3)),
        no_derivative="it has a kink at 0",
    ),
    reduction("logsumexp", COMPOSED, pytorch.logsumexp, empty=False, complex=True),
    op_case(
        "logsumexp of nothing",
        COMPOSED,
        sample((0, 3), axis=0),
        sample((0,)),
        torch=pytorch.logsumexp,
        no_derivative="it is infinite",
    ),
    op_case(
        "sum in another dtype",
        SUMS,
        sample((2, 3), axis=1),
        fn=lambda x, **options: xgrad.astype(xgrad.sum(x, dtype=xgrad.float64, **options), x.dtype),
        torch=lambda x, axis: torch.sum(x.double(), axis).to(x.dtype),
    ),
    op_case(
        "cumulative_sum",
        SUMS,
        sample((4,)),
        sample((2, 3), axis=0),
        sample((2, 3), axis=-1, include_initial=True),
        sample((4,), include_initial=True),
        sample((0,)),
        sample((2, 3), axis=1, layout="transposed"),
        complex=True,
    ),
    op_case(
        "cumulative_prod",
        PRODUCTS,
        *[sample((n,)) for n in (1, 2, 5, 7, 8, 9, 16, 17)],
        sample((3, 2), axis=0),
        sample((2, 3, 2), axis=-2),
        sample((2, 3), axis=-1, include_initial=True),
        sample((4,), include_initial=True),
        sample((0,)),
        sample((2, 0), axis=1, include_initial=True),
        sample((1, 2), axis=0),
        sample((2, 3), axis=1, layout="transposed"),
        sample((4,), layout="reversed"),
        complex=True,
    ),
    op_case(
        "cumulative_prod through zeros",
        PRODUCTS,
        sample(np.array([2.0, 0.0, 3.0, 4.0])),
        sample(np.array([2.0, 0.0, 3.0, 0.0, 5.0])),
        sample(np.zeros(4)),
        sample(np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]]), axis=1),
        sample(ZEROS),
    ),
    # utility functions
    op_case(
        "diff",
        SUMS,
        sample((5,)),
        sample((3, 2), axis=0),
        sample((2, 5), n=3),
        sample((4, 2, 2), axis=-3, n=2),
        sample((3,), n=0),
        sample((3,), n=3),
        sample((2, 3), n=5),
        sample((1,)),
        sample((0, 3), axis=0),
        sample((2, 3), axis=1, layout="transposed"),
        torch=lambda x, axis=-1, n=1: torch.diff(x, dim=axis, n=n),
        complex=True,
    ),
    op_case(
        "diff with ends",
        SUMS,
        sample((3,), (1,), (2,)),
        sample((2, 3), (1, 3), (2, 3), axis=0, n=2),
        fn=_diff_with_ends,
        torch=lambda x, prepend, append, axis=-1, n=1: torch.diff(
            x, dim=axis, n=n, prepend=prepend, append=append
        ),
        complex=True,
    ),
    *[
        op_case(
            name,
            EXACT,
            sample(MASK),
            sample(MASK, axis=0),
            sample(MASK, axis=(0, 1), keepdims=True),
            differentiable=False,
        )
        for name in ("any", "all")
    ],
]
