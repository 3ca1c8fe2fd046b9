"""The report of all comparisons, from which text, JSON and HTML are made."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from itertools import product
from typing import Any

import xgrad
from xgrad.backend.device import Device
from xgrad.parity import fused_parity, pytorch, seed_parity, training_parity
from xgrad.parity.compare import PYTORCH_LIMIT, compare, differences_limit
from xgrad.parity.comparison import Comparison
from xgrad.parity.fused_parity import FusedKernel
from xgrad.parity.op_case import OpCase
from xgrad.parity.reference import reference
from xgrad.parity.seed_parity import SeededDraw
from xgrad.parity.tolerance import CLASSES
from xgrad.parity.training_parity import ParityRun
from xgrad.support import trees

SCHEMA = 1
PARTS = ("ops", "fused", "training", "seeds", "timing")
DTYPES = ("float32", "float64")
PACKAGES = ("numpy", "array-api-compat", "scipy", "mpmath", "torch")  # besides the devices' own


@dataclass
class Report:
    """The comparisons of devices, and their environment.

    `missing` has the devices that were requested and are not usable; `absent` has the devices that
    were not requested and are not usable. Both give the reason. `command` repeats the report.
    """

    devices: dict[str, str]
    dtypes: list[str]
    parts: list[str]
    command: str = "xgrad parity"
    missing: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    ops: list[Comparison] = field(default_factory=list)
    fused: list[FusedKernel] = field(default_factory=list)
    training: list[ParityRun] = field(default_factory=list)
    baseline: dict[str, list[float]] = field(default_factory=dict)
    seeds: list[SeededDraw] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    platform: str = ""
    date: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether anything is out of tolerance."""
        failed = [not kernel.passed for kernel in self.fused] + [
            not run.passed for run in self.training
        ]
        return (
            any(failed)
            or any(op.failures for op in self.ops)
            or not all(draw.equal for draw in self.seeds)
        )

    @property
    def compared(self) -> int:
        """The number of op cases that were compared on a device."""
        return sum(op.compared for op in self.ops)

    @property
    def verdict(self) -> str:
        """The result: ``"pass"``, ``"fail"``, ``"empty"`` or ``"incomplete"``.

        ``"empty"`` means that nothing was compared, ``"incomplete"`` that a device is missing.
        """
        if self.failed:
            return "fail"
        if not (self.compared or self.fused or self.training or self.seeds):
            return "empty"
        return "incomplete" if self.missing else "pass"


def run(
    ops: Sequence[OpCase],
    devices: Sequence[Device],
    dtypes: Sequence[str] = DTYPES,
    parts: Sequence[str] = PARTS,
    *,
    progress: Callable[[str], None] = lambda text: None,
    steps: int = training_parity.STEPS,
) -> Report:
    """Compare devices, and return the report.

    `progress` is called with a description of each step.
    """
    report = Report(
        {str(d): d.backend.describe(d.index) for d in devices}, list(dtypes), list(parts)
    )
    start = datetime.now(UTC)
    report.date, report.platform = start.isoformat(timespec="seconds"), platform.platform()
    report.versions = _versions(devices)
    if "ops" in parts:
        for number, op in enumerate(ops, 1):
            progress(f"op {number}/{len(ops)}: {op}")
            report.ops.append(compare(op, devices, dtypes, time="timing" in parts))
    if "fused" in parts:
        progress("fused kernels")
        for device, dtype in product(devices, dtypes):
            report.fused += fused_parity.compare_fused(device, dtype)
    if "training" in parts:
        for dtype, optimizer in product(dtypes, training_parity.OPTIMIZERS):
            progress(f"training: {optimizer} in {dtype}")
            baseline = training_parity.isolated(
                training_parity.train, Device("cpu"), dtype, optimizer, steps
            )
            report.baseline[f"{optimizer} {dtype}"] = baseline.losses.tolist()
            report.training += [
                training_parity.compare_training(d, dtype, optimizer, baseline) for d in devices
            ]
    if "seeds" in parts:
        progress("seeds")
        for device, dtype in product(devices, dtypes):
            report.seeds += seed_parity.compare_seeds(device, dtype)
    report.seconds = (datetime.now(UTC) - start).total_seconds()
    return report


def _versions(devices: Sequence[Device]) -> dict[str, str]:
    versions = {"xgrad": xgrad.__version__, "python": platform.python_version()}
    for device in devices:
        versions |= device.backend.versions()
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def notes() -> dict[str, str]:
    """Return the methods of comparison, one paragraph each."""
    with_pytorch = (
        f"and its values and gradients with those of PyTorch, to {PYTORCH_LIMIT:g}"
        if pytorch.installed()
        else (
            "and would be with PyTorch, which is not installed here: the values of an op that is"
            " more than a function of the array library are compared between devices only"
        )
    )
    return {
        "reference": f"Every device is compared with {reference().description}.",
        "rules": (
            "The devices share their derivative rules. Therefore the gradients of the reference"
            " are compared with central differences of its values, by the five-point formula, to a"
            f" relative error of {differences_limit():.1g}; {with_pytorch}."
        ),
        "units": (
            "Errors are counted in units of one ULP of the reference value. For sums and for all"
            " gradients, the unit is one ULP of the magnitude of the value plus the effect of a"
            " relative change of every input; below the smallest normal number, it is the ULP of"
            " that number. NaNs and infinities must be at the same places. The sign of zero is not"
            " compared, and a float32 result of 0 is exact for a subnormal number, which GPUs"
            " flush."
        ),
        "fused": (
            "The fused kernels of a device are compared with the generic rules that they replace,"
            f" on that device. {fused_parity.REASON}"
        ),
        "training": (
            f"An MLP {'-'.join(map(str, training_parity.SIZES))} on the digits that come with"
            f" xgrad, in batches of {training_parity.BATCH}, from one seed, compared with the same"
            f" training run on cpu. {training_parity.REASON}"
        ),
        "seeds": "Seeded draws must be bit-identical on every device and on cpu.",
        "timing": (
            "The median of a few calls with the backward pass, on this machine as it was; not"
            " judged."
        ),
    }


def as_json(report: Report) -> str:
    """Return a report as JSON; numbers that JSON does not have are the strings "inf" and "nan"."""
    content: dict[str, Any] = {"schema": SCHEMA, "verdict": report.verdict, **asdict(report)}
    content["reference"] = {"description": reference().description, "eps": reference().eps}
    content["notes"] = notes()
    content["tolerances"] = [asdict(tolerance) for tolerance in CLASSES]
    content["limits"] = {
        "differences": differences_limit(),
        "pytorch": PYTORCH_LIMIT,
        "training": training_parity.LIMITS,
    }
    return json.dumps(_plain(content), indent=1, allow_nan=False) + "\n"


def _plain(content: Any) -> Any:
    values = [value for _, value in trees.leaves(content)]
    plain = (
        str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for value in values
    )
    return trees.rebuild(content, plain)
