"""Mixtures, transforms and expanded distributions: their checks, shapes and copies."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on
from xgrad import distributions as D
from xgrad.autograd import grad
from xgrad.distributions import kl_divergence, transforms

CASES = {
    "Normal": (D.Normal(0.0, 1.0), math.nan),
    "Gamma": (D.Gamma(1.0, 2.0), -1.0),
    "Bernoulli": (D.Bernoulli(logits=0.5), 0.5),
    "Independent": (D.Independent(D.Exponential(xgrad.ones(1)), 1), -xgrad.ones(1)),
    "Transformed": (D.TransformedDistribution(D.Exponential(1.0), []), -1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_expanded_distribution_checks_values_as_the_original(name: str) -> None:
    distribution, value = CASES[name]
    with pytest.raises(ValueError, match="expected a value of"):
        distribution.expand((2,)).log_prob(value)


@pytest.mark.parametrize("name", ["Independent", "Transformed"])
def test_combined_distribution_without_checks_has_none_in_its_base(name: str) -> None:
    distribution, value = CASES[name]
    last: Any = 1 if name == "Independent" else []
    unchecked = type(distribution)(distribution.base_dist, last, validate_args=False)
    for x in (unchecked, unchecked.expand((2,))):
        np.testing.assert_array_equal(host(x.log_prob(value)), np.ones(x.batch_shape))


def test_mixture_of_uniform_numbers_has_all_their_intervals(device: str) -> None:
    low, high = np.array([0.0, 2.0, 2.5]), np.array([1.0, 4.0, 3.0])
    weights = np.array([0.2, 0.5, 0.3])
    components = D.Uniform(on(device, low), on(device, high))
    mixture = D.MixtureSameFamily(D.Categorical(on(device, weights)), components)
    x = np.array([0.5, 2.25, 2.75, 3.5])
    inside = (x[:, None] >= low) & (x[:, None] <= high)
    density = (weights * inside / (high - low)).sum(axis=1)
    np.testing.assert_allclose(host(mixture.log_prob(on(device, x))), np.log(density), rtol=1e-12)
    below = (weights * np.clip((x[:, None] - low) / (high - low), 0, 1)).sum(axis=1)
    np.testing.assert_allclose(host(mixture.cdf(on(device, x))), below, rtol=1e-12)
    assert bool(xgrad.all(xgrad.isfinite(mixture.log_prob(mixture.sample((50,))))))
    if device == "cpu":
        for value in (1.5, -1.0, math.nan):
            with pytest.raises(ValueError, match="MixtureSameFamily: expected a value of numbers"):
                mixture.log_prob(value)


def test_mixture_of_vectors_with_bounds_has_the_union_of_supports() -> None:
    low = xgrad.asarray([[0.0, 0.0], [5.0, 5.0], [7.0, 7.0]])
    components = D.Independent(D.Uniform(low, low + 1), 1)
    mixture = D.MixtureSameFamily(D.Categorical(xgrad.asarray([0.25, 0.25, 0.5])), components)
    points = xgrad.asarray([[0.5, 0.5], [7.5, 7.25], [0.5, 5.5]])
    assert mixture.support.check(points).tolist() == [True, True, False]
    np.testing.assert_allclose(mixture.log_prob(points[:2]).numpy(), np.log([0.25, 0.5]))


def test_transforms_are_pickled_and_equal_by_their_parameters() -> None:
    scale = xgrad.asarray([2.0, 3.0])
    parts = [transforms.AffineTransform(1.0, scale), transforms.ExpTransform()]
    loaded = pickle.loads(pickle.dumps(D.TransformedDistribution(D.Normal(0.0, 1.0), parts)))
    assert loaded.log_prob(2.0).shape == (2,)

    same = transforms.ComposeTransform(
        [transforms.AffineTransform(1.0, scale), transforms.ExpTransform()]
    )
    assert same == transforms.ComposeTransform(parts) and len({same, same}) == 1
    assert transforms.AffineTransform(1.0, 2.0) == transforms.AffineTransform(1.0, 2.0)
    assert transforms.AffineTransform(1.0, 2.0) != transforms.AffineTransform(1.0, 2.5)
    assert transforms.AffineTransform(1.0, scale) != transforms.AffineTransform(1.0, scale + 0)
    assert transforms.ExpTransform() != transforms.TanhTransform()


def test_divergence_of_equal_transforms_is_the_divergence_of_the_bases(torch: Any) -> None:
    def divergence(lib: Any) -> Any:
        p, q = [
            lib.TransformedDistribution(
                lib.Normal(loc, 1.5),
                [lib.transforms.AffineTransform(0.5, 2.0), lib.transforms.ExpTransform()],
            )
            for loc in (0.0, 1.0)
        ]
        return lib.kl_divergence(p, q)

    np.testing.assert_allclose(divergence(D).numpy(), divergence(torch.distributions).numpy())
    other = D.TransformedDistribution(D.Normal(0.0, 1.0), transforms.AffineTransform(0.0, 1.0))
    last = D.TransformedDistribution(D.Normal(0.0, 1.0), transforms.AffineTransform(0.0, 1.5))
    with pytest.raises(NotImplementedError, match="by the same transforms"):
        kl_divergence(other, last)


@pytest.mark.parametrize("event_dim", [0, 1])
def test_transform_of_several_parameters_makes_several_distributions(
    event_dim: int, torch: Any
) -> None:
    def made(lib: Any, array: Any) -> Any:
        part = lib.transforms.AffineTransform(
            array(np.zeros(3)), array(np.array([1.0, 2.0, 3.0])), event_dim=event_dim
        )
        base = lib.Normal(array(np.zeros((1,) * event_dim)), array(np.ones(())))
        return lib.TransformedDistribution(base, [part, lib.transforms.ExpTransform()])

    ours, theirs = made(D, xgrad.asarray), made(torch.distributions, torch.tensor)
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    x = ours.sample((4,))
    assert x.shape == (4, 3)
    noise = np.log(x.numpy()) / [1, 2, 3]
    assert np.unique(noise.round(9)).size == 12  # one draw for each distribution
    want = theirs.log_prob(torch.tensor(x.numpy()))
    np.testing.assert_allclose(ours.log_prob(x).numpy(), want.numpy(), rtol=1e-9)


def test_python_numbers_have_the_dtype_of_the_base_distribution() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs SciPy")
    base = D.Normal(xgrad.asarray(0.0, dtype=xgrad.float64), 1.0)
    ours, want = D.TransformedDistribution(base, transforms.ExpTransform()), stats.lognorm(1.0)
    np.testing.assert_allclose(ours.log_prob(0.1).item(), want.logpdf(0.1), rtol=1e-13)
    np.testing.assert_allclose(ours.cdf(0.1).item(), want.cdf(0.1), rtol=1e-13)
    np.testing.assert_allclose(ours.icdf(0.1).item(), want.ppf(0.1), rtol=1e-12)
    vectors = D.TransformedDistribution(D.Independent(base.expand((2,)), 1), [])
    assert vectors.log_prob([0.1, 0.2]).dtype == xgrad.float64


def test_infinite_logits_are_certain(device: str) -> None:
    logits = on(device, np.array([math.inf, -math.inf]))
    bernoulli = D.Bernoulli(logits=logits)
    assert bernoulli.log_prob(1.0).tolist() == [0.0, -math.inf]
    assert bernoulli.log_prob(0.0).tolist() == [-math.inf, 0.0]
    assert bernoulli.entropy().tolist() == [0.0, 0.0]
    assert D.Binomial(3, logits=logits).log_prob(3.0).tolist() == [0.0, -math.inf]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("D.Binomial(xp.inf, 0.5)", "ValueError: Binomial: expected total_count of integers"),
        ("D.Binomial(xp.nan, 0.5)", "ValueError: Binomial: expected total_count of integers"),
        ("D.Normal(0.0, 1.0).sample(None)", "TypeError: Normal: expected an int or a tuple"),
        ("D.Normal(0.0, 1.0).sample(True)", "TypeError: Normal: expected an int or a tuple"),
        (
            "D.Uniform(xp.zeros(2), 1.0).log_prob(2.0)",
            "ValueError: Uniform: expected a value of numbers from the lower to the upper bound",
        ),
        (
            "D.TransformedDistribution(D.Independent(D.Normal(xp.zeros(1), 1.0), 1),"
            " D.transforms.AffineTransform(xp.zeros(3), 1.0))",
            "ValueError: TransformedDistribution: expected transforms of samples of shape (1,)",
        ),
    ],
)
def test_invalid_calls_are_refused(call: str, expected: str) -> None:
    check_error(call, expected, D=D)


@pytest.mark.parametrize("kind", ["Categorical", "Dirichlet", "OneHotCategorical"])
def test_divergence_of_different_samples_is_refused(kind: str) -> None:
    p, q = [getattr(D, kind)(xgrad.ones(n)) for n in (3, 1)]
    with pytest.raises(ValueError, match="kl_divergence: expected distributions of equal"):
        kl_divergence(p, q)


def test_entropy_of_an_impossible_class_has_finite_derivatives(device: str) -> None:
    """The class contributes nothing, and the others have their own derivatives."""
    probs = leaf64([0.0, 0.25, 0.75], device)
    (got,) = grad(D.Categorical(probs).entropy(), [probs])
    p = host(probs)[1:]
    entropy = -(p * np.log(p)).sum()
    np.testing.assert_allclose(host(got)[1:], -np.log(p) - entropy, rtol=1e-12)
    assert np.isfinite(host(got)[0])


def test_shapes_may_be_integers_of_numpy() -> None:
    assert D.Normal(0.0, 1.0).sample(np.int64(3)).shape == (3,)
    assert D.Normal(0.0, 1.0).expand((np.int64(2), 1)).batch_shape == (2, 1)
