"""What the creation functions make of tensors: bounds, fill values, nested lists, grids and triangles."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor
from xgrad.testing import gradcheck, gradgradcheck


def leaf(value: Any, device: str = "cpu") -> Tensor:
    return Tensor(value, dtype=xgrad.float64, device=device, requires_grad=True)


def test_lengths_may_be_tensors(device: str) -> None:
    n = Tensor(2, device=device)
    made = (xgrad.zeros((n, 3), device=device), xgrad.full((n, n), 1.0), xgrad.ones(n), xgrad.empty([2, n]))
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
    with pytest.raises(ValueError, match=r"expected numbers and 0-d tensors as bounds, got shapes \[\(2,\)\]"):
        xgrad.arange(xgrad.ones(2, device=device))


def test_bounds_have_gradients(device: str) -> None:
    inputs = (leaf(0.5, device), leaf(0.25, device))
    for fn in (
        lambda start, step: xgrad.arange(start, 1.6, step) ** 2,
        lambda start, stop: xgrad.linspace(start, stop, 4) ** 2,
        lambda start, stop: xgrad.linspace(start, stop, 4, endpoint=False) ** 2,
        lambda start, stop: xgrad.linspace(start, 3, 1) * stop,
        lambda value, _: (
            xgrad.full((2, 3), value) ** 2 + xgrad.full_like(xgrad.zeros(3, dtype=xgrad.float64, device=device), value)
        ),
    ):
        assert gradcheck(fn, inputs) and gradgradcheck(fn, inputs)
    x = xgrad.arange(*inputs[:1], 2.0, requires_grad=True)
    assert x.is_leaf and x.requires_grad


def test_linspace_ends_where_it_should() -> None:
    start, stop = leaf(0.1), leaf(0.7)
    x = xgrad.linspace(start, stop, 7)
    assert (x[0].item(), x[-1].item()) == (0.1, 0.7)
    assert xgrad.linspace(1, 1j, 2).dtype == xgrad.complex64


def test_nested_lists_of_tensors_keep_the_graph(device: str) -> None:
    a, b = leaf(2.0, device), leaf([1.0, 3.0], device)

    def put_together(a: Tensor, b: Tensor) -> Tensor:
        return xgrad.asarray([[a, 1.5], (b[0, ...], a * a), [0, True]]) ** 2

    x = put_together(a, b)
    assert (x.tolist(), x.dtype, str(x.device)) == ([[4, 2.25], [1, 16], [0, 1]], xgrad.float64, device)
    assert gradcheck(put_together, (a, b)) and gradgradcheck(put_together, (a, b))
    assert xgrad.asarray([b, b]).shape == (2, 2) and Tensor([a.detach(), 1]).tolist() == [2, 1]
    with pytest.raises(ValueError, match="Tensor: expected numbers of a regular shape, got shapes"):
        xgrad.asarray([a, b])
    with pytest.raises(ValueError, match="copy=False, but tensors must be copied to be put together"):
        xgrad.asarray([a], copy=False)
    assert str(xgrad.asarray([a, 1], device="cpu").device) == "cpu"
    if device != "cpu":
        with pytest.raises(xgrad.DeviceError, match="stack: expected tensors of one device"):
            xgrad.asarray([Tensor(1.0), Tensor(1.0, device=device)])


def test_asarray_shares_or_copies_as_asked() -> None:
    x = xgrad.ones(2)
    assert xgrad.asarray(x) is xgrad.asarray(x, dtype="float32", device="cpu", copy=False) is x
    with pytest.raises(ValueError, match="copy=False, but another dtype or device needs a copy"):
        xgrad.asarray(x, dtype=xgrad.float64, copy=False)
    copied = xgrad.asarray(x, copy=True)
    x[0] = 5
    assert copied.tolist() == [1, 1]
    buffer = array.array("d", [1.0, 2.0])
    shared, copied, owned = xgrad.asarray(buffer, copy=False), xgrad.asarray(buffer, copy=True), Tensor(buffer)
    buffer[0] = 5.0
    assert (shared.tolist(), copied.tolist(), owned.tolist()) == ([5, 2], [1, 2], [1, 2])


def test_meshgrid(device: str) -> None:
    values = ([1.0, 2.0], [3.0, 4.0, 5.0], [6.0])
    for indexing in ("xy", "ij"):
        for count in range(4):
            xs = [leaf(v, device) for v in values[:count]]
            grids = xgrad.meshgrid(*xs, indexing=indexing)
            assert isinstance(grids, tuple)
            for got, want in zip(grids, np.meshgrid(*values[:count], indexing=indexing), strict=True):
                np.testing.assert_array_equal(got.tolist(), want)
            if count:

                def product(*xs: Tensor, indexing: str = indexing) -> Tensor:
                    return xgrad.prod(xgrad.stack(xgrad.meshgrid(*xs, indexing=indexing)), axis=0)

                assert gradcheck(product, xs) and gradgradcheck(product, xs)
    with pytest.raises(ValueError, match="expected an indexing of 'xy' or 'ij', got 'yx'"):
        xgrad.meshgrid(xgrad.ones(2), indexing="yx")
    with pytest.raises(ValueError, match=r"expected arrays with one axis, got shapes \[\(2,\), \(\)\]"):
        xgrad.meshgrid(xgrad.ones(2), xgrad.ones(()))


def test_triangles_are_of_matrices(device: str) -> None:
    for fn in (xgrad.tril, xgrad.triu):
        with pytest.raises(ValueError, match=f"{fn.__name__}: expected matrices, got 1 axes"):
            fn(xgrad.ones(2, device=device))
        x = xgrad.ones((2, 2), dtype=xgrad.int64, device=device)
        assert fn(x).dtype == xgrad.int64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xgrad.zeros(2.0), TypeError, r"shape: expected an int, got 2\.0"),
        (lambda: xgrad.zeros(-1), (ValueError, RuntimeError), "zeros: .*[Nn]egative"),
        (lambda: xgrad.arange(0, 1, 0), (ZeroDivisionError, RuntimeError), "arange: .*(zero|step)"),
        (lambda: xgrad.linspace(0, 1, 2.5), TypeError, r"num: expected an int, got 2\.5"),
        (lambda: xgrad.linspace(0, 1, -1), (ValueError, RuntimeError), "linspace: .*non-negative"),
        (lambda: xgrad.full(2, 1j, dtype=xgrad.float32), TypeError, "full: expected a complex dtype"),
        (lambda: xgrad.full(2, xgrad.ones(2)), ValueError, "full: expected a number or a 0-d tensor"),
        (lambda: xgrad.full(2, 300, dtype=xgrad.int8), OverflowError, "full: .* that int8 holds, got 300"),
        (lambda: xgrad.zeros_like([1.0]), TypeError, "zeros_like: .* for x, got list"),
        (lambda: xgrad.asarray([1, 300], dtype=xgrad.int8), OverflowError, "integers that int8 holds, got 1 to 300"),
        (lambda: xgrad.asarray(-1, dtype=xgrad.uint64), OverflowError, "integers that uint64 holds, got -1 to"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: Any, message: str, device: str) -> None:
    with xgrad.default_device(device), pytest.raises(error, match=message):
        call()
