"""`torch.nn.init`: initialization of tensors in place."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn.init import (
    calculate_gain,
    constant_,
    dirac_,
    eye_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

# PyTorch's older names
constant, normal, uniform = constant_, normal_, uniform_
kaiming_normal, kaiming_uniform = kaiming_normal_, kaiming_uniform_
xavier_normal, xavier_uniform = xavier_normal_, xavier_uniform_


dirac, eye, orthogonal, sparse = dirac_, eye_, orthogonal_, sparse_


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.init", name)
