"""Promotion: the dtypes of operations on all pairs of dtypes, as in PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from xgrad.compat import torch as compat

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
SCALARS = (True, 2, 2.5, 1j)
OPERATIONS = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
}


def operand(library: Any, dtype: str, ndim: int) -> Any:
    return library.ones((1,) * ndim, dtype=getattr(library, dtype))


def outcome(operation: Any, *operands: Any) -> Any:
    """Return the dtype of a result, or None if the operation is refused."""
    try:
        result = operation(*operands)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return str(result.dtype).removeprefix("torch.")


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_dtypes_of_pairs_match_pytorch(torch: Any, name: str) -> None:
    """Pairs that PyTorch refuses may have a result, and complex halves, which NumPy lacks, none."""
    operation = OPERATIONS[name]
    differences = []
    for one, other, first, second in product(DTYPES, DTYPES, (0, 1), (0, 1)):
        expected, got = (
            outcome(operation, operand(library, one, first), operand(library, other, second))
            for library in (torch, compat)
        )
        if expected not in (None, "complex32", got):
            differences.append((one, first, other, second, expected, got))
    assert not differences


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_dtypes_with_numbers_match_pytorch(torch: Any, name: str) -> None:
    operation = OPERATIONS[name]
    differences = []
    for dtype, number, ndim, left in product(DTYPES, SCALARS, (0, 1), (False, True)):
        tensors = [operand(library, dtype, ndim) for library in (torch, compat)]
        expected, got = (
            outcome(operation, *((number, x) if left else (x, number))) for x in tensors
        )
        if expected not in (None, "complex32", got):
            differences.append((dtype, ndim, number, left, expected, got))
    assert not differences


def test_result_types_match_pytorch(torch: Any) -> None:
    for one, other in product(DTYPES, DTYPES):
        types = [getattr(torch, name) for name in (one, other)]
        expected = str(torch.promote_types(*types)).removeprefix("torch.")
        if expected != "complex32":
            got = compat.promote_types(getattr(compat, one), getattr(compat, other))
            assert str(got) == expected, (one, other)


def test_tensor_without_axes_does_not_promote_within_its_kind() -> None:
    x = compat.ones(2)
    assert (x + compat.tensor(1.0, dtype=compat.float64)).dtype == compat.float32
    assert (x * np.float64(2)).dtype == compat.float32
    assert (compat.arange(2) * compat.tensor(1.5)).dtype == compat.float32
    assert (compat.ones(2, dtype=compat.int32) + compat.tensor(1)).dtype == compat.int32


def test_where_cat_and_clamp_promote() -> None:
    x, y = compat.ones(2), compat.ones(2, dtype=compat.float64)
    assert compat.where(x > 0, x, y).dtype == compat.float64
    assert compat.cat([x, compat.arange(2)]).dtype == compat.float32
    assert compat.stack([x, y]).dtype == compat.float64
    assert compat.clamp(compat.arange(3), min=0.5).dtype == compat.float32
