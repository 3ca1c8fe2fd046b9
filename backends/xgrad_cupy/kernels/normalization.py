"""Normalization over rows by one launch, over channels by one or two, and the gradients.

The rules are in `xgrad.ops.normalization`. Rows are groups of adjacent elements, normalized each by
itself: layer, root-mean-square, group and instance normalization. Channels, in batch normalization,
are spread over the batch: several blocks compute the statistics of a long channel, and the blocks
of a second launch join them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend.overridable import OVERRIDABLE
from xgrad_cupy.kernels import rows
from xgrad_cupy.kernels.raw import FLOATS, THREADS, RawKernels
from xgrad_cupy.kernels.sums import Sums, chunks_of, view_of

_MAX_STRIDED = 1 << 18  # elements, which the cache of a GPU holds
_CHUNK = 2048  # the fewest elements in a chunk of a channel

# A weight and a bias have `weights` elements for each of `kinds` kinds of rows, and each of these
# belongs to `span` adjacent elements of a row: one of a layer, all positions of a channel.
_SOURCE = (
    rows.SOURCE
    + """
#define WEIGHT_OF(k) ((row % kinds) * weights + (k) / span)

extern "C" __global__ void standardize(
    const T *x, const T *weight, const T *bias, T *out, T *averages, T *scales, T *variances,
    double eps, Index kinds, Index weights, Index span, Index rows, Index length
) {
    ROW
    x += row * length;
    out += row * length;
    T average = 0, variance = 0;
    if (averages) {
        EACH average += x[k];
        average = reduce<Total>(average) / (T)length;
    }
    EACH variance += (x[k] - average) * (x[k] - average);
    variance = reduce<Total>(variance) / (T)length;
    T scale = (T)1 / sqrt(variance + (T)eps);
    EACH {
        T value = (x[k] - average) * scale;
        if (weight) value *= weight[WEIGHT_OF(k)];
        if (bias) value += bias[WEIGHT_OF(k)];
        out[k] = value;
    }
    if (threadIdx.x != 0) return;
    if (averages) averages[row] = average;
    scales[row] = scale;
    variances[row] = variance;
}

// `dots` and `totals` are the sums of g * standardized x and of g, for a weight that is the same
// for the whole row; null for others.
extern "C" __global__ void standardize_gradient(
    const T *g, const T *x, const T *weight, const T *averages, const T *scales, T *result,
    T *dots, T *totals, Index kinds, Index weights, Index span, Index rows, Index length
) {
    ROW
    g += row * length;
    x += row * length;
    result += row * length;
    T average = averages ? averages[row] : (T)0, scale = scales[row], dot = 0, total = 0;
    EACH {
        T slope = weight && !dots ? g[k] * weight[WEIGHT_OF(k)] : g[k];
        dot += slope * ((x[k] - average) * scale);
        total += slope;
    }
    dot = reduce<Total>(dot);
    total = averages ? reduce<Total>(total) : (T)0;
    T factor = weight && dots ? scale * weight[WEIGHT_OF(0)] : scale;
    EACH {
        T slope = weight && !dots ? g[k] * weight[WEIGHT_OF(k)] : g[k];
        T standardized = (x[k] - average) * scale;
        result[k] = (slope - standardized * (dot / (T)length) - total / (T)length) * factor;
    }
    if (threadIdx.x != 0 || !dots) return;
    dots[row] = dot;
    totals[row] = total;
}

#define CHUNK \\
    Index group = blockIdx.x, count = outer * inner, first = blockIdx.y * chunk; \\
    Index last = first + chunk < count ? first + chunk : count;
#define OF_CHUNK for (Index k = first + threadIdx.x; k < last; k += blockDim.x)
#define AT ((k / inner * groups + group) * inner + k % inner)

// A group of one chunk
extern "C" __global__ void standardize_group(
    const T *x, const T *weight, const T *bias, T *out, T *averages, T *scales, T *variances,
    double eps, Index outer, Index groups, Index inner, Index chunk
) {
    CHUNK
    T average = 0, variance = 0;
    OF_CHUNK average += x[AT];
    average = reduce<Total>(average) / (T)count;
    OF_CHUNK variance += (x[AT] - average) * (x[AT] - average);
    variance = reduce<Total>(variance) / (T)count;
    T scale = (T)1 / sqrt(variance + (T)eps), factor = weight ? scale * weight[group] : scale;
    T shift = bias ? bias[group] : (T)0;
    OF_CHUNK out[AT] = (x[AT] - average) * factor + shift;
    if (threadIdx.x != 0) return;
    averages[group] = average;
    scales[group] = scale;
    variances[group] = variance;
}

