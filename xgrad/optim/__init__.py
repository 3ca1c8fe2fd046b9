"""Optimizers: what makes parameters better, given their gradients."""

from xgrad.core import hints
from xgrad.optim.adam import Adam, AdamW
from xgrad.optim.optimizer import Optimizer
from xgrad.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
hints.install(__name__)
