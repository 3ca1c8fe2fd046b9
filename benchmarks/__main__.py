"""``python -m benchmarks NAME``: measure, and print tables.

With ``--save`` or ``--output``, the tables are also written to files. ``redraw`` measures nothing:
it writes the Markdown and the plots of saved results again.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.harness import Options, UsageError
from benchmarks.report import markdown, read, write

NAMES = tuple(
    "step models load ops epoch memory scaling import chain reach checkpoints threads distributed"
    " before gpu".split()
)
DEVICES = {"models": "cpu", "gpu": "cuda"}  # defaults of benchmarks that take a device
RESULTS = environment.ROOT / "benchmarks" / "results"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure xgrad and its peers."
    )
    add = top.add_argument
    add(
        "name",
        nargs="?",
        choices=(*NAMES, "all", "redraw"),
        metavar="NAME",
        help="the benchmark; all runs all but before and gpu; redraw writes the tables and"
        " plots of saved results again; without a name, all are listed",
    )
    add("--quick", action="store_true", help="tiny sizes, as a test: the figures mean nothing")
    add(
        "--peers",
        default="",
        metavar="NAME,NAME",
        help="only these peers, by their names in the tables",
    )
    add("--threads", type=natural, metavar="N", help="number of threads of each library")
    add("--repeats", type=natural, metavar="N", help="number of blocks, fresh processes or seeds")
    add("--seconds", type=positive, metavar="S", help="least duration of a block")
    add("--device", help="device of models (default: cpu), and of gpu: cuda, or cpu as a test")
    add("--commit", default="HEAD", help="commit of before (default: %(default)s)")
    add(
        "--save",
        action="store_const",
        const=RESULTS,
        dest="output",
        help="write to benchmarks/results",
    )
    add("--output", type=Path, metavar="FOLDER", help="write NAME.json, NAME.md and NAME.svg there")
    return top


def natural(text: str) -> int:
    """Return a number of the command line: an int above 0."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return number


def positive(text: str) -> float:
    """Return a number of the command line: finite and above 0."""
    if not 0 < (number := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number


def module_of(name: str) -> Any:
    """Return the module of a benchmark."""
    return import_module(f"benchmarks.{'imports' if name == 'import' else name}")


def measure(name: str, options: Options, output: Path | None) -> int:
    """Run one benchmark, print its result, and return the exit status.

    The result is written to files if `output` is given.
    """
    try:
        result = module_of(name).run(options)
    except UsageError as error:
        print(f"benchmarks {name}: {error}", file=sys.stderr)
        return 2
    result.command = command(name, options)
    print(markdown(result))
    if output:
        print(write(result, output))
    return 1 if result.failed else 0


def redraw(folder: Path) -> int:
    """Write the Markdown and the plot of each result in a folder again, from its JSON."""
    for path in sorted(folder.glob("*.json")):
        # libraries.json is a report of `xgrad parity`
        if result := read(path):
            print(write(result, folder))
    return 0


def command(name: str, options: Options) -> str:
    """Return the command that repeats the measurement."""
    options_by_name = {
        "peers": ",".join(options.peers),
        "device": options.device if options.device != DEVICES.get(name, "cpu") else None,
    }
    options_by_name["commit"] = options.commit if name == "before" else None
    options_by_name |= {key: getattr(options, key) for key in ("threads", "repeats", "seconds")}
    words = [f"--{key}={value}" for key, value in options_by_name.items() if value]
    return shlex.join(["python", "-m", "benchmarks", name, *["--quick"] * options.quick, *words])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status.

    The status is 1 if a peer failed, and 2 if nothing could be measured.
    """
    args = parser().parse_args(arguments)
    if not args.name:
        for name in NAMES:
            print(f"{name:11} {module_of(name).__doc__.splitlines()[0]}")
        return 0
    if args.name == "redraw":
        return redraw(args.output or RESULTS)
    peers = tuple(part.strip() for part in args.peers.split(",") if part.strip())
    names = (
        [name for name in NAMES if name not in ("before", "gpu")]
        if args.name == "all"
        else [args.name]
    )
    statuses = []
    for name in names:
        device = (args.device or DEVICES[name]) if name in DEVICES else "cpu"
        options = Options(
            args.quick, peers, args.threads, args.repeats, args.seconds, device, commit=args.commit
        )
        statuses.append(measure(name, options, args.output))
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
