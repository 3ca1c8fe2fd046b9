"""Random and mutated arguments of the command line end in an error of status 2, or are accepted.

The work itself is replaced: one step in place of a training run, and no comparison of devices.
Folders of runs and checkpoints, whole and damaged, are made once for each process.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import xgrad.cli.info
import xgrad.cli.parity
import xgrad.cli.report
from xgrad.cli import COMMANDS, main
from xgrad.cli.training_run import TrainingRun
from xgrad.data import mirrors
from xgrad.training import Trainer

SECONDS = 20
MEMORY = 3 << 30
NAMES = (
    "digits mnist auto kmnist emnist-letters mlp lenet cnn mixer vit relu tanh sgd adam adamw"
    " cosine plateau"
)
NAMES += (
    " onecycle cpu strict cuda cpu:0 torch float32 float64 ops training add sum,exp run torn empty"
    " file out new"
)
NUMBERS = (
    "0 1 2 3 16 0.5 0.9 1e-3 8,8 16 -1 1e400 nan inf 1e-400 10000000000000000000000 0x10 1_0 ٣ ²"
    " 1,,2 9,-9 1.0 +1"
)
ODD = [
    "",
    " ",
    "-",
    "--",
    "---",
    "=",
    ",",
    "\udc80",
    "\n",
    "a\nb",
    "é" * 300,
    "%s",
    "{0}",
    "@file",
    "~nosuchuser/x",
]
ODD += [
    "/dev/null",
    "/dev/null/x",
    "/proc/nope/x",
    "file/x",
    "circle",
    "circle/..",
    "run/config.json",
    "image.npy",
]
ODD += ["--no-capture=1", "-v", "-h"]
#: Values that many options accept, so that the checks behind the parser are reached.
VALID = {
    "--hidden": "4 8,8",
    "--batch-size": "500 7",
    "--epochs": "1",
    "--validation": "20",
    "--patience": "1",
    "--lr": "0.1",
    "--momentum": "0.9",
    "--weight-decay": "0.1",
    "--dropout": "0.5",
    "--shift": "1 7",
    "--seed": "3",
    "--ema": "0.9",
    "--keep": "1",
    "--checkpoint-every": "2",
    "--threads": "1",
    "--index": "0 359",
    "--device": "cpu",
    "--resume": "run torn",
    "--out": "out new",
    "--optimizer": "sgd adam",
    "--model": "mlp lenet cnn",
    "--schedule": "step plateau",
    "--activation": "tanh",
    "--fallback": "digits",
    "--data": "empty file run",
    "--devices": "cpu cpu,strict",
    "--ops": "add",
    "--dtypes": "float32",
    "--parts": "ops seeds",
    "--json": "new.json",
    "--html": "new.html",
    "--table": "new.md",
}
FIRST = {
    "train": "digits auto",
    "predict": "run torn",
    "report": "run torn",
    "summary": "digits mnist",
}


class TooSlowError(BaseException):
    """A command that takes too long."""


def one_step(self: TrainingRun, trainer: Trainer) -> int:
    """Take a step on few images, in place of the run."""
    self.say("\n".join(self.headlines(trainer)))
    trainer.train_step(*self.train[:4], *trainer.totals)
    return 0


def end(*args: Any, **options: Any) -> Any:
    """Leave the command, in place of its work."""
    raise SystemExit(0)


def too_slow(*args: Any) -> None:
    raise TooSlowError


@cache
def prepared() -> dict[str, list[str]]:
    """Return the options of each command.

    Change to a folder with runs, and replace the work of commands.
    """
    folder = Path(tempfile.mkdtemp(prefix="xgrad-fuzz-"))
    os.environ.pop("XGRAD_DATA", None)
    os.environ |= {"XDG_CACHE_HOME": str(folder / "cache"), "no_proxy": "*", "HOME": str(folder)}
    mirrors.MIRRORS = dict.fromkeys(mirrors.MIRRORS, ("http://127.0.0.1:1/",))
    os.chdir(folder)
    options = {}
    for command in COMMANDS:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            main([command, "--help"])
        options[command] = sorted(set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", out.getvalue())))
    TrainingRun.draw = lambda self, trainer: None  # type: ignore[method-assign]
    small = [
        "train",
        "digits",
        "--hidden",
        "4",
        "--batch-size",
        "500",
        "--epochs",
        "1",
        "--checkpoint-every",
        "2",
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*small, "--quiet", "--out", "run"]) == 0
    shutil.copytree("run", "torn")
    for path in Path("torn").rglob("*.*"):
        path.write_bytes(path.read_bytes()[:-9])
    Path("empty").mkdir()
    Path("file").touch()
    Path("circle").symlink_to("circle")
    (folder / "image.npy").write_bytes(b"\x93NUMPY")
    report = xgrad.cli.info.gather()
    TrainingRun.run = one_step  # type: ignore[method-assign]
    xgrad.cli.parity.compare = end
    xgrad.cli.report.as_html = lambda runs, command: ""  # type: ignore[assignment]
    xgrad.cli.info.gather = lambda every=False: report
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, too_slow)
    return options


def arguments(chance: random.Random) -> list[str]:
    """Return a command with random options and values, some of them mutated."""
    options = prepared()
    command = chance.choice([*COMMANDS, "train", "train", "train"])
    odd = chance.choice([0.02, 0.2, 1.0])  # the fraction of values of any kind
    argv = [command]
    if command in FIRST and chance.random() < 0.9:
        argv.append(
            chance.choice(FIRST[command].split()) if chance.random() > odd else value(chance)
        )
    for name in chance.choices(options[command], k=chance.choice([0, 1, 1, 2, 3, 5])):
        text = (
            chance.choice(VALID[name].split())
            if name in VALID and chance.random() > odd
            else value(chance)
        )
        flag = name not in VALID and chance.random() < 0.9
        argv += [name] if flag else [f"{name}={text}"] if chance.random() < 0.3 else [name, text]
    if chance.random() < 0.2:
        mutate(argv, chance)
    return [text for text in argv if not text.startswith(("/tmp", "/root", "/home"))]


def value(chance: random.Random) -> str:
    """Return a value of any kind, maybe mutated.

    No other absolute path results, since commands write files.
    """
    text = chance.choice([*NAMES.split(), *NUMBERS.split(), *ODD])
    if chance.random() < 0.3 and not text.startswith(("/", "~")):
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at]
            + chance.choice([*"0159-,=:x ", "", "\udcff", text])
            + text[at + chance.randrange(2) :]
        )
    return text


def mutate(argv: list[str], chance: random.Random) -> None:
    """Change an argument: remove, repeat, move or cut it, or insert another one."""
    at = chance.randrange(len(argv))
    kind = chance.randrange(5)
    if kind == 0:
        del argv[at]
    elif kind == 1:
        argv.insert(at, argv[at])
    elif kind == 2:
        argv.append(argv.pop(at))
    elif kind == 3 and not argv[at].startswith("/"):
        argv[at] = argv[at][: chance.randrange(len(argv[at]) + 1)]
    else:
        argv.insert(at, value(chance))


def check(seed: int) -> str:
    """Run the command of a seed, and return how it ended; a fault begins with MISMATCH."""
    prepared()
    argv = arguments(random.Random(seed))
    out, err = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace")
    )
    signal.alarm(SECONDS)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            status = main(argv)
            out.flush()
    except SystemExit as error:
        status = error.code
    except BaseException as error:
        signal.alarm(0)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return (
            f"MISMATCH: {type(error).__name__} at {frame.filename}:{frame.lineno}: {error!s:.200} |"
            f" {argv} | {seed}"
        )
    finally:
        signal.alarm(0)
        xgrad.set_num_threads(1)
        for name in ("runs", "out", "new", "new.json", "new.html"):
            shutil.rmtree(name, ignore_errors=True)
            Path(name).unlink(missing_ok=True)
    err.flush()
    lines = err.buffer.getvalue().decode().splitlines()
    if status == 2 and lines and all(line.startswith("xgrad") for line in lines):
        return f"refused, {argv[0] if argv and argv[0] in COMMANDS else 'no command'}"
    return (
        f"accepted, {argv[0]}"
        if status == 0
        else f"MISMATCH: status {status}: {lines[-3:]} | {argv} | {seed}"
    )
