"""Optimizers, which update parameters by their gradients."""

from xgrad.optim.adam import Adam, AdamW
from xgrad.optim.optimizer import Optimizer
from xgrad.optim.sgd import SGD
from xgrad.support import hints

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
hints.install(__name__)
