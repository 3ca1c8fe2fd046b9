"""Results of the comparison of an op: the worst error of each device, dtype, quantity and kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xgrad.parity.timing import Timing

DIFFERENCES, PYTORCH, REFERENCE = "differences", "PyTorch", "reference"
UNITS = {"ULP": "error in ULP", "relative": "relative error"}


@dataclass(frozen=True)
class WorstError:
    """The worst error of an op on a device, for one dtype, quantity and kind.

    `quantity` is "value" or "gradient". If `device` is `DIFFERENCES` or `PYTORCH`, the error is the
    relative error of the reference compared with these. `error` and `limit` are in `unit`; `sample`
    has the shapes of the inputs, `inputs` their numbers; `note` tells what went wrong where there
    is no number.
    """

    device: str
    dtype: str
    quantity: str
    error: float
    unit: str
    relative: float
    limit: float
    what: str = ""
    place: tuple[int, ...] = ()
    sample: str = ""
    inputs: str = ""
    got: str = ""
    expected: str = ""
    note: str = ""
    reproducer: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is within tolerance."""
        return self.error <= self.limit

    @property
    def kind(self) -> str:
        """The kind of error: ``"refused"``, ``"wrong"`` or ``"rounding"``.

        An op that raised an exception is refused; a wrong result has a wrong NaN, infinity, integer
        or dtype.
        """
        return (
            "rounding"
            if self.error < math.inf
            else "refused"
            if self.note and not self.got
            else "wrong"
        )

    @property
    def share(self) -> float:
        """The error as a fraction of the tolerance."""
        return self.error / self.limit if self.limit else math.inf if self.error else 0.0


@dataclass
class Comparison:
    """The comparison of one case of the op table."""

    op: str
    tolerance: str
    samples: int
    cells: list[WorstError] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    timing: list[Timing] = field(default_factory=list)

    @property
    def compared(self) -> bool:
        """Whether any device was compared."""
        return any(error.device not in (DIFFERENCES, PYTORCH, REFERENCE) for error in self.cells)

    @property
    def failures(self) -> list[WorstError]:
        """The errors out of tolerance."""
        return [error for error in self.cells if not error.passed]

    def worst(self, device: str, *fields: str) -> WorstError | None:
        """Return the worst error on a device.

        `fields` restrict it to a dtype, a quantity or both.
        """
        errors = [
            e
            for e in self.cells
            if e.device == device and all(f in (e.dtype, e.quantity) for f in fields)
        ]
        return worst(errors)


def worst(errors: Sequence[WorstError]) -> WorstError | None:
    """Return the error with the largest share of its tolerance."""
    return max(errors, key=lambda error: (error.share, error.error), default=None)
