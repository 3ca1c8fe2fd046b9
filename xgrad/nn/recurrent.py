"""Recurrent layers over sequences, and their cells for single steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal
from warnings import warn

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import init
from xgrad.nn.checks import of_dtype_of
from xgrad.nn.functional import dropout, linear
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import concat, empty, expand_dims, permute_dims, squeeze, stack, zeros
from xgrad.ops.dropout import check_probability
from xgrad.ops.recurrent import gru, lstm, rnn
from xgrad.support.docstrings import by_name, documented
from xgrad.support.hints import shown

States = list[Tensor]

_SHARED = by_name(
    "input_size, hidden_size : int -- The lengths of the last axis of the input and of the hidden state.",
    "num_layers : int, default 1 -- The number of layers; each but the first takes the output of the one before.",
    "bias : bool, default True -- Whether to add biases.",
    "batch_first : bool, default False -- Whether the first axis of input and output is the batch, and not time.",
    "dropout : float, default 0 -- The dropout probability of the output of each layer but the last.",
    "bidirectional : bool, default False -- Whether each layer also reads the sequence backward; the outputs of both"
    "\n    directions are concatenated.",
    "device : str or Device, optional -- By default the `default_device`.",
    "dtype : dtype, optional -- float32, the default, or float64.",
    "ValueError -- If a size is not an int above 0, or `dropout` is not from 0 to 1; in the call, if a shape does not"
    "\n    fit.",
    "TypeError -- In the call, if a dtype is not that of the weights.",
    "DeviceError -- If the device is unknown or cannot be used; in the call, if the input is on another one.",
)


def _check_sizes(layer: str, **sizes: Any) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{layer}: expected an int above 0 for {name}, got {shown(value)}")


class _Weights(Module):
    """The parameters of a recurrent layer or cell, by PyTorch's names."""

    gates: ClassVar[int]
    input_size: int
    hidden_size: int
    bias: bool

    def _add_weights(self, inputs: int, suffix: str, device: str | Device | None, dtype: Any) -> None:
        rows = self.gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, self.hidden_size)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(empty(shape, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Initialize all weights and biases again, uniformly over ±1/√hidden."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _run(self, x: Tensor, states: States, suffix: str = "", reverse: bool = False) -> tuple[Tensor, States]:
        """Return the hidden states of all steps, and the last states, for an input of shape (time, batch, in)."""
        weights = [getattr(self, f"weight_{part}{suffix}") for part in ("ih", "hh")]
        biases = [getattr(self, f"bias_{part}{suffix}") for part in ("ih", "hh")] if self.bias else [None, None]
        out, *others = self._steps(x, weights, biases, states, reverse)
        return out, [out[0 if reverse else -1, ...], *others]

    def _steps(
        self, x: Tensor, weights: list[Tensor], biases: list[Any], states: States, reverse: bool
    ) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _states(self, given: Any, shape: tuple[int, ...], x: Tensor) -> States:
        """Return the states before the first step, by default zeros."""
        if given is None:
            return [zeros(shape, device=x.device, dtype=x.dtype)]
        return [self._state("hx", given, shape, x)]

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


class _Tanh(_Weights):
    """A layer without gates."""

    gates = 1
    nonlinearity: str

    def _check_nonlinearity(self) -> None:
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"{type(self).__name__}: expected a nonlinearity of 'tanh' or 'relu', got {shown(self.nonlinearity)}"
            )

    def _steps(
        self, x: Tensor, weights: list[Tensor], biases: list[Any], states: States, reverse: bool
    ) -> tuple[Tensor, ...]:
        x = linear(x, weights[0], biases[0] + biases[1] if self.bias else None)
        return (rnn(x, weights[1], states[0], nonlinearity=self.nonlinearity, reverse=reverse),)


class _Gated(_Weights):
    """A gated recurrent unit."""

    gates = 3

    def _steps(
        self, x: Tensor, weights: list[Tensor], biases: list[Any], states: States, reverse: bool
    ) -> tuple[Tensor, ...]:
        return (gru(linear(x, weights[0], biases[0]), weights[1], states[0], biases[1], reverse=reverse),)


class _LongShort(_Weights):
    """A layer with long short-term memory: its states are the hidden one, and the cell."""

    gates = 4

    def _steps(
        self, x: Tensor, weights: list[Tensor], biases: list[Any], states: States, reverse: bool
    ) -> tuple[Tensor, ...]:
        x = linear(x, weights[0], biases[0] + biases[1] if self.bias else None)
        out, c = lstm(x, weights[1], *states, reverse=reverse)
        return out, c

    def _states(self, given: Any, shape: tuple[int, ...], x: Tensor) -> States:
        if given is None:
            return [*super()._states(None, shape, x)] * 2
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError(f"{type(self).__name__}: expected a pair (h, c) for hx, got {shown(given)}")
        return [self._state(f"hx[{i}]", state, shape, x) for i, state in enumerate(given)]


class _Layers(_Weights):
    """Layers over sequences."""

    weight_ih_l0: Parameter

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = type(self).__name__
        _check_sizes(layer, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_probability(layer, dropout)
        if dropout and num_layers == 1:
            warn(f"{layer}: dropout acts between layers, and there is only one: raise num_layers", stacklevel=2)
        self.input_size, self.hidden_size, self.num_layers = int(input_size), int(hidden_size), int(num_layers)
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        for k in range(num_layers):
            for suffix in self._suffixes(k):
                self._add_weights(input_size if k == 0 else hidden_size * (1 + bidirectional), suffix, device, dtype)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def _forward(self, input: Tensor, hx: Any) -> tuple[Tensor, States]:
        axes = "(batch, time, in)" if self.batch_first else "(time, batch, in)"
        axes = f"{axes} or (time, in), in = {self.input_size}"
        input = self._check_input(input, 3, axes, self.weight_ih_l0)
        batch_axis = 1 - self.batch_first if input.ndim == 3 else 1
        x = input if input.ndim == 3 else expand_dims(input, axis=1)
        x = permute_dims(x, (1, 0, 2)) if batch_axis == 0 else x
        if not x.shape[0]:
            raise ValueError(f"{type(self).__name__}: expected at least one time step, got shape {input.shape}")
        count = self.num_layers * (1 + self.bidirectional)
        batch = () if input.ndim == 2 else (x.shape[1],)
        states = self._states(hx, (count, *batch, self.hidden_size), x)
        if input.ndim == 2:
            states = [expand_dims(state, axis=1) for state in states]
        lasts: list[States] = []
        for k in range(self.num_layers):
            outs = []
            for suffix in self._suffixes(k):
                first = [state[len(lasts), ...] for state in states]
                out, last = self._run(x, first, suffix, suffix.endswith("reverse"))
                outs.append(out)
                lasts.append(last)
            x = outs[0] if len(outs) == 1 else concat(outs, axis=-1)
            if self.dropout and k < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        ends = [stack(parts) for parts in zip(*lasts, strict=True)]
        if input.ndim == 2:
            return squeeze(x, axis=1), [squeeze(end, axis=1) for end in ends]
        return permute_dims(x, (1, 0, 2)) if batch_axis == 0 else x, ends

    def extra_repr(self) -> str:
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional")
        defaults = (1, True, False, 0.0, False)
        changed = [f"{n}={getattr(self, n)}" for n, d in zip(names, defaults, strict=True) if getattr(self, n) != d]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


@documented(shared=_SHARED)
class RNN(_Tanh, _Layers):
    """Recurrent layers without gates: h = tanh(W_ih x + b_ih + W_hh h + b_hh) at each step.

    J. Elman, "Finding structure in time", Cognitive Science 14, 1990.

    input_size, hidden_size, num_layers
    nonlinearity : {"tanh", "relu"}, default "tanh" -- The nonlinearity.
    bias, batch_first, dropout, bidirectional, device, dtype
    attribute weight_ih_l0 : Parameter -- Of shape (hidden, in); ``weight_ih_l1`` that of the second layer, and
        ``weight_ih_l0_reverse`` that of the other direction.
    attribute weight_hh_l0 : Parameter -- Of shape (hidden, hidden).
    attribute bias_ih_l0, bias_hh_l0 : Parameter -- Of shape (hidden,).
    raises ValueError, TypeError, DeviceError
    warns UserWarning -- If there is one layer, so that `dropout` has no effect.

    >>> layer = xgrad.nn.RNN(3, 4, num_layers=2)
    >>> output, h = layer(xgrad.ones((7, 5, 3)))
    >>> output.shape, h.shape
    ((7, 5, 4), (2, 5, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        sizes = input_size, hidden_size, num_layers
        super().__init__(*sizes, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity
        self._check_nonlinearity()

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the hidden states of the last layer, and those of all layers after the last step.

        `input` has shape (time, batch, in), or (time, in) without a batch, and the first result (time, batch, hidden);
        `hx`, by default zeros, and the second result have shape (layers, batch, hidden). Two directions count as two
        layers, and double the last axis of the first result.
        """
        out, (h,) = self._forward(input, hx)
        return out, h


@documented(shared=_SHARED)
class GRU(_Gated, _Layers):
    """Gated recurrent units.

    At each step, with the logistic function s::

        r = s(W_ir x + b_ir + W_hr h + b_hr)
        z = s(W_iz x + b_iz + W_hz h + b_hz)
        n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
        h = (1 - z) * n + z * h

    K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine translation",
    EMNLP, 2014; with the reset gate after the product, as in cuDNN and PyTorch.

    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype
    attribute weight_ih_l0 : Parameter -- Of shape (3 hidden, in), the rows of r, z and n; ``weight_ih_l1`` that of the
        second layer, and ``weight_ih_l0_reverse`` that of the other direction.
    attribute weight_hh_l0 : Parameter -- Of shape (3 hidden, hidden).
    attribute bias_ih_l0, bias_hh_l0 : Parameter -- Of shape (3 hidden,).
    raises ValueError, TypeError, DeviceError
    warns UserWarning -- If there is one layer, so that `dropout` has no effect.

    >>> layer = xgrad.nn.GRU(3, 4, bidirectional=True)
    >>> output, h = layer(xgrad.ones((7, 5, 3)))
    >>> output.shape, h.shape
    ((7, 5, 8), (2, 5, 4))
    """

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the hidden states of the last layer, and those of all layers after the last step.

        The shapes are those of `RNN.forward`.
        """
        out, (h,) = self._forward(input, hx)
        return out, h


@documented(shared=_SHARED)
class LSTM(_LongShort, _Layers):
    """Long short-term memory.

    At each step, with the logistic function s::

        i = s(W_ii x + b_ii + W_hi h + b_hi)
        f = s(W_if x + b_if + W_hf h + b_hf)
        g = tanh(W_ig x + b_ig + W_hg h + b_hg)
        o = s(W_io x + b_io + W_ho h + b_ho)
        c = f * c + i * g
        h = o * tanh(c)

    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; the forget gate is that of
    F. Gers, J. Schmidhuber, F. Cummins, "Learning to forget: continual prediction with LSTM", Neural Computation 12,
    2000.

    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
    proj_size : int, default 0 -- Only 0: projections of the hidden state are not supported.
    device, dtype
    attribute weight_ih_l0 : Parameter -- Of shape (4 hidden, in), the rows of i, f, g and o; ``weight_ih_l1`` that of
        the second layer, and ``weight_ih_l0_reverse`` that of the other direction.
    attribute weight_hh_l0 : Parameter -- Of shape (4 hidden, hidden).
    attribute bias_ih_l0, bias_hh_l0 : Parameter -- Of shape (4 hidden,).
    raises ValueError, TypeError, DeviceError
    warns UserWarning -- If there is one layer, so that `dropout` has no effect.

    >>> layer = xgrad.nn.LSTM(3, 4, batch_first=True)
    >>> output, (h, c) = layer(xgrad.ones((5, 7, 3)))
    >>> output.shape, h.shape, c.shape
    ((5, 7, 4), (1, 5, 4), (1, 5, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        if proj_size:
            raise ValueError(
                f"LSTM: expected proj_size of 0, got {shown(proj_size)}: projections are not supported; apply a Linear "
                "to the output"
            )
        sizes = input_size, hidden_size, num_layers
        super().__init__(*sizes, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Sequence[Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the hidden states of the last layer, and the pair of hidden states and cells after the last step.

        `hx` is such a pair before the first step, by default zeros; the shapes are those of `RNN.forward`.
        """
        out, (h, c) = self._forward(input, hx)
        return out, (h, c)


class _Cell(_Weights):
    """One step."""

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
        _check_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = int(input_size), int(hidden_size), bias
        self._add_weights(input_size, "", device, dtype)
        self.reset_parameters()

    def _forward(self, input: Tensor, hx: Any) -> States:
        axes = f"(batch, in) or (in,), in = {self.input_size}"
        input = self._check_input(input, 2, axes, self.weight_ih)
        states = self._states(hx, (*input.shape[:-1], self.hidden_size), input)
        if input.ndim == 2:
            return self._run(expand_dims(input, axis=0), states)[1]
        states = [expand_dims(state, axis=0) for state in states]
        return [squeeze(state, axis=0) for state in self._run(expand_dims(input, axis=(0, 1)), states)[1]]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


@documented(shared=_SHARED)
class RNNCell(_Tanh, _Cell):
    """One step of `RNN`.

    input_size, hidden_size, bias
    nonlinearity : {"tanh", "relu"}, default "tanh" -- The nonlinearity.
    device, dtype
    attribute weight_ih : Parameter -- Of shape (hidden, in).
    attribute weight_hh : Parameter -- Of shape (hidden, hidden).
    attribute bias_ih, bias_hh : Parameter -- Of shape (hidden,).
    raises ValueError, TypeError, DeviceError

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
        """Return the state of shape (batch, hidden) after an input of shape (batch, in), both also without a batch.

        `hx` is the state before, by default zeros.
        """
        return self._forward(input, hx)[0]


@documented(shared=_SHARED)
class GRUCell(_Gated, _Cell):
    """One step of `GRU`.

    input_size, hidden_size, bias, device, dtype
    attribute weight_ih : Parameter -- Of shape (3 hidden, in), the rows of r, z and n.
    attribute weight_hh : Parameter -- Of shape (3 hidden, hidden).
    attribute bias_ih, bias_hh : Parameter -- Of shape (3 hidden,).
    raises ValueError, TypeError, DeviceError

    >>> xgrad.nn.GRUCell(3, 4)(xgrad.ones((5, 3))).shape
    (5, 4)
    """

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the state after an input: see `RNNCell.forward`."""
        return self._forward(input, hx)[0]


@documented(shared=_SHARED)
class LSTMCell(_LongShort, _Cell):
    """One step of `LSTM`.

    input_size, hidden_size, bias, device, dtype
    attribute weight_ih : Parameter -- Of shape (4 hidden, in), the rows of i, f, g and o.
    attribute weight_hh : Parameter -- Of shape (4 hidden, hidden).
    attribute bias_ih, bias_hh : Parameter -- Of shape (4 hidden,).
    raises ValueError, TypeError, DeviceError

    >>> h, c = xgrad.nn.LSTMCell(3, 4)(xgrad.ones((5, 3)))
    >>> h.shape, c.shape
    ((5, 4), (5, 4))
    """

    def forward(self, input: Tensor, hx: Sequence[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return hidden state and cell after an input: see `RNNCell.forward`; `hx` is such a pair."""
        h, c = self._forward(input, hx)
        return h, c
