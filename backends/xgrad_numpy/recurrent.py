"""Kernels of recurrent layers: loops over time that write to preallocated arrays, without temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _times(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _quarters(x: Array) -> list[Array]:
    n = x.shape[-1] // 4
    return [x[:, i * n : (i + 1) * n] for i in range(4)]


def lstm_steps(x: Array, weight: Array, h: Array, c: Array, reverse: bool) -> tuple[Array, Array, Array]:
    """Return the hidden states, the cells and the gates of all steps."""
    steps, (batch, n) = x.shape[0], h.shape
    dtype = np.result_type(x, weight)
    states, cells, gates = (np.empty((steps, batch, k), dtype) for k in (n, n, 4 * n))
    negative, ones = np.negative(weight.T, order="C"), np.ones((batch, 4 * n), dtype)
    candidate, term = np.empty((2, batch, n), dtype)
    with np.errstate(over="ignore"):  # 1 / (1 + inf) is right
        for t in _times(steps, reverse):
            z = gates[t]
            i, f, g, o = _quarters(z)
            np.dot(h, negative, z)
            np.subtract(z, x[t], z)
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
    gradient, dh, dc = np.empty_like(gates), np.zeros_like(g_cell), g_cell.copy()
    weight, ones = np.ascontiguousarray(weight), np.ones((batch, 4 * n), cells.dtype)
    squashed, term = np.empty((2, batch, n), cells.dtype)
    slope = np.empty((batch, 4 * n), cells.dtype)
    order = list(_times(steps, not reverse))
    for t, before in zip(order, [*order[1:], None], strict=True):
        z, d = gates[t], gradient[t]
        i, f, g, o = _quarters(z)
        di, df, dg, do = _quarters(d)
        # Per gate the factor that it multiplies, then its own slope.
        np.add(dh, g_states[t], dh)
        np.tanh(cells[t], squashed)
        np.multiply(dh, squashed, do)
        np.multiply(squashed, squashed, squashed)
        np.subtract(ones[:, :n], squashed, squashed)
        np.multiply(squashed, o, squashed)
        np.multiply(squashed, dh, squashed)
        np.add(dc, squashed, dc)
        np.multiply(dc, g, di)
        np.multiply(dc, c if before is None else cells[before], df)
        np.multiply(dc, i, dg)
        np.subtract(ones, z, slope)
        np.multiply(slope, z, slope)  # z (1 - z) of the logistic gates
        np.multiply(g, g, term)
        np.subtract(1, term, slope[:, 2 * n : 3 * n])
        np.multiply(d, slope, d)
        np.multiply(dc, f, dc)
        np.dot(d, weight, dh)
    return gradient, dh, dc
