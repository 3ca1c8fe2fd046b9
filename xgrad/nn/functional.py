"""Layers and losses as functions without state."""

from xgrad.ops import cross_entropy, linear, log_softmax, mse_loss, relu, sigmoid, softmax, softplus, tanh
from xgrad.ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from xgrad.ops.dropout import dropout
from xgrad.ops.encoding import one_hot
from xgrad.ops.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from xgrad.ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from xgrad.support import hints

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cross_entropy",
    "dropout",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
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
