"""The table of operations that the tests and ``xgrad parity`` run through, a file a subject. A new op is one new row.

A row names the op, how far devices may be apart on it and why, how xgrad and PyTorch spell it, and the inputs to try.
"""

from __future__ import annotations

from xgrad.parity.row import Op
from xgrad.parity.table import (
    conversion,
    creation,
    distributions,
    elementwise,
    extensions,
    fft,
    indexing,
    linalg,
    manipulation,
    nn,
    searching,
    sets,
    sorting,
    special,
    statistical,
    utility,
)

OPS: list[Op] = [
    *elementwise.ROWS,
    *statistical.ROWS,
    *manipulation.ROWS,
    *indexing.ROWS,
    *searching.ROWS,
    *sorting.ROWS,
    *sets.ROWS,
    *utility.ROWS,
    *linalg.ROWS,
    *conversion.ROWS,
    *creation.ROWS,
    *nn.ROWS,
    *fft.ROWS,
    *special.ROWS,
    *distributions.ROWS,
    *extensions.ROWS,
]


def find(name: str) -> Op:
    """Return the row of a name; KeyError if there is none."""
    return {op.name: op for op in OPS}[name]
