"""xgrad, with its public API."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xgrad
from benchmarks.peers import BATCH, repeated, statements
from benchmarks.problems import Array, Images, first_weights, mlp, operands
from benchmarks.reach.path import outputs_of
from xgrad import nn, optim
from xgrad.data import DataLoader, TensorDataset


def model_of(
    sizes: Sequence[int], weights: list[Array], biases: list[Array], device: str = "cpu"
) -> nn.MLP:
    model = nn.MLP(sizes, device=device)
    values = [value for pair in zip(weights, biases, strict=True) for value in pair]
    model.load_state_dict(dict(zip(model.state_dict(), values, strict=True)))
    return model


def step(
    sizes: Sequence[int], batch: int, device: str = "cpu", tf32: bool = False
) -> Callable[[], Any]:
    if tf32 and device != "cpu":
        xgrad.set_tf32(True, device)
    problem = mlp(sizes, batch)
    model = model_of(sizes, problem.weights, problem.biases, device)
    optimizer = optim.SGD(model.parameters(), lr=problem.lr)
    x, y = xgrad.asarray(problem.x, device=device), xgrad.asarray(problem.y, device=device)

    def run() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


def step_captured(
    sizes: Sequence[int], batch: int, device: str = "cpu", tf32: bool = False
) -> Callable[[], Any]:
    return xgrad.capture(step(sizes, batch, device, tf32))


def step_native(sizes: Sequence[int], batch: int, device: str = "cpu") -> Callable[[], Any]:
    """Return a captured step that has native kernels at once, instead of after 50 replays."""
    return xgrad.capture(step(sizes, batch, device), native=True)


def recording(sizes: Sequence[int], batch: int, device: str = "cpu") -> Callable[[], float]:
    """Return a function that measures the first captured call, in eager steps.

    The call includes planning.
    """
    eager = step(sizes, batch, device)
    # In these calls, the optimizer packs parameters, and modules of capture are imported.
    for run in (eager, xgrad.capture(eager)):
        float(run())

    def seconds(run: Callable[[], Any], steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            loss = run()
        float(loss)
        return time.perf_counter() - start

    def cost() -> float:
        eager_step = min(seconds(eager, 10) / 10 for _ in range(10))
        return seconds(xgrad.capture(eager), 1) / eager_step

    return cost


OPS = statements("xgrad.relu(x)")


def op(name: str, device: str = "cpu") -> Callable[[], Any]:
    x, y = (xgrad.Tensor(value, device=device, requires_grad=True) for value in operands())
    run = repeated(OPS, name, x=x, y=y, xgrad=xgrad)
    return xgrad.no_grad()(run) if name == "add, no grad" else run


def library_op(name: str, device: str = "cpu") -> Callable[[], Any]:
    """Return the op on the arrays of a device, without xgrad: NumPy's or CuPy's."""
    on = xgrad.Device(device)
    x, y = (on.backend.from_host(value, on.index) for value in operands())
    return repeated(statements("xp.maximum(x, zero)"), name, x=x, y=y, xp=on.xp, zero=0 * x)


def chain(length: int, device: str = "cpu") -> Callable[[], Any]:
    x, y = (xgrad.Tensor(value, device=device, requires_grad=True) for value in operands())
    ones = xgrad.ones_like(x)

    def run() -> Any:
        z = x
        for _ in range(length // 2):
            z = (z + y) * y
        z.backward(ones)
        result = y.grad
        x.grad = y.grad = None
        return result

    return run


Epochs = tuple[Callable[[float], Any], Callable[[Array], Array]]


def epochs(
    data: Images, sizes: Sequence[int], seed: int, device: str = "cpu", capture: bool = False
) -> Epochs:
    xgrad.manual_seed(seed)
    model = model_of(sizes, *first_weights(sizes, seed), device)
    optimizer = optim.Adam(model.parameters())
    images, labels = (xgrad.asarray(x, device=device) for x in (data.train, data.train_labels))
    dataset = TensorDataset(images, labels)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)

    def learn(x: xgrad.Tensor, y: xgrad.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    step = xgrad.capture(learn) if capture else learn

    def train(lr: float) -> None:
        optimizer.param_groups[0]["lr"] = lr
        for x, y in loader:
            step(x, y)
        images.device.synchronize()

    @xgrad.no_grad()
    def predict(x: Array) -> Array:
        classes: Array = model(xgrad.asarray(x, device=device)).argmax(1).cpu().numpy()
        return classes

    return train, predict


def epochs_captured(data: Images, sizes: Sequence[int], seed: int, device: str = "cpu") -> Epochs:
    return epochs(data, sizes, seed, device, capture=True)


def additions(length: int) -> list[float]:
    x = xgrad.Tensor(1.0, requires_grad=True)
    times = [time.perf_counter()]
    y = x
    for _ in range(length):
        y = y + 1.0
    times.append(time.perf_counter())
    y.backward()
    times.append(time.perf_counter())
    del y
    times.append(time.perf_counter())
    assert x.grad is not None and x.grad.item() == 1
    return times


def to_device(size: int, device: str) -> Callable[[], Any]:
    return _move(np.ones(size // 4, np.float32), device)


def pinned_to_device(size: int, device: str) -> Callable[[], Any]:
    """Transfer an array that came from the device, and is therefore in pinned memory."""
    return _move(xgrad.ones(size // 4, device=device).cpu().numpy(), device)


def _move(host: Array, device: str) -> Callable[[], Any]:
    on = xgrad.Device(device)

    def run() -> float:
        xgrad.asarray(host, device=device)
        on.synchronize()
        return 0.0

    return run


def to_host(size: int, device: str) -> Callable[[], Any]:
    there = xgrad.ones(size // 4, device=device)
    return lambda: float(there.cpu().numpy()[0])


def pullback(
    call: Callable[..., Any],
    inputs: Sequence[Array],
    varied: Sequence[bool],
    weights: Sequence[Array],
) -> tuple[list[Array], list[Array] | None]:
    leaves = [xgrad.Tensor(x, requires_grad=moves) for x, moves in zip(inputs, varied, strict=True)]
    # copies, since leaves cannot be written to
    outputs = outputs_of(call(*(xgrad.asarray(x, copy=True) for x in leaves)))
    values = [x.detach().numpy() if isinstance(x, xgrad.Tensor) else np.asarray(x) for x in outputs]
    differentiable = [
        (x, xgrad.asarray(w, dtype=x.dtype))
        for x, w in zip(outputs, weights, strict=True)
        if isinstance(x, xgrad.Tensor) and x.requires_grad
    ]
    if not differentiable:
        return values, None
    wanted = [x for x in leaves if x.requires_grad]
    gradients = xgrad.autograd.grad(
        [x for x, _ in differentiable], wanted, [w for _, w in differentiable], allow_unused=True
    )
    return values, [
        np.zeros(x.shape) if g is None else g.numpy()
        for x, g in zip(wanted, gradients, strict=True)
    ]
