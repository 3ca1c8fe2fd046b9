"""Layers that resize images."""

from __future__ import annotations

from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.ops.interpolation import check_options, resize
from xgrad.support.hints import shown


class Upsample(Module):
    """Sequences, images or volumes in another size: see `functional.interpolate`.

    Parameters
    ----------
    size : int or tuple of int, optional
        The lengths of the spatial axes of the output.
    scale_factor : float or tuple of float, optional
        The ratio of the lengths of the output and of the input, in place of `size`.
    mode : str, default "nearest"
        The interpolation: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"
        or "area".
    align_corners : bool, optional
        Whether the centers of the corners stay at their places, and not their edges.
    recompute_scale_factor : bool, optional
        Whether the distance of elements follows from the rounded lengths.

    Raises
    ------
    ValueError
        If the options do not fit each other; in the call, if the shape of the input does not fit
        the mode.
    TypeError
        In the call, if the input is not floating, except for the nearest elements.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Upsample(scale_factor=2, mode="bilinear")
    >>> layer(xgrad.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    >>> layer
    Upsample(scale_factor=2, mode='bilinear')
    """

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        options = size, scale_factor, mode, align_corners, recompute_scale_factor
        check_options(type(self).__name__, *options)
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the resized input."""
        options = self.size, self.scale_factor, self.mode, self.align_corners
        return resize(type(self).__name__, input, *options, self.recompute_scale_factor, False)

    def extra_repr(self) -> str:
        names = "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor"
        values = {name: getattr(self, name) for name in names}
        return ", ".join([f"{name}={shown(x)}" for name, x in values.items() if x is not None])


class _Images(Upsample):
    """Images resized in a fixed mode."""

    def extra_repr(self) -> str:
        return f"size={self.size}" if self.size is not None else f"scale_factor={self.scale_factor}"


class UpsamplingNearest2d(_Images):
    """Images in another size, by their nearest elements: `Upsample` with mode "nearest".

    Parameters
    ----------
    size : int or tuple of int, optional
        The height and the width of the output.
    scale_factor : float or tuple of float, optional
        The ratio of the lengths of the output and of the input, in place of `size`.

    Raises
    ------
    ValueError
        If both or none are given; in the call, if the shape of the input does not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.UpsamplingNearest2d(scale_factor=2)(xgrad.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(_Images):
    """Images in another size: `Upsample` with mode "bilinear" and ``align_corners=True``.

    Parameters
    ----------
    size : int or tuple of int, optional
        The height and the width of the output.
    scale_factor : float or tuple of float, optional
        The ratio of the lengths of the output and of the input, in place of `size`.

    Raises
    ------
    ValueError
        If both or none are given; in the call, if the shape of the input does not fit.
    TypeError
        In the call, if the input is not floating.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.UpsamplingBilinear2d(scale_factor=2)(xgrad.ones((1, 3, 4, 5))).shape
    (1, 3, 8, 10)
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
