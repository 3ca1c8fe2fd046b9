"""Cases of functions of NumPy that the standard lacks: statistics, counts, remainders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import xgrad
from xgrad.parity.cases.indexing import SHAPE_OF_DATA
from xgrad.parity.op_case import INF, NAN, OpCase, a, binary, ints, op_case, reduction, sample
from xgrad.parity.pytorch import all_axes, torch
from xgrad.parity.tolerance import COMPOSED, EXACT, MATRICES, ROUNDED, SUMS

HOLES = np.array([[1.0, NAN, 3.0, -2.0], [NAN, NAN, NAN, NAN], [0.5, 4.0, NAN, -1.5]])
GRID = np.array([0.0, 0.5, 1.5, 2.5])
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _rows(x: Any, axis: Any, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
    """Return the reduced elements along a last axis, and the shape of the result."""
    axes = [i % x.ndim for i in np.atleast_1d(all_axes(x, axis))] if x.ndim else []
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.permute([*kept, *axes]).reshape(
        [*[x.shape[i] for i in kept], math.prod([x.shape[i] for i in axes])]
    )
    return rows, tuple(
        [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i in kept]
    )


def _quantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    rows, shape = _rows(x, axis, keepdims)
    parts = torch.as_tensor(q, dtype=x.dtype)
    out = torch.quantile(rows, parts, dim=-1, interpolation=method)
    return out.reshape((*parts.shape, *shape))


def _median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _quantile(x, 0.5, axis, "midpoint", keepdims)


def _nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    rows, shape = _rows(x, axis, keepdims)
    return torch.nanquantile(rows, 0.5, dim=-1, interpolation="midpoint").reshape(shape)


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    return torch.bincount(x, weights, minlength)


def _histogram(x: Any, weights: Any = None, **options: Any) -> xgrad.Tensor:
    return xgrad.histogram(x, weights=weights, **options).hist


def _histogram_of_torch(
    x: Any, weights: Any = None, bins: Any = 10, range: Any = None, density: bool = False
) -> Any:
    kept = {} if range is None else {"range": range}
    bins = bins if isinstance(bins, int) else torch.as_tensor(bins, dtype=x.dtype)
    hist = torch.histogram(x, bins, weight=weights, density=density, **kept)[0]
    return hist if density or weights is not None else hist.to(torch.int64)


def _interp(x: Any, points: Any, values: Any, left: Any = None, right: Any = None) -> Any:
    """Return a sum over intervals, each of which is where the points are."""
    total = torch.where(x < points[0], values[0] if left is None else left, 0.0)
    total = total + torch.where(x > points[-1], values[-1] if right is None else right, 0.0)
    for i in range(len(points) - 1):
        slope = (values[i + 1] - values[i]) / (points[i + 1] - points[i])
        inside = (x >= points[i]) & (x < points[i + 1])
        total = total + torch.where(inside, values[i] + slope * (x - points[i]), 0.0)
    return total


CASES: list[OpCase] = [
    binary(
        "fmod",
        ROUNDED,
        first=(-9, 9),
        second=(0.5, 3),
        scalars=((7.5, 2.0), (-7.5, -1.5)),
        no_derivative="",
    ),
    op_case(
        "fmod of integers",
        EXACT,
        sample(ints(7, -7, 7, -7, 0), ints(3, 3, -3, -3, 2)),
        sample(ints(7, -7), 4),
        sample(ints([-9], [5]), ints(2, -4)),
        torch=lambda x1, x2: torch.fmod(x1, torch.as_tensor(x2)),
        differentiable=False,
    ),
    op_case(
        "truncated_quotient",
        EXACT,
        sample(a(4, low=-9, high=9), a(4, low=1, high=3)),
        sample(a(2, 3), 0.5),
        fn=lambda x1, x2: x1.div(x2, rounding_mode="trunc"),
        torch=lambda x1, x2: torch.div(x1, x2, rounding_mode="trunc"),
    ),
    op_case(
        "truncated_quotient of integers",
        EXACT,
        sample(ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, -2)),
        sample(ints([-9], [5]), ints(2, -4)),
        fn=lambda x1, x2: x1.div(x2, rounding_mode="trunc"),
        torch=lambda x1, x2: torch.div(x1, x2, rounding_mode="trunc"),
        differentiable=False,
    ),
    op_case(
        "nan_to_num",
        EXACT,
        sample(HOLES),
        sample(np.array([INF, -INF, NAN, 1.0]), nan=2.0, posinf=3.0, neginf=-4.0),
        sample((2, 0)),
        sample((2, 3), layout="transposed"),
        no_derivative="a NaN has no neighbours",
    ),
    reduction(
        "nansum",
        SUMS,
        torch=lambda x, axis=None, keepdims=False: torch.nansum(
            x, dim=all_axes(x, axis), keepdim=keepdims
        ),
    ),
    op_case(
        "nansum with NaN",
        SUMS,
        *[sample(HOLES, axis=axis) for axis in (None, 0, 1)],
        torch=lambda x, axis: torch.nansum(x, dim=all_axes(x, axis)),
        no_derivative="a NaN has no neighbours",
    ),
    reduction(
        "nanmean",
        SUMS,
        empty=False,
        torch=lambda x, axis=None, keepdims=False: torch.nanmean(
            x, dim=all_axes(x, axis), keepdim=keepdims
        ),
    ),
    op_case(
        "nanmean with NaN",
        SUMS,
        *[sample(HOLES[::2], axis=axis) for axis in (None, 1)],
        torch=lambda x, axis: torch.nanmean(x, dim=all_axes(x, axis)),
        no_derivative="a NaN has no neighbours",
    ),
    op_case(
        "quantile",
        COMPOSED,
        *[sample((7,), q=q, method=method) for method in METHODS for q in (0.0, 0.3, 1.0)],
        *[sample((6,), q=[0.5, 0.1, 0.9], method=method) for method in METHODS],
        sample((3, 4), q=0.25, axis=0),
        sample((3, 4), q=[0.25], axis=-1, keepdims=True),
        sample((2, 3, 2), q=[0.4, 0.6], axis=(0, 2)),
        sample((2, 3, 2), q=0.4, axis=(-1, 0), keepdims=True),
        sample((), q=0.5),
        sample((3, 4), q=0.3, axis=0, layout="transposed"),
        fn=lambda x, q, **options: xgrad.quantile(x, q, **options),
        torch=_quantile,
    ),
    op_case(
        "median",
        ROUNDED,
        *[sample((n,)) for n in (1, 2, 5, 8)],
        sample((3, 4), axis=0),
        sample((3, 4), axis=1, keepdims=True),
        sample((2, 3, 2), axis=(0, 2)),
        sample(()),
        sample((3, 4), axis=0, layout="transposed"),
        torch=_median,
    ),
    op_case(
        "nanmedian",
        ROUNDED,
        *[sample((n,)) for n in (1, 2, 5, 8)],
        sample((3, 4), axis=1, keepdims=True),
        sample((2, 3, 2), axis=(0, 2)),
        sample(()),
        torch=_nanmedian,
    ),
    op_case(
        "nanmedian with NaN",
        ROUNDED,
        *[sample(HOLES, axis=axis) for axis in (None, 0, 1)],
        torch=_nanmedian,
        no_derivative="a NaN has no neighbours",
    ),
    op_case(
        "bincount",
        EXACT,
        sample(ints(0, 3, 1, 3)),
        sample(ints(0, 3, 1, 3), minlength=7),
        sample(ints()),
        sample(ints(), minlength=2),
        torch=_bincount,
        differentiable=False,
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "bincount of weights",
        SUMS,
        sample((4,)),
        fn=lambda x: xgrad.bincount(
            xgrad.asarray([0, 3, 1, 3], device=x.device), weights=x, minlength=5
        ),
        torch=lambda x: (
            torch.bincount(torch.tensor([0, 3, 1, 3]), x, 5)
            if not x.requires_grad
            else torch.zeros(5, dtype=x.dtype).index_add(0, torch.tensor([0, 3, 1, 3]), x)
        ),
        unsupported=SHAPE_OF_DATA,
    ),
    op_case(
        "histogram",
        EXACT,
        sample((9,)),
        sample((2, 5), bins=4),
        sample((20,), bins=3, range=(-1.0, 0.5)),
        sample(np.array([0.0, 1.0, 1.0, 2.0, 4.0, 5.0]), bins=[0.0, 1.0, 2.0, 4.0]),
        sample(np.array([2.0, 2.0]), bins=2),
        fn=_histogram,
        torch=_histogram_of_torch,
        differentiable=False,
    ),
    op_case(
        "histogram of weights",
        SUMS,
        sample((6,)),
        fn=lambda w: _histogram(
            xgrad.asarray([0.0, 1.0, 1.0, 2.0, 4.0, 5.0], dtype=w.dtype, device=w.device), w, bins=2
        ),
        torch=lambda w: torch.stack([w[:4].sum(), w[4:].sum()]),
    ),
    op_case(
        "cdist",
        SUMS,
        *[sample((3, 2), (4, 2), p=p) for p in (1.0, 2.0, 3.0, 0.5, INF)],
        sample((2, 3, 2), (2, 1, 2)),
        sample((3, 2), (2, 4, 2)),
        sample((0, 2), (4, 2)),
        sample((3, 2), (4, 2), layout="transposed"),
        torch=lambda x, y, p=2.0: (
            torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist")
            if not x.requires_grad
            else torch.linalg.vector_norm(x[..., :, None, :] - y[..., None, :, :], p, dim=-1)
        ),
    ),
    op_case(
        "cov",
        SUMS,
        sample((3, 5)),
        sample((2, 5), correction=0),
        sample((4,)),
        sample((2, 3), layout="transposed"),
        complex=True,
    ),
    op_case(
        "cov with weights",
        SUMS,
        sample((2, 4), a(4, low=0.5)),
        sample((1, 4), a(4, low=0.5)),
        fn=lambda x, w: xgrad.cov(
            x, fweights=xgrad.asarray([1, 3, 2, 1], device=x.device), aweights=w
        ),
        torch=lambda x, w: torch.cov(x, fweights=torch.tensor([1, 3, 2, 1]), aweights=w),
    ),
    op_case("corrcoef", MATRICES, sample((3, 5)), sample((2, 4), layout="transposed")),
    op_case(
        "trapezoid",
        SUMS,
        sample((4,)),
        sample((1,)),
        sample((3, 4), dx=0.5, axis=0),
        sample((3, 2), layout="transposed"),
        torch=lambda y, dx=1.0, axis=-1: torch.trapezoid(y, dx=dx, dim=axis),
    ),
    op_case(
        "interp",
        COMPOSED,
        sample(np.array([-1.0, 0.2, 0.7, 1.7, 9.0]), GRID, (4,)),
        sample(np.array([[0.1, 1.9], [2.2, 0.9]]), GRID, (4,), left=2.0, right=-1.0),
        sample((0,), GRID, (4,)),
        sample(np.array(1.1), GRID, (4,)),
        torch=_interp,
    ),
    op_case(
        "trapezoid on a grid",
        SUMS,
        sample((4,), (4,)),
        sample((2, 4), (4,)),
        sample((3, 2), (3,), axis=0),
        sample((3, 2), (3, 2), axis=0),
        fn=lambda y, x, axis=-1: xgrad.trapezoid(y, x=x, axis=axis),
        torch=lambda y, x, axis=-1: torch.trapezoid(
            y, x if x.ndim == y.ndim or axis == -1 else x[:, None].expand_as(y), dim=axis
        ),
    ),
]
