"""Layers and losses as functions without state."""

from xgrad.ops import cross_entropy, linear, log_softmax, mse_loss, relu, sigmoid, softmax, tanh
from xgrad.ops.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu6,
    selu,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from xgrad.ops.dropout import dropout, dropout1d, dropout2d
from xgrad.ops.embedding import embedding
from xgrad.ops.encoding import one_hot
from xgrad.ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from xgrad.support import hints

__all__ = [
    "batch_norm",
    "celu",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mish",
    "mse_loss",
    "one_hot",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]
hints.install(__name__)
