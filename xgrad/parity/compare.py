"""Comparison of an op on several devices with a high-precision reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend.device import Device
from xgrad.parity import pytorch
from xgrad.parity.comparison import DIFFERENCES, PYTORCH, REFERENCE, Comparison, WorstError
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.reference import FLOAT64, Differences, differences, reference
from xgrad.parity.reproducer import describe_inputs, reproducer
from xgrad.parity.run_op import Mismatch, Run, floating, like, quiet, run_op, run_op_pytorch
from xgrad.parity.timing import timed
from xgrad.parity.ulp import distance

PYTORCH_LIMIT = 1e-13


def differences_limit() -> float:
    """Return the tolerated relative error of a derivative compared with finite differences."""
    return float(1e4 * reference().eps ** 0.8)


class _Finding(NamedTuple):
    """An error in one result or gradient of a sample.

    `number` is the index of the result or gradient; `unit` is the size of the unit in which the
    error is counted.
    """

    error: WorstError
    sample: Sample
    number: int = 0
    unit: float = 1.0


def compare(
    op: OpCase, devices: Sequence[Device], dtypes: Sequence[str], time: bool = True
) -> Comparison:
    """Compare an op on devices with the reference, and check the reference itself.

    Every sample is compared. The reference is also compared with finite differences and with
    PyTorch.
    """
    samples = [sample for sample in (*op.samples, op.range_sample(), op.special_sample()) if sample]
    result = Comparison(op.name, op.tolerance.name, len(samples))
    result.skipped = {str(d): op.unsupported[d.type] for d in devices if d.type in op.unsupported}
    if missing := op.missing():
        result.skipped = {str(d): f"needs {missing}" for d in devices}
        return result
    usable = [device for device in devices if device.type not in op.unsupported]
    worst: dict[tuple[str, str, str, str], _Finding] = {}
    with quiet():
        for sample in samples:
            for finding in _compare_sample(op, sample, usable, dtypes):
                key = _key(finding.error)
                if key not in worst or _rank(finding.error) > _rank(worst[key].error):
                    worst[key] = finding
        result.cells = [_with_reproducer(op, finding) for finding in worst.values()]
        if time:
            result.timing = [timed(op, device, dtype) for device in usable for dtype in dtypes]
    return result


def _key(error: WorstError) -> tuple[str, str, str, str]:
    return error.device, error.dtype, error.quantity, error.kind


def _rank(error: WorstError) -> tuple[float, float]:
    return error.share, error.relative


def _compare_sample(
    op: OpCase, sample: Sample, devices: Sequence[Device], dtypes: Sequence[str]
) -> Iterator[_Finding]:
    """Yield the worst error of each quantity, dtype and device, and of the reference itself."""
    exact = reference().device
    try:
        run = run_op(op, sample, exact, FLOAT64)
        used = (op.differentiable and not op.no_derivative) or op.tolerance.conditioned
        slopes = differences(op, sample, run) if used and not sample.special else None
        references = {dtype: run_op(op, sample, exact, FLOAT64, dtype) for dtype in dtypes}
    except Exception as error:
        yield _raised(op, sample, REFERENCE, "float64", error)
        return
    yield from _compare_differences(op, sample, run, slopes)
    yield from _compare_pytorch(op, sample, run, slopes)
    for dtype, expected in references.items():
        for device in devices:
            try:
                got = run_op(op, sample, device, dtype)
                _check_kinds(op, got, expected, dtype)
            except Exception as error:
                yield _raised(op, sample, str(device), dtype, error)
            else:
                yield from _compare_device(op, sample, str(device), dtype, got, expected, slopes)


def _check_kinds(op: OpCase, got: Run, expected: Run, dtype: str) -> None:
    """Raise `Mismatch` if shapes or kinds of the results differ from the reference."""
    kinds = [(x.shape, x.dtype) for x in got.values]
    floats = np.dtype("float64" if op.function_name == "astype" else dtype)
    wanted = [
        (x.shape, like(x.dtype, floats) if x.dtype.kind in "fc" else x.dtype)
        for x in expected.values
    ]
    if kinds != wanted:
        texts = [
            ", ".join(f"{kind} of shape {shape}" for shape, kind in each)
            for each in (wanted, kinds)
        ]
        raise Mismatch("expected {}, got {}".format(*texts))


def _compare_device(
    op: OpCase,
    sample: Sample,
    device: str,
    dtype: str,
    got: Run,
    expected: Run,
    slopes: Differences | None,
) -> Iterator[_Finding]:
    elements = max([x.size for x in sample.inputs if isinstance(x, np.ndarray)], default=1)
    for quantity, results, references, extra in _quantities(op, sample, got, expected, slopes):
        if quantity == "value" and not op.tolerance.conditioned:
            extra = [0.0] * len(results)
        limit = op.tolerance.limit(quantity, 1 if sample.elementwise else elements)
        errors = [
            distance(a, b, a.dtype, c) for a, b, c in zip(results, references, extra, strict=True)
        ]
        key, wrong = (device, dtype, quantity), [np.isinf(units) for units, _ in errors]
        finite = [
            (np.where(w, 0, a), np.where(w, 0, b)) for w, (a, b) in zip(wrong, errors, strict=True)
        ]
        yield _worst(op, sample, key, "ULP", limit, results, references, finite)
        if any(map(np.any, wrong)):
            yield _worst(op, sample, key, "ULP", limit, results, references, errors)


def _compare_pytorch(
    op: OpCase, sample: Sample, run: Run, slopes: Differences | None
) -> Iterator[_Finding]:
    """Yield the errors of the reference compared with PyTorch's functions and derivatives."""
    if op.torch is None or not pytorch.installed():
        return
    try:
        expected = run_op_pytorch(op, sample, "float64")
        kinds, wanted = (
            [(x.shape, x.dtype.kind) for part in each for x in part] for each in (run, expected)
        )
        if kinds != wanted:
            raise Mismatch(f"expected shapes and kinds {wanted}, got {kinds}")
    except Exception as error:
        yield _raised(op, sample, PYTORCH, "float64", error)
        return
    limit = max(PYTORCH_LIMIT, op.torch_rtol[0] if op.torch_rtol else 0.0)
    for quantity, results, torch_results, extra in _quantities(op, sample, run, expected, slopes):
        errors = [
            distance(a.astype(b.dtype), b, b.dtype, c)[::-1]
            for a, b, c in zip(results, torch_results, extra, strict=True)
        ]
        yield _worst(
            op,
            sample,
            (PYTORCH, "float64", quantity),
            "relative",
            limit,
            results,
            torch_results,
            errors,
        )


