"""`torch.compile`, which is `xgrad.capture`."""

from __future__ import annotations

from functools import partial
from typing import Any

import xgrad
from xgrad.compat.torch.tensor import as_torch
from xgrad.nn import Module


class OptimizedModule(Module):
    """A module whose forward pass is captured, and replayed where no graph is recorded.

    `xgrad.capture` is for whole steps, with the backward pass and the optimizer, so in training the
    module runs eagerly. Its parameters have names that begin with ``_orig_mod.``, as in PyTorch.
    """

    def __init__(self, model: Module) -> None:
        super().__init__()
        self._orig_mod = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the module."""
        recorded = xgrad.is_grad_enabled() and any(p.requires_grad for p in self.parameters())
        return as_torch((self._orig_mod if recorded else self._replayed)(*args, **kwargs))

    @xgrad.capture
    def _replayed(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":  # not yet set
            raise AttributeError(name)
        return getattr(self._orig_mod, name)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Return the captured function, or a module that runs a captured forward pass.

    Of the options, which choose among PyTorch's compilers, only `disable` has an effect.
    """
    if model is None:
        return partial(compile, disable=disable)
    if disable:
        return model
    return OptimizedModule(model) if isinstance(model, Module) else xgrad.capture(model)
