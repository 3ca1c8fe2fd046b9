"""Neural networks: modules with parameters, layers, losses, and initialization."""

from xgrad.nn import functional, init, utils
from xgrad.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from xgrad.nn.attention import MultiheadAttention
from xgrad.nn.containers import ModuleDict, ModuleList, Residual, Sequential
from xgrad.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from xgrad.nn.dropout import Dropout, Dropout1d, Dropout2d
from xgrad.nn.embedding import Embedding
from xgrad.nn.linear import Linear
from xgrad.nn.losses import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
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
from xgrad.nn.shapes import Flatten, Identity, Unflatten
from xgrad.nn.state_dict import IncompatibleKeys
from xgrad.nn.transformer import PositionalEncoding, TransformerEncoder, TransformerEncoderLayer
from xgrad.support import hints

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "IncompatibleKeys",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
<<<<<<< HEAD
    "NLLLoss",
=======
    "MultiheadAttention",
>>>>>>> f358cce31fe40ed760ee891096f075d828445754
    "PReLU",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PositionalEncoding",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "ReLU6",
    "Residual",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "functional",
    "init",
    "utils",
]
hints.install(__name__)
