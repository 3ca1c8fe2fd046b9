"""The settings of a training run: options, their defaults by data set, and schedules."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from xgrad import optim
from xgrad.amp import autocast
from xgrad.backend.device import Device
from xgrad.cli.arguments import UsageError
from xgrad.cli.sources import DATASETS
from xgrad.data import TrainTestImages
from xgrad.optim import lr_scheduler

WARM_UP = 0.25  # the fraction of the steps in which the learning rate of onecycle rises


def one_cycle(optimizer: optim.Optimizer, steps: int) -> lr_scheduler.LRScheduler:
    """Return a schedule that rises from 0 and falls to 0, unlike `OneCycleLR`."""

    def factor(step: int) -> float:
        done = step / steps
        return math.sin(math.pi / 2 * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))) ** 2

    return lr_scheduler.LambdaLR(optimizer, factor)


#: The learning rate schedules, given the number of steps of the run. They advance after each step,
#: or after each epoch.
SCHEDULES: dict[str, Callable[[optim.Optimizer, int], lr_scheduler.LRScheduler]] = {
    "cosine": lr_scheduler.CosineAnnealingLR,
    "constant": lambda optimizer, steps: lr_scheduler.LambdaLR(optimizer, lambda step: 1.0),
    "linear": lambda optimizer, steps: lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps),
    "step": lambda optimizer, steps: lr_scheduler.StepLR(optimizer, -(-steps // 3)),
    "onecycle": one_cycle,
    "plateau": lambda optimizer, steps: lr_scheduler.ReduceLROnPlateau(optimizer, patience=1),
}


@dataclass(frozen=True)
class Options:
    """Settings of a training run, defaults included."""

    dataset: str
    device: str
    model: str
    hidden: tuple[int, ...]
    activation: str
    dropout: float
    optimizer: str
    lr: float
    momentum: float
    weight_decay: float
    schedule: str
    shift: int
    batch_size: int
    epochs: int
    amp: bool
    ema: float  # decay of the average of the weights, 0 for none
    validation: int  # number of training images that are held back, the last ones
    patience: int  # epochs without a smaller validation loss, 0 for any number
    seed: int


#: Default options of the MLP by data set; the options of MNIST apply to all published data sets.
#: Learning rate and weight decay are given by optimizer. The options of the digits were chosen by
#: cross-validation within the training images.
DEFAULTS: dict[str, dict[str, Any]] = {
    "mnist": {
        "hidden": (256, 128),
        "optimizer": "adam",
        "lr": {"sgd": 0.1, "adam": 4e-3, "adamw": 4e-3},
        "weight_decay": {"sgd": 0.0, "adam": 0.0, "adamw": 0.01},
        "schedule": "onecycle",
        "shift": 0,
        "batch_size": 256,
        "epochs": 4,
    },
    "digits": {
        "hidden": (512, 256),
        "optimizer": "adamw",
        "lr": {"sgd": 0.1, "adam": 3e-3, "adamw": 3e-3},
        "weight_decay": {"sgd": 0.0, "adam": 0.0, "adamw": 0.5},
        "schedule": "cosine",
        "shift": 0,
        "batch_size": 16,
        "epochs": 30,
    },
}
#: Default options of the other networks, which replace the MLP's; epochs on MNIST by network.
IMAGE_DEFAULTS: dict[str, dict[str, Any]] = {
    "mnist": {
        "shift": 2,
        "batch_size": 128,
        "lr": {"sgd": 0.1, "adam": 3e-3, "adamw": 3e-3},
        "epochs": {"lenet": 6, "cnn": 3, "mixer": 8, "vit": 8},
    },
    "digits": {"schedule": "onecycle", "shift": 1, "batch_size": 32, "epochs": 40},
}
OPTIMIZERS = ("sgd", "adam", "adamw")
ACTIVATIONS = ("relu", "sigmoid", "tanh")


def default(name: str) -> str:
    """Return the default of an option for its help text, such as "default: adam; digits adamw".

    It is the default of the MLP with its default optimizer, on the published sets and the digits.
    """

    def text(data: str) -> str:
        value = DEFAULTS[data][name]
        if isinstance(value, dict):
            value = f"{value[DEFAULTS[data]['optimizer']]:g}"
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    published, digits = map(text, ("mnist", "digits"))
    return f"default: {published}" + (f"; digits {digits}" if digits != published else "")


def arguments(options: dict[str, Any]) -> list[str]:
    """Return the arguments that give the settings in a checkpoint."""
    used = dict(options)
    dataset = used.pop("dataset")
    for name in ("hidden", "activation", "dropout") if used["model"] != "mlp" else ():
        del used[name]
    if used["optimizer"] != "sgd":
        del used["momentum"]
    for name in ("checkpoint_every", "ema", "validation", "patience"):
        if not used[name]:
            del used[name]
    flags = [f"--{name}" for name in ("amp", "tensorboard") if used.pop(name)]
    if dataset not in DATASETS:
        raise ValueError(f"{dataset!r} is no data set")
    if "hidden" in used:
        used["hidden"] = ",".join(map(str, used["hidden"]))
    return [
        dataset,
        *flags,
        *(f"--{name.replace('_', '-')}={value}" for name, value in used.items()),
    ]


def settings(args: Namespace, data: TrainTestImages, device: Device) -> Options:
    """Return the settings of the training run: arguments, completed by defaults."""
    chosen, model = vars(args), args.model
    data_name = data.name if data.name in DEFAULTS else "mnist"
    defaults = DEFAULTS[data_name] | (IMAGE_DEFAULTS[data_name] if model != "mlp" else {})
    optimizer = chosen.get("optimizer", defaults["optimizer"])
    if optimizer != "sgd" and "momentum" in chosen:
        raise UsageError(f"--momentum: expected --optimizer sgd with it, got {optimizer}")
    if model != "mlp" and (
        extra := [name for name in ("hidden", "activation", "dropout") if name in chosen]
    ):
        raise UsageError(f"--{extra[0]}: expected --model mlp with it, got {model}")
    if args.shard_state and (args.amp or not args.distributed):
        raise UsageError("--shard-state: expected --distributed with it, and no --amp")
    if args.amp:
        try:
            autocast(device)
        except TypeError as error:
            raise UsageError(f"--amp: {error}") from error
    of_mlp = {
        "hidden": defaults["hidden"] if model == "mlp" else (),
        "activation": "relu",
        "dropout": 0.0,
    }
    by_optimizer = {name: defaults[name][optimizer] for name in ("lr", "weight_decay")}
    epochs = defaults["epochs"]
    values = {**defaults, **by_optimizer, **of_mlp, "momentum": 0.0}
    values["epochs"] = epochs[model] if isinstance(epochs, dict) else epochs
    schedule = chosen.get("schedule", defaults["schedule"])
    chooses = "patience" in chosen or schedule == "plateau"
    values |= {"validation": len(data.train) // 12 if chooses else 0, "patience": 0, "ema": 0.0}
    if chosen.get("validation", 0) >= len(data.train):
        raise UsageError(
            f"--validation: expected fewer than the {len(data.train)} training images, got"
            f" {args.validation}"
        )
    side = min(data.train.images.shape[1:])
    if chosen.get("shift", 0) >= side:
        raise UsageError(
            f"--shift: expected fewer pixels than the {side} of an image, got {args.shift}"
        )
    values |= {**chosen, "dataset": data.name, "device": str(device)}
    return Options(**{field.name: values[field.name] for field in fields(Options)})
