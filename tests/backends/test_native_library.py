"""Libraries of native kernels: the compiler, the cache, and their faults.

Fake compilers, damaged files and killed processes stand for the faults; small C functions with
known results are the reference.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import run_threads
from xgrad.support import files
from xgrad_numpy.native import cache, compiler, library
from xgrad_numpy.native.library import Unavailable, describe, enabled, load

try:
    COMPILER = shlex.join(compiler.find())
except Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

SOURCE = "int answer(int x) { return x + 42; }\n"
#: A program that loads the source, and prints 42.
PROGRAM = (
    f"from xgrad_numpy.native.library import load\nprint(load({SOURCE!r}).answer(0), flush=True)\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The path of a cache folder, which does not exist yet. Private folders are in `private`."""
    monkeypatch.setenv("XGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("XGRAD_NATIVE", raising=False)
    library._warn.cache_clear()
    return tmp_path / "cache" / "native"


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """The folder in which private folders are made."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A function that makes a shell script the compiler."""

    def write(script):
        path = tmp_path / "fake"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        monkeypatch.setenv("CC", str(path))
        return path

    return write


@pytest.fixture
def no_process(monkeypatch):
    """A function after which the start of a process fails the test."""

    def refused(*args, **options):
        raise AssertionError("a process was started")

    return lambda: monkeypatch.setattr(subprocess, "Popen", refused)


def answer(source=SOURCE):
    return load(source).answer(0)


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def number_in(path):
    """Return the number that a script writes to a file, once it is there."""
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, f"{path} was not written"
        time.sleep(0.01)
    return int(path.read_text())


def has_ended(pid):
    """Return whether a process ends within seconds.

    An ended process that nobody waits for remains as a zombie, and counts as ended.
    """
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


# The compiler


def test_source_is_compiled_once_and_then_loaded_from_the_cache(folder, private, no_process):
    assert answer() == 42
    assert only_file(folder).suffix == ".so" and not list(private.iterdir())
    no_process()
    assert answer() == 42
    with pytest.raises(AssertionError, match="a process was started"):
        answer("int answer(int x) { return x + 43; }\n")


def test_flags_keep_the_bits_of_numpy():
    """Products and sums stay separate, casts keep signs of zeros, NaN and infinity compare."""
    loop = "void {}(const float *x, float *out) {{ for (int i = 0; i < 64; i++) out[i] = {}; }}\n"
    expressions = {
        "fused": "x[i] * x[i] - x[i + 1]",
        "cast": "x[i] - x[i] == 0 ? (float)(int)x[i] : 0",
        "where": "x[i] == x[i] ? x[i] : 7",
    }
    x = np.random.default_rng(0).uniform(-2, 2, 65).astype(np.float32)
    x[:6] = [-0.0, 0.0, -0.5, np.nan, np.inf, -np.inf]
    finite = np.isfinite(x)
    with np.errstate(invalid="ignore"):
        expected = {
            "fused": x[:-1] * x[:-1] - x[1:],
            "cast": np.where(finite, np.where(finite, x, 0).astype(np.int32).astype(np.float32), 0)[
                :-1
            ],
            "where": np.where(np.isnan(x), np.float32(7), x)[:-1],
        }
    kernels = load("".join(loop.format(*each) for each in expressions.items()))
    for name, values in expected.items():
        out = np.empty(64, np.float32)
        kernels[name](*(ctypes.c_void_p(array.ctypes.data) for array in (x, out)))
        np.testing.assert_array_equal(out, values, name)
        numbers = ~np.isnan(values)
        np.testing.assert_array_equal(np.signbit(out)[numbers], np.signbit(values)[numbers], name)


def test_memory_may_hold_values_of_several_dtypes():
    bits = ctypes.c_int32()
    kernels = load("int both(int *i, float *x) { *i = 1; *x = 2; return *i; }\n")
    assert kernels.both(ctypes.byref(bits), ctypes.byref(bits)) == int(np.float32(2).view(np.int32))


def test_functions_of_the_math_library_are_found():
    kernels = load("#include <math.h>\ndouble value(double x) { return erf(x); }\n")
    kernels.value.restype, kernels.value.argtypes = ctypes.c_double, [ctypes.c_double]
    assert kernels.value(0.5) == pytest.approx(0.5204998778130465)


def test_cc_may_have_arguments(monkeypatch):
    for value in (7, 8):
        monkeypatch.setenv("CC", f"{COMPILER} '-DVALUE={value}'")
        assert answer("int answer(int x) { return x + VALUE; }\n") == value


def test_first_compiler_on_the_path_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    package = SimpleNamespace(origin=str(tmp_path / "ziglang" / "__init__.py"))
    monkeypatch.setattr(compiler, "find_spec", lambda name: package)
    assert compiler.find() == [str(tmp_path / "ziglang" / "zig"), "cc"]
    for name in ("clang", "gcc", "cc"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o700)
        assert compiler.find() == [str(tmp_path / name)]


@pytest.mark.skipif(
    find_spec("ziglang") is None, reason="needs ziglang: pip install 'xgrad[native]'"
)
def test_package_ziglang_is_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert answer() == 42
    assert "ziglang" in describe()


def test_missing_compiler_is_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"no C compiler found: .*'xgrad\[native\]'") as caught:
        load(SOURCE)
    assert describe() == f"not available: {caught.value}"
    monkeypatch.setenv("CC", "missing-compiler -O")
    with pytest.raises(
        Unavailable, match="no program 'missing-compiler': set CC to another one, or unset it"
    ):
        load(SOURCE)
    monkeypatch.setenv("CC", "cc '-O")
    with pytest.raises(Unavailable, match="expected a command in CC"):
        load(SOURCE)


