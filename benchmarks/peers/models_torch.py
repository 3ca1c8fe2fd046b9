"""PyTorch, eager: the models of the benchmark `models`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.model_problems import problem

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


class LSTM(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, classes: int, **other: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        return self.output(self.lstm(x)[0][:, -1])


MODELS: dict[str, Callable[..., Any]] = {"lstm": LSTM}


def step(model: str, **sizes: int) -> Callable[[], Any]:
    data = problem(model, **sizes)
    module = MODELS[model](**sizes)
    module.load_state_dict({name: torch.from_numpy(value) for name, value in data.weights.items()})
    optimizer = torch.optim.SGD(module.parameters(), lr=data.lr)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)

    def run() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run
