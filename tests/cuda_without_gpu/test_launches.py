"""Numbers of launches of layers and of captured steps on `cuda`: kernels, products, copies, fills.

Each number is the present one, as an upper bound: it only goes down. A launch takes a GPU a few
microseconds, in which it does nothing else, so small models are as slow as they have launches.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from benchmarks import models
from benchmarks.peers import models_xgrad
from tests.cuda_without_gpu import counters
from xgrad import nn, optim
from xgrad.cli.models import lenet

F = nn.functional
RNG = np.random.default_rng(0)


def launches(work: Callable[[], Any]) -> tuple[int, Any]:
    """Return the number of launches by a function, and its result."""
    cp.cuda.Device().synchronize()
    counters.reset()
    result = work()
    cp.cuda.Device().synchronize()
    memory = "cudaMalloc", "cudaFree", "cudaGraphLaunch"
    return sum(n for name, n in counters.launches().items() if name not in memory), result


def tensor(*shape: int, grad: bool = True) -> Any:
    x = xgrad.asarray(RNG.standard_normal(shape).astype(np.float32), device="cuda")
    return x.requires_grad_() if grad else x


# Captured steps

OUTSIDE = 4  # copies to the graph, of the arguments and of numbers, and from it, of the result


class Encoder(nn.Module):
    """An encoder layer, the mean over time, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 128, dropout=0.1, batch_first=True)
        self.out = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(x).mean(axis=1))


