"""`torch.nn.utils`: gradient clipping, parameters as vectors, and normalized weights."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.nn.utils import parametrizations, parametrize, rnn
from xgrad.compat.torch.tensor import as_torch, torch_function
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.nn import utils
from xgrad.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def _single(parameters: Any) -> Any:
    return parameters if hasattr(parameters, "dtype") else list(parameters)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale gradients down to a norm of at most `max_norm`, and return the norm before."""
    return as_torch(
        utils.clip_grad_norm_(_single(parameters), max_norm, norm_type, error_if_nonfinite)
    )


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clip each component of the gradients."""
    utils.clip_grad_value_(_single(parameters), clip_value)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale gradients down as `clip_grad_norm_` does, by a norm that is given."""
    utils.clip_grads_with_norm_(_single(parameters), max_norm, total_norm)


@torch_function
def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Return the norm of all elements of several tensors."""
    return utils.get_total_norm(_single(tensors), norm_type, error_if_nonfinite)


def parameters_to_vector(parameters: Any) -> Any:
    """Return parameters concatenated into one vector."""
    return as_torch(utils.parameters_to_vector(parameters))


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Assign the parts of a vector to parameters."""
    utils.vector_to_parameters(vec, parameters)


clip_grad_norm = clip_grad_norm_


def __getattr__(name: str) -> Any:
    raise_missing("torch.nn.utils", name)
