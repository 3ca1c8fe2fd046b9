"""Neural networks: modules with parameters, layers, losses, and initialization."""

from xgrad.nn import functional, init, utils
from xgrad.nn.activations import ReLU, Sigmoid, Tanh
from xgrad.nn.containers import ModuleList, Sequential
from xgrad.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from xgrad.nn.dropout import Dropout
from xgrad.nn.linear import Linear
from xgrad.nn.losses import CrossEntropyLoss, MSELoss
from xgrad.nn.mlp import MLP
from xgrad.nn.module import IncompatibleKeys, Module
from xgrad.nn.parameter import Parameter
from xgrad.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from xgrad.nn.shapes import Flatten, Identity
from xgrad.support import hints

__all__ = [
    "MLP",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "IncompatibleKeys",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "functional",
    "init",
    "utils",
]
hints.install(__name__)
