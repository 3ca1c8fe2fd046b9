"""Tensors that a step stores or finds stored: lazily made caches, and tensors with a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import xgrad
from capture.twins import Capture, array, compare, compare_replays, everything
from xgrad import nn, optim
from xgrad.capture import CaptureWarning

# Caches


class Masked(nn.Module):
    """A layer with a mask that is made for the length of the first input, and kept."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.mask = nn.Linear(3, 3), None

    def forward(self, x: Any) -> Any:
        """Return masked sums."""
        if self.mask is None or self.mask.shape[0] != len(x):
            self.mask = xgrad.tril(xgrad.ones((len(x), len(x))))
        return self.mask @ self.linear(x)


class Rotating(Masked):
    """A layer with a tuple as its cache."""

    def forward(self, x: Any) -> Any:
        """Return rotated features."""
        if self.mask is None or len(self.mask[0]) != len(x):
            angles = xgrad.arange(len(x), dtype=xgrad.float32)[:, None]
            self.mask = xgrad.cos(angles), xgrad.sin(angles)
        return self.linear(x) * self.mask[0] + self.mask[1]


class ByLength(Masked):
    """A layer with a dict of masks by length."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: dict[int, Any] = {}

    def forward(self, x: Any) -> Any:
        """Return masked sums."""
        if len(x) not in self.masks:
            self.masks[len(x)] = xgrad.triu(xgrad.ones((len(x), len(x))))
        return self.masks[len(x)] @ self.linear(x)


@pytest.mark.parametrize("make", [Masked, Rotating, ByLength])
@pytest.mark.parametrize("trains", [False, True])
def test_cache_made_at_the_first_call_of_a_length_is_found_by_the_next(
    make: Callable[[], Masked], trains: bool
) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(1)
        model = make()
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            if not trains:
                return model(x).detach()
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = capture(step)
        for i, length in enumerate([4, 4, 4, 6, 6, 6, 6, 4, 4, 4]):
            yield captured(array(length, 3, seed=i))
            yield everything(model, optimizer)

    compare_replays(scenario)


@pytest.mark.parametrize(
    "keep",
    [
        lambda model, kept, y: setattr(model, "last", y),
        lambda model, kept, y: setattr(kept, "last", y),
        lambda model, kept, y: model.history.append(y),
    ],
    ids=["attribute of a module", "attribute of an object", "list"],
)
@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
def test_tensor_stored_at_each_call_refuses_at_the_second(keep: Any) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(1)
        model, kept = nn.Linear(3, 3), SimpleNamespace()
        model.history = []

        @capture
        def step(x: Any) -> Any:
            y = model(x).detach()
            keep(model, kept, y)
            return y * 2

        for i in range(5):
            yield step(array(2, 3, seed=i))
            yield getattr(model, "last", None), getattr(kept, "last", None), list(model.history)

    (captured,) = compare(scenario)
    assert captured.refusal is not None and captured.recordings == 2


# Tensors with a graph from before the step


def stored(place: str) -> tuple[Callable[[Any], Any], str]:
    """Return a step that uses a computed tensor, and the name of the tensor."""
    weight = array(3, seed=1).requires_grad_()
    hidden, model, held = weight * 2, nn.Linear(3, 3), {"h": weight * 3}
    model.hidden = weight * 2
    model.register_buffer("average", weight * 4)
    steps: dict[str, tuple[Callable[[Any], Any], str]] = {
        "module": (lambda x: model.hidden.detach() * x, "model.hidden"),
        "buffer": (lambda x: (model(x) + model.average).sum().backward(), "model.average"),
        "closure": (lambda x: hidden.detach() + x, "hidden"),
        "dict": (lambda x: (x * held["h"]).detach(), "held['h']"),
        "returned": (lambda x: (x * 2, hidden), "hidden"),
        "write": (lambda x: (hidden.__iadd__(x), x * 2)[1], "hidden"),
    }
    return steps[place]


@pytest.mark.parametrize("place", ["module", "buffer", "closure", "dict", "returned", "write"])
def test_stored_tensor_with_a_graph_refuses_by_name(place: str) -> None:
    step, name = stored(place)
    captured = xgrad.capture(step)
    with pytest.warns(CaptureWarning) as caught:
        captured(array(3))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{name}, a tensor of the state that was computed with a graph" in message
    assert f"store {name}.detach()" in message


def test_stored_tensor_with_a_graph_that_the_step_does_not_use_is_no_matter() -> None:
    weight = array(3, seed=1).requires_grad_()
    model = nn.Linear(3, 3)
    model.hidden = weight * 2
    step = xgrad.capture(lambda x: model(x).detach())
    for i in range(3):
        step(array(2, 3, seed=i))
    assert step.refusal is None and step.recordings == 1
