"""`torch.nn.init`: initialization of tensors in place."""

from __future__ import annotations

import math
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.core.modes import no_grad
from xgrad.nn.init import (
    calculate_gain,
    constant_,
    kaiming_normal_,
    kaiming_uniform_,
    normal_,
    ones_,
    uniform_,
    xavier_normal_,
    xavier_uniform_,
    zeros_,
)

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
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


def _assigned(tensor: Any, values: Any) -> Any:
    with no_grad():
        tensor[...] = xgrad.astype(values, tensor.dtype, copy=False)
    return as_torch(tensor)


def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity."""
    return _assigned(tensor, xgrad.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fill a tensor from a normal distribution that is cut off below `a` and above `b`."""
    low, high = (math.erf((x - mean) / (std * math.sqrt(2))) for x in (a, b))
    values = xgrad.random.uniform(
        tuple(tensor.shape), low, high, dtype=tensor.dtype, device=tensor.device,
        generator=generator,
    )  # fmt: skip
    values = mean + std * math.sqrt(2) * xgrad.special.erfinv(values)
    return _assigned(tensor, xgrad.clip(values, a, b))


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill a tensor with orthogonal rows, or columns if these are fewer, times `gain`."""
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: expected 2 axes or more, got shape {tuple(tensor.shape)}")
    if not math.prod(tensor.shape):
        return tensor
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    shape = (max(rows, columns), min(rows, columns))
    noise = xgrad.random.normal(
        shape, dtype=tensor.dtype, device=tensor.device, generator=generator
    )
    q, r = xgrad.linalg.qr(noise)
    q = q * xgrad.sign(xgrad.linalg.diagonal(r))
    q = q if rows >= columns else xgrad.matrix_transpose(q)
    return _assigned(tensor, gain * xgrad.reshape(q, tuple(tensor.shape)))


orthogonal, eye = orthogonal_, eye_


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.init", name)
