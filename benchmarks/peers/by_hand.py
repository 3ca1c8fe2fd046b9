"""NumPy with gradients derived by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers import BATCH, repeated, statements
from benchmarks.problems import Array, Images, first_weights, mlp, operands

Gradients = tuple[Any, list[Array], list[Array]]


def gradients(
    weights: list[Array], biases: list[Array], x: Array, y: Array, rows: Array
) -> Gradients:
    """Return the loss and its gradients, computed in place where possible.

    The weights have shape (in, out).
    """
    inputs = [x]
    for w, b in zip(weights, biases, strict=True):
        h = inputs[-1] @ w
        h += b
        if len(inputs) < len(weights):
            np.maximum(h, 0, out=h)
        inputs.append(h)
    g = inputs.pop()
    g -= g.max(axis=1, keepdims=True)
    picked = g[rows, y]
    np.exp(g, out=g)
    sums = g.sum(axis=1, keepdims=True)
    loss = (np.log(sums[:, 0]) - picked).sum() / len(x)
    g /= sums
    g[rows, y] -= 1
    g /= len(x)
    for_weights, for_biases = [], []
    while inputs:
        h = inputs.pop()
        for_weights.append(h.T @ g)
        for_biases.append(g.sum(axis=0))
        if inputs:
            g = g @ weights[len(inputs)].T
            g *= h > 0
    return loss, for_weights[::-1], for_biases[::-1]


def step(sizes: Sequence[int], batch: int) -> Callable[[], Any]:
    """Return a step with weights of shape (in, out), which are updated in place."""
    problem = mlp(sizes, batch)
    weights, biases = [np.ascontiguousarray(w.T) for w in problem.weights], problem.biases
    x, y, rows, lr = problem.x, problem.y, np.arange(batch), problem.lr

    def run() -> Any:
        loss, for_weights, for_biases = gradients(weights, biases, x, y, rows)
        for values, changes in ((weights, for_weights), (biases, for_biases)):
            for value, change in zip(values, changes, strict=True):
                change *= lr
                value -= change
        return loss

    return run


def step_plain(sizes: Sequence[int], batch: int, dtype: Any = np.float32) -> Callable[[], Any]:
    """Return a step with weights of shape (out, in), as in PyTorch; nothing is done in place."""
    problem = mlp(sizes, batch)
    weights = [w.astype(dtype) for w in problem.weights]
    biases = [b.astype(dtype) for b in problem.biases]
    x, y, rows, lr = problem.x.astype(dtype), problem.y, np.arange(batch), problem.lr

    def run() -> Any:
        inputs = [x]
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            inputs.append(np.maximum(inputs[-1] @ w.T + b, 0))
        logits = inputs[-1] @ weights[-1].T + biases[-1]
        shifted = logits - logits.max(axis=1, keepdims=True)
        exps = np.exp(shifted)
        sums = exps.sum(axis=1, keepdims=True)
        loss = (np.log(sums[:, 0]) - shifted[rows, y]).sum() / batch
        g = exps / sums
        g[rows, y] -= 1
        g = g / batch
        for i in reversed(range(len(weights))):
            h, w = inputs[i], weights[i]
            weights[i], biases[i] = w - lr * (g.T @ h), biases[i] - lr * g.sum(axis=0)
            if i:
                g = (g @ w) * (h > 0)
        return loss

    return run


OPS = statements("np.maximum(x, 0)")


def op(name: str) -> Callable[[], Any]:
    x, y = operands()
    return repeated(OPS, name, x=x, y=y, np=np)


def epochs(
    data: Images, sizes: Sequence[int], seed: int
) -> tuple[Callable[[float], Any], Callable[[Array], Array]]:
    start = first_weights(sizes, seed)
    weights, biases = [np.ascontiguousarray(w.T) for w in start[0]], start[1]
    values = [*weights, *biases]
    moments = [(v, np.zeros_like(v), np.zeros_like(v), np.empty_like(v)) for v in values]
    rng, count = np.random.default_rng(seed), 0

    def train(lr: float) -> None:
        nonlocal count
        order = rng.permutation(len(data.train))
        for first in range(0, len(order), BATCH):
            chosen = order[first : first + BATCH]
            x, y = data.train[chosen], data.train_labels[chosen]
            _, for_weights, for_biases = gradients(weights, biases, x, y, np.arange(len(x)))
            count += 1
            root = (1 - 0.999**count) ** 0.5
            for (value, m, v, spare), g in zip(moments, [*for_weights, *for_biases], strict=True):
                np.multiply(g, 0.1, out=spare)
                m *= 0.9
                m += spare
                g *= g
                g *= 0.001
                v *= 0.999
                v += g
                np.sqrt(v, out=spare)
                spare += 1e-8 * root
                np.divide(m, spare, out=spare)
                spare *= lr * root / (1 - 0.9**count)
                value -= spare

    def predict(x: Array) -> Array:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            x = np.maximum(x @ w + b, 0)
        classes: Array = (x @ weights[-1] + biases[-1]).argmax(axis=1)
        return classes

    return train, predict
