"""Models for all peers: sizes, weights by PyTorch's names, and a batch.

Weights and batch are made with NumPy from a fixed seed.

To add a model, write its problem here, and a function of its name in `peers/models_xgrad.py`,
`peers/models_torch.py` and `peers/models_jax.py`; then name its sizes in `models.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A model and a batch: cross-entropy of rows of logits, plain SGD."""

    weights: dict[str, Array]  # float32, by the names of PyTorch's `state_dict`
    x: Array
    y: Array  # int64 classes, one for each row of logits
    lr: float = 0.1


def drawn(rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Return weights uniform over ±1/√in.

    The scales of normalizations, which have `norm` in their names, are 1.
    """
    weights = {}
    for name, shape in shapes.items():
        bound = 1 / math.sqrt(math.prod(shape[1:]) if len(shape) > 1 else shape[0])
        scale = "norm" in name and name.endswith("weight")
        values = np.ones(shape) if scale else rng.uniform(-bound, bound, shape)
        weights[name] = values.astype(np.float32)
    return weights


def lstm(batch: int, length: int, width: int, classes: int) -> Problem:
    """Return an LSTM, and a linear layer on its last hidden state."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "lstm.weight_ih_l0": (4 * width, width),
        "lstm.weight_hh_l0": (4 * width, width),
        "lstm.bias_ih_l0": (4 * width,),
        "lstm.bias_hh_l0": (4 * width,),
        "output.weight": (classes, width),
        "output.bias": (classes,),
    }
    x = rng.standard_normal((batch, length, width), np.float32)
    return Problem(drawn(rng, shapes), x, rng.integers(0, classes, batch))


def encoder_shapes(prefix: str, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one layer of a transformer.

    It has four times as many hidden units as channels.
    """
    shapes: dict[str, tuple[int, ...]] = {
        "self_attn.in_proj_weight": (3 * width, width),
        "self_attn.in_proj_bias": (3 * width,),
        "self_attn.out_proj.weight": (width, width),
        "self_attn.out_proj.bias": (width,),
        "linear1.weight": (4 * width, width),
        "linear1.bias": (4 * width,),
        "linear2.weight": (width, 4 * width),
        "linear2.bias": (width,),
        "norm1.weight": (width,),
        "norm1.bias": (width,),
        "norm2.weight": (width,),
        "norm2.bias": (width,),
    }
    return {prefix + name: shape for name, shape in shapes.items()}


def encoder(batch: int, length: int, width: int, heads: int, layers: int, classes: int) -> Problem:
    """Return an encoder of sequences, without dropout.

    A linear layer acts on the mean of its output over time.
    """
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "output.weight": (classes, width),
        "output.bias": (classes,),
    }
    for i in range(layers):
        shapes |= encoder_shapes(f"encoder.layers.{i}.", width)
    x = rng.standard_normal((batch, length, width), np.float32)
    return Problem(drawn(rng, shapes), x, rng.integers(0, classes, batch))


def gpt(batch: int, length: int, width: int, heads: int, layers: int, classes: int) -> Problem:
    """Return a causal transformer that predicts the next of `classes` tokens.

    It normalizes before each part.
    """
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "tokens.weight": (classes, width),
        "positions.encoding": (length, width),
        "encoder.norm.weight": (width,),
        "encoder.norm.bias": (width,),
        "output.weight": (classes, width),
    }
    for i in range(layers):
        shapes |= encoder_shapes(f"encoder.layers.{i}.", width)
    text = rng.integers(0, classes, (batch, length + 1))
    return Problem(drawn(rng, shapes), text[:, :-1].copy(), text[:, 1:].ravel())


def lenet(batch: int, size: int, classes: int) -> Problem:
    """Return LeNet-5 with ReLU and maximum pooling, on square images of one channel."""
    rng = np.random.default_rng(0)
    side = (size // 2 - 4) // 2
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (6, 1, 5, 5),
        "conv1.bias": (6,),
        "conv2.weight": (16, 6, 5, 5),
        "conv2.bias": (16,),
        "linear1.weight": (120, 16 * side * side),
        "linear1.bias": (120,),
        "linear2.weight": (84, 120),
        "linear2.bias": (84,),
        "output.weight": (classes, 84),
        "output.bias": (classes,),
    }
    x = rng.standard_normal((batch, 1, size, size), np.float32)
    return Problem(drawn(rng, shapes), x, rng.integers(0, classes, batch))


def resnet(batch: int, size: int, width: int, classes: int) -> Problem:
    """Return the residual network of He et al. for small images.

    It has one block of two convolutions at each size. These are 8 layers, not counting the
    convolutions of the shortcuts, as the number of channels doubles with each halving of the image.
    """
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "conv.weight": (width, 3, 3, 3),
        **batch_norm_shapes("norm", width),
    }
    channels = width
    for i, out in enumerate((width, 2 * width, 4 * width)):
        block: dict[str, tuple[int, ...]] = {
            "conv1.weight": (out, channels, 3, 3),
            "conv2.weight": (out, out, 3, 3),
            **batch_norm_shapes("norm1", out),
            **batch_norm_shapes("norm2", out),
        }
        if out != channels:
            block |= {"shortcut.weight": (out, channels, 1, 1), **batch_norm_shapes("norm3", out)}
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
        channels = out
    shapes |= {"output.weight": (classes, channels), "output.bias": (classes,)}
    x = rng.standard_normal((batch, 3, size, size), np.float32)
    return Problem(drawn(rng, shapes), x, rng.integers(0, classes, batch))


def batch_norm_shapes(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a batch normalization."""
    return {f"{name}.weight": (channels,), f"{name}.bias": (channels,)}


#: All models by name.
PROBLEMS: dict[str, Callable[..., Problem]] = {
    "lstm": lstm,
    "encoder": encoder,
    "gpt": gpt,
    "lenet": lenet,
    "resnet": resnet,
}


def problem(model: str, **sizes: int) -> Problem:
    """Return the problem of a model and its sizes."""
    return PROBLEMS[model](**sizes)
