"""The number of BLAS threads: set, read, and refused with a reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

import xgrad


@pytest.fixture
def threadpoolctl():
    """The package, and the number of threads as it was after the test."""
    package = pytest.importorskip("threadpoolctl", reason="needs threadpoolctl: pip install 'xgrad[threads]'")
    before = xgrad.get_num_threads()
    yield package
    xgrad.set_num_threads(before)


def test_the_number_that_is_set_is_that_of_the_library(threadpoolctl):
    for n in (1, 2):
        xgrad.set_num_threads(n)
        assert xgrad.get_num_threads() == n
        numbers = [x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
        assert numbers and set(numbers) == {n}


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_a_number_of_threads_is_a_positive_int(n, error):
    with pytest.raises(error, match=f"set_num_threads: expected .* got {n}"):
        xgrad.set_num_threads(n)


def test_without_threadpoolctl_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(
        ImportError, match=r"set_num_threads: threadpoolctl is missing .*: pip install 'xgrad\[threads\]'"
    ):
        xgrad.set_num_threads(1)
    with pytest.raises(ImportError, match="get_num_threads: threadpoolctl is missing"):
        xgrad.get_num_threads()


def test_a_library_that_is_not_known_is_an_error(threadpoolctl, monkeypatch):
    known = threadpoolctl.ThreadpoolController.select
    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "select", lambda self, **_: known(self, prefix="none"))
    with pytest.raises(RuntimeError, match="set_num_threads: expected OpenBLAS, MKL, BLIS or FlexiBLAS, found no"):
        xgrad.set_num_threads(1)
    monkeypatch.undo()


def test_threadpoolctl_is_loaded_at_its_first_use():
    code = (
        "import sys, xgrad; xgrad.ones(3) @ xgrad.ones(3); print({'threadpoolctl', 'xgrad.threads'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
