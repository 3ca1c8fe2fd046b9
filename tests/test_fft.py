"""Fourier transforms: signatures, precision, what is refused. The op table has their values and derivatives."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import fft

ONE = "fft ifft rfft irfft hfft ihfft".split()
MANY = "fftn ifftn rfftn irfftn".split()
OF_REALS = ("rfft", "rfftn", "ihfft")
TO_REALS = ("irfft", "irfftn", "hfft")


def numbers(*shape: int) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def given(name: str, *shape: int) -> np.ndarray:
    return numbers(*shape).real if name in OF_REALS else numbers(*shape)


def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy())


def test_all_of_the_standard_is_there() -> None:
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict, the oracle, is not installed")
    assert sorted(fft.__all__) == sorted(strict.fft.__all__)


@pytest.mark.parametrize("name", fft.__all__)
def test_signatures_are_the_standards(name: str) -> None:
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict, the oracle, is not installed")
    ours, theirs = (list(inspect.signature(getattr(m, name)).parameters.values()) for m in (fft, strict.fft))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_precision_stays(name: str, precision: str, device: str) -> None:
    number = np.result_type(precision, np.complex64)
    x = xgrad.asarray(given(name, 4).astype(precision if name in OF_REALS else number), device=device)
    out = getattr(fft, name)(x)
    assert str(out.dtype) == (precision if name in TO_REALS else str(number))
    assert str(out.device) == device


@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_real_numbers_and_integers_are_taken(name: str, device: str) -> None:
    out = getattr(fft, name)(xgrad.asarray([1, 2, 3, 4], device=device))
    assert str(out.dtype) == ("float32" if name in TO_REALS else "complex64")
    np.testing.assert_allclose(host(out), getattr(np.fft, name)(np.array([1.0, 2, 3, 4])), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("there", "back"), [("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft"), ("fftn", "ifftn")])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("length", [4, 5])
def test_there_and_back(there: str, back: str, norm: str, length: int, device: str) -> None:
    x = given(there, 3, length)
    options = {"s": (length,), "axes": (-1,)} if there.endswith("n") else {"n": length}
    spectrum = getattr(fft, there)(xgrad.asarray(x, device=device), norm=norm)
    if there == "fftn":
        options = {}
    np.testing.assert_allclose(host(getattr(fft, back)(spectrum, norm=norm, **options)), x, rtol=1e-12)


@pytest.mark.parametrize("name", ["fftn", "rfftn"])
def test_lengths_without_axes_are_those_of_the_last(name: str, device: str) -> None:
    x = given(name, 2, 3, 4)
    got = getattr(fft, name)(xgrad.asarray(x, device=device), s=(5, -1))
    np.testing.assert_allclose(host(got), getattr(np.fft, name)(x, s=(5, 4), axes=(1, 2)), rtol=1e-12, atol=1e-12)


def test_the_imaginary_part_that_counts_for_nothing_has_no_gradient(device: str) -> None:
    """The first and the middle of half a spectrum are real: of those NumPy ignores the imaginary part, as we do."""
    x = xgrad.Tensor(numbers(3), dtype=xgrad.complex128, device=device, requires_grad=True)
    (fft.irfft(x) * xgrad.asarray([1.0, 2.0, -1.0, 0.5], dtype=xgrad.float64, device=device)).sum().backward()
    assert x.grad is not None
    assert (host(x.grad).imag == 0).tolist() == [True, False, True]


@pytest.mark.parametrize(("name", "function"), [("fftfreq", np.fft.fftfreq), ("rfftfreq", np.fft.rfftfreq)])
def test_frequencies(name: str, function: Any, device: str) -> None:
    for n in (1, 4, 5):
        got = getattr(fft, name)(n, d=0.25, device=device)
        assert (str(got.dtype), str(got.device)) == ("float32", device)
        np.testing.assert_array_equal(host(got), function(n, 0.25).astype(np.float32))
    assert getattr(fft, name)(3, dtype=xgrad.float64, device=device).dtype == np.float64
    with pytest.raises(ValueError, match=f"^{name}: expected a positive n, got 0"):
        getattr(fft, name)(0)
    with pytest.raises(TypeError, match=f"^{name}: expected an int for n, got 2.5"):
        getattr(fft, name)(2.5)
    with pytest.raises(TypeError, match=f"^{name}: expected a real floating dtype, got int64"):
        getattr(fft, name)(3, dtype=xgrad.int64)


@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_the_gradient_of_nothing(name: str, device: str) -> None:
    """PyTorch and CuPy refuse to transform it."""
    shape, options = (2, 0, 3), {"axes": (2,)} if name in MANY else {}
    x = xgrad.asarray(given(name, *shape), device=device, requires_grad=True)
    out = getattr(fft, name)(x, **options)
    out.backward(xgrad.ones(out.shape, dtype=out.dtype, device=device))
    assert x.grad is not None
    assert (x.grad.shape, x.grad.dtype) == (x.shape, x.dtype)


REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("fft", {"norm": "both"}, ValueError, "fft: expected a norm of 'backward', 'ortho' or 'forward', got 'both'"),
    ("fft", {"n": 0}, ValueError, r"fft: expected at least one point along each axis, got \(0,\)"),
    ("fft", {"axis": 2}, ValueError, r"fft: expected axes of an input with 2, got \(2,\)"),
    ("fftn", {"axes": (0, -2)}, ValueError, r"fftn: expected different axes, got \(0, -2\)"),
    ("fftn", {"s": (2,), "axes": (0, 1)}, ValueError, r"fftn: expected as many lengths in s as axes, got \(2,\)"),
    ("fftn", {"s": (2, 2, 2)}, ValueError, r"fftn: expected as many lengths in s as the input has axes, 2, or less"),
    ("irfft", {"axis": 0}, ValueError, r"irfft: expected at least one point along each axis, got \(0,\)"),
    ("rfft", {}, TypeError, "rfft: expected real numbers, got .*complex128: use fft"),
    ("rfftn", {}, TypeError, "rfftn: expected real numbers, got .*complex128: use fftn"),
    ("ihfft", {}, TypeError, "ihfft: expected real numbers, got .*complex128: use ifft"),
]


@pytest.mark.parametrize(("name", "options", "error", "message"), REFUSED)
def test_what_is_refused(name: str, options: Any, error: type[Exception], message: str, device: str) -> None:
    with pytest.raises(error, match=message):
        getattr(fft, name)(xgrad.asarray(numbers(1, 3), device=device), **options)
