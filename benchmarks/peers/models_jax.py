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


def layer_norm(w: dict[str, Any], name: str, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(w: dict[str, Any], name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def attention(w: dict[str, Any], name: str, x: Any, heads: int, causal: bool) -> Any:
    batch, length, width = x.shape
    x = x @ w[f"{name}.in_proj_weight"].T + w[f"{name}.in_proj_bias"]
    q, k, v = jnp.split(x.reshape(batch, length, 3 * heads, width // heads), 3, axis=2)
    x = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return linear(w, f"{name}.out_proj", x.reshape(batch, length, width))


def encoder(w: dict[str, Any], x: Any, heads: int, layers: int) -> Any:
    for i in range(layers):
        name = f"encoder.layers.{i}"
        x = layer_norm(w, f"{name}.norm1", x + attention(w, f"{name}.self_attn", x, heads, causal=False))
        hidden = jax.nn.relu(linear(w, f"{name}.linear1", x))
        x = layer_norm(w, f"{name}.norm2", x + linear(w, f"{name}.linear2", hidden))
    return linear(w, "output", x.mean(1))


def gpt(w: dict[str, Any], x: Any, heads: int, layers: int) -> Any:
    x = w["tokens.weight"][x] + w["positions.encoding"]
    for i in range(layers):
        name = f"encoder.layers.{i}"
        x = x + attention(w, f"{name}.self_attn", layer_norm(w, f"{name}.norm1", x), heads, causal=True)
        hidden = jax.nn.gelu(linear(w, f"{name}.linear1", layer_norm(w, f"{name}.norm2", x)), approximate=False)
        x = x + linear(w, f"{name}.linear2", hidden)
    x = layer_norm(w, "encoder.norm", x) @ w["output.weight"].T
    return x.reshape(-1, x.shape[-1])


#: Functions of the weights, the batch, and the sizes that they name.
MODELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "lstm": (lstm, ("width",)),
    "encoder": (encoder, ("heads", "layers")),
    "gpt": (gpt, ("heads", "layers")),
}


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
