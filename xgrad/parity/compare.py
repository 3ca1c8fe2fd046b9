"""A row of the table on several devices: how far each is from the reference, and where the most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend.device import Device
from xgrad.parity import pytorch
from xgrad.parity.evaluate import Mismatch, Run, by_pytorch, evaluate, floating, like, quiet
from xgrad.parity.reference import FLOAT64, Differences, differences, reference
from xgrad.parity.reproducer import Fault, described, reproducer
from xgrad.parity.row import Op, Sample
from xgrad.parity.timing import Timing, timed
from xgrad.parity.ulp import distance

DIFFERENCES, PYTORCH, REFERENCE = "differences", "PyTorch", "reference"
PYTORCH_LIMIT = 1e-13
UNITS = {"ULP": "error in ULP", "relative": "relative error"}


def differences_limit() -> float:
    """Return how far, relatively, a derivative may be from central differences."""
    return float(1e4 * reference().eps ** 0.8)


@dataclass(frozen=True)
class Cell:
    """The worst error of an op on a device, in one dtype, of one quantity: "value" or "gradient".

    `device` may also be `DIFFERENCES` or `PYTORCH`, which the reference itself is held against, in relative errors.
    `error` and `limit` are in `unit`, `sample` and `inputs` say what went in, by shapes and by numbers, and `note` what
    went wrong where there is no number.
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
        """Whether the error is tolerated."""
        return self.error <= self.limit

    @property
    def share(self) -> float:
        """The part of the tolerance that is used."""
        return self.error / self.limit if self.limit else math.inf if self.error else 0.0


@dataclass
class Comparison:
    """What came of one row."""

    op: str
    tolerance: str
    samples: int
    cells: list[Cell] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    timing: list[Timing] = field(default_factory=list)

    @property
    def compared(self) -> bool:
        """Whether it was compared on a device, rather than on the reference alone."""
        return any(cell.device not in (DIFFERENCES, PYTORCH, REFERENCE) for cell in self.cells)

    @property
    def failures(self) -> list[Cell]:
        """The cells past their tolerance."""
        return [cell for cell in self.cells if not cell.passed]


class _Found(NamedTuple):
    """A cell, and what is needed to make it happen again."""

    cell: Cell
    sample: Sample
    fault: Fault
    special: bool = False


def compare(op: Op, devices: Sequence[Device], dtypes: Sequence[str], time: bool = True) -> Comparison:
    """Hold devices against the reference on every sample of a row, and the reference against what is not ours."""
    samples = [(sample, False) for sample in (*op.samples, op.wide_sample()) if sample]
    samples += [(sample, True) for sample in (op.special_sample(),) if sample]
    result = Comparison(op.name, op.tolerance.name, len(samples))
    result.skipped = {str(d): op.not_on[d.type] for d in devices if d.type in op.not_on}
    if missing := op.missing():
        result.skipped = {str(d): f"needs {missing}" for d in devices}
        return result
    usable = [device for device in devices if device.type not in op.not_on]
    worst: dict[tuple[str, str, str], _Found] = {}
    with quiet():
        for sample, special in samples:
            for found in _on_sample(op, sample, special, usable, dtypes):
                cell = found.cell
                key = (cell.device, cell.dtype, cell.quantity)
                if key not in worst or _rank(cell) > _rank(worst[key].cell):
                    worst[key] = found._replace(special=special)
        result.cells = [_with_reproducer(op, found) for found in worst.values()]
        if time:
            result.timing = [timed(op, device, dtype) for device in usable for dtype in dtypes]
    return result


def _rank(cell: Cell) -> tuple[float, float]:
    return cell.share, cell.relative


def _on_sample(
    op: Op, sample: Sample, special: bool, devices: Sequence[Device], dtypes: Sequence[str]
) -> Iterator[_Found]:
    """Yield the worst error of each quantity, in each dtype, on each device and of the reference itself."""
    exact = reference().device
    try:
        run = evaluate(op, sample, exact, FLOAT64)
        used = (op.differentiable and not op.no_derivative) or op.tolerance.conditioned
        slopes = differences(op, sample, run) if used and not special else None
        wants = {dtype: evaluate(op, sample, exact, FLOAT64, dtype) for dtype in dtypes}
    except Exception as error:
        yield _raised(op, sample, REFERENCE, "float64", error)
        return
    yield from _against_differences(op, sample, run, slopes)
    yield from _against_pytorch(op, sample, special, run, slopes)
    for dtype, want in wants.items():
        for device in devices:
            try:
                got = evaluate(op, sample, device, dtype)
                _check_alike(op, got, want, dtype)
            except Exception as error:
                yield _raised(op, sample, str(device), dtype, error)
            else:
                yield from _against_reference(op, sample, special, str(device), dtype, got, want, slopes)


