"""The bilinear layer."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.functional import bilinear
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty


class Bilinear(Module):
    r"""``input1 @ weight[k] @ input2 + bias[k]`` for each output k: see `functional.bilinear`.

    Weight and bias are initialized uniformly over ±1/√in1, as in PyTorch.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        The lengths of the last axes of the inputs and of the output.
    bias : bool, default True
        Whether to add a bias.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (out_features, in1_features, in2_features).
    bias : Parameter or None
        Of shape (out_features,).

    Raises
    ------
    ValueError
        If a length is not an int above 0; in the call, if the shapes of the inputs do not fit.
    TypeError
        In the call, if an input has another dtype than the weight.

    Notes
    -----
    .. math:: y_k = x_1^\top W_k x_2 + b_k

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Bilinear(3, 4, 2)
    >>> layer(xgrad.ones((5, 3)), xgrad.ones((5, 4))).shape
    (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = positive_int("Bilinear", "in1_features", in1_features)
        self.in2_features = positive_int("Bilinear", "in2_features", in2_features)
        self.out_features = positive_int("Bilinear", "out_features", out_features)
        shape = self.out_features, self.in1_features, self.in2_features
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.bias = (
            Parameter(empty(self.out_features, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight and the bias again."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the output for `input1` and `input2`, of shape (..., out_features)."""
        input1 = of_dtype_of(self.weight, input1, "Bilinear", "input1")
        input2 = of_dtype_of(self.weight, input2, "Bilinear", "input2")
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features},"
            f" out_features={self.out_features}, bias={self.bias is not None}"
        )
