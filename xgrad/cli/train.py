"""``xgrad train``: train a network on an image set, evaluate it, and write the results."""

from __future__ import annotations

import errno
import math
import os
import sys
import tempfile
import time
from argparse import BooleanOptionalAction, Namespace
from argparse import _ArgumentGroup as Group
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from xgrad.cli.arguments import (
    LARGEST,
    Parser,
    UsageError,
    checked,
    integer,
    nonempty_path,
    one_of,
    widths,
)
from xgrad.cli.checkpoints import FOLDER, Checkpoints, new_folder, run_folder
from xgrad.cli.models import MODELS
from xgrad.cli.predict import other_run
from xgrad.cli.settings import ACTIVATIONS, OPTIMIZERS, SCHEDULES, arguments, default, settings
from xgrad.cli.sources import DATASET_NAMES, DATASETS, find_data, note, open_device
from xgrad.cli.threads import blas_threads
from xgrad.cli.training_run import FILES, TrainingRun
from xgrad.distributed import Communicator, RankError, world
from xgrad.distributed.supervision import supervise
from xgrad.support.files import DISK_FULL

#: Options that may be given for a resumed run.
RESUMED = {"resume", "device", "data", "no_download", "threads", "capture", "quiet"}
RESUMED |= {"checkpoint_every", "keep", "tensorboard", "distributed", "shard_state"}
FRACTION = checked(float, lambda x: 0 <= x < 1, "a number from 0 to below 1")


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    top = Parser(
        "train",
        "[dataset]",
        "Train a network on small images, such as handwritten digits.",
        "Defaults are for the MLP and its default optimizer; for other networks and optimizers, see"
        " docs/command_line.md.",
    )
    top.add_argument(
        "dataset",
        nargs="?",
        type=one_of(*DATASETS, "auto"),
        default="auto",
        metavar="dataset",
        help=(
            f"{DATASET_NAMES}; digits has 1797 images that come with xgrad (default: auto, which is"
            " mnist if it is on this machine, else digits)"
        ),
    )
    _add_data(top.add_argument_group("data"))
    _add_network(top.add_argument_group("network"))
    _add_optimization(top.add_argument_group("optimization"))
    _add_validation(top.add_argument_group("validation and averaging"))
    _add_devices(top.add_argument_group("device and speed"))
    _add_output(top.add_argument_group("output and checkpoints"))
    return top


def _add_data(group: Group) -> None:
    add = group.add_argument
    folder = "folder of the data set (default: XGRAD_DATA, else the user's cache)"
    add("--data", metavar="FOLDER", help=folder)
    add("--no-download", action="store_true", default=False, help="use local files only")
    other = "data set to use if the other one is missing"
    add("--fallback", type=one_of("digits"), metavar="digits", help=other)
    pixels = f"largest random shift of training images along both axes ({default('shift')})"
    add("--shift", type=integer(0), metavar="PIXELS", help=pixels)


def _add_network(group: Group) -> None:
    add = group.add_argument
    add(
        "--model",
        type=one_of(*MODELS),
        default="mlp",
        metavar="NAME",
        help=f"{', '.join(MODELS)} (default: mlp)",
    )
    layers = checked(widths, bool, "widths of hidden layers such as 256,128")
    hidden = f"mlp: widths of the hidden layers ({default('hidden')})"
    add("--hidden", type=layers, metavar="N,N", help=hidden)
    names = f"mlp: {', '.join(ACTIVATIONS)} (default: relu)"
    add("--activation", type=one_of(*ACTIVATIONS), metavar="NAME", help=names)
    dropout = "mlp: dropout probability of hidden units (default: 0)"
    add("--dropout", type=FRACTION, metavar="P", help=dropout)


