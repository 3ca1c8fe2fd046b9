"""Comparison of seeded draws on several devices, to the bit.

The draws are random numbers, initialization, shuffling and dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, random
from xgrad.backend.device import Device
from xgrad.data import DataLoader, TensorDataset
from xgrad.parity.training_parity import isolated

SEED = 20260101


@dataclass(frozen=True)
class SeededDraw:
    """Whether a seeded draw is bit-identical on a device and on cpu."""

    device: str
    what: str
    dtype: str
    equal: bool
    note: str = ""


def _initialized(name: str) -> Callable[[Device, str], list[Any]]:
    return lambda device, dtype: [
        getattr(nn.init, name)(xgrad.zeros((9, 7), dtype=dtype, device=device))
    ]


def _batches(device: Device, dtype: str) -> list[Any]:
    data = TensorDataset(xgrad.arange(103, dtype=dtype, device=device))
    return [x for _ in range(2) for (x,) in DataLoader(data, 10, shuffle=True)]


def _dropout(device: Device, dtype: str) -> list[Any]:
    layer = nn.Dropout(0.3)
    return [layer(xgrad.ones((31, 17), dtype=dtype, device=device)) for _ in range(2)]


#: Draws after `manual_seed`; integers ignore the dtype.
DRAWS: dict[str, Callable[[Device, str], list[Any]]] = {
    "rand": lambda device, dtype: [random.rand((101, 3), dtype=dtype, device=device)],
    "randn": lambda device, dtype: [random.randn((101, 3), dtype=dtype, device=device)],
    "uniform": lambda device, dtype: [
        random.uniform((101, 3), -1.0, 3.0, dtype=dtype, device=device)
    ],
    "normal": lambda device, dtype: [random.normal((101, 3), 1.0, 2.0, dtype=dtype, device=device)],
    "exponential": lambda device, dtype: [
        random.exponential((101, 3), 2.0, dtype=dtype, device=device)
    ],
    "bernoulli": lambda device, dtype: [
        random.bernoulli(xgrad.full((101, 3), 0.3, dtype=dtype, device=device))
    ],
    "randint": lambda device, dtype: [random.randint(-5, 1000, (101, 3), device=device)],
    "randperm": lambda device, dtype: [random.randperm(1001, device=device)],
    "weights of an MLP": lambda device, dtype: list(
        nn.MLP([9, 7, 5], device=device, dtype=dtype).parameters()
    ),
    **{
        f"{name}_": _initialized(f"{name}_")
        for name in "xavier_uniform xavier_normal kaiming_uniform kaiming_normal".split()
    },
    "shuffled batches": _batches,
    "dropout": _dropout,
}


def compare_seeds(device: Device, dtype: str) -> list[SeededDraw]:
    """Compare each seeded draw on a device with the draw on cpu, to the bit."""
    return [_compare_draw(what, draw, device, dtype) for what, draw in DRAWS.items()]


def _compare_draw(
    what: str, draw: Callable[[Device, str], list[Any]], device: Device, dtype: str
) -> SeededDraw:
    try:
        expected, got = (isolated(_drawn, draw, each, dtype) for each in (Device("cpu"), device))
    except Exception as error:
        return SeededDraw(str(device), what, dtype, False, f"{type(error).__name__}: {error}")
    off = sum(not _identical(a, b) for a, b in zip(expected, got, strict=True))
    return SeededDraw(
        str(device),
        what,
        dtype,
        not off,
        f"differs from cpu in {off} of {len(got)} tensors" if off else "",
    )


def _drawn(
    draw: Callable[[Device, str], list[Any]], device: Device, dtype: str
) -> list[np.ndarray]:
    xgrad.manual_seed(SEED)
    return [np.ascontiguousarray(x.detach().numpy()) for x in draw(device, dtype)]


def _identical(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
