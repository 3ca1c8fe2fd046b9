"""Everything that is compared, in one report that text, JSON and the page are made of."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import xgrad
from xgrad.backend.device import Device
from xgrad.parity import fused, pytorch, seeds, training
from xgrad.parity.compare import PYTORCH_LIMIT, Comparison, compare, differences_limit
from xgrad.parity.fused import Fused
from xgrad.parity.reference import reference
from xgrad.parity.row import Op
from xgrad.parity.seeds import Seed
from xgrad.parity.tolerance import CLASSES
from xgrad.parity.training import Training

SCHEMA = 1
PARTS = ("ops", "fused", "training", "seeds", "timing")
DTYPES = ("float32", "float64")
PACKAGES = ("numpy", "array-api-compat", "array-api-strict", "torch", "cupy-cuda12x", "cupy-cuda13x")


@dataclass
class Report:
    """What was compared, with what, and what came of it.

    `missing` names devices that were asked for and cannot be used, `absent` those that nobody asked for, both with the
    reason. `command` is what makes the report again.
    """

    devices: dict[str, str]
    dtypes: list[str]
    parts: list[str]
    command: str = "xgrad parity"
    missing: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    ops: list[Comparison] = field(default_factory=list)
    fused: list[Fused] = field(default_factory=list)
    training: list[Training] = field(default_factory=list)
    baseline: dict[str, list[float]] = field(default_factory=dict)
    seeds: list[Seed] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    platform: str = ""
    date: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether anything is past its tolerance."""
        runs = [f.passed for f in self.fused], [t.passed for t in self.training], [s.equal for s in self.seeds]
        return not all(map(all, ([not op.failures for op in self.ops], *runs)))

    @property
    def compared(self) -> int:
        """The number of rows of ops that were compared on a device."""
        return sum(op.compared for op in self.ops)

    @property
    def verdict(self) -> str:
        """``"fail"``, ``"empty"`` if nothing was compared, ``"incomplete"`` if a device is missing, or ``"pass"``."""
        if self.failed:
            return "fail"
        if not (self.compared or self.fused or self.training or self.seeds):
            return "empty"
        return "incomplete" if self.missing else "pass"


def run(
    ops: Sequence[Op],
    devices: Sequence[Device],
    dtypes: Sequence[str] = DTYPES,
    parts: Sequence[str] = PARTS,
    *,
    progress: Callable[[str], None] = lambda text: None,
    steps: int = training.STEPS,
) -> Report:
    """Compare devices, and return what came of it; `progress` is told what is being done."""
    report = Report({str(d): d.backend.describe(d.index) for d in devices}, list(dtypes), list(parts))
    start = datetime.now(UTC)
    report.date, report.platform = start.isoformat(timespec="seconds"), platform.platform()
    report.versions = _versions()
    if "ops" in parts:
        for number, op in enumerate(ops, 1):
            progress(f"op {number}/{len(ops)}: {op}")
            report.ops.append(compare(op, devices, dtypes, time="timing" in parts))
    if "fused" in parts:
        progress("fused kernels")
        report.fused = [found for device in devices for dtype in dtypes for found in fused.compare_fused(device, dtype)]
    if "training" in parts:
        for dtype in dtypes:
            for optimizer in training.OPTIMIZERS:
                progress(f"training: {optimizer} in {dtype}")
                ours = training.isolated(training.train, Device("cpu"), dtype, optimizer, steps)
                report.baseline[f"{optimizer} {dtype}"] = ours.losses.tolist()
                report.training += [training.trajectory(device, dtype, optimizer, ours) for device in devices]
    if "seeds" in parts:
        progress("seeds")
        report.seeds = [seed for device in devices for dtype in dtypes for seed in seeds.compare_seeds(device, dtype)]
    report.seconds = (datetime.now(UTC) - start).total_seconds()
    return report


def _versions() -> dict[str, str]:
    found = {"xgrad": xgrad.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def notes() -> dict[str, str]:
    """Return how things are compared, in a sentence each."""
    oracle = (
        f"and its values and gradients with PyTorch's own, to {PYTORCH_LIMIT:g}"
        if pytorch.installed()
        else "and would be with PyTorch's own functions, which are not installed here: values of an op that is more "
        "than a function of the array library are compared between devices alone"
    )
    return {
        "reference": f"Every device is held against {reference().description}.",
        "rules": "The devices share their rules. So the gradients of the reference are held against central "
        f"differences of its values, by the five-point formula, to {differences_limit():.1g} relatively; {oracle}.",
        "units": "An error is counted in units: one ULP of the reference value. For sums, and for all gradients, it is "
        "one ULP of the value and of what a change of every input by one ULP comes to, together; below the smallest "
        "normal number it is that number's. NaNs and infinities must be at the same places. The sign of a zero is not "
        "compared, and a float32 result of 0 counts as exact for a subnormal number, which GPUs flush.",
        "fused": "The fused kernels of a device are held against the generic rules that they replace, on that device. "
        f"{fused.REASON}",
        "training": f"An MLP {'-'.join(map(str, training.SIZES))} on the digits that come with xgrad, batches of "
        f"{training.BATCH}, from one seed, held against the same training on cpu. {training.REASON}",
        "seeds": "What a seed determines must have the same bits on every device as on cpu.",
        "timing": "The median of a few calls with the way back, on this machine as it was: not judged.",
    }


def as_json(report: Report) -> str:
    """Return a report as JSON; numbers that JSON does not have are the strings "inf" and "nan"."""
    content: dict[str, Any] = {"schema": SCHEMA, "verdict": report.verdict, **asdict(report)}
    content["reference"] = {"description": reference().description, "eps": reference().eps}
    content["notes"] = notes()
    content["tolerances"] = [asdict(tolerance) for tolerance in CLASSES]
    content["limits"] = {
        "differences": differences_limit(), "pytorch": PYTORCH_LIMIT, "training": training.LIMITS
    }  # fmt: skip
    return json.dumps(_plain(content), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
