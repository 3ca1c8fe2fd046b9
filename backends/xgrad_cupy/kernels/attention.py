"""Attention: the softmax of scores with masks and dropout in one launch, and its gradient.

The rules are in `xgrad.ops.attention`. cuBLAS makes the products: a result takes two of them and
one launch in between, a gradient four and one. Scores that would take much memory are computed in
blocks of the stack of matrices, and their weights again in the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend.overridable import OVERRIDABLE
from xgrad.ops.dropout import dropout_scale
from xgrad_cupy.kernels import rows
from xgrad_cupy.kernels.copies import copy_all
from xgrad_cupy.kernels.philox import PHILOX, counter
from xgrad_cupy.kernels.raw import FLOATS, RawKernels, extent_of

_LARGEST = 1 << 27  # scores of a block, 512 MiB in float32
_MASK_AXES = 4  # of scores that are masked: the last two, and two axes of stacks

_SOURCE = (
    rows.SOURCE
    + PHILOX
    + """
#define INFINITE ((T)__longlong_as_double(0x7ff0000000000000LL))
#define BARRIER if (blockDim.x > 32) __syncthreads(); else __syncwarp();

// The factor of dropout for each element of a row. Each thread makes one Philox block, the bits of
// 16 elements; the threads then process adjacent elements, so that access is coalesced. `skipped`
// is the number of elements before the arrays.
#define EACH_DROPPED(statement) { \\
    __shared__ unsigned long long words[4 * 256]; \\
    if (seed_at) seed = *seed_at; \\
    if (call_at) call = *call_at; \\
    unsigned long long *own = words + threadIdx.y * 4 * blockDim.x; \\
    long long start = skipped + begin, end = start + length; \\
    for (long long base = start / 16 * 16; base < end; base += 16 * blockDim.x) { \\
        philox(seed, call, base / 16 + threadIdx.x, own + 4 * threadIdx.x); \\
        BARRIER \\
        for (Index j = threadIdx.x; j < 16 * blockDim.x; j += blockDim.x) { \\
            long long k = base + j - start; \\
            if (k < 0 || k >= length) continue; \\
            short bits = (short)(unsigned short)(own[j / 4] >> (16 * (j % 4))); \\
            T factor = bits >= threshold ? (T)keep : (T)0; \\
            statement \\
        } \\
        BARRIER \\
    } \\
}

// A row has the scores of one query, and then its weights, and `dropped` the weights after dropout,
// if it is given. The mask has a stride for each of four axes.
extern "C" __global__ void attention_weights(
    const T *scores, const T *mask, T *x, T *dropped, const unsigned long long *seed_at,
    unsigned long long seed, const unsigned long long *call_at, unsigned long long call,
    int threshold, double keep, long long skipped, double scale, Index stride0, Index stride1,
    Index stride2, Index stride3, Index heads, Index queries, int causal, Index rows, Index length
) {
    ROW
    Index begin = row * length, query = row % queries;
    scores += begin;
    x += begin;
    if (mask)
        mask += row / queries / heads * stride0 + row / queries % heads * stride1 + query * stride2;
    T largest = -INFINITE;
    EACH {
        T score = scores[k] * (T)scale;
        if (mask) score += mask[k * stride3];
        if (causal && k > query) score -= INFINITE;
        x[k] = score;
        largest = Largest::of(largest, score);
    }
    largest = reduce<Largest>(largest);
    if (mask && !isfinite(largest)) largest = 0;  // all keys are masked
    T total = 0;
    EACH {
        x[k] = exp(x[k] - largest);
        total += x[k];
    }
    total = reduce<Total>(total);
    if (mask && total == 0) total = 1;
    EACH x[k] /= total;
    if (!dropped) return;
    BARRIER
    dropped += begin;
    EACH_DROPPED(dropped[k] = x[k] * factor;)
}

