"""`torch.utils.checkpoint`: recomputation in the backward pass, by `xgrad.autograd.checkpoint`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch

__all__ = ["checkpoint", "checkpoint_sequential"]

#: Options of PyTorch that choose an implementation, or checks
_OPTIONS = ("use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop")


def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function, whose intermediate results are computed again later."""
    if kwargs.pop("context_fn", None) is not None:
        raise NotImplementedError("checkpoint: context_fn= is not available in xgrad.compat.torch")
    for name in _OPTIONS:
        kwargs.pop(name, None)

    def call(*inputs: Any, **options: Any) -> Any:
        return function(*as_torch(inputs), **as_torch(options))

    return as_torch(xgrad.autograd.checkpoint(call, *args, **kwargs))


def checkpoint_sequential(functions: Any, segments: int, input: Any, **kwargs: Any) -> Any:
    """Return the result of a chain of modules, in segments that are computed again later."""
    modules = list(functions)
    size = len(modules) // segments
    for i in range(segments):
        part = modules[i * size :] if i == segments - 1 else modules[i * size : (i + 1) * size]

        def run(x: Any, part: list[Any] = part) -> Any:
            for module in part:
                x = module(x)
            return x

        input = checkpoint(run, input, **kwargs)
    return input
