"""Output of the command line: to devices and pipes, to files that cannot be written, of names without an encoding."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import xgrad.cli.parity
from xgrad.cli.arguments import UsageError
from xgrad.cli.parity import check_writable

PARITY = ("parity", "--devices", "cpu", "--parts", "ops", "--ops", "add", "--dtypes", "float32")
FAST = ("train", "digits", "--hidden", "4", "--batch-size", "500", "--epochs", "1", "--device", "cpu")


def run_apart(*argv, **options):
    """Run a command in a process of its own, whose standard output is a file or a pipe."""
    command = [sys.executable, "-m", "xgrad", *argv]
    return subprocess.run(command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/stdout")
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_a_report_goes_to_standard_output_after_the_text(to, tmp_path):
    with (tmp_path / "out").open("wb") as out:
        done = run_apart(*PARITY, "--json", "/dev/stdout", stdout=subprocess.PIPE if to == "pipe" else out)
    text, _, report = (done.stdout or (tmp_path / "out").read_bytes()).decode().partition("\n{")
    assert done.returncode == 0 and not done.stderr
    assert "PASSED: 1 op case on cpu" in text and json.loads("{" + report)["verdict"] == "pass"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFOs")
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_report_goes_through_a_fifo(run, option, tmp_path):
    os.mkfifo("fifo")
    with subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE) as reader:
        assert run(*PARITY, option, "fifo").status == 0
        assert reader.communicate(timeout=60)[0][:1] in b"{<"
    assert stat.S_ISFIFO(os.stat("fifo").st_mode)


def test_a_report_keeps_the_mode_of_its_file(run, tmp_path):
    (tmp_path / "report").touch(0o600)
    assert run(*PARITY, "--json", "report").status == 0
    assert json.loads((tmp_path / "report").read_bytes())["verdict"] == "pass"
    assert os.name == "nt" or stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o600


def refuse(*arguments, **options):
    raise AssertionError("devices were compared")


def test_what_cannot_be_written_is_refused_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr(xgrad.cli.parity, "compare", refuse)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "file").touch()
    for name in ("absent/report", "file/report", "circle", "x" * 300, "."):
        result = run(*PARITY, "--json", name)
        assert result.status == 2 and not result.out and result.err.count("\n") == 1
        assert result.err.startswith("xgrad parity: expected a file ")
    real = os.access  # root may write everything
    monkeypatch.setattr(os, "access", lambda name, mode: not str(name).endswith("file") and real(name, mode))
    result = run(*PARITY, "--html", "file")
    assert result.status == 2 and "is write-protected" in result.err and result.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"circle", "file"}


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root makes device nodes")
def test_a_report_to_a_full_device_says_so(run):
    try:
        os.mknod("full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        check_writable(Path("full"))
    except (OSError, UsageError):
        pytest.skip("no device nodes here")
    result = run(*PARITY, "--json", "full")
    assert result.status == 2 and result.err.count("\n") == 1 and "disk full: " in result.err
    assert stat.S_ISCHR(os.stat("full").st_mode)


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
def test_a_folder_that_the_encoding_lacks_is_named_escaped(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = run_apart(*FAST, "--quiet", "--out", b"\xff", env=environment)
    assert done.returncode == 0 and not done.stderr and done.stdout.endswith(b"; see \\udcff/\n")


@pytest.mark.parametrize("name", ["cpu:" + "9" * 5000, "cuda:" + "9" * 5000, "cpu:" + "9" * 10], ids=len)
def test_a_device_of_a_long_number_is_refused_in_one_line(run, name):
    for argv in ((*FAST[:-1], name), ("predict", ".", "--device", name), ("parity", "--devices", name)):
        result = run(*argv)
        assert result.status == 2 and result.err.count("\n") == 1 and "unknown device" in result.err
    with pytest.raises(xgrad.DeviceError, match="unknown device"):
        xgrad.Device(name)


@pytest.mark.parametrize(
    "options",
    [
        ("mnist", "--data", "~nosuchuser/data"),
        ("digits", "--threads", "1" + "0" * 400),
        ("digits", "--threads", str(2**31)),
        ("digits", "--hidden", "1" + "0" * 400),
        ("digits", "--hidden", str(2**62)),
        ("digits", "--hidden", str(2**63)),
        ("digits", "--hidden", "9" * 5000),
        ("digits", "--seed", "9" * 5000),
        ("digits", "--out", "x" * 300),
    ],
    ids=lambda options: " ".join(options)[:40],
)
def test_odd_paths_and_numbers_are_refused_in_one_line(run, options, tmp_path):
    result = run("train", *options)
    assert result.status == 2 and not result.out and result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