def test_system_without_support_is_unavailable(monkeypatch):
    monkeypatch.setattr(compiler, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(Unavailable, match="need Linux or macOS, got win32"):
        load(SOURCE)
    assert describe() == "not available: native kernels need Linux or macOS, got win32"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'In function f:'; echo 'k.c:3:5: error: first'; echo 'k.c:4:1: error: 2'; exit 1",
            "k.c:3:5: .*first",
        ),
        (
            "echo '/usr/bin/ld: cannot find crti.o' >&2; echo 'error: ld failed' >&2; exit 1",
            "ld: cannot find crti.o",
        ),
        ("echo error: messages in $LC_ALL; exit 1", "messages in C"),
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "ended by signal 9"),
    ],
)
def test_failed_compiler_is_reported_by_its_first_error(fake, folder, private, script, reason):
    fake(script)
    with pytest.raises(
        Unavailable, match=f"fake failed: .*{reason}: set CC to another C compiler$"
    ) as caught:
        load(SOURCE)
    assert "\n" not in str(caught.value)
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_error_in_the_source_is_reported():
    with pytest.raises(Unavailable, match=r"failed: kernels\.c:1:.*error: .*missing"):
        load("int answer(int x) { return x + missing; }\n")


@pytest.mark.parametrize("script", ["exit 0", "echo garbage > kernels.so", ": > kernels.so"])
def test_compiler_without_a_library_leaves_nothing_in_the_cache(fake, folder, private, script):
    fake(script)
    with pytest.raises(Unavailable, match="no library of native kernels: "):
        load(SOURCE)
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_program_that_cannot_be_executed_is_unavailable(tmp_path, monkeypatch):
    (tmp_path / "text").write_bytes(b"\0 no program")
    (tmp_path / "text").chmod(0o700)
    monkeypatch.setenv("CC", str(tmp_path / "text"))
    with pytest.raises(Unavailable, match="Exec format error"):
        load(SOURCE)


#: A compiler that starts a process, writes the ids of both to files, and hangs.
HANGS = (
    'sleep 60 & echo $! > "{0}/second"; echo $$ > "{0}/first"; touch leftover "$TMPDIR/other"; wait'
)


def test_hanging_compiler_is_ended_with_the_processes_that_it_started(
    fake, folder, private, tmp_path
):
    fake(HANGS.format(tmp_path))
    start = time.monotonic()
    with pytest.raises(Unavailable, match=r"ended after 0\.5 s: set CC to another C compiler"):
        load(SOURCE, timeout=0.5)
    assert time.monotonic() - start < 20
    assert has_ended(number_in(tmp_path / "first")) and has_ended(number_in(tmp_path / "second"))
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_interrupted_compilation_leaves_nothing(fake, folder, private, tmp_path, monkeypatch):
    fake(HANGS.format(tmp_path))

    def interrupt():
        number_in(tmp_path / "first")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        load(SOURCE)
    thread.join()
    assert has_ended(number_in(tmp_path / "first")) and has_ended(number_in(tmp_path / "second"))
    assert not list(folder.iterdir()) and not list(private.iterdir())
    monkeypatch.delenv("CC")
    assert answer() == 42


def test_interrupt_during_the_start_of_the_compiler_ends_it(fake, private, tmp_path, monkeypatch):
    fake(HANGS.format(tmp_path))

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            number_in(tmp_path / "first")
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(SOURCE)
    assert has_ended(number_in(tmp_path / "first")) and has_ended(number_in(tmp_path / "second"))
    assert not list(private.iterdir())


# The cache


def test_cache_hit_takes_less_than_20_ms(no_process):
    answer()
    no_process()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        load(SOURCE)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.02


