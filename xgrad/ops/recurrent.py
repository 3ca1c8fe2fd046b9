"""Recurrent layers over all time steps, with derivatives in closed form.

The first axis is time. The input is projected in advance, in one product for all steps. The
backward pass collects the gradients of all steps, so that the weight gradient is one product, too.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core.dtypes import FLOATING
from xgrad.ops.declare import call_op, derivative
from xgrad.ops.elementwise import sigmoid


def _times(x: Any, reverse: bool) -> range:
    """Return the time steps in the order of computation."""
    return range(x.shape[0] - 1, -1, -1) if reverse else range(x.shape[0])


def _in_order_of_time(xp: Any, steps: list[Any], reverse: bool) -> Any:
    return xp.stack(steps[::-1] if reverse else steps)


def _before(xp: Any, first: Any, states: Any, reverse: bool) -> Any:
    """Return the state before each step, given the first state and the states after each step."""
    first = xp.expand_dims(first, axis=0)
    return xp.concat([states[1:, ...], first] if reverse else [first, states[:-1, ...]], axis=0)


def _rows(xp: Any, x: Any) -> Any:
    """Flatten all axes but the last into one."""
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _weight_gradient(xp: Any, g: Any, first: Any, states: Any, reverse: bool) -> Any:
    """Return the gradient of `weight` in ``state @ weight.T``, given the products' gradient."""
    before = xp.matrix_transpose(_rows(xp, _before(xp, first, states, reverse)))
    return xp.matrix_transpose(xp.matmul(before, _rows(xp, g)))


def _logistic(xp: Any, x: Any) -> Any:
    return call_op(sigmoid, xp, x)


@overridable
def _lstm_steps(xp: Any, x: Any, weight: Any, h: Any, c: Any, reverse: bool) -> Any:
    """Return the hidden states, the cells and the gates of all steps.

    The gates have shape (time, 4, batch, hidden).
    """
    weight, n = xp.matrix_transpose(weight), h.shape[-1]
    states, cells, gates = [], [], []
    for t in _times(x, reverse):
        z = x[t, ...] + h @ weight
        both = _logistic(xp, z[:, : 2 * n])
        g = xp.tanh(z[:, 2 * n : 3 * n])
        o = _logistic(xp, z[:, 3 * n :])
        c = both[:, n:] * c + both[:, :n] * g
        h = o * xp.tanh(c)
        states.append(h)
        cells.append(c)
        gates.append(xp.stack([both[:, :n], both[:, n:], g, o]))
    return tuple([_in_order_of_time(xp, steps, reverse) for steps in (states, cells, gates)])


@overridable
def _lstm_gradient(
    xp: Any, g_states: Any, g_cell: Any, weight: Any, c: Any, cells: Any, gates: Any, reverse: bool
) -> Any:
    """Return the gradients of the projected input, the first hidden state and the first cell."""
    before, gradients = _before(xp, c, cells, reverse), []
    dh, dc = xp.zeros_like(g_cell), g_cell
    for t in _times(cells, not reverse):
        i, f, g, o = (gates[t, k, ...] for k in range(4))
        dh, squashed = dh + g_states[t, ...], xp.tanh(cells[t, ...])
        dc = dc + dh * o * (1 - squashed * squashed)
        di, df = dc * g * i * (1 - i), dc * before[t, ...] * f * (1 - f)
        dg, do = dc * i * (1 - g * g), dh * squashed * o * (1 - o)
        gradients.append(xp.concat([di, df, dg, do], axis=-1))
        dh, dc = gradients[-1] @ weight, dc * f
    return _in_order_of_time(xp, gradients, not reverse), dh, dc


def _lstm_rule(
    g: Any, xp: Any, x: Any, weight: Any, h: Any, c: Any, out: Any, steps: Any, reverse: bool
) -> tuple[Any, ...]:
    cells, gates = steps or _lstm_steps(xp, x, weight, h, c, reverse)[1:]
    dx, dh, dc = _lstm_gradient(xp, g[0], g[1], weight, c, cells, gates, reverse)
    return dx, _weight_gradient(xp, dx, h, out[0], reverse), dh, dc


