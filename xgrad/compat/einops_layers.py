"""The layers of `einops.layers.torch` as modules of `xgrad.compat.torch`."""

from __future__ import annotations

from typing import Any

from xgrad.compat.torch.nn import Module
from xgrad.compat.torch.tensor import as_torch
from xgrad.einops import register

try:
    from einops.layers import RearrangeMixin, ReduceMixin
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "xgrad.compat.einops_layers: expected einops to be installed: pip install einops",
        name=error.name,
    ) from error

__all__ = ["Rearrange", "Reduce"]

register()


class Rearrange(RearrangeMixin, Module):  # type: ignore[misc]
    """`einops.rearrange` as a module: `einops.layers.torch.Rearrange`.

    Examples
    --------
    >>> import xgrad.compat.torch as torch
    >>> from xgrad.compat.einops_layers import Rearrange  # doctest: +SKIP
    >>> Rearrange("b (h w) -> b h w", h=2)(torch.ones(3, 8)).shape  # doctest: +SKIP
    torch.Size([3, 2, 4])
    """

    def forward(self, input: Any) -> Any:
        """Return the elements in the order and shape of the pattern."""
        return as_torch(self._apply_recipe(input))


class Reduce(ReduceMixin, Module):  # type: ignore[misc]
    """`einops.reduce` as a module: `einops.layers.torch.Reduce`.

    Examples
    --------
    >>> import xgrad.compat.torch as torch
    >>> from xgrad.compat.einops_layers import Reduce  # doctest: +SKIP
    >>> Reduce("b c (h 2) -> b c h", "max")(torch.ones(3, 2, 8)).shape  # doctest: +SKIP
    torch.Size([3, 2, 4])
    """

    def forward(self, input: Any) -> Any:
        """Return the reduced elements in the shape of the pattern."""
        return as_torch(self._apply_recipe(input))
