"""Random training runs with captured steps, compared with eager runs after every event.

``CAPTURE_TRAININGS=1000`` in the environment plays 1 000 of them; ``CAPTURE_NATIVE=1`` compiles
each of their programs before its first replay, and alternates between one thread and two.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import (
    Capture,
    array,
    batch,
    compare,
    everything,
    network,
    take_turns_in_threads,
    training_step,
)
from xgrad import nn, optim
from xgrad.nn import functional

TRAININGS = int(os.environ.get("CAPTURE_TRAININGS", 60))
OPTIMIZERS = [
    lambda params: optim.SGD(params, lr=0.05),
    lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    lambda params: optim.Adam(params, lr=0.02),
    lambda params: optim.AdamW(params, lr=0.02, amsgrad=True),
    lambda params: optim.Adam(
        [{"params": [p], "lr": 0.01 * (i + 1)} for i, p in enumerate(params)]
    ),
]
EVENTS = (
    "train train train train train accumulate update evaluate evaluate clip eager look look hold"
    " hold_gradient data write freeze zero no_gradient gradient save load rate momentum seed mode"
    " hook raises"
).split()


class Run:
    """A training run with one random event at a time.

    Each event is a method that yields the values to compare.
    """

    def __init__(self, capture: Capture, seed: int) -> None:
        self.chance = random.Random(seed)
        xgrad.manual_seed(seed)
        self.model = model = network()
        self.params = params = list(model.parameters())
        self.optimizer = optimizer = OPTIMIZERS[seed % len(OPTIMIZERS)](params)
        self.held, self.hooks, self.saved = list[Any](), list[Any](), list[Any]()

        def clipped_step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
            return loss, norm

        def accumulate_step(x: Any, y: Any) -> Any:
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        def update_step(x: Any, y: Any) -> None:
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()

        train_step = training_step(model, optimizer)
        self.calls = {
            "eager": train_step,
            "train": capture(train_step),
            "clip": capture(clipped_step),
        }
        self.calls |= {"accumulate": capture(accumulate_step), "update": capture(update_step)}
        self.calls["evaluate"] = capture(
            xgrad.no_grad()(lambda x, y: (model(x), params[0].detach()))
        )

    def play(self, events: list[str]) -> Iterator[Any]:
        """Yield the values to compare, event by event."""
        for i in range(40):
            event = self.chance.choice(EVENTS)
            events.append(event)
            take_turns_in_threads(i // 10)
            p = self.chance.choice(self.params)
            (x, y) = batch(i % 7, self.chance.choice([6, 6, 6, 3]))
            yield (
                self.calls[event](x, y) if event in self.calls else getattr(self, event)(p, x, y, i)
            )
        yield everything(self.model, self.optimizer), self.held, xgrad.random.rand(2)

    def look(self, *_: Any) -> Any:
        return everything(self.model, self.optimizer)

    def data(self, p: Any, *_: Any) -> None:
        p.data = p.detach() * 0.9

    def no_gradient(self, p: Any, *_: Any) -> None:
        p.grad = None

    def zero(self, *_: Any) -> None:
        self.optimizer.zero_grad(set_to_none=self.chance.random() < 0.5)

    def save(self, *_: Any) -> None:
        self.saved[:] = self.model.state_dict(), self.optimizer.state_dict()

    def seed(self, p: Any, x: Any, y: Any, i: int) -> None:
        xgrad.manual_seed(i)

    def mode(self, *_: Any) -> None:
        self.model.train(not self.model.training)

    def hold(self, p: Any, *_: Any) -> None:
        values = p.detach().cpu()
        self.held.append(
            self.chance.choice([p.detach, values.numpy, lambda: np.from_dlpack(values)])()
        )

    def hold_gradient(self, p: Any, *_: Any) -> None:
        if p.grad is not None:
            self.held.append(self.chance.choice([p.grad, p.grad.cpu().numpy()]))

    def write(self, p: Any, *_: Any) -> None:
        with xgrad.no_grad():
            p *= 0.9

    def freeze(self, p: Any, *_: Any) -> None:
        if not p.requires_grad or sum(q.requires_grad for q in self.params) > 1:
            p.requires_grad_(not p.requires_grad)

    def gradient(self, p: Any, x: Any, y: Any, i: int) -> None:
        if p.requires_grad:
            p.grad = array(*p.shape, seed=i)

    def load(self, *_: Any) -> None:
        if self.saved:
            self.model.load_state_dict(self.saved[0])
            self.optimizer.load_state_dict(self.saved[1])

    def rate(self, *_: Any) -> None:
        self.chance.choice(self.optimizer.param_groups)["lr"] *= self.chance.choice(
            [0.5, 2, np.float32(0.5)]
        )

    def momentum(self, *_: Any) -> None:
        if "nesterov" in self.optimizer.defaults:
            self.optimizer.param_groups[0].update(
                momentum=self.chance.choice([0.0, 0.5, 0.9]), nesterov=False
            )

    def hook(self, p: Any, *_: Any) -> None:
        if self.hooks:
            self.hooks.pop().remove()
        elif p.requires_grad:
            self.hooks.append(p.register_hook(lambda g: 0.5 * g))

    def raises(self, p: Any, x: Any, y: Any, i: int) -> None:
        if x.device.type == "cpu":  # which checks values
            with pytest.raises(IndexError, match="expected target from 0 to 2"):
                self.calls["train"](x, y + 3)


@pytest.mark.parametrize("seed", range(TRAININGS))
@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
def test_random_training_captured_has_the_bits_of_eager(seed: int) -> None:
    events: list[str] = []
    try:
        compare(lambda capture: Run(capture, seed).play(events))
    except Exception as error:
        raise AssertionError(f"after {' '.join(events[len(events) // 2 :])}: {error}") from error
