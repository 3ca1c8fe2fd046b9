"""Distributions, compared with PyTorch and SciPy; samples by the test of Kolmogorov and Smirnov."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf64, on, uniform
from xgrad import Tensor
from xgrad import distributions as D
from xgrad.autograd import grad
from xgrad.distributions import kl_divergence, transforms
from xgrad.testing import gradcheck, gradgradcheck

stats = pytest.importorskip("scipy.stats", reason="needs SciPy")

Arrays = dict[str, Any]


def matrix(n: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, n))
    return x @ x.T + np.eye(n)


FACTOR = np.linalg.cholesky(matrix(3))
LOC, SCALE, OTHER = np.array([-1.0, 0.3, 2.0]), np.array([0.4, 1.0, 2.5]), np.array([1.5, 0.2, 5.0])
PROBS = np.array([0.1, 0.5, 0.85])
CLASSES = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
LOGITS = np.array([[0.5, -1.0, 2.0], [0.0, 0.1, -0.3]])
REALS, POSITIVES = np.array([-0.7, 0.3, 4.0]), np.array([0.2, 1.3, 4.0])

#: For each case: the class, the parameters, and values of `log_prob`.
CASES: dict[str, tuple[str, Arrays, Any]] = {
    "Normal": ("Normal", {"loc": LOC, "scale": SCALE}, REALS),
    "LogNormal": ("LogNormal", {"loc": LOC, "scale": SCALE}, POSITIVES),
    "HalfNormal": ("HalfNormal", {"scale": SCALE}, POSITIVES),
    "Laplace": ("Laplace", {"loc": LOC, "scale": SCALE}, REALS),
    "Cauchy": ("Cauchy", {"loc": LOC, "scale": SCALE}, REALS),
    "Gumbel": ("Gumbel", {"loc": LOC, "scale": SCALE}, REALS),
    "Uniform": ("Uniform", {"low": LOC, "high": LOC + SCALE}, LOC + SCALE * PROBS),
    "Exponential": ("Exponential", {"rate": SCALE}, POSITIVES),
    "Gamma": ("Gamma", {"concentration": OTHER, "rate": SCALE}, POSITIVES),
    "Chi2": ("Chi2", {"df": OTHER}, POSITIVES),
    "Beta": ("Beta", {"concentration1": OTHER, "concentration0": SCALE}, PROBS),
    "StudentT": ("StudentT", {"df": OTHER, "loc": LOC, "scale": SCALE}, REALS),
    "Dirichlet": ("Dirichlet", {"concentration": 5 * CLASSES}, CLASSES[::-1].copy()),
    "Bernoulli": ("Bernoulli", {"probs": PROBS}, np.array([0.0, 1.0, 1.0])),
    "Bernoulli of logits": ("Bernoulli", {"logits": LOC}, np.array([0.0, 1.0, 1.0])),
    "Geometric": ("Geometric", {"probs": PROBS}, np.array([0.0, 1.0, 3.0])),
    "Geometric of logits": ("Geometric", {"logits": LOC}, np.array([0.0, 1.0, 3.0])),
    "Binomial": ("Binomial", {"total_count": 5.0, "probs": PROBS}, np.array([0.0, 2.0, 5.0])),
    "Binomial of logits": (
        "Binomial",
        {"total_count": 5.0, "logits": LOC},
        np.array([0.0, 2.0, 5.0]),
    ),
    "Poisson": ("Poisson", {"rate": SCALE}, np.array([0.0, 2.0, 5.0])),
    "Categorical": ("Categorical", {"probs": CLASSES}, np.array([2, 0])),
    "Categorical of logits": ("Categorical", {"logits": LOGITS}, np.array([2, 0])),
    "OneHotCategorical": ("OneHotCategorical", {"probs": CLASSES}, np.eye(3)[:2]),
    "OneHotCategorical of logits": ("OneHotCategorical", {"logits": LOGITS}, np.eye(3)[:2]),
    "Multinomial": (
        "Multinomial",
        {"total_count": 4, "probs": CLASSES},
        np.array([[1.0, 2.0, 1.0], [4.0, 0.0, 0.0]]),
    ),
    "Multinomial of logits": (
        "Multinomial",
        {"total_count": 4, "logits": LOGITS},
        np.array([[1.0, 2.0, 1.0], [4.0, 0.0, 0.0]]),
    ),
    "MultivariateNormal": (
        "MultivariateNormal",
        {"loc": np.stack([LOC, OTHER]), "covariance_matrix": matrix(3)},
        REALS,
    ),
    "MultivariateNormal of a precision": (
        "MultivariateNormal",
        {"loc": LOC, "precision_matrix": matrix(3)},
        OTHER,
    ),
    "MultivariateNormal of a factor": (
        "MultivariateNormal",
        {"loc": LOC, "scale_tril": FACTOR},
        REALS,
    ),
}
CONTINUOUS = [
    "Normal", "LogNormal", "HalfNormal", "Laplace", "Cauchy", "Gumbel", "Uniform", "Exponential",
    "Gamma", "Chi2", "Beta", "StudentT",
]  # fmt: skip
DISCRETE = ["Bernoulli", "Geometric", "Binomial", "Poisson"]


def made(name: str, device: str = "cpu", dtype: str = "float64", **options: Any) -> Any:
    """Return the distribution of a case."""
    kind, parameters, _ = CASES[name]
    tensors = {
        key: on(device, x.astype(dtype)) if isinstance(x, np.ndarray) else x
        for key, x in parameters.items()
    }
    return getattr(D, kind)(**tensors, **options)


def made_by_torch(torch: Any, name: str, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    kind, parameters, _ = CASES[name]
    tensors = {
        key: torch.tensor(x, requires_grad=requires_grad) if isinstance(x, np.ndarray) else x
        for key, x in parameters.items()
    }
    leaves = [x for x in tensors.values() if isinstance(x, torch.Tensor)]
    return getattr(torch.distributions, kind)(**tensors), leaves


def scipy_distribution(name: str, i: int) -> Any:
    """Return SciPy's distribution of an element of the batch."""
    a, b, c = LOC[i], SCALE[i], OTHER[i]
    return {
        "Normal": lambda: stats.norm(a, b),
        "LogNormal": lambda: stats.lognorm(b, scale=math.exp(a)),
        "HalfNormal": lambda: stats.halfnorm(scale=b),
        "Laplace": lambda: stats.laplace(a, b),
        "Cauchy": lambda: stats.cauchy(a, b),
        "Gumbel": lambda: stats.gumbel_r(a, b),
        "Uniform": lambda: stats.uniform(a, b),
        "Exponential": lambda: stats.expon(scale=1 / b),
        "Gamma": lambda: stats.gamma(c, scale=1 / b),
        "Chi2": lambda: stats.chi2(c),
        "Beta": lambda: stats.beta(c, b),
        "StudentT": lambda: stats.t(c, a, b),
        "Bernoulli": lambda: stats.bernoulli(PROBS[i]),
        "Geometric": lambda: stats.geom(PROBS[i], -1),
        "Binomial": lambda: stats.binom(5, PROBS[i]),
        "Poisson": lambda: stats.poisson(b),
    }[name]()