def test_change_of_compiler_cpu_flags_or_numpy_compiles_again(fake, folder, monkeypatch):
    path = fake(f'exec {COMPILER} "$@"')

    def keys():
        answer()
        return {file.name.partition("-")[0] for file in folder.iterdir()}

    assert len(keys()) == 1
    os.utime(path, (1, 1))
    assert len(keys()) == 2
    with path.open("a") as file:
        file.write("# another size\n")
    os.utime(path, (1, 1))
    assert len(keys()) == 3
    monkeypatch.setattr(compiler, "cpu", lambda: "another")
    assert len(keys()) == 4
    monkeypatch.setattr(np, "__version__", "another")
    assert len(keys()) == 5
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-g"))
    assert len(keys()) == 6
    assert len(keys()) == 6


def test_description_of_the_cpu_is_constant_and_has_its_features():
    assert compiler.cpu() == compiler.cpu()
    if sys.platform == "linux":
        assert "mhz" not in compiler.cpu().lower()
        assert re.search(r"(?im)^(flags|features)\s*:", compiler.cpu())


def truncated(path):
    path.write_bytes(path.read_bytes()[:1000])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def foreign(path):
    """Put the library of another source in place of the file."""
    answer("int answer(int x) { return x + 1; }\n")
    (other,) = set(path.parent.iterdir()) - {path}
    other.replace(path)


@pytest.mark.parametrize(
    "damage", [truncated, flipped, foreign, lambda path: path.write_bytes(b"")]
)
def test_damaged_or_foreign_file_is_compiled_again_and_replaced(folder, damage):
    # a new library, since loaded ones stay loaded
    source = SOURCE.replace("42", f"{100 + len(damage.__name__)}")
    # Another process: truncating a file that is loaded here would end this one.
    program = PROGRAM.replace(repr(SOURCE), repr(source))
    expected = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    path = only_file(folder)
    content = path.read_bytes()
    damage(path)
    assert path.read_bytes() != content
    assert answer(source) == int(expected)
    assert only_file(folder).read_bytes() == content


def test_anything_but_a_file_in_the_cache_is_no_library(folder, tmp_path):
    answer()
    path = only_file(folder)
    path.unlink()
    os.mkfifo(path)
    assert answer() == 42 and path.is_file()
    path.unlink()
    path.mkdir()
    assert answer() == 42 and path.is_dir()


def test_folder_is_made_for_the_user_alone(folder):
    answer()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o707])
def test_folder_that_others_can_write_to_is_not_used_and_said_once(folder, private, mode):
    answer()
    before = only_file(folder).stat()
    folder.chmod(mode)
    with pytest.warns(
        RuntimeWarning, match=f"cannot be used: other users can write to .*chmod 700 {folder}"
    ):
        assert answer() == 42
    # without a warning, which would be an error
    assert answer("int answer(int x) { return x + 44; }\n") == 44
    assert only_file(folder).stat().st_mtime_ns == before.st_mtime_ns and not list(
        private.iterdir()
    )
    assert "no cache: other users can write to" in describe()


def test_folder_of_another_user_is_not_used(folder, monkeypatch):
    answer()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user: set XGRAD_CACHE_DIR"):
        assert answer("int answer(int x) { return x + 44; }\n") == 44
    assert only_file(folder)


def test_folder_that_cannot_be_made_is_not_used(tmp_path, private, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XGRAD_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="compiled anew in each process, .*Not a directory"):
        assert answer() == 42
    assert not list(private.iterdir())


