"""A report on a terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from xgrad.parity.compare import DIFFERENCES, PYTORCH, UNITS, Cell, Comparison
from xgrad.parity.report import Report


def as_text(report: Report, verbose: bool = False) -> str:
    """Return a report as a table of one line per op, what failed, and the verdict."""
    lines: list[str] = []
    if report.ops:
        lines += _ops(report, verbose)
    if report.fused:
        lines += ["", *_fused(report, verbose)]
    if report.training:
        lines += ["", *_training(report)]
    if report.seeds:
        lines += ["", *_seeds(report, verbose)]
    lines += ["", *_skipped(report)]
    lines += list(failures(report))
    lines += ["", *[f"{name}: not usable: {why}" for name, why in report.missing.items()]]
    if report.absent:
        lines.append(f"not compared, for they cannot be used here: {', '.join(report.absent)} (see xgrad info)")
    lines.append(verdict(report))
    return "\n".join(lines).strip("\n")


def verdict(report: Report) -> str:
    """Return what came of it, in one line."""
    ops = sum(bool(op.failures) for op in report.ops)
    kernels, trainings = (sum(not run.passed for run in runs) for runs in (report.fused, report.training))
    seeds = sum(not s.equal for s in report.seeds)
    counts = [(ops, "op"), (kernels, "fused kernel"), (trainings, "training"), (seeds, "seeded draw")]
    what = ", ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count)
    names = ", ".join(report.devices)
    rows, some = len(report.ops), f"{report.compared} of " * (report.compared < len(report.ops))
    compared = f"{some}{rows} row{'s' * (rows > 1)} of ops" if rows else " and ".join(report.parts)
    result = {
        "fail": f"FAILED: {what} past the tolerance",
        "empty": "NOTHING COMPARED",
        "incomplete": f"INCOMPLETE: {', '.join(report.missing)} cannot be used; the others agree",
        "pass": "PASSED",
    }[report.verdict]
    return f"{result}: {compared} on {names} in {', '.join(report.dtypes)}, {report.seconds:.0f} s"


def number(value: float) -> str:
    """Return an error in a few characters."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    return f"{value:.2f}" if 0.005 <= value < 100 else f"{value:.0e}"


