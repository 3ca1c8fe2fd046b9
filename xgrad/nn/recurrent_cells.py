"""Recurrent cells for single steps, and the weights and steps that layers share with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.functional import linear
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.nn.utils.rnn import take_steps
from xgrad.ops import (
    arange,
    broadcast_to,
    concat,
    empty,
    expand_dims,
    full,
    sigmoid,
    squeeze,
    stack,
    tanh,
    unstack,
    where,
    zeros,
)
from xgrad.ops.recurrent import gru, lstm, rnn
from xgrad.support.hints import shown

States = list[Tensor]


class Ends:
    """The ends of padded sequences of several lengths.

    Attributes
    ----------
    inside : Tensor
        Of shape (time, batch): whether a sequence has an element at a time.
    """

    def __init__(self, lengths: Tensor, time: int) -> None:
        times = expand_dims(arange(time, device=lengths.device), axis=1)
        self._columns = arange(lengths.shape[0], device=lengths.device)
        self._lasts = lengths - 1
        self.inside = times < lengths
        self._mirrored = where(self.inside, lengths - 1 - times, times)

    def reverse(self, x: Tensor) -> Tensor:
        """Reverse the order of time of each sequence; the padding remains at the end."""
        columns = broadcast_to(self._columns, self._mirrored.shape)
        return take_steps(x, self._mirrored, columns)

    def last(self, x: Tensor) -> Tensor:
        """Return the last element of each sequence."""
        return take_steps(x, self._lasts, self._columns)


class RecurrentWeights(Module):
    """The parameters of a recurrent layer or cell, under PyTorch's names."""

    gates: ClassVar[int]
    input_size: int
    hidden_size: int
    proj_size: int = 0
    bias: bool

    def _state_sizes(self) -> tuple[int, ...]:
        """Return the length of each state: the hidden state, and others."""
        return (self.hidden_size,)

    def _add_weights(
        self, inputs: int, suffix: str, device: str | Device | None, dtype: Any
    ) -> None:
        rows = self.gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, self._state_sizes()[0]),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(empty(shape, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Initialize all weights and biases again, uniformly over ±1/√hidden."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _run(
        self,
        x: Tensor,
        states: States,
        suffix: str = "",
        reverse: bool = False,
        ends: Ends | None = None,
    ) -> tuple[Tensor, States]:
        """Return the hidden states of all steps, and the last states.

        `x` has shape (time, batch, in); `ends` are the ends of sequences of several lengths.
        """
        weights = [getattr(self, f"weight_{part}{suffix}") for part in ("ih", "hh")]
        weights += [getattr(self, f"weight_hr{suffix}")] if self.proj_size else []
        biases = (
            [getattr(self, f"bias_{part}{suffix}") for part in ("ih", "hh")]
            if self.bias
            else [None, None]
        )
        if ends is None:
            out, *others = self._steps(x, weights, biases, states, reverse, None)
            return out, [out[0 if reverse else -1, ...], *others]
        x = ends.reverse(x) if reverse else x
        out, *others = self._steps(x, weights, biases, states, False, ends)
        return ends.reverse(out) if reverse else out, [ends.last(out), *others]

    def _steps(
        self,
        x: Tensor,
        weights: list[Tensor],
        biases: list[Any],
        states: States,
        reverse: bool,
        ends: Ends | None,
    ) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _states(self, given: Any, shapes: list[tuple[int, ...]], x: Tensor) -> States:
        """Return the states before the first step, by default zeros."""
        if given is None:
            # One tensor for states of one shape, which nothing writes to: each is a launch on GPUs.
            first = {shape: zeros(shape, device=x.device, dtype=x.dtype) for shape in {*shapes}}
            return [first[shape] for shape in shapes]
        return [self._state("hx", given, shapes[0], x)]

    def _state(self, name: str, state: Any, shape: tuple[int, ...], x: Tensor) -> Tensor:
        layer = type(self).__name__
        result = of_dtype_of(x, state, layer, name)
        if result.shape != shape:
            raise ValueError(f"{layer}: expected {name} of shape {shape}, got {result.shape}")
        return result

    def _check_input(self, input: Tensor, ndim: int, axes: str, weight: Tensor) -> Tensor:
        layer = type(self).__name__
        input = of_dtype_of(weight, input, layer)
        if input.ndim not in (ndim - 1, ndim) or input.shape[-1] != self.input_size:
            raise ValueError(f"{layer}: expected input of shape {axes}, got {input.shape}")
        return input


class PlainUnit(RecurrentWeights):
    """A layer without gates."""

    gates = 1
    nonlinearity: str

    def _check_nonlinearity(self) -> None:
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"{type(self).__name__}: expected a nonlinearity of 'tanh' or 'relu', got"
                f" {shown(self.nonlinearity)}"
            )

    def _steps(
        self,
        x: Tensor,
        weights: list[Tensor],
        biases: list[Any],
        states: States,
        reverse: bool,
        ends: Ends | None,
    ) -> tuple[Tensor, ...]:
        x = linear(x, weights[0], biases[0] + biases[1] if self.bias else None)
        return (rnn(x, weights[1], states[0], nonlinearity=self.nonlinearity, reverse=reverse),)


class GatedUnit(RecurrentWeights):
    """A gated recurrent unit."""

    gates = 3

    def _steps(
        self,
        x: Tensor,
        weights: list[Tensor],
        biases: list[Any],
        states: States,
        reverse: bool,
        ends: Ends | None,
    ) -> tuple[Tensor, ...]:
        return (
            gru(
                linear(x, weights[0], biases[0]), weights[1], states[0], biases[1], reverse=reverse
            ),
        )