def _add_optimization(group: Group) -> None:
    add = group.add_argument
    names = f"{', '.join(OPTIMIZERS)} ({default('optimizer')})"
    add("--optimizer", type=one_of(*OPTIMIZERS), metavar="NAME", help=names)
    positive = checked(float, lambda x: 0 < x < math.inf, "a number above 0")
    add("--lr", type=positive, metavar="RATE", help=f"highest learning rate ({default('lr')})")
    add("--momentum", type=FRACTION, metavar="M", help="sgd: momentum (default: 0)")
    natural = checked(float, lambda x: 0 <= x < math.inf, "a number of 0 or more")
    decay = f"weight decay ({default('weight_decay')})"
    add("--weight-decay", type=natural, metavar="DECAY", help=decay)
    names = f"learning rate over the run: {', '.join(SCHEDULES)} ({default('schedule')})"
    add("--schedule", type=one_of(*SCHEDULES), metavar="NAME", help=names)
    size = f"images in a batch ({default('batch_size')})"
    add("--batch-size", type=integer(1), metavar="N", help=size)
    add("--epochs", type=integer(1), metavar="N", help=f"number of epochs ({default('epochs')})")
    seed = "seed for initialization and shuffling (default: 0)"
    add("--seed", type=integer(0, 2**64), default=0, metavar="N", help=seed)


def _add_validation(group: Group) -> None:
    add = group.add_argument
    held = (
        "hold back the last N training images, and keep the weights of the epoch with their"
        " smallest loss (default: a twelfth if --patience or plateau needs them, else none)"
    )
    add("--validation", type=integer(1), metavar="N", help=held)
    patience = "end after N epochs without a smaller validation loss (default: never)"
    add("--patience", type=integer(1), metavar="N", help=patience)
    average = (
        "evaluate and save an exponential moving average of the weights, such as with decay 0.999"
        " (default: none)"
    )
    add("--ema", type=FRACTION, metavar="DECAY", help=average)


def _add_devices(group: Group) -> None:
    add = group.add_argument
    names = "cpu, cuda, cuda:1 and others of xgrad info (default: cuda if usable, else cpu)"
    add("--device", default="auto", metavar="NAME", help=names)
    processors = os.cpu_count() or LARGEST
    threads = checked(
        integer(1), lambda n: n <= processors, f"at most {processors}, the number of processors"
    )
    number = "threads of BLAS on the CPU (default: by the size of the network)"
    add("--threads", type=threads, metavar="N", help=number)
    trace = "trace a step once and replay it: faster, with unchanged results (default: if possible)"
    add("--capture", action=BooleanOptionalAction, help=trace)
    half = (
        "compute matrix products in float16, with scaled losses: for a GPU; on the CPU it is slower"
    )
    add("--amp", action="store_true", default=False, help=half)
    ranks = (
        "share each batch between the processes that mpiexec or srun started: see"
        " docs/distributed.md"
    )
    add("--distributed", action="store_true", default=False, help=ranks)
    shards = (
        "with --distributed: keep in each process the optimizer's state of a part of the parameters"
    )
    add("--shard-state", action="store_true", default=False, help=shards)


def _add_output(group: Group) -> None:
    add = group.add_argument
    folder = "output folder, or the next free name if it has a run (default: runs/DATASET)"
    add("--out", type=nonempty_path, metavar="DIR", help=folder)
    every = "steps between two checkpoints (default: one at Ctrl-C or SIGTERM only)"
    add("--checkpoint-every", type=integer(1), metavar="N", help=every)
    add("--keep", type=integer(1), metavar="K", help="number of checkpoints to keep (default: 3)")
    resume = "continue the run in a folder from its newest checkpoint"
    add("--resume", type=nonempty_path, metavar="DIR", help=resume)
    events = "write figures of each epoch for TensorBoard to the folder tensorboard of the run"
    add("--tensorboard", action="store_true", default=False, help=events)
    add("--quiet", action="store_true", default=False, help="print the test accuracy only")


def run(argv: Sequence[str]) -> int:
    """Train as specified by the arguments, and return the exit status."""
    top = parser()
    args = top.parse_args(argv)
    if not args.distributed:
        return start(top, args, None)
    supervise()
    with world(open_device(args.device)) as ranks, open(os.devnull, "w") as null:
        output, errors = (null, null) if ranks.rank else (sys.stdout, sys.stderr)
        try:
            with redirect_stdout(output), redirect_stderr(errors):
                return start(top, args, ranks)
        except RankError as error:
            if ranks.size > 1:
                raise
            note(str(error))
            return 1
        except UsageError as error:
            if ranks.size == 1:
                raise
            # If all ranks have the error, rank 0 ends the others before they report it.
            time.sleep(ranks.rank > 0)
            note(f"rank {ranks.rank}: {error}")
            ranks.abort(2)
            raise


