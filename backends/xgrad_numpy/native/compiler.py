"""The C compiler: how to find it, the inputs that its output depends on, and how to call it."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

from xgrad.support.signals import SignalDelay

_ARM = platform.machine() in ("aarch64", "arm64")  # old Clang lacks -march=native there
#: Flags of every compilation. Kernels have NumPy's bits: there is no -ffast-math, and products and
#: sums are not contracted. -fno-trapping-math is left out. With it, GCC compiles ``(float)(int)x``
#: to a truncation of `x`, which gives -0.0 for -0.5; and floating-point exceptions, from which
#: NumPy's warnings follow, need not come from the operations. Loops with divisions, comparisons,
#: selections and casts are vectorized without it. -fno-strict-aliasing is needed because a buffer
#: holds values of several dtypes in turn. Warnings, which differ between compilers, are errors only
#: in tests.
FLAGS = (
    "-O2",
    "-ftree-vectorize",
    "-mcpu=native" if _ARM else "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fPIC",
    "-shared",
    "-std=c11",
)


class Unavailable(Exception):
    """The reason why there is no library, in one line: the missing part, and the remedy."""


def find() -> list[str]:
    """Return the compiler's command: ``$CC``, a program on the path, or the package ziglang."""
    if sys.platform not in ("linux", "darwin"):
        raise Unavailable(f"native kernels need Linux or macOS, got {sys.platform}")
    if given := os.environ.get("CC", "").strip():
        try:
            name, *arguments = shlex.split(given)
        except ValueError as error:
            raise Unavailable(
                f"expected a command in CC, got {given!r} ({error}): set CC to a C compiler"
            ) from error
        if program := shutil.which(name):
            return [os.path.abspath(program), *arguments]
        raise Unavailable(
            f"expected a C compiler in CC, found no program {name!r}: set CC to another one, or"
            " unset it"
        )
    for name in ("cc", "gcc", "clang"):
        if program := shutil.which(name):
            return [os.path.abspath(program)]
    package = find_spec("ziglang")
    if package is not None and package.origin:
        return [str(Path(package.origin).with_name("zig")), "cc"]  # as ``python -m ziglang cc``
    raise Unavailable(
        "no C compiler found: install gcc or clang, or the package ziglang: pip install"
        " 'xgrad[native]'"
    )


def fingerprint(command: list[str]) -> list[object]:
    """Return all that a compiler's output depends on, besides the source and the flags.

    Asking the compiler for its version would start a process. Instead, the path, size and
    modification time of each program that the command names are used.
    """
    programs = [os.path.realpath(path) for word in command if (path := shutil.which(word))]
    status = [os.stat(path) for path in programs]
    return [command, programs, [(each.st_size, each.st_mtime_ns) for each in status], cpu()]


def cpu() -> str:
    """Return the model and the features of the CPU, which determine ``-march=native``."""
    if sys.platform == "darwin":
        names = ("machdep.cpu.brand_string", "machdep.cpu.features", "machdep.cpu.leaf7_features")
        return "\n".join(map(_sysctl, names))
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = takewhile(str.strip, file)  # lines of the first processor
        # The clock rate changes, and so does the value measured at each start.
        return "".join(line for line in first if not re.match(r"(?i)cpu MHz|bogomips", line))


def _sysctl(name: str) -> str:
    """Return a property of macOS; "" for one that this machine lacks."""
    buffer, size = ctypes.create_string_buffer(1 << 12), ctypes.c_size_t(1 << 12)
    ctypes.CDLL(None).sysctlbyname(
        name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return buffer.value.decode()


def build(command: list[str], source: str, folder: str, timeout: float) -> str:
    """Compile a C source in a folder that the caller removes; return the path of the library."""
    Path(folder, "kernels.c").write_text(source, encoding="utf-8")
    status, output = run(
        [*command, *FLAGS, "-o", "kernels.so", "kernels.c", "-lm"], folder, timeout
    )
    if status:
        lines = [line.strip() for line in output.splitlines() if line.strip()] or [
            f"exit status {status}"
        ]
        reason = next((line for line in lines if re.search(r"error:|\bld: ", line)), lines[0])
        if status < 0:
            reason = f"ended by signal {-status}"
        raise Unavailable(f"{shlex.join(command)} failed: {reason}: set CC to another C compiler")
    return os.path.join(folder, "kernels.so")


def run(command: list[str], folder: str, timeout: float) -> tuple[int, str]:
    """Run a command in a folder, and return its exit status and its output.

    The command has its own process group. It is killed if it takes longer than `timeout` seconds,
    or if a signal, such as Ctrl-C, interrupts this function. The compiler's temporary files are in
    the folder.
    """
    env = os.environ | {"LC_ALL": "C", "TMPDIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
    process: subprocess.Popen[str] | None = None
    try:
        # Without the delay, a signal during the start would leave a process that is not known here.
        with SignalDelay() as delay, delay.held():
            process = subprocess.Popen(
                command, cwd=folder, env=env, start_new_session=True, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        output, _ = process.communicate(timeout=timeout)
    except BaseException as error:
        if process is not None:
            with process:  # closes the pipe and waits
                if process.returncode is None:  # not waited for, so its id is not reused
                    with suppress(OSError):
                        os.killpg(process.pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):
            reason = (
                f"{shlex.join(command[:2])} ... was ended after {timeout:g} s: set CC to another C"
                " compiler"
            )
            raise Unavailable(reason) from None
        raise
    return process.returncode, output
