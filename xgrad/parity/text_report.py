"""The report as text for a terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from xgrad.parity.comparison import DIFFERENCES, PYTORCH, UNITS, Comparison, WorstError, worst
from xgrad.parity.report import Report


def as_text(report: Report, verbose: bool = False) -> str:
    """Return a report as text: a table with a line for each op, the failures, and the verdict."""
    sections = [
        _ops(report, verbose) if report.ops else (),
        _fused(report, verbose),
        _training(report) if report.training else (),
        _seeds(report, verbose) if report.seeds else (),
        _skipped(report),
        _failures(report),
        [f"{name}: not usable: {reason}" for name, reason in report.missing.items()],
    ]
    text = "\n\n".join(filter(None, ["\n".join(lines).strip("\n") for lines in sections]))
    if report.absent:
        text += (
            f"\nnot compared, because not usable here: {', '.join(report.absent)} (see xgrad info)"
        )
    return f"{text}\n{verdict(report)}".strip("\n")


def verdict(report: Report) -> str:
    """Return the result in one line."""
    failures = {
        "op": sum(bool(op.failures) for op in report.ops),
        "fused kernel": sum(not kernel.passed for kernel in report.fused),
        "training run": sum(not run.passed for run in report.training),
        "seeded draw": sum(not draw.equal for draw in report.seeds),
    }
    cases, part = len(report.ops), f"{report.compared} of " * (report.compared < len(report.ops))
    compared = part + _count(cases, "op case") if cases else " and ".join(report.parts)
    result = {
        "fail": (
            f"FAILED: {', '.join(_count(n, name) for name, n in failures.items() if n)} out of"
            " tolerance"
        ),
        "empty": "NOTHING COMPARED",
        "incomplete": f"INCOMPLETE: {', '.join(report.missing)} not usable; the others agree",
        "pass": "PASSED",
    }[report.verdict]
    devices, dtypes = ", ".join(report.devices), ", ".join(report.dtypes)
    return f"{result}: {compared} on {devices} in {dtypes}, {report.seconds:.0f} s"


def _count(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def number(value: float) -> str:
    """Return an error in a few characters."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    return f"{value:.2f}" if 0.005 <= value < 100 else f"{value:.0e}"


def short(error: WorstError) -> str:
    """Return an error in ULPs, or else relative, in a few characters."""
    return (
        number(error.error)
        if error.unit == "ULP" or error.error in (0, math.inf)
        else f"{error.error:.0e}"
    )


#: The quantities of a column, by its name; columns of devices have two.
_QUANTITIES = {DIFFERENCES: ("gradient",), PYTORCH: ("worst",)}
_OF_DEVICE = ("value", "gradient")


def _ops(report: Report, verbose: bool) -> Iterator[str]:
    """Yield a line for each op: the worst value and gradient of each device."""
    width = max(len(op.op) for op in report.ops) + 2
    columns = [*report.devices, DIFFERENCES]
    if any(error.device == PYTORCH for op in report.ops for error in op.cells):
        columns.append(PYTORCH)
    yield "worst errors: on a device in ULP; of the derivative rules, compared with central"
    yield "differences and with PyTorch, relative. A ! is out of tolerance."
    yield ""
    yield f"{'':{width}}" + "".join(_aligned(name, [name]) for name in columns)
    heads = "".join(_aligned(name, _QUANTITIES.get(name, _OF_DEVICE)) for name in columns)
    yield f"{'op':{width}}{heads}  tolerance"
    for op in report.ops:
        if not op.cells and len(reasons := set(op.skipped.values())) == 1:
            yield f"{op.op:{width}}  skipped: {reasons.pop()}"
            continue
        cells = "".join(_aligned(name, _cells(op, name)) for name in columns)
        yield f"{op.op:{width}}{cells}  {op.tolerance}"
        if verbose:
            yield from _op_details(op)


def _aligned(column: str, cells: Sequence[str]) -> str:
    """Return the cells of a column, aligned to the right, after a gap."""
    width = 13 if column in _QUANTITIES else 18
    return "".join(f"{cell:>9}" for cell in cells).rjust(width)


def _cells(op: Comparison, device: str) -> list[str]:
    """Return the worst errors of an op in a column."""
    if device in op.skipped:
        return ["skipped"]
    quantities = () if device in _QUANTITIES else _OF_DEVICE
    errors = [op.worst(device, quantity) for quantity in quantities] or [op.worst(device)]
    return ["-" if e is None else short(e) + "!" * (not e.passed) for e in errors]