def close(got: Any, want: Any, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    got = host(got) if isinstance(got, Tensor) else got
    want = want.detach().numpy() if hasattr(want, "detach") else want
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    assert np.shape(got) == np.shape(want)


# Values


@pytest.mark.parametrize("name", CASES)
def test_values_agree_with_pytorch(name: str, device: str, torch: Any) -> None:
    ours, (theirs, _), value = made(name, device), made_by_torch(torch, name), CASES[name][2]
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    assert (ours.has_rsample, ours.has_enumerate_support) == (
        theirs.has_rsample or "Half" in name,
        theirs.has_enumerate_support,
    )
    close(ours.log_prob(on(device, value)), theirs.log_prob(torch.tensor(value)))
    for member in ("mean", "mode", "variance", "stddev"):
        try:
            want = getattr(theirs, member)
        except NotImplementedError:
            continue
        got = host(getattr(ours, member))
        if name == "Beta" and member == "mode":  # PyTorch's is NaN if the only peak is at an end
            got = np.where(np.isnan(want.numpy()), math.nan, got)
        close(got, want)
    for method in ("entropy", "perplexity", "enumerate_support"):
        try:
            want = getattr(theirs, method)()
        except NotImplementedError:
            continue
        if not (name.startswith("Multinomial") and method == "perplexity"):
            # PyTorch computes the logarithm of a factorial in float32
            close(getattr(ours, method)(), want, 1e-7 if "Multinomial" in name else 1e-11)
    support = ours.support.check(on(device, value))
    close(support, theirs.support.check(torch.tensor(value)))


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_functions_agree_with_scipy(name: str, device: str) -> None:
    ours, value = made(name, device), CASES[name][2]
    want = [scipy_distribution(name, i) for i in range(3)]
    x = on(device, value)
    if name in CONTINUOUS:
        close(ours.log_prob(x), [d.logpdf(v) for d, v in zip(want, value, strict=True)], 1e-11)
    else:
        close(ours.log_prob(x), [d.logpmf(v) for d, v in zip(want, value, strict=True)], 1e-11)
    close(ours.entropy(), [d.entropy() for d in want], 1e-8 if name in DISCRETE else 1e-11) if (
        name != "Poisson"
    ) else None
    if name != "Bernoulli":
        close(ours.cdf(x), [d.cdf(v) for d, v in zip(want, value, strict=True)], 1e-11)
    if name in CONTINUOUS:
        quantiles = [d.ppf(p) for d, p in zip(want, PROBS, strict=True)]
        close(ours.icdf(on(device, PROBS)), quantiles, 1e-10)
        close(ours.cdf(ours.icdf(on(device, PROBS))), PROBS, 1e-9)
    means, variances = zip(*[d.stats("mv") for d in want], strict=True)
    if name not in ("Cauchy", "StudentT"):
        close(ours.mean, means, 1e-11)
        close(ours.variance, variances, 1e-10)


@pytest.mark.parametrize("name", [x for x in CASES if x not in ("Binomial", "Binomial of logits")])
def test_gradients_of_log_prob_and_entropy_agree_with_pytorch(
    name: str, device: str, torch: Any
) -> None:
    """First and second derivatives of a sum of squares, by all parameters and the value."""
    kind, parameters, value = CASES[name]
    arrays = {key: x for key, x in parameters.items() if isinstance(x, np.ndarray)}
    others = {key: x for key, x in parameters.items() if key not in arrays}
    ours = {key: leaf64(x, device) for key, x in arrays.items()}
    theirs = {key: torch.tensor(x, requires_grad=True) for key, x in arrays.items()}
    results = []
    for lib, leaves, x in (
        (D, ours, on(device, value)),
        (torch.distributions, theirs, torch.tensor(value)),
    ):
        made = getattr(lib, kind)(**leaves, **others)
        loss = (made.log_prob(x) ** 2).sum()
        try:
            loss = loss + (made.entropy() ** 3).sum()
        except NotImplementedError:
            assert name.startswith(("Poisson", "Multinomial"))
            assert lib is D or name.startswith("Poisson")
        if name.startswith("Multinomial"):
            loss = (made.log_prob(x) ** 2).sum()
        function = grad if lib is D else torch.autograd.grad
        first = function(loss, list(leaves.values()), create_graph=True)
        second = function(sum((g**2).sum() for g in first), list(leaves.values()))
        results.append([*first, *second])
    for got, want in zip(*results, strict=True):
        scale = float(want.detach().abs().max())
        close(got, want, 1e-8, 1e-8 * scale)  # PyTorch's trigamma is off by up to 5e-10


@pytest.mark.parametrize("name", ["Gamma", "Beta", "StudentT", "Gumbel", "Uniform", "Laplace"])
def test_cdf_and_icdf_have_derivatives(name: str, device: str) -> None:
    """By finite differences; by the value alone where SciPy's function has no other derivative."""
    kind, parameters, value = CASES[name]
    constant = name in ("Beta", "StudentT")

    def distribution(*leaves: Tensor) -> Any:
        return getattr(D, kind)(*leaves, validate_args=False)

    given = [on(device, x) if constant else leaf64(x, device) for x in parameters.values()]
    inputs = [] if constant else given
    for method, x in (("cdf", value), ("icdf", PROBS)):

        def function(*leaves: Tensor, method: str = method) -> Tensor:
            made = distribution(*(given if constant else leaves[:-1]))
            return getattr(made, method)(leaves[-1])

        assert gradcheck(function, [*inputs, leaf64(x, device)])


# Samples


def drawn(name: str, shape: Any, seed: int, device: str = "cpu", **options: Any) -> Tensor:
    xgrad.manual_seed(seed)
    return made(name, device, **options).sample(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_of_numbers_have_their_distribution(name: str, dtype: str) -> None:
    samples = drawn(name, (20_000,), 3, dtype=dtype)
    assert samples.dtype == dtype and not samples.requires_grad
    for i in range(3):
        result = stats.kstest(host(samples[:, i]).astype(float), scipy_distribution(name, i).cdf)
        assert result.pvalue > 1e-3, i


@pytest.mark.parametrize("name", DISCRETE)
def test_samples_of_counts_have_their_distribution(name: str) -> None:
    samples = host(drawn(name, (20_000,), 4)).astype(int)
    for i in range(3):
        want, counts = scipy_distribution(name, i), np.bincount(samples[:, i])
        expected = want.pmf(np.arange(len(counts))) * 20_000
        often = expected > 5
        scaled = expected[often] * counts[often].sum() / expected[often].sum()
        assert stats.chisquare(counts[often], scaled).pvalue > 1e-3
        assert counts[often].sum() > 19_900


@pytest.mark.parametrize("name", [x for x in CASES if x not in [*CONTINUOUS, *DISCRETE]])
def test_samples_of_vectors_have_their_mean_and_variance(name: str) -> None:
    distribution = made(name)
    samples = host(drawn(name, (40_000,), 5)).astype(float)
    assert samples.shape == (40_000, *distribution.batch_shape, *distribution.event_shape)
    if name.startswith("Categorical"):
        samples, probs = np.eye(3)[samples.astype(int)], host(distribution.probs)
        mean, variance = probs, probs * (1 - probs)
    else:
        mean, variance = host(distribution.mean), host(distribution.variance)
    error = (samples.mean(0) - mean) / np.sqrt(variance / 40_000 + 1e-30)
    assert np.abs(error).max() < 4.5
    np.testing.assert_allclose(samples.var(0), variance, rtol=0.06)
    if name.startswith("Multivariate"):
        covariance = host(distribution.covariance_matrix)
        one = samples.reshape(40_000, -1, 3)[:, 0]
        np.testing.assert_allclose(np.cov(one.T), np.reshape(covariance, (-1, 3, 3))[0], atol=0.2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_seed_gives_the_same_samples_on_every_device(name: str, dtype: str, device: str) -> None:
    want, got = (drawn(name, (7,), 6, d, dtype=dtype) for d in ("cpu", device))
    assert got.dtype == want.dtype and str(got.device) == device
    close(host(got), host(want), 1e-5 if dtype == "float32" else 1e-10, 1e-7)
    assert host(drawn(name, (7,), 7, dtype=dtype)).tobytes() != host(want).tobytes()


@pytest.mark.parametrize("name", [x for x in CASES if made(x).has_rsample])
def test_rsample_has_the_derivatives_of_finite_differences(name: str, device: str) -> None:
    kind, parameters, _ = CASES[name]
    step, leaves = 1e-5, {key: leaf64(x, device) for key, x in parameters.items()}

    def samples(**arrays: Any) -> Tensor:
        xgrad.manual_seed(8)
        return getattr(D, kind)(**arrays, validate_args=False).rsample((4,))

    weights = on(device, uniform(*samples(**leaves).shape, low=-1, high=1))
    gradients = grad((samples(**leaves) * weights).sum(), list(leaves.values()))
    sampled = drawn(name, (4,), 8, device)
    np.testing.assert_array_equal(host(samples(**leaves)), host(sampled))
    for (key, x), g in zip(parameters.items(), gradients, strict=True):
        direction = uniform(*x.shape, seed=2)
        if key.endswith("matrix"):
            direction = direction + np.swapaxes(direction, -1, -2)
        direction = np.tril(direction) if key == "scale_tril" else direction

        def moved(by: float, key: str = key, x: Any = x, direction: Any = direction) -> float:
            given = {**parameters, key: x + by * direction}
            out = samples(**{k: on(device, v) for k, v in given.items()})
            return float((out * weights).sum())

        slope = (moved(step) - moved(-step)) / (2 * step)
        np.testing.assert_allclose((host(g) * direction).sum(), slope, rtol=1e-6, atol=1e-8)


def test_gradients_of_means_over_samples_are_those_of_closed_forms(device: str) -> None:
    """The derivative of a mean by the parameters, of implicit derivatives on average."""
    xgrad.manual_seed(9)
    a, b = leaf64([0.3, 2.0, 30.0], device), leaf64([0.7, 1.0, 4.0], device)
    for distribution, sampled in (
        (D.Gamma(a, b), D.Gamma(a, b).rsample((20_000,))),
        (D.Beta(a, b), D.Beta(a, b).rsample((20_000,))),
    ):
        want = grad(distribution.mean.sum(), [a, b])
        got = grad(sampled.mean(0).sum(), [a, b])
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(host(x), host(y), rtol=0.05)
    (g,) = grad(D.Gamma(a, b).rsample().sum(), [a], create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives by a alone"):
        grad(g.sum(), [a])


def test_gamma_samples_have_the_derivatives_of_pytorch(torch: Any) -> None:
    a = np.array([0.05, 0.5, 1.0, 3.0, 20.0, 400.0])
    x = leaf64(a)
    xgrad.manual_seed(10)
    sampled = D.Gamma(x, 1.0).rsample((50,))
    (got,) = grad(sampled.sum(), [x])
    values = torch.tensor(host(sampled))
    want = torch._standard_gamma_grad(torch.tensor(a).expand(50, 6), values).sum(0)
    close(got, want, 1e-3)


def test_samples_at_small_shapes_are_finite(device: str) -> None:
    xgrad.manual_seed(11)
    for dtype in ("float32", "float64"):
        small = xgrad.full(4, 1e-4, dtype=dtype, device=device).requires_grad_()
        probabilities = D.Dirichlet(small).rsample((50,))
        assert bool(xgrad.all(xgrad.abs(probabilities.sum(axis=-1) - 1) < 1e-5))
        shares = D.Beta(small, small).rsample((50,))
        gammas = D.Gamma(small, 1.0).rsample((50,))
        assert bool(xgrad.all(gammas > 0)) and bool(xgrad.all((shares >= 0) & (shares <= 1)))
        (g,) = grad(probabilities[:, 0].sum() + shares.sum() + gammas.sum(), [small])
        assert bool(xgrad.all(xgrad.isfinite(g)))


@pytest.mark.parametrize("name", CASES)
def test_empty_shapes_and_expansion(name: str) -> None:
    distribution = made(name)
    batch, event = distribution.batch_shape, distribution.event_shape
    assert distribution.sample((0, 2)).shape == (0, 2, *batch, *event)
    assert distribution.sample(2).shape == (2, *batch, *event)
    wide = distribution.expand((4, *batch))
    assert type(wide) is type(distribution) and wide.batch_shape == (4, *batch)
    value = on("cpu", CASES[name][2])
    close(wide.log_prob(value), np.broadcast_to(host(distribution.log_prob(value)), (4, *batch)))
    assert wide.sample((2,)).shape == (2, 4, *batch, *event)
    assert repr(distribution).startswith(type(distribution).__name__ + "(")
    empty = distribution.expand((0, *batch))
    assert empty.sample().shape == (0, *batch, *event) and empty.log_prob(value).shape[0] == 0


def test_python_numbers_are_parameters_of_the_default_dtype() -> None:
    assert D.Normal(0, 1).sample().dtype == xgrad.float32
    assert D.Normal(0, 1).batch_shape == ()
    assert D.Normal(xgrad.zeros(2, dtype="float64"), 1.0).scale.dtype == xgrad.float64
    half = D.Normal(xgrad.zeros(2, dtype="float16"), 1.0)
    assert half.sample().dtype == half.log_prob(0.0).dtype == xgrad.float16


# Captured steps, vmap


@pytest.mark.parametrize("name", CASES)
def test_captured_step_draws_and_scores_as_an_eager_one(name: str, capturing_device: str) -> None:
    if capturing_device == "cuda" and name.startswith("Multivariate"):
        pytest.skip("cuSOLVER cannot be part of a CUDA graph")
    kind, parameters, value = CASES[name]
    tensors = {
        key: leaf64(x, capturing_device) if isinstance(x, np.ndarray) else x
        for key, x in parameters.items()
    }
    leaves = [x for x in tensors.values() if isinstance(x, Tensor)]
    scored = on(capturing_device, value)

    def step(scored: Tensor) -> tuple[Tensor, ...]:
        distribution = getattr(D, kind)(**tensors)
        loss = distribution.log_prob(scored).sum()
        samples = distribution.sample((3,))
        if distribution.has_rsample:
            loss = loss + (distribution.rsample((2,)) ** 2).sum()
        return (samples, loss, *grad(loss, leaves))

    runs = []
    for function in (step, xgrad.capture(step)):
        xgrad.manual_seed(12)
        runs.append([x for _ in range(4) for x in function(scored)])
    for got, want in zip(*runs, strict=True):
        close(got, host(want), 0 if capturing_device == "cpu" else 1e-11)


def test_replay_checks_parameters_and_values_again() -> None:
    step = xgrad.capture(lambda scale, x: D.Exponential(scale).log_prob(x))
    for scale in (1.0, 2.0, 3.0):
        step(xgrad.full(2, scale), xgrad.ones(2))
    with pytest.raises(ValueError, match="Exponential: expected rate of numbers above 0"):
        step(xgrad.full(2, -1.0), xgrad.ones(2))
    with pytest.raises(ValueError, match="Exponential: expected a value of numbers of 0 or more"):
        step(xgrad.full(2, 1.0), -xgrad.ones(2))


@pytest.mark.parametrize("name", CASES)
def test_log_prob_under_vmap_equals_a_batch(name: str, device: str) -> None:
    kind, parameters, value = CASES[name]
    arrays = {
        key: on(device, np.stack([x, x])) if isinstance(x, np.ndarray) else x
        for key, x in parameters.items()
    }
    names = [key for key, x in arrays.items() if isinstance(x, Tensor)]
    others = {key: x for key, x in arrays.items() if key not in names}
    x = on(device, value)

    def score(*leaves: Tensor) -> Tensor:
        return getattr(D, kind)(**dict(zip(names, leaves, strict=True)), **others).log_prob(x)

    got = xgrad.vmap(score)(*[arrays[key] for key in names])
    want = host(made(name, device).log_prob(x))
    close(got, np.stack([want, want]))


def test_vmap_refuses_draws_and_invalid_parameters() -> None:
    with pytest.raises(RuntimeError, match="vmap: random numbers are drawn in the function"):
        xgrad.vmap(lambda x: D.Normal(x, 1.0).sample())(xgrad.ones(2))
    with pytest.raises(ValueError, match="Normal: expected scale of numbers above 0"):
        xgrad.vmap(lambda x: D.Normal(0.0, x).log_prob(0.0))(xgrad.asarray([1.0, -1.0]))


# Combined distributions


def test_independent_sums_over_axes(device: str, torch: Any) -> None:
    loc, scale = uniform(4, 2, 3), uniform(4, 2, 3, seed=1)
    x = uniform(5, 4, 2, 3, seed=2)
    for axes in range(4):
        ours = D.Independent(D.Normal(on(device, loc), on(device, scale)), axes)
        base = torch.distributions.Normal(torch.tensor(loc), torch.tensor(scale))
        theirs = torch.distributions.Independent(base, axes)
        assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
        close(ours.log_prob(on(device, x)), theirs.log_prob(torch.tensor(x)))
        close(ours.entropy(), theirs.entropy())
        close(ours.mean, theirs.mean)
        assert ours.rsample((2,)).shape == (2, 4, 2, 3)
        assert ours.expand((3, *ours.batch_shape)).batch_shape == (3, *ours.batch_shape)
        close(ours.support.check(on(device, x)), theirs.support.check(torch.tensor(x)))


@pytest.mark.parametrize("vectors", [False, True])
def test_mixture_agrees_with_pytorch(vectors: bool, device: str, torch: Any) -> None:
    loc, scale, weights = uniform(2, 3), uniform(2, 3, seed=1), CLASSES
    if vectors:
        loc, scale = uniform(2, 3, 4), uniform(2, 3, 4, seed=1)

    def mixture(lib: Any, array: Callable[[Any], Any]) -> Any:
        components = lib.Normal(array(loc), array(scale))
        components = lib.Independent(components, 1) if vectors else components
        return lib.MixtureSameFamily(lib.Categorical(array(weights)), components)

    ours = mixture(D, lambda x: on(device, x))
    theirs = mixture(torch.distributions, torch.tensor)
    x = uniform(5, *theirs.batch_shape, *theirs.event_shape)
    close(ours.log_prob(on(device, x)), theirs.log_prob(torch.tensor(x)))
    close(ours.mean, theirs.mean)
    close(ours.variance, theirs.variance)
    if not vectors:
        close(ours.cdf(on(device, x)), theirs.cdf(torch.tensor(x)))
    samples = ours.sample((20_000,))
    assert samples.shape == (20_000, *ours.batch_shape, *ours.event_shape)
    np.testing.assert_allclose(host(samples.mean(0)), host(ours.mean), atol=0.06)
    np.testing.assert_allclose(host(samples.std(0)), host(ours.stddev), rtol=0.05)
    assert ours.expand((3, 2)).log_prob(on(device, x[0])).shape == (3, 2)


TRANSFORMS = {
    "exp": [("ExpTransform", ())],
    "affine": [("AffineTransform", (1.0, -2.0))],
    "sigmoid": [("AffineTransform", (0.5, 2.0)), ("SigmoidTransform", ())],
    "tanh": [("TanhTransform", ())],
    "softplus": [("SoftplusTransform", ())],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformed_distribution_agrees_with_pytorch(name: str, device: str, torch: Any) -> None:
    def distribution(lib: Any, array: Callable[[Any], Any]) -> Any:
        parts = [getattr(lib.transforms, kind)(*args) for kind, args in TRANSFORMS[name]]
        return lib.TransformedDistribution(lib.Normal(array(LOC), array(SCALE)), parts)

    ours = distribution(D, lambda x: on(device, x))
    theirs = distribution(torch.distributions, torch.tensor)
    xgrad.manual_seed(13)
    x = ours.rsample((6,))
    given = torch.tensor(host(x))
    close(ours.log_prob(x), theirs.log_prob(given), 1e-9)
    close(ours.cdf(x), theirs.cdf(given), 1e-9)
    close(ours.icdf(ours.cdf(x)), x.cpu().numpy(), 1e-8)
    assert ours.expand((2, 3)).log_prob(x[0, ...]).shape == (2, 3)
    assert bool(xgrad.all(ours.support.check(x)))
    part = ours.transforms[-1]
    points = leaf64([-0.8, 0.1, 0.7], device)
    assert gradcheck(part, points) and gradgradcheck(part, points)
    (slope,) = grad(part(points).sum(), [points])
    logs = part.log_abs_det_jacobian(points, part(points))
    close(logs, np.log(np.abs(host(slope))), 1e-12)
    close(part.inv(part(points)), host(points))


def test_transform_of_vectors_is_summed(torch: Any) -> None:
    def distribution(lib: Any, array: Callable[[Any], Any]) -> Any:
        part = lib.transforms.AffineTransform(array(LOC), array(SCALE), event_dim=1)
        base = lib.Normal(array(np.zeros((2, 3))), array(np.ones((2, 3))))
        return lib.TransformedDistribution(base, [part, lib.transforms.ExpTransform()])

    ours = distribution(D, lambda x: on("cpu", x))
    theirs = distribution(torch.distributions, torch.tensor)
    assert (ours.batch_shape, ours.event_shape) == ((2,), (3,))
    x = ours.sample()
    close(ours.log_prob(x), theirs.log_prob(torch.tensor(host(x))))


# Divergences

REAL_LINE = ["Normal", "Gumbel", "Laplace", "Exponential", "Gamma"]
PAIRS = [
    *[(name, name) for name in CASES if " of " not in name and name not in ("Chi2", "StudentT")],
    *itertools.product([*REAL_LINE[1:], "Beta", "Uniform"], ["Normal"]),
    *itertools.product(["Beta", "Gamma", "Uniform"], ["Exponential"]),
    *itertools.product(["Beta", "Exponential", "Uniform", "Chi2"], ["Gamma"]),
    *itertools.product(["Exponential", "Gamma", "Normal", "Uniform"], ["Gumbel"]),
    *itertools.product(REAL_LINE, ["Beta", "Uniform"]),
    ("Beta", "Uniform"), ("Uniform", "Beta"), ("Normal", "Laplace"), ("Normal", "Exponential"),
    ("Bernoulli", "Poisson"), ("Poisson", "Bernoulli"), ("Poisson", "Binomial"),
]  # fmt: skip


def changed(name: str) -> Arrays:
    """Return other parameters for the second distribution of a pair."""
    parameters = CASES[name][1]
    if name in ("Bernoulli", "Binomial", "Geometric"):
        return {**parameters, "probs": PROBS[::-1].copy()}
    if name == "Uniform":
        return {"low": LOC - 0.5, "high": LOC + SCALE + 0.25}
    keep = ("covariance_matrix", "total_count")
    return {key: x if key in keep else x[::-1].copy() for key, x in parameters.items()}


@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_divergences_agree_with_pytorch(p: str, q: str, device: str, torch: Any) -> None:
    def pair(lib: Any, array: Callable[[Any], Any]) -> list[Any]:
        return [
            getattr(lib, name)(
                **{k: array(x) if isinstance(x, np.ndarray) else x for k, x in given.items()}
            )
            for name, given in ((p, CASES[p][1]), (q, changed(q)))
        ]

    if p == "Multinomial":
        with pytest.raises(NotImplementedError, match="kl_divergence: expected a pair of types"):
            kl_divergence(*pair(D, lambda x: on(device, x)))
        return
    theirs = pair(torch.distributions, torch.tensor)
    close(
        kl_divergence(*pair(D, lambda x: on(device, x))),
        torch.distributions.kl_divergence(*theirs),
        1e-11,
        1e-12,
    )


def test_divergences_of_combined_distributions(torch: Any) -> None:
    def pair(lib: Any, array: Callable[[Any], Any]) -> list[Any]:
        p, q = lib.Normal(array(LOC), array(SCALE)), lib.Normal(array(OTHER), array(SCALE))
        return [lib.Independent(p, 1), lib.Independent(q, 1)]

    close(
        kl_divergence(*pair(D, lambda x: on("cpu", x))),
        torch.distributions.kl_divergence(*pair(torch.distributions, torch.tensor)),
    )
    exp = transforms.ExpTransform()
    p, q = D.Normal(on("cpu", LOC), 1.0), D.Normal(on("cpu", OTHER), 1.0)
    both = [D.TransformedDistribution(x, exp) for x in (p, q)]
    close(kl_divergence(*both), host(kl_divergence(p, q)))


# Refusals


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "D.Normal(0.0, -1.0)",
            "ValueError: Normal: expected scale of numbers above 0, got others",
        ),
        ("D.Normal(xp.nan, 1.0)", "ValueError: Normal: expected loc of real numbers"),
        ("D.Normal(xp.zeros(2), xp.ones(3))", "ValueError: Normal: expected parameters of shapes"),
        ("D.Normal(xp.asarray([1]), 1.0)", "TypeError: Normal: expected floating … loc, got int64"),
        ("D.Normal([0.0], 1.0)", "TypeError: Normal: expected a tensor, … for loc, got list"),
        ("D.Normal(0.0, 1.0, 1)", "TypeError: Normal: expected a bool or None for validate_args"),
        ("D.Normal(0.0, 1.0).sample((-1,))", "ValueError: Normal: expected a shape without"),
        (
            "D.Normal(xp.zeros(3), 1.0).log_prob(xp.zeros(2))",
            "ValueError: Normal: expected a value of a shape that broadcasts with (3,), got (2,)",
        ),
        ("D.Normal(0.0, 1.0).log_prob('a')", "TypeError: Normal: expected a tensor … for value"),
        ("D.Normal(0.0, 1.0).icdf(2.0)", "ValueError: Normal: expected a value of probabilities"),
        ("D.Normal(0.0, 1.0).enumerate_support()", "NotImplementedError: Normal: … enumerate"),
        ("D.Uniform(1.0, 0.0)", "ValueError: Uniform: expected low and high of low < high"),
        ("D.Uniform(0.0, 1.0).log_prob(2.0)", "ValueError: Uniform: expected a value of numbers"),
        ("D.Gamma(0.0, 1.0)", "ValueError: Gamma: expected concentration of numbers above 0"),
        ("D.Dirichlet(1.0)", "ValueError: Dirichlet: expected concentration with 1 or more axes"),
        ("D.Bernoulli()", "ValueError: Bernoulli: expected one of probs, logits, got none"),
        ("D.Bernoulli(0.5, 0.0)", "ValueError: Bernoulli: … got probs and logits"),
        ("D.Bernoulli(1.5)", "ValueError: Bernoulli: expected probs of numbers from 0 to 1"),
        ("D.Bernoulli(0.5).log_prob(0.5)", "ValueError: Bernoulli: expected a value of 0 or 1"),
        ("D.Bernoulli(0.5).rsample()", "NotImplementedError: Bernoulli: … has_rsample"),
        ("D.Binomial(2.5, 0.5)", "ValueError: Binomial: expected total_count of integers"),
        ("D.Geometric(0.0)", "ValueError: Geometric: expected probs of numbers above 0"),
        ("D.Categorical(xp.asarray([0.0, 0.0]))", "ValueError: Categorical: expected probs of"),
        ("D.Categorical(xp.zeros((2, 0)))", "ValueError: Categorical: expected one class or more"),
        (
            "D.Categorical(xp.ones(3)).log_prob(3)",
            "ValueError: Categorical: expected a value of integers from 0 to 2",
        ),
        ("D.Multinomial(1.5, xp.ones(3))", "TypeError: Multinomial: expected an int for total_co"),
        ("D.Multinomial(-1, xp.ones(3))", "ValueError: Multinomial: expected total_count of 0"),
        (
            "D.MultivariateNormal(xp.zeros(2), xp.eye(3))",
            "ValueError: MultivariateNormal: expected covariance_matrix of shape (..., 2, 2)",
        ),
        (
            "D.MultivariateNormal(xp.zeros(2), scale_tril=xp.ones((2, 2)))",
            "ValueError: MultivariateNormal: expected scale_tril of lower triangular matrices",
        ),
        ("D.MultivariateNormal(xp.zeros(2))", "ValueError: MultivariateNormal: expected one of"),
        ("D.Independent(D.Normal(0.0, 1.0), 1)", "ValueError: Independent: expected reinterpreted"),
        ("D.Independent(3, 1)", "TypeError: Independent: expected a Distribution for base_dist"),
        (
            "D.MixtureSameFamily(D.Categorical(xp.ones(2)), D.Normal(xp.zeros(3), 1.0))",
            "ValueError: MixtureSameFamily: expected components of batch shape (2,), … got (3,)",
        ),
        ("D.MixtureSameFamily(1, 2)", "TypeError: MixtureSameFamily: expected a Categorical"),
        (
            "D.TransformedDistribution(D.Normal(0.0, 1.0), [xp.exp])",
            "TypeError: ComposeTransform: expected Transforms",
        ),
        (
            "D.transforms.AffineTransform(0.0, 1.0, -1)",
            "ValueError: AffineTransform: expected event_dim of 0",
        ),
        (
            "D.kl_divergence(D.Normal(0.0, 1.0), D.StudentT(1.0))",
            "NotImplementedError: kl_divergence: expected a pair … got Normal and StudentT",
        ),
        ("D.kl_divergence(1, 2)", "TypeError: kl_divergence: expected a Distribution for p"),
        ("D.register_kl(int, D.Normal)", "TypeError: register_kl: expected subclasses"),
    ],
)
def test_invalid_calls_are_refused(call: str, expected: str) -> None:
    check_error(call, expected, D=D)


def test_unchecked_distributions_compute_with_invalid_values() -> None:
    with np.errstate(all="ignore"):
        assert math.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(0.0).item())
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(2.0).item() == -math.inf
    assert D.Uniform(0.0, 1.0, validate_args=False).cdf(2.0).item() == 1
