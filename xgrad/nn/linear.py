"""The linear layer."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.functional import linear
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty


class Linear(Module):
    r"""A linear layer: ``input @ weight.T + bias``.

    Weight and bias are initialized uniformly over ±1/√in, as in PyTorch.

    Parameters
    ----------
    in_features, out_features : int
        The lengths of the last axis of the input and of the output.
    bias : bool, default True
        Whether to add a bias.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (out_features, in_features).
    bias : Parameter or None
        Of shape (out_features,).

    Raises
    ------
    ValueError
        If a length is not an int above 0; in the call, if the input is not of shape (...,
        in_features).
    TypeError
        In the call, if the input has another dtype than the weight.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Notes
    -----
    .. math:: Y = X W^\top + b

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(3, 2)
    >>> layer(xgrad.ones((5, 3))).shape
    (5, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = positive_int("Linear", "in_features", in_features)
        self.out_features = positive_int("Linear", "out_features", out_features)
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.bias = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight and the bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features)
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the output, of shape (..., out_features).

        The input has shape (..., in_features).
        """
        weight = self.weight
        return linear(of_dtype_of(weight, input, type(self).__name__), weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features},"
            f" bias={self.bias is not None}"
        )
