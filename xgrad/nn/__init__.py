"""Neural networks: modules with parameters, layers, losses, and initialization."""

from xgrad.nn import functional, init, utils
from xgrad.nn.activations import ReLU, Sigmoid, Tanh
from xgrad.nn.containers import ModuleDict, ModuleList, Sequential
from xgrad.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from xgrad.nn.dropout import Dropout
from xgrad.nn.linear import Linear
from xgrad.nn.losses import CrossEntropyLoss, MSELoss
from xgrad.nn.mlp import MLP
from xgrad.nn.module import Module
from xgrad.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    LayerNorm,
    RMSNorm,
)
from xgrad.nn.parameter import Parameter
from xgrad.nn.parameter_containers import ParameterDict, ParameterList
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
from xgrad.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from xgrad.nn.shapes import Flatten, Identity
from xgrad.nn.state_dict import IncompatibleKeys
from xgrad.support import hints

__all__ = [
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "IncompatibleKeys",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "functional",
    "init",
    "utils",
]
hints.install(__name__)
