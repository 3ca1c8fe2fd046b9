"""`torch.distributions.transforms`: invertible functions of samples."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.distributions.adapted import Adapted
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.distributions import transforms as xt

__all__ = [
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
]


class Transform(Adapted, xt.Transform):
    """The base class of transforms."""

    def __call__(self, x: Any) -> Any:
        return as_torch(super().__call__(x))


class AffineTransform(Transform, xt.AffineTransform):
    """`torch.distributions.transforms.AffineTransform`."""


class ComposeTransform(Transform, xt.ComposeTransform):
    """`torch.distributions.transforms.ComposeTransform`."""


class ExpTransform(Transform, xt.ExpTransform):
    """`torch.distributions.transforms.ExpTransform`."""


class SigmoidTransform(Transform, xt.SigmoidTransform):
    """`torch.distributions.transforms.SigmoidTransform`."""


class SoftplusTransform(Transform, xt.SoftplusTransform):
    """`torch.distributions.transforms.SoftplusTransform`."""


class TanhTransform(Transform, xt.TanhTransform):
    """`torch.distributions.transforms.TanhTransform`."""


def __getattr__(name: str) -> Any:
    raise_missing("torch.distributions.transforms", name)
