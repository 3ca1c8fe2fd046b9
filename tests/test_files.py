"""Files are written completely or not at all.

Errors, special files, modes, temporary files and several files are tested, with planted failures
and killed processes.
"""

from __future__ import annotations

import ast
import errno
import os
import stat
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest

from xgrad.support import files
from xgrad.support.files import check_writable, make_folder, read, write, write_together

if sys.platform != "win32":
    import fcntl

POSIX = pytest.mark.skipif(
    os.name == "nt", reason="Windows has neither modes, FIFOs nor, for everybody, links"
)
ROOT = pytest.mark.skipif(
    os.name == "nt" or os.getuid() != 0, reason="only root makes device nodes and changes owners"
)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(folder, files):
    write_together({str(folder / name): content for name, content in files.items()})


@pytest.fixture(
    params=[write, lambda path, content: write_together({str(path): content})],
    ids=["alone", "together"],
)
def write_one(request):
    """A function that writes one file."""
    return request.param


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(
    "error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
@pytest.mark.parametrize("earlier", [{}, {"file": b"old"}], ids=["new", "replaced"])
def test_failed_write_changes_nothing(write_one, earlier, call, error, tmp_path, monkeypatch):
    def fail(*args):
        assert len(list(tmp_path.iterdir())) == 1 + len(earlier)
        raise error

    put(tmp_path, earlier)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)) as caught:
            write_one(tmp_path / "file", b"new")
    assert caught.value is error and contents(tmp_path) == earlier
    write_one(tmp_path / "file", b"new")
    assert contents(tmp_path) == {"file": b"new"}


def test_without_locks_a_temporary_file_is_closed_before_it_is_renamed(
    write_one, tmp_path, monkeypatch
):
    opened, create = [], files._create
    monkeypatch.setattr(files, "_create", lambda name: opened.append(create(name)) or opened[-1])
    monkeypatch.setattr(files, "sys", SimpleNamespace(platform="win32"))
    replace = os.replace
    monkeypatch.setattr(
        os, "replace", lambda *names: replace(*names) if opened[-1].closed else pytest.fail("open")
    )
    for content in (b"old", b"new"):
        write_one(tmp_path / "file", content)
        assert contents(tmp_path) == {"file": content}


