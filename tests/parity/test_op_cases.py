"""The op table of `xgrad.parity`: names, tolerances, samples, and the packages that it needs."""

import subprocess
import sys

import pytest

import xgrad
from xgrad.parity import mpmath_reference
from xgrad.parity.cases import OP_CASES, find
from xgrad.parity.op_case import OpCase
from xgrad.parity.reference import reference
from xgrad.parity.run_op import quiet, run_op
from xgrad.parity.tolerance import CLASSES, DISTRIBUTIONS, EXACT


def test_names_are_unique():
    assert len({op.name.replace(" ", "-") for op in OP_CASES}) == len(OP_CASES), (
        "ids of the HTML report"
    )
    assert find("add").name == "add"
    with pytest.raises(KeyError):
        find("addd")


@pytest.mark.parametrize("tolerance", CLASSES, ids=lambda t: t.name)
def test_tolerances_have_reasons_and_are_used(tolerance):
    assert tolerance.reason.endswith(".") and len(tolerance.reason) > 40
    assert any(op.tolerance is tolerance for op in OP_CASES)
    if tolerance is not DISTRIBUTIONS:  # SciPy's kernels are less accurate there
        assert tolerance.limit("value", 0) <= 12 and tolerance.limit("gradient", 0) <= 24
    assert tolerance.limit("value", 16) - tolerance.limit("value", 0) == 16 * tolerance.per_element


def test_exact_ops_have_no_tolerance():
    assert EXACT.limit("value", 100) == EXACT.limit("gradient", 100) == 0


def test_samples_of_ranges_are_within_them():
    for op in OP_CASES:
        if sample := op.range_sample():
            assert sample.elementwise
            for x, (low, high) in zip(sample.inputs, op.ranges, strict=True):
                assert (
                    x.shape == (15 if "scipy" in op.needs else 257,)
                    and low <= x.min()
                    and x.max() <= high
                )


@pytest.mark.parametrize("op", [op for op in OP_CASES if not op.needs], ids=str)
def test_op_without_needs_runs_without_scipy_and_mpmath(op: OpCase, monkeypatch):
    """Others are skipped where a package is missing."""

    class Missing:
        def __getattr__(self, name):
            raise ModuleNotFoundError(name)

    for device in (xgrad.Device("cpu"), reference().device):
        monkeypatch.setattr(device.xp, "special", Missing())
    monkeypatch.setattr(mpmath_reference, "_mpmath", lambda: Missing().mp)
    with quiet():
        run_op(op, op.samples[0], reference().device, "float64")
        run_op(op, op.samples[0], xgrad.Device("cpu"), "float64")


def test_op_table_loads_without_tests_or_optional_packages():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import xgrad.parity.cases, xgrad.cli.parity\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "print(roots & {'tests', 'matplotlib', 'jinja2', 'mpmath', 'scipy', 'pytest'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"
