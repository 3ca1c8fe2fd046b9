"""The data set and the device that a command is asked for."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from xgrad.backend import DeviceError
from xgrad.backend.device import Device
from xgrad.cli.arguments import UsageError
from xgrad.data import DataError, DataNotFoundError, TrainTestImages, digits
from xgrad.data.catalog import SETS
from xgrad.data.images import PUBLISHED

DATASETS = ("digits", *PUBLISHED)
_SPLITS = [name.removeprefix("emnist-") for name in DATASETS if name.startswith("emnist-")]
#: `DATASETS` for help texts.
DATASET_NAMES = (
    f"{', '.join(name for name in DATASETS if not name.startswith('emnist-'))}, or emnist-SPLIT"
    f" with SPLIT one of {', '.join(_SPLITS)}"
)


def note(text: str) -> None:
    """Print a remark on standard error, in one line."""
    print(f"xgrad train: {text}", file=sys.stderr)


def open_device(name: str) -> Device:
    """Return the device of a name, or the default device for ``auto``."""
    try:
        return Device("cuda" if name == "auto" else name)
    except DeviceError as error:
        if name == "auto":
            return Device("cpu")
        raise UsageError(
            f"--device: expected auto or a device that can be used, got {name!r}: {error}"
        ) from error


def not_found(name: str, error: Exception) -> UsageError:
    """Return the error for an image set that cannot be read, with what to do if it is missing."""
    if not isinstance(error, DataNotFoundError) or not error.folders:
        return UsageError(f"{error}; or `xgrad train digits`")
    known, root = SETS[name], error.folders[-1]
    files = tuple(known.digests) if error.failures else error.missing
    form = "as published" if files[0].endswith(".gz") else "as it is or with .gz"
    archive = f", or {known.archive}, which has them" if known.archive else ""
    failed = ", and could not be downloaded" if error.failures else ""
    return UsageError(
        f"{known.title} was not found in {root}{failed}",
        [
            *[f"  {failure}" for failure in error.failures],
            f"files, each {form}{archive}:",
            *[f"  {file}" for file in files],
            "what to do:",
            *remedies(name, not error.failures, "train on the digits that come with xgrad"),
        ],
    )


def remedies(name: str, may_download: bool, digits: str = "") -> list[str]:
    """Return lines of what to do about a missing image set; a text says what the digits are for."""
    size = SETS[name].megabytes
    download = {f"xgrad train {name}": f"download it ({size} MB)"}
    if os.environ.get("XGRAD_DATA"):
        download = {"unset XGRAD_DATA": f"let `xgrad train` download it ({size} MB)"}
    effects = {
        **(download if may_download else {}),
        f"xgrad train {name} --data FOLDER": "use a folder that has the files",
        "export XGRAD_DATA=FOLDER": "use it in all commands",
        **({"xgrad train digits": digits} if digits else {}),
    }
    width = max(map(len, effects)) + 2
    return [f"  {command:{width}}{effect}" for command, effect in effects.items()]


def find_data(args: Namespace) -> TrainTestImages:
    """Return the requested data set, or the digits if it is missing and a fallback is allowed."""
    folder: str | None = getattr(args, "data", None)
    if args.dataset == "digits":
        if folder is not None:
            raise UsageError(
                "--data: expected mnist or another data set of files with it, got digits and"
                f" {folder!r}"
            )
        return digits()
    name = "mnist" if args.dataset == "auto" else args.dataset
    title, load = SETS[name].title, PUBLISHED[name]
    chosen = folder or os.environ.get("XGRAD_DATA")
    automatic = args.dataset == "auto" and folder is None
    reason = f"was not found in {chosen or 'the cache'}"
    try:
        try:
            return load(folder, download=False)
        except DataNotFoundError:
            if automatic or args.no_download or chosen:
                raise
            size = SETS[name].megabytes
            note(
                f"{title} is not on this machine yet: downloading it ({size} MB) into the user's"
                " cache"
            )
            reason = "could not be downloaded"
            return load()
    except (DataError, OSError) as error:
        if not isinstance(error, DataNotFoundError) or not (automatic or hasattr(args, "fallback")):
            raise not_found(name, error) from error
    note(f"{title} {reason}: training on the 8x8 digits that come with xgrad")
    print("\n".join([f"for {title}:", *remedies(name, "found" in reason)]), file=sys.stderr)
    return digits()
