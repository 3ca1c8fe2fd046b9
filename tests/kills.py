"""Kill a training run with SIGKILL at random times, resume it, and compare it with a run without.

``python -m tests.kills --kills 50 --seed 0`` prints what it did. Every other kill waits for the
temporary file of a checkpoint, and so comes while it is written.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TRAIN = (sys.executable, "-m", "xgrad", "train")
RUN = ("digits", "--hidden", "16", "--dropout", "0.2", "--batch-size", "16", "--device", "cpu")
CHECKPOINTS = ("--checkpoint-every", "3", "--keep", "2")
EQUAL = ("weights.safetensors", "config.json", "metrics.jsonl")


class Kills(NamedTuple):
    """Outcome of a killed run.

    It has the numbers of kills, of kills during a write and of damaged checkpoints, and the files
    that differ.
    """

    total: int
    writing: int
    damaged: int
    different: list[str]


def temporary(out: Path) -> bool:
    """Return whether a checkpoint is being written, or was by a killed process."""
    return any(out.glob("checkpoints/.xgrad-*.tmp"))


def killed_run(kills: int, seed: int, epochs: int, folder: Path) -> Kills:
    """Train with a number of kills, and once without; return the outcome."""
    chance, out = random.Random(seed), folder / "killed"
    total = writing = damaged = 0
    options = (*RUN, "--epochs", str(epochs))
    subprocess.run(
        [*TRAIN, *options, "--quiet", "--out", str(folder / "whole")],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for number in range(kills + 1):
        resumed = ("--resume", str(out)) if list(out.glob("checkpoints/*.safetensors")) else ()
        argv = [*TRAIN, *(resumed or (*options, *CHECKPOINTS, "--out", str(out)))]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            if number < kills:
                process.stdout.readline()  # the headline, after which the first step comes
                time.sleep(chance.uniform(0, 0.3))
                end = time.monotonic() + 5 * (number % 2)
                while time.monotonic() < end and process.poll() is None and not temporary(out):
                    pass
                process.kill()
            _, err = process.communicate()
            total += process.returncode == -9
            writing += process.returncode == -9 and temporary(out)
            damaged += err.count("a checkpoint is left out")
            expected = (0, -9) if number < kills else (0,)
            assert process.returncode in expected, (
                f"kill {number}: status {process.returncode}: {err}"
            )
    different = [
        name
        for name in EQUAL
        if (out / name).read_bytes() != (folder / "whole" / name).read_bytes()
    ]
    return Kills(total, writing, damaged, different)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = killed_run(args.kills, args.seed, 3 * args.kills, Path(folder))
    print(f"seed {args.seed}: {result}")
    sys.exit(result.total < args.kills or bool(result.damaged or result.different))