def start(top: Parser, args: Namespace, ranks: Communicator | None) -> int:
    """Start or resume a run, with all ranks if there are any; return the exit status."""
    if not hasattr(args, "resume"):
        return train(args, {}, ranks)
    given = {name: value for name, value in vars(args).items() if value != top.get_default(name)}
    if unused := [name for name in given if name not in RESUMED]:
        name = "dataset" if unused[0] == "dataset" else f"--{unused[0].replace('_', '-')}"
        raise UsageError(f"{name}: expected none with --resume: the run has its own")
    out: Path = args.resume
    if ranks is not None and ranks.rank:
        saved, state = ranks.broadcast_object(None)
        return train(Namespace(**(saved | given | {"out": out})), state, ranks)
    if not os.path.isdir(out):  # also False if a name is too long
        hint = other_run(out)
        raise UsageError(f"--resume: expected the folder of a run, got {out}{hint}")
    with run_folder(out):
        for path, state in Checkpoints(out, 1).latest():
            try:
                saved = vars(top.parse_args(arguments(state["options"])))
            except (UsageError, LookupError, TypeError, ValueError) as error:
                raise UsageError(
                    f"--resume: expected a checkpoint of xgrad train, got {path}: {error}"
                ) from error
            if ranks is not None:
                ranks.broadcast_object((saved, state))
            return train(Namespace(**(saved | given | {"out": out})), state, ranks)
    raise UsageError(
        f"--resume: expected a run with a checkpoint that is whole, got none in {out / FOLDER}:"
        " they are written at SIGTERM and Ctrl-C, and with --checkpoint-every"
    )


def train(args: Namespace, state: dict[str, Any], ranks: Communicator | None) -> int:
    """Train in a new folder, or in the folder of a resumed run; return the exit status."""
    device = open_device(args.device)
    data = find_data(args)
    options = settings(args, data, device)
    count, size = len(data.train) - options.validation, options.batch_size
    if ranks is not None and min(count, count % size or size) < ranks.size:  # the last batch
        raise UsageError(
            f"--batch-size: expected batches of at least {ranks.size} images, one for each rank,"
            f" got {count} images in batches of {size}"
        )
    can_replay = device.backend.executor is not None
    capture = getattr(args, "capture", can_replay)
    if capture and not can_replay:
        note(f"--capture: steps on {device} cannot be replayed yet: they run eagerly")
    out: Path = getattr(args, "out", Path("runs", data.name))
    try:
        training = TrainingRun(options, data, device, out, args.quiet, ranks)
        trainer = training.trainer(capture and can_replay, args.tensorboard, args.shard_state)
    except ImportError as error:
        raise UsageError(f"--tensorboard: {error}") from error
    except (MemoryError, ValueError) as error:
        if options.model != "mlp":
            raise UsageError(f"--model {options.model}: {error}") from error
        raise UsageError(
            f"--hidden: expected widths that fit into memory, got {options.hidden}: {error}"
        ) from error
    training.checkpoint_every = getattr(args, "checkpoint_every", 0)
    training.keep = getattr(args, "keep", 3)
    if resumes := bool(state):
        try:
            training.load_state_dict_of(trainer, state)
            state.clear()  # frees memory: the callers hold the state during the run
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"--resume: expected a checkpoint of this network and data set: {error}"
            ) from error
    requested = getattr(args, "threads", None)
    product = training.largest_product(trainer) if device.type == "cpu" else None
    try:
        has_folder = resumes or not training.writes
        with (
            blas_threads(requested, product) as training.threads,
            nullcontext(out) if has_folder else new_folder(out, FILES) as training.out,
        ):
            if training.out != out and hasattr(args, "out") and not args.quiet:
                note(f"{out} has a run: this one is in {training.out}")
            if training.writes:
                tempfile.TemporaryFile(dir=training.out).close()  # raises OSError before training
            # A loss that is not finite is reported once, without warnings.
            with np.errstate(over="ignore", invalid="ignore"):
                return training.run(trainer)
    except OSError as error:
        # Without a file name, the error is of standard output, not of --out.
        if error.filename is None and error.errno in {errno.EPIPE, *DISK_FULL}:
            raise
        if error.errno in DISK_FULL:
            last = f"epoch {training.saved}" if training.saved else "none"
            raise UsageError(
                f"{error.filename}: {error.strerror}; files in {training.out} are whole, last epoch"
                f" with all files: {last}"
            ) from error
        raise UsageError(
            f"--out: expected a folder that can be written to, got {training.out}: {error}"
        ) from error
