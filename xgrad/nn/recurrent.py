"""Recurrent layers over sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from warnings import warn

from xgrad.backend.device import Device
from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn.checks import positive_int
from xgrad.nn.functional import dropout
from xgrad.nn.parameter import Parameter
from xgrad.nn.recurrent_cells import (
    Ends,
    GatedUnit,
    LongShortUnit,
    PlainUnit,
    RecurrentWeights,
    States,
)
from xgrad.nn.utils.rnn import PackedSequence, packed_like, pad_packed_sequence
from xgrad.ops import concat, expand_dims, permute_dims, squeeze, stack
from xgrad.ops.dropout import check_probability


class _Layers(RecurrentWeights):
    """The base class of recurrent layers."""

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
        proj_size: int = 0,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = type(self).__name__
        self.input_size = positive_int(layer, "input_size", input_size)
        self.hidden_size = positive_int(layer, "hidden_size", hidden_size)
        self.num_layers = positive_int(layer, "num_layers", num_layers)
        check_probability(layer, dropout)
        if dropout and num_layers == 1:
            warn(
                f"{layer}: dropout acts between layers, and there is only one: raise num_layers",
                stacklevel=2,
            )
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        if as_int(layer, "proj_size", proj_size) and not 0 < proj_size < hidden_size:
            raise ValueError(
                f"{layer}: expected proj_size from 0 to {hidden_size - 1}, below hidden_size, got"
                f" {proj_size}"
            )
        self.proj_size = proj_size
        for k in range(num_layers):
            for suffix in self._suffixes(k):
                inputs = input_size if k == 0 else self._state_sizes()[0] * (1 + bidirectional)
                self._add_weights(inputs, suffix, device, dtype)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def _forward(self, input: Any, hx: Any) -> tuple[Any, States]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        axes = "(batch, time, in)" if self.batch_first else "(time, batch, in)"
        axes = f"{axes} or (time, in), in = {self.input_size}"
        input = self._check_input(input, 3, axes, self.weight_ih_l0)
        batch_axis = 1 - self.batch_first if input.ndim == 3 else 1
        x = input if input.ndim == 3 else expand_dims(input, axis=1)
        x = permute_dims(x, (1, 0, 2)) if batch_axis == 0 else x
        if not x.shape[0]:
            raise ValueError(
                f"{type(self).__name__}: expected at least one time step, got shape {input.shape}"
            )
        batch = () if input.ndim == 2 else (x.shape[1],)
        states = self._states(hx, self._state_shapes(batch), x)
        if input.ndim == 2:
            states = [expand_dims(state, axis=1) for state in states]
        x, ends = self._run_layers(x, states, None)
        if input.ndim == 2:
            return squeeze(x, axis=1), [squeeze(end, axis=1) for end in ends]
        return permute_dims(x, (1, 0, 2)) if batch_axis == 0 else x, ends

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, States]:
        """Run all layers on padded sequences, and pack the result."""
        axes = f"(elements, in), in = {self.input_size}, for packed data"
        if as_tensor(type(self).__name__, "input", input.data).ndim != 2:
            raise ValueError(
                f"{type(self).__name__}: expected input of shape {axes}, got {input.data.shape}"
            )
        self._check_input(input.data, 2, axes, self.weight_ih_l0)
        x, lengths = pad_packed_sequence(input)
        states = self._states(hx, self._state_shapes((x.shape[1],)), x)
        x, ends = self._run_layers(x, states, Ends(lengths, x.shape[0]))
        return packed_like(input, x), ends

    def _state_shapes(self, batch: tuple[int, ...]) -> list[tuple[int, ...]]:
        count = self.num_layers * (1 + self.bidirectional)
        return [(count, *batch, size) for size in self._state_sizes()]

    def _run_layers(self, x: Tensor, states: States, ends: Ends | None) -> tuple[Tensor, States]:
        """Return the outputs of the last layer, and the last states of all layers.

        `x` has shape (time, batch, in); `ends` are the ends of sequences of several lengths.
        """
        lasts: list[States] = []
        for k in range(self.num_layers):
            outs = []
            for suffix in self._suffixes(k):
                first = [state[len(lasts), ...] for state in states]
                out, last = self._run(x, first, suffix, suffix.endswith("reverse"), ends)
                outs.append(out)
                lasts.append(last)
            x = outs[0] if len(outs) == 1 else concat(outs, axis=-1)
            if self.dropout and k < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        return x, [stack(parts) for parts in zip(*lasts, strict=True)]

    def extra_repr(self) -> str:
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        options = {name: getattr(self, name) for name in defaults}
        changed = [f"{name}={x}" for name, x in options.items() if x != defaults[name]]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


class RNN(PlainUnit, _Layers):
    r"""Recurrent layers without gates.

    At each step, with the nonlinearity :math:`\varphi`:

    .. math:: h' = \varphi(W_{ih}\, x + b_{ih} + W_{hh}\, h + b_{hh})

    J. Elman, "Finding structure in time", Cognitive Science 14, 1990.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    num_layers : int, default 1
        The number of layers; each layer after the first takes the output of the previous one.
    nonlinearity : {"tanh", "relu"}, default "tanh"
        The nonlinearity.
    bias : bool, default True
        Whether to add biases.
    batch_first : bool, default False
        Whether the first axis of the input and the output is the batch instead of time.
    dropout : float, default 0
        The dropout probability of the outputs of all layers but the last.
    bidirectional : bool, default False
        Whether each layer also reads the sequence backward; the outputs of both
        directions are concatenated.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih_l0 : Parameter
        Of shape (hidden, in). The second layer has ``weight_ih_l1``, and the other direction
        ``weight_ih_l0_reverse``.
    weight_hh_l0 : Parameter
        Of shape (hidden, hidden).
    bias_ih_l0, bias_hh_l0 : Parameter
        Of shape (hidden,).

    Raises
    ------
    ValueError
        If a size is not an int above 0, or `dropout` is not from 0 to 1; in the call, if a shape
        does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Warns
    -----
    UserWarning
        If `dropout` is above 0 but has no effect, because there is only one layer.

    Examples
    --------
    >>> import xgrad
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
        super().__init__(
            *sizes, bias, batch_first, dropout, bidirectional, device=device, dtype=dtype
        )
        self.nonlinearity = nonlinearity
        self._check_nonlinearity()

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the last layer's hidden states, and all layers' hidden states after the last step.

        `input` has shape (time, batch, in), or (time, in) without a batch; the first result has
        shape (time, batch, hidden). `hx`, by default zeros, and the second result have shape
        (layers, batch, hidden). Two directions count as two layers and double the last axis of the
        first result. A `PackedSequence` gives a packed result, and the states at the end of each
        sequence.
        """
        out, (h,) = self._forward(input, hx)
        return out, h


class GRU(GatedUnit, _Layers):
    r"""Gated recurrent units.

    At each step, with the logistic function :math:`\sigma`:

    .. math::

        \begin{align*}
            r &= \sigma(W_{ir}\, x + b_{ir} + W_{hr}\, h + b_{hr}) \\
            z &= \sigma(W_{iz}\, x + b_{iz} + W_{hz}\, h + b_{hz}) \\
            n &= \tanh(W_{in}\, x + b_{in} + r\, (W_{hn}\, h + b_{hn})) \\
            h' &= (1 - z)\, n + z\, h
        \end{align*}

    K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation", EMNLP, 2014; with the reset gate after the product, as in cuDNN and
    PyTorch.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    num_layers : int, default 1
        The number of layers; each layer after the first takes the output of the previous one.
    bias : bool, default True
        Whether to add biases.
    batch_first : bool, default False
        Whether the first axis of the input and the output is the batch instead of time.
    dropout : float, default 0
        The dropout probability of the outputs of all layers but the last.
    bidirectional : bool, default False
        Whether each layer also reads the sequence backward; the outputs of both
        directions are concatenated.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih_l0 : Parameter
        Of shape (3 hidden, in), the rows of r, z and n. The second layer has ``weight_ih_l1``, and
        the other direction ``weight_ih_l0_reverse``.
    weight_hh_l0 : Parameter
        Of shape (3 hidden, hidden).
    bias_ih_l0, bias_hh_l0 : Parameter
        Of shape (3 hidden,).

    Raises
    ------
    ValueError
        If a size is not an int above 0, or `dropout` is not from 0 to 1; in the call, if a shape
        does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Warns
    -----
    UserWarning
        If `dropout` is above 0 but has no effect, because there is only one layer.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.GRU(3, 4, bidirectional=True)
    >>> output, h = layer(xgrad.ones((7, 5, 3)))
    >>> output.shape, h.shape
    ((7, 5, 8), (2, 5, 4))
    """

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the last layer's hidden states, and all layers' hidden states after the last step.

        The parameters are the same as in `RNN.forward`.
        """
        out, (h,) = self._forward(input, hx)
        return out, h


