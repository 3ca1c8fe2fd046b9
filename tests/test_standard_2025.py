"""Additions and changes of version 2025.12 of the standard, apart from eigenvalues: see test_eig.py."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
import pytest

import xgrad

X = np.array([[3, 1, 2], [5, 1, 0]])


def host(x: xgrad.Tensor) -> Any:
    return x.cpu().numpy()


# broadcast_shapes


@pytest.mark.parametrize("shapes", [(), ((),), ((2, 3),), ((2, 1), (3,)), ((0, 1), (1, 5)), ((4, 1, 1), (), (3, 1))])
def test_broadcast_shapes_agrees_with_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    found = xgrad.broadcast_shapes(*shapes)
    assert found == np.broadcast_shapes(*shapes) and type(found) is tuple and {int}.issuperset(map(type, found))


def test_broadcast_shapes_refuses_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"broadcast_shapes: expected shapes that broadcast, got \(2,\), \(3, 4\)"):
        xgrad.broadcast_shapes((2,), (3, 4))
    with pytest.raises(ValueError, match="broadcast_shapes: expected"):
        xgrad.broadcast_shapes((-1,))
    with pytest.raises(TypeError, match="broadcast_shapes: expected"):
        xgrad.broadcast_shapes((None, 2))  # type: ignore[arg-type]


# isin


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("dtypes", [("int64", "int8"), ("uint8", "uint16"), ("int32", "int32")])
def test_isin_agrees_with_numpy(dtypes: tuple[str, str], invert: bool, device: str) -> None:
    if "uint16" in dtypes and device.startswith("torch"):
        pytest.skip("PyTorch's isin does not take uint16")
    x1, x2 = X.astype(dtypes[0]), np.array([[1], [5]], dtype=dtypes[1])
    found = xgrad.isin(xgrad.asarray(x1, device=device), xgrad.asarray(x2, device=device), invert=invert)
    np.testing.assert_array_equal(host(found), np.isin(x1, x2, invert=invert))
    assert found.dtype == xgrad.bool and str(found.device) == device and not found.requires_grad


def test_isin_takes_scalars(device: str) -> None:
    x = xgrad.asarray(X, device=device)
    np.testing.assert_array_equal(host(xgrad.isin(x, 1)), X == 1)
    assert xgrad.isin(5, x).tolist() is True and xgrad.isin(7, x).shape == ()
    assert xgrad.isin(7, x, invert=True).tolist() is True
    with pytest.raises(OverflowError, match=r"isin: expected a number for x2 that uint8, .* holds, got 300"):
        xgrad.isin(x.astype(xgrad.uint8), 300)
    with pytest.raises(TypeError, match="isin: expected a tensor"):
        xgrad.isin(1, 2)


def test_isin_of_floats_goes_by_equality() -> None:
    x = xgrad.asarray([0.0, np.nan, 0.1, 1.5], requires_grad=True)
    assert xgrad.isin(x, xgrad.asarray([-0.0, np.nan])).tolist() == [True, False, False, False]
    assert xgrad.isin(x, 0.1).tolist() == [False, False, True, False]
    assert xgrad.isin(xgrad.asarray([1, 2]), 1.5).tolist() == [False, False]
    with pytest.raises(TypeError, match="isin: expected real"):
        xgrad.isin(x, xgrad.asarray([1j]))


def test_isin_refuses_several_devices() -> None:
    pytest.importorskip("array_api_strict")
    with pytest.raises(xgrad.DeviceError, match="isin: expected tensors of one device"):
        xgrad.isin(xgrad.asarray([1]), xgrad.asarray([1], device="strict"))


# Axes


@pytest.mark.parametrize("axis", [0, -3, (0,), (0, -1), (-1, 0), (1, 3, 2), (-5, 4, 1), ()])
def test_expand_dims_takes_several_axes_in_any_order(axis: Any, device: str) -> None:
    x = xgrad.asarray(X, device=device)
    assert xgrad.expand_dims(x, axis=axis).shape == np.expand_dims(X, axis).shape


@pytest.mark.parametrize(("axis", "text"), [
    ((0, 4), "axis 4 is out of bounds for a result with 4 axes"),
    ((0, -5), "axis -5 is out of bounds for a result with 4 axes"),
    ((1, 1), r"different positions for axis, got \(1, 1\)"),
    ((1, -3), r"different positions for axis, got \(1, -3\)"),
])  # fmt: skip
def test_expand_dims_refuses_positions_that_are_none_or_equal(axis: Any, text: str, device: str) -> None:
    with pytest.raises(IndexError, match=f"expand_dims: .*{text}"):
        xgrad.expand_dims(xgrad.zeros((2, 3), device=device), axis=axis)


def test_expand_dims_by_several_axes_is_a_view_that_writes_go_through() -> None:
    x = xgrad.zeros((2, 3))
    xgrad.expand_dims(x, axis=(0, -1))[0, 1, 2, 0] = 5.0
    assert x.tolist() == [[0, 0, 0], [0, 0, 5]]


def test_permute_dims_takes_negative_axes(device: str) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    x = xgrad.asarray(values, device=device)
    np.testing.assert_array_equal(host(xgrad.permute_dims(x, (-1, 0, -2))), values.transpose(2, 0, 1))
    for axes in ((0, -3, 1), (0, 1, 3), (0, 1, -4), (0, 1)):
        with pytest.raises((ValueError, IndexError, RuntimeError), match="permute_dims"):
            xgrad.permute_dims(x, axes)


# searchsorted


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_takes_scalars_in_the_precision_of_the_array(side: Any, device: str) -> None:
    values = np.array([0.0, 0.1, 0.1, 0.7])
    x = xgrad.asarray(values, device=device)
    for scalar in (0.1, 1, np.float64(0.7), np.float32(2)):
        found = xgrad.searchsorted(x, scalar, side=side)
        assert found.shape == () and found.tolist() == np.searchsorted(values, scalar, side=side)
    assert xgrad.searchsorted(xgrad.asarray([1, 2, 4], device=device), 2, side=side).tolist() == 1 + (side == "right")
    with pytest.raises(TypeError, match="searchsorted: expected real"):
        xgrad.searchsorted(x, 1j)  # type: ignore[arg-type]


# Tuples, assignment, versions


def test_several_arrays_come_as_tuples(device: str) -> None:
    x = xgrad.zeros(2, device=device)
    assert type(xgrad.broadcast_arrays(x, x)) is type(xgrad.meshgrid(x, x)) is tuple
    assert xgrad.broadcast_arrays() == xgrad.meshgrid() == ()
    assert type(xgrad.__array_namespace_info__().devices()) is tuple


DTYPES = "bool int8 int32 int64 uint8 uint32 float32 float64 complex64 complex128".split()
PROMOTED = [(a, b) for a in DTYPES for b in DTYPES if np.result_type(a, b) == a]


@pytest.mark.parametrize(("of_x", "of_value"), PROMOTED)
def test_assigned_values_are_promoted_to_the_dtype_of_the_tensor(of_x: str, of_value: str, device: str) -> None:
    x, value = np.zeros((2, 3), of_x), np.array([1, 0, 1], of_value)
    ours = xgrad.asarray(x, device=device)
    ours[1, :] = xgrad.asarray(value, device=device)
    x[1, :] = value
    assert ours.dtype == of_x
    np.testing.assert_array_equal(host(ours), x)


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"])
def test_array_api_compat_finds_the_namespace_of_every_version(version: str | None) -> None:
    found = array_api_compat.array_namespace(xgrad.ones(1), api_version=version)
    assert found.__array_api_version__ == ("2025.12" if version in (None, "2025.12") else "2024.12")
    assert found.exp is xgrad.exp
