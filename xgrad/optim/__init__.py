"""Optimizers, which update parameters by their gradients, and learning rate schedules."""

from xgrad.optim import lr_scheduler, swa_utils
from xgrad.optim.adadelta import Adadelta
from xgrad.optim.adafactor import Adafactor
from xgrad.optim.adagrad import Adagrad
from xgrad.optim.adam import Adam, AdamW
from xgrad.optim.adamax import Adamax
from xgrad.optim.asgd import ASGD
from xgrad.optim.lbfgs import LBFGS
from xgrad.optim.lion import Lion
from xgrad.optim.muon import Muon
from xgrad.optim.nadam import NAdam
from xgrad.optim.optimizer import Optimizer
from xgrad.optim.radam import RAdam
from xgrad.optim.rmsprop import RMSprop
from xgrad.optim.rprop import Rprop
from xgrad.optim.sgd import SGD
from xgrad.support import hints

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]
hints.install(__name__)
