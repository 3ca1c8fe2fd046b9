"""Fourier transforms beyond the op table: integers, frequencies as in NumPy, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64
from xgrad import fft

TO_REALS = ("irfft", "irfftn", "hfft")


@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn".split())
def test_integers_become_float32(name: str, device: str) -> None:
    out = getattr(fft, name)(xgrad.asarray([1, 2, 3, 4], device=device))
    assert str(out.dtype) == ("float32" if name in TO_REALS else "complex64")
    np.testing.assert_allclose(
        host(out), getattr(np.fft, name)(np.array([1.0, 2, 3, 4])), rtol=1e-6, atol=1e-6
    )


def test_ignored_imaginary_parts_have_no_gradient(device: str) -> None:
    """The first and the middle of half a spectrum are real: NumPy ignores their imaginary parts."""
    x = leaf64([1 + 2j, 3 - 1j, 2 + 1j], device)
    (
        fft.irfft(x) * xgrad.asarray([1.0, 2.0, -1.0, 0.5], dtype=xgrad.float64, device=device)
    ).sum().backward()
    assert (host(x.grad).imag == 0).tolist() == [True, False, True]


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_agree_with_numpy(name: str, device: str) -> None:
    frequencies = getattr(fft, name)
    for n in (1, 4, 5):
        got = frequencies(n, d=0.25, device=device)
        assert (str(got.dtype), str(got.device)) == ("float32", device)
        np.testing.assert_array_equal(host(got), getattr(np.fft, name)(n, 0.25).astype(np.float32))
    assert frequencies(3, dtype=xgrad.float64, device=device).dtype == np.float64
    with pytest.raises(ValueError, match=f"^{name}: expected a positive n, got 0"):
        frequencies(0)
    with pytest.raises(TypeError, match=f"^{name}: expected an int for n, got 2.5"):
        frequencies(2.5)
    with pytest.raises(TypeError, match=f"^{name}: expected a real floating dtype, got int64"):
        frequencies(3, dtype=xgrad.int64)


REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    (
        "fft",
        {"norm": "both"},
        ValueError,
        "fft: expected a norm of 'backward', 'ortho' or 'forward', got 'both'",
    ),
    ("fft", {"n": 0}, ValueError, r"fft: expected at least one point along each axis, got \(0,\)"),
    ("fft", {"axis": 2}, IndexError, r"fft: expected axis from -2 to 1 for x of shape .*, got 2"),
    (
        "fftn",
        {"axes": (0, -2)},
        ValueError,
        r"fftn: expected different axes for axes, got \(0, -2\)",
    ),
    (
        "fftn",
        {"s": (2,), "axes": (0, 1)},
        ValueError,
        r"fftn: expected as many lengths in s as axes, got \(2,\)",
    ),
    (
        "fftn",
        {"s": (2, 2, 2)},
        ValueError,
        r"fftn: expected as many lengths in s as the input has axes, 2, or less",
    ),
    (
        "irfft",
        {"axis": 0},
        ValueError,
        r"irfft: expected at least one point along each axis, got \(0,\)",
    ),
    ("rfft", {}, TypeError, "rfft: expected real numbers, got .*complex128: use fft"),
    ("rfftn", {}, TypeError, "rfftn: expected real numbers, got .*complex128: use fftn"),
    ("ihfft", {}, TypeError, "ihfft: expected real numbers, got .*complex128: use ifft"),
]


@pytest.mark.parametrize(("name", "options", "error", "message"), REFUSED)
def test_invalid_transforms_are_refused(
    name: str, options: Any, error: type[Exception], message: str, device: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(fft, name)(xgrad.asarray(np.ones((1, 3), np.complex128), device=device), **options)
