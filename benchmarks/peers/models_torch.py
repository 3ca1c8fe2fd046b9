"""PyTorch, eager, compiled and as a CUDA graph: the models of the benchmark `models`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.device_figures import nodes
from benchmarks.model_problems import problem
from benchmarks.peers.pytorch import compiled_step, graph_of, require

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


class LSTM(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, classes: int, **other: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        return self.output(self.lstm(x)[0][:, -1])


class Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, heads: int, layers: int, classes: int, **other: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        return self.output(self.encoder(x).mean(1))


class GPT(nn.Module):  # type: ignore[misc]
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
        self.positions = nn.ParameterDict({"encoding": torch.empty(length, width)})
        self.encoder = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.output = nn.Linear(width, classes, bias=False)

    def forward(self, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        x = self.encoder(self.tokens(x) + self.positions["encoding"], mask, is_causal=True)
        return self.output(x).reshape((-1, self.output.out_features))


class LeNet(nn.Module):  # type: ignore[misc]
    def __init__(self, size: int, classes: int, **other: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(16 * ((size // 2 - 4) // 2) ** 2, 120)
        self.linear2 = nn.Linear(120, 84)
        self.output = nn.Linear(84, classes)

    def forward(self, x: Any) -> Any:
        x = nn.functional.max_pool2d(nn.functional.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(nn.functional.relu(self.conv2(x)), 2)
        x = nn.functional.relu(self.linear1(x.flatten(1)))
        return self.output(nn.functional.relu(self.linear2(x)))


class Block(nn.Module):  # type: ignore[misc]
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

    def forward(self, x: Any) -> Any:
        short = self.norm3(self.shortcut(x)) if hasattr(self, "shortcut") else x
        x = nn.functional.relu(self.norm1(self.conv1(x)))
        return nn.functional.relu(self.norm2(self.conv2(x)) + short)


class ResNet(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, classes: int, **other: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            Block(width, width), Block(width, 2 * width), Block(2 * width, 4 * width)
        )
        self.output = nn.Linear(4 * width, classes)

    def forward(self, x: Any) -> Any:
        x = self.blocks(nn.functional.relu(self.norm(self.conv(x))))
        return self.output(x.mean((2, 3)))


MODELS: dict[str, Callable[..., Any]] = {
    "lstm": LSTM,
    "encoder": Encoder,
    "gpt": GPT,
    "lenet": LeNet,
    "resnet": ResNet,
}


def step(model: str, **sizes: int) -> Callable[[], Any]:
    return model_and_step(model, lambda forward: forward, "cpu", **sizes)[1]


def step_compiled(model: str, **sizes: int) -> Callable[[], Any]:
    """Return a step with compiled forward pass, loss and backward pass; needs a C++ compiler."""
    return compiled_step(*model_and_step(model, torch.compile, "cpu", **sizes))


Described = tuple[Callable[[], Any], Callable[[], dict[str, int]]]


def step_on(model: str, device: str, **sizes: int) -> Described:
    """Return a step on a device, and a function that returns its figures beside its time."""
    return fresh(model, lambda forward: forward, device, **sizes)[1], lambda: reserved(device)


def compiled_on(model: str, device: str, **sizes: int) -> Described:
    torch.compiler.reset()  # or shapes that differ from an earlier model's would be dynamic
    return compiled_step(*fresh(model, torch.compile, device, **sizes)), lambda: reserved(device)


def graph_on(model: str, device: str, **sizes: int) -> Described:
    """Return a replay of the whole step as a CUDA graph."""
    replay, graph = graph_of(*fresh(model, lambda forward: forward, device, **sizes), device)

    def figures() -> dict[str, int]:
        # of PyTorch versions that keep the graph
        count = nodes(graph.raw_cuda_graph()) if hasattr(graph, "raw_cuda_graph") else None
        return reserved(device) | ({} if count is None else {"launches": count})

    return replay, figures


def fresh(
    model: str, wrap: Callable[[Any], Any], device: str, **sizes: int
) -> tuple[Any, Callable[[], Any]]:
    """Return a model and its step in full float32, after the memory of the last one is free."""
    require(device)
    if device != "cpu":
        torch.cuda.empty_cache()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return model_and_step(model, wrap, device, **sizes)


def reserved(device: str) -> dict[str, int]:
    return {} if device == "cpu" else {"bytes reserved": torch.cuda.memory_reserved()}


def model_and_step(
    model: str, wrap: Callable[[Any], Any], device: str, **sizes: int
) -> tuple[Any, Callable[[], Any]]:
    data = problem(model, **sizes)
    module = MODELS[model](**sizes).to(device)
    module.load_state_dict(
        {name: torch.from_numpy(value) for name, value in data.weights.items()}, strict=False
    )
    optimizer = torch.optim.SGD(module.parameters(), lr=data.lr)
    x, y = torch.from_numpy(data.x).to(device), torch.from_numpy(data.y).to(device)
    forward = wrap(lambda x, y: nn.functional.cross_entropy(module(x), y))

    def run() -> Any:
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return module, run
