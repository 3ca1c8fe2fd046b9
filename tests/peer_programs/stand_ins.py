"""Small stand-ins for packages that programs load their data with, or report to.

Each holds what the programs of the table call, and no more.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


def install(lib: Any, names: tuple[str, ...]) -> None:
    """Make stand-ins importable, for programs that run with the library `lib`."""
    makers = {
        "torchvision": torchvision,
        "gymnasium": gymnasium,
        "tensorboard": tensorboard,
        "utils": progress_bar,
    }
    for name in names:
        for path, module in makers[name](lib).items():
            sys.modules[path] = module


def module(path: str, **contents: Any) -> ModuleType:
    """Return a module with contents."""
    made = ModuleType(path)
    for name, value in contents.items():
        setattr(made, name, value)
    return made


class Images:
    """Random images and classes in the shapes of a known data set."""

    shape: tuple[int, ...] = (1, 28, 28)
    count = 24

    def __init__(self, lib: Any, train: bool) -> None:
        random = np.random.default_rng(int(train))
        self._images = random.random((self.count, *self.shape))
        self._classes = random.integers(0, 10, self.count)
        self._tensor = lib.tensor

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._tensor(self._images[index]), int(self._classes[index])


class Colors(Images):
    """Color images of 32 by 32 pixels, few enough for large networks."""

    shape = (3, 32, 32)
    count = 4


class FakeImages(Images):
    """Color images of 64 by 64 pixels."""

    shape = (3, 64, 64)
    count = 4


class FlatImages(Images):
    """The images of MNIST as vectors."""

    shape = (784,)


def torchvision(lib: Any) -> dict[str, ModuleType]:
    """Return stand-ins of torchvision: data sets are random, transforms leave them as they are."""

    def dataset(kind: type[Images]) -> Any:
        def make(root: str = "", train: bool = True, transform: Any = None, **_: Any) -> Images:
            is_flat = "flat" in (transform or ())
            return (FlatImages if is_flat else kind)(lib, train)

        return make

    def transform(*_: Any, **__: Any) -> tuple[str, ...]:
        return ()

    def compose(transforms: list[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(mark for marks in transforms for mark in marks)

    kinds = ("ToTensor", "Normalize", "RandomCrop", "RandomHorizontalFlip", "Resize", "CenterCrop")
    transforms = module(
        "torchvision.transforms",
        Compose=compose,
        Lambda=lambda function: ("flat",),  # the one that flattens images
        **dict.fromkeys(kinds, transform),
    )
    datasets = module(
        "torchvision.datasets",
        MNIST=dataset(Images),
        CIFAR10=dataset(Colors),
        FakeData=lambda image_size, transform: FakeImages(lib, True),
    )
    utils = module("torchvision.utils", save_image=lambda *args, **options: None)
    package = module("torchvision", transforms=transforms, datasets=datasets, utils=utils)
    return {made.__name__: made for made in (package, transforms, datasets, utils)}


class Environment:
    """An environment of four numbers and two actions, which ends after a while."""

    spec = SimpleNamespace(reward_threshold=475.0)

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._count = 0

    def reset(self, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the first state."""
        self._count = 0
        return self._random.standard_normal(4), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Return the next state, the reward, and whether the episode ends."""
        self._count += 1
        reward = 1.0 if action == self._count % 2 else 0.5
        return self._random.standard_normal(4), reward, self._count == 12, False, {}


def gymnasium(lib: Any) -> dict[str, ModuleType]:
    """Return a stand-in of gymnasium with one environment."""
    return {"gymnasium": module("gymnasium", make=lambda *args, **options: Environment())}


class Writer:
    """Takes the figures of a training run, and forgets them."""

    def __init__(self, **_: Any) -> None:
        pass

    def add_scalar(self, *_: Any) -> None:
        """Forget a figure."""

    def flush(self) -> None:
        """Do nothing."""


def tensorboard(lib: Any) -> dict[str, ModuleType]:
    """Return a stand-in of the writer of reports, for either library."""
    path = f"{lib.__name__}.utils.tensorboard"
    return {path: module(path, SummaryWriter=Writer)}


def progress_bar(lib: Any) -> dict[str, ModuleType]:
    """Return a stand-in of a module that draws on a terminal, which there is not."""
    return {"utils": module("utils", progress_bar=lambda *args: None)}
