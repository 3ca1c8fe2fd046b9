"""The references of `xgrad.parity`, in extended precision and by finite differences.

They are checked by identities, such as the product of the factors of a matrix, by closed forms,
and at bounds by SciPy's conventions.
"""

import math

import numpy as np
import pytest

from xgrad.parity.cases import find
from xgrad.parity.mpmath_reference import LinearAlgebra, SpecialFunctions
from xgrad.parity.op_case import Sample
from xgrad.parity.reference import ExtendedBackend, differences, reference
from xgrad.parity.run_op import quiet, run_op

needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="long double is float64 here"
)


def run_reference(name, *inputs, precision=None, elementwise=False):
    sample = Sample(tuple(map(np.array, inputs)), elementwise=elementwise)
    return sample, run_op(find(name), sample, reference().device, "float64", precision)


@needs_long_double
def test_reference_has_more_digits_than_float64():
    _, ((root,), (slope,)) = run_reference("sqrt", [2.0])
    assert root.dtype == np.longdouble
    assert abs(root[0] * root[0] - 2) < 4 * reference().eps
    assert abs(slope[0] * 2 * root[0] - 1) < 8 * reference().eps


@needs_long_double
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (4, 2), (2, 4), (1, 1), (0, 3), (2, 0, 0)])
@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_decompositions_have_more_digits_than_float64(shape, dtype):
    pytest.importorskip("mpmath", reason="mpmath, the reference, is not installed")
    linalg, random = LinearAlgebra(np.linalg), np.random.default_rng(0)
    x = random.normal(size=shape).astype(dtype)
    x = x + 1j * random.normal(size=shape) if x.dtype.kind == "c" else x
    hermitian = np.conj(x.mT) @ x
    u, s, vh = linalg.svd(x, full_matrices=False)
    q, r = linalg.qr(x, mode="complete")
    values, vectors = linalg.eigh(hermitian)
    unit = np.broadcast_to(np.eye(shape[-1], dtype=dtype), hermitian.shape)
    low = linalg.cholesky(positive := hermitian + unit)
    products = [
        (u * s[..., None, :] @ vh, x),
        (q @ r, x),
        (x @ linalg.pinv(x) @ x, x),
        (low @ np.conj(low.mT), positive),
        (vectors * values[..., None, :] @ np.conj(vectors.mT), hermitian),
        (linalg.inv(positive) @ positive, unit),
        (linalg.slogdet(positive)[1], np.sum(np.log(linalg.eigvalsh(positive)), axis=-1)),
    ]
    for got, expected in products:
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert np.all(np.abs(got - expected) <= 200 * reference().eps * (1 + np.abs(expected)))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ndtri", (-1e-3,), math.nan), ("ndtri", (0.0,), -math.inf), ("erfcinv", (2.1,), math.nan),
        ("logit", (-0.1,), math.nan), ("logit", (1.0,), math.inf),
        ("betainc", (2.5, 1.5, -0.1), math.nan), ("betaincinv", (2.5, 1.5, 1.1), math.nan),
        ("psi", (0.0,), -math.inf), ("y0", (-1.0,), math.nan),
    ],
)  # fmt: skip
def test_special_functions_at_and_outside_their_bounds_are_those_of_scipy(
    name, arguments, expected
):
    pytest.importorskip("mpmath", reason="mpmath, the reference, is not installed")
    special = pytest.importorskip("scipy.special", reason="needs scipy")
    for function in (getattr(special, name), getattr(SpecialFunctions(), name)):
        with quiet():
            value = float(function(*arguments))
        np.testing.assert_equal(value, expected)


def test_inputs_are_rounded_first():
    _, ((value,), _) = run_reference("positive", [1 / 3], precision="float32")
    assert value[0] == np.float32(1 / 3)


def test_reference_runs_no_kernel_of_the_device():
    assert not ExtendedBackend().kernels


def test_reference_is_cpu_without_a_long_double(monkeypatch):
    monkeypatch.setattr(np, "longdouble", np.float64)
    device, description, eps = reference.__wrapped__()
    assert str(device) == "cpu" and "float64" in description and eps == np.finfo(np.float64).eps


@pytest.mark.parametrize("elementwise", [True, False])
def test_differences_are_derivatives(elementwise):
    x = np.array([0.3, 1.1, 2.9])
    slopes = differences(find("sin"), *run_reference("sin", x, elementwise=elementwise))
    weights = np.cos(np.arange(3.0))
    np.testing.assert_allclose(slopes.gradients[0].astype(float), weights * np.cos(x), rtol=1e-11)
    np.testing.assert_allclose(
        slopes.value_changes[0].astype(float), np.abs(x * np.cos(x)), rtol=1e-6
    )
    changes = np.abs(weights) * (np.abs(np.cos(x)) + np.abs(x * np.sin(x)))
    np.testing.assert_allclose(slopes.gradient_changes[0].astype(float), changes, rtol=1e-5)


def test_changes_of_a_sum_add_up_by_magnitude():
    slopes = differences(find("sum"), *run_reference("sum", [1.0, -1.0, 0.5]))
    assert slopes.value_changes[0] == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("name", "x"), [("abs", 1e-9), ("floor", 1.0), ("relu", 0.0), ("round", 0.5)]
)
def test_differences_at_kinks_and_jumps_are_ignored(name, x):
    slopes = differences(find(name), *run_reference(name, [x, 0.3], elementwise=True))
    assert slopes.noise[0][0] == math.inf and slopes.noise[0][1] < 1e-6
