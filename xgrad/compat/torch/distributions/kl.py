"""`torch.distributions.kl`: divergences of distributions."""

from __future__ import annotations

from typing import Any

from xgrad import distributions
from xgrad.compat.torch.tensor import as_torch
from xgrad.distributions import register_kl

__all__ = ["kl_divergence", "register_kl"]


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the Kullback-Leibler divergence of a distribution from another."""
    return as_torch(distributions.kl_divergence(p, q))
