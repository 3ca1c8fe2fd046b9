"""``python -m xgrad.distributed.launch``: run a script on several ranks, by MPI or Slurm."""

from __future__ import annotations

import argparse
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from xgrad.distributed.processes import run_as_rank
from xgrad.support.options import repeated_option

MAX_RANKS = 2**16
_RANK = "--as-rank"  # the first argument of a launched process


def command(arguments: argparse.Namespace) -> list[str]:
    """Return the command that starts all ranks."""
    rank = [
        sys.executable,
        "-m",
        "xgrad.distributed.launch",
        _RANK,
        arguments.target,
        *arguments.arguments,
    ]
    if arguments.slurm:
        return [
            "srun",
            f"--ntasks={arguments.n}",
            "--kill-on-bad-exit=1",
            *arguments.options,
            *rank,
        ]
    # from the wheel of an MPI library
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    mpiexec = beside or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit(
            "xgrad.distributed.launch: expected mpiexec, found none: pip install 'xgrad[mpi]'"
        )
    return [mpiexec, "-n", str(arguments.n), *arguments.options, *rank]


def main(argv: Sequence[str]) -> int:
    """Start all ranks, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m xgrad.distributed.launch", description=__doc__)
    parser.add_argument("-n", type=int, default=1, help="number of ranks")
    parser.add_argument(
        "--slurm", action="store_true", help="start them by srun in place of mpiexec"
    )
    parser.add_argument(
        "--print", action="store_true", help="write the command instead of running it"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        dest="options",
        help="of mpiexec or srun; repeatable",
    )
    parser.add_argument("target", help="path of a script, or name of a module such as xgrad")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    if message := repeated_option(parser, sys.argv[1:] if argv is None else argv, rest=True):
        parser.error(message)
    arguments = parser.parse_args(argv)
    if not 1 <= arguments.n <= MAX_RANKS:
        parser.error(f"-n: expected a number of ranks from 1 to {MAX_RANKS}, got {arguments.n}")
    line = command(arguments)
    if arguments.print:
        print(shlex.join(line))
        return 0
    # Ctrl-C also reaches the command, which ends the ranks
    signal.signal(signal.SIGINT, lambda number, frame: None)
    with subprocess.Popen(line) as process:
        signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        return process.wait()


def run_target(target: str, arguments: Sequence[str]) -> None:
    """Run a script or module."""
    sys.argv[:] = [target, *arguments]
    if target.endswith(".py"):
        sys.path[0] = str(Path(target).resolve().parent)
        runpy.run_path(target, run_name="__main__")
    else:
        runpy.run_module(target, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [_RANK]:
        run_as_rank(partial(run_target, sys.argv[2], sys.argv[3:]))
    else:
        sys.exit(main(sys.argv[1:]))
