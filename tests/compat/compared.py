"""Evaluation of code with PyTorch and with `xgrad.compat.torch`, and comparison of the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad
from xgrad.compat import torch as compat


def array(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return normal random numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def as_tensor(library: Any, value: Any, requires_grad: bool = True) -> Any:
    """Return arrays, also in tuples, as tensors of a library."""
    if isinstance(value, tuple):
        return tuple(as_tensor(library, part, requires_grad) for part in value)
    if not isinstance(value, np.ndarray):
        return value
    x = library.tensor(value.copy())
    return x.requires_grad_() if requires_grad and value.dtype.kind == "f" else x


def leaves(value: Any) -> list[Any]:
    """Return the tensors in nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None or not hasattr(value, "dtype") else [value]


def to_numpy(x: Any) -> np.ndarray:
    """Return the values of a tensor of either library."""
    return np.asarray(x.detach().numpy())


def loss_of(library: Any, output: Any) -> Any:
    """Return a sum of the elements of all differentiable outputs, with different factors."""
    total: Any = 0
    for x in leaves(output):
        if x.requires_grad:
            factors = library.sin(library.arange(x.numel(), dtype=x.dtype) + 1)
            total = total + (x * factors.reshape(x.shape)).sum()
    return total


def copy_state(source: Any, target: Any) -> None:
    """Load the state of a module of PyTorch into one of the compatible namespace."""
    target.load_state_dict(
        {name: compat.tensor(x.detach().numpy().copy()) for name, x in source.state_dict().items()}
    )


def check_close(mine: Any, theirs: Any, tolerance: float = 1e-12) -> None:
    """Fail unless two results agree in shape, dtype and values."""
    assert len(leaves(mine)) == len(leaves(theirs))
    for a, b in zip(leaves(mine), leaves(theirs), strict=True):
        assert isinstance(a, xgrad.Tensor)
        assert type(a) in (compat.Tensor, compat.nn.Parameter)
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype) == str(b.dtype).removeprefix("torch.")
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=tolerance, atol=tolerance)


def check_call(
    torch: Any, call: Callable[[Any, Any], Any], inputs: tuple[Any, ...], tolerance: float = 1e-12
) -> None:
    """Compare ``call(library, *inputs)`` and the gradients of the inputs."""
    results = []
    for library in (compat, torch):
        x = as_tensor(library, inputs)
        output = call(library, *x)
        loss = loss_of(library, output)
        if hasattr(loss, "backward"):
            loss.backward()
        grads = [leaf.grad for leaf in leaves(x) if leaf.requires_grad]
        results.append((output, grads))
    check_close(results[0][0], results[1][0], tolerance)
    for mine, theirs in zip(results[0][1], results[1][1], strict=True):
        assert (mine is None) == (theirs is None)
        check_close(mine, theirs, tolerance)
