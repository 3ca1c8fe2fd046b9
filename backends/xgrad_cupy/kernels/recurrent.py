"""Steps of recurrent layers, each by a matrix product and one launch, and their gradients.

The rules are in `xgrad.ops.recurrent`.
"""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops.recurrent import _in_order_of_time, _times
from xgrad_cupy.kernels.raw import FLOATS, THREADS, RawKernels, blocks_for

_SOURCE = """
__device__ T logistic(T x) {
    T small = exp(-fabs(x));
    return (x < 0 ? small : (T)1) / ((T)1 + small);
}

// An element of the state. The gates of all elements follow each other: `size` is their distance.
#define ELEMENT \\
    Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x, size = batch * hidden; \\
    if (at >= size) return; \\
    Index sample = at / hidden, k = at % hidden;
#define OF(array, count, gate) array[(sample * count + gate) * hidden + k]

extern "C" __global__ void lstm_cell(
    const T *x, const T *product, const T *cell, T *state, T *next, T *gates,
    Index batch, Index hidden
) {
    ELEMENT
    T i = logistic(OF(x, 4, 0) + OF(product, 4, 0)), f = logistic(OF(x, 4, 1) + OF(product, 4, 1));
    T g = tanh(OF(x, 4, 2) + OF(product, 4, 2)), o = logistic(OF(x, 4, 3) + OF(product, 4, 3));
    T value = f * cell[at] + i * g;
    next[at] = value;
    state[at] = o * tanh(value);
    gates[at] = i;
    gates[size + at] = f;
    gates[2 * size + at] = g;
    gates[3 * size + at] = o;
}

extern "C" __global__ void lstm_cell_gradient(
    const T *g_state, const T *dh, const T *dc, const T *before, const T *cell, const T *gates,
    T *of_product, T *of_cell, Index batch, Index hidden
) {
    ELEMENT
    T i = gates[at], f = gates[size + at], g = gates[2 * size + at], o = gates[3 * size + at];
    T slope = dh ? dh[at] + g_state[at] : g_state[at], squashed = tanh(cell[at]);
    T of_value = dc[at] + slope * o * ((T)1 - squashed * squashed);
    OF(of_product, 4, 0) = of_value * g * i * ((T)1 - i);
    OF(of_product, 4, 1) = of_value * before[at] * f * ((T)1 - f);
    OF(of_product, 4, 2) = of_value * i * ((T)1 - g * g);
    OF(of_product, 4, 3) = slope * squashed * o * ((T)1 - o);
    of_cell[at] = of_value * f;
}

extern "C" __global__ void gru_cell(
    const T *x, const T *product, const T *bias, const T *before, T *state, T *gates,
    Index batch, Index hidden
) {
    ELEMENT
    T a = OF(product, 3, 0), b = OF(product, 3, 1), part = OF(product, 3, 2);
    if (bias) {
        a += bias[k];
        b += bias[hidden + k];
        part += bias[2 * hidden + k];
    }
    T r = logistic(OF(x, 3, 0) + a), z = logistic(OF(x, 3, 1) + b);
    T candidate = tanh(OF(x, 3, 2) + r * part);
    state[at] = candidate + z * (before[at] - candidate);
    gates[at] = r;
    gates[size + at] = z;
    gates[2 * size + at] = candidate;
    gates[3 * size + at] = part;
}

// `carried` is the gradient of the previous state, without the part through the product.
extern "C" __global__ void gru_cell_gradient(
    const T *g_state, const T *carried, const T *dh, const T *before, const T *gates,
    T *of_input, T *of_product, T *carried_on, Index batch, Index hidden
) {
    ELEMENT
    T r = gates[at], z = gates[size + at], candidate = gates[2 * size + at];
    T part = gates[3 * size + at], slope = g_state[at];
    if (dh) slope += carried[at] + dh[at];
    T dn = slope * ((T)1 - z) * ((T)1 - candidate * candidate);
    T dr = dn * part * r * ((T)1 - r), dz = slope * (before[at] - candidate) * z * ((T)1 - z);
    OF(of_input, 3, 0) = dr;
    OF(of_input, 3, 1) = dz;
    OF(of_input, 3, 2) = dn;
    OF(of_product, 3, 0) = dr;
    OF(of_product, 3, 1) = dz;
    OF(of_product, 3, 2) = dn * r;
    carried_on[at] = slope * z;
}
"""


