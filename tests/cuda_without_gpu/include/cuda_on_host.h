// CUDA C++ for a C++ compiler of the host: the names that kernels use, for one thread of a block at a time.
#pragma once
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_state.h"

#define __device__
#define __host__
#define __global__
#define __constant__
#define __shared__ static  // one block runs at a time
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13

static CudaState cuda_state;
#define threadIdx cuda_state.thread
#define blockIdx cuda_state.block
#define blockDim cuda_state.block_size
#define gridDim cuda_state.grid_size
static const int warpSize = 32;

// Barriers and exchange within a warp

inline unsigned cuda_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
inline unsigned cuda_lane() { return cuda_thread() % 32; }
inline void __syncthreads() { cuda_state.wait(Scope::block, ~0u); }
inline void __syncwarp(unsigned mask = ~0u) { cuda_state.wait(Scope::warp, mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline unsigned __activemask() { return ~0u; }

template <typename T> T cuda_exchange(unsigned mask, T value, unsigned lane) {
    static_assert(sizeof(T) <= 16);
    unsigned thread = cuda_thread();
    memcpy(cuda_state.slots[thread], &value, sizeof value);
    __syncwarp(mask);
    memcpy(&value, cuda_state.slots[thread / 32 * 32 + lane], sizeof value);
    __syncwarp(mask);
    return value;
}
template <typename T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    unsigned lane = cuda_lane();
    return cuda_exchange(mask, value, lane / width * width + (unsigned)source % width);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32) {
    unsigned lane = cuda_lane(), source = lane ^ step;
    return cuda_exchange(mask, value, source / width <= lane / width ? source : lane);
}
template <typename T> T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32) {
    unsigned lane = cuda_lane();
    return cuda_exchange(mask, value, lane % width >= step ? lane - step : lane);
}
template <typename T> T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32) {
    unsigned lane = cuda_lane();
    return cuda_exchange(mask, value, lane % width + step < (unsigned)width ? lane + step : lane);
}
inline unsigned __ballot_sync(unsigned mask, int value) {
    unsigned thread = cuda_thread(), result = 0;
    cuda_state.slots[thread][0] = value != 0;
    __syncwarp(mask);
    for (unsigned lane = 0; lane < 32; ++lane)
        if (mask >> lane & 1 && cuda_state.slots[thread / 32 * 32 + lane][0]) result |= 1u << lane;
    __syncwarp(mask);
    return result;
}
inline int __any_sync(unsigned mask, int value) { return __ballot_sync(mask, value) != 0; }
inline int __all_sync(unsigned mask, int value) { return __ballot_sync(mask, !value) == 0; }

// Atomic functions: no other thread runs meanwhile

#define CUDA_ATOMIC(name, expression) \
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>> \
    T name(T *address, std::type_identity_t<T> value) { T old = *address; *address = expression; return old; }
CUDA_ATOMIC(atomicAdd, old + value)
CUDA_ATOMIC(atomicSub, old - value)
CUDA_ATOMIC(atomicExch, value)
CUDA_ATOMIC(atomicAnd, old & value)
CUDA_ATOMIC(atomicOr, old | value)
CUDA_ATOMIC(atomicXor, old ^ value)
CUDA_ATOMIC(atomicMin, (value < old ? value : old))
CUDA_ATOMIC(atomicMax, (value > old ? value : old))
template <typename T> T atomicCAS(T *address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
    T old = *address;
    if (old == compare) *address = value;
    return old;
}

// Bits

template <typename To, typename From> inline To cuda_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    memcpy(&result, &x, sizeof x);
    return result;
}
inline int __float_as_int(float x) { return cuda_bits<int>(x); }
inline float __int_as_float(int x) { return cuda_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return cuda_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return cuda_bits<float>(x); }
inline long long __double_as_longlong(double x) { return cuda_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return cuda_bits<double>(x); }
inline int __double2hiint(double x) { return (int)(cuda_bits<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return (int)cuda_bits<unsigned long long>(x); }
inline double __hiloint2double(int high, int low) {
    return cuda_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <typename T> T __ldg(const T *address) { return *address; }

// Mathematics: overloads in the global namespace

#define CUDA_UNARY(name) using std::name;
CUDA_UNARY(abs) CUDA_UNARY(acos) CUDA_UNARY(acosh) CUDA_UNARY(asin) CUDA_UNARY(asinh) CUDA_UNARY(atan)
CUDA_UNARY(atan2) CUDA_UNARY(atanh) CUDA_UNARY(cbrt) CUDA_UNARY(ceil) CUDA_UNARY(copysign) CUDA_UNARY(cos)
CUDA_UNARY(cosh) CUDA_UNARY(erf) CUDA_UNARY(erfc) CUDA_UNARY(exp) CUDA_UNARY(exp2) CUDA_UNARY(expm1) CUDA_UNARY(fabs)
CUDA_UNARY(fdim) CUDA_UNARY(floor) CUDA_UNARY(fma) CUDA_UNARY(fmax) CUDA_UNARY(fmin) CUDA_UNARY(fmod)
CUDA_UNARY(frexp) CUDA_UNARY(hypot) CUDA_UNARY(ilogb) CUDA_UNARY(isfinite) CUDA_UNARY(isinf) CUDA_UNARY(isnan)
CUDA_UNARY(ldexp) CUDA_UNARY(lgamma) CUDA_UNARY(llrint) CUDA_UNARY(llround) CUDA_UNARY(log) CUDA_UNARY(log10)
CUDA_UNARY(log1p) CUDA_UNARY(log2) CUDA_UNARY(logb) CUDA_UNARY(lrint) CUDA_UNARY(lround) CUDA_UNARY(modf)
CUDA_UNARY(nearbyint) CUDA_UNARY(nextafter) CUDA_UNARY(pow) CUDA_UNARY(remainder) CUDA_UNARY(remquo) CUDA_UNARY(rint)
CUDA_UNARY(round) CUDA_UNARY(scalbn) CUDA_UNARY(signbit) CUDA_UNARY(sin) CUDA_UNARY(sinh) CUDA_UNARY(sqrt)
CUDA_UNARY(tan) CUDA_UNARY(tanh) CUDA_UNARY(tgamma) CUDA_UNARY(trunc)

template <typename A, typename B>
using cuda_common = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>;
template <typename A, typename B> cuda_common<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return std::fmax((T)a, (T)b);
    else return (T)a > (T)b ? (T)a : (T)b;
}
template <typename A, typename B> cuda_common<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return std::fmin((T)a, (T)b);
    else return (T)a < (T)b ? (T)a : (T)b;
}

