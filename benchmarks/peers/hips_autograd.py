"""HIPS autograd."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import autograd.numpy as np
from autograd import elementwise_grad, make_vjp, value_and_grad

from benchmarks.problems import mlp, operands


def step(sizes: Sequence[int], batch: int) -> Callable[[], Any]:
    problem = mlp(sizes, batch)
    params = [(w.T.copy(), b) for w, b in zip(problem.weights, problem.biases, strict=True)]
    x, y, rows, lr = problem.x, problem.y, np.arange(batch), problem.lr

    def objective(params: Any) -> Any:
        h = x
        for w, b in params[:-1]:
            h = np.maximum(np.dot(h, w) + b, 0)
        w, b = params[-1]
        logits = np.dot(h, w) + b
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - shifted[rows, y])

    gradient = value_and_grad(objective)

    def run() -> Any:
        nonlocal params
        loss, changes = gradient(params)
        params = [
            (w - lr * gw, b - lr * gb) for (w, b), (gw, gb) in zip(params, changes, strict=True)
        ]
        return loss

    return run


def chain(length: int) -> Callable[[], Any]:
    x, y = operands()

    def forward(z: Any, y: Any) -> Any:
        for _ in range(length // 2):
            z = (z + y) * y
        return z

    gradient = elementwise_grad(forward, argnum=(0, 1))
    return lambda: gradient(x, y)[1]


def additions(length: int) -> list[float]:
    def forward(y: Any) -> Any:
        for _ in range(length):
            y = y + 1.0
        return y

    times = [time.perf_counter()]
    backward, _ = make_vjp(forward)(1.0)
    times.append(time.perf_counter())
    gradient = backward(1.0)
    times.append(time.perf_counter())
    del backward
    times.append(time.perf_counter())
    assert gradient == 1
    return times