def _check_alike(op: Op, got: Run, want: Run, dtype: str) -> None:
    """Raise `Mismatch` where results are of other shapes or kinds than those of the reference."""
    ours = [(x.shape, x.dtype) for x in got.values]
    floats = np.dtype("float64" if op.function_name == "astype" else dtype)
    theirs = [(x.shape, like(x.dtype, floats) if x.dtype.kind in "fc" else x.dtype) for x in want.values]
    if ours != theirs:
        expected, found = (", ".join(f"{kind} of shape {shape}" for shape, kind in run) for run in (theirs, ours))
        raise Mismatch(f"expected {expected}, got {found}")


def _check_shapes(got: Run, want: Run) -> None:
    """Raise `Mismatch` where results or gradients are of other shapes or kinds than those of PyTorch."""
    ours, theirs = ([(x.shape, x.dtype.kind) for part in run for x in part] for run in (got, want))
    if ours != theirs:
        raise Mismatch(f"expected shapes and kinds {theirs}, got {ours}")


def _against_reference(
    op: Op, sample: Sample, special: bool, device: str, dtype: str, got: Run, want: Run, slopes: Differences | None
) -> Iterator[_Found]:
    elements = max([x.size for x in sample.inputs if isinstance(x, np.ndarray)], default=1)
    for quantity, ours, theirs, extra in _quantities(op, special, got, want, slopes):
        if quantity == "value" and not op.tolerance.conditioned:
            extra = [0.0] * len(ours)
        limit = op.tolerance.limit(quantity, 1 if sample.columns else elements)
        errors = [distance(a, b, a.dtype, c) for a, b, c in zip(ours, theirs, extra, strict=True)]
        yield _worst(op, sample, (device, dtype, quantity), "ULP", limit, ours, theirs, errors)


def _against_pytorch(op: Op, sample: Sample, special: bool, run: Run, slopes: Differences | None) -> Iterator[_Found]:
    """Yield how far the reference is from PyTorch's functions and PyTorch's own derivatives."""
    if op.torch is None or not pytorch.installed():
        return
    try:
        theirs = by_pytorch(op, sample, "float64")
        _check_shapes(run, theirs)
    except Exception as error:
        yield _raised(op, sample, PYTORCH, "float64", error)
        return
    limit = max(PYTORCH_LIMIT, op.loose[0] if op.loose else 0.0)
    for quantity, ours, expected, extra in _quantities(op, special, run, theirs, slopes):
        errors = [
            distance(a.astype(b.dtype), b, b.dtype, c)[::-1] for a, b, c in zip(ours, expected, extra, strict=True)
        ]
        yield _worst(op, sample, (PYTORCH, "float64", quantity), "relative", limit, ours, expected, errors)


def _against_differences(op: Op, sample: Sample, run: Run, slopes: Differences | None) -> Iterator[_Found]:
    """Yield how far the gradients that the rules give are from differences of the forward rule."""
    if slopes is None or op.no_derivative or not run.gradients:
        return
    errors = []
    for g, slope, noise, changes in zip(
        run.gradients, slopes.gradients, slopes.noise, slopes.gradient_changes, strict=True
    ):
        off = np.maximum(np.abs(g - slope) - noise, 0)
        off = np.where(np.isposinf(noise), 0, off)
        magnitude = np.maximum(np.abs(slope) + changes, np.finfo(np.float64).tiny)
        relative = np.where(np.isnan(g) & np.isnan(slope), 0, np.where(np.isnan(off), np.inf, off / magnitude))
        errors.append((relative, relative))
    key = (DIFFERENCES, "float64", "gradient")
    yield _worst(op, sample, key, "relative", differences_limit(), run.gradients, slopes.gradients, errors)


