"""The ops: each with its derivative beside it, one file a subject."""

from typing import TYPE_CHECKING

from xgrad.core import methods as _core
from xgrad.ops import methods, torch_methods, writing
from xgrad.ops.creation import *
from xgrad.ops.dtype_functions import *
from xgrad.ops.elementwise import *
from xgrad.ops.indexing import *
from xgrad.ops.indexing import getitem, index_add, scatter, setitem
from xgrad.ops.joining import *
from xgrad.ops.manipulation import *
from xgrad.ops.matrix_products import *
from xgrad.ops.matrix_products import linear
from xgrad.ops.searching import *
from xgrad.ops.statistical import *
from xgrad.ops.tensor_conversion import *
from xgrad.support import hints

if TYPE_CHECKING:
    from xgrad.ops.softmaxes import log_softmax, softmax

put = writing.put
_core.define_methods(_core.Methods, {**torch_methods.METHODS, **methods.METHODS})

__all__ = [
    "getitem", "index_add", "linear", "log_softmax", "put", "scatter", "setitem", "softmax",
]  # fmt: skip
#: The functions of the namespace that are loaded with it.
STANDARD = [
    name
    for name, value in globals().items()
    if callable(value) and name[0] != "_" and name not in __all__
]
__all__ += STANDARD
hints.install(__name__, lazy="xgrad.ops.softmaxes")
