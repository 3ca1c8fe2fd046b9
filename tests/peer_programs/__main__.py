"""Run PyTorch programs that others wrote on `xgrad.compat.torch`, beside PyTorch.

Usage: ``python -m tests.peer_programs FOLDER [PROGRAM ...]``. FOLDER has a checkout of each
repository that ``programs.REPOSITORIES`` lists, under the repository's name. Each program runs in
a process with PyTorch and in one with xgrad, in float64, with equal weights, data and random
numbers; only its import lines are changed, and its data loading where it needs a download. The
losses of its first backward passes must be equal to 1e-9, and a captured training step must have
the bits of the eager one. Prints a table, and fails if a program differs; a run of all programs
writes it to ``results.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.peer_programs.programs import PROGRAMS, REPOSITORIES, Program

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOLERANCE = 1e-9
TITLE = """# PyTorch programs of others on xgrad.compat.torch

Written by `make peer-programs`. Each program runs in float64 with PyTorch and with xgrad, with \
equal weights, data and random numbers, and without dropout. Changed are its import lines, and \
lines that load data, choose a network or write files. The losses of its first backward passes are \
compared, relative to losses above 1. A captured training step has the bits of the eager one.

"""
COLUMNS = ("program", "changed lines", "losses", "largest difference", "captured")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.peer_programs", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="with the checkouts of the repositories")
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help="names or their beginnings (default: all)"
    )
    args = parser.parse_args()
    missing = [name for name in REPOSITORIES if not (args.folder / name).is_dir()]
    if missing:
        parser.error(
            f"expected checkouts of {', '.join(missing)} in {args.folder}:\n"
            + "\n".join(
                f"  git clone https://github.com/{REPOSITORIES[name].path} {args.folder / name}"
                for name in missing
            )
        )
    chosen = [
        program
        for program in PROGRAMS
        if not args.programs or program.name.startswith(tuple(args.programs))
    ]
    if not chosen:
        parser.error(f"expected names of {', '.join(p.name for p in PROGRAMS)}")
    rows, failed = [], False
    print(*COLUMNS, sep=" | ", flush=True)
    for program in chosen:
        row, passed = compare(program, args.folder)
        failed = failed or not passed
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    if not args.programs:
        (HERE / "results.md").write_text(TITLE + markdown(rows), encoding="utf-8")
    return int(failed)


def compare(program: Program, folder: Path) -> tuple[list[str], bool]:
    """Return the row of a program in the table, and whether it passed."""
    with tempfile.TemporaryDirectory() as scratch:
        results = [run(program, folder, library, scratch) for library in ("torch", "xgrad")]
    for library, result in zip(("PyTorch", "xgrad"), results, strict=True):
        if "error" in result:
            return [program.name, "", "", f"{library}: {result['error']}", ""], False
    expected, got = (result["losses"] for result in results)
    if len(expected) != len(got) or not expected:
        return [program.name, "", f"{len(expected)}, {len(got)}", "unequal numbers", ""], False
    largest = max(abs(a - b) / max(abs(a), 1.0) for a, b in zip(expected, got, strict=True))
    captured = results[1]["captured"]
    passed = largest <= TOLERANCE and (captured == "yes" or bool(program.uncaptured))
    row = [
        program.name,
        str(results[1]["changed_lines"]),
        str(len(expected)),
        f"{largest:.1e}",
        f"{captured} ({program.uncaptured})" if program.uncaptured else captured,
    ]
    return row, passed


def run(program: Program, folder: Path, library: str, scratch: str) -> dict[str, Any]:
    """Run a program in a process of its own; the second run takes the weights of the first."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tests.peer_programs.child", program.name, library]
    process = subprocess.run(
        [*command, str(folder.resolve()), scratch],
        cwd=scratch,
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    result = Path(scratch) / f"{library}.json"
    if process.returncode or not result.exists():
        lines = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        return {"error": lines[-1]}
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def markdown(rows: list[list[str]]) -> str:
    """Return the table as Markdown."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
