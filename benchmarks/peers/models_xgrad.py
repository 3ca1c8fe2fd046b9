"""xgrad: the models of the benchmark `models`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xgrad
from benchmarks.device_figures import empty_pool, of_step
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
    def __init__(
        self, length: int, width: int, heads: int, layers: int, classes: int, **other: int
    ) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width,
            heads,
            4 * width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.tokens = nn.Embedding(classes, width)
        self.positions = nn.PositionalEncoding(width, length, learned=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width))
        self.output = nn.Linear(width, classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.encoder(self.positions(self.tokens(x)), is_causal=True)
        out: Tensor = self.output(x).reshape((-1, self.output.out_features))
        return out


class LeNet(nn.Module):
    def __init__(self, size: int, classes: int, **other: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(16 * ((size // 2 - 4) // 2) ** 2, 120)
        self.linear2 = nn.Linear(120, 84)
        self.output = nn.Linear(84, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.max_pool2d(nn.functional.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(nn.functional.relu(self.conv2(x)), 2)
        x = nn.functional.relu(self.linear1(x.flatten(1)))
        out: Tensor = self.output(nn.functional.relu(self.linear2(x)))
        return out


class Block(nn.Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        stride = out // channels
        self.conv1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        if stride > 1:
            self.shortcut = nn.Conv2d(channels, out, 1, stride, bias=False)
            self.norm3 = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        short = self.norm3(self.shortcut(x)) if hasattr(self, "shortcut") else x
        x = nn.functional.relu(self.norm1(self.conv1(x)))
        return nn.functional.relu(self.norm2(self.conv2(x)) + short)


class ResNet(nn.Module):
    def __init__(self, width: int, classes: int, **other: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            Block(width, width), Block(width, 2 * width), Block(2 * width, 4 * width)
        )
        self.output = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(nn.functional.relu(self.norm(self.conv(x))))
        out: Tensor = self.output(xgrad.mean(x, axis=(2, 3)))
        return out


MODELS: dict[str, Callable[..., nn.Module]] = {
    "lstm": LSTM,
    "encoder": Encoder,
    "gpt": GPT,
    "lenet": LeNet,
    "resnet": ResNet,
}


def step(model: str, dtype: Any = "float32", **sizes: int) -> Callable[[], Any]:
    return trained(model, dtype, "cpu", **sizes)[0]


def trained(
    model: str, dtype: Any, device: str, **sizes: int
) -> tuple[Callable[[], Any], nn.Module]:
    """Return a step, and the model that it trains."""
    data = problem(model, **sizes)
    module = MODELS[model](**sizes).to(device, dtype=getattr(xgrad, dtype))
    module.load_state_dict(
        {name: value.astype(dtype) for name, value in data.weights.items()}, strict=False
    )
    optimizer = optim.SGD(module.parameters(), lr=data.lr)
    x, y = xgrad.asarray(data.x, device=device), xgrad.asarray(data.y, device=device)
    x = x.astype(getattr(xgrad, dtype)) if x.dtype.kind == "f" else x

    def run() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run, module


def step_captured(model: str, **sizes: int) -> Callable[[], Any]:
    """Return a step that has native kernels at once, instead of after 50 replays."""
    return xgrad.capture(step(model, **sizes), native=True)


Described = tuple[Callable[[], Any], Callable[[], dict[str, int]]]


def step_on(model: str, device: str, **sizes: int) -> Described:
    """Return a step on a device, and a function that returns its figures beside its time."""
    empty_pool(device)
    call = trained(model, "float32", device, **sizes)[0]
    return call, lambda: of_step(call, device)


def captured_on(model: str, device: str, **sizes: int) -> Described:
    empty_pool(device)
    call = xgrad.capture(trained(model, "float32", device, **sizes)[0])
    return call, lambda: of_step(call, device)


def step_captured_by_numpy(model: str, **sizes: int) -> Callable[[], Any]:
    return xgrad.capture(step(model, **sizes), native=False)
