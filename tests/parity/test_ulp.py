"""Errors in units in the last place, compared with known distances of neighbouring numbers."""

import numpy as np
import pytest

from xgrad.parity.ulp import distance, ulp

F32, F64 = np.dtype("float32"), np.dtype("float64")


@pytest.mark.parametrize("dtype", [F32, F64])
def test_ulp_is_the_spacing_of_normal_numbers_within_their_range(dtype):
    info = np.finfo(dtype)
    for x in (1.0, 1.5, 2.0, -3.0, 1e-30, 1e30, 0.1):
        assert ulp(np.array(x), dtype) == abs(np.spacing(dtype.type(x)))
    for x in (0.0, info.smallest_subnormal, info.smallest_normal / 2, info.smallest_normal):
        assert ulp(np.array(x), dtype) == info.smallest_subnormal
    largest = info.max - np.nextafter(info.max, dtype.type(0))
    assert ulp(np.array(info.max), dtype) == ulp(np.array(np.inf), dtype) == largest


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_distance_of_neighbours_is_one_unit(steps):
    want = np.array([1.0, -1.25, 1e-40, 3e38], F32)
    got = want
    for _ in range(steps):
        got = np.nextafter(got, np.float32(np.inf))
    assert distance(got, want.astype(F64), F32)[0].tolist() == [steps] * 4


def test_distance_is_also_relative():
    want = np.longdouble([1.0, 4.0]) + np.longdouble([2.0**-24, 2.0**-22])
    units, relative = distance(np.array([1.0, 4.0], F32), want, F32)
    np.testing.assert_allclose(units, 0.5, rtol=1e-6)
    np.testing.assert_allclose(relative, 2.0**-24, rtol=1e-6)


def test_distance_with_an_extra_magnitude_is_smaller():
    got, want = np.array([2.0**-23]), np.array([0.0])
    assert distance(got, want, F32)[0] > 1e30
    assert distance(got, want, F32, 1.0)[0] == 1


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("got", "want", "expected"),
    [
        (NAN, NAN, 0), (NAN, 1.0, INF), (1.0, NAN, INF),
        (INF, INF, 0), (-INF, INF, INF), (INF, 1.0, INF), (1.0, INF, INF),
        (INF, 1e39, 0), (3e38, 1e39, INF), (0.0, -0.0, 0), (NAN, INF, INF),
    ],
)  # fmt: skip
def test_distance_of_nans_and_infinities_is_zero_at_the_same_places(got, want, expected):
    for errors in distance(np.array([got], F32), np.array([want]), F32):
        assert errors.tolist() == [expected]


def test_flushed_float32_subnormals_have_no_error():
    tiny = np.array([1e-40])
    assert distance(np.array([0.0], F32), tiny, F32)[0] == 0
    assert distance(np.array([1e-41], F32), tiny, F32)[0] > 1e4
    assert distance(np.array([0.0], F32), np.array([1.2e-38]), F32)[0] > 1e6
    assert distance(np.array([0.0]), np.array([1e-310]), F64)[0] > 1e10


def test_distance_of_integers_and_bools_is_zero_or_infinite():
    assert distance(np.array([1, 2]), np.array([1, 3]), np.dtype("int64"))[0].tolist() == [0, INF]
    assert distance(np.array([True]), np.array([True]), np.dtype(bool))[1].tolist() == [0]
