"""CUDA C++ of the fused kernels, for CuPy's ElementwiseKernel (bodies) and RawKernel (whole).

Apart from CUDA's own names it is plain C++, which the tests compile for the host
(``tests/cuda_without_gpu``).
"""

from __future__ import annotations

from typing import NamedTuple

C_TYPES = {
    "bool": "bool",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}

# Philox4x64-10 (`xgrad.backend.philox`): the four words of a block.
PHILOX = """
__device__ inline void philox(
    unsigned long long seed, unsigned long long call, unsigned long long block,
    unsigned long long *words
) {
    unsigned long long c0 = block, c1 = 0, c2 = call, c3 = 0, k0 = seed, k1 = 0;
    for (int round = 0; round < 10; ++round) {
        unsigned long long low0 = 0xD2E7470EE14C6C93ULL * c0,
                           high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c0);
        unsigned long long low1 = 0xCA5A826395121157ULL * c2,
                           high1 = __umul64hi(0xCA5A826395121157ULL, c2);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B97F4A7C15ULL;
        k1 += 0xBB67AE8584CAA73BULL;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}
"""

# Kernels on random bits. Seed and call number are read from memory if their addresses are not null.
# In `dropout` a thread makes the bits of 16 elements, 16 bits each; the threads then read and write
# neighbouring elements, so that access is coalesced. T is the type of the elements.
RANDOM = (
    PHILOX
    + """
extern "C" __global__ void bits(
    const unsigned long long *seed_at, unsigned long long seed, const unsigned long long *call_at,
    unsigned long long call, unsigned long long *words, long long count
) {
    long long block = blockIdx.x * 128LL + threadIdx.x;
    if (seed_at) seed = *seed_at;
    if (call_at) call = *call_at;
    if (block < count) philox(seed, call, block, words + 4 * block);
}

extern "C" __global__ void dropout(
    const unsigned long long *seed_at, unsigned long long seed, const unsigned long long *call_at,
    unsigned long long call, const T *x, T *out, T *mask, int threshold, double scale,
    long long size
) {
    __shared__ unsigned long long words[4 * 128];
    if (seed_at) seed = *seed_at;
    if (call_at) call = *call_at;
    philox(seed, call, blockIdx.x * 128LL + threadIdx.x, words + 4 * threadIdx.x);
    __syncthreads();
    for (int k = threadIdx.x; k < 16 * 128; k += 128) {
        long long element = blockIdx.x * 2048LL + k;
        if (element >= size) break;
        short bits = (short)(unsigned short)(words[k / 4] >> (16 * (k % 4)));
        T factor = bits >= threshold ? (T)scale : (T)0;
        mask[element] = factor;
        out[element] = x[element] * factor;
    }
}
"""
)


class Elementwise(NamedTuple):
    """An elementwise kernel: its parameters, its results, and the operation for an element."""

    inputs: str
    outputs: str
    operation: str


# Exact, like NumPy's; infinite operands as the standard has them
_FMOD = """
T rest = fmod(x1, x2);
bool opposite = rest != 0 && (rest < 0) != (x2 < 0);
"""

# Like Python's: CuPy's floor_divide rounds the quotient, and gives inf for an infinite dividend
_FLOOR_QUOTIENT = """
T quotient = x1 / x2, whole = (x1 - rest) / x2 - (T)opposite, down = floor(whole);
if (x2 == 0) out = quotient;
else if (whole == 0) out = copysign((T)0, quotient);
else out = whole - down > (T)0.5 ? down + 1 : down;
"""

# Updates of optimizers, in place: the operations of the generic rules, in the same order
_SGD = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
p -= (T)lr * step;
"""

_SGD_WITH_MOMENTUM = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
if (momentum != 0) {
    T next = begins ? step : buffer * (T)momentum + (T)fresh * step;
    buffer = next;
    step = nesterov ? step + (T)momentum * next : next;
}
p -= (T)lr * step;
"""

