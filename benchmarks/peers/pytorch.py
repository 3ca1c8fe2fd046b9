"""PyTorch: eager, compiled, and as a CUDA graph."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers import BATCH, LeftOut, repeated, statements
from benchmarks.problems import Array, Images, first_weights, mlp, operands
from benchmarks.reach.path import outputs_of

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def require(device: str) -> None:
    """Raise LeftOut if PyTorch does not find a device."""
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise LeftOut(f"this PyTorch finds no device {device}")


def model_of(weights: list[Array], biases: list[Array], device: str = "cpu") -> Any:
    require(device)
    layers: list[Any] = []
    for w, b in zip(weights, biases, strict=True):
        layers += [nn.Linear(w.shape[1], w.shape[0], device=device), nn.ReLU()]
        layers[-2].load_state_dict({"weight": torch.from_numpy(w), "bias": torch.from_numpy(b)})
    return nn.Sequential(*layers[:-1])


def model_and_step(
    sizes: Sequence[int],
    batch: int,
    device: str,
    tf32: bool = False,
    wrap: Callable[[Any], Any] = lambda forward: forward,
) -> tuple[Any, Callable[[], Any]]:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    problem = mlp(sizes, batch)
    model = model_of(problem.weights, problem.biases, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=problem.lr)
    x, y = torch.tensor(problem.x, device=device), torch.tensor(problem.y, device=device)
    forward = wrap(lambda x, y: cross_entropy(model(x), y))

    def run() -> Any:
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return model, run


def step(
    sizes: Sequence[int], batch: int, device: str = "cpu", tf32: bool = False
) -> Callable[[], Any]:
    return model_and_step(sizes, batch, device, tf32)[1]


def step_compiled(sizes: Sequence[int], batch: int) -> Callable[[], Any]:
    """Return a step with compiled forward pass, loss and backward pass; needs a C++ compiler."""
    return compiled_step(*model_and_step(sizes, batch, "cpu", wrap=torch.compile))


def compiled_step(model: Any, run: Callable[[], Any]) -> Callable[[], Any]:
    """Return a step that compiles in its first call, after this call.

    The model is left as it was.
    """
    start = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        run()
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise LeftOut(f"torch.compile fails: {type(error).__name__}: {reason}") from error
    model.load_state_dict(start)
    return run


def step_graph(
    sizes: Sequence[int], batch: int, device: str = "cuda", tf32: bool = False
) -> Callable[[], Any]:
    """Return a replay of the whole step as a CUDA graph."""
    return graph_of(*model_and_step(sizes, batch, device, tf32), device)[0]


def graph_of(model: Any, run: Callable[[], Any], device: str) -> tuple[Callable[[], Any], Any]:
    """Return a replay of a step as a CUDA graph, as in PyTorch's documentation, and the graph.

    The model is left as it was.
    """
    if not device.startswith("cuda"):
        raise LeftOut("CUDA graphs need CUDA")
    start = {name: value.clone() for name, value in model.state_dict().items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad()
    kept = {"keep_graph": True} if hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph") else {}
    graph = torch.cuda.CUDAGraph(**kept)  # kept, so that its nodes can be counted
    with torch.cuda.graph(graph):
        loss = run()
    model.load_state_dict(start)  # in place, in the memory of the graph

    def replay() -> Any:
        graph.replay()
        return loss

    return replay, graph


OPS = statements("torch.relu(x)")


def tensors(device: str) -> list[Any]:
    require(device)
    return [torch.tensor(value, device=device, requires_grad=True) for value in operands()]


def op(name: str, device: str = "cpu") -> Callable[[], Any]:
    x, y = tensors(device)
    run = repeated(OPS, name, x=x, y=y, torch=torch)
    return torch.no_grad()(run) if name == "add, no grad" else run


def chain(length: int, device: str = "cpu") -> Callable[[], Any]:
    x, y = tensors(device)
    ones = torch.ones_like(x)

    def run() -> Any:
        z = x
        for _ in range(length // 2):
            z = (z + y) * y
        z.backward(ones)
        result = y.grad
        x.grad = y.grad = None
        return result

    return run


def epochs(
    data: Images,
    sizes: Sequence[int],
    seed: int,
    device: str = "cpu",
    fused: bool = False,
    loader: bool = False,
) -> tuple[Callable[[float], Any], Callable[[Array], Array]]:
    """Return functions that train and predict; batches are sliced by hand, or from a loader."""
    torch.manual_seed(seed)
    model = model_of(*first_weights(sizes, seed), device)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused or None)
    images, labels = (torch.from_numpy(x).to(device) for x in (data.train, data.train_labels))
    batches = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True)

    def sliced() -> Any:
        for chosen in torch.randperm(len(images), device=device).split(BATCH):
            yield images[chosen], labels[chosen]

    def train(lr: float) -> None:
        optimizer.param_groups[0]["lr"] = lr
        for x, y in batches if loader else sliced():
            optimizer.zero_grad()
            cross_entropy(model(x), y).backward()
            optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    def predict(x: Array) -> Any:
        with torch.no_grad():
            return model(torch.from_numpy(x).to(device)).argmax(1).cpu().numpy()

    return train, predict


epochs_fused = partial(epochs, fused=True)
epochs_loader = partial(epochs, loader=True)


def additions(length: int) -> list[float]:
    x = torch.tensor(1.0, requires_grad=True)
    times = [time.perf_counter()]
    y = x
    for _ in range(length):
        y = y + 1.0
    times.append(time.perf_counter())
    y.backward()
    times.append(time.perf_counter())
    del y
    times.append(time.perf_counter())
    assert x.grad.item() == 1
    return times


def to_device(size: int, device: str, pinned: bool = False) -> Callable[[], Any]:
    tensors(device)
    host = torch.from_numpy(np.ones(size // 4, np.float32))
    if pinned and device == "cuda":
        host = host.pin_memory()

    def run() -> float:
        host.to(device, non_blocking=True, copy=True)
        if device == "cuda":
            torch.cuda.synchronize()
        return 0.0

    return run


pinned_to_device = partial(to_device, pinned=True)


def to_host(size: int, device: str) -> Callable[[], Any]:
    tensors(device)
    there = torch.ones(size // 4, device=device)
    return lambda: float(there.to("cpu", copy=True).numpy()[0])


def to_pinned_host(size: int, device: str) -> Callable[[], Any]:
    tensors(device)
    there = torch.ones(size // 4, device=device)
    host = torch.empty(size // 4, pin_memory=device == "cuda")

    def run() -> float:
        host.copy_(there)
        return float(host.numpy()[0])

    return run


def pullback(
    call: Callable[..., Any],
    inputs: Sequence[Array],
    varied: Sequence[bool],
    weights: Sequence[Array],
) -> tuple[list[Array], list[Array] | None]:
    leaves = [torch.tensor(x, requires_grad=moves) for x, moves in zip(inputs, varied, strict=True)]
    # Clones, since PyTorch refuses writes to leaves.
    outputs = outputs_of(call(*(x.clone() for x in leaves)))
    values = [
        x.detach().resolve_conj().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
        for x in outputs
    ]
    differentiable = [
        (x, torch.tensor(w, dtype=x.dtype))
        for x, w in zip(outputs, weights, strict=True)
        if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    if not differentiable:
        return values, None
    wanted = [x for x in leaves if x.requires_grad]
    gradients = torch.autograd.grad(
        [x for x, _ in differentiable], wanted, [w for _, w in differentiable], allow_unused=True
    )
    return values, [
        np.zeros(x.shape) if g is None else g.numpy()
        for x, g in zip(wanted, gradients, strict=True)
    ]
