"""JAX under ``jit``: the models of the benchmark `models`, as functions of their weights and a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.model_problems import problem


def lstm(w: dict[str, Any], x: Any, width: int) -> Any:
    x = jnp.swapaxes(x, 0, 1) @ w["lstm.weight_ih_l0"].T + (w["lstm.bias_ih_l0"] + w["lstm.bias_hh_l0"])

    def cell(state: Any, projected: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(projected + h @ w["lstm.weight_hh_l0"].T, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    first = jnp.zeros((x.shape[1], width), x.dtype)
    (h, _), _ = jax.lax.scan(cell, (first, first), x)
    return h @ w["output.weight"].T + w["output.bias"]


#: Functions of the weights, the batch, and the sizes that they name.
MODELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {"lstm": (lstm, ("width",))}


def step(model: str, **sizes: int) -> Callable[[], Any]:
    data = problem(model, **sizes)
    function, names = MODELS[model]
    logits = partial(function, **{name: sizes[name] for name in names})

    def objective(weights: Any, x: Any, y: Any) -> Any:
        logs = jax.nn.log_softmax(logits(weights, x))
        return -jnp.take_along_axis(logs, y[:, None], axis=1).mean()

    @partial(jax.jit, donate_argnums=0)
    def update(weights: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(objective)(weights, x, y)
        return jax.tree.map(lambda p, g: p - data.lr * g, weights, gradients), loss

    weights, x, y = jax.device_put((data.weights, data.x, data.y))

    def run() -> Any:
        nonlocal weights
        weights, loss = update(weights, x, y)
        return loss

    return run
