"""The CUDA C++ of the kernels, as CuPy compiles it: whole kernels, and bodies of its elementwise ones.

It is plain C++ but for what CUDA adds to it, so that the tests can give it to a compiler for the host as well, with a
few lines in place of that.
"""

from __future__ import annotations

# Philox4x64-10, as `xgrad.philox` has it: the four words of a block.
PHILOX = """
__device__ inline void philox(
    unsigned long long seed, unsigned long long call, unsigned long long block, unsigned long long *words
) {
    unsigned long long c0 = block, c1 = 0, c2 = call, c3 = 0, k0 = seed, k1 = 0;
    for (int round = 0; round < 10; ++round) {
        unsigned long long low0 = 0xD2E7470EE14C6C93ULL * c0, high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c0);
        unsigned long long low1 = 0xCA5A826395121157ULL * c2, high1 = __umul64hi(0xCA5A826395121157ULL, c2);
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

# A thread for each block. `first` is every fourth of the words: it says how many threads there are.
BITS = """
unsigned long long block[4];
philox(seed, call, i, block);
for (int k = 0; k < 4; ++k) words[4 * i + k] = block[k];
"""

# The seed and the number of the call are read from memory where there is an address. Each thread makes a block, which
# decides on 16 elements, 16 bits each, and the threads then go through the elements side by side, as memory wants it.
# T, the type of the numbers, is defined before this.
DROPOUT = (
    PHILOX
    + """
extern "C" __global__ void dropout(
    const unsigned long long *seed_at, unsigned long long seed, const unsigned long long *call_at,
    unsigned long long call, const T *x, T *out, T *mask, int threshold, double scale, long long size
) {
    __shared__ unsigned long long words[4 * 128];
    if (seed_at) seed = *seed_at;
    if (call_at) call = *call_at;
    philox(seed, call, blockIdx.x * 128LL + threadIdx.x, words + 4 * threadIdx.x);
    __syncthreads();
    for (int k = threadIdx.x; k < 16 * 128; k += 128) {
        long long place = blockIdx.x * 2048LL + k;
        if (place >= size) break;
        short bits = (short)(unsigned short)(words[k / 4] >> (16 * (k % 4)));
        T factor = bits >= threshold ? (T)scale : (T)0;
        mask[place] = factor;
        out[place] = x[place] * factor;
    }
}
"""
)

UNIFORM_32 = "out = (float)((bits >> 8) & 0xFFFFFF) * 5.9604644775390625e-8f"  # 2**-24
UNIFORM_64 = "out = (double)((bits >> 11) & 0x1FFFFFFFFFFFFFLL) * 1.1102230246251565404e-16"  # 2**-53

# Activations

SIGMOID = "T small = exp(-fabs(x)); out = (x < 0 ? small : (T)1) / ((T)1 + small)"
SIGMOID_GRADIENT = "result = g * (out * ((T)1 - out))"
SOFTPLUS = "out = (x > 0 || x != x ? x : (T)0) + log1p(exp(-fabs(x)))"
SOFTPLUS_GRADIENT = "result = g * -expm1(-out)"
TANH_GRADIENT = "result = g * ((T)1 - out * out)"
RELU_GRADIENT = "result = out <= 0 ? (T)0 : g"

# Division with a remainder, exact as NumPy's, and as the standard has it where an operand is infinite

_REST = """
T rest = fmod(x1, x2);
bool turned = rest != 0 && (rest < 0) != (x2 < 0);
"""
REMAINDER = _REST + "out = rest == 0 ? copysign(rest, x2) : turned ? rest + x2 : rest"
FLOOR_DIVIDE = (
    _REST
    + """
T quotient = x1 / x2, whole = (x1 - rest) / x2 - (T)turned, down = floor(whole);
if (isinf(x1) || isinf(x2) || x2 == 0) out = quotient;
else if (whole == 0) out = copysign((T)0, quotient);
else out = whole - down > (T)0.5 ? down + 1 : down;
"""
)

# Optimizers: p and the state are changed in place, by the operations of the generic rules in their order.

SGD = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
p -= (T)lr * step;
"""

