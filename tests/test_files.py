import os
import stat

import pytest

from xgrad.files import write


def test_a_write_replaces_whole(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.delattr(os, "replace")
        with pytest.raises(AttributeError):
            write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_write_that_dies_leaves_nothing(call, error, tmp_path, monkeypatch):
    def die(*arguments):
        assert len(list(tmp_path.iterdir())) == 1
        raise error

    monkeypatch.setattr(os, call, die)
    with pytest.raises(type(error)) as caught:
        write(tmp_path / "file", b"new")
    assert caught.value is error
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "folder" / "file", b"new")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither modes nor, for everybody, links")
def test_a_written_file_is_an_ordinary_one(tmp_path):
    ordinary, link = tmp_path / "ordinary", tmp_path / "link"
    ordinary.write_bytes(b"")
    link.symlink_to(tmp_path / "file")
    write(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)
