"""Windows that slide over the spatial axes of an input: the geometry of convolution and pooling."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.manipulation import expand_dims
from xgrad.support.hints import shown

#: An argument for each spatial axis, or one for all.
Lengths = int | tuple[int, ...]
#: The numbers of elements added before and after each spatial axis.
Pairs = tuple[tuple[int, int], ...]
#: The names of spatial axes, by their number.
AXES = ["", "L", "H, W", "D, H, W"]


@dataclass(frozen=True)
class Window:
    """A window that slides over spatial axes; each attribute has one entry per axis.

    Attributes
    ----------
    size : tuple of int
        The lengths of the input, without padding.
    kernel : tuple of int
        The numbers of elements in the window.
    stride : tuple of int
        The distance from window to window.
    padding : tuple of (int, int)
        The numbers of elements added before and after the input.
    dilation : tuple of int
        The distance between elements in the window.
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pairs
    dilation: tuple[int, ...]

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """The lengths of the padded input."""
        return tuple([n + sum(pair) for n, pair in zip(self.size, self.padding, strict=True)])

    @cached_property
    def span(self) -> tuple[int, ...]:
        """The lengths that a window covers."""
        return tuple([d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)])

    @cached_property
    def out(self) -> tuple[int, ...]:
        """The number of windows."""
        lengths = zip(self.padded, self.span, self.stride, strict=True)
        return tuple([(n - span) // stride + 1 for n, span, stride in lengths])

    @cached_property
    def inner(self) -> tuple[Any, ...]:
        """The key that selects the input in the padded input."""
        pairs = zip(self.size, self.padding, strict=True)
        return (slice(None), slice(None), *[slice(before, before + n) for n, (before, _) in pairs])

    @cached_property
    def taps(self) -> tuple[tuple[Any, ...], ...]:
        """The keys that select one element of every window in the padded input.

        There is one key for each element of a window, in row order.
        """
        axes = zip(self.kernel, self.dilation, self.stride, self.out, strict=True)
        slices = [
            [slice(d * i, d * i + s * (n - 1) + 1, s) for i in range(k)] for k, d, s, n in axes
        ]
        return tuple([(slice(None), slice(None), *key) for key in itertools.product(*slices)])

    def planar(self) -> Window:
        """Return a window over one axis as a window over two, the first of length 1.

        A window over more axes is returned unchanged.
        """
        if len(self.size) != 1:
            return self
        return Window(
            (1, *self.size),
            (1, *self.kernel),
            (1, *self.stride),
            ((0, 0), *self.padding),
            (1, *self.dilation),
        )


def pad(xp: Any, x: Any, window: Window, value: float) -> Any:
    """Pad the spatial axes of an array of shape (N, C, ...) with a value."""
    if window.padded == window.size:
        return x
    out = xp.full((*x.shape[:2], *window.padded), value, dtype=x.dtype, device=x.device)
    out[window.inner] = x
    return out


# Arguments of layers and functions


def lengths(name: str, argument: str, value: Any, ndim: int, least: int = 1) -> tuple[int, ...]:
    """Return an argument as ints, one for each spatial axis.

    Raises ValueError, with the name of the function, unless they are ints from `least` on.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    ints = [int(x) for x in values if isinstance(x, Integral) and not isinstance(x, bool)]
    if not len(values) == len(ints) == ndim or min(ints) < least:
        several = f"an int or {ndim} ints" if ndim > 1 else "an int"
        raise ValueError(
            f"{name}: expected {several} of at least {least} for {argument}, got {shown(value)}"
        )
    return tuple(ints)


def batched(name: str, x: Any, ndim: int) -> tuple[Tensor, bool]:
    """Return an input of shape (N, C, ...), and whether it had the batch axis.

    An input of shape (C, ...) gets a batch axis.
    """
    x = as_tensor(name, "input", x)
    if x.ndim not in (ndim + 1, ndim + 2):
        raise ValueError(
            f"{name}: expected input of shape (N, C, {AXES[ndim]}) or (C, {AXES[ndim]}), got shape"
            f" {x.shape}"
        )
    return (x, True) if x.ndim == ndim + 2 else (expand_dims(x, axis=0), False)
