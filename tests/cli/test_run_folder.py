"""The folder of a training run, killed at every step of its replacement."""

import ast
import json
import os
import stat
import subprocess
import sys

import pytest

import xgrad
from xgrad.cli.training import CONFIG, METRICS, PICTURES, TIMING, WEIGHTS

FAST = ("train", "digits", "--hidden", "4", "--batch-size", "500", "--epochs", "1", "--device", "cpu", "--quiet")
PROGRAM = """
import os, sys
from pathlib import Path
from xgrad.cli.training import PICTURES, TrainingRun
from xgrad.cli import main

write, folder, states = TrainingRun.write, Path("out"), []

def contents():
    return {path.name: path.read_bytes() for path in folder.iterdir()}

def restore(files):
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)

def killed_at_every_step(self):
    before, config = contents(), self.config()
    self.config = lambda: config  # versions and threads, slow to find, at every step
    for last in range(1000):
        restore(before)
        child = os.fork()
        if not child:
            events = []
            def count(event, args):
                if event in ("open", "os.rename", "os.remove", "os.chmod", "os.chown", "os.scandir", "fcntl.flock"):
                    events.append(event)
                    if len(events) > last:
                        os._exit(9)
            sys.addaudithook(count)
            write(self)
            os._exit(0)
        if not os.waitpid(child, 0)[1]:
            break
        states.append((before, contents()))
    restore(before)
    write(self)
    final.append(contents())

TrainingRun.draw = lambda self: [(self.out / name).touch() for name in PICTURES]
final = []
options = sys.argv[1:]
main([*options, "--out", "out", "--seed", "1", "--epochs", "1"])
TrainingRun.write = killed_at_every_step
main([*options, "--out", "out", "--seed", "2", "--epochs", "2"])
print(repr((states, final)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_any_step_leaves_weights_with_their_own_files_or_none():
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *FAST]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    states, final = ast.literal_eval(done.stdout.splitlines()[-1])
    described = {WEIGHTS, CONFIG, METRICS, TIMING}
    assert len(final) == 2 and len(states) > 30
    missing = 0
    for before, state in states:
        after = final[0] if before[CONFIG] != final[0][CONFIG] else final[1]
        if WEIGHTS in state:
            run = before if state[WEIGHTS] == before[WEIGHTS] else after
            assert {name: state[name] for name in described} == {name: run[name] for name in described}
            assert state.keys() & set(PICTURES) <= (set(PICTURES) if run is before else set())
        else:
            missing += 1
            assert state[f"{WEIGHTS}.xgrad-old"] == before[WEIGHTS]
    assert 0 < missing < len(states) / 2


def test_training_run_removes_the_files_of_a_killed_one(run, tmp_path):
    assert run(*FAST, "--out", "out").status == 0
    out = tmp_path / "out"
    for name in (WEIGHTS, METRICS):
        (out / name).rename(out / f"{name}.xgrad-old")
    (out / ".xgrad-00000000.tmp").touch()
    assert run("predict", "out").status == 2
    assert run(*FAST, "--out", "out", "--seed", "5").status == 0
    assert not [path for path in out.iterdir() if "xgrad" in path.name]
    assert run("predict", "out").status == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither modes nor FIFOs")
def test_modes_and_special_files_in_the_folder_are_kept(run, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / TIMING)
    reader = os.open(out / TIMING, os.O_RDONLY | os.O_NONBLOCK)
    (out / METRICS).touch(0o600)
    assert run(*FAST, "--out", "out").status == 0
    assert json.loads(os.read(reader, 10000))["epoch"] == 1
    os.close(reader)
    assert stat.S_ISFIFO((out / TIMING).stat().st_mode)
    assert stat.S_IMODE((out / METRICS).stat().st_mode) == 0o600
    assert xgrad.load(out / WEIGHTS)