def _compare_differences(
    op: OpCase, sample: Sample, run: Run, slopes: Differences | None
) -> Iterator[_Finding]:
    """Yield the errors of the derivative rules compared with finite differences."""
    if slopes is None or op.no_derivative or not run.gradients:
        return
    errors = []
    for g, slope, noise, changes in zip(
        run.gradients, slopes.gradients, slopes.noise, slopes.gradient_changes, strict=True
    ):
        off = np.maximum(np.abs(g - slope) - noise, 0)
        off = np.where(np.isposinf(noise), 0, off)
        magnitude = np.maximum(np.abs(slope) + changes, np.finfo(np.float64).tiny)
        relative = np.where(
            np.isnan(g) & np.isnan(slope), 0, np.where(np.isnan(off), np.inf, off / magnitude)
        )
        errors.append((relative, relative))
    key = (DIFFERENCES, "float64", "gradient")
    yield _worst(
        op, sample, key, "relative", differences_limit(), run.gradients, slopes.gradients, errors
    )


def _quantities(
    op: OpCase, sample: Sample, got: Run, expected: Run, slopes: Differences | None
) -> Iterator[tuple[Any, ...]]:
    """Yield values and gradients, each with an addition to its magnitude."""
    yield (
        "value",
        got.values,
        expected.values,
        slopes.value_changes if slopes else [0.0] * len(got.values),
    )
    if got.gradients and not (sample.special and not op.special_gradient):
        extra = slopes.gradient_changes if slopes else [0.0] * len(got.gradients)
        yield "gradient", got.gradients, expected.gradients, extra


