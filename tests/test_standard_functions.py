"""Standard functions beyond the op table: dtypes, named results, versions, refusals.

Values are compared with NumPy and with closed forms.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64
from xgrad import Tensor


def mixed(loss: Tensor, x: Tensor, *entries: int) -> float:
    """Return the mixed derivative with respect to some entries."""
    for i in entries:
        (g,) = xgrad.autograd.grad(loss, x, create_graph=True)
        loss = g[i]
    return float(loss.detach().cpu())


WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0])


@pytest.mark.parametrize(
    "values", [(2.0, 0.0, 3.0, 4.0), (0.0, 0.0, 3.0, 0.0), (0.0, 0.0, 0.0, 0.0)]
)
def test_products_through_zeros_are_exact_at_orders_one_to_four(
    values: tuple[float, ...], device: str
) -> None:
    """The derivative of a product with respect to a factor is the product of the others."""
    x, w = leaf64(values, device), xgrad.asarray(WEIGHTS, device=device)
    for entries in [(0,), (2,), (1, 2), (0, 3), (0, 1, 2), (1, 2, 3), (3, 2, 1, 0)]:
        rest = [1.0 if i in entries else value for i, value in enumerate(values)]
        assert mixed(xgrad.prod(x), x, *entries) == np.prod(rest)
        expected = sum(
            w * np.prod(rest[: n + 1]) for n, w in enumerate(WEIGHTS) if n >= max(entries)
        )
        assert mixed(xgrad.sum(w * xgrad.cumulative_prod(x)), x, *entries) == expected


# Dtypes


@pytest.mark.parametrize(("name", "dtype", "expected"), [
    ("sum", "bool", "int64"), ("sum", "int8", "int64"), ("sum", "float32", "float32"),
    ("prod", "bool", "int64"), ("prod", "int32", "int64"),
    ("cumulative_sum", "bool", "int64"), ("cumulative_sum", "int16", "int64"),
    ("cumulative_prod", "int8", "int64"), ("cumulative_prod", "float32", "float32"),
    ("mean", "bool", "float32"), ("mean", "int64", "float32"),
    ("var", "int32", "float32"), ("std", "int8", "float32"),
    ("max", "int8", "int8"), ("min", "float32", "float32"),
    ("argmax", "float32", "int64"), ("argmin", "int8", "int64"), ("argsort", "float32", "int64"),
    ("sort", "int8", "int8"),
    ("count_nonzero", "int8", "int64"), ("count_nonzero", "bool", "int64"),
    ("all", "int8", "bool"), ("any", "float32", "bool"),
    ("diff", "int8", "int8"), ("diff", "bool", "bool"),
])  # fmt: skip
def test_dtypes_of_results(name: str, dtype: str, expected: str, device: str) -> None:
    x = xgrad.asarray(np.array([1, 0, 1]), dtype=dtype, device=device)
    assert getattr(xgrad, name)(x).dtype == expected


def test_indices_are_int64() -> None:
    x = xgrad.asarray([2.0, 1.0, 2.0])
    indices = [*xgrad.nonzero(x), xgrad.searchsorted(xgrad.sort(x), x), *xgrad.unique_all(x)[1:]]
    assert {i.dtype for i in indices} == {xgrad.int64}


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_result_in_another_dtype_has_a_gradient_in_that_of_the_input(
    name: str, device: str
) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    out = getattr(xgrad, name)(x, dtype=xgrad.float64)
    assert out.dtype == xgrad.float64
    xgrad.sum(out).backward()
    assert x.grad.dtype == xgrad.float32
    assert not getattr(xgrad, name)(x, dtype=xgrad.int64).requires_grad


DTYPES = "bool int8 int32 int64 uint8 uint32 float32 float64 complex64 complex128".split()
PROMOTED = [(a, b) for a in DTYPES for b in DTYPES if np.result_type(a, b) == a]


@pytest.mark.parametrize(("of_x", "of_value"), PROMOTED)
def test_assigned_values_are_promoted_to_the_dtype_of_the_tensor(
    of_x: str, of_value: str, device: str
) -> None:
    x, value = np.zeros((2, 3), of_x), np.array([1, 0, 1], of_value)
    tensor = xgrad.asarray(x, device=device)
    tensor[1, :] = xgrad.asarray(value, device=device)
    x[1, :] = value
    assert tensor.dtype == of_x
    np.testing.assert_array_equal(host(tensor), x)


# Sets


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "complex64"])
def test_unique_values_of_any_dtype_agree_with_numpy(dtype: str, device: str) -> None:
    if device == "strict":
        pytest.skip("the shape of the result depends on the data")
    values = np.array([[2, 1, 0], [2, 1, 1]]).astype(dtype) * (
        1 + 2j if dtype == "complex64" else np.ones((), dtype)
    )
    x = xgrad.asarray(values, device=device)
    parts = xgrad.unique_all(x)
    wanted = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    for got, want in zip(parts, wanted, strict=True):
        assert got.reshape(-1).tolist() == want.reshape(-1).tolist()
    assert parts.values.dtype == values.dtype and parts.inverse_indices.shape == x.shape
    assert parts._fields == ("values", "indices", "inverse_indices", "counts")
    assert xgrad.unique_counts(x)._fields == ("values", "counts")
    assert xgrad.unique_inverse(x)._fields == ("values", "inverse_indices")


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("dtypes", [("int64", "int8"), ("uint8", "uint16")])
def test_isin_of_mixed_integers_agrees_with_numpy(
    dtypes: tuple[str, str], invert: bool, device: str
) -> None:
    if "uint16" in dtypes and device.startswith("torch"):
        pytest.skip("PyTorch's isin does not take uint16")
    x1, x2 = np.array([[3, 1, 2], [5, 1, 0]], dtypes[0]), np.array([[1], [5]], dtypes[1])
    contained = xgrad.isin(
        xgrad.asarray(x1, device=device), xgrad.asarray(x2, device=device), invert=invert
    )
    np.testing.assert_array_equal(host(contained), np.isin(x1, x2, invert=invert))


def test_isin_compares_integers_with_floats() -> None:
    assert xgrad.isin(xgrad.asarray([1, 2]), 1.5).tolist() == [False, False]


# Shapes, axes, indices


@pytest.mark.parametrize(
    "shapes", [(), ((),), ((2, 3),), ((2, 1), (3,)), ((0, 1), (1, 5)), ((4, 1, 1), (), (3, 1))]
)
def test_broadcast_shapes_agrees_with_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    shape = xgrad.broadcast_shapes(*shapes)
    assert (
        shape == np.broadcast_shapes(*shapes)
        and type(shape) is tuple
        and {int}.issuperset(map(type, shape))
    )


def test_write_through_expanded_view_reaches_its_base() -> None:
    x = xgrad.zeros((2, 3))
    xgrad.expand_dims(x, axis=(0, -1))[0, 1, 2, 0] = 5.0
    assert x.tolist() == [[0, 0, 0], [0, 0, 5]]


def test_reshaped_copy_shares_no_memory() -> None:
    x = xgrad.zeros((2, 3))
    assert np.shares_memory(xgrad.reshape(x, (6,), copy=False).numpy(), x.numpy())
    assert not np.shares_memory(xgrad.reshape(x, (6,), copy=True).numpy(), x.numpy())


def test_indices_of_few_bits_reach_rows_beyond_their_range(device: str) -> None:
    x = leaf64(np.ones((300, 2)), device)
    indices = xgrad.zeros((300, 1), dtype=xgrad.uint8, device=device)
    xgrad.sum(xgrad.take_along_axis(x, indices)).backward()
    assert x.grad[:, 0].tolist() == [1] * 300


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_takes_scalars(side: Any, device: str) -> None:
    values = np.array([0.0, 0.1, 0.1, 0.7])
    for scalar in (0.1, 1, np.float64(0.7), np.float32(2)):
        index = xgrad.searchsorted(xgrad.asarray(values, device=device), scalar, side=side)
        assert index.shape == () and index.tolist() == np.searchsorted(values, scalar, side=side)


def test_roll_takes_lists_and_integers_of_numpy(device: str) -> None:
    for shift, axis in [([1], [0]), (np.int64(1), 0), (1, [0])]:
        x = leaf64([1.0, 2.0, 3.0], device)
        out = xgrad.roll(x, shift, axis=axis)
        (g,) = xgrad.autograd.grad(
            (out * xgrad.asarray([1.0, 2.0, 4.0], dtype=x.dtype, device=device)).sum(), x
        )
        assert (out.tolist(), g.tolist()) == ([3.0, 1.0, 2.0], [2.0, 4.0, 1.0])


def test_empty_masks_and_lists_select_nothing(device: str) -> None:
    x = leaf64(np.zeros((2, 0)), device)
    if device != "strict":  # where no shape may depend on values
        assert x[np.zeros((2, 0), bool)].shape == (0,)
        assert xgrad.ops.setitem(x, np.zeros((2, 0), bool), 1.0).shape == (2, 0)
    assert leaf64([1.0, 2.0])[[]].shape == (0,)


# Tuples and versions


def test_several_arrays_are_returned_as_tuples(device: str) -> None:
    x = xgrad.zeros(2, device=device)
    assert type(xgrad.broadcast_arrays(x, x)) is type(xgrad.meshgrid(x, x)) is tuple
    assert xgrad.broadcast_arrays() == xgrad.meshgrid() == ()
    assert type(xgrad.__array_namespace_info__().devices()) is tuple


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"])
def test_array_api_compat_finds_the_namespace_of_every_version(version: str | None) -> None:
    namespace = array_api_compat.array_namespace(xgrad.ones(1), api_version=version)
    assert namespace.__array_api_version__ == (
        "2025.12" if version in (None, "2025.12") else "2024.12"
    )
    assert namespace.exp is xgrad.exp


# Refusals: calls with `x` of shape (2, 3)


REFUSED = [
    # manipulation
    (
        "xp.broadcast_arrays(x, x[:, :2])",
        "ValueError: broadcast_arrays: … could not be broadcast together",
    ),
    (
        "xp.broadcast_shapes((2,), (3, 4))",
        "ValueError: broadcast_shapes: expected shapes that broadcast, got (2,), (3, 4)",
    ),
    ("xp.broadcast_shapes((-1,))", "ValueError: broadcast_shapes: expected"),
    ("xp.broadcast_shapes((None, 2))", "TypeError: broadcast_shapes: expected"),
    ("xp.moveaxis(x, (0, 1), 0)", "ValueError: moveaxis: "),
    ("xp.moveaxis(x, (0, 0), (0, 1))", "ValueError: moveaxis: "),
    *[
        (f"xp.permute_dims(x, {axes})", "…Error: permute_dims: ")
        for axes in ((0, 2), (0, -2), (0, -3), (0,))
    ],
    ("xp.roll(x, (1, 2), axis=0)", "ValueError: roll: expected as many axes as shifts"),
    ("xp.roll(x, (1, 2))", "ValueError: roll: expected as many axes as shifts"),
    ("xp.roll(x, 0.5)", "TypeError: roll: expected"),
    ("xp.repeat(x, 1.5)", "TypeError: repeat: expected a tensor, an array or a number for repeats"),
    ("xp.repeat(x, xp.ones(3))", "TypeError: … expected repeats of integers"),
    (
        "xp.repeat(x, xp.asarray([1, 2, 3]), axis=2)",
        "IndexError: repeat: expected axis from … for x of shape … got 2",
    ),
    ("xp.repeat(x, xp.asarray([1, 2, 3]))", "ValueError: repeat: expected"),
    ("xp.tile(x, 2)", "TypeError: tile: expected"),
    ("xp.tile(x, (-1,))", "ValueError: tile: expected"),
    ("xp.reshape(xp.matrix_transpose(x), (6,), copy=False)", "ValueError: reshape: "),
    (
        "xp.expand_dims(x, 4)",
        "IndexError: expand_dims: expected axis from … for x of shape … got 4",
    ),
    (
        "xp.expand_dims(x, axis=(0, 4))",
        "IndexError: expand_dims: expected axis from -4 to 3 for x of shape …, got (0, 4)",
    ),
    (
        "xp.expand_dims(x, axis=(0, -5))",
        "IndexError: expand_dims: expected axis from -4 to 3 for x of shape …, got (0, -5)",
    ),
    (
        "xp.expand_dims(x, axis=(1, 1))",
        "ValueError: expand_dims: expected different axes for axis, got (1, 1)",
    ),
    (
        "xp.expand_dims(x, axis=(1, -3))",
        "ValueError: expand_dims: expected different axes for axis, got (1, -3)",
    ),
    ("xp.unstack(x, axis=2)", "IndexError: unstack: expected axis from … for x of shape … got 2"),
    ("x[0, ...][np.zeros(0)]", "IndexError: indexing: expected integers or bools, got an array of"),
    # searching, sorting, sets
    (
        "xp.searchsorted(x, x)",
        "ValueError: searchsorted: expected x1 with one axis, got shape (2, 3)",
    ),
    ("xp.searchsorted(x[0, ...], x, side='top')", "ValueError: searchsorted: expected side"),
    ("xp.searchsorted(x[0, ...], x + 1j)", "TypeError: searchsorted: expected real"),
    ("xp.searchsorted(x[0, ...], 1j)", "TypeError: searchsorted: expected real"),
    ("xp.take(x, xp.asarray([0]))", "ValueError: take: expected an axis"),
    ("xp.where(x, x, x)", "TypeError: where: expected"),
    ("xp.sort(x, axis=2)", "IndexError: sort: "),
    ("xp.sort(x[0, 0])", "ValueError: sort: expected"),
    ("xp.argsort(x[0, 0])", "ValueError: argsort: expected"),
    *[
        (f"xp.{f}(x[0, ...] + 1j)", f"TypeError: {f}: expected")
        for f in ("max", "min", "sort", "argsort", "argmax", "argmin")
    ],
    ("xp.isin(x, xp.asarray([1j]))", "TypeError: isin: expected real"),
    ("xp.isin(1, 2)", "TypeError: isin: expected a tensor"),
    (
        "xp.isin(x.astype(xp.uint8), 300)",
        "OverflowError: isin: expected a number for x2 that uint8, … holds, got 300",
    ),
    # reductions, differences, products
    ("xp.sum(x, axis=2)", "IndexError: sum: "),
    ("xp.sum(x, out=x)", "TypeError: sum"),
    ("xp.max(x[:, :0], axis=1)", "…Error: max: "),
    ("xp.cumulative_prod(x)", "ValueError: cumulative_prod"),
    ("xp.cumulative_sum(x)", "ValueError: cumulative_sum"),
    ("xp.cumulative_prod(x[0, 0])", "ValueError: cumulative_prod: expected"),
    ("xp.cumulative_sum(x[0, 0])", "ValueError: cumulative_sum: expected"),
    ("xp.diff(x, n=-1)", "ValueError: diff: expected n to be at least 0"),
    ("xp.diff(x, axis=2)", "IndexError: diff: expected axis from … for x of shape … got 2"),
    ("xp.diff(x, prepend=x[0, ...])", "…Error: concat: "),
    ("xp.matmul(x, 2.0)", "TypeError: matmul: "),
    ("xp.linalg.outer(x[0, ...], 2.0)", "TypeError: outer: expected tensors"),
    ("xp.fft.rfftn(x, axes=())", "ValueError: rfftn: expected"),
    ("xp.fft.irfftn(x[0, 0])", "ValueError: irfftn: expected"),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_refusals_name_the_function_on_every_device(call: str, error: str, device: str) -> None:
    with xgrad.default_device(device):
        check_error(call, error, x=xgrad.zeros((2, 3)), np=np)


def test_nonzero_of_a_0d_tensor_is_refused(device: str) -> None:
    if device == "strict":
        pytest.skip("strict refuses data-dependent shapes first")
    with pytest.raises(ValueError, match="nonzero"):
        xgrad.nonzero(xgrad.asarray(1.0, device=device))


def test_devices_are_not_mixed() -> None:
    pytest.importorskip("array_api_strict")
    here = xgrad.ones(2, dtype=xgrad.int64)
    there = xgrad.ones(2, dtype=xgrad.int64, device="strict")
    for call in (
        xgrad.broadcast_arrays,
        xgrad.searchsorted,
        xgrad.isin,
        lambda a, b: xgrad.diff(a, append=b),
    ):
        with pytest.raises(
            xgrad.DeviceError, match=r"expected tensors of one device, got .*cpu.*strict"
        ):
            call(here, there)
