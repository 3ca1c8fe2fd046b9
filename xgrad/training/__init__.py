"""A training loop with evaluation and callbacks, whose state allows a run to be resumed."""

from xgrad.support import hints
from xgrad.training.callbacks import EMA, EarlyStopping, JSONLines, Progress, TensorBoard
from xgrad.training.trainer import Callback, Trainer

__all__ = ["EMA", "Callback", "EarlyStopping", "JSONLines", "Progress", "TensorBoard", "Trainer"]
hints.install(__name__)
