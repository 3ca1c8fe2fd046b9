"""MyGrad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mygrad
import numpy as np
from mygrad.nnet import relu, softmax_crossentropy

from benchmarks.peers import repeated, statements
from benchmarks.problems import mlp, operands


def step(sizes: Sequence[int], batch: int) -> Callable[[], Any]:
    problem = mlp(sizes, batch)
    params = [
        (mygrad.tensor(w.T.copy()), mygrad.tensor(b))
        for w, b in zip(problem.weights, problem.biases, strict=True)
    ]

    def run() -> Any:
        h = problem.x
        for w, b in params[:-1]:
            h = relu(h @ w + b)
        w, b = params[-1]
        loss = softmax_crossentropy(h @ w + b, problem.y)
        loss.backward()
        for pair in params:
            for p in pair:
                p.data -= problem.lr * p.grad  # the next step clears the gradients
        return loss

    return run


OPS = statements("relu(x)")


def op(name: str) -> Callable[[], Any]:
    x, y = (mygrad.tensor(value) for value in operands())
    run = repeated(OPS, name, x=x, y=y, relu=relu)
    result: Callable[[], Any] = mygrad.no_autodiff(run) if name == "add, no grad" else run
    return result


def chain(length: int) -> Callable[[], Any]:
    x, y = (mygrad.tensor(value) for value in operands())
    ones = np.ones_like(x.data)

    def run() -> Any:
        z = x
        for _ in range(length // 2):
            z = (z + y) * y
        z.backward(ones)
        return y.grad  # the next run clears the gradients

    return run
