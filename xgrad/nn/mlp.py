"""The multilayer perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from xgrad.backend.device import Device
from xgrad.nn.activations import ReLU, Sigmoid, Tanh
from xgrad.nn.containers import Sequential
from xgrad.nn.dropout import Dropout
from xgrad.nn.linear import Linear
from xgrad.nn.module import Module
from xgrad.ops.dropout import check_probability
from xgrad.support.hints import shown

_ACTIVATIONS: dict[str, Callable[[], Module]] = {"relu": ReLU, "sigmoid": Sigmoid, "tanh": Tanh}


class MLP(Sequential):
    """A multilayer perceptron: `Linear` layers with an activation between them.

    There is no activation after the last layer. With dropout, a `Dropout` follows every activation.

    Parameters
    ----------
    sizes : sequence of int
        The numbers of inputs, of hidden units in each layer, and of outputs.
    activation : type of Module, callable or str, default ReLU
        The class of the activation, or its name: ``"relu"``, ``"sigmoid"`` or ``"tanh"``.
    dropout : float, default 0
        The dropout probability of hidden units.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Raises
    ------
    ValueError
        If `sizes` are fewer than two ints above 0, the activation is unknown, or `dropout` is not
        from 0 to 1.
    TypeError
        If `activation` does not return modules, or `dropout` is not a number.

    Examples
    --------
    >>> import xgrad
    >>> net = xgrad.nn.MLP([784, 128, 10])
    >>> net(xgrad.ones((2, 784))).shape
    (2, 10)
    >>> net
    MLP(
      (0): Linear(in_features=784, out_features=128, bias=True)
      (1): ReLU()
      (2): Linear(in_features=128, out_features=10, bias=True)
    )
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Callable[[], Module] | str = ReLU,
        dropout: float = 0.0,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        if not isinstance(sizes, Sequence) or len(sizes) < 2:
            raise ValueError(
                "MLP: expected a list of at least two sizes, such as [784, 128, 10], got"
                f" {shown(sizes)}"
            )
        make = _ACTIVATIONS.get(activation.lower()) if isinstance(activation, str) else activation
        if make is None:
            raise ValueError(
                f"MLP: expected an activation of {list(_ACTIVATIONS)}, got {shown(activation)}"
            )
        if isinstance(make, Module) or not callable(make):
            raise TypeError(
                f"MLP: expected a class of activations, such as nn.ReLU, got {shown(activation)}"
            )
        check_probability("MLP", dropout)
        layers: list[Module] = []
        for inputs, outputs in pairwise(sizes):
            if layers:
                layers += [make(), Dropout(dropout)] if dropout else [make()]
            layers.append(Linear(inputs, outputs, device=device, dtype=dtype))
        super().__init__(*layers)
