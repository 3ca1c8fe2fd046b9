"""docs/command_line.md and the help texts: commands, their output, and defaults.

Output of the page is compared with what the commands print, in all but decimals, times and paths.
"""

from __future__ import annotations

import re
import shlex
from itertools import chain
from pathlib import Path

import pytest

import xgrad.cli
from xgrad.cli.arguments import Parser
from xgrad.cli.models import MODELS
from xgrad.cli.settings import DEFAULTS, IMAGE_DEFAULTS
from xgrad.cli.threads import WORTH_THREADS
from xgrad.cli.train import parser

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command_line.md").read_text("utf-8")
VARIABLES = re.findall(r"`(\w+_NUM_THREADS)`", PAGE)
SHOWN = re.findall(r"```sh\n(xgrad [^\n]+)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def masked(text: str) -> list[str]:
    """Return the lines without what differs between machines: numbers, the device, folders."""
    text = re.sub(r"(?m)^device: cpu \(.*\)$", "device: cpu", text)
    text = re.sub(r"(?m)^(xgrad train: MNIST was not found in ).*$", r"\1FOLDER", text)
    text = re.sub(r"(?m)^next: .*-m xgrad ", "next: xgrad ", text)
    # columns are as wide as their numbers
    return [" ".join(re.sub(r"[\d.,]+(e-\d+)?", "#", line).split()) for line in text.splitlines()]


@pytest.mark.parametrize(("command", "expected"), SHOWN, ids=[command for command, _ in SHOWN])
def test_command_of_the_page_prints_what_the_page_shows(
    run, monkeypatch, pictures, command, expected
):
    for package in ("threadpoolctl", "mpmath", "scipy", *["torch"] * ("PyTorch" in expected)):
        pytest.importorskip(package)
    for name in VARIABLES:  # by which the user of the tests may have set the number of threads
        monkeypatch.delenv(name, raising=False)
    _, out, err = run(*shlex.split(command)[1:])
    assert masked(out or err) == masked(expected)


def test_page_shows_output_of_a_run_an_error_and_parity():
    assert {command.split()[1] for command, _ in SHOWN} == {"train", "parity"} and len(SHOWN) == 4


def commands() -> list[list[str]]:
    """Return the arguments of the commands on the page, without variables and launchers."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    whole = "".join(blocks).replace("\\\n", "")
    lines = [line for line in whole.splitlines() if line and line[0] != "#"]
    return [shlex.split(line.partition("xgrad ")[2]) for line in lines]


@pytest.mark.parametrize("argv", commands(), ids=" ".join)
def test_options_of_the_page_exist(argv, monkeypatch):
    parsers = []

    def parse(parser, args):
        parsers.append(parser)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Parser, "parse_args", parse)
        xgrad.cli.main(argv[:1])
    given = {text.partition("=")[0] for text in argv if text.startswith("-")}
    assert given - {"--optimiser"} <= set(parsers[0]._option_string_actions)


def test_defaults_of_the_page_are_those_of_the_code():
    columns = [DEFAULTS[data] | more for data in DEFAULTS for more in ({}, IMAGE_DEFAULTS[data])]

    def text(value) -> str:
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        if isinstance(value, dict):
            return ", ".join(f"{name} {number}" for name, number in value.items())
        return str(value)

    rows = dict(re.findall(r"^\| (`--[\w-]+`(?:: [^|]+)?) \| (.*) \|$", PAGE, re.MULTILINE))
    for title, cells in rows.items():
        name = re.match(r"`--([\w-]+)`", title)[1].replace("-", "_")
        if name not in DEFAULTS["mnist"]:
            continue
        values = [column[name] for column in columns]
        if name == "hidden":
            values[1] = values[3] = ""
        elif name in ("lr", "weight_decay"):
            # one value for each group of optimizers, which the first cell names
            groups = [group.split(", ") for group in title.partition(": ")[2].split("; ")]
            assert sorted(chain.from_iterable(groups)) == sorted(values[0])
            values = ["; ".join(f"{x[group[0]]:g}" for group in groups) for x in values]
            assert all(len({x[name][n] for n in group}) == 1 for x in columns for group in groups)
        assert [cell.strip() for cell in cells.split("|")] == [text(x) for x in values], title
    shown = {re.match(r"`--([\w-]+)`", title)[1].replace("-", "_") for title in rows}
    assert DEFAULTS["mnist"].keys() <= shown
    assert set(IMAGE_DEFAULTS["mnist"]["epochs"]) | {"mlp"} == set(MODELS)


def test_page_states_the_rule_of_threads():
    assert WORTH_THREADS == 1e7 and "fewer than 10⁷ multiply-adds" in PAGE
    assert {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} <= set(VARIABLES)


def test_help_has_groups_and_short_defaults(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = parser().format_help()
    for title in ("data:", "network:", "optimization:", "device and speed:"):
        assert f"\n{title}\n" in text
    assert "(default: False)" not in text and text.count("usage:") == 1
    assert "highest learning rate (default: 0.004; digits 0.003)" in text
    defaults = re.findall(r"\((default: [^)]*)\)", " ".join(text.split()))
    assert len(defaults) > 20 and max(map(len, defaults)) < 75
    assert max(map(len, text.splitlines())) <= 80
