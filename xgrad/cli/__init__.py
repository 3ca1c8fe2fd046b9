"""The command line: ``xgrad train``, ``predict``, ``summary``, ``report``, ``info``, ``parity``."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from xgrad import __version__
from xgrad.cli.arguments import UsageError
from xgrad.support.files import DISK_FULL
from xgrad.support.suggestions import did_you_mean

#: Commands; each is a module of this package with a function `run`.
COMMANDS = {
    "train": "train a network on small images, such as handwritten digits",
    "predict": "predict the class of an image, such as a digit",
    "summary": "print the layers of a network, with their output shapes, parameters and memory",
    "report": "write a page on training runs: curves, mistakes, weights, throughput",
    "info": "print versions, usable devices, and data folders",
    "parity": "compare devices: ops, fused kernels, training runs, seeds",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, by default with the arguments of the process; return its exit status.

    The status is 0; 1 for a training run that diverged or for devices that disagree; 2 for a user
    error or a full disk; 130 for Ctrl-C; 141 for a closed output;
    and 128 plus the number of a signal that stopped a training run.
    """
    name, *rest = [*(sys.argv[1:] if argv is None else argv), ""]
    if name in ("-h", "--help"):
        print("usage: xgrad COMMAND [OPTIONS]\n")
        print("\n".join(f"  xgrad {name:9}{what}" for name, what in COMMANDS.items()))
        print("\n`xgrad COMMAND --help` lists the options of a command.")
        return 0
    if name == "--version":
        print(f"xgrad {__version__}")
        return 0
    if isinstance(sys.stdout, TextIOWrapper):  # paths and class names may not be encodable
        sys.stdout.reconfigure(errors="backslashreplace")
    program = f"xgrad {name}" if name in COMMANDS else "xgrad"
    try:
        if name not in COMMANDS:
            got = repr(name) if name else "none"
            hint = did_you_mean(name, COMMANDS) or ": see xgrad --help"
            raise UsageError(f"expected a command ({', '.join(COMMANDS)}), got {got}{hint}")
        status: int = import_module(f"xgrad.cli.{name}").run(rest[:-1])
        sys.stdout.flush()
        return status
    except UsageError as error:
        line = " ".join(map(str.strip, str(error).splitlines()))
        print("\n".join([f"{program}: {line}", *error.advice]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if error.filename is not None or error.errno not in {errno.EPIPE, *DISK_FULL}:
            raise
        # The rest of the buffer must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # as in `xgrad info | head -1`
            return 141
        print(f"{program}: standard output: {error.strerror}", file=sys.stderr)
        return 2
