"""xgrad: the models of the benchmark `models`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from benchmarks.model_problems import problem
from xgrad import Tensor, nn, optim


class LSTM(nn.Module):
    def __init__(self, width: int, classes: int, **other: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.lstm(x)[0][:, -1])  # type: ignore[no-any-return]


MODELS: dict[str, Callable[..., nn.Module]] = {"lstm": LSTM}


def step(model: str, dtype: Any = "float32", **sizes: int) -> Callable[[], Any]:
    data = problem(model, **sizes)
    module = MODELS[model](**sizes).to(dtype=getattr(xgrad, dtype))
    module.load_state_dict({name: value.astype(dtype) for name, value in data.weights.items()})
    optimizer = optim.SGD(module.parameters(), lr=data.lr)
    x, y = xgrad.asarray(data.x), xgrad.asarray(data.y)
    x = x.astype(getattr(xgrad, dtype)) if x.dtype.kind == "f" else x

    def run() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


def step_captured(model: str, **sizes: int) -> Callable[[], Any]:
    return xgrad.capture(step(model, **sizes))
