"""Cases of methods with PyTorch's names that are more than another name of a function."""

from __future__ import annotations

from typing import Any

from xgrad.parity.cases.indexing import NON_STANDARD_KEY
from xgrad.parity.op_case import OpCase, Sample, a, ints, op_case, sample
from xgrad.parity.tolerance import COMPOSED, EXACT, ROUNDED, SELECTED, SUMS, Tolerance

COLUMNS = ints([0, 2, 1], [2, 0, 2])  # indices that differ in each column
ROWS = ints([0, 2, 1], [2, 0, 1])
SAME = ints([0, 1, 1], [1, 0, 1])


def _case(name: str, tolerance: Tolerance, *samples: Sample, **fields: Any) -> OpCase:
    """Return the case of a method, compared with PyTorch's of the same name.

    A sample has the tensor and the arguments of the method. A name that begins with "Tensor." tells
    the method from the function of that name.
    """
    method = name.removeprefix("Tensor.").split(" ")[0]

    def call(*args: Any, **options: Any) -> Any:
        first, *others = args
        return getattr(first, method)(*others, **options)

    return op_case(name, tolerance, *samples, fn=call, torch=call, **fields)


CASES: list[OpCase] = [
    _case(
        "split",
        EXACT,
        sample((5,), split_size=2),
        sample((2, 4), split_size=3, dim=1),
        sample((2, 4), split_size=[1, 0, 3], dim=-1),
        sample((0, 2), split_size=2),
        sample((4, 3), split_size=2, layout="transposed"),
        complex=True,
    ),
    _case("chunk", EXACT, sample((5,), chunks=3), sample((2, 4), chunks=2, dim=1), complex=True),
    _case(
        "tensor_split",
        EXACT,
        sample((5,), 3),
        sample((2, 4), [1, 3], dim=1),
        sample((4,), [3, 1]),
    ),
    _case("narrow", EXACT, sample((2, 4), dim=1, start=1, length=2), complex=True),
    _case(
        "Tensor.unfold",
        SELECTED,
        sample((5,), dimension=0, size=3, step=1),
        sample((2, 5), dimension=1, size=2, step=2),
        sample((4, 3, 2), dimension=-3, size=2, step=1),
        sample((3,), dimension=0, size=0, step=2),
        sample((4, 3), dimension=0, size=2, step=1, layout="transposed"),
        complex=True,
    ),
    _case("rot90", EXACT, *[sample((2, 3), k=k) for k in (1, 2, -1, 0)]),
    _case(
        "scatter along an axis",
        SELECTED,
        sample((3, 3), 0, COLUMNS, (2, 3)),
        sample((2, 3), 1, ROWS, (2, 3)),
        unsupported=NON_STANDARD_KEY,
    ),
    _case(
        "scatter of a number",
        EXACT,
        sample((3, 3), 0, COLUMNS, 2.0),
        unsupported=NON_STANDARD_KEY,
    ),
    _case("scatter_add", SUMS, sample((2, 3), 0, SAME, (2, 3)), sample((2, 3), 1, SAME, (2, 3))),
    _case(
        "index_add along an axis",
        SUMS,
        sample((3, 2), 0, ints(2, 0, 2), (3, 2)),
        sample((2, 3), 1, ints(2, 0), (2, 2), alpha=2.0),
        unsupported=NON_STANDARD_KEY,
    ),
    _case(
        "index_copy", SELECTED, sample((3, 2), 0, ints(2, 0), (2, 2)), unsupported=NON_STANDARD_KEY
    ),
    _case("index_fill", EXACT, sample((3, 2), 0, ints(2, 0), 1.5), unsupported=NON_STANDARD_KEY),
    _case(
        "lerp",
        COMPOSED,
        sample((2, 3), (2, 3), 0.25),
        sample((2, 3), (2, 3), 0.75),
        sample((3,), (3,), (3,)),
        sample((2, 3), (3,), 1.0),
    ),
    _case("addcmul", COMPOSED, sample((2, 3), (2, 3), (3,), value=0.5)),
    _case("addcdiv", COMPOSED, sample((2, 3), (2, 3), a(3, low=1), value=0.5)),
    _case(
        "addmm",
        SUMS,
        sample((2, 4), (2, 3), (3, 4), beta=0.5, alpha=2.0),
        sample((4,), (2, 3), (3, 4)),
    ),
    _case("baddbmm", SUMS, sample((2, 2, 4), (2, 2, 3), (2, 3, 4), alpha=-1.0)),
    _case("frac", ROUNDED, sample(a(9, low=-9, high=9))),
    _case("Tensor.add with a factor", ROUNDED, sample((2, 3), (3,), alpha=2.0)),
    _case("Tensor.sub with a factor", ROUNDED, sample((2, 3), (3,), alpha=-2.0)),
]
