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
        out: Tensor = self.output(self.lstm(x)[0][:, -1])
        return out


class Encoder(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, classes: int, **other: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(xgrad.mean(self.encoder(x), axis=1))
        return out


class GPT(nn.Module):
    def __init__(self, length: int, width: int, heads: int, layers: int, classes: int, **other: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.tokens = nn.Embedding(classes, width)
        self.positions = nn.PositionalEncoding(width, length, learned=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.output = nn.Linear(width, classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.encoder(self.positions(self.tokens(x)), is_causal=True)
        out: Tensor = self.output(x).reshape((-1, self.output.out_features))
        return out


MODELS: dict[str, Callable[..., nn.Module]] = {"lstm": LSTM, "encoder": Encoder, "gpt": GPT}


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
