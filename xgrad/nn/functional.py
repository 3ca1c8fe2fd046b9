"""Layers and losses as functions without state."""

from xgrad.ops import cross_entropy, linear, log_softmax, mse_loss, relu, sigmoid, softmax, softplus, tanh
from xgrad.ops.dropout import dropout
from xgrad.ops.encoding import one_hot
from xgrad.support import hints

__all__ = [
    "cross_entropy",
    "dropout",
    "linear",
    "log_softmax",
    "mse_loss",
    "one_hot",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
]
hints.install(__name__)