def worst(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell that uses most of its tolerance."""
    return max(cells, key=lambda cell: (cell.share, cell.error), default=None)


def by(op: Comparison, device: str, *rest: str) -> Cell | None:
    """Return the worst cell of an op on a device, of those of a dtype or a quantity if one is given."""
    return worst(
        [c for c in op.cells if c.device == device and all(r in (c.dtype, c.quantity) for r in rest)]
    )  # fmt: skip


def _ops(report: Report, verbose: bool) -> Iterator[str]:
    """Yield a line for each op: per device the worst value and the worst gradient, in units."""
    width = max(len(op.op) for op in report.ops) + 2
    columns = [*report.devices, DIFFERENCES]
    if any(cell.device == PYTORCH for op in report.ops for cell in op.cells):
        columns.append(PYTORCH)
    yield "worst errors: on a device in ULP, of values and of gradients; of the rules against differences and PyTorch,"
    yield "relatively. A ! is past the tolerance."
    yield ""
    yield f"{'':{width}}" + "".join(f"{name:>16}" for name in columns) + "  tolerance"
    for op in report.ops:
        cells = ""
        if not op.cells and len(reasons := set(op.skipped.values())) == 1:
            yield f"{op.op:{width}}  skipped: {reasons.pop()}"
            continue
        for name in columns:
            if name in op.skipped:
                cells += f"{'skipped':>16}"
                continue
            found = [by(op, name, quantity) for quantity in ("value", "gradient")]
            if name in (DIFFERENCES, PYTORCH):
                found = [worst([c for c in found if c])]
            cells += f"{' '.join(_cell(c) for c in found):>16}"
        yield f"{op.op:{width}}{cells}  {op.tolerance}"
        if verbose:
            for cell in op.cells:
                yield (
                    f"    {cell.device:12}{cell.dtype:9}{cell.quantity:10}{number(cell.error):>7} of "
                    f"{number(cell.limit)} {cell.unit}, {cell.relative:.1e} relatively, at {cell.sample}"
                )
            for timing in op.timing:
                large = "" if timing.large is None else f", {timing.large:.0f} µs on 65536 elements"
                yield f"    {timing.device:12}{timing.dtype:9}{timing.small:.0f} µs with its gradient{large}"
            for device, why in op.skipped.items():
                yield f"    {device:12}skipped: {why}"


def _skipped(report: Report) -> Iterator[str]:
    """Yield how many rows of ops were not compared on any device, by reason."""
    found = Counter(reason for op in report.ops if not op.compared for reason in set(op.skipped.values()))
    for reason, count in found.items():
        yield f"skipped: {count} row{'s' * (count > 1)} of ops: {reason}"


def short(cell: Cell) -> str:
    """Return an error in as few characters as it takes."""
    return number(cell.error) if cell.unit == "ULP" or cell.error in (0, math.inf) else f"{cell.error:.0e}"


def _cell(cell: Cell | None) -> str:
    return "      -" if cell is None else f"{short(cell) + '!' * (not cell.passed):>7}"


def _fused(report: Report, verbose: bool) -> Iterator[str]:
    for device in dict.fromkeys(f.device for f in report.fused):
        mine = [f for f in report.fused if f.device == device]
        passed, exact = sum(f.passed for f in mine), sum(not f.error for f in mine)
        yield f"fused kernels on {device}: {passed} of {len(mine)} agree with the generic rules, {exact} to the bit"
        for f in mine if verbose else ():
            yield f"    {f.what:44}{f.dtype:9}{number(f.error):>7} of {number(f.limit)} times the precision"


def _training(report: Report) -> Iterator[str]:
    yield f"{'training':22}{'device':10}{'losses':>9}{'weights':>9}{'tolerance':>11}{'µs a step':>11}"
    for t in report.training:
        name = f"{t.optimizer} {t.dtype}"
        mark = "" if t.passed else "  !"
        yield (
            f"{name:22}{t.device:10}{t.loss_error:9.1e}{t.weight_error:9.1e}{t.limit:11.1e}{t.step:11.0f}{mark}"
        )  # fmt: skip


def _seeds(report: Report, verbose: bool) -> Iterator[str]:
    for device in report.devices:
        mine = [s for s in report.seeds if s.device == device]
        equal = sum(s.equal for s in mine)
        names = sorted({s.what for s in mine if not s.equal}) if not verbose else sorted({s.what for s in mine})
        yield f"seeds on {device}: {equal} of {len(mine)} draws have the bits of cpu" + (
            f" ({', '.join(names)})" if names else ""
        )


def failures(report: Report) -> Iterator[str]:
    """Yield what is past its tolerance, with code that shows the worst of each op."""
    for op in report.ops:
        if op.failures:
            yield from ("", *[explain(op, cell) for cell in op.failures])
            shown = worst(op.failures)
            lines = shown.reproducer.splitlines() if shown else []
            yield from ("", *[f"    {line}".rstrip() for line in lines])
    for line in failed_runs(report):
        yield from ("", line)


def failed_runs(report: Report) -> Iterator[str]:
    """Yield what is wrong with fused kernels, trainings and seeds."""
    for f in report.fused:
        if not f.passed:
            off = f"{number(f.error)} times the precision off the generic rule, tolerated {number(f.limit)}"
            yield f"FAILED: the fused kernel of {f.what} on {f.device} in {f.dtype}: {f.note or off}"
    for t in report.training:
        if not t.passed:
            off = f"losses {t.loss_error:.2g} and weights {t.weight_error:.2g} off those on cpu, tolerated {t.limit:g}"
            yield f"FAILED: training with {t.optimizer} on {t.device} in {t.dtype}: {t.note or off}"
    for s in report.seeds:
        if not s.equal:
            yield f"FAILED: {s.what} of one seed on {s.device} in {s.dtype}: {s.note}"


def explain(op: Comparison, cell: Cell) -> str:
    """Return in a sentence what is wrong."""
    if cell.note:
        return f"FAILED: {op.op} on {cell.device} in {cell.dtype}, applied to {cell.inputs}: {cell.note}"
    place = f" at [{', '.join(map(str, cell.place))}]" if cell.place else ""
    rule = cell.device in (DIFFERENCES, PYTORCH)
    says = "PyTorch says" if cell.device == PYTORCH else "central differences of the op say" if rule else "expected"
    where = ", by its rule on every device" if rule else f" on {cell.device} in {cell.dtype}"
    return (
        f"FAILED: {op.op}{where}: {cell.what}{place} is {cell.got}, {says} {cell.expected}: {UNITS[cell.unit]} "
        f"{number(cell.error)}, tolerated {number(cell.limit)} ({op.tolerance}); the input is {cell.inputs}"
    )
