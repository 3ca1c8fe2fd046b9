"""JAX: single ops, and the step under ``jit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers import LeftOut, repeated
from benchmarks.problems import mlp, operands

jax.config.update("jax_default_matmul_precision", "float32")  # on a GPU its default is TF32


def put(device: str, *values: Any) -> Any:
    try:
        return jax.device_put(values, jax.devices(device)[0])
    except RuntimeError as error:
        raise LeftOut(f"this JAX finds no {device} device") from error


def objective(params: Any, x: Any, y: Any) -> Any:
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    logs = jax.nn.log_softmax(x @ w + b)
    return -jnp.take_along_axis(logs, y[:, None], axis=1).mean()


@partial(jax.jit, donate_argnums=0)
def update(params: Any, x: Any, y: Any, lr: float) -> Any:
    loss, gradients = jax.value_and_grad(objective)(params, x, y)
    return jax.tree.map(lambda p, g: p - lr * g, params, gradients), loss


def step(
    sizes: Sequence[int], batch: int, device: str = "cpu", tf32: bool = False
) -> Callable[[], Any]:
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "float32")
    problem = mlp(sizes, batch)
    params = [(w.T.copy(), b) for w, b in zip(problem.weights, problem.biases, strict=True)]
    params, x, y, lr = put(device, params, problem.x, problem.y, problem.lr)

    def run() -> Any:
        nonlocal params
        params, loss = update(params, x, y, lr)
        return loss

    return run


def op(name: str, device: str = "cpu") -> Callable[[], Any]:
    x, y = put(device, *operands())
    return repeated({"add, no grad": "x + y"}, name, x=x, y=y)  # without jit, nothing is recorded
