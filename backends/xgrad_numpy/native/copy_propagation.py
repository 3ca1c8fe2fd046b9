"""Copy propagation: statements read an array instead of its copy.

The interpreter repeats short operands, such as a row that is added to all rows of a matrix, in a
buffer, because NumPy's inner loops are then faster. Loops in C read the row itself. Most copies
then have no reader, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.lib.array_utils import byte_bounds

from xgrad.capture.program import leaves
from xgrad_numpy.codegen import Instruction
from xgrad_numpy.native.places import Bounds, Place, array_in, is_within, overlap
from xgrad_numpy.native.statements import Statement, place_in


def propagate_copies(
    instructions: Sequence[Instruction], statements: Sequence[Statement | None], buffers: Bounds
) -> dict[int, Statement]:
    """Let statements read the sources of copies in `buffers`; return the copies by index."""
    copies: list[Statement] = []  # copies whose source and result are unchanged since
    found: dict[int, Statement] = {}
    for i, (x, statement) in enumerate(zip(instructions, statements, strict=True)):
        if statement is None:
            copies = copies and _unchanged(copies, _arrays_of(x), private=False)
            continue
        for k, place in enumerate(statement.inputs):
            source = next((y.inputs[0] for y in copies if _reads(place, y.out)), None)
            original = source and place_in(source.operand, statement.shape)
            # an input may be a part of the state
            if original is None or (original.moves and not statement.private):
                continue
            if original.is_same(statement.out) or original.is_apart(statement.out):
                statement.inputs[k], statement.rewritten = original, True
        copies = copies and _unchanged(copies, [statement.out.array], private=statement.private)
        if statement.is_copy and is_within(statement.out.bounds, buffers):
            found[i] = statement
            if statement.inputs[0].is_apart(statement.out):
                copies.append(statement)
    return found


def _reads(place: Place, copied: Place) -> bool:
    """Return whether a statement reads exactly the copied array, in its shape or broadcast."""
    x, y = place.array, copied.array
    return place.address == copied.address and (x.shape, x.strides, x.dtype) == (
        y.shape,
        y.strides,
        y.dtype,
    )


def _unchanged(
    copies: Iterable[Statement], written: Sequence[np.ndarray], *, private: bool
) -> list[Statement]:
    """Return the copies whose source and result a write cannot have changed.

    An input may be the state that a write changes, unless the write is `private`.
    """
    bounds = [byte_bounds(array) for array in written]
    return [
        copy
        for copy in copies
        if (private or not copy.moves)
        and not any(overlap(place.bounds, other) for place in copy.places for other in bounds)
    ]


def _arrays_of(x: Instruction) -> list[np.ndarray]:
    """Return the arrays that an instruction may write to: all of its operands."""
    arrays = map(array_in, leaves((*x.operands, *x.options.values())))
    return [array for array in arrays if array is not None]
