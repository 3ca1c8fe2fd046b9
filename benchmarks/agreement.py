"""Comparison of a device's arrays, transfers and namespace functions with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

import xgrad

FLOATS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Check(NamedTuple):
    """A function, the arrays to call it with on the device, and the expected result."""

    label: str
    expected: np.ndarray
    function: Callable[..., Any]
    arrays: tuple[np.ndarray, ...] = ()


def checks(device: xgrad.Device) -> Iterator[Check]:
    """Yield all checks."""
    return chain(reductions(device), additions(device), transfers(device), functions(device))


def compare(check: Check, device: xgrad.Device) -> None:
    """Raise AssertionError unless a check has the expected result on the expected device."""
    backend = device.backend
    got = check.function(*[backend.from_host(x, device.index) for x in check.arrays])
    np.testing.assert_array_equal(backend.to_host(got), check.expected, strict=True)
    assert backend.index_of(got) == device.index, "the result is on another device"


def reductions(device: xgrad.Device) -> Iterator[Check]:
    """Yield argmax, argmin, max and min with infinities, NaN and ties.

    There are cases for each reduction kernel of CuPy.
    """
    inf, nan = np.inf, np.nan
    long = np.zeros(100_003)
    long[[77_777, 88_888]], long[[5, 99_999]] = inf, -inf
    cases = {
        "one": [inf],
        "infinities": [-inf, inf, 0, inf, -inf],
        "all low": [-inf, -inf, -inf],
        "all high": [inf, inf, inf],
        "nan": [1, nan, inf, 2],
        "rows": [[-inf, -inf, -inf], [inf, 1, inf], [2, -inf, 2]],
        "long": long,
        "wide": np.stack([long, -long]),
    }
    for (label, values), dtype, op in product(
        cases.items(), FLOATS, ("argmax", "argmin", "max", "min")
    ):
        x = np.asarray(values, dtype)
        for axis in (None, *range(x.ndim)):
            expected = np.asarray(getattr(np, op)(x, axis=axis))
            yield Check(
                f"{op} {label} {dtype} {axis}",
                expected,
                partial(getattr(device.xp, op), axis=axis),
                (x,),
            )


def additions(device: xgrad.Device) -> Iterator[Check]:
    """Yield additions by index, with repeated indices."""
    a, b, mask = np.asarray([0, 2, 0, -1]), np.asarray([[1], [1]]), np.asarray([True, False, True])
    keys: dict[str, Any] = {
        "array": a,
        "second axis": (slice(None), a),
        "two arrays": (b, a),
        "array and number": (a, 1),
        "separated": (a, slice(None), a),
        "0-d": np.asarray(1),
        "empty": np.zeros(0, np.int64),
        "mask": mask,
        "mask behind": (slice(None), mask),
        "array and mask": (np.asarray([1, 1]), mask),
        "number": 1,
        "slices": (slice(None, None, -2), None, Ellipsis),
    }
    for (label, key), dtype in product(keys.items(), (*FLOATS, *COMPLEX, "float16", *INTEGERS)):
        if dtype != "float32" and label not in ("second axis", "mask"):
            continue  # each case compiles a kernel
        x = np.ones((3, 3, 3), dtype)
        values = (np.arange(x[key].size) % 7).astype(dtype).reshape(x[key].shape)
        if x.dtype.kind == "c":
            values *= np.asarray(1 - 2j, dtype)
        expected = x.copy()
        np.add.at(expected, key, values)
        yield Check(f"index_add {label} {dtype}", expected, partial(_add, device, key), (x, values))


def _add(device: xgrad.Device, key: Any, x: Any, values: Any) -> Any:
    parts = [
        device.backend.from_host(part, device.index) if isinstance(part, np.ndarray) else part
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    x = device.xp.asarray(x, copy=True)  # it may share memory with the host array
    return device.xp.index_add(x, tuple(parts) if isinstance(key, tuple) else parts[0], values)


def transfers(device: xgrad.Device) -> Iterator[Check]:
    """Yield transfers of arrays of all layouts to the device and back."""
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    large = np.arange(300_000.0).reshape(300, 1000)
    frozen = grid.copy()
    frozen.flags.writeable = False
    cases = {
        "0-d": np.asarray(2.5),
        "no elements": np.zeros((0, 3), np.float32),
        "column-major": np.asfortranarray(grid),
        "backwards": grid[::-1, ::-2],
        "broadcast": np.broadcast_to(grid[0], (5, 4)),
        "permuted": np.ones((2, 3, 4)).transpose(1, 0, 2),
        "read-only": frozen,
        "large": large,
        "large column-major": large.T,
    }
    cases |= {dtype: np.arange(5).astype(dtype) for dtype in ("bool", *FLOATS, *COMPLEX, *INTEGERS)}
    for label, x in cases.items():
        yield Check(f"to the device and back: {label}", x, lambda x: x, (x,))
    yield Check("back from a view", large[::-1, 1:], lambda x: x[::-1, 1:], (large,))
    if device.backend.asynchronous:  # synchronous devices may share memory
        for size, pinned in product((16, 1 << 20, 1 << 24), (False, True)):
            label = f"the source changes after the call: {size}{' pinned' if pinned else ''}"
            yield Check(
                label, np.ones((4, size), np.float32), partial(_overwrite, device, size, pinned)
            )
    moving = (("", grid), (" of a view", grid[::-1, ::2]), (" without axes", cases["0-d"]))
    for other, (label, x) in product(range(device.backend.count()), moving):
        yield Check(f"from device {other}{label}", x, partial(_from, device, other, x))


def _overwrite(device: xgrad.Device, size: int, pinned: bool) -> Any:
    backend = device.backend
    x = np.ones(size, np.float32)
    if pinned:  # as large results are
        x = backend.to_host(backend.from_host(x, device.index))
    moved = [backend.from_host(x, device.index) for _ in range(4)]
    x[...] = 0
    return device.xp.stack(moved)


def _from(device: xgrad.Device, other: int, x: np.ndarray) -> Any:
    return device.backend.transfer(device.backend.from_host(x, other), device.index)


def functions(device: xgrad.Device) -> Iterator[Check]:
    """Yield functions of xgrad's namespace for CuPy that differ from array-api-compat."""
    xp, on = device.xp, {"dtype": device.backend.dtype("float32"), "device": device.native}
    x = np.asarray([np.nan, -np.inf, -2, -0.5, 0, 3, np.inf], np.float32)
    stack, matrix = np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(4, 5)
    yield Check("sign", np.sign(x), xp.sign, (x,))
    for low, high in ((-1.0, 2.0), (None, 2.0), (-1.0, None)):
        yield Check(
            f"clip {low} {high}", np.clip(x, low, high), partial(xp.clip, min=low, max=high), (x,)
        )
    for shape in ((6,), (0,), (3, 4)):
        ones = np.ones(shape, np.float32)
        yield Check(
            f"cumulative_sum {shape}",
            ones.cumsum(axis=-1),
            partial(xp.cumulative_sum, axis=-1),
            (ones,),
        )
    for label, a, b in (
        ("", stack, matrix),
        (" transposed", stack, matrix[:, :4].T),
        (" empty", stack[:0], matrix),
    ):
        yield Check(f"matmul of a stack{label}", a @ b, xp.matmul, (a, b))
    for dtype in ("float32", "int64", "complex64"):
        a = np.arange(9).reshape(3, 3).astype(dtype)
        yield Check(f"matmul {dtype}", a @ a, xp.matmul, (a, a))
    for made, create in (
        (np.zeros((2, 3)), partial(xp.zeros, (2, 3))),
        (np.full(2, -7.5), partial(xp.full, (2,), -7.5)),
        (np.arange(1.0, 7, 2), partial(xp.arange, 1, 7, 2)),
        (np.linspace(0, 1, 5), partial(xp.linspace, 0, 1, 5)),
        (np.eye(2, 3, 1), partial(xp.eye, 2, 3, k=1)),
    ):
        yield Check(
            f"{create.func.__name__} on a device", made.astype(np.float32), partial(create, **on)
        )
    yield Check("ones_like", np.ones_like(x), xp.ones_like, (x,))
