"""CUDA C++ for reductions of rows, which sources of kernels on rows begin with.

A row belongs to a warp if it is short: blocks then have 32 by 8 threads, and `threadIdx.y` counts
rows. A long row belongs to a block of 256 by 1 threads. The kernels loop over the elements of a row
by ``EACH``; `reduce` returns the sum, or the largest element, of a value of each thread.
"""

from __future__ import annotations

from xgrad_cupy.kernels.raw import THREADS

WARP = 32  # threads
WARP_LENGTH = 1024  # rows up to this length belong to a warp

#: Rows from this length on, of which there are fewer than `FEW`, keep most of a GPU idle.
HUGE_LENGTH, FEW = 1 << 16, 64

SOURCE = """
struct Largest {
    static __device__ T of(T a, T b) { return a > b || a != a ? a : b; }  // a NaN stays
};

struct Total {
    static __device__ T of(T a, T b) { return a + b; }
};

template <typename Join> __device__ T reduce(T value) {
    for (int step = 16; step > 0; step /= 2)
        value = Join::of(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
    if (blockDim.x > 32) {
        __shared__ T parts[32];
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[0];
        for (int k = 1; k < (int)blockDim.x / 32; ++k) value = Join::of(value, parts[k]);
        __syncthreads();
    }
    return value;
}

#define ROW \\
    Index row = (Index)blockIdx.x * blockDim.y + threadIdx.y; if (row >= rows) return;
#define EACH for (Index k = threadIdx.x; k < length; k += blockDim.x)
"""

#: The largest element of a row, and the sum of exp(x - largest)
SOFTMAX = """
__device__ T largest_of(const T *x, Index length) {
    T largest = x[0];
    EACH largest = Largest::of(largest, x[k]);
    return reduce<Largest>(largest);
}

__device__ T total_of_exp(const T *x, T largest, Index length) {
    T total = 0;
    EACH total += exp(x[k] - largest);
    return reduce<Total>(total);
}
"""


def shape_of(rows: int, length: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the grid and the block of a kernel on rows."""
    block = (WARP, THREADS // WARP) if length <= WARP_LENGTH else (THREADS, 1)
    return (-(-rows // block[1]),), block


def underuse_gpu(rows: int, length: int) -> bool:
    """Return whether one block for each row leaves most of a GPU idle."""
    return length > HUGE_LENGTH and rows < FEW