class LongShortUnit(RecurrentWeights):
    """A layer with long short-term memory; its states are the hidden state and the cell."""

    gates = 4

    def _steps(
        self,
        x: Tensor,
        weights: list[Tensor],
        biases: list[Any],
        states: States,
        reverse: bool,
        ends: Ends | None,
    ) -> tuple[Tensor, ...]:
        x = linear(x, weights[0], biases[0] + biases[1] if self.bias else None)
        if ends is not None:
            # An open forget gate and a closed input gate keep the cell after the end: at ±30000,
            # the logistic function is 1 or 0 in every dtype. Infinity would be an anomaly.
            n, gates = self.hidden_size, (-3e4, 3e4, 0.0, 0.0)
            keep = concat([full(n, value, device=x.device, dtype=x.dtype) for value in gates])
            x = where(expand_dims(ends.inside, axis=-1), x, keep)
        if self.proj_size:
            return _projected_lstm(x, weights[1], weights[2], states, reverse)
        out, c = lstm(x, weights[1], *states, reverse=reverse)
        return out, c

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.proj_size or self.hidden_size, self.hidden_size)

    def _states(self, given: Any, shapes: list[tuple[int, ...]], x: Tensor) -> States:
        if given is None:
            return super()._states(None, shapes, x)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError(
                f"{type(self).__name__}: expected a pair (h, c) for hx, got {shown(given)}"
            )
        return [
            self._state(f"hx[{i}]", state, shape, x)
            for i, (state, shape) in enumerate(zip(given, shapes, strict=True))
        ]


def _projected_lstm(
    x: Tensor, weight: Tensor, projection: Tensor, states: States, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Return the projected hidden states of all steps, and the last cell.

    `x` is the projected input of shape (time, batch, 4 hidden); see `xgrad.ops.recurrent.lstm`.
    """
    steps, out = unstack(x), []
    h, c = states
    for z in steps[::-1] if reverse else steps:
        n = c.shape[-1]
        gates = z + linear(h, weight)
        i, f, o = (sigmoid(gates[:, k * n : (k + 1) * n]) for k in (0, 1, 3))
        c = f * c + i * tanh(gates[:, 2 * n : 3 * n])
        h = linear(o * tanh(c), projection)
        out.append(h)
    return stack(out[::-1] if reverse else out), c


class _Cell(RecurrentWeights):
    """The base class of cells, which compute one step."""

    weight_ih: Parameter

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = positive_int(type(self).__name__, "input_size", input_size)
        self.hidden_size = positive_int(type(self).__name__, "hidden_size", hidden_size)
        self.bias = bias
        self._add_weights(input_size, "", device, dtype)
        self.reset_parameters()

    def _forward(self, input: Tensor, hx: Any) -> States:
        axes = f"(batch, in) or (in,), in = {self.input_size}"
        input = self._check_input(input, 2, axes, self.weight_ih)
        shapes = [(*input.shape[:-1], size) for size in self._state_sizes()]
        states = self._states(hx, shapes, input)
        if input.ndim == 2:
            return self._run(expand_dims(input, axis=0), states)[1]
        states = [expand_dims(state, axis=0) for state in states]
        return [
            squeeze(state, axis=0)
            for state in self._run(expand_dims(input, axis=(0, 1)), states)[1]
        ]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(PlainUnit, _Cell):
    """One step of `RNN`.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    bias : bool, default True
        Whether to add biases.
    nonlinearity : {"tanh", "relu"}, default "tanh"
        The nonlinearity.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih : Parameter
        Of shape (hidden, in).
    weight_hh : Parameter
        Of shape (hidden, hidden).
    bias_ih, bias_hh : Parameter
        Of shape (hidden,).

    Raises
    ------
    ValueError
        If a size is not an int above 0, or `nonlinearity` is neither of the two; in the call, if a
        shape does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> cell, h = xgrad.nn.RNNCell(3, 4), None
    >>> for x in xgrad.ones((7, 5, 3)):
    ...     h = cell(x, h)
    >>> h.shape
    (5, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity
        self._check_nonlinearity()

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state after an input.

        `input` has shape (batch, in) and the state (batch, hidden), or both have no batch axis.
        `hx` is the previous state, by default zeros.
        """
        return self._forward(input, hx)[0]


class GRUCell(GatedUnit, _Cell):
    """One step of `GRU`.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    bias : bool, default True
        Whether to add biases.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih : Parameter
        Of shape (3 hidden, in), the rows of r, z and n.
    weight_hh : Parameter
        Of shape (3 hidden, hidden).
    bias_ih, bias_hh : Parameter
        Of shape (3 hidden,).

    Raises
    ------
    ValueError
        If a size is not an int above 0; in the call, if a shape does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GRUCell(3, 4)(xgrad.ones((5, 3))).shape
    (5, 4)
    """

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state after an input.

        The parameters are the same as in `RNNCell.forward`.
        """
        return self._forward(input, hx)[0]


class LSTMCell(LongShortUnit, _Cell):
    """One step of `LSTM`.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    bias : bool, default True
        Whether to add biases.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih : Parameter
        Of shape (4 hidden, in), the rows of i, f, g and o.
    weight_hh : Parameter
        Of shape (4 hidden, hidden).
    bias_ih, bias_hh : Parameter
        Of shape (4 hidden,).

    Raises
    ------
    ValueError
        If a size is not an int above 0; in the call, if a shape does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Examples
    --------
    >>> import xgrad
    >>> h, c = xgrad.nn.LSTMCell(3, 4)(xgrad.ones((5, 3)))
    >>> h.shape, c.shape
    ((5, 4), (5, 4))
    """

    def forward(self, input: Tensor, hx: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the hidden state and the cell after an input.

        The parameters are the same as in `RNNCell.forward`, but `hx` is the pair of previous ones.
        """
        h, c = self._forward(input, hx)
        return h, c
