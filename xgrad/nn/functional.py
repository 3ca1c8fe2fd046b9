"""Layers and losses as functions without state."""

from xgrad.ops import cross_entropy, linear, log_softmax, mse_loss, relu, sigmoid, softmax, softplus, tanh
from xgrad.ops.dropout import dropout
from xgrad.ops.encoding import one_hot
from xgrad.ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from xgrad.support import hints

__all__ = [
    "batch_norm",
    "cross_entropy",
    "dropout",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "log_softmax",
    "mse_loss",
    "one_hot",
    "relu",
    "rms_norm",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
]
hints.install(__name__)
