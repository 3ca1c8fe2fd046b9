"""The table is part of the package, and says of every row how far devices may be apart, and why."""

import subprocess
import sys

import pytest

import xgrad
from xgrad.parity.evaluate import evaluate, quiet
from xgrad.parity.reference import reference
from xgrad.parity.row import Op
from xgrad.parity.table import OPS, find
from xgrad.parity.tolerance import CLASSES, DISTRIBUTIONS, EXACT


def test_names_are_unique_and_found():
    assert len({op.name.replace(" ", "-") for op in OPS}) == len(OPS), "the page makes ids of them"
    assert find("add").name == "add"
    with pytest.raises(KeyError):
        find("addd")


@pytest.mark.parametrize("tolerance", CLASSES, ids=lambda t: t.name)
def test_tolerances_have_reasons_and_are_used(tolerance):
    assert tolerance.reason.endswith(".") and len(tolerance.reason) > 40
    assert any(op.tolerance is tolerance for op in OPS)
    if tolerance is not DISTRIBUTIONS:  # the others' kernels are better than SciPy's of these
        assert tolerance.limit("value", 0) <= 12 and tolerance.limit("gradient", 0) <= 24
    assert tolerance.limit("value", 16) - tolerance.limit("value", 0) == 16 * tolerance.per_element


def test_what_is_exact_is_given_nothing():
    assert EXACT.limit("value", 100) == EXACT.limit("gradient", 100) == 0


@pytest.mark.parametrize("op", [op for op in OPS if op.wide], ids=str)
def test_wide_samples_are_within_the_range(op: Op):
    sample = op.wide_sample()
    assert sample.columns
    for x, (low, high) in zip(sample.inputs, op.wide, strict=True):
        assert x.shape == (15 if op.kernel else 257,) and low <= x.min() and x.max() <= high


@pytest.mark.parametrize("op", [op for op in OPS if not op.kernel], ids=str)
def test_rows_without_a_kernel_of_scipy_need_neither_scipy_nor_mpmath(op: Op, monkeypatch):
    """Others are skipped where one of them is missing."""

    class Missing:
        def __getattr__(self, name):
            raise ModuleNotFoundError(name)

    for device in (xgrad.Device("cpu"), reference().device):
        monkeypatch.setattr(device.xp, "special", Missing())
    with quiet():
        evaluate(op, op.samples[0], reference().device, "float64")
        evaluate(op, op.samples[0], xgrad.Device("cpu"), "float64")


def test_an_installed_package_has_the_table_without_tests_or_pytorch():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from xgrad.parity import table\n"
        "import xgrad.cli.parity\n"
        "assert table.__name__ == 'xgrad.parity.table'\n"
        "print(sorted(n for n in sys.modules if n.partition('.')[0] in ('tests', 'matplotlib', 'pytest')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
