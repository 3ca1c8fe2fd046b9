"""Layers, and modules made of layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, Self, overload

from xgrad.backend.device import Device
from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.functional import dropout, linear, relu, sigmoid, tanh
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.ops.dropout import check_probability
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown


def of_dtype_of(weight: Tensor, input: Tensor, layer: str) -> Tensor:
    """Return the input of a layer as a tensor; TypeError unless it has the dtype of the weight: nothing is promoted."""
    input = as_tensor(layer, "input", input)
    if input._placement is not weight._placement and input.dtype != weight.dtype:
        hint = f"use input.astype(xgrad.{weight.dtype})"
        if input.dtype.kind in "fc":
            hint += f", or model.to(dtype=xgrad.{input.dtype})"
        raise TypeError(f"{layer}: expected input of {weight.dtype}, the dtype of weight, got {input.dtype}: {hint}")
    return input


@documented()
class Linear(Module):
    """``input @ weight.T + bias``.

    Weight and bias are initialized uniformly over ±1/√in, as in PyTorch.

    in_features, out_features : int -- The lengths of the last axis of the input and of the output.
    bias : bool, default True -- Whether to add a bias.
    device : str or Device, optional -- By default the `default_device`.
    dtype : dtype, optional -- float32, the default, or float64.
    attribute weight : Parameter -- Of shape (out_features, in_features).
    attribute bias : Parameter or None -- Of shape (out_features,).
    raises ValueError -- If a length is not an int above 0; in the call, if the input is not of shape (...,
        in_features).
    raises TypeError -- In the call, if the dtype of the input is not that of the weight.
    raises DeviceError -- If the device is unknown or cannot be used; in the call, if the input is on another one.

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
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"Linear: expected an int above 0 for {name}, got {shown(value)}")
        self.in_features, self.out_features = int(in_features), int(out_features)
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
        """Return the output, of shape (..., out_features), for an input of shape (..., in_features)."""
        return linear(of_dtype_of(self.weight, input, type(self).__name__), self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class ReLU(Module):
    """The positive part of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU()(xgrad.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return relu(input)


class Sigmoid(Module):
    """The logistic function of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Sigmoid()(xgrad.asarray([0.0]))
    Tensor([0.5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanh()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return tanh(input)


class Identity(Module):
    """The input as it is, in place of a layer.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Identity()(xgrad.ones(2))
    Tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`."""
        return input


@documented()
class Dropout(Module):
    """Random zeros in training mode, and the input as it is in evaluation mode: see `functional.dropout`.

    p : float, default 0.5 -- The probability with which each element is replaced by 0, from 0 to 1. The others are
        divided by ``1 - p``.
    raises ValueError -- If `p` is below 0 or above 1.
    raises TypeError -- If `p` is not a number; in the call, if the input is not floating.

    >>> layer = xgrad.nn.Dropout(0.75)
    >>> sorted(set(layer(xgrad.ones(100)).tolist()))
    [0.0, 4.0]
    >>> layer.eval()(xgrad.ones(2))
    Tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        check_probability("Dropout", p)
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


@documented()
class Flatten(Module):
    """Several adjacent axes as one.

    start_axis, end_axis : int -- The first and the last of them, by default all but the batch axis.
    raises ValueError -- In the call, if the input has no such axes.
    raises TypeError -- If an axis is not an int.

    >>> xgrad.nn.Flatten()(xgrad.ones((5, 28, 28))).shape
    (5, 784)
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.start_axis = as_int("Flatten", "start_axis", start_axis)
        self.end_axis = as_int("Flatten", "end_axis", end_axis)

    def forward(self, input: Tensor) -> Tensor:
        """Return the same elements with fewer axes."""
        shape, axes = input.shape, range(input.ndim)
        try:
            start, end = axes[self.start_axis], axes[self.end_axis] + 1
        except IndexError:
            start, end = 1, 0
        if start >= end:
            raise ValueError(
                f"Flatten: expected axes {self.start_axis} to {self.end_axis}, got an input of shape {shape}"
            )
        return input.reshape((*shape[:start], math.prod(shape[start:end]), *shape[end:]))

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


@documented()
class ModuleList(Module):
    """A list of modules, which are registered as attributes are: those in a plain list are not.

    modules : iterable of Module, optional -- The modules in order; their names are their indices.
    raises TypeError -- If a value is not a module.

    >>> from xgrad import nn
    >>> layers = nn.ModuleList([nn.Linear(3, 4)])
    >>> layers.append(nn.Linear(4, 2))
    ModuleList(
      (0): Linear(in_features=3, out_features=4, bias=True)
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    >>> len(layers), layers[-1].out_features, [layer.in_features for layer in layers]
    (2, 2, [3, 4])
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Self:
        """Add a module at the end, and return this list."""
        i = len(self)
        if not isinstance(module, Module):
            hint = ": call the class to make one" if isinstance(module, type) else ""
            raise TypeError(f"{type(self).__name__}: expected modules, got {shown(module)} at {i}{hint}")
        setattr(self, str(i), module)
        return self

    def __iter__(self) -> Iterator[Module]:
        return (value for value in vars(self).values() if isinstance(value, Module))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module:
        chosen = list(self)[index]
        return chosen if isinstance(chosen, Module) else ModuleList(chosen)


@documented()
class Sequential(ModuleList):
    """A chain of modules: each is called with the result of the one before.

    *modules : Module -- The modules in order; their names are their indices.
    raises TypeError -- If a value is not a module.

    >>> import xgrad
    >>> from xgrad import nn
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    >>> net
    Sequential(
      (0): Linear(in_features=3, out_features=4, bias=True)
      (1): ReLU()
    )
    >>> net[0](xgrad.ones((2, 3))).shape, len(net), net[1:]
    ((2, 4), 2, Sequential(
      (0): ReLU()
    ))
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        chosen = list(self)[index]
        return chosen if isinstance(chosen, Module) else Sequential(*chosen)

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        stack = [iter(self)]
        while stack:
            for module in stack[-1]:
                if type(module) is Sequential and "forward" not in vars(module):  # nested, without recursion
                    if len(stack) == 10_000:
                        raise ValueError("Sequential: expected no module in itself, got modules nested 10000 deep")
                    stack.append(iter(module))
                    break
                input = module(input)
            else:
                stack.pop()
        return input


_ACTIVATIONS: dict[str, Callable[[], Module]] = {"relu": ReLU, "sigmoid": Sigmoid, "tanh": Tanh}


@documented()
class MLP(Sequential):
    """A multilayer perceptron: `Linear` layers, with an activation between them and none after the last.

    With dropout, a `Dropout` follows every activation.

    sizes : sequence of int -- The numbers of inputs, of hidden units in each layer, and of outputs.
    activation : type of Module, callable or str, default ReLU -- The class of the activation, or its name: ``"relu"``,
        ``"sigmoid"`` or ``"tanh"``.
    dropout : float, default 0 -- The dropout probability of hidden units.
    device : str or Device, optional -- By default the `default_device`.
    dtype : dtype, optional -- float32, the default, or float64.
    raises ValueError -- If `sizes` are fewer than two ints above 0, the activation is unknown, or `dropout` is not from
        0 to 1.
    raises TypeError -- If `activation` does not return modules, or `dropout` is not a number.

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
            raise ValueError(f"MLP: expected a list of at least two sizes, such as [784, 128, 10], got {shown(sizes)}")
        make = _ACTIVATIONS.get(activation.lower()) if isinstance(activation, str) else activation
        if make is None:
            raise ValueError(f"MLP: expected an activation of {list(_ACTIVATIONS)}, got {shown(activation)}")
        if isinstance(make, Module) or not callable(make):
            raise TypeError(f"MLP: expected a class of activations, such as nn.ReLU, got {shown(activation)}")
        check_probability("MLP", dropout)
        layers: list[Module] = []
        for inputs, outputs in pairwise(sizes):
            if layers:
                layers += [make(), Dropout(dropout)] if dropout else [make()]
            layers.append(Linear(inputs, outputs, device=device, dtype=dtype))
        super().__init__(*layers)
