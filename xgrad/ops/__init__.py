"""The ops: each with its derivative beside it, one file a subject."""

from xgrad.ops import standard
from xgrad.ops.indexing import getitem, index_add, scatter, setitem
from xgrad.ops.nn import cross_entropy, linear, log_softmax, mse_loss, softmax
from xgrad.ops.standard import *
from xgrad.ops.writing import put
from xgrad.support import hints

__all__ = [
    "cross_entropy", "getitem", "index_add", "linear", "log_softmax", "mse_loss", "put", "scatter", "setitem",
    "softmax",
]  # fmt: skip
__all__ += [name for name in vars(standard) if not name.startswith("_")]
hints.install(__name__)
