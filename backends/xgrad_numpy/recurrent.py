"""Kernels of recurrent layers: loops over time that write to preallocated arrays, without temporaries.

The kernels of native/recurrent.py, with the same bits, replace them where the runtime of native kernels is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad_numpy.native import recurrent as native

Array = np.ndarray[Any, Any]


def _times(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _by_gate(x: Array) -> Array:
    """Return a view of shape (..., 4, batch, hidden) of one of shape (..., batch, 4 hidden)."""
    return x.reshape(*x.shape[:-1], 4, x.shape[-1] // 4).swapaxes(-2, -3)


def lstm_steps(x: Array, weight: Array, h: Array, c: Array, reverse: bool) -> tuple[Array, Array, Array]:
    """Return the hidden states, the cells and the gates of all steps."""
    steps, (batch, n) = x.shape[0], h.shape
    dtype = np.result_type(x, weight)
    states, cells, gates = (np.empty((steps, *shape), dtype) for shape in (h.shape, c.shape, (4, batch, n)))
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
    g_states: Array, g_cell: Array, weight: Array, c: Array, cells: Array, gates: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of the projected input, of the first hidden state, and of the first cell."""
    steps, batch, n = cells.shape
    gradient, dh, dc = np.empty((steps, batch, 4 * n), cells.dtype), np.zeros_like(g_cell, order="C"), g_cell.copy()
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
        # Per gate the factor that it multiplies, then its own slope.
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