@derivative(
    _lstm_rule,
    lowest=FLOATING,
    highest=FLOATING,
    residual="steps",
    joint_backward=True,
    autocast="narrow",
    upcast=True,
)
def lstm(xp: Any, x: Any, weight: Any, h: Any, c: Any, *, reverse: bool = False) -> Any:
    r"""Return the hidden states of all steps and the last cell of an LSTM.

    `x` is the projected input of shape (time, batch, 4 hidden), for the input gate, the forget
    gate, the cell and the output gate; `weight` has shape (4 hidden, hidden).

    Notes
    -----
    .. math::

        \begin{align*}
            h_t &= o_t \tanh(c_t), & c_t &= f_t\, c_{t - 1} + i_t\, g_t \\
            i_t, f_t, o_t &= \sigma(z_t), & g_t &= \tanh(z_t), \quad z_t = x_t + W h_{t - 1}
        \end{align*}

    - Gradient for `x`: :math:`\bar z_t`, with the parts :math:`\bar c_t\, g_t\, i_t (1 - i_t)`,
      :math:`\bar c_t\, c_{t - 1} f_t (1 - f_t)`, :math:`\bar c_t\, i_t (1 - g_t^2)` and
      :math:`\bar h_t \tanh(c_t)\, o_t (1 - o_t)`
    - Gradient for `weight`: :math:`\sum_t \bar z_t\, h_{t - 1}^\top`
    - Gradient for `h`: :math:`W^\top \bar z_1`
    - Gradient for `c`: :math:`\bar c_1 f_1`

    Here, :math:`\bar h_t` has the gradient that arrives and :math:`W^\top \bar z_{t + 1}`, and
    :math:`\bar c_t` is :math:`\bar c_{t + 1} f_{t + 1} + \bar h_t\, o_t (1 - \tanh^2(c_t))`.
    """
    states, cells, gates = _lstm_steps(xp, x, weight, h, c, reverse)
    return (states, cells[0 if reverse else -1, ...]), (cells, gates)


@overridable
def _gru_steps(xp: Any, x: Any, weight: Any, h: Any, bias: Any, reverse: bool) -> Any:
    """Return the hidden states of all steps, and the gates.

    The gates have shape (time, 4, batch, hidden): reset, update, candidate, and the state's part of
    the candidate.
    """
    weight, n = xp.matrix_transpose(weight), h.shape[-1]
    states, gates = [], []
    for t in _times(x, reverse):
        z, from_state = x[t, ...], h @ weight if bias is None else h @ weight + bias
        both, part = _logistic(xp, z[:, : 2 * n] + from_state[:, : 2 * n]), from_state[:, 2 * n :]
        candidate = xp.tanh(z[:, 2 * n :] + both[:, :n] * part)
        h = candidate + both[:, n:] * (h - candidate)
        states.append(h)
        gates.append(xp.stack([both[:, :n], both[:, n:], candidate, part]))
    return _in_order_of_time(xp, states, reverse), _in_order_of_time(xp, gates, reverse)


@overridable
def _gru_gradient(
    xp: Any, g: Any, weight: Any, h: Any, states: Any, gates: Any, reverse: bool
) -> Any:
    """Return the gradients of the projected input, the projected states and the first state."""
    before, of_input, of_state = _before(xp, h, states, reverse), [], []
    dh = xp.zeros_like(h)
    for t in _times(states, not reverse):
        r, z, candidate, part = (gates[t, k, ...] for k in range(4))
        dh = dh + g[t, ...]
        dn = dh * (1 - z) * (1 - candidate * candidate)
        both = [dn * part * r * (1 - r), dh * (before[t, ...] - candidate) * z * (1 - z)]
        of_input.append(xp.concat([*both, dn], axis=-1))
        of_state.append(xp.concat([*both, dn * r], axis=-1))
        dh = dh * z + of_state[-1] @ weight
    return (
        _in_order_of_time(xp, of_input, not reverse),
        _in_order_of_time(xp, of_state, not reverse),
        dh,
    )


def _gru_rule(
    g: Any, xp: Any, x: Any, weight: Any, h: Any, bias: Any, out: Any, gates: Any, reverse: bool
) -> tuple[Any, ...]:
    if gates is None:
        _, gates = _gru_steps(xp, x, weight, h, bias, reverse)
    dx, ds, dh = _gru_gradient(xp, g, weight, h, out, gates, reverse)
    db = None if bias is None else xp.sum(_rows(xp, ds), axis=0)
    return dx, _weight_gradient(xp, ds, h, out, reverse), dh, db