class LSTM(LongShortUnit, _Layers):
    r"""Long short-term memory.

    At each step, with the logistic function :math:`\sigma`:

    .. math::

        \begin{align*}
            i &= \sigma(W_{ii}\, x + b_{ii} + W_{hi}\, h + b_{hi}) \\
            f &= \sigma(W_{if}\, x + b_{if} + W_{hf}\, h + b_{hf}) \\
            g &= \tanh(W_{ig}\, x + b_{ig} + W_{hg}\, h + b_{hg}) \\
            o &= \sigma(W_{io}\, x + b_{io} + W_{ho}\, h + b_{ho}) \\
            c' &= f\, c + i\, g \\
            h' &= o \tanh(c')
        \end{align*}

    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; the forget
    gate follows F. Gers, J. Schmidhuber, F. Cummins, "Learning to forget: continual prediction with
    LSTM", Neural Computation 12, 2000.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the last axis of the input and of the hidden state.
    num_layers : int, default 1
        The number of layers; each layer after the first takes the output of the previous one.
    bias : bool, default True
        Whether to add biases.
    batch_first : bool, default False
        Whether the first axis of the input and the output is the batch instead of time.
    dropout : float, default 0
        The dropout probability of the outputs of all layers but the last.
    bidirectional : bool, default False
        Whether each layer also reads the sequence backward; the outputs of both
        directions are concatenated.
    proj_size : int, default 0
        Unless 0, the length of the hidden state h, which is then :math:`W_{hr}\, (o
        \tanh(c'))`; it is below `hidden_size`, the length of c. The layer is then slower.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight_ih_l0 : Parameter
        Of shape (4 hidden, in), the rows of i, f, g and o. The second layer has ``weight_ih_l1``,
        and the other direction ``weight_ih_l0_reverse``.
    weight_hh_l0 : Parameter
        Of shape (4 hidden, hidden), or (4 hidden, proj_size).
    bias_ih_l0, bias_hh_l0 : Parameter
        Of shape (4 hidden,).
    weight_hr_l0 : Parameter
        Of shape (proj_size, hidden), if `proj_size` is not 0.

    Raises
    ------
    ValueError
        If a size is not an int above 0, or `dropout` is not from 0 to 1; in the call, if a shape
        does not fit.
    TypeError
        In the call, if the input or a state has another dtype than the weights.
    DeviceError
        If the device is unknown or cannot be used; in the call, if the input is on another one.

    Warns
    -----
    UserWarning
        If `dropout` is above 0 but has no effect, because there is only one layer.

    Examples
    --------
    >>> import xgrad
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
        sizes = input_size, hidden_size, num_layers
        super().__init__(
            *sizes, bias, batch_first, dropout, bidirectional, proj_size, device=device, dtype=dtype
        )

    def forward(
        self, input: Any, hx: Sequence[Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Return the last layer's hidden states, and the final pair of hidden states and cells.

        The pair holds the states of all layers after the last step. The parameters are the same as
        in `RNN.forward`, but `hx` is the pair before the first step, by default zeros; with
        `proj_size`, that is the last axis of the hidden states, not of the cells.
        """
        out, (h, c) = self._forward(input, hx)
        return out, (h, c)