_ADAM = """
T step = maximize ? -g : g;
T value = p * (T)shrink;
if (decay != 0) step = step + (T)decay * value;
T first = m * (T)beta1 + (T)(1 - beta1) * step;
T second = v * (T)beta2 + step * step * (T)(1 - beta2);
m = first;
v = second;
{largest}
p = value - first / (sqrt(second) + (T)eps) * (T)rate;
"""
_LARGEST = "second = largest > second || largest != largest ? largest : second; largest = second;"
_ADAM_INPUTS = (
    "T g, float64 beta1, float64 beta2, float64 shrink, float64 decay, float64 eps, float64 rate,"
    " bool maximize"
)
_MOMENTUM_INPUTS = (
    "T g, float64 lr, float64 decay, float64 momentum, float64 fresh, bool nesterov, bool maximize,"
    " bool begins"
)

ELEMENTWISE = {
    "uniform_float32": Elementwise(
        "int32 bits",
        "float32 out",
        # times 2**-24
        "out = (float)((bits >> 8) & 0xFFFFFF) * 5.9604644775390625e-8f",
    ),
    "uniform_float64": Elementwise(
        "int64 bits",
        "float64 out",
        "out = (double)((bits >> 11) & 0x1FFFFFFFFFFFFFLL) * 1.1102230246251565404e-16",
    ),
    "sigmoid": Elementwise(
        "T x", "T out", "T small = exp(-fabs(x)); out = (x < 0 ? small : (T)1) / ((T)1 + small)"
    ),
    "sigmoid_gradient": Elementwise("T g, T out", "T result", "result = g * (out * ((T)1 - out))"),
    "softplus": Elementwise(
        "T x", "T out", "out = (x > 0 || x != x ? x : (T)0) + log1p(exp(-fabs(x)))"
    ),
    "softplus_gradient": Elementwise("T g, T out", "T result", "result = g * -expm1(-out)"),
    "tanh_gradient": Elementwise("T g, T out", "T result", "result = g * ((T)1 - out * out)"),
    "relu_gradient": Elementwise("T g, T out", "T result", "result = out <= 0 ? (T)0 : g"),
    "remainder": Elementwise(
        "T x1, T x2",
        "T out",
        _FMOD + "out = rest == 0 ? copysign(rest, x2) : opposite ? rest + x2 : rest",
    ),
    "floor_quotient": Elementwise("T x2, T x1", "T out", _FMOD + _FLOOR_QUOTIENT),
    "floor_divide": Elementwise(
        "T x1, T x2",
        "T out",
        _FMOD + _FLOOR_QUOTIENT + "if (isinf(x1) || isinf(x2)) out = quotient;",
    ),
    "sgd": Elementwise("T g, float64 lr, float64 decay, bool maximize", "T p", _SGD),
    "sgd_with_momentum": Elementwise(_MOMENTUM_INPUTS, "T p, T buffer", _SGD_WITH_MOMENTUM),
    "adam": Elementwise(_ADAM_INPUTS, "T p, T m, T v", _ADAM.format(largest="")),
    "amsgrad": Elementwise(
        _ADAM_INPUTS, "T p, T m, T v, T largest", _ADAM.format(largest=_LARGEST)
    ),
}

# Kernels on rows. If `blockDim.x` is 32, a row belongs to a warp, and a block has `blockDim.y`
# rows; otherwise a row belongs to a whole block. T is the type of elements, I the type of classes.