// From `slopes`, the gradients of the weights after dropout: the gradients of the unscaled scores,
// of the mask, if `of_mask` is given, and the weights after dropout, if `dropped` is given.
extern "C" __global__ void attention_scores_gradient(
    const T *slopes, const T *weights, T *result, T *of_mask, T *dropped,
    const unsigned long long *seed_at, unsigned long long seed,
    const unsigned long long *call_at, unsigned long long call, int threshold, double keep,
    long long skipped, double scale, Index rows, Index length
) {
    ROW
    Index begin = row * length;
    slopes += begin;
    weights += begin;
    result += begin;
    if (dropped) {
        dropped += begin;
        EACH_DROPPED(result[k] = slopes[k] * factor; dropped[k] = weights[k] * factor;)
        slopes = result;
    }
    T dot = 0;
    EACH dot += slopes[k] * weights[k];
    dot = reduce<Total>(dot);
    EACH {
        T slope = weights[k] * (slopes[k] - dot);
        if (of_mask) of_mask[begin + k] = slope;
        result[k] = slope * (T)scale;
    }
}
"""
)


class Attention:
    """Kernels for CuPy, the module `cp`, as functions of arrays that a captured step records."""

    def __init__(self, cp: Any) -> None:
        self._cp, self._kernels = cp, RawKernels(cp, _SOURCE)

    def attention_weights(
        self,
        scores: Any,
        mask: Any,
        causal: bool,
        scale: Any,
        p: float,
        seed: Any,
        call: Any,
        skipped: int,
    ) -> list[Any]:
        """Return the softmax weights of unscaled scores, and the weights after dropout, if any.

        `skipped` is the number of scores before these, for the random bits of dropout.
        """
        cp, shape = self._cp, scores.shape
        queries, length = shape[-2:]
        strides, heads, largest = (0, 0, 0, 0), 1, scores.size
        if mask is not None:
            full = (1,) * (_MASK_AXES - scores.ndim) + shape
            mask = cp.broadcast_to(mask, full)
            strides = tuple([stride // mask.itemsize for stride in mask.strides])
            heads, largest = full[1], max(largest, extent_of(mask))
        out = [cp.empty(shape, scores.dtype) for _ in range(2 if p else 1)]
        args = (
            *(cp.ascontiguousarray(scores), mask, out[0], out[1] if p else None),
            *self._random(p, seed, call, skipped),
            np.float64(scale),
            *strides,
            *(heads, queries, np.int32(causal), scores.size // length, length),
        )
        grid, block = rows.shape_of(scores.size // length, length)
        self._kernels.launch("attention_weights", scores.dtype, grid, block, args, largest=largest)
        return out

    def attention_scores_gradient(
        self,
        slopes: Any,
        weights: Any,
        masked: bool,
        scale: Any,
        p: float,
        seed: Any,
        call: Any,
        skipped: int,
    ) -> list[Any]:
        """Return gradients, given `slopes`, the gradients of the weights after dropout.

        They are the gradients of unscaled scores, and of the mask, if there is one, and then the
        weights after dropout, if there is dropout.
        """
        cp, length = self._cp, slopes.shape[-1]
        result, of_mask, dropped = [
            cp.empty(slopes.shape, slopes.dtype) if wanted else None for wanted in (True, masked, p)
        ]
        rows_ = slopes.size // length
        args = (
            *(cp.ascontiguousarray(slopes), weights, result, of_mask, dropped),
            *self._random(p, seed, call, skipped),
            *(np.float64(scale), rows_, length),
        )
        grid, block = rows.shape_of(rows_, length)
        self._kernels.launch(
            "attention_scores_gradient", slopes.dtype, grid, block, args, largest=slopes.size
        )
        return [x for x in (result, of_mask, dropped) if x is not None]

    def contiguous_copies(self, *arrays: Any) -> list[Any]:
        """Return contiguous copies of arrays of one dtype; one launch copies all of one shape."""
        copies = [self._cp.empty(x.shape, x.dtype) for x in arrays]
        copy_all(self._cp, arrays, copies)
        return copies

    def _random(self, p: float, seed: Any, call: Any, skipped: int) -> tuple[Any, ...]:
        """Return the arguments for dropout."""
        threshold, keep = dropout_scale(p)
        counters = [counter(self._cp, 0 if x is None else x) for x in (seed, call)]
        factor = np.int32(threshold), np.float64(keep)
        return *counters[0], *counters[1], *factor, np.int64(skipped)


def values(
    xp: Any, query: Any, key: Any, value: Any, mask: Any,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
    largest: int = _LARGEST,
) -> Any:  # fmt: skip
    """Return the weighted means of the values, and the weights; several blocks have no weights.

    A block has at most `largest` scores.
    """
    if not _supported(query, key, value, mask):
        more = causal, scale, p, seed, call, device
        return OVERRIDABLE["attention_values"].generic(xp, query, key, value, mask, *more)
    blocks = _blocks(query, key, largest)
    parts = []
    for block in blocks:
        arrays = [block.of(x) for x in (query, key, value, mask)]
        weights, out = _of_block(xp, arrays, causal, scale, p, seed, call, block.skipped)
        parts.append(out)
    if len(blocks) > 1:
        return xp.concat(parts, axis=len(out.shape) + blocks[0].axis), None
    return out, (weights, None)


def _of_block(
    xp: Any,
    arrays: Sequence[Any],
    causal: bool,
    scale: float,
    p: float,
    seed: Any,
    call: Any,
    skipped: int,
) -> tuple[Any, Any]:
    """Return the weights and the means of the values of a block.

    `arrays` are its queries, keys, values and mask.
    """
    query, key, value = _contiguous(xp, *arrays[:3])
    scores = xp.matmul(query, xp.matrix_transpose(key))
    weights = xp.fused.attention_weights(scores, arrays[3], causal, scale, p, seed, call, skipped)
    return weights[0], xp.matmul(weights[-1], value)


def gradient(
    xp: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, weights: Any,
    causal: bool, scale: float, p: float, seed: Any, call: Any, device: Any,
    largest: int = _LARGEST,
) -> Any:  # fmt: skip
    """Return the gradients of the query, the key, the value and the mask.

    The weights of several blocks are computed again, block by block.
    """
    if weights is not None and weights[1] is not None:  # by the generic rule
        more = out, weights, causal, scale, p, seed, call, device
        generic: Any = OVERRIDABLE["attention_gradient"].generic
        return generic(xp, g, query, key, value, mask, *more)
    blocks, masked, gradients = _blocks(query, key, largest), mask is not None, []
    for block in blocks:
        arrays = [block.of(x) for x in (query, key, value, mask)]
        if weights is None:
            made, _ = _of_block(xp, arrays, causal, scale, p, seed, call, block.skipped)
        else:
            made = weights[0]
        slope, query_, key_, value_ = _contiguous(xp, block.of(g), *arrays[:3])
        slopes = xp.matmul(slope, xp.matrix_transpose(value_))
        parts = xp.fused.attention_scores_gradient(
            slopes, made, masked, scale, p, seed, call, block.skipped
        )
        dropped = parts[-1] if p else made
        dq, dk = xp.matmul(parts[0], key_), xp.matmul(xp.matrix_transpose(parts[0]), query_)
        dv = xp.matmul(xp.matrix_transpose(dropped), slope)
        gradients.append((dq, dk, dv, *parts[1 : 1 + masked]))
    joined = [
        of_blocks[0]
        if len(blocks) == 1
        else xp.concat(list(of_blocks), axis=len(of_blocks[0].shape) + blocks[0].axis)
        for of_blocks in zip(*gradients, strict=True)
    ]
    return tuple(joined if masked else [*joined, None])


class _Block(NamedTuple):
    """A range along an axis of the stacks of matrices, counted from the end.

    `skipped` is the number of scores before the block.
    """

    axis: int
    range: slice
    skipped: int

    def of(self, x: Any) -> Any:
        """Return the part of an argument that belongs to the block."""
        if x is None or len(x.shape) < -self.axis or x.shape[self.axis] == 1:
            return x
        return x if self.range == _ALL else x[(..., self.range, *(_ALL,) * (-self.axis - 1))]


_ALL = slice(None)


def _blocks(query: Any, key: Any, largest: int) -> list[_Block]:
    """Return the blocks of a stack of matrices of scores, each with at most `largest` scores.

    A block is not smaller than one matrix, or than one for each index of a later axis.
    """
    stack = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    axis = next((i for i, n in enumerate(stack) if n > 1), None)
    size = math.prod(stack) * query.shape[-2] * key.shape[-2]
    if size <= largest or axis is None:
        return [_Block(-3, _ALL, 0)]
    one = size // stack[axis]
    step = max(1, largest // one)
    return [
        _Block(axis - len(stack) - 2, slice(i, min(i + step, stack[axis])), i * one)
        for i in range(0, stack[axis], step)
    ]


def _contiguous(xp: Any, *arrays: Any) -> list[Any]:
    """Return the arrays, or contiguous copies, which one launch makes for all of one shape.

    Queries, keys and values are often views of one product, of which cuBLAS would need copies.
    """
    which = [i for i, x in enumerate(arrays) if not _is_contiguous(x)]
    result = list(arrays)
    if which:
        copies = xp.fused.contiguous_copies(*[arrays[i] for i in which])
        for i, copy in zip(which, copies, strict=True):
            result[i] = copy
    return result


def _is_contiguous(x: Any) -> bool:
    step = x.dtype.itemsize
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def _supported(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """Return whether there is a kernel for arguments of these dtypes and shapes."""
    arrays = [x for x in (query, key, value, mask) if x is not None]
    stack = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = *stack, query.shape[-2], key.shape[-2]
    if query.dtype not in FLOATS or any(x.dtype != query.dtype for x in arrays) or 0 in shape:
        return False
    if np.broadcast_shapes(value.shape[:-2], stack) != stack:
        return False
    if rows.underuse_gpu(int(np.prod(shape[:-1])), shape[-1]):
        return False
    return mask is None or (
        len(shape) <= _MASK_AXES and np.broadcast_shapes(mask.shape, shape) == shape
    )
