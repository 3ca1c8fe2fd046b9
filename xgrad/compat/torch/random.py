"""Random numbers, from xgrad's generators: equal seeds give equal numbers, but not PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import xgrad
from xgrad import random as xrandom
from xgrad.compat.torch.creation import checked_options
from xgrad.compat.torch.shapes import sizes_of
from xgrad.compat.torch.tensor import torch_function
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.core.tensor import Tensor


class Generator(xrandom.Generator):
    """A stream of random numbers; ``device`` is accepted, for numbers are equal on all devices."""

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()
        self.device = xgrad.Device(device)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from a seed, and return the generator."""
        self.set_state(xrandom.Generator(seed).get_state())
        return self

    def initial_seed(self) -> int:
        """Return the seed."""
        return self.get_state()["seed"]


def _maybe_complex(op: Callable[..., Any], scale: float) -> Callable[..., Any]:
    """Return a function that also draws complex numbers, with random parts times a factor."""

    def draw(shape: tuple[int, ...], **options: Any) -> Any:
        dtype = options.get("dtype")
        if dtype is None or np.dtype(dtype).kind != "c":
            return op(shape, **options)
        requires_grad = options.pop("requires_grad", False)
        options["dtype"] = "float32" if np.dtype(dtype).itemsize == 8 else "float64"
        parts = scale * op((2, *shape), **options)
        made = parts[0] + 1j * parts[1]
        return made.requires_grad_() if requires_grad else made

    return draw


_uniform = _maybe_complex(xrandom.rand, 1.0)
_normal = _maybe_complex(xrandom.randn, math.sqrt(0.5))  # of variance 1 in total


def _random(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``name(*size, generator=None, dtype=None, device=None, ...)``."""

    def function(*size: Any, **options: Any) -> Any:
        if "size" in options:
            size = (options.pop("size"),)
        return op(sizes_of(size), **checked_options(name, options))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


def _random_like(name: str, op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``name(input, *, dtype=None, device=None, ...)``."""

    def function(input: Tensor, **options: Any) -> Any:
        options = {"dtype": input.dtype, "device": input.device, **options}
        return op(tuple(input.shape), **checked_options(name, options))

    function.__name__ = function.__qualname__ = name
    return torch_function(function)


rand, randn = _random("rand", _uniform), _random("randn", _normal)
rand_like = _random_like("rand_like", _uniform)
randn_like = _random_like("randn_like", _normal)


@torch_function
def randint(*bounds_and_size: Any, **options: Any) -> Any:
    """Return random integers: ``randint(low=0, high, size)``, see `xgrad.random.randint`."""
    arguments = list(bounds_and_size)
    named = {name: options.pop(name) for name in ("low", "high", "size") if name in options}
    size = named["size"] if "size" in named else arguments.pop()
    high = named["high"] if "high" in named else arguments.pop()
    low = named["low"] if "low" in named else arguments.pop() if arguments else 0
    options = checked_options("randint", options)
    dtype, requires_grad = options.pop("dtype", None), options.pop("requires_grad", False)
    made = xrandom.randint(low, high, sizes_of((size,)), **options)
    made = made if dtype is None else xgrad.astype(made, dtype)
    return made.requires_grad_() if requires_grad else made


@torch_function
def randint_like(input: Tensor, *bounds: int, **options: Any) -> Any:
    """Return random integers in the shape of a tensor."""
    options = {"dtype": input.dtype, "device": input.device, **options}
    return randint(*bounds, tuple(input.shape), **options)


@torch_function
def randperm(n: int, **options: Any) -> Any:
    """Return the integers below `n` in random order: see `xgrad.random.randperm`."""
    options = checked_options("randperm", options)
    dtype = options.pop("dtype", None)
    made = xrandom.randperm(n, **options)
    return made if dtype is None else xgrad.astype(made, dtype)


@torch_function
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Return normal numbers, with means and deviations given by numbers or tensors."""
    options = checked_options("normal", options)
    if size is not None:
        return xrandom.normal(sizes_of((size,)), mean, std, **options)
    shapes = [tuple(x.shape) for x in (mean, std) if isinstance(x, xgrad.Tensor)]
    like = mean if isinstance(mean, xgrad.Tensor) else std
    options = {"dtype": like.dtype, "device": like.device, **options}
    return mean + std * xrandom.randn(xgrad.broadcast_shapes(*shapes), **options)


@torch_function
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Any:
    """Return 1 with the probability that each element is, or `p`, and 0 otherwise."""
    drawn = xrandom.rand(tuple(input.shape), device=input.device, generator=generator)
    return xgrad.astype(drawn < (input.detach() if p is None else p), input.dtype)


@torch_function
def poisson(input: Tensor, generator: Any = None) -> Any:
    """Return random numbers with Poisson's distribution: see `xgrad.random.poisson`."""
    return xrandom.poisson(input.detach(), generator=generator)


@torch_function
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Return indices drawn by weights: see `xgrad.random.multinomial`."""
    return xrandom.multinomial(input, num_samples, replacement, generator=generator)


def manual_seed(seed: int) -> Any:
    """Seed the random numbers of this thread: see `xgrad.manual_seed`."""
    return xrandom.manual_seed(int(seed))


def seed() -> int:
    """Seed the random numbers from the system, and return the seed."""
    drawn = xrandom.Generator().get_state()["seed"] & (1 << 62) - 1
    manual_seed(drawn)
    return drawn


def initial_seed() -> int:
    """Return the seed of the random numbers of this thread."""
    return xrandom.get_state()["seed"]


def get_rng_state() -> dict[str, int]:
    """Return the state of the random numbers: see `xgrad.random.get_state`."""
    return xrandom.get_state()


def set_rng_state(new_state: dict[str, int]) -> None:
    """Restore the state of the random numbers: see `xgrad.random.set_state`."""
    xrandom.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, device_type: str = "cuda"
) -> Iterator[None]:
    """Restore the state of the random numbers at the end of a ``with`` block."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


default_generator = xrandom.default_generator

FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        bernoulli, get_rng_state, initial_seed, manual_seed, multinomial, normal, poisson, rand,
        rand_like, randint, randint_like, randn, randn_like, randperm, seed, set_rng_state,
    )
}  # fmt: skip
FUNCTIONS |= {"Generator": Generator, "default_generator": default_generator}


def __getattr__(name: str) -> Any:
    raise_missing("torch.random", name)
