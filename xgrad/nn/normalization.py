"""Normalization layers."""

from __future__ import annotations

from typing import Any

from xgrad.backend.device import Device
from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.functional import group_norm, layer_norm, rms_norm
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.support.hints import shown


class _Normalization(Module):
    """A layer with a weight and a bias, each of which may be None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(
        self,
        shape: tuple[int, ...],
        weight: bool,
        bias: bool,
        device: str | Device | None,
        dtype: Any,
    ) -> None:
        self.weight = Parameter(empty(shape, device=device, dtype=dtype)) if weight else None
        self.bias = Parameter(empty(shape, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _without_bias(self) -> str:
        """Return the end of a representation, if there is a weight but no bias."""
        return ", bias=False" if self.weight is not None and self.bias is None else ""

    def _checked(self, input: Tensor) -> Tensor:
        name = type(self).__name__
        return (
            as_tensor(name, "input", input)
            if self.weight is None
            else of_dtype_of(self.weight, input, name)
        )


class _OverLast(_Normalization):
    """A layer that normalizes over the last axes."""

    eps: float | None

    def __init__(self, normalized_shape: int | tuple[int, ...], affine: bool) -> None:
        super().__init__()
        name = type(self).__name__
        lengths = (
            normalized_shape if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
        )
        self.normalized_shape = tuple([positive_int(name, "normalized_shape", n) for n in lengths])
        if not self.normalized_shape:
            raise ValueError(
                f"{name}: expected a normalized_shape of at least one axis, got"
                f" {shown(normalized_shape)}"
            )
        self.elementwise_affine = bool(affine)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LayerNorm(_OverLast):
    r"""``(input - mean) / sqrt(variance + eps) * weight + bias``, with statistics of the last axes.

    See `functional.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The lengths of the last axes.
    eps : float, default 1e-5
        Added to the variance.
    elementwise_affine : bool, default True
        Whether to scale by a weight, and to add a bias.
    bias : bool, default True
        Whether to add a bias besides the weight.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter or None
        Of shape `normalized_shape`; 1 at first.
    bias : Parameter or None
        Of shape `normalized_shape`; 0 at first.

    Raises
    ------
    ValueError
        If a length is not an int above 0; in the call, if the last axes have other lengths.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.LayerNorm(2)
    >>> layer(xgrad.asarray([[1.0, 3.0]]))
    Tensor([[-0.999995,  0.999995]], grad_fn=<normalize>)
    >>> layer
    LayerNorm((2,), eps=1e-05, elementwise_affine=True)
    """

    eps: float

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine)
        self.eps = eps
        affine = self.elementwise_affine
        self._make_parameters(self.normalized_shape, affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`, ``(..., *normalized_shape)``."""
        return layer_norm(
            self._checked(input), self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        return super().extra_repr() + self._without_bias()


class RMSNorm(_OverLast):
    r"""``input / sqrt(mean(input**2) + eps) * weight``: see `functional.rms_norm`.

    The mean is over the last axes.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The lengths of the last axes.
    eps : float, optional
        Added to the mean square; by default the machine epsilon of the dtype.
    elementwise_affine : bool, default True
        Whether to scale by a weight.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter or None
        Of shape `normalized_shape`; 1 at first.

    Raises
    ------
    ValueError
        If a length is not an int above 0; in the call, if the last axes have other lengths.
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x, \quad \hat x = \frac{x}{r}, \quad
        r = \sqrt{\langle x^2 \rangle + \varepsilon}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.RMSNorm(2, elementwise_affine=False)(xgrad.asarray([1.0, 7.0]))
    Tensor([0.2, 1.4])
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, elementwise_affine)
        self.eps = eps
        self._make_parameters(self.normalized_shape, self.elementwise_affine, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`, ``(..., *normalized_shape)``."""
        return rms_norm(self._checked(input), self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Normalization):
    r"""``(input - mean) / sqrt(variance + eps) * weight + bias`` of groups of channels.

    See `functional.group_norm`.

    Parameters
    ----------
    num_groups, num_channels : int
        The number of groups, and the number of channels, a multiple of it.
    eps : float, default 1e-5
        Added to the variance.
    affine : bool, default True
        Whether to scale by a weight, and to add a bias.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.
    bias : bool, default True
        Whether to add a bias besides the weight; without effect if `affine` is false.

    Attributes
    ----------
    weight : Parameter or None
        Of shape (num_channels,); 1 at first.
    bias : Parameter or None
        Of shape (num_channels,); 0 at first.

    Raises
    ------
    ValueError
        If a number is not an int above 0, or the groups do not divide the channels; in the call, if
        the input is not of shape (batch, num_channels, ...).
    TypeError
        In the call, if the input has another dtype than the weight.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GroupNorm(2, 4, affine=False)(xgrad.asarray([[1.0, 3.0, 5.0, 5.0]]))
    Tensor([[-0.999995,  0.999995,  0.      ,  0.      ]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_groups = positive_int("GroupNorm", "num_groups", num_groups)
        self.num_channels = positive_int("GroupNorm", "num_channels", num_channels)
        if self.num_channels % self.num_groups:
            raise ValueError(
                f"GroupNorm: expected num_groups that divides num_channels, got {num_groups} and"
                f" {num_channels}"
            )
        self.eps, self.affine = eps, bool(affine)
        biased = self.affine and bool(bias)
        self._make_parameters((self.num_channels,), self.affine, biased, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`, (batch, num_channels, ...)."""
        input = self._checked(input)
        if input.ndim < 2 or input.shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm: expected an input of shape (batch, {self.num_channels}, ...), got"
                f" {input.shape}"
            )
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
            f"{self._without_bias()}"
        )
