"""The number of BLAS threads, compared with threadpoolctl's, and refusals with a reason."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

import xgrad
from helpers import check_error, skip_without_compiler
from xgrad_numpy.native import compiler


@pytest.fixture
def threadpoolctl():
    """The package, and the number of threads as it was after the test."""
    package = pytest.importorskip(
        "threadpoolctl", reason="needs threadpoolctl: pip install 'xgrad[threads]'"
    )
    before = xgrad.get_num_threads()
    yield package
    xgrad.set_num_threads(before)


def test_set_number_is_that_of_the_library(threadpoolctl):
    for n in (1, 2):
        xgrad.set_num_threads(n)
        assert xgrad.get_num_threads() == n
        numbers = [
            x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"
        ]
        assert numbers and set(numbers) == {n}


@pytest.mark.parametrize(
    ("n", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_number_that_is_no_positive_int_is_refused(n, error):
    with pytest.raises(error, match=f"set_num_threads: expected .* got {n}"):
        xgrad.set_num_threads(n)


def test_missing_threadpoolctl_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    extra = "threadpoolctl is missing … : pip install 'xgrad[threads]'"
    check_error("xp.set_num_threads(1)", f"ImportError: set_num_threads: {extra}")
    check_error("xp.get_num_threads()", f"ImportError: get_num_threads: {extra}")


def test_unknown_library_is_an_error(threadpoolctl, monkeypatch):
    known = threadpoolctl.ThreadpoolController.select
    monkeypatch.setattr(
        threadpoolctl.ThreadpoolController, "select", lambda self, **_: known(self, prefix="none")
    )
    check_error(
        "xp.set_num_threads(1)", "RuntimeError: set_num_threads: expected OpenBLAS, … found no"
    )
    monkeypatch.undo()


def test_libraries_are_loaded_while_others_are_counted(threadpoolctl, tmp_path):
    """threadpoolctl runs Python for each library while the loader of the system is locked.

    Its version 3.5 hangs in this script if the thread calls `ctypes.CDLL` itself.
    """
    skip_without_compiler()
    built = compiler.build(
        compiler.find(), "int answer(void) { return 42; }", str(tmp_path), timeout=60
    )
    for i in range(200):
        shutil.copy(built, tmp_path / f"{i}.copy")
    script = """if True:
        import sys, threading
        from pathlib import Path
        import xgrad
        from xgrad_numpy.native import library
        sys.setswitchinterval(1e-6)
        copies = Path(sys.argv[1]).glob("*.copy")
        thread = threading.Thread(target=lambda: [library.opened(path) for path in copies])
        thread.start()
        while thread.is_alive():
            assert xgrad.get_num_threads() >= 1
    """
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=60)
