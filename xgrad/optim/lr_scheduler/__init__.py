"""Learning rate schedules.

A schedule sets the learning rates of an optimizer when it is created, and at each call of its
`step`, after a step of the optimizer or after an epoch. A step that `xgrad.capture` replays uses
the new learning rates without another trace.
"""

from xgrad.optim.lr_scheduler.base import LRScheduler
from xgrad.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from xgrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from xgrad.optim.lr_scheduler.cyclic import CyclicLR
from xgrad.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from xgrad.optim.lr_scheduler.one_cycle import OneCycleLR
from xgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from xgrad.support import hints

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
hints.install(__name__)