def test_missing_folder_folder_and_circle_of_links_are_refused(write_one, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("missing/file", "folder", "circle"):
        for call in (lambda path: write_one(path, b"x"), check_writable):
            if (name, call) != ("folder", check_writable):
                with pytest.raises(OSError, match=name):
                    call(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "circle"}


@pytest.mark.parametrize("protected", ["file", "."])
def test_write_protected_file_or_folder_is_refused(write_one, protected, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    real = os.access  # root may write everything
    monkeypatch.setattr(
        os, "access", lambda name, mode: name != str(tmp_path / protected) and real(name, mode)
    )
    for call in (lambda: write_one(path, b"new"), lambda: check_writable(path)):
        with pytest.raises(PermissionError, match=r"is write-protected: '.*file'") as caught:
            call()
        assert caught.value.filename == str(path)
    assert contents(tmp_path) == {"file": b"old"}


# Special files


@POSIX
def test_fifo_is_written_to_in_place(write_one, tmp_path):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    for path in (fifo, link):
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            check_writable(path)
            write_one(path, b"content")
            assert os.read(reader, 100) == b"content"
        finally:
            os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [fifo, link]


@ROOT
def test_device_is_written_to_in_place(write_one, tmp_path):
    null, full = tmp_path / "null", tmp_path / "full"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        full.open("wb").close()
    except OSError:
        pytest.skip("no device nodes here")
    write_one(null, b"content")
    with pytest.raises(OSError, match=r"disk full: 7 bytes were not written, .*full'"):
        write_one(full, b"content")
    assert stat.S_ISCHR(null.stat().st_mode) and stat.S_ISCHR(full.stat().st_mode)
    assert sorted(tmp_path.iterdir()) == [full, null]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/stdout")
@pytest.mark.parametrize("kind", ["pipe", "file", "appended"])
def test_standard_output_is_written_to_in_order(kind, tmp_path):
    program = (
        "from xgrad.support.files import write; print('a', flush=True); write('/dev/stdout',"
        " b'b\\n'); print('c')"
    )
    path = tmp_path / "out"
    path.write_text("before\n" if kind == "appended" else "")
    with path.open("ab" if kind == "appended" else "wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE if kind == "pipe" else out
        )
    assert done.returncode == 0
    assert (done.stdout or path.read_bytes()) == b"before\n" * (kind == "appended") + b"a\nb\nc\n"
    assert list(tmp_path.iterdir()) == [path]


# Modes, owners and links


@POSIX
def test_new_file_has_ordinary_mode_and_a_link_is_kept(write_one, tmp_path):
    ordinary, link, target = tmp_path / "ordinary", tmp_path / "link", tmp_path / "file"
    ordinary.write_bytes(b"")
    link.symlink_to(target)
    write_one(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_mode_of_a_replaced_file_is_kept_and_other_links_keep_its_content(
    write_one, mode, tmp_path
):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"old")
    path.chmod(mode)
    os.link(path, other)
    write_one(path, b"new")
    assert (
        contents(tmp_path) == {"file": b"new", "other": b"old"}
        and stat.S_IMODE(path.stat().st_mode) == mode
    )


def test_name_of_maximal_length_is_written(tmp_path):
    write(tmp_path / ("x" * 255), b"new")
    assert contents(tmp_path) == {"x" * 255: b"new"}


@ROOT
def test_owner_of_a_replaced_file_is_kept(write_one, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write_one(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


# Temporary files of other processes


def paused_write(folder):
    """Start a process that stops in the middle of a write, and continues after a line of input."""
    program = (
        "import os, sys; from xgrad.support.files import write\n"
        "def wait(*arguments): print('writing', flush=True); sys.stdin.readline()\n"
        "os.fsync = wait; write(sys.argv[1], b'content')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, folder / "slow"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"writing\n"
    return process


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps temporary files")
def test_temporary_files_of_dead_processes_only_are_removed(tmp_path):
    with paused_write(tmp_path) as killed:
        killed.kill()
    (stale,) = tmp_path.iterdir()
    with paused_write(tmp_path) as living:
        assert not stale.exists()
        (held,) = tmp_path.iterdir()
        for name in (".xgrad-user", "other.tmp"):
            (tmp_path / name).touch()
        write(tmp_path / "file", b"content")
        assert {path.name for path in tmp_path.iterdir()} == {
            held.name,
            "file",
            ".xgrad-user",
            "other.tmp",
        }
        living.communicate(b"\n")
    assert (
        living.returncode == 0
        and (tmp_path / "slow").read_bytes() == b"content"
        and not held.exists()
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps temporary files")
def test_temporary_file_removed_before_its_lock_is_made_again(tmp_path, monkeypatch):
    real, stolen = fcntl.flock, []

    def flock(file, operation):
        if not stolen and operation == fcntl.LOCK_EX:
            stolen.append(file.name)
            os.unlink(file.name)
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    write(tmp_path / "file", b"content")
    assert (
        stolen
        and (tmp_path / "file").read_bytes() == b"content"
        and len(list(tmp_path.iterdir())) == 1
    )


# Several files

OLD = {"first": b"old 1", "second": b"old 2", "third": b"old 3"}
NEW = {"first": b"new 1", "second": b"new 2", "third": None, "fourth": b"new 4"}


def test_files_are_replaced_together(tmp_path):
    put(tmp_path, OLD)
    put(tmp_path, NEW)
    assert contents(tmp_path) == {name: content for name, content in NEW.items() if content}


@pytest.mark.parametrize("earlier", [{}, OLD, {"second": b"old 2"}], ids=["none", "all", "second"])
@pytest.mark.parametrize("call", ["rename", "replace", "fsync"])
def test_error_among_several_files_changes_none(earlier, call, tmp_path, monkeypatch):
    real = getattr(os, call)
    for fails in range(10):
        put(tmp_path, earlier | dict.fromkeys({*OLD, *NEW} - {*earlier}))
        calls = []

        def failing(*arguments, fails=fails, calls=calls):
            calls.append(arguments)
            if len(calls) == fails + 1:
                raise OSError(errno.EIO, "broken")
            return real(*arguments)

        with monkeypatch.context() as patch, suppress(OSError):
            patch.setattr(os, call, failing)
            put(tmp_path, NEW)
            break
        assert contents(tmp_path) == earlier
    assert fails >= len(earlier if call == "rename" else OLD)
    assert contents(tmp_path) == {name: content for name, content in NEW.items() if content}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("earlier", [{}, OLD, {"second": b"old 2"}], ids=["none", "all", "second"])
def test_kill_among_several_files_mixes_none_with_the_first(earlier, tmp_path):
    program = f"""
import os, sys
from pathlib import Path
from xgrad.support.files import write_together
folder, old, new = Path(sys.argv[1]), {earlier!r}, {NEW!r}
def put(files):
    write_together({{str(folder / name): content for name, content in files.items()}})
every, states = dict.fromkeys({{*old, *new}}), []
for last in range(1000):
    put(every | old)
    child = os.fork()
    if not child:
        events = []
        def note(event, arguments):
            events.append(event)
            if len(events) > last:
                os._exit(9)
        sys.addaudithook(note)
        put(new)
        os._exit(0)
    if not os.waitpid(child, 0)[1]:
        break
    states.append({{path.name: path.read_bytes() for path in folder.iterdir()}})
print(states)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    states = ast.literal_eval(done.stdout)
    new = {name: content for name, content in NEW.items() if content}
    assert len(states) > 10
    for state in states:
        named = {name: content for name, content in state.items() if "xgrad" not in name}
        if "first" in named:
            assert named in (earlier, new)
        aside = {
            name.removesuffix(".xgrad-old"): content
            for name, content in state.items()
            if ".xgrad-old" in name
        }
        assert named in (earlier, new) or (named | aside).items() >= earlier.items() or named == {}
    assert any("first" not in state for state in states)


def test_error_among_several_files_names_the_file(tmp_path, monkeypatch):
    def failing(*arguments):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="broken") as caught:
        put(tmp_path, OLD)
    assert caught.value.filename == str(tmp_path / "third") and not list(tmp_path.iterdir())


# Folders


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fsync of folders")
def test_names_of_new_folders_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    for _ in range(2):  # the second time there is nothing to do
        make_folder(tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").is_dir() and set(synced) == {
            tmp_path.stat().st_ino,
            (tmp_path / "a").stat().st_ino,
        }
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "a")


# Reading


def test_read_is_bounded_and_refuses_special_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    assert read(path, 7) == b"content"
    with pytest.raises(ValueError, match=r"expected at most 6 bytes, got 7: .*file"):
        read(path, 6)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent", 7)
    if os.name != "nt":
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ValueError, match="expected a regular file, got a device or a pipe"):
            read(tmp_path / "fifo", 7)
