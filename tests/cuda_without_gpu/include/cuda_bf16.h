// bfloat16, of which kernels use conversions only.
#pragma once
#include <cuda_on_host.h>

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float x) {
        unsigned word = __float_as_uint(x);
        bits = (unsigned short)(x != x ? 0x7FFF : (word + 0x7FFF + (word >> 16 & 1)) >> 16);
    }
    operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { __nv_bfloat16 x; x.bits = bits; return x; }
inline bool __hisnan(__nv_bfloat16 x) { return std::isnan((float)x); }
inline bool __hisinf(__nv_bfloat16 x) { return std::isinf((float)x); }
