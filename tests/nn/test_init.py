"""Initialization by structure and from truncated distributions: PyTorch, SciPy, identities."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from helpers import check_error, host
from xgrad import nn


@pytest.fixture(autouse=True)
def _seeded():
    xgrad.manual_seed(0)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("eye_", (3, 4), {}),
        ("eye_", (4, 2), {}),
        ("dirac_", (3, 2, 4), {}),
        ("dirac_", (2, 3, 3, 2), {}),
        ("dirac_", (4, 3, 3, 3, 1), {"groups": 2}),
        ("dirac_", (6, 1, 5), {"groups": 3}),
    ],
)
def test_structure_equals_that_of_pytorch(name, shape, options, device, torch):
    x = xgrad.ones(shape, device=device)
    assert getattr(nn.init, name)(x, **options) is x
    expected = getattr(torch.nn.init, name)(torch.ones(shape), **options)
    np.testing.assert_array_equal(host(x), expected.numpy())


@pytest.mark.parametrize("dtype", [xgrad.float32, xgrad.float64])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (3, 2, 2, 3), (1, 1)])
def test_rows_or_columns_of_orthogonal_weight_are_orthonormal(shape, dtype, device):
    x = nn.init.orthogonal_(xgrad.zeros(shape, dtype=dtype, device=device), gain=2.0)
    w = host(x).reshape(shape[0], -1).astype("float64")
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)
    assert (x.dtype, str(x.device)) == (dtype, device)


def test_orthogonal_weights_are_rotations_and_reflections_alike():
    determinants = [
        np.linalg.det(host(nn.init.orthogonal_(xgrad.zeros((3, 3))))) for _ in range(200)
    ]
    assert 60 < sum(d > 0 for d in determinants) < 140


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_weight_stays_empty(shape):
    assert nn.init.orthogonal_(xgrad.zeros(shape)).shape == shape
    assert nn.init.trunc_normal_(xgrad.zeros(shape)).shape == shape


@pytest.mark.parametrize(("sparsity", "zeros"), [(0.0, 0), (0.5, 5), (0.41, 5), (1.0, 10)])
def test_each_column_of_sparse_weight_has_its_share_of_zeros(sparsity, zeros, device):
    x = host(nn.init.sparse_(xgrad.ones((10, 400), device=device), sparsity, std=0.1))
    assert ((x == 0).sum(axis=0) == zeros).all()
    if zeros < 10:
        assert x[x != 0].std() == pytest.approx(0.1, rel=0.1)
        assert (x == 0).mean(axis=1) == pytest.approx(zeros / 10, abs=0.12)


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0, 1, -2, 2), (1, 0.5, 0, 4), (0, 1, 3, 4), (-1, 2, -20, 20), (0, 1, -8, -6), (0, 1, -1, 7)],
)
def test_truncated_normal_numbers_have_their_distribution(mean, std, a, b):
    scipy = pytest.importorskip("scipy.stats", reason="needs scipy")
    x = xgrad.zeros(20000, dtype=xgrad.float64)
    x = host(nn.init.trunc_normal_(x, mean, std, a, b))
    assert a <= x.min() and x.max() <= b
    expected = scipy.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    assert scipy.kstest(x, expected.cdf).pvalue > 0.01


@pytest.mark.parametrize("name", ["trunc_normal_", "orthogonal_", "sparse_"])
def test_same_seed_gives_same_numbers_on_each_device(name, device):
    options = {"sparse_": {"sparsity": 0.3}}.get(name, {})
    results = []
    for place in ("cpu", device):
        generator = xgrad.random.Generator(3)
        x = xgrad.zeros((5, 4), device=place)
        results.append(host(getattr(nn.init, name)(x, generator=generator, **options)))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "init.eye_(xp.ones(3))",
            "ValueError: eye_: expected a tensor of 2 axes, got shape (3,)",
        ),
        (
            "init.dirac_(xp.ones((3, 3)))",
            "ValueError: dirac_: expected a tensor of 3 to 5 axes, got shape (3, 3)",
        ),
        (
            "init.dirac_(xp.ones((3, 3, 3)), 2)",
            "ValueError: dirac_: expected groups that divide the output channels, 3, got 2",
        ),
        (
            "init.orthogonal_(xp.ones(3))",
            "ValueError: orthogonal_: expected a tensor of 2 axes or more, got shape (3,)",
        ),
        (
            "init.orthogonal_(xp.ones((3, 3), dtype=xp.int64))",
            "TypeError: orthogonal_: expected a tensor of float32 or float64, got int64",
        ),
        (
            "init.orthogonal_(xp.ones((3, 3)), 'x')",
            "TypeError: orthogonal_: expected a number for gain, got 'x'",
        ),
        (
            "init.sparse_(xp.ones((3, 3)), 1.5)",
            "ValueError: sparse_: expected sparsity from 0 to 1, got 1.5",
        ),
        (
            "init.sparse_(xp.ones((3, 3)), 0.5, -1.0)",
            "ValueError: sparse_: expected std >= 0, got -1.0",
        ),
        (
            "init.trunc_normal_(xp.ones(3), a=2, b=1)",
            "ValueError: trunc_normal_: expected std > 0 and a < b, got 1.0, 2 and 1",
        ),
        (
            "init.trunc_normal_(xp.ones(3), a=9, b=10)",
            "ValueError: trunc_normal_: expected bounds within 8 standard deviations of the mean",
        ),
        (
            "init.trunc_normal_(xp.ones(3, dtype=xp.float16))",
            "TypeError: trunc_normal_: expected a tensor of float32 or float64, got float16",
        ),
        ("init.trunc_normal_([1.0])", "TypeError: trunc_normal_: expected a tensor for tensor"),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    check_error(call, error, init=nn.init)
