"""Neural networks: modules with parameters, layers, losses, and initialization."""

from xgrad.nn import functional, init, utils
from xgrad.nn.activations import ReLU, Sigmoid, Tanh
from xgrad.nn.containers import ModuleDict, ModuleList, Sequential
from xgrad.nn.dropout import Dropout
from xgrad.nn.linear import Linear
from xgrad.nn.losses import CrossEntropyLoss, MSELoss
from xgrad.nn.mlp import MLP
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.nn.parameter_containers import ParameterDict, ParameterList
from xgrad.nn.shapes import Flatten, Identity
from xgrad.nn.state_dict import IncompatibleKeys
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
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "functional",
    "init",
    "utils",
]
hints.install(__name__)