// Inverses of erf and erfc by Newton's method
inline long double cuda_erfcinv(long double q) {  // of 0 < q <= 0.5, on a logarithmic scale
    long double y = sqrtl(-logl(q));
    for (int i = 0; i < 12; ++i) y += logl(erfcl(y) / q) * erfcl(y) / (M_2_SQRTPI * expl(-y * y));
    return y;
}
inline double erfinv(double x) {
    double size = std::fabs(x);
    if (!(size < 1)) return size == 1 ? x * HUGE_VAL : NAN;
    if (size > 0.5) return (double)std::copysign(cuda_erfcinv(1 - (long double)size), (long double)x);
    long double y = x / (long double)M_2_SQRTPI;
    for (int i = 0; i < 8; ++i) y -= (erfl(y) - x) / (M_2_SQRTPI * expl(-y * y));
    return (double)y;
}
inline double erfcinv(double q) {
    if (!(q > 0 && q < 2)) return q == 0 ? HUGE_VAL : q == 2 ? -HUGE_VAL : NAN;
    return q <= 0.5 ? (double)cuda_erfcinv(q) : q < 1.5 ? erfinv(1 - q) : (double)-cuda_erfcinv(2 - (long double)q);
}
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2 * p); }
inline double erfcx(double x) {
    if (x < 25) return (double)(expl((long double)x * x) * erfcl(x));
    double y = 1 / (x * x);
    return 1 / (x * std::sqrt(M_PI)) * (1 - y / 2 * (1 - y * 1.5 * (1 - y * 2.5 * (1 - y * 3.5))));
}
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double rcbrt(double x) { return 1 / std::cbrt(x); }
inline double sinpi(double x) { return std::sin(M_PI * std::fmod(x, 2.0)); }
inline double cospi(double x) { return std::cos(M_PI * std::fmod(x, 2.0)); }
inline double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, std::fabs(x)); }
inline double cyl_bessel_i1(double x) { return std::copysign(std::cyl_bessel_i(1.0, std::fabs(x)), x); }
#define CUDA_FLOAT(name) \
    inline float name##f(float x) { return (float)name((double)x); } \
    inline float name(float x) { return name##f(x); }
CUDA_FLOAT(normcdf) CUDA_FLOAT(normcdfinv) CUDA_FLOAT(erfinv) CUDA_FLOAT(erfcinv) CUDA_FLOAT(erfcx) CUDA_FLOAT(rsqrt)
CUDA_FLOAT(rcbrt) CUDA_FLOAT(sinpi) CUDA_FLOAT(cospi) CUDA_FLOAT(cyl_bessel_i0) CUDA_FLOAT(cyl_bessel_i1)
inline float exp10(float x) { return exp10f(x); }
inline float j0(float x) { return j0f(x); }
inline float j1(float x) { return j1f(x); }
inline float y0(float x) { return y0f(x); }
inline float y1(float x) { return y1f(x); }
inline float yn(int n, float x) { return (float)yn(n, (double)x); }
inline float jn(int n, float x) { return (float)jn(n, (double)x); }
inline void sincos(float x, float *s, float *c) { *s = std::sin(x); *c = std::cos(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline long long __float2ll_rn(float x) { return std::llrint(x); }
inline long long __double2ll_rn(double x) { return std::llrint(x); }
inline int __float2int_rn(float x) { return (int)std::lrint(x); }
inline int __double2int_rn(double x) { return (int)std::lrint(x); }

// Kernels as the driver calls them: with the addresses of their arguments

template <auto kernel> struct CudaKernel;
template <typename... Args, void (*kernel)(Args...)> struct CudaKernel<kernel> {
    static constexpr size_t sizes[] = {sizeof(Args)..., 0};
    template <size_t... I> static void call(void **args, std::index_sequence<I...>) {
        kernel(*(std::remove_cv_t<Args> *)args[I]...);
    }
    static void thread(void **args) { call(args, std::index_sequence_for<Args...>()); }
    static void blocks(void **args) {  // of a kernel without barriers
        dim3 grid = gridDim, size = blockDim;
        for (unsigned bz = 0; bz < grid.z; ++bz) for (unsigned by = 0; by < grid.y; ++by)
        for (unsigned bx = 0; bx < grid.x; ++bx) {
            blockIdx = {bx, by, bz};
            for (unsigned z = 0; z < size.z; ++z) for (unsigned y = 0; y < size.y; ++y)
            for (unsigned x = 0; x < size.x; ++x) {
                threadIdx = {x, y, z};
                thread(args);
            }
        }
    }
};