// The mean of each chunk of a group, and the sum of the squares of the distances from it
extern "C" __global__ void chunk_statistics(
    const T *x, T *means, T *squares, Index outer, Index groups, Index inner, Index chunk
) {
    CHUNK
    T mean = 0, sum = 0;
    OF_CHUNK mean += x[AT];
    mean = reduce<Total>(mean) / (T)(last - first);
    OF_CHUNK sum += (x[AT] - mean) * (x[AT] - mean);
    sum = reduce<Total>(sum);
    if (threadIdx.x != 0) return;
    means[blockIdx.y * groups + group] = mean;
    squares[blockIdx.y * groups + group] = sum;
}

extern "C" __global__ void standardize_groups(
    const T *x, const T *weight, const T *bias, const T *means, const T *squares,
    T *out, T *averages, T *scales, T *variances, double eps,
    Index outer, Index groups, Index inner, Index chunk
) {
    CHUNK
    T average = 0, variance = 0;
    for (Index c = threadIdx.x; c < gridDim.y; c += blockDim.x) {
        Index size = c + 1 < gridDim.y ? chunk : count - c * chunk;
        average += means[c * groups + group] * ((T)size / (T)count);
    }
    average = reduce<Total>(average);
    for (Index c = threadIdx.x; c < gridDim.y; c += blockDim.x) {
        Index size = c + 1 < gridDim.y ? chunk : count - c * chunk;
        T distance = means[c * groups + group] - average;
        variance += squares[c * groups + group] + (T)size * distance * distance;
    }
    variance = reduce<Total>(variance) / (T)count;
    T scale = (T)1 / sqrt(variance + (T)eps), factor = weight ? scale * weight[group] : scale;
    T shift = bias ? bias[group] : (T)0;
    OF_CHUNK out[AT] = (x[AT] - average) * factor + shift;
    if (threadIdx.x != 0 || blockIdx.y != 0) return;
    averages[group] = average;
    scales[group] = scale;
    variances[group] = variance;
}

