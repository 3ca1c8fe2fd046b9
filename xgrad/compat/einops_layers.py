"""The layers `Rearrange` and `Reduce` of einops, as modules of `xgrad.compat.torch`.

einops is imported when one of them is used for the first time.

>>> import xgrad.compat.torch as torch
>>> from xgrad.compat.einops_layers import Rearrange, Reduce  # doctest: +SKIP
>>> Rearrange("b (h w) -> b h w", h=2)(torch.ones(3, 8)).shape  # doctest: +SKIP
torch.Size([3, 2, 4])
>>> Reduce("b c (h 2) -> b c h", "max")(torch.ones(3, 2, 8)).shape  # doctest: +SKIP
torch.Size([3, 2, 4])
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from xgrad.compat.torch.nn import Module
from xgrad.compat.torch.tensor import as_torch
from xgrad.einops import register

__all__ = ["Rearrange", "Reduce"]  # noqa: F822  # by __getattr__

#: The classes of einops that hold the pattern of a layer.
_MIXINS = {"Rearrange": "RearrangeMixin", "Reduce": "ReduceMixin"}


class _Layer(Module):
    """A module that applies the pattern of a class of einops."""

    _apply_recipe: Any

    def forward(self, input: Any) -> Any:
        """Return the elements in the order and shape of the pattern."""
        return as_torch(self._apply_recipe(input))


@cache
def _layer(name: str) -> type:
    try:
        mixin = getattr(import_module("einops.layers"), _MIXINS[name])
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{__name__}.{name}: expected einops to be installed: pip install einops",
            name=error.name,
        ) from error
    register()
    return type(name, (mixin, _Layer), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    if name not in _MIXINS:
        raise AttributeError(
            f"{__name__}.{name} is not available, only {', '.join(_MIXINS)}", name=name
        )
    return _layer(name)
