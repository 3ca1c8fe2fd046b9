"""Creation functions of tensors: bounds, fill values, nested lists, refusals.

Values are compared with known ones, and gradients with finite differences.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, leaf64
from xgrad import Tensor
from xgrad.testing import gradcheck, gradgradcheck


@pytest.mark.parametrize("shape", [3, (2, 3), (), (0, 2)])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_created_tensors_have_shape_default_dtype_and_device(
    name: str, shape: Any, device: str
) -> None:
    x = getattr(xgrad, name)(shape, device=device, requires_grad=True)
    assert x.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert (x.dtype, str(x.device), x.requires_grad) == (xgrad.float32, device, True)
    like = getattr(xgrad, f"{name}_like")(xgrad.arange(3, device=device))
    assert (like.shape, like.dtype, str(like.device)) == ((3,), xgrad.int64, device)


@pytest.mark.parametrize(("call", "values", "dtype"), [
    ("arange(1, 7, 2)", [1, 3, 5], "int64"),
    ("arange(3.0)", [0, 1, 2], "float32"),
    ("linspace(0, 1, 3)", [0, 0.5, 1], "float32"),
    ("eye(2, 3, k=1)", [[0, 1, 0], [0, 0, 1]], "float32"),
    ("full(2, 3)", [3, 3], "int64"),
    ("full(2, True)", [True, True], "bool"),
    ("full_like(xp.ones(2), 3)", [3, 3], "float32"),
])  # fmt: skip
def test_created_tensors_have_values_and_dtype(
    call: str, values: Any, dtype: str, device: str
) -> None:
    with xgrad.default_device(device):
        x = eval(f"xp.{call}", {"xp": xgrad})
    assert (x.tolist(), x.dtype, str(x.device)) == (values, dtype, device)


def test_lengths_may_be_tensors(device: str) -> None:
    n = Tensor(2, device=device)
    made = (
        xgrad.zeros((n, 3), device=device),
        xgrad.full((n, n), 1.0),
        xgrad.ones(n),
        xgrad.empty([2, n]),
    )
    assert [x.shape for x in made] == [(2, 3), (2, 2), (2,), (2, 2)]


def test_bounds_may_be_tensors(device: str) -> None:
    n = Tensor(3, device=device)
    x = xgrad.arange(n)
    assert (x.tolist(), x.dtype, str(x.device)) == ([0, 1, 2], xgrad.int64, device)
    half = Tensor(0.5, dtype=xgrad.float64, device=device)
    y = xgrad.arange(half, 2, half)
    assert (y.tolist(), y.dtype, str(y.device)) == ([0.5, 1, 1.5], xgrad.float64, device)
    z = xgrad.linspace(half, n, 3, endpoint=False)
    np.testing.assert_allclose(z.tolist(), np.linspace(0.5, 3, 3, endpoint=False))
    assert z.dtype == xgrad.float64
    assert xgrad.linspace(0, n, 2).dtype == xgrad.float32


@pytest.mark.parametrize("fn", [
    lambda x, y: xgrad.arange(x, 1.6, y) ** 2,
    lambda x, y: xgrad.linspace(x, y, 4) ** 2,
    lambda x, y: xgrad.linspace(x, y, 4, endpoint=False) ** 2,
    lambda x, y: xgrad.linspace(x, 3, 1) * y,
    lambda x, y: xgrad.full((2, 3), x) ** 2 + y,
])  # fmt: skip
def test_bounds_and_fill_values_have_gradients(fn: Callable[..., Tensor], device: str) -> None:
    inputs = (leaf64(0.5, device), leaf64(0.25, device))
    assert gradcheck(fn, inputs) and gradgradcheck(fn, inputs)


def test_fill_value_beyond_the_default_dtype_is_exact(device: str) -> None:
    for value in (1e300, complex(0, 1e300)):
        x = xgrad.full(2, value, dtype=xgrad.complex128, device=device)
        assert x.tolist() == [value, value]
    row = xgrad.asarray([float("inf"), 1.0], dtype=xgrad.float64, device=device)
    batched = xgrad.vmap(xgrad.nan_to_num)(xgrad.stack([row, row]))
    assert (batched == xgrad.nan_to_num(row)).all()


def test_requires_grad_of_created_tensor_makes_a_leaf() -> None:
    x = xgrad.arange(leaf64(0.5), 2.0, requires_grad=True)
    assert x.is_leaf and x.requires_grad


def test_linspace_ends_exactly_at_its_bounds() -> None:
    start, stop = leaf64(0.1), leaf64(0.7)
    x = xgrad.linspace(start, stop, 7)
    assert (x[0].item(), x[-1].item()) == (0.1, 0.7)
    assert xgrad.linspace(1, 1j, 2).dtype == xgrad.complex64


def test_nested_lists_of_tensors_keep_the_graph(device: str) -> None:
    a, b = leaf64(2.0, device), leaf64([1.0, 3.0], device)

    def put_together(a: Tensor, b: Tensor) -> Tensor:
        return xgrad.asarray([[a, 1.5], (b[0, ...], a * a), [0, True]]) ** 2

    x = put_together(a, b)
    assert (x.tolist(), x.dtype, str(x.device)) == (
        [[4, 2.25], [1, 16], [0, 1]],
        xgrad.float64,
        device,
    )
    assert gradcheck(put_together, (a, b)) and gradgradcheck(put_together, (a, b))
    assert xgrad.asarray([b, b]).shape == (2, 2) and Tensor([a.detach(), 1]).tolist() == [2, 1]
    assert str(xgrad.asarray([a, 1], device="cpu").device) == "cpu"
    if device != "cpu":
        with pytest.raises(xgrad.DeviceError, match="stack: expected tensors of one device"):
            xgrad.asarray([Tensor(1.0), Tensor(1.0, device=device)])


def test_asarray_shares_or_copies_as_asked() -> None:
    x = xgrad.ones(2)
    assert xgrad.asarray(x) is xgrad.asarray(x, dtype="float32", device="cpu", copy=False) is x
    copied = xgrad.asarray(x, copy=True)
    x[0] = 5
    assert copied.tolist() == [1, 1]
    buffer = array.array("d", [1.0, 2.0])
    shared = xgrad.asarray(buffer, copy=False)
    copied = xgrad.asarray(buffer, copy=True)
    owned = Tensor(buffer)
    buffer[0] = 5.0
    assert (shared.tolist(), copied.tolist(), owned.tolist()) == ([5, 2], [1, 2], [1, 2])


@pytest.mark.parametrize("fn", [xgrad.tril, xgrad.triu])
def test_triangle_of_integers_keeps_the_dtype(fn: Callable[[Tensor], Tensor], device: str) -> None:
    assert fn(xgrad.ones((2, 2), dtype=xgrad.int64, device=device)).dtype == xgrad.int64


REGULAR = "ValueError: Tensor: expected numbers of a regular shape, got shapes"
REFUSED = [
    ("xp.zeros(2.0)", "TypeError: … shape: expected an int, got 2.0"),
    ("xp.zeros(-1)", "…Error: zeros: … egative"),
    ("xp.arange(0, 1, 0)", "…Error: arange: … zero"),
    ("xp.linspace(0, 1, 2.5)", "TypeError: … num: expected an int, got 2.5"),
    ("xp.linspace(0, 1, -1)", "…Error: linspace: … non-negative"),
    ("xp.full(2, 1j, dtype=xp.float32)", "TypeError: full: expected a complex dtype"),
    ("xp.full(2, xp.ones(2))", "ValueError: full: expected a number or a 0-d tensor"),
    ("xp.full(2, 300, dtype=xp.int8)", "OverflowError: full: … that int8 holds, got 300"),
    ("xp.zeros_like([1.0])", "TypeError: zeros_like: … for x, got list"),
    (
        "xp.asarray([1, 300], dtype=xp.int8)",
        "OverflowError: asarray: … integers that int8 holds, got 1 to 300",
    ),
    (
        "xp.asarray(-1, dtype=xp.uint64)",
        "OverflowError: asarray: … integers that uint64 holds, got -1 to",
    ),
    ("xp.asarray([leaf64(2.0), leaf64([1.0])])", REGULAR),
    (
        "xp.asarray([leaf64(2.0)], copy=False)",
        "ValueError: … copy=False, but tensors must be copied",
    ),
    (
        "xp.asarray(xp.ones(2), dtype='float64', copy=False)",
        "ValueError: … copy=False, but another dtype or device",
    ),
    (
        "xp.arange(xp.ones(2))",
        "ValueError: … expected numbers and 0-d tensors as bounds, got shapes [(2,)]",
    ),
    (
        "xp.meshgrid(xp.ones(2), indexing='yx')",
        "ValueError: … expected an indexing of 'xy' or 'ij', got 'yx'",
    ),
    (
        "xp.meshgrid(xp.ones(2), xp.ones(()))",
        "ValueError: … expected arrays with one axis, got shapes [(2,), ()]",
    ),
    ("xp.tril(xp.ones(2))", "ValueError: tril: expected matrices, got 1 axes"),
    ("xp.triu(xp.ones(2))", "ValueError: triu: expected matrices, got 1 axes"),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_invalid_arguments_of_creation_are_refused(call: str, error: str, device: str) -> None:
    with xgrad.default_device(device):
        check_error(call, error, leaf64=leaf64)
