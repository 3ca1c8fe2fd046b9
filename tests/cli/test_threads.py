"""The number of BLAS threads of ``xgrad train``: by the size of the network, or as requested."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import xgrad
from helpers import override
from xgrad import Device
from xgrad.backend.threads import blas_libraries
from xgrad.cli.models import make_model
from xgrad.cli.settings import settings
from xgrad.cli.threads import WORTH_THREADS, largest_product, threads_for, variable
from xgrad.cli.train import parser
from xgrad.cli.training_run import TrainingRun
from xgrad.data import digits

FAST = ("train digits --hidden 16 --batch-size 64 --epochs 1 --device cpu").split()


def test_number_of_threads_follows_the_largest_product():
    assert threads_for(WORTH_THREADS - 1, 8) == 1
    assert threads_for(WORTH_THREADS, 8) == 8


@pytest.mark.parametrize(
    ("model", "side", "hidden", "product"),
    [
        ("mlp", 8, (16,), 64 * 16),
        ("mlp", 28, (256, 128), 784 * 256),
        ("mlp", 28, (8, 900), 900 * 10),
        ("lenet", 28, (), 16 * (6 * 5 * 5) * 10 * 10),
        ("cnn", 28, (), 64 * (64 * 3 * 3) * 7 * 7),
    ],
)
def test_largest_product_is_that_of_a_layer(model, side, hidden, product):
    network = make_model(model, (side, side), 10, hidden, "relu", 0.5)
    assert largest_product(network, xgrad.zeros((1, side * side)), 1) == product
    assert largest_product(network, xgrad.zeros((1, side * side)), 128) == 128 * product
    assert network.training


def test_process_of_several_has_its_part_of_a_batch():
    data, device = digits(), Device("cpu")
    options = settings(parser().parse_args(FAST[1:]), data, device)
    trainer = SimpleNamespace(model=make_model("mlp", (8, 8), 10, (16,), "relu", 0.0))
    for size, batch in ((1, 64), (3, 22)):
        ranks = SimpleNamespace(rank=0, size=size)
        training = TrainingRun(options, data, device, Path("out"), True, ranks)
        assert training.largest_product(trainer) == batch * 64 * 16


@pytest.fixture
def library(monkeypatch):
    """The name of a BLAS library that is loaded, whose environment variables are not set."""
    pytest.importorskip("threadpoolctl", reason="needs threadpoolctl: pip install 'xgrad[threads]'")
    names = [library["internal_api"].upper() for library in blas_libraries()]
    for name in [*names, "OMP"]:
        monkeypatch.delenv(f"{name}_NUM_THREADS", raising=False)
    return names[0]


@pytest.mark.parametrize(
    ("value", "counts"),
    [("3", True), (" 3 ", True), ("4,2", True), ("", False), ("0", False), ("all", False)],
)
def test_variables_count_that_a_library_reads(library, monkeypatch, value, counts):
    monkeypatch.setenv("BLIS_NUM_THREADS" if library != "BLIS" else "MKL_NUM_THREADS", value)
    assert variable() == ""
    for name in ("OMP_NUM_THREADS", f"{library}_NUM_THREADS"):
        monkeypatch.setenv(name, value)
        assert variable() == (name if counts else "")


@pytest.fixture
def threads(library):
    """A function that runs a training, and returns its line on threads and the number it used."""
    before = xgrad.get_num_threads()
    xgrad.set_num_threads(2)  # as BLAS chooses on two cores; more than one core is not needed
    folder = iter(range(9))

    def trained(run, *options):
        out = Path(f"threads{next(folder)}")
        result = run(*FAST, *options, "--out", out)
        assert result.status == 0 and xgrad.get_num_threads() == 2, "the number is set back"
        (line,) = [line for line in result.out.splitlines() if line.startswith("threads: ")]
        (used,) = {x["threads"] for x in json.loads((out / "config.json").read_text())["blas"]}
        assert line.startswith(f"threads: {used} of {os.cpu_count()}, ")
        return line.partition(", ")[2], used

    yield trained
    xgrad.set_num_threads(before)


def test_small_network_trains_on_one_thread_and_a_large_one_on_all(run, threads, monkeypatch):
    line = "for products of 65,536 multiply-adds; --threads overrides"
    assert threads(run) == (line, 1)
    monkeypatch.setattr("xgrad.cli.threads.WORTH_THREADS", 65536)
    assert threads(run) == (line, 2)


def test_option_and_variable_override_the_number_of_threads(run, threads, monkeypatch):
    most = min(2, os.cpu_count() or 1)
    assert threads(run, "--threads", most) == ("by --threads", most)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads(run) == ("by OMP_NUM_THREADS", 2)
    assert threads(run, "--threads", 1) == ("by --threads", 1)


def test_threads_of_another_device_are_left_alone(run):
    assert "threads: " not in run(*override(FAST, "--device", "strict")).out


def test_without_threadpoolctl_the_number_of_threads_is_left_alone(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    result = run(*FAST, "--threads", "1")
    assert (
        result.status == 2
        and result.err.count("\n") == 1
        and result.err.endswith("pip install 'xgrad[threads]'\n")
    )
    result = run(*FAST, "--out", "out")
    assert result.status == 0 and "\nthreads: as BLAS chooses, since threadpoolctl is" in result.out
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["blas"].startswith("not known: threadpoolctl is")