SGD_WITH_MOMENTUM = """
T step = maximize ? -g : g;
if (decay != 0) step = step + (T)decay * p;
T next = begins ? step : buffer * (T)momentum + (T)fresh * step;
buffer = next;
step = nesterov ? step + (T)momentum * next : next;
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
ADAM = _ADAM.format(largest="")
AMSGRAD = _ADAM.format(largest="second = largest > second || largest != largest ? largest : second; largest = second;")

# Rows: each is that of a warp, where `blockDim.x` is 32, of which a block then has `blockDim.y`, or of a whole block.
# T, the type of the numbers, and I, that of the classes, are defined before this.

ROWS = """
struct Largest {
    static __device__ T of(T a, T b) { return a > b || a != a ? a : b; }  // a NaN stays
};

struct Total {
    static __device__ T of(T a, T b) { return a + b; }
};

template <typename Join> __device__ T joined(T value) {
    for (int step = 16; step > 0; step /= 2) value = Join::of(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
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

#define ROW long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y; if (row >= rows) return;
#define EACH for (long long k = threadIdx.x; k < length; k += blockDim.x)

__device__ T largest_of(const T *x, long long length) {
    T largest = x[0];
    EACH largest = Largest::of(largest, x[k]);
    return joined<Largest>(largest);
}

__device__ T total_of_exp(const T *x, T largest, long long length) {
    T total = 0;
    EACH total += exp(x[k] - largest);
    return joined<Total>(total);
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
    if (!isfinite(largest)) largest = 0;  // inf - inf would be NaN, and so would all else
    T logs = log(total_of_exp(x, largest, length));
    EACH out[k] = x[k] - largest - logs;
}

extern "C" __global__ void softmax_gradient(const T *g, const T *out, T *result, long long rows, long long length) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k] * out[k];
    total = joined<Total>(total);
    EACH result[k] = out[k] * (g[k] - total);
}

extern "C" __global__ void log_softmax_gradient(const T *g, const T *out, T *result, long long rows, long long length) {
    ROW
    g += row * length;
    out += row * length;
    result += row * length;
    T total = 0;
    EACH total += g[k];
    total = joined<Total>(total);
    EACH result[k] = g[k] - exp(out[k]) * total;
}

extern "C" __global__ void cross_entropy(
    const T *x, const I *target, T *losses, T *scale, double smoothing, long long rows, long long length
) {
    ROW
    x += row * length;
    T largest = largest_of(x, length), total = total_of_exp(x, largest, length), mean = 0;
    if (smoothing != 0) {
        EACH mean += x[k] - largest;
        mean = joined<Total>(mean) / (T)length;
    }
    if (threadIdx.x != 0) return;
    long long wanted = (long long)target[row] % length;  // out of bounds, it wraps around, as indices do in CuPy
    T logs = log(total), loss = logs - (x[wanted < 0 ? wanted + length : wanted] - largest);
    if (smoothing != 0) loss = loss * (T)(1 - smoothing) + (T)smoothing * (logs - mean);
    losses[row] = loss;
    scale[row] = largest;
    scale[rows + row] = total;
}

// `g` has a gradient for each row, or one for all.
extern "C" __global__ void cross_entropy_gradient(
    const T *g, int each, const T *x, const I *target, const T *tops, const T *totals, T *result, double smoothing,
    long long count, long long rows, long long length
) {
    ROW
    x += row * length;
    result += row * length;
    T top = tops[row], total = totals[row], factor = g[each ? row : 0] / (T)count, miss = 0, hit = 1;
    if (smoothing != 0) {
        miss = (T)(smoothing / length);
        hit = (T)(1 - smoothing) + miss;
    }
    long long wanted = (long long)target[row];
    EACH result[k] = (exp(x[k] - top) / total - (k == wanted ? hit : miss)) * factor;
}
"""
