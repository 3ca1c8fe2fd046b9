"""The op table, which drives the tests and ``xgrad parity``.

There is a file for each subject, and a case for each op.
"""

from __future__ import annotations

from xgrad.parity.cases import (
    attention,
    convolution,
    distributions,
    elementwise,
    extensions,
    fft,
    images,
    indexing,
    linalg,
    losses,
    manipulation,
    nn,
    numpy_functions,
    recurrent,
    searching,
    special,
    statistical,
    torch_methods,
)
from xgrad.parity.op_case import OpCase

_SUBJECTS = (
    elementwise,
    statistical,
    manipulation,
    indexing,
    searching,
    linalg,
    nn,
    losses,
    attention,
    recurrent,
    convolution,
    images,
    fft,
    special,
    distributions,
    extensions,
    numpy_functions,
    torch_methods,
)
OP_CASES: list[OpCase] = [case for subject in _SUBJECTS for case in subject.CASES]


def find(name: str) -> OpCase:
    """Return the case of a name; raise KeyError if there is none."""
    return {case.name: case for case in OP_CASES}[name]
