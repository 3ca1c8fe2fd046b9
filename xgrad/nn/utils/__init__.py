"""Functions for whole models: clipping, parameters as a vector, parametrizations, sequences."""

from xgrad.nn.functional_call import functional_call
from xgrad.nn.utils import parametrizations, parametrize, rnn
from xgrad.nn.utils.gradients import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from xgrad.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from xgrad.nn.utils.weight_norms import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from xgrad.support import hints

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "functional_call",
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
hints.install(__name__)