def _op_details(op: Comparison) -> Iterator[str]:
    for error in op.cells:
        yield (
            f"    {error.device:12}{error.dtype:9}{error.quantity:10}{number(error.error):>7} of "
            f"{number(error.limit)} {error.unit}, {error.relative:.1e} relative, at {error.sample}"
        )
    for timing in op.timing:
        large = "" if timing.large is None else f", {timing.large:.0f} µs on 65536 elements"
        yield (
            f"    {timing.device:12}{timing.dtype:9}{timing.small:.0f} µs with its gradient{large}"
        )
    for device, reason in op.skipped.items():
        yield f"    {device:12}skipped: {reason}"


def _skipped(report: Report) -> Iterator[str]:
    """Yield the number of cases that were compared on no device, by reason."""
    counts = Counter(
        reason for op in report.ops if not op.compared for reason in set(op.skipped.values())
    )
    for reason, count in counts.items():
        yield f"skipped: {_count(count, 'op case')}: {reason}"


def _fused(report: Report, verbose: bool) -> Iterator[str]:
    for device in dict.fromkeys(kernel.device for kernel in report.fused):
        kernels = [kernel for kernel in report.fused if kernel.device == device]
        passed = sum(kernel.passed for kernel in kernels)
        exact = sum(not kernel.error for kernel in kernels)
        yield (
            f"fused kernels on {device}: {passed} of {len(kernels)} match the generic rules,"
            f" {exact} bit-identical"
        )
        for k in kernels if verbose else ():
            yield (
                f"    {k.what:44}{k.dtype:9}{number(k.error):>7} of {number(k.limit)} times the"
                " precision"
            )


def _training(report: Report) -> Iterator[str]:
    yield (
        f"{'training':22}{'device':10}{'losses':>9}{'weights':>9}{'tolerance':>11}{'µs a step':>11}"
    )
    for run in report.training:
        yield (
            f"{f'{run.optimizer} {run.dtype}':22}{run.device:10}{run.loss_error:9.1e}"
            f"{run.weight_error:9.1e}"
            f"{run.limit:11.1e}{run.step:11.0f}{'' if run.passed else '  !'}"
        )


def _seeds(report: Report, verbose: bool) -> Iterator[str]:
    for device in report.devices:
        draws = [draw for draw in report.seeds if draw.device == device]
        names = ", ".join(sorted({draw.what for draw in draws if verbose or not draw.equal}))
        equal = (
            f"seeds on {device}: {sum(draw.equal for draw in draws)} of {len(draws)} draws have the"
            " bits of cpu"
        )
        yield f"{equal} ({names})" if names else equal


def _failures(report: Report) -> Iterator[str]:
    """Yield the errors out of tolerance, with a program that reproduces the worst of each op."""
    for op in report.ops:
        if shown := worst(op.failures):
            yield from ("", *[explain(op, error) for error in op.failures], "")
            yield from [f"    {line}".rstrip() for line in shown.reproducer.splitlines()]
    for line in failed_runs(report):
        yield from ("", line)


def failed_runs(report: Report) -> Iterator[str]:
    """Yield the failures of fused kernels, training runs and seeds."""
    for kernel in (kernel for kernel in report.fused if not kernel.passed):
        size = (
            f"{number(kernel.error)} times the precision off the generic rule, tolerated"
            f" {number(kernel.limit)}"
        )
        yield (
            f"FAILED: the fused kernel of {kernel.what} on {kernel.device} in {kernel.dtype}:"
            f" {kernel.note or size}"
        )
    for run in (run for run in report.training if not run.passed):
        size = (
            f"losses {run.loss_error:.2g} and weights {run.weight_error:.2g} off cpu, tolerated"
            f" {run.limit:g}"
        )
        yield (
            f"FAILED: training with {run.optimizer} on {run.device} in {run.dtype}:"
            f" {run.note or size}"
        )
    for draw in (draw for draw in report.seeds if not draw.equal):
        yield f"FAILED: {draw.what} of one seed on {draw.device} in {draw.dtype}: {draw.note}"


def explain(op: Comparison, error: WorstError) -> str:
    """Return a sentence about an error out of tolerance."""
    if error.note:
        return (
            f"FAILED: {op.op} on {error.device} in {error.dtype}, applied to {error.inputs}:"
            f" {error.note}"
        )
    place = f" at [{', '.join(map(str, error.place))}]" if error.place else ""
    expected = {DIFFERENCES: "central differences of the op give", PYTORCH: "PyTorch gives"}.get(
        error.device, "expected"
    )
    rule = error.device in (DIFFERENCES, PYTORCH)
    where = ", by its rule on every device" if rule else f" on {error.device} in {error.dtype}"
    return (
        f"FAILED: {op.op}{where}: {error.what}{place} is {error.got}, {expected} {error.expected}:"
        f" {UNITS[error.unit]} {number(error.error)}, tolerated {number(error.limit)}"
        f" ({op.tolerance}); the input is {error.inputs}"
    )
