"""Neural networks: modules with parameters, layers, losses, and initialization."""

from xgrad.nn import functional, init, utils
from xgrad.nn.layers import MLP, Dropout, Flatten, Identity, Linear, ModuleList, ReLU, Sequential, Sigmoid, Tanh
from xgrad.nn.losses import CrossEntropyLoss, MSELoss
from xgrad.nn.module import IncompatibleKeys, Module
from xgrad.nn.parameter import Parameter
from xgrad.support import hints

__all__ = [
    "MLP",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "IncompatibleKeys",
    "Linear",
    "MSELoss",
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
