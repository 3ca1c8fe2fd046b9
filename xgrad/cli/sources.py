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
            raise UsageError(f"{error}; or `xgrad train digits`") from error
    note(
        f"{title} {reason}: training on the embedded 8x8 digits instead "
        f"(for {title} set XGRAD_DATA to its folder, or download it with `xgrad train {name}`)"
    )
    return digits()
