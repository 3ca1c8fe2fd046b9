"""The standard's sorting functions."""

from __future__ import annotations

from typing import Any

from xgrad.declare import in_rule
from xgrad.dtypes import FLOATING, INTEGER
from xgrad.ops.axes import DESCENDING, LAST, STABLE, along_axes
from xgrad.ops.indexing import put_along_axis


def _sort_rule(g: Any, xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """Put each gradient where its element was."""
    order = xp.argsort(x, axis=axis, descending=descending)
    return in_rule(put_along_axis, xp, g, order, axis=axis % len(x.shape), shape=tuple(x.shape))


sort = along_axes(
    "sort",
    _sort_rule,
    LAST,
    DESCENDING,
    STABLE,
    section="sorting",
    highest=FLOATING,
    some=True,
    doc="Return the elements in order along an axis; of equal ones, the first has the gradient of the first place.",
    example="[3.0, 1.0, 2.0] -> [1., 2., 3.]",
    returns="Of the shape and dtype of `x`.",
    raises="If there are no axes.",
)

argsort = along_axes(
    "argsort",
    None,
    LAST,
    DESCENDING,
    STABLE,
    section="sorting",
    kind=INTEGER,
    highest=FLOATING,
    some=True,
    takes="Real numbers; bools count as integers",
    doc="Return where the elements are that `sort` puts in order.",
    example="[3.0, 1.0, 2.0] -> [1, 2, 0]",
    returns="int64, of the shape of `x`.",
    raises="If there are no axes.",
)