// `parts` has the sums of chunks of g * standardized x, then the sums of chunks of g
extern "C" __global__ void standardize_groups_gradient(
    const T *g, const T *x, const T *weight, const T *averages, const T *scales, const T *parts,
    T *result, T *dots, T *totals, Index chunks,
    Index outer, Index groups, Index inner, Index chunk
) {
    CHUNK
    T dot = 0, total = 0;
    for (Index c = threadIdx.x; c < chunks; c += blockDim.x) {
        dot += parts[c * groups + group];
        total += parts[(chunks + c) * groups + group];
    }
    dot = reduce<Total>(dot);
    total = reduce<Total>(total);
    T average = averages[group], scale = scales[group];
    T factor = weight ? scale * weight[group] : scale;
    OF_CHUNK {
        T standardized = (x[AT] - average) * scale;
        result[AT] = (g[AT] - standardized * (dot / (T)count) - total / (T)count) * factor;
    }
    if (threadIdx.x != 0 || blockIdx.y != 0) return;
    dots[group] = dot;
    totals[group] = total;
}
"""
)

# A term of a sum: g * standardized x, where `length` elements have the same statistics
_TERMS = "const T *g, const T *x, const T *averages, const T *scales, Index length, "
_STANDARDIZED = "(x[at] - (averages ? averages[at / length] : (T)0)) * scales[at / length]"


class Weights(NamedTuple):
    """Layout of a weight over rows.

    It has `each` elements for each of `kinds` alternating kinds of rows; an element applies to
    `span` adjacent elements of a row.
    """

    kinds: int
    each: int
    span: int


class Normalization:
    """Kernels for CuPy, the module `cp`, as functions of arrays that a captured step records."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)
        self._of_weights = Sums(cp, _TERMS, [f"g[at] * ({_STANDARDIZED})", "g[at]"])
        channel = "((at / inner) % groups)"
        self._of_channels = Sums(
            cp,
            "const T *g, const T *x, const T *averages, const T *scales, ",
            [f"g[at] * ((x[at] - averages[{channel}]) * scales[{channel}])", "g[at]"],
        )

    # Forward

    def standardize(
        self, x: Any, weight: Any, bias: Any, axes: tuple[int, ...], eps: float, centered: bool
    ) -> tuple[Any, ...]:
        """Return the scaled and shifted values, the factor, the variance and, if any, the mean."""
        cp, shape = self._cp, x.shape
        view = _view(x, weight, bias, axes)
        x, out = cp.ascontiguousarray(x), cp.empty(shape, x.dtype)
        per_group = [1 if i in axes else n for i, n in enumerate(shape)]
        scale, variance = (cp.empty(per_group, x.dtype) for _ in range(2))
        average = cp.empty(per_group, x.dtype) if centered else None
        statistics = out, average, scale, variance, np.float64(eps)
        parameters = self._flat(weight), self._flat(bias)
        args: tuple[Any, ...]
        if isinstance(view, Weights):
            grid, block = rows.shape_of(scale.size, x.size // scale.size)
            args = x, *parameters, *statistics, *view, scale.size, x.size // scale.size
            self._kernels.launch("standardize", x.dtype, grid, block, args, largest=x.size)
        else:
            assert view is not None
            self._standardize_groups(x, parameters, statistics, view)
        return (out, scale, variance) if average is None else (out, scale, variance, average)

    def _standardize_groups(
        self, x: Any, parameters: tuple[Any, ...], statistics: tuple[Any, ...], view: Any
    ) -> None:
        """Write the normalized values of groups, and their statistics, by one launch or two."""
        chunk, chunks = self._chunks(view)
        grid, block, dtype = (view[1], chunks), (THREADS, 1), x.dtype
        args: tuple[Any, ...] = x, *parameters, *statistics, *view, chunk
        if chunks == 1:
            self._kernels.launch("standardize_group", dtype, grid, block, args, largest=x.size)
            return
        means, squares = (self._cp.empty((chunks, view[1]), dtype) for _ in range(2))
        args = x, means, squares, *view, chunk
        self._kernels.launch("chunk_statistics", dtype, grid, block, args, largest=x.size)
        args = x, *parameters, means, squares, *statistics, *view, chunk
        self._kernels.launch("standardize_groups", dtype, grid, block, args, largest=x.size)

    # Gradient

    def normalization_gradient(
        self, g: Any, x: Any, weight: Any, average: Any, scale: Any, axes: tuple[int, ...]
    ) -> tuple[Any, ...]:
        """Return the gradient of the input and, if there is a weight, of the weight and the bias.

        `average` is None if the values are not centered.
        """
        cp, view = self._cp, _view(x, weight, None, axes)
        g, x = cp.ascontiguousarray(g), cp.ascontiguousarray(x)
        flat, result = self._flat(weight), cp.empty(x.shape, x.dtype)
        of_parameters = self._rows_gradient if isinstance(view, Weights) else self._groups_gradient
        of_weight, of_bias = of_parameters(g, x, flat, average, scale, view, result)
        return (result,) if weight is None else (result, of_weight, of_bias)

    def _rows_gradient(
        self, g: Any, x: Any, weight: Any, average: Any, scale: Any, view: Any, result: Any
    ) -> Any:
        """Write the gradient of the input; return the gradients of the weight and the bias."""
        length = x.size // scale.size
        constant = weight is None or view.each == 1
        sums = self._cp.empty((2, *scale.shape), x.dtype) if constant else (None, None)
        grid, block = rows.shape_of(scale.size, length)
        arrays = g, x, weight, average, scale, result, sums[0], sums[1]
        args = *arrays, *view, scale.size, length
        self._kernels.launch("standardize_gradient", x.dtype, grid, block, args, largest=x.size)
        if constant:
            return sums
        groups = view.kinds * view.each
        layout = x.size // groups // view.span, groups, view.span
        return self._of_weights((g, x, average, scale, length), x.dtype, layout).reshape(
            2, *weight.shape
        )

    def _groups_gradient(
        self, g: Any, x: Any, weight: Any, average: Any, scale: Any, view: Any, result: Any
    ) -> Any:
        """Write the gradient of the input; return the gradients of the weight and the bias."""
        chunk, chunks = self._chunks(view)
        parts = self._of_channels.partial((g, x, average, scale), x.dtype, view)
        sums = self._cp.empty((2, *scale.shape), x.dtype)
        arrays = g, x, weight, average, scale, parts, result, sums[0], sums[1]
        args = *arrays, parts.shape[1], *view, chunk
        grid = view[1], chunks
        self._kernels.launch(
            "standardize_groups_gradient", x.dtype, grid, (THREADS, 1), args, largest=x.size
        )
        return sums

    def _chunks(self, view: tuple[int, int, int]) -> tuple[int, int]:
        return chunks_of(view[0] * view[2], view[1], _CHUNK)

    def _flat(self, x: Any) -> Any:
        return None if x is None else self._cp.ascontiguousarray(x)


def standardize(
    xp: Any, x: Any, weight: Any, bias: Any, axes: tuple[int, ...], eps: float, centered: bool
) -> Any:
    """Return the scaled and shifted values, the mean, the factor and the variance."""
    if not _supported(_view(x, weight, bias, axes), centered):
        rule = OVERRIDABLE["standardize"].generic
        return rule(xp, x, weight, bias, axes, eps, centered)
    found = xp.fused.standardize(x, weight, bias, axes, eps, centered)
    out, scale, variance = found[:3]
    return out, found[3] if centered else 0, scale, variance


def gradient(
    xp: Any,
    g: Any,
    x: Any,
    weight: Any,
    saved: Any,
    axes: tuple[int, ...],
    eps: float,
    centered: bool,
) -> Any:
    """Return the gradients of the input, the weight and the bias."""
    view = _view(x, weight, None, axes)
    if saved is None or g.dtype != x.dtype or not _supported(view, centered):
        rule = OVERRIDABLE["normalization_gradient"].generic
        return rule(xp, g, x, weight, saved, axes, eps, centered)
    average, scale = saved
    average = average if centered else None
    found = xp.fused.normalization_gradient(g, x, weight, average, scale, axes)
    # a bias without a weight may vary along the axes: the engine sums its gradient
    return (found[0], None, g) if weight is None else found


def _supported(view: Weights | tuple[int, int, int] | None, centered: bool) -> bool:
    """Return whether there is a kernel for a layout; channels are always centered."""
    return view is not None and (centered or isinstance(view, Weights))


def _view(
    x: Any, weight: Any, bias: Any, axes: tuple[int, ...]
) -> Weights | tuple[int, int, int] | None:
    """Return how a weight belongs to rows, or channels as (outer, groups, inner).

    None if there is no kernel for the layout.
    """
    given, size = [p for p in (weight, bias) if p is not None], math.prod(x.shape)
    if not size or x.dtype not in FLOATS or any(p.dtype != x.dtype for p in given):
        return None
    if len({p.shape for p in given}) > 1:
        return None
    view = view_of(x.shape, axes)
    matches = view is not None and all(math.prod(p.shape) == view[1] for p in given)
    if view is not None and view[0] > 1:
        # without inner axes, adjacent threads read elements that are a row apart
        strided = view[2] == 1 and size > _MAX_STRIDED
        return view if matches and not strided else None
    if tuple(sorted(axes)) != tuple(range(len(x.shape) - len(axes), len(x.shape))):
        return None
    length = math.prod([x.shape[i] for i in axes])
    if rows.underuse_gpu(size // length, length):
        return view if matches else None
    return Weights(1, 1, length) if not given else _weights(x.shape, given[0].shape, axes)


def _weights(
    shape: tuple[int, ...], weight: tuple[int, ...], axes: tuple[int, ...]
) -> Weights | None:
    """Return how a weight of a shape belongs to rows; None if it varies in another way.

    >>> _weights((8, 5), (5,), (1,))
    Weights(kinds=1, each=5, span=1)
    >>> _weights((8, 2, 3, 9), (2, 3, 1), (2, 3)), _weights((8, 6, 9), (6, 1), (2,))
    (Weights(kinds=2, each=3, span=9), Weights(kinds=6, each=1, span=9))
    """
    first, own = min(axes), (1,) * (len(shape) - len(weight)) + weight
    kinds, inside = own[:first], own[first:]
    ends = [i for i, n in enumerate(inside, first) if n != 1]
    last = ends[-1] + 1 if ends else first
    varying = (*shape[first:last], *(1,) * (len(shape) - last))
    outer = [i for i, n in enumerate(kinds) if n != 1]
    begin = outer[0] if outer else first
    if inside != varying or kinds != (1,) * begin + shape[begin:first]:
        return None
    return Weights(math.prod(kinds), math.prod(inside), math.prod(shape[last:]))
