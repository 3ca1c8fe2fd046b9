"""``xgrad parity``: reports, devices, missing packages, errors.

Devices that agree pass; a broken derivative rule, planted by a test, fails and is named.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

import xgrad
import xgrad.cli.parity
from xgrad.backend import DeviceError
from xgrad.ops.declare import elementwise
from xgrad.parity.cases import find
from xgrad.parity.library_table import as_markdown

QUICK = ("--parts", "ops", "--ops", "add,multiply,exp")


def test_devices_that_agree_pass_in_text_json_and_html(run, tmp_path):
    status, out, err = run(
        "parity", "--devices", "cpu,strict", *QUICK, "--json", "p.json", "--html", "p.html"
    )
    assert status == 0 and not err
    assert "PASSED: 3 op cases on cpu, strict in float32, float64" in out
    report = json.loads((tmp_path / "p.json").read_text("utf-8"))
    assert report["verdict"] == "pass" and report["command"].startswith(
        "xgrad parity --devices cpu,strict"
    )
    assert "multiply" in (tmp_path / "p.html").read_text("utf-8")


def test_table_is_written_as_markdown_and_json(run, tmp_path):
    assert run("parity", "--devices", "cpu,strict", *QUICK, "--table", "t.md").status == 0
    table = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert (tmp_path / "t.md").read_text("utf-8") == as_markdown(table, "t")
    assert set(table["errors"]) == {"add", "multiply", "exp"} and not table["findings"]
    assert (
        run("parity", *QUICK, "--table", "t").err
        == "xgrad parity: --table: expected a file named *.md, got t\n"
    )


@pytest.fixture
def _no_gpu(monkeypatch):
    real = xgrad.cli.parity.Device

    def device(name):
        if name == "cuda":
            raise DeviceError("cuda: no GPU: see nvidia-smi")
        return real(name)

    monkeypatch.setattr(xgrad.cli.parity, "Device", device)


@pytest.mark.usefixtures("_no_gpu")
def test_all_usable_devices_are_compared_by_default(run, monkeypatch):
    usable, absent = xgrad.cli.parity.find_devices(xgrad.cli.parity.device_types())
    names = [str(device) for device in usable]
    assert (
        names[0] == "cpu"
        and "strict" in names
        and {*names, *absent} == {*xgrad.cli.parity.device_types()}
    )
    assert absent["cuda"] == "no GPU: see nvidia-smi" and not set(absent) & {str(d) for d in usable}
    monkeypatch.setattr(xgrad.cli.parity, "device_types", lambda: ["cpu", "cuda"])
    status, out, _ = run("parity", *QUICK)
    assert status == 0 and "not compared, because not usable here: cuda (see xgrad info)" in out


@pytest.mark.usefixtures("_no_gpu")
def test_requested_device_that_is_not_usable_makes_the_report_incomplete(run):
    status, out, _ = run("parity", "--devices", "cpu,cuda", *QUICK)
    assert status == 2
    assert (
        "cuda: not usable: no GPU: see nvidia-smi" in out and "INCOMPLETE: cuda not usable" in out
    )
    status, out, err = run("parity", "--devices", "cuda", *QUICK)
    assert (status, out) == (2, "") and err == "xgrad parity: cuda: no GPU: see nvidia-smi\n"


@pytest.fixture
def _no_mpmath(monkeypatch):
    monkeypatch.setattr(
        "xgrad.parity.op_case.find_spec", lambda name: None if name == "mpmath" else object()
    )


@pytest.mark.usefixtures("_no_mpmath")
def test_case_that_needs_a_missing_package_is_skipped_and_counted(run):
    status, out, _ = run(
        "parity", "--devices", "cpu", "--parts", "ops", "--ops", "add,special.gammaln"
    )
    assert status == 0 and "\nspecial.gammaln    skipped: needs mpmath\n" in out
    assert (
        "\nskipped: 1 op case: needs mpmath\n" in out
        and "\nPASSED: 1 of 2 op cases on cpu in " in out
    )


@pytest.mark.usefixtures("_no_mpmath")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--parts", "ops", "--ops", "special.gammaln"),
            "NOTHING COMPARED: 0 of 1 op case on cpu in ",
        ),
        (("--parts", "fused", "--devices", "strict"), "NOTHING COMPARED: fused on strict in "),
    ],
)
def test_report_without_comparisons_fails(run, tmp_path, options, message):
    devices = () if "--devices" in options else ("--devices", "cpu")
    status, out, _ = run("parity", *devices, *options, "--json", "p.json", "--html", "p.html")
    assert status == 1 and out.splitlines()[-1].startswith(message)
    assert json.loads((tmp_path / "p.json").read_text("utf-8"))["verdict"] == "empty"
    assert message in (tmp_path / "p.html").read_text("utf-8")


def test_case_that_a_device_does_not_support_is_not_compared_there(run):
    options = "--parts", "ops", "--ops", "unique_values"
    assert run("parity", "--devices", "strict", *options).status == 1
    assert run("parity", "--devices", "cpu,strict", *options).status == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--devices", "cpu,foo"),
            "--devices: unknown device 'foo': the installed backends are cpu, ",
        ),
        (("--devices", ","), "--devices: expected names of devices, got none"),
        (("--ops", "add,ad"), "--ops: unknown op ad: expected names such as add"),
        (("--ops", ""), "--ops: expected names of ops, got none"),
        (("--dtypes", "float16"), "--dtypes: expected some of float32,float64, got 'float16'"),
        (
            ("--parts", "ops,all"),
            "--parts: expected some of ops,fused,training,seeds,timing, got 'ops,all'",
        ),
        (("--json", "no/such/file"), "expected a file in a folder that exists, got no"),
        (("--html", "."), "expected a file in a folder that exists, got ."),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_invalid_arguments_are_refused_before_the_comparison(run, monkeypatch, options, message):
    monkeypatch.setattr(xgrad.cli.parity, "compare", lambda *a, **k: pytest.fail("it began"))
    status, out, err = run("parity", *options)
    assert (status, out) == (2, "") and err.startswith(f"xgrad parity: {message}")


def test_op_name_selects_all_its_cases():
    assert [op.name for op in xgrad.cli.parity.select(["prod"])] == ["prod", "prod through zeros"]
    assert [op.name for op in xgrad.cli.parity.select(["prod through zeros"])] == [
        "prod through zeros"
    ]


def multiply(xp, x1, x2, /):
    return xp.multiply(x1, x2)


def test_broken_derivative_rule_fails_with_the_op_and_the_input(run, monkeypatch):
    rules = lambda g, x2: g * x2, lambda g, x1: -g * x1
    fn = elementwise(*rules)(multiply)
    monkeypatch.setattr(
        xgrad.cli.parity, "OP_CASES", [find("add"), replace(find("multiply"), fn=fn)]
    )
    status, out, _ = run("parity", "--devices", "cpu,strict", "--parts", "ops")
    assert (
        status == 1 and "FAILED: multiply, by its rule on every device: the gradient of x2" in out
    )
    assert "the input is x" in out and "FAILED: 1 op out of tolerance" in out


def test_command_works_without_pytorch():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from xgrad.cli import main\n"
        "sys.exit(main(['parity', '--devices', 'cpu,torch', '--ops', 'tanh', '--parts', 'ops']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2 and not done.stderr
    assert "torch: not usable: the package PyTorch is missing" in done.stdout
    assert "INCOMPLETE: torch not usable; the others agree" in done.stdout


def test_progress_is_shown_only_on_a_terminal(monkeypatch, capsys):
    xgrad.cli.parity.progress(False)("something")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    xgrad.cli.parity.progress(True)("something")
    assert capsys.readouterr().err == ""
    xgrad.cli.parity.progress(False)("something")
    assert capsys.readouterr().err == "\r\x1b[Ksomething"


def test_report_that_cannot_be_written_is_an_error(run, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    options = ("--devices", "cpu", "--parts", "seeds", "--quiet")
    status, _, err = run("parity", *options, "--json", "report.json")
    assert status == 2 and err.startswith("xgrad parity: the report could not be written: [Errno ")
    assert (
        "disk full: " in err
        and err.endswith(": 'report.json'\n")
        and not (tmp_path / "report.json").exists()
    )