@pytest.fixture
def read_only(monkeypatch):
    """A function that makes all changes of files in the cache fail.

    This is what happens in a read-only folder, here also for root.
    """

    def fail(*args, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def call():
        monkeypatch.setattr(files, "_create", fail)
        monkeypatch.setattr(cache.Path, "unlink", fail)
        monkeypatch.setattr(os, "utime", fail)

    return call


def test_read_only_cache_is_read(folder, read_only, no_process):
    answer()
    read_only()
    no_process()
    assert answer() == 42


def test_read_only_cache_without_the_file_compiles_in_a_private_folder(folder, private, read_only):
    folder.mkdir(0o700, parents=True)
    read_only()
    assert answer() == 42
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_damaged_file_in_a_read_only_cache_is_not_loaded(folder, read_only):
    program = PROGRAM.replace("42", "45")
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    truncated(only_file(folder))
    read_only()
    assert answer(SOURCE.replace("42", "45")) == 45


def test_full_disk_leaves_no_file(folder, private, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert answer() == 42
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_kill_before_the_file_is_in_place_leaves_no_library(folder):
    program = (
        "import os, signal\nos.replace = lambda *paths: os.kill(os.getpid(),"
        f" signal.SIGKILL)\n{PROGRAM}"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert only_file(folder).suffix == ".tmp"
    assert answer() == 42
    assert only_file(folder).suffix == ".so", "the temporary file is removed"


def test_kill_during_the_compilation_leaves_no_library(fake, folder, tmp_path, monkeypatch):
    fake(HANGS.format(tmp_path))
    with subprocess.Popen([sys.executable, "-c", PROGRAM]) as process:
        group = number_in(tmp_path / "first")
        process.kill()
    os.killpg(group, signal.SIGKILL)
    assert not list(folder.iterdir())
    monkeypatch.delenv("CC")
    assert answer() == 42


def test_file_that_cannot_be_loaded_from_the_cache_is_loaded_from_a_private_folder(
    folder, private, monkeypatch
):
    real = ctypes.CDLL

    def refused(path):
        if Path(path).is_relative_to(folder):
            raise OSError("failed to map segment from shared object")
        return real(path)

    monkeypatch.setattr(ctypes, "CDLL", refused)
    for _ in range(2):
        assert answer() == 42
    assert not list(folder.iterdir()) and not list(private.iterdir())


def test_least_recently_used_files_are_removed(folder, monkeypatch, no_process):
    monkeypatch.setattr(cache, "LIMIT", 3)
    sources = [f"int answer(int x) {{ return x + {k}; }}\n" for k in range(5)]
    for k in (0, 1, 2, 0, 3, 4):  # the second use of 0 makes 1 and 2 the oldest
        assert answer(sources[k]) == k
    assert len(list(folder.iterdir())) == 3
    no_process()
    for k in (0, 3, 4):
        assert answer(sources[k]) == k
    with pytest.raises(AssertionError, match="a process was started"):
        answer(sources[1])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XGRAD_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a/native"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/xgrad/native"),
        ({"HOME": "/c"}, "/c/.cache/xgrad/native"),
        ({"HOME": "/c", "macOS": ""}, "/c/Library/Caches/xgrad/native"),
        ({"XGRAD_CACHE_DIR": "~/d", "HOME": "/c"}, "/c/d/native"),
    ],
)
def test_folder_is_chosen_by_the_environment(variables, expected, monkeypatch):
    for name in ("XGRAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        cache, "sys", SimpleNamespace(platform="darwin" if "macOS" in variables else "linux")
    )
    assert cache.location() == Path(expected)


def test_user_without_a_home_folder_has_no_cache(monkeypatch):
    for name in ("XGRAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert describe().endswith(
        "no cache: the user has no home folder: set XGRAD_CACHE_DIR to a folder"
    )
    with pytest.warns(RuntimeWarning, match="no home folder"):
        assert answer() == 42


# Threads and processes


def test_threads_load_at_once(folder, private):
    sources = [f"int answer(int x) {{ return x + {k}; }}\n" for k in range(4)]
    results = []
    run_threads(lambda k: results.append(answer(sources[k % 4]) == k % 4), range(1, 13))
    assert results == [True] * 12
    assert all(file.suffix == ".so" for file in folder.iterdir()) and not list(private.iterdir())


def test_processes_compile_one_source_at_once(fake, folder, private):
    fake(f'echo >> {private.parent}/compiled; sleep 0.5; exec {COMPILER} "$@"')
    command = [sys.executable, "-c", PROGRAM]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in processes] == ["42\n"] * 2
    assert len((private.parent / "compiled").read_text()) == 2
    assert {file.suffix for file in folder.iterdir()} == {".so"} and not list(private.iterdir())


def test_forked_process_uses_and_loads_libraries():
    program = f"""import os, sys
from xgrad_numpy.native.library import load
loaded = load({SOURCE!r})
if not os.fork():
    os._exit(loaded.answer(0) + load("int more(int x) {{ return x + 50; }}").more(0))
print(os.waitstatus_to_exitcode(os.wait()[1]), loaded.answer(0))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "92 42\n"


# The description


def test_description_names_compiler_version_and_cache(fake, folder):
    path = fake("echo 'fake version 1'; echo 'second line'")
    assert describe() == f"{path} (fake version 1), cache: {folder}"
    assert not folder.exists(), "the description makes no folder"


def test_native_kernels_are_disabled_by_a_variable(monkeypatch):
    assert enabled()
    monkeypatch.setenv("XGRAD_NATIVE", "1")
    assert enabled()
    monkeypatch.setenv("XGRAD_NATIVE", "0")
    assert not enabled() and describe() == "off, by XGRAD_NATIVE=0"


def test_description_of_a_hanging_compiler_ends(fake, tmp_path, monkeypatch):
    fake(HANGS.format(tmp_path))
    run = compiler.run
    monkeypatch.setattr(compiler, "run", lambda command, folder, timeout: run(command, folder, 0.2))
    assert "was ended after 0.2 s" in describe()