ROWS = """
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
    long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y; if (row >= rows) return;
#define EACH for (long long k = threadIdx.x; k < length; k += blockDim.x)

__device__ T largest_of(const T *x, long long length) {
    T largest = x[0];
    EACH largest = Largest::of(largest, x[k]);
    return reduce<Largest>(largest);
}

__device__ T total_of_exp(const T *x, T largest, long long length) {
    T total = 0;
    EACH total += exp(x[k] - largest);
    return reduce<Total>(total);
}

extern "C" __global__ void softmax(const T *x, T *out, long long rows, long long length) {
    ROW
    x += row * length;
    out += row * length;
    T largest = largest_of(x, length), total = total_of_exp(x, largest, length);
    EACH out[k] = exp(x[k] - largest) / total;
}

extern "C" __global__ void log_softmax(const T *x, T *out, long long rows, long long length) {
    ROW
    x += row * length;
    out += row * length;
    T largest = largest_of(x, length);
    if (!isfinite(largest)) largest = 0;  // or inf - inf would make the row NaN
    T logs = log(total_of_exp(x, largest, length));
    EACH out[k] = x[k] - largest - logs;
}

extern "C" __global__ void softmax_gradient(
    const T *g, const T *out, T *result, long long rows, long long length
) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k] * out[k];
    total = reduce<Total>(total);
    EACH result[k] = out[k] * (g[k] - total);
}

extern "C" __global__ void log_softmax_gradient(
    const T *g, const T *out, T *result, long long rows, long long length
) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k];
    total = reduce<Total>(total);
    EACH result[k] = g[k] - exp(out[k]) * total;
}

// The loss of a row, which thread 0 of the row gets
__device__ T cross_entropy_of(
    const T *x, long long wanted, T *scale, T *sum, double smoothing, long long length
) {
    T largest = largest_of(x, length), total = total_of_exp(x, largest, length), mean = 0;
    if (smoothing != 0) {
        EACH mean += x[k] - largest;
        mean = reduce<Total>(mean) / (T)length;
    }
    if (threadIdx.x != 0) return 0;
    wanted %= length;  // out of bounds, it wraps around, as indices do in CuPy
    T logs = log(total), loss = logs - (x[wanted < 0 ? wanted + length : wanted] - largest);
    if (smoothing != 0) loss = loss * (T)(1 - smoothing) + (T)smoothing * (logs - mean);
    *scale = largest;
    *sum = total;
    return loss;
}

extern "C" __global__ void cross_entropy(
    const T *x, const I *target, T *losses, T *scale, double smoothing,
    long long rows, long long length
) {
    ROW
    T loss = cross_entropy_of(
        x + row * length, (long long)target[row], scale + row, scale + rows + row, smoothing, length
    );
    if (threadIdx.x == 0) losses[row] = loss;
}

// The sum of the losses of few rows, divided: one block with a warp for each row in turn
extern "C" __global__ void cross_entropy_total(
    const T *x, const I *target, T *loss, T *scale, double smoothing, T divisor,
    long long rows, long long length
) {
    __shared__ T sums[32];
    T sum = 0;
    for (long long row = threadIdx.y; row < rows; row += blockDim.y)
        sum += cross_entropy_of(
            x + row * length, (long long)target[row], scale + row, scale + rows + row, smoothing,
            length
        );
    if (threadIdx.x == 0) sums[threadIdx.y] = sum;
    __syncthreads();
    if (threadIdx.x != 0 || threadIdx.y != 0) return;
    sum = 0;
    for (int k = 0; k < (int)blockDim.y; ++k) sum += sums[k];
    *loss = sum / divisor;
}

// `g` has a gradient for each row, or one for all.
extern "C" __global__ void cross_entropy_gradient(
    const T *g, int each, const T *x, const I *target, const T *tops, const T *totals, T *result,
    double smoothing, long long count, long long rows, long long length
) {
    ROW
    x += row * length;
    result += row * length;
    T top = tops[row], total = totals[row], factor = g[each ? row : 0] / (T)count,
      miss = 0, hit = 1;
    if (smoothing != 0) {
        miss = (T)(smoothing / length);
        hit = (T)(1 - smoothing) + miss;
    }
    long long wanted = (long long)target[row];
    EACH result[k] = (exp(x[k] - top) / total - (k == wanted ? hit : miss)) * factor;
}
"""