def _worst(
    op: OpCase,
    sample: Sample,
    key: tuple[str, str, str],
    unit: str,
    limit: float,
    got: list[np.ndarray],
    expected: list[np.ndarray],
    errors: list[tuple[Any, Any]],
) -> _Finding:
    """Return the element with the largest error in several arrays.

    Without elements, the error is 0.
    """
    sizes = [float(np.max(error)) if error.size else -1.0 for error, _ in errors]
    k = int(np.argmax(sizes)) if sizes else 0
    what = "the result" if len(got) == 1 else f"result {k}"
    if key[2] == "gradient":
        what = f"the gradient of {floating(op, sample)[k]}"
    if not sizes or sizes[k] < 0:
        return _Finding(WorstError(*key, 0.0, unit, 0.0, limit, what, sample=str(sample)), sample)
    size, (each, others) = sizes[k], errors[k]
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(each)), each.shape))
    x, y = got[k][place], expected[k][place]
    relative = size if unit == "relative" else float(others[place])
    error = WorstError(
        *key, size, unit, relative, limit, what, place, str(sample),
        describe_inputs(op, sample, key[1]), str(x), str(y),
    )  # fmt: skip
    off = np.longdouble(abs(np.clongdouble(x) - np.clongdouble(y)))
    return _Finding(
        error, sample, k, float(off / size) if 0 < size < math.inf and 0 < off < math.inf else 1.0
    )


def _raised(op: OpCase, sample: Sample, device: str, dtype: str, exception: Exception) -> _Finding:
    note, expected, got = f"{type(exception).__name__}: {exception}", "", ""
    if isinstance(exception, Mismatch):
        expected, _, got = str(exception).removeprefix("expected ").partition(", got ")
    error = WorstError(
        device, dtype, "value", math.inf, "ULP", math.inf, 0.0, "the call", sample=str(sample),
        inputs=describe_inputs(op, sample, dtype), got=got, expected=expected, note=note,
    )  # fmt: skip
    return _Finding(error, sample)


def _with_reproducer(op: OpCase, finding: _Finding) -> WorstError:
    """Return an error with a program that reproduces it.

    The program uses one element of each input if these suffice.
    """
    error = finding.error
    # Passing errors of the reference itself show only in its precision, which no device has.
    if not error.error or (error.passed and error.unit == "relative"):
        return error
    if finding.sample.elementwise and error.place:
        finding = _shrunk(op, finding)
        error = finding.error
    compared = {DIFFERENCES: "central differences", PYTORCH: "PyTorch"}.get(
        error.device, "the reference"
    )
    device = "cpu" if error.device in (DIFFERENCES, PYTORCH, REFERENCE) else error.device
    title = f"{op} on {device}, {error.dtype}: {error.what}, compared with {compared}"
    return replace(
        error, reproducer=reproducer(op, finding.sample, error, *finding[2:], device, title)
    )


def _shrunk(op: OpCase, finding: _Finding) -> _Finding:
    """Return the same error for one element of each input, if it occurs there as well."""
    error, sample = finding.error, finding.sample
    element = slice(error.place[0], error.place[0] + 1)
    small = replace(sample, inputs=tuple([x[element] for x in sample.inputs]), start=error.place[0])
    devices = [] if error.device in (DIFFERENCES, PYTORCH) else [Device(error.device)]
    for again in _compare_sample(op, small, devices, [error.dtype]):
        passed, large = again.error.passed, again.error.error >= 0.8 * error.error
        if _key(again.error) == _key(error) and (passed, large) == (error.passed, True):
            return again
    return finding
