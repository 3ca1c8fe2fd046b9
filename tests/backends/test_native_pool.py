"""The thread pool of native kernels completes all tasks, also after a fork, in a program of C.

The program is also run under the sanitizers for threads, and for addresses and undefined behavior.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from xgrad_numpy.native import compiler, library
from xgrad_numpy.native.runtime import source_of


@pytest.mark.parametrize("flags", ["", "-fsanitize=thread", "-fsanitize=address,undefined"])
def test_tasks_of_several_threads_and_of_a_fork_are_done(flags: str, tmp_path: Path) -> None:
    try:
        command = compiler.find()
    except library.Unavailable as error:
        pytest.skip(f"needs a compiler of C: {error}")
    source = (
        "".join(map(source_of, ("runtime.h", "pool.c")))
        + Path(__file__).with_name("pool.c").read_text()
    )
    Path(tmp_path, "test.c").write_text(source)
    build = [
        *command,
        *flags.split(),
        "-O2",
        "-g",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "test.c",
        "-lpthread",
    ]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    if flags and built.returncode:
        pytest.skip(f"the compiler has no {flags}: {built.stderr[:80]}")
    assert not built.returncode, built.stderr
    run = ["./a.out", *([] if "thread" in flags else ["fork"])]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not know how this system maps memory")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
