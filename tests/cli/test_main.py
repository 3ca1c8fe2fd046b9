"""The command line as a whole: commands, help, special files for reports, odd names and numbers.

Errors are one line, which is compared with the expected one.
"""

from __future__ import annotations

import errno
import io
import json
import os
import runpy
import stat
import subprocess
import sys

import pytest

import xgrad.cli.parity
from xgrad.cli.arguments import Parser, UsageError
from xgrad.distributed import launch

PARITY = ("parity", "--devices", "cpu", "--parts", "ops", "--ops", "add", "--dtypes", "float32")
COMMANDS = "train, predict, summary, report, info, parity"
FAST = (
    "train",
    "digits",
    "--hidden",
    "4",
    "--batch-size",
    "500",
    "--epochs",
    "1",
    "--device",
    "cpu",
)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], f"xgrad: expected a command ({COMMANDS}), got none: see xgrad --help"),
        (["x"], f"xgrad: expected a command ({COMMANDS}), got 'x': see xgrad --help"),
        (["info", "--zzz=1"], "xgrad info: unknown option --zzz: see xgrad info --help"),
        (["parity", "--html=--"], "xgrad parity: --html: expected one argument"),
        (["info", "x"], "xgrad info: unexpected argument x: see xgrad info --help"),
    ],
)
def test_unknown_commands_and_options_are_refused_in_one_line(run, argv, message):
    assert run(*argv) == (2, "", f"{message}\n")


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        ("trian", "train"),
        ("Train", "train"),
        ("train minst", "mnist"),
        ("train MNIST", "mnist"),
        ("train fashion", "fashion-mnist"),
        ("train digits --optimiser adam", "--optimizer"),
        ("train digits --epoch=3", "--epochs"),
        ("train digits --optimizer adm", "adam"),
        ("train digits --model le-net", "lenet"),
        ("train digits --schedule cosin", "cosine"),
        ("train digits --activation rleu", "relu"),
        ("train digits --device gpu", "cuda"),
        ("train digits --device cpuu:1", "cpu"),
        ("summary emnist-leters", "emnist-letters"),
        ("summary --hiden 4", "--hidden"),
        ("predict runs --indx=3", "--index"),
        ("report runs --output x", "--out"),
        ("info --jsn", "--json"),
        ("parity --devices cpu,gpu", "cuda"),
        ("parity --ops add,mutliply", "multiply"),
        ("parity --dtypes float3", "float32"),
        ("parity --parts ops,sedes", "seeds"),
    ],
)
def test_misspelled_name_is_refused_with_the_name_that_was_meant(run, argv, meant):
    status, out, err = run(*argv.split())
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert err.endswith(f": did you mean {meant}?\n")


@pytest.mark.parametrize("command", xgrad.cli.COMMANDS)
def test_option_given_twice_is_refused(run, command, monkeypatch):
    parsers = []

    def noted(parser, args):
        parsers.append(parser)
        raise UsageError("")

    with monkeypatch.context() as patch:
        patch.setattr(Parser, "parse_args", noted)
        run(command)
    (parser,) = parsers
    options = [x for x in parser._actions if x.option_strings and "--help" not in x.option_strings]
    assert options or command == "report"
    for option in options:
        value = [] if option.nargs == 0 else ["1"]
        for name in option.option_strings:
            # the last may be --no-option, which contradicts --option
            again = [f"{option.option_strings[-1]}", *value]
            for first in [[name, *value], *[[f"{name}=1"] for _ in value if name[1] == "-"]]:
                status, out, err = run(command, *first, *again)
                assert (status, out) == (2, "")
                names = " and ".join(option.option_strings)
                assert err.startswith(f"xgrad {command}: {names}: expected once at most, got twice")
                assert ("separate its values by commas" in err) == (",..." in str(option.metavar))


def test_help_and_version_are_printed(run):
    assert run("--version") == (0, f"xgrad {xgrad.__version__}\n", "")
    status, out, err = run("--help")
    assert status == 0 and not err and all(f"  xgrad {name} " in out for name in xgrad.cli.COMMANDS)
    for command in xgrad.cli.COMMANDS:
        with pytest.raises(SystemExit) as caught:
            run(command, "--help")
        assert caught.value.code == 0


