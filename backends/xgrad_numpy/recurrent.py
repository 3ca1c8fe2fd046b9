"""Kernels of recurrent layers: loops over time that write to preallocated arrays.

They use no temporaries. The kernels of native/recurrent.py replace them, with bit-identical
results, once the runtime of native kernels is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad_numpy.native import recurrent as native

Array = np.ndarray[Any, Any]


def _times(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _by_gate(x: Array, count: int = 4) -> Array:
    """Return a view of shape (..., count, batch, hidden).

    `x` has the shape (..., batch, count · hidden).
    """
    return x.reshape(*x.shape[:-1], count, x.shape[-1] // count).swapaxes(-2, -3)


def lstm_steps(
    x: Array, weight: Array, h: Array, c: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """Return the hidden states, the cells and the gates of all steps."""
    steps, (batch, n) = x.shape[0], h.shape
    dtype = np.result_type(x, weight)
    states, cells, gates = (
        np.empty((steps, *shape), dtype) for shape in (h.shape, c.shape, (4, batch, n))
    )
    negative, h = np.negative(weight.T, order="C"), np.ascontiguousarray(h)
    if native.lstm_steps(x, negative, h, c, states, cells, gates, reverse):
        return states, cells, gates
    ones = np.ones((4, batch, n), dtype)
    product, (candidate, term) = np.empty((batch, 4 * n), dtype), np.empty((2, batch, n), dtype)
    x, by_gate = _by_gate(x), _by_gate(product)
    with np.errstate(over="ignore"):  # 1 / (1 + inf) is right
        for t in _times(steps, reverse):
            i, f, g, o = z = gates[t]
            np.dot(h, negative, product)
            np.subtract(by_gate, x[t], z)
            np.tanh(g, candidate)
            np.exp(z, z)
            np.add(z, ones, z)
            np.divide(ones, z, z)
            np.negative(candidate, g)
            np.multiply(f, c, cells[t])
            c = cells[t]
            np.multiply(i, candidate, term)
            np.subtract(c, term, c)
            np.tanh(c, term)
            h = np.multiply(o, term, states[t])
    return states, cells, gates


def lstm_gradient(
    g_states: Array,
    g_cell: Array,
    weight: Array,
    c: Array,
    cells: Array,
    gates: Array,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    """Return the gradients of the projected input, the first hidden state and the first cell."""
    steps, batch, n = cells.shape
    gradient = np.empty((steps, batch, 4 * n), cells.dtype)
    dh = np.zeros_like(g_cell, order="C")
    dc = g_cell.copy()
    weight, by_gate = np.ascontiguousarray(weight), _by_gate(gradient)
    if native.lstm_gradient(g_states, weight, c, cells, gates, gradient, dh, dc, reverse):
        return gradient, dh, dc
    ones, slope, d = np.empty((3, 4, batch, n), cells.dtype)
    squashed, term = np.empty((2, batch, n), cells.dtype)
    ones[...] = 1
    order = list(_times(steps, not reverse))
    for t, before in zip(order, [*order[1:], None], strict=True):
        i, f, g, o = z = gates[t]
        di, df, dg, do = d
        # For each gate: the factor that it multiplies, then its own slope.
        np.add(dh, g_states[t], dh)
        np.tanh(cells[t], squashed)
        np.multiply(dh, squashed, do)
        np.multiply(squashed, squashed, squashed)
        np.subtract(ones[0], squashed, squashed)
        np.multiply(squashed, o, squashed)
        np.multiply(squashed, dh, squashed)
        np.add(dc, squashed, dc)
        np.multiply(dc, g, di)
        np.multiply(dc, c if before is None else cells[before], df)
        np.multiply(dc, i, dg)
        np.subtract(ones, z, slope)
        np.multiply(slope, z, slope)  # z (1 - z) of the logistic gates
        np.multiply(g, g, term)
        np.subtract(ones[0], term, slope[2])
        np.multiply(d, slope, by_gate[t])
        np.multiply(dc, f, dc)
        np.dot(gradient[t], weight, dh)
    return gradient, dh, dc


def gru_steps(
    x: Array, weight: Array, h: Array, bias: Array | None, reverse: bool
) -> tuple[Array, Array]:
    """Return the hidden states and the gates of all steps."""
    steps, (batch, n) = x.shape[0], h.shape
    dtype = np.result_type(x, weight)
    states, gates = (np.empty((steps, *shape), dtype) for shape in (h.shape, (4, batch, n)))
    negative, h = np.negative(weight.T, order="C"), np.ascontiguousarray(h)
    # adding -0. changes no number
    negative_bias = np.full(3 * n, -0.0, dtype) if bias is None else np.negative(bias)
    if native.gru_steps(x, negative, h, negative_bias, states, gates, reverse):
        return states, gates
    ones, product = np.ones((2, batch, n), dtype), np.empty((batch, 3 * n), dtype)
    x, by_gate = _by_gate(x, 3), _by_gate(product, 3)
    with np.errstate(over="ignore"):  # 1 / (1 + inf) is right
        for t in _times(steps, reverse):
            both, (r, z, candidate, part) = gates[t, :2], gates[t]
            np.dot(h, negative, product)
            np.add(product, negative_bias, product)
            np.subtract(by_gate[:2], x[t, :2], both)
            np.exp(both, both)
            np.add(both, ones, both)
            np.divide(ones, both, both)
            np.negative(by_gate[2], part)
            np.multiply(r, part, candidate)
            np.add(candidate, x[t, 2], candidate)
            np.tanh(candidate, candidate)
            before, h = h, states[t]
            np.subtract(before, candidate, h)
            np.multiply(z, h, h)
            np.add(candidate, h, h)
    return states, gates


def gru_gradient(
    g: Array, weight: Array, h: Array, states: Array, gates: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of the projected input, the projected states and the first state."""
    steps, batch, n = states.shape
    of_input, of_state = (np.empty((steps, batch, 3 * n), states.dtype) for _ in range(2))
    dh, weight = np.zeros((batch, n), states.dtype), np.ascontiguousarray(weight)
    if native.gru_gradient(g, weight, h, states, gates, of_input, of_state, dh, reverse):
        return of_input, of_state, dh
    ones, slope = np.ones((2, batch, n), states.dtype), np.empty((2, batch, n), states.dtype)
    dr, dz, dn, term = np.empty((4, batch, n), states.dtype)
    by_input, by_state = _by_gate(of_input, 3), _by_gate(of_state, 3)
    order = list(_times(steps, not reverse))
    for t, before in zip(order, [*order[1:], None], strict=True):
        both, (r, z, candidate, part) = gates[t, :2], gates[t]
        np.add(dh, g[t], dh)
        np.subtract(ones, both, slope)
        np.multiply(candidate, candidate, term)
        np.subtract(ones[0], term, term)
        np.multiply(dh, slope[1], dn)
        np.multiply(dn, term, dn)
        np.multiply(slope, both, slope)  # r (1 - r) and z (1 - z)
        np.multiply(dn, part, dr)
        np.multiply(dr, slope[0], dr)
        np.subtract(h if before is None else states[before], candidate, dz)
        np.multiply(dh, dz, dz)
        np.multiply(dz, slope[1], dz)
        np.multiply(dn, r, term)
        by_input[t], by_state[t] = (dr, dz, dn), (dr, dz, term)
        np.multiply(dh, z, dh)
        np.dot(of_state[t], weight, term)
        np.add(dh, term, dh)
    return of_input, of_state, dh
