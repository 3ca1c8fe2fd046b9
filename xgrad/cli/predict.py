"""``xgrad predict``: the class of an image, predicted by a network of ``xgrad train``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import xgrad
from xgrad import nn
from xgrad.backend.device import Device
from xgrad.cli.arguments import Parser, UsageError, integer, nonempty_path
from xgrad.cli.images import read_image
from xgrad.cli.inference import Scaling, probabilities
from xgrad.cli.models import MODELS, make_model
from xgrad.cli.sources import DATASETS, not_found, open_device
from xgrad.cli.training_run import CONFIG, WEIGHTS
from xgrad.data import DataError, digits
from xgrad.data.images import PUBLISHED
from xgrad.support.files import read
from xgrad.support.suggestions import nearest

MAX_CONFIG = 2**20  # bytes


def run(argv: Sequence[str]) -> int:
    """Print the class of an image and the probability of every class."""
    parser = Parser(
        "predict",
        "DIR [IMAGE]",
        "Predict the class of an image, such as a digit, by a network that `xgrad train` trained.",
    )
    add = parser.add_argument
    add(
        "folder",
        type=nonempty_path,
        metavar="DIR",
        help="output folder of `xgrad train`, such as runs/mnist",
    )
    add(
        "image",
        type=nonempty_path,
        nargs="?",
        metavar="IMAGE",
        default=None,
        help=(
            "a picture such as photo.png, which is converted to grey, inverted if its background is"
            " light, and scaled; or a .npy file of the size of the training images, with 0 for the"
            " background"
        ),
    )
    add(
        "--index",
        type=integer(0),
        metavar="N",
        help="without an image: index of a test image of the data set (default: 0)",
    )
    add(
        "--data",
        metavar="FOLDER",
        help="without an image: folder of the data set, if it is not digits",
    )
    devices = "cpu, cuda, cuda:1 and others of xgrad info (default: cuda if usable, else cpu)"
    add("--device", default="auto", metavar="NAME", help=devices)
    args = parser.parse_args(argv)
    if args.image and (extra := [f"--{name}" for name in ("index", "data") if name in args]):
        raise UsageError(
            f"{extra[0]}: expected no image with it, got {args.image}: give one of the two"
        )

    device = open_device(args.device)
    config = read_config(args.folder)
    height, width = config["image_shape"]
    sample = None if args.image else from_dataset(args, config)
    model = load_model(args.folder, config, device)
    image, label = sample or (
        read_image(args.image, (height, width), float(config["grey_values"]["largest"])),
        None,
    )
    scaling = Scaling(*(float(config["grey_values"][name]) for name in ("mean", "std")))
    # Values that are not finite are reported once, below.
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = probabilities(model, scaling(image[None], device))[0]
    if not np.isfinite(predicted).all():
        raise UsageError(
            f"expected weights in {args.folder} that give finite probabilities, got {predicted}:"
            " train again"
        )
    best = int(np.argmax(predicted))
    names = config.get("class_names") or [str(number) for number in range(len(predicted))]
    truth = "" if label is None else f"; the label is {names[label]}"
    print(f"{names[best]}, with a probability of {predicted[best]:.2%}{truth}")
    width = max(map(len, names))
    for name, p in zip(names, predicted, strict=True):
        print(f"  {name:{width}}  {p:7.2%}  {'#' * round(40 * float(p))}".rstrip())
    return 0


def read_config(folder: Path) -> dict[str, Any]:
    """Return the configuration that `xgrad train` wrote; raise UsageError if it is damaged."""
    expected = f"expected a folder that `xgrad train` wrote, got {folder}"
    if not os.path.exists(folder / CONFIG):  # also False if a name is too long
        reason = f"no {CONFIG} in it" if os.path.isdir(folder) else "no such folder"
        raise UsageError(f"{expected}: {reason}{other_run(folder)}")
    try:
        config: dict[str, Any] = json.loads(read(folder / CONFIG, MAX_CONFIG))
        missing = {
            "dataset",
            "hidden",
            "activation",
            "classes",
            "image_shape",
            "grey_values",
        } - config.keys()
        if missing:
            raise ValueError(f"{CONFIG} lacks {', '.join(sorted(missing))}")
        grey, (height, width) = config["grey_values"], config["image_shape"]
        mean, std, largest = (float(grey[name]) for name in ("mean", "std", "largest"))
        if not (0 < std < math.inf and 0 < largest < math.inf and math.isfinite(mean)):
            raise ValueError(f"{CONFIG} has grey_values {grey}")
        sizes = [*config["hidden"], config["classes"], height, width]
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise ValueError(f"{CONFIG} has hidden, classes, image_shape {sizes}")
        names = config.get("class_names") or []
        if (
            not isinstance(names, list)
            or len(names) not in (0, config["classes"])
            or {*map(type, names)} - {str}
        ):
            raise ValueError(f"{CONFIG} has {config['classes']} classes and class_names {names}")
        if config["dataset"] not in DATASETS or config.setdefault("model", "mlp") not in MODELS:
            raise ValueError(
                f"{CONFIG} has dataset {config['dataset']!r}, model {config.get('model')!r}"
            )
    except (
        OSError,
        ValueError,
        AttributeError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise UsageError(f"{expected}: {error}") from error
    return config


def other_run(folder: Path) -> str:
    """Return a question for the end of an error message: the run in or beside a folder.

    An empty text if there is none, or none of a similar name beside it.
    """
    inside = os.path.isdir(folder)
    runs = [str(path.parent) for path in (folder if inside else folder.parent).glob(f"*/{CONFIG}")]
    found = nearest(str(folder), runs, cutoff=0.0 if inside else 0.6)
    return f": did you mean {found}?" if found else ""


def load_model(folder: Path, config: dict[str, Any], device: Device) -> nn.Module:
    """Return the network of a training run with its weights."""
    height, width = config["image_shape"]
    sizes, options = config["hidden"], (config["activation"], config.get("dropout", 0.0))
    try:
        weights = xgrad.load(folder / WEIGHTS, device=device)
        if config["model"] == "mlp":  # before memory is allocated for the network
            expected = sum(
                (m + 1) * n for m, n in pairwise([height * width, *sizes, config["classes"]])
            )
            if (got := sum(x.size for x in weights.values())) != expected:
                raise ValueError(
                    f"{CONFIG} describes a network of {expected} weights, of other shapes than"
                    f" these {got}"
                )
        model = make_model(config["model"], (height, width), config["classes"], sizes, *options).to(
            device
        )
        model.load_state_dict(weights)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MemoryError) as error:
        raise UsageError(f"expected the weights of `xgrad train` in {folder}: {error}") from error
    return model


def from_dataset(args: Any, config: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Return a test image of the data set of the training run, and its label."""
    name, index, folder = config["dataset"], getattr(args, "index", 0), getattr(args, "data", None)
    if folder is not None and name not in PUBLISHED:
        raise UsageError(
            f"--data: expected a network that was trained on files, got one of {name}, and"
            f" {folder!r}"
        )
    try:
        data = PUBLISHED[name](folder, download=False) if name in PUBLISHED else digits()
    except (DataError, OSError) as error:
        raise not_found(name, error) from error
    shape, size = (*config["image_shape"], config["classes"]), data.test.images.shape[1:]
    if shape != (*size, data.classes):
        raise UsageError(
            f"expected a network for images and classes of {name}, {(*size, data.classes)}, got one"
            f" for {shape}"
        )
    if index >= len(data.test):
        raise UsageError(
            f"--index: expected one below {len(data.test)}, the number of test images, got {index}"
        )
    return data.test[index]