@pytest.mark.parametrize("module", ["xgrad", "xgrad.cli"])
def test_package_runs_as_a_module(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["xgrad", "train", "x"])
    monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)  # runpy warns of it
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    err = capsys.readouterr().err
    assert caught.value.code == 2 and err.startswith(
        "xgrad train: dataset: expected digits, mnist, "
    )
    assert err.count("\n") == 1


# Reports


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/stdout")
def test_report_to_standard_output_follows_the_text(tmp_path, capfd):
    assert xgrad.cli.main([*PARITY, "--json", "/dev/stdout"]) == 0
    out, err = capfd.readouterr()
    text, _, report = out.partition("\n{")
    assert not err and "PASSED: 1 " in text and json.loads("{" + report)["verdict"] == "pass"
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("argv", [["info"], FAST], ids=["info", "train"])
def test_full_disk_under_standard_output_is_reported_in_one_line(argv, monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert xgrad.cli.main(argv) == 2
    expected = f"xgrad {argv[0]}: standard output: {os.strerror(errno.ENOSPC)}\n"
    assert capsys.readouterr().err.endswith(expected)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFOs")
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_report_to_a_fifo_is_read_at_its_other_end(run, option):
    os.mkfifo("fifo")
    with subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE) as reader:
        assert run(*PARITY, option, "fifo").status == 0
        assert reader.communicate(timeout=60)[0][:1] in b"{<"
    assert stat.S_ISFIFO(os.stat("fifo").st_mode)


def test_report_that_cannot_be_written_is_refused_before_the_comparison(run, tmp_path, monkeypatch):
    monkeypatch.delattr(xgrad.cli.parity, "compare")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "file").touch()
    for name in ("absent/report", "file/report", "circle", "x" * 300, "."):
        result = run(*PARITY, "--json", name)
        assert result.status == 2 and not result.out and result.err.count("\n") == 1
        assert result.err.startswith("xgrad parity: expected a file ")
    real = os.access  # root may write everything
    monkeypatch.setattr(
        os, "access", lambda name, mode: not str(name).endswith("file") and real(name, mode)
    )
    result = run(*PARITY, "--html", "file")
    assert result.status == 2 and "is write-protected" in result.err and result.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"circle", "file"}


# Odd names and numbers


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
def test_folder_that_cannot_be_encoded_is_printed_escaped(monkeypatch):
    monkeypatch.setattr(sys, "stdout", out := io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"))
    assert xgrad.cli.main([*FAST, "--quiet", "--out", os.fsdecode(b"\xff")]) == 0
    assert out.buffer.getvalue().endswith(b"; see \\udcff/\n")


@pytest.mark.parametrize(
    "name", ["cpu:" + "9" * 5000, "cuda:" + "9" * 5000, "cpu:" + "9" * 10], ids=len
)
def test_device_with_a_long_number_is_refused_in_one_line(run, name):
    for argv in (
        (*FAST[:-1], name),
        ("predict", ".", "--device", name),
        ("parity", "--devices", name),
    ):
        result = run(*argv)
        assert result.status == 2 and result.err.count("\n") == 1 and "unknown device" in result.err
    with pytest.raises(xgrad.DeviceError, match="unknown device"):
        xgrad.Device(name)


@pytest.mark.skipif(os.name == "nt", reason="Windows asks for a right to make links")
@pytest.mark.parametrize(
    "argv", ["report circle", "train digits --out circle/..", "train --resume circle"]
)
def test_link_to_itself_is_refused_in_one_line(run, tmp_path, argv):
    if argv.startswith("report"):
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
    (tmp_path / "circle").symlink_to("circle")
    result = run(*argv.split())
    assert (result.status, result.out) == (2, "") and result.err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
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


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["-n", "2", "-n", "4", "script.py"], "-n"),
        (["-n2", "-n4", "script.py"], "-n"),
        (["--print", "--print", "script.py"], "--print"),
    ],
)
def test_option_of_the_launcher_given_twice_is_refused(argv, name, capsys):
    with pytest.raises(SystemExit):
        launch.main(argv)
    assert f"{name}: expected once at most, got twice" in capsys.readouterr().err


def test_options_of_a_launched_script_may_be_repeated(capsys):
    options = ["--slurm", "--print", "--option=-a", "--option=-b"]
    assert launch.main([*options, "script.py", "-n", "1", "-n", "2", "--print"]) == 0
    assert capsys.readouterr().out.strip().endswith("script.py -n 1 -n 2 --print")
