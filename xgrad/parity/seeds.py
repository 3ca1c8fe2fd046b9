"""Equal seeds give equal bits on every device: numbers, weights, shuffles, dropout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import xgrad
from xgrad import nn, random
from xgrad.backend.device import Device
from xgrad.data import DataLoader, TensorDataset
from xgrad.parity.training import isolated

SEED = 20260101


@dataclass(frozen=True)
class Seed:
    """Whether what a seed determines is the same, to the bit, on a device as on cpu."""

    device: str
    what: str
    dtype: str
    equal: bool
    note: str = ""


def _weights(device: Device, dtype: str) -> list[Any]:
    return list(nn.MLP([9, 7, 5], device=device, dtype=dtype).parameters())


def _initialised(name: str) -> Callable[[Device, str], list[Any]]:
    def draw(device: Device, dtype: str) -> list[Any]:
        weight = xgrad.zeros((9, 7), dtype=dtype, device=device)
        return [getattr(nn.init, name)(weight)]

    return draw


def _batches(device: Device, dtype: str) -> list[Any]:
    data = TensorDataset(xgrad.arange(103, dtype=dtype, device=device))
    return [x for _ in range(2) for (x,) in DataLoader(data, 10, shuffle=True)]


def _dropout(device: Device, dtype: str) -> list[Any]:
    layer: Any = nn.Dropout(0.3)  # type: ignore[attr-defined, unused-ignore]
    return [layer(xgrad.ones((31, 17), dtype=dtype, device=device)) for _ in range(2)]


#: What is drawn, after `manual_seed`, on each device. Integers have no dtype to choose.
DRAWS: dict[str, Callable[[Device, str], list[Any]]] = {
    "rand": lambda device, dtype: [random.rand((101, 3), dtype=dtype, device=device)],
    "randn": lambda device, dtype: [random.randn((101, 3), dtype=dtype, device=device)],
    "uniform": lambda device, dtype: [random.uniform((101, 3), -1.0, 3.0, dtype=dtype, device=device)],
    "normal": lambda device, dtype: [random.normal((101, 3), 1.0, 2.0, dtype=dtype, device=device)],
    "randint": lambda device, dtype: [random.randint(-5, 1000, (101, 3), device=device)],
    "randperm": lambda device, dtype: [random.randperm(1001, device=device)],
    "weights of an MLP": _weights,
    **{
        name: _initialised(name)
        for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_")
    },
    "shuffled batches": _batches,
}
if hasattr(nn, "Dropout"):
    DRAWS["dropout"] = _dropout


def compare_seeds(device: Device, dtype: str) -> list[Seed]:
    """Return for everything that is drawn whether it has the same bits on a device as on cpu."""
    return [_compared(what, draw, device, dtype) for what, draw in DRAWS.items()]


def _compared(what: str, draw: Callable[[Device, str], list[Any]], device: Device, dtype: str) -> Seed:
    try:
        ours, theirs = (isolated(_drawn, draw, place, dtype) for place in (Device("cpu"), device))
    except Exception as error:
        return Seed(str(device), what, dtype, False, f"{type(error).__name__}: {error}")
    off = [k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if not _same(a, b)]
    note = "" if not off else f"differs from cpu in {len(off)} of {len(ours)} tensors"
    return Seed(str(device), what, dtype, not off, note)


def _drawn(draw: Callable[[Device, str], list[Any]], device: Device, dtype: str) -> list[np.ndarray]:
    xgrad.manual_seed(SEED)
    return [np.ascontiguousarray(x.detach().numpy()) for x in draw(device, dtype)]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
