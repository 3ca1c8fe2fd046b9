"""What the op table does not say of manipulation, searching, sorting, set, statistical and utility functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor

NAMES = """
broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze
stack tile unstack take take_along_axis argmax argmin count_nonzero nonzero searchsorted where argsort sort isin
unique_all unique_counts unique_inverse unique_values cumulative_prod cumulative_sum max mean min prod std sum var all
any diff
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_the_standards(name: str) -> None:
    strict: Any = pytest.importorskip("array_api_strict")

    def parameters(fn: Any) -> list[tuple[str, Any, Any]]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(fn).parameters.values()]

    assert parameters(getattr(xgrad, name)) == parameters(getattr(strict, name))


def leaf(*values: Any, device: str = "cpu") -> Tensor:
    return Tensor(np.array(values), dtype=xgrad.float64, device=device, requires_grad=True)


def mixed(loss: Tensor, x: Tensor, *entries: int) -> float:
    """Return the derivative by some entries, one after the other."""
    for i in entries:
        (g,) = xgrad.autograd.grad(loss, x, create_graph=True)
        loss = g[i]
    return float(loss.detach().cpu())


WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0])


@pytest.mark.parametrize("values", [(2.0, 0.0, 3.0, 4.0), (0.0, 0.0, 3.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
def test_products_are_exact_through_zeros_at_orders_one_to_four(values: tuple[float, ...], device: str) -> None:
    """A product is linear in each factor: to derive by one is to leave it out."""
    x, w = leaf(*values, device=device), xgrad.asarray(WEIGHTS, device=device)
    for entries in [(0,), (2,), (1, 2), (0, 3), (0, 1, 2), (1, 2, 3), (3, 2, 1, 0)]:
        rest = [1.0 if i in entries else value for i, value in enumerate(values)]
        assert mixed(xgrad.prod(x), x, *entries) == np.prod(rest)
        expected = sum(w * np.prod(rest[: n + 1]) for n, w in enumerate(WEIGHTS) if n >= max(entries))
        assert mixed(xgrad.sum(w * xgrad.cumulative_prod(x)), x, *entries) == expected


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_a_running_product_of_any_length(n: int, device: str) -> None:
    values = np.linspace(-1.5, 1.3, n)
    x, g = leaf(*values, device=device), np.cos(np.arange(n))
    out = xgrad.cumulative_prod(x)
    (got,) = xgrad.autograd.grad(out, x, xgrad.asarray(g, device=device))
    expected = [sum(g[i] * np.prod(np.delete(values[: i + 1], k)) for i in range(k, n)) for k in range(n)]
    np.testing.assert_allclose(got.cpu().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "dtype", "expected"), [
    ("sum", "bool", "int64"), ("sum", "int8", "int64"), ("sum", "float32", "float32"), ("prod", "bool", "int64"),
    ("prod", "int32", "int64"), ("cumulative_sum", "bool", "int64"), ("cumulative_sum", "int16", "int64"),
    ("cumulative_prod", "int8", "int64"), ("cumulative_prod", "float32", "float32"), ("mean", "bool", "float32"),
    ("mean", "int64", "float32"), ("var", "int32", "float32"), ("std", "int8", "float32"), ("max", "int8", "int8"),
    ("min", "float32", "float32"), ("argmax", "float32", "int64"), ("argmin", "int8", "int64"),
    ("argsort", "float32", "int64"), ("sort", "int8", "int8"), ("count_nonzero", "int8", "int64"),
    ("count_nonzero", "bool", "int64"), ("all", "int8", "bool"), ("any", "float32", "bool"), ("diff", "int8", "int8"),
    ("diff", "bool", "int64"),
])  # fmt: skip
def test_dtypes(name: str, dtype: str, expected: str, device: str) -> None:
    x = xgrad.asarray(np.array([1, 0, 1]), dtype=dtype, device=device)
    assert getattr(xgrad, name)(x).dtype == expected


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_a_result_in_another_dtype_has_a_gradient_in_that_of_the_input(name: str, device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    out = getattr(xgrad, name)(x, dtype=xgrad.float64)
    assert out.dtype == xgrad.float64
    xgrad.sum(out).backward()
    assert x.grad is not None and x.grad.dtype == xgrad.float32
    assert not getattr(xgrad, name)(x, dtype=xgrad.int64).requires_grad


def test_indices_have_the_default_dtype() -> None:
    x = xgrad.asarray([2.0, 1.0, 2.0])
    found = [*xgrad.nonzero(x), xgrad.searchsorted(xgrad.sort(x), x), *xgrad.unique_all(x)[1:]]
    assert {i.dtype for i in found} == {xgrad.int64}


def test_results_of_sets_have_names(device: str) -> None:
    if device == "strict":
        pytest.skip("the shape of the result depends on the data")
    x = xgrad.asarray([[3, 1], [3, 2]], device=device)
    found = xgrad.unique_all(x)
    assert [part.tolist() for part in found] == [[1, 2, 3], [1, 3, 0], [[2, 0], [2, 1]], [1, 1, 2]]
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert xgrad.unique_counts(x)._fields == ("values", "counts")
    assert xgrad.unique_inverse(x).inverse_indices.shape == x.shape


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "complex64"])
def test_sets_of_any_dtype(dtype: str, device: str) -> None:
    if device == "strict":
        pytest.skip("the shape of the result depends on the data")
    host = np.array([2, 1, 0, 2, 1]).astype(dtype) * (1 + 2j if dtype == "complex64" else np.ones((), dtype))
    values, indices, inverse, counts = xgrad.unique_all(xgrad.asarray(host, device=device))
    want = np.unique(host, return_index=True, return_inverse=True, return_counts=True)
    for got, expected in zip((values, indices, inverse, counts), want, strict=True):
        assert got.tolist() == expected.tolist()
    assert values.dtype == host.dtype


def test_a_reshaped_copy_shares_no_memory() -> None:
    x = xgrad.zeros((2, 3))
    assert np.shares_memory(xgrad.reshape(x, (6,), copy=False).numpy(), x.numpy())
    assert not np.shares_memory(xgrad.reshape(x, (6,), copy=True).numpy(), x.numpy())


def test_indices_of_few_bits_reach_far(device: str) -> None:
    x = xgrad.ones((300, 2), device=device, dtype=xgrad.float64).requires_grad_()
    indices = xgrad.zeros((300, 1), dtype=xgrad.uint8, device=device)
    xgrad.sum(xgrad.take_along_axis(x, indices)).backward()
    assert x.grad is not None and x.grad[:, 0].tolist() == [1] * 300


WRONG: list[tuple[Callable[[Tensor], Any], Any, str]] = [
    (lambda x: xgrad.moveaxis(x, (0, 1), 0), ValueError, "moveaxis"),
    (lambda x: xgrad.moveaxis(x, (0, 0), (0, 1)), ValueError, "moveaxis"),
    (lambda x: xgrad.roll(x, (1, 2), axis=0), ValueError, "roll: expected as many axes as shifts"),
    (lambda x: xgrad.roll(x, (1, 2)), ValueError, "roll: expected as many axes as shifts"),
    (lambda x: xgrad.repeat(x, 1.5), TypeError, "repeat: expected a tensor, an array or a number for repeats"),
    (lambda x: xgrad.repeat(x, xgrad.ones(3, device=x.device)), TypeError, "expected repeats of integers"),
    (lambda x: xgrad.repeat(x, xgrad.asarray([1, 2, 3], device=x.device), axis=2), IndexError, "repeat: axis 2"),
    (lambda x: xgrad.reshape(xgrad.matrix_transpose(x), (6,), copy=False), ValueError, "reshape: "),
    (lambda x: xgrad.searchsorted(x, x), ValueError, r"searchsorted: expected x1 with one axis, got shape \(2, 3\)"),
    (lambda x: xgrad.searchsorted(x[0, ...], x, side="top"), ValueError, "searchsorted: expected side"),
    (lambda x: xgrad.diff(x, n=-1), ValueError, "diff: expected n to be at least 0"),
    (lambda x: xgrad.diff(x, axis=2), IndexError, "diff: axis 2"),
    (lambda x: xgrad.diff(x, prepend=x[0, ...]), (ValueError, RuntimeError), "concat"),
    (lambda x: xgrad.cumulative_prod(x), ValueError, "cumulative_prod"),
    (lambda x: xgrad.cumulative_sum(x), ValueError, "cumulative_sum"),
    (lambda x: xgrad.broadcast_arrays(x, x[:, :2]), ValueError, "broadcast_arrays: .* could not be broadcast together"),
    (lambda x: xgrad.expand_dims(x, 4), IndexError, "expand_dims: axis 4"),
    (lambda x: xgrad.unstack(x, axis=2), IndexError, "unstack: axis 2"),
    (lambda x: xgrad.take(x, xgrad.asarray([0], device=x.device)), ValueError, "take: expected an axis"),
    (lambda x: xgrad.sort(x, axis=2), IndexError, "sort"),
    (lambda x: xgrad.sum(x, axis=2), IndexError, "sum"),
    (lambda x: xgrad.sum(x, out=x), TypeError, "sum"),
    (lambda x: xgrad.max(x[:, :0], axis=1), (ValueError, IndexError), "max"),
    (lambda x: xgrad.matmul(x, 2.0), TypeError, "matmul: "),
    (lambda x: xgrad.linalg.outer(x[0, ...], 2.0), TypeError, "outer: expected tensors"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_errors_name_the_function(case: int, device: str) -> None:
    call, error, text = WRONG[case]
    x = xgrad.zeros((2, 3), device=device)
    with pytest.raises(error, match=text):
        call(x)


def test_nonzero_of_a_0d_tensor_is_refused(device: str) -> None:
    if device == "strict":
        pytest.skip("strict refuses data-dependent shapes first")
    with pytest.raises(ValueError, match="nonzero"):
        xgrad.nonzero(xgrad.asarray(1.0, device=device))


def test_devices_are_not_mixed() -> None:
    pytest.importorskip("array_api_strict")
    here, there = xgrad.ones(2), xgrad.ones(2, device="strict")
    for call in (xgrad.broadcast_arrays, xgrad.searchsorted, lambda a, b: xgrad.diff(a, append=b)):
        with pytest.raises(xgrad.DeviceError, match=r"expected tensors of one device, got .*cpu.*strict"):
            call(here, there)


def test_roll_takes_lists_and_integers_of_numpy(device: str) -> None:
    for shift, axis in [([1], [0]), (np.int64(1), 0), (1, [0])]:
        x = leaf(1.0, 2.0, 3.0, device=device)
        out = xgrad.roll(x, shift, axis=axis)  # type: ignore[arg-type]
        (g,) = xgrad.autograd.grad((out * xgrad.asarray([1.0, 2.0, 4.0], dtype=x.dtype, device=device)).sum(), x)
        assert (out.tolist(), g.tolist()) == ([3.0, 1.0, 2.0], [2.0, 4.0, 1.0])


def test_masks_and_lists_of_nothing(device: str) -> None:
    x = Tensor(np.zeros((2, 0)), dtype="float64", device=device, requires_grad=True)
    if device != "strict":  # whose shapes may not depend on values
        assert x[np.zeros((2, 0), bool)].shape == (0,)
        assert xgrad.ops.setitem(x, np.zeros((2, 0), bool), 1.0).shape == (2, 0)
    assert leaf(1.0, 2.0, device="cpu")[[]].shape == (0,)
    with pytest.raises(IndexError, match=r"^indexing: expected integers or bools, got an array of"):
        leaf(1.0, device=device)[np.zeros(0)]


BAD: dict[str, tuple[type[Exception], Callable[[Tensor], Any]]] = {
    "max": (TypeError, lambda x: xgrad.max(x + 1j)),
    "min": (TypeError, lambda x: xgrad.min(x + 1j)),
    "sort": (TypeError, lambda x: xgrad.sort(x + 1j)),
    "argsort": (TypeError, lambda x: xgrad.argsort(x + 1j)),
    "argmax": (TypeError, lambda x: xgrad.argmax(x + 1j)),
    "argmin": (TypeError, lambda x: xgrad.argmin(x + 1j)),
    "searchsorted": (TypeError, lambda x: xgrad.searchsorted(x, x + 1j)),
    "where": (TypeError, lambda x: xgrad.where(x, x, x)),
    "repeat": (ValueError, lambda x: xgrad.repeat(x, xgrad.asarray([1, 2, 3], device=x.device))),
    "rfftn": (ValueError, lambda x: xgrad.fft.rfftn(x, axes=())),
    "irfftn of no axes": (ValueError, lambda x: xgrad.fft.irfftn(x[0])),
    "tile": (TypeError, lambda x: xgrad.tile(x, 2)),  # type: ignore[arg-type]
    "tile of less than nothing": (ValueError, lambda x: xgrad.tile(x, (-1,))),
    "roll": (TypeError, lambda x: xgrad.roll(x, 0.5)),  # type: ignore[arg-type]
    "cumulative_sum": (ValueError, lambda x: xgrad.cumulative_sum(x[0])),
    "cumulative_prod": (ValueError, lambda x: xgrad.cumulative_prod(x[0])),
    "sort of no axes": (ValueError, lambda x: xgrad.sort(x[0])),
    "argsort of no axes": (ValueError, lambda x: xgrad.argsort(x[0])),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_alike_on_every_device(case: str, device: str) -> None:
    kind, call = BAD[case]
    with pytest.raises(kind, match=f"^{case.split()[0]}: expected"):
        call(leaf(1.0, 2.0, device=device))
