"""JAX under ``jit``: the models of the benchmark `models`.

The models are functions of their weights and a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.model_problems import problem
from benchmarks.peers.jax_jit import put


def lstm(w: dict[str, Any], x: Any, width: int) -> Any:
    x = jnp.swapaxes(x, 0, 1) @ w["lstm.weight_ih_l0"].T + (
        w["lstm.bias_ih_l0"] + w["lstm.bias_hh_l0"]
    )

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
        x = layer_norm(
            w, f"{name}.norm1", x + attention(w, f"{name}.self_attn", x, heads, causal=False)
        )
        hidden = jax.nn.relu(linear(w, f"{name}.linear1", x))
        x = layer_norm(w, f"{name}.norm2", x + linear(w, f"{name}.linear2", hidden))
    return linear(w, "output", x.mean(1))


def gpt(w: dict[str, Any], x: Any, heads: int, layers: int) -> Any:
    x = w["tokens.weight"][x] + w["positions.encoding"]
    for i in range(layers):
        name = f"encoder.layers.{i}"
        x = x + attention(
            w, f"{name}.self_attn", layer_norm(w, f"{name}.norm1", x), heads, causal=True
        )
        hidden = jax.nn.gelu(
            linear(w, f"{name}.linear1", layer_norm(w, f"{name}.norm2", x)), approximate=False
        )
        x = x + linear(w, f"{name}.linear2", hidden)
    x = layer_norm(w, "encoder.norm", x) @ w["output.weight"].T
    return x.reshape(-1, x.shape[-1])


def convolution(w: dict[str, Any], name: str, x: Any, stride: int = 1, padding: int = 0) -> Any:
    x = jax.lax.conv_general_dilated(
        x, w[f"{name}.weight"], (stride, stride), [(padding, padding)] * 2
    )
    return x if f"{name}.bias" not in w else x + w[f"{name}.bias"][:, None, None]


def maxima(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def lenet(w: dict[str, Any], x: Any) -> Any:
    x = maxima(jax.nn.relu(convolution(w, "conv1", x, padding=2)))
    x = maxima(jax.nn.relu(convolution(w, "conv2", x)))
    x = jax.nn.relu(linear(w, "linear1", x.reshape(len(x), -1)))
    return linear(w, "output", jax.nn.relu(linear(w, "linear2", x)))


def batch_norm(w: dict[str, Any], name: str, x: Any) -> Any:
    """Normalize without running statistics.

    These are a few numbers for each channel, which the step does not use.
    """
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = jnp.square(x - mean).mean((0, 2, 3), keepdims=True)
    scale = jax.lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"][:, None, None]
    return (x - mean) * scale + w[f"{name}.bias"][:, None, None]


def resnet(w: dict[str, Any], x: Any) -> Any:
    x = jax.nn.relu(batch_norm(w, "norm", convolution(w, "conv", x, padding=1)))
    for i in range(3):
        name, short, stride = f"blocks.{i}", x, 1
        if f"{name}.shortcut.weight" in w:
            stride = 2
            short = batch_norm(w, f"{name}.norm3", convolution(w, f"{name}.shortcut", x, stride))
        x = jax.nn.relu(
            batch_norm(w, f"{name}.norm1", convolution(w, f"{name}.conv1", x, stride, padding=1))
        )
        x = jax.nn.relu(
            batch_norm(w, f"{name}.norm2", convolution(w, f"{name}.conv2", x, padding=1)) + short
        )
    return linear(w, "output", x.mean((2, 3)))


#: Functions of the weights, the batch, and the sizes that are named here.
MODELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "lstm": (lstm, ("width",)),
    "encoder": (encoder, ("heads", "layers")),
    "gpt": (gpt, ("heads", "layers")),
    "lenet": (lenet, ()),
    "resnet": (resnet, ()),
}


def step(model: str, device: str = "cpu", **sizes: int) -> Callable[[], Any]:
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

    weights, x, y = put(device, data.weights, data.x, data.y)

    def run() -> Any:
        nonlocal weights
        weights, loss = update(weights, x, y)
        return loss

    return run