class Recurrent:
    """Kernels for CuPy, the module `cp`, as functions of arrays that a captured step records."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)

    def lstm_cell(self, x: Any, product: Any, cell: Any) -> tuple[Any, ...]:
        """Return the hidden state, the cell and the gates after a step."""
        out = self._arrays(cell, 1, 1, 4)
        self._launch("lstm_cell", cell, (x, product, cell), out)
        return out

    def lstm_cell_gradient(
        self, g_state: Any, dh: Any, dc: Any, before: Any, cell: Any, gates: Any
    ) -> tuple[Any, ...]:
        """Return the gradients of the product, and of the cell before the step."""
        out = (
            self._cp.empty((*cell.shape[:-1], 4 * cell.shape[-1]), cell.dtype),
            *self._arrays(cell, 1),
        )
        self._launch("lstm_cell_gradient", cell, (g_state, dh, dc, before, cell, gates), out)
        return out

    def gru_cell(self, x: Any, product: Any, bias: Any, before: Any) -> tuple[Any, ...]:
        """Return the hidden state and the gates after a step."""
        out = self._arrays(before, 1, 4)
        self._launch("gru_cell", before, (x, product, bias, before), out)
        return out

    def gru_cell_gradient(
        self, g_state: Any, carried: Any, dh: Any, before: Any, gates: Any
    ) -> tuple[Any, ...]:
        """Return the gradients of the projected input, of the product, and of the previous state.

        The last one is without the part through the product.
        """
        shape = *before.shape[:-1], 3 * before.shape[-1]
        out = *(self._cp.empty(shape, before.dtype) for _ in range(2)), *self._arrays(before, 1)
        self._launch("gru_cell_gradient", before, (g_state, carried, dh, before, gates), out)
        return out

    def _arrays(self, like: Any, *counts: int) -> tuple[Any, ...]:
        """Return new arrays of the shape of a state, with `counts` of them in each."""
        shapes = [like.shape if n == 1 else (n, *like.shape) for n in counts]
        return tuple([self._cp.empty(shape, like.dtype) for shape in shapes])

    def _launch(self, name: str, like: Any, inputs: tuple[Any, ...], out: tuple[Any, ...]) -> None:
        contiguous = [x if x is None else self._cp.ascontiguousarray(x) for x in inputs]
        batch, hidden = math.prod(like.shape[:-1]), like.shape[-1]
        args = *contiguous, *out, batch, hidden
        self._kernels.launch(
            name, like.dtype, blocks_for(like.size), (THREADS,), args, largest=4 * like.size
        )


def _supported(*arrays: Any) -> bool:
    """Return whether there are kernels for arrays of these dtypes and shapes."""
    given = [x for x in arrays if x is not None]
    return given[0].dtype in FLOATS and all(
        x.dtype == given[0].dtype and 0 not in x.shape for x in given
    )


def lstm_steps(xp: Any, x: Any, weight: Any, h: Any, c: Any, reverse: bool) -> Any:
    """Return the hidden states, the cells and the gates of all steps."""
    if not _supported(x, weight, h, c):
        return OVERRIDABLE["lstm_steps"].generic(xp, x, weight, h, c, reverse)
    weight, steps = xp.matrix_transpose(weight), []
    for t in _times(x, reverse):
        steps.append(xp.fused.lstm_cell(x[t, ...], xp.matmul(h, weight), c))
        h, c, _ = steps[-1]
    return tuple([_in_order_of_time(xp, list(part), reverse) for part in zip(*steps, strict=True)])


def lstm_gradient(
    xp: Any, g_states: Any, g_cell: Any, weight: Any, c: Any, cells: Any, gates: Any, reverse: bool
) -> Any:
    """Return the gradients of the projected input, the first hidden state and the first cell."""
    if not _supported(g_states, g_cell, weight, c, cells, gates):
        generic = OVERRIDABLE["lstm_gradient"].generic
        return generic(xp, g_states, g_cell, weight, c, cells, gates, reverse)
    dh, dc, gradients = None, g_cell, []
    times = [*_times(cells, not reverse)]
    for t, earlier in zip(times, [*times[1:], None], strict=True):
        before = c if earlier is None else cells[earlier, ...]
        g = g_states[t, ...]
        dz, dc = xp.fused.lstm_cell_gradient(g, dh, dc, before, cells[t, ...], gates[t, ...])
        gradients.append(dz)
        dh = xp.matmul(dz, weight)
    return _in_order_of_time(xp, gradients, not reverse), dh, dc


def gru_steps(xp: Any, x: Any, weight: Any, h: Any, bias: Any, reverse: bool) -> Any:
    """Return the hidden states of all steps, and the gates."""
    if not _supported(x, weight, h, bias):
        return OVERRIDABLE["gru_steps"].generic(xp, x, weight, h, bias, reverse)
    weight, steps = xp.matrix_transpose(weight), []
    for t in _times(x, reverse):
        steps.append(xp.fused.gru_cell(x[t, ...], xp.matmul(h, weight), bias, h))
        h = steps[-1][0]
    return tuple([_in_order_of_time(xp, list(part), reverse) for part in zip(*steps, strict=True)])


def gru_gradient(
    xp: Any, g: Any, weight: Any, h: Any, states: Any, gates: Any, reverse: bool
) -> Any:
    """Return the gradients of the projected input, the projected states and the first state."""
    if not _supported(g, weight, h, states, gates):
        return OVERRIDABLE["gru_gradient"].generic(xp, g, weight, h, states, gates, reverse)
    carried: Any = None
    dh: Any = None
    gradients = []
    times = [*_times(states, not reverse)]
    for t, earlier in zip(times, [*times[1:], None], strict=True):
        before = h if earlier is None else states[earlier, ...]
        of_step = xp.fused.gru_cell_gradient(g[t, ...], carried, dh, before, gates[t, ...])
        gradients.append(of_step[:2])
        carried, dh = of_step[2], xp.matmul(of_step[1], weight)
    of_input, of_state = zip(*gradients, strict=True)
    joined = [_in_order_of_time(xp, list(part), not reverse) for part in (of_input, of_state)]
    return *joined, carried + dh