class Last(nn.Module):
    """An LSTM, and a linear layer on its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        return self.out(self.lstm(x)[0][:, -1, :])


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


#: The model, the shape of its input, and the launches of the graph.
STEPS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "MLP": (mlp, (128, 784), 16),
    "transformer encoder": (Encoder, (2, 4, 32), 54),
    "LeNet": (lambda: lenet((28, 28), 10), (16, 1, 28, 28), 43),
    "LSTM of 16 steps": (Last, (8, 16, 16), 103),
}


@pytest.mark.parametrize("name", STEPS)
def test_launches_of_a_captured_training_step(name: str) -> None:
    make, shape, most = STEPS[name]
    xgrad.manual_seed(0)
    model = make().to("cuda")
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = tensor(*shape, grad=False), xgrad.asarray(RNG.integers(0, 10, shape[0]), device="cuda")
    for _ in range(3):
        step(x, y)
    count, _ = launches(lambda: step(x, y))
    graph = sum(calls.replayed for calls in counters.calls().values())
    assert not step.refusal
    assert graph <= most
    assert count - graph <= OUTSIDE


#: The models of `benchmarks.models`, with smaller widths and batches, which change no launches, and
#: the launches of their graphs.
MODELS: dict[str, tuple[dict[str, int], int]] = {
    "lstm": ({"batch": 2, "width": 8}, 355),
    "encoder": ({"batch": 2, "width": 16}, 89),
    "gpt": ({"batch": 1, "width": 16}, 173),
    "lenet": ({"batch": 2}, 42),
    "resnet": ({"batch": 2, "width": 2}, 150),
}


@pytest.mark.parametrize("name", MODELS)
def test_launches_of_the_models_of_the_benchmark(name: str) -> None:
    smaller, most = MODELS[name]
    (sizes,) = [x for x in models.MODELS.values() if x["model"] == name]
    sizes = {key: value for key, value in sizes.items() if key != "model"} | smaller
    step, _ = models_xgrad.trained(name, "float32", "cuda", **sizes)
    captured = xgrad.capture(step)
    for _ in range(3):
        captured()
    launches(captured)
    assert not captured.refusal
    assert sum(calls.replayed for calls in counters.calls().values()) <= most


# Layers


def attention(**options: Any) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        inputs = tensor(2, 3, 5, 8), tensor(2, 3, 5, 8), tensor(2, 3, 5, 8)
        return lambda *args: F.scaled_dot_product_attention(*args, **options), *inputs

    return make


def layer(module: Callable[[], nn.Module], *shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (module().to("cuda"), tensor(*shape))


def function(call: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: (call, *[tensor(*shape) for shape in shapes])


def classes(*numbers: int) -> Any:
    return xgrad.asarray(numbers, device="cuda")


#: The function and its arguments, and the launches of the result and of the gradients.
LAYERS: dict[str, tuple[Callable[[], tuple[Any, ...]], int, int]] = {
    "linear": (function(F.linear, (8, 16), (4, 16), (4,)), 2, 3),
    "layer norm": (
        function(lambda x, w, b: F.layer_norm(x, (16,), w, b), (4, 8, 16), (16,), (16,)),
        1,
        2,
    ),
    "rms norm": (function(lambda x, w: F.rms_norm(x, (16,), w), (4, 8, 16), (16,)), 1, 2),
    "batch norm": (
        function(
            lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            (4, 6, 8, 8),
            (6,),
            (6,),
        ),
        2,
        4,
    ),
    "group norm": (layer(lambda: nn.GroupNorm(2, 6), 4, 6, 8, 8), 1, 4),
    "GELU": (function(F.gelu, (8, 16)), 1, 1),
    "GELU by tanh": (function(lambda x: F.gelu(x, "tanh"), (8, 16)), 1, 1),
    "ReLU": (function(F.relu, (8, 16)), 1, 1),
    "softmax": (function(lambda x: F.softmax(x, axis=-1), (8, 16)), 1, 1),
    "attention": (attention(), 3, 5),
    "causal attention": (attention(is_causal=True), 3, 5),
    "attention with dropout": (attention(dropout_p=0.1), 3, 5),
    "convolution 3x3": (layer(lambda: nn.Conv2d(3, 8, 3, padding=1), 4, 3, 8, 8), 3, 8),
    "convolution 7x7": (layer(lambda: nn.Conv2d(3, 8, 7, padding=3), 4, 3, 8, 8), 3, 8),
    "maximum pool 3x3": (function(lambda x: F.max_pool2d(x, 3), (4, 3, 9, 9)), 1, 2),
    "maximum pool 2x2": (function(lambda x: F.max_pool2d(x, 2), (4, 3, 8, 8)), 1, 2),
    "average pool 2x2": (function(lambda x: F.avg_pool2d(x, 2), (4, 3, 8, 8)), 2, 2),
    "LSTM of 16 steps": (layer(lambda: nn.LSTM(8, 12), 16, 4, 8), 44, 45),
    "GRU of 16 steps": (layer(lambda: nn.GRU(8, 12), 16, 4, 8), 40, 48),
    "embedding": (function(lambda w: F.embedding(classes(1, 2, 1), w), (5, 8)), 2, 2),
    "cross-entropy": (function(lambda x: F.cross_entropy(x, classes(1, 2, 3, 0)), (4, 5)), 2, 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_launches_of_a_layer_and_of_its_gradients(name: str) -> None:
    make, forward, backward = LAYERS[name]
    call, *inputs = make()
    for _ in range(2):  # the first compiles, and allocates
        for x in inputs:
            x.grad = None
        forward_count, out = launches(lambda: call(*inputs))
        out = out[0] if isinstance(out, tuple) else out
        g = tensor(*out.shape, grad=False)
        backward_count, _ = launches(lambda out=out, g=g: out.backward(g))
    assert forward_count <= forward
    assert backward_count <= backward


# Blocks


@pytest.mark.parametrize(
    ("shape", "axis"), [((8192, 768), 0), ((64, 256, 32, 32), (0, 2, 3)), ((4096, 4, 64), (0, 1))]
)
def test_sums_over_leading_axes_have_blocks_for_all_multiprocessors(
    shape: tuple[int, ...], axis: Any
) -> None:
    """A GPU has up to about 150 multiprocessors; CuPy gave 24 blocks to the first of these sums."""
    x = xgrad.ones(shape, device="cuda")
    counters.reset()
    total = x.sum(axis=axis)
    first = counters.grids()[0]
    assert np.prod(first.grid) >= 300
    assert total.tolist() == [x.size / total.size] * total.size
