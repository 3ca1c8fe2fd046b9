"""`torch.distributions` with each library: attributes, densities, gradients and divergences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compat.compared import array, check_call, check_close
from xgrad.compat import torch as compat

D = compat.distributions
POSITIVE = np.abs(array((3, 4))) + 0.1
SYMMETRIC = np.eye(4) + 0.1
COUNTS = np.arange(12.0).reshape(3, 4)

#: Constructors of distributions with the names ``D`` and ``p``, positive numbers of shape (3, 4),
#: and ``m``, a matrix; and a value
CASES: list[tuple[str, np.ndarray]] = [
    ("D.Normal(p - 1, p)", array((3, 4))),
    ("D.Normal(0, 1)", array((3, 4))),
    ("D.HalfNormal(p)", POSITIVE),
    ("D.LogNormal(p, 2 * p)", POSITIVE),
    ("D.Uniform(-p, 4 * p)", np.abs(array((3, 4))) / 9),
    ("D.Laplace(p, p)", array((3, 4))),
    ("D.Cauchy(p, p)", array((3, 4))),
    ("D.Gumbel(p, p)", array((3, 4))),
    ("D.Exponential(p)", POSITIVE),
    ("D.Gamma(p, p)", POSITIVE),
    ("D.Chi2(p)", POSITIVE),
    ("D.Beta(p, 2 * p)", POSITIVE / 5),
    ("D.StudentT(p + 3)", array((3, 4))),
    ("D.Dirichlet(p)", np.full((3, 4), 0.25)),
    ("D.Bernoulli(probs=p / 5)", COUNTS % 2),
    ("D.Bernoulli(logits=p)", COUNTS % 2),
    ("D.Binomial(12, p / 5)", COUNTS),
    ("D.Geometric(p / 5)", COUNTS),
    ("D.Poisson(p)", COUNTS),
    ("D.Categorical(p)", np.asarray([1, 0, 3])),
    ("D.Categorical(logits=p)", np.asarray([1, 0, 3])),
    ("D.OneHotCategorical(p)", np.eye(4)[[1, 0, 3]]),
    ("D.MultivariateNormal(p, m)", array((3, 4))),
    ("D.Independent(D.Normal(p, p), 1)", array((3, 4))),
    ("D.MixtureSameFamily(D.Categorical(p), D.Normal(p, p))", array((3,))),
    ("D.TransformedDistribution(D.Normal(p, p), [D.transforms.ExpTransform()])", POSITIVE),
]
ATTRIBUTES = ("mean", "variance", "stddev", "probs", "logits", "loc", "scale", "rate")


@pytest.mark.parametrize(("text", "value"), CASES, ids=[text for text, _ in CASES])
def test_densities_and_attributes(torch: Any, text: str, value: np.ndarray) -> None:
    def distribution(library: Any, p: Any, m: Any) -> Any:
        return eval(text, {"D": library.distributions, "p": p, "m": m})

    def density(library: Any, p: Any, m: Any) -> Any:
        return distribution(library, p, m).log_prob(library.tensor(value))

    check_call(torch, density, (POSITIVE, SYMMETRIC), 1e-10)
    mine, theirs = (
        distribution(library, library.tensor(POSITIVE), library.tensor(SYMMETRIC))
        for library in (compat, torch)
    )
    assert repr(mine.batch_shape) == repr(theirs.batch_shape)
    assert repr(mine.event_shape) == repr(theirs.event_shape)
    assert tuple(mine.sample((2,)).shape) == tuple(theirs.sample((2,)).shape)
    assert type(mine.sample()) is compat.Tensor
    assert isinstance(mine, D.Distribution)
    for name in ATTRIBUTES:
        if name not in ("mean", "variance", "stddev") and not hasattr(theirs, name):
            continue
        try:
            expected = getattr(theirs, name)
        except NotImplementedError:
            continue
        check_close(getattr(mine, name), expected, 1e-10)


@pytest.mark.parametrize(
    "text",
    [
        "D.kl_divergence(D.Normal(p, p), D.Normal(0.0, 1.0))",
        "D.kl_divergence(D.Categorical(p), D.Categorical(p.flip(1)))",
        "D.kl_divergence(D.Independent(D.Normal(p, p), 1), D.Independent(D.Normal(0 * p, 1), 1))",
        "D.kl.kl_divergence(D.Gamma(p, p), D.Gamma(2 * p, p))",
        "D.Normal(p, p).entropy()",
        "D.Normal(p, p).cdf(p / 2)",
        "D.Normal(p, p).icdf(p / 5)",
        "D.Normal(p[0], p[0]).expand((3, 4)).log_prob(p)",
        "D.transforms.SigmoidTransform()(p)",
        "D.transforms.TanhTransform().log_abs_det_jacobian(p, p.tanh())",
        "D.transforms.AffineTransform(p, 2.0).inv(p)",
    ],
)
def test_functions_of_distributions(torch: Any, text: str) -> None:
    check_call(
        torch,
        lambda library, p: eval(text, {"D": library.distributions, "p": p}),
        (POSITIVE,),
        1e-8,  # derivatives of PyTorch's digamma are less accurate
    )


def test_gradient_through_samples() -> None:
    scale = compat.tensor([1.0, 2.0], requires_grad=True)
    D.Normal(compat.zeros(2), scale).rsample((50,)).pow(2).sum().backward()
    assert type(scale.grad) is compat.Tensor
    assert (scale.grad > 0).all()


def test_missing_distribution_is_refused_by_name() -> None:
    with pytest.raises(AttributeError, match=r"torch\.distributions\.Wishart is not available"):
        D.Wishart  # noqa: B018