@derivative(
    _gru_rule,
    lowest=FLOATING,
    highest=FLOATING,
    residual="gates",
    joint_backward=True,
    autocast="narrow",
    upcast=True,
)
def gru(xp: Any, x: Any, weight: Any, h: Any, bias: Any = None, *, reverse: bool = False) -> Any:
    r"""Return the hidden states of all steps of a GRU.

    `x` is the projected input of shape (time, batch, 3 hidden), for the reset gate, the update gate
    and the candidate; `weight` has shape (3 hidden, hidden), and `bias` is added to the projected
    states.

    Notes
    -----
    .. math::

        \begin{align*}
            h_t &= n_t + z_t\, (h_{t - 1} - n_t), & n_t &= \tanh(x_t + r_t\, s_t) \\
            r_t, z_t &= \sigma(x_t + s_t), & s_t &= W h_{t - 1} + b
        \end{align*}

    - Gradient for `x`: :math:`\bar x_t`, with the parts :math:`\bar x_n s_t\, r_t (1 - r_t)`,
      :math:`\bar h_t (h_{t - 1} - n_t)\, z_t (1 - z_t)` and
      :math:`\bar x_n = \bar h_t (1 - z_t) (1 - n_t^2)`
    - Gradient for `weight`: :math:`\sum_t \bar s_t\, h_{t - 1}^\top`, where :math:`\bar s_t` is
      :math:`\bar x_t` with its last part times :math:`r_t`
    - Gradient for `h`: :math:`\bar h_1 z_1 + W^\top \bar s_1`
    - Gradient for `bias`: :math:`\sum_t \bar s_t`

    Here, :math:`\bar h_t` has the gradient that arrives and
    :math:`\bar h_{t + 1} z_{t + 1} + W^\top \bar s_{t + 1}`.
    """
    return _gru_steps(xp, x, weight, h, bias, reverse)


def _rnn_steps(xp: Any, x: Any, weight: Any, h: Any, nonlinearity: str, reverse: bool) -> Any:
    """Return the hidden states of all steps."""
    weight, states = xp.matrix_transpose(weight), []
    for t in _times(x, reverse):
        z = x[t, ...] + xp.matmul(h, weight)
        h = xp.tanh(z) if nonlinearity == "tanh" else xp.maximum(z, 0)
        states.append(h)
    return _in_order_of_time(xp, states, reverse)


def _rnn_gradient(
    xp: Any, g: Any, weight: Any, h: Any, states: Any, nonlinearity: str, reverse: bool
) -> Any:
    """Return the gradients of the projected input and the first state."""
    dh, gradients = xp.zeros_like(h), []
    for t in _times(states, not reverse):
        dh, state = dh + g[t, ...], states[t, ...]
        gradients.append(
            dh * (1 - state * state) if nonlinearity == "tanh" else xp.where(state <= 0, 0, dh)
        )
        dh = xp.matmul(gradients[-1], weight)
    return _in_order_of_time(xp, gradients, not reverse), dh


def _rnn_rule(
    g: Any, xp: Any, weight: Any, h: Any, out: Any, nonlinearity: str, reverse: bool
) -> tuple[Any, ...]:
    dx, dh = _rnn_gradient(xp, g, weight, h, out, nonlinearity, reverse)
    return dx, _weight_gradient(xp, dx, h, out, reverse), dh


@derivative(
    _rnn_rule,
    lowest=FLOATING,
    highest=FLOATING,
    joint_backward=True,
    autocast="narrow",
    upcast=True,
)
def rnn(
    xp: Any, x: Any, weight: Any, h: Any, *, nonlinearity: str = "tanh", reverse: bool = False
) -> Any:
    r"""Return the hidden states of all steps of a recurrent layer without gates.

    `x` is the projected input of shape (time, batch, hidden), `weight` has shape (hidden, hidden),
    and the nonlinearity is ``"tanh"`` or ``"relu"``.

    Notes
    -----
    .. math:: h_t = \varphi(z_t), \quad z_t = x_t + W h_{t - 1}

    - Gradient for `x`: :math:`\bar z_t = \bar h_t\, \varphi'(z_t)`, where :math:`\bar h_t` has the
      gradient that arrives and :math:`W^\top \bar z_{t + 1}`
    - Gradient for `weight`: :math:`\sum_t \bar z_t\, h_{t - 1}^\top`
    - Gradient for `h`: :math:`W^\top \bar z_1`
    """
    return _rnn_steps(xp, x, weight, h, nonlinearity, reverse)
