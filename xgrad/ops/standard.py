"""Functions of the standard that are loaded with the namespace, as the files of `ops/` list them."""

from xgrad.ops.creation import *
from xgrad.ops.dtype_functions import *
from xgrad.ops.elementwise import *
from xgrad.ops.indexing import *
from xgrad.ops.manipulation import *
from xgrad.ops.matrix_products import *
from xgrad.ops.searching import *
from xgrad.ops.statistical import *
from xgrad.ops.tensor_conversion import *
