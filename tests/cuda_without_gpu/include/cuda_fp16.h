// Half precision, of which kernels use conversions only.
#pragma once
#include <cuda_on_host.h>

struct __half_raw { unsigned short x; };
struct __half {
    unsigned short bits;
    __half() = default;
    __half(const __half_raw &raw) : bits(raw.x) {}
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>> __half(T x)
        : bits(cuda_bits<unsigned short>((_Float16)x)) {}
    operator float() const { return (float)cuda_bits<_Float16>(bits); }
    operator __half_raw() const { return {bits}; }
};
typedef __half half;
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
inline __half __float2half_rn(float x) { return x; }
inline __half __float2half(float x) { return x; }
inline float __half2float(__half x) { return x; }
