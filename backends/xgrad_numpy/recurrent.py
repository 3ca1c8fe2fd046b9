"""Kernels of recurrent layers: loops over time that write to preallocated arrays, without temporaries.

The logistic function is computed as ``(1 + tanh(x / 2)) / 2``, so that one call of tanh serves all gates of a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _times(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def lstm_steps(x: Array, weight: Array, h: Array, c: Array, reverse: bool) -> tuple[Array, Array, Array]:
    """Return the hidden states, the cells and the gates of all steps."""
    steps, (batch, n) = x.shape[0], h.shape
    dtype = np.result_type(x, weight)
    states, cells = np.empty((2, steps, batch, n), dtype)
    gates = np.empty((steps, batch, 4 * n), dtype)
    scale = np.full(4 * n, 0.5, dtype)
    scale[2 * n : 3 * n] = 1
    shift = 1 - scale
    product, term = np.empty((batch, 4 * n), dtype), np.empty((batch, n), dtype)
    transposed = weight.T
    for t in _times(steps, reverse):
        z = gates[t]
        np.dot(h, transposed, product)
        np.add(product, x[t], z)
        np.multiply(z, scale, z)
        np.tanh(z, z)
        np.multiply(z, scale, z)
        np.add(z, shift, z)
        np.multiply(z[:, n : 2 * n], c, cells[t])
        c = cells[t]
        np.multiply(z[:, :n], z[:, 2 * n : 3 * n], term)
        np.add(c, term, c)
        np.tanh(c, term)
        h = np.multiply(z[:, 3 * n :], term, states[t])
    return states, cells, gates


def lstm_gradient(
    g_states: Array, g_cell: Array, weight: Array, c: Array, cells: Array, gates: Array, reverse: bool
) -> tuple[Array, Array, Array]:
    """Return the gradients of the projected input, of the first hidden state, and of the first cell."""
    steps, batch, n = cells.shape
    gradient = np.empty_like(gates)
    dh, dc = np.zeros_like(g_cell), g_cell.copy()
    # Per gate the factor that it multiplies, and its own slope.
    squashed, slope = np.empty((batch, n), cells.dtype), np.empty((batch, 4 * n), cells.dtype)
    term = np.empty_like(squashed)
    order = list(_times(steps, not reverse))
    for t, before in zip(order, [*order[1:], None], strict=True):
        z, d = gates[t], gradient[t]
        i, f, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        di, df, dg, do = (d[:, k * n : (k + 1) * n] for k in range(4))
        np.add(dh, g_states[t], dh)
        np.tanh(cells[t], squashed)
        np.multiply(dh, squashed, do)
        np.multiply(squashed, squashed, squashed)
        np.subtract(1, squashed, squashed)
        np.multiply(squashed, o, squashed)
        np.multiply(squashed, dh, squashed)
        np.add(dc, squashed, dc)
        np.multiply(dc, g, di)
        np.multiply(dc, c if before is None else cells[before], df)
        np.multiply(dc, i, dg)
        np.multiply(z, z, slope)
        np.subtract(z, slope, slope)  # z (1 - z) of the logistic gates
        np.multiply(g, g, term)
        np.subtract(1, term, slope[:, 2 * n : 3 * n])
        np.multiply(d, slope, d)
        np.multiply(dc, f, dc)
        np.dot(d, weight, dh)
    return gradient, dh, dc
