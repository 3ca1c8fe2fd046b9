"""Independent training runs in threads at once have the bits of runs one after another.

Each thread has modes of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.core.graph import Clock
from xgrad.data import DataLoader, TensorDataset

THREADS = 8


@pytest.fixture(autouse=True)
def _switch_threads_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def model(number: int) -> nn.Module:
    """Return a small network, of another kind for each remainder of a number."""
    kinds: list[Callable[[], nn.Module]] = [
        lambda: nn.MLP([6, 8 + number, 3], dropout=0.2),
        lambda: nn.Sequential(
            nn.Unflatten(1, (1, 2, 3)),
            nn.Conv2d(1, 4, 2),
            nn.BatchNorm2d(4),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(8, 3),
        ),
        lambda: nn.Sequential(
            nn.Linear(6, 8), nn.LayerNorm(8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 3)
        ),
    ]
    return kinds[number % len(kinds)]()


def train(number: int, captured: bool) -> list[np.ndarray]:
    """Return the losses and weights of a training run that a number determines."""
    xgrad.manual_seed(number)
    net = model(number)
    optimizer = (
        optim.Adam(net.parameters(), lr=0.01)
        if number % 2
        else optim.SGD(net.parameters(), 0.1, momentum=0.9)
    )
    data = TensorDataset(xgrad.random.randn((40, 6)), xgrad.random.randint(0, 3, 40))

    def step(x: xgrad.Tensor, y: xgrad.Tensor) -> xgrad.Tensor:
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = xgrad.capture(step) if captured else step
    losses = [run(x, y) for _ in range(3) for x, y in DataLoader(data, batch_size=16, shuffle=True)]
    return [x.detach().numpy() for x in [*losses, *net.state_dict().values()]]


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
def test_training_in_threads_has_the_bits_of_training_one_by_one(captured: bool) -> None:
    expected = [train(number, captured) for number in range(THREADS)]
    barrier = Barrier(THREADS, timeout=60)

    def start(number: int) -> list[np.ndarray]:
        barrier.wait()
        return train(number, captured)

    with ThreadPoolExecutor(THREADS) as pool:
        for one, other in zip(expected, pool.map(start, range(THREADS)), strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)


def test_modes_of_a_thread_leave_the_others_as_they_are() -> None:
    barrier = Barrier(THREADS, timeout=60)

    def check(number: int) -> bool:
        device, dtype = ("cpu", "strict")[number % 2], ("float32", "float64")[number // 2 % 2]
        before = xgrad.get_default_dtype()
        xgrad.set_default_dtype(dtype)
        try:
            for _ in range(20):
                with (
                    (xgrad.no_grad if number % 3 else xgrad.enable_grad)(),
                    xgrad.default_device(device),
                ):
                    barrier.wait()
                    x = xgrad.ones(2, requires_grad=True) * 2
                    assert (str(x.device), str(x.dtype), x.requires_grad) == (
                        device,
                        dtype,
                        number % 3 == 0,
                    )
            return True
        finally:
            xgrad.set_default_dtype(before)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(check, range(THREADS)))


def test_last_change_is_the_latest_of_two_threads() -> None:
    """A thread that is interrupted between its number and the clock must not set the clock back."""
    clock = Clock()
    numbers = clock.numbers
    other = Thread(target=clock.change)

    def interrupted() -> Iterator[int]:
        number = next(numbers)
        other.start()
        other.join(0.1)  # the other thread changes a value, if nothing makes it wait
        yield number
        yield from numbers

    clock.numbers = interrupted()  # type: ignore[assignment]
    first = clock.change()
    other.join()
    assert (first, clock.last_change) == (1, 2)