def _quantities(op: Op, special: bool, got: Run, want: Run, slopes: Differences | None) -> Iterator[tuple[Any, ...]]:
    """Yield values and gradients, each with what is added to its magnitude."""
    yield "value", got.values, want.values, slopes.value_changes if slopes else [0.0] * len(got.values)
    if got.gradients and not (special and not op.special_gradient):
        extra = slopes.gradient_changes if slopes else [0.0] * len(got.gradients)
        yield "gradient", got.gradients, want.gradients, extra


def _worst(
    op: Op,
    sample: Sample,
    key: tuple[str, str, str],
    unit: str,
    limit: float,
    got: list[np.ndarray],
    want: list[np.ndarray],
    errors: list[tuple[Any, Any]],
) -> _Found:
    """Return the element with the largest error, of several arrays; without elements, an error of 0."""
    device, dtype, quantity = key
    best, k = -1.0, 0
    place: tuple[int, ...] = ()
    for n, (error, _) in enumerate(errors):
        if error.size and float(np.max(error)) > best:
            best, k = float(np.max(error)), n
            place = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    names = floating(op, sample)
    what = f"the gradient of {names[k]}" if quantity == "gradient" else f"result {k}" if len(got) > 1 else "the result"
    fault = Fault(device, dtype, quantity, k, place)
    if best < 0:
        return _Found(Cell(device, dtype, quantity, 0.0, unit, 0.0, limit, what, (), str(sample)), sample, fault)
    error, relative = errors[k]
    expected = str(want[k][place])
    size = best if unit == "relative" else float(relative[place])
    cell = Cell(device, dtype, quantity, best, unit, size, limit, what, place, str(sample))
    cell = replace(cell, inputs=described(op, sample, dtype), got=str(got[k][place]), expected=expected)
    off = np.longdouble(abs(np.clongdouble(got[k][place]) - np.clongdouble(want[k][place])))
    scale = float(off / best) if 0 < best < math.inf and 0 < off < math.inf else 1.0
    return _Found(cell, sample, fault._replace(expected=expected, unit=UNITS[unit], scale=scale))


def _raised(op: Op, sample: Sample, device: str, dtype: str, error: Exception) -> _Found:
    note = f"{type(error).__name__}: {error}"
    cell = Cell(device, dtype, "value", math.inf, "ULP", math.inf, 0.0, "the call", (), str(sample), note=note)
    cell = replace(cell, inputs=described(op, sample, dtype))
    return _Found(cell, sample, Fault(device, dtype, "error", 0, ()))


def _with_reproducer(op: Op, found: _Found) -> Cell:
    """Return a cell with the code that shows its error, on one column of the inputs if that has it, too."""
    cell, sample, fault, _ = found
    if not cell.error or (cell.passed and cell.unit == "relative"):  # those are of more precision than a device has
        return cell
    if sample.columns and cell.place:
        smaller = _shrunk(op, found)
        if smaller is not None:
            cell, sample, fault, _ = smaller
    on = "cpu" if cell.device in (DIFFERENCES, PYTORCH, REFERENCE) else cell.device
    title = f"{op} on {on}, {cell.dtype}: {cell.what}, held against {_opponent(cell.device)}"
    code = reproducer(op, sample, fault._replace(device=on), title, by_differences=cell.device == DIFFERENCES)
    return replace(cell, reproducer=code)


def _opponent(device: str) -> str:
    return {DIFFERENCES: "central differences", PYTORCH: "PyTorch"}.get(device, "the reference")


def _shrunk(op: Op, found: _Found) -> _Found | None:
    """Return the same fault on the one column where it is, if it is there as well without the others."""
    cell, sample, _, special = found
    column = slice(cell.place[0], cell.place[0] + 1)
    small = replace(sample, inputs=tuple([x[column] for x in sample.inputs]), start=cell.place[0])
    devices = [] if cell.device in (DIFFERENCES, PYTORCH) else [Device(cell.device)]
    for again in _on_sample(op, small, special, devices, [cell.dtype]):
        new = again.cell
        same = (new.device, new.dtype, new.quantity) == (cell.device, cell.dtype, cell.quantity)
        if same and (new.passed, new.error >= 0.8 * cell.error) == (cell.passed, True):
            return again
    return None
