// What CuPy's wheel takes from CUB and Thrust: reductions, scans, histograms and sorts of whole arrays.
#include <cupy_cub.h>
#include <cupy_thrust.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "driver.h"

namespace {

template <typename T> constexpr bool is_complex = false;
template <typename T> constexpr bool is_complex<std::complex<T>> = true;

// The types by the numbers of cupy/type_dispatcher.cuh
template <typename Function> void dispatch(int dtype, Function function) {
    switch (dtype) {
        case 0: return function(int8_t());
        case 1: return function(uint8_t());
        case 2: return function(int16_t());
        case 3: return function(uint16_t());
        case 4: return function(int32_t());
        case 5: return function(uint32_t());
        case 6: return function(int64_t());
        case 7: return function(uint64_t());
        case 8: return function(_Float16());
        case 9: return function(float());
        case 10: return function(double());
        case 11: return function(std::complex<float>());
        case 12: return function(std::complex<double>());
        default: return function(bool());
    }
}

template <typename T> bool is_nan(const T &x) { return x != x; }

// NumPy's order: NaN is the largest, complex numbers are compared by their parts.
template <typename T> bool less(const T &a, const T &b) {
    if constexpr (is_complex<T>) {
        bool real = is_nan(a.real()), imag = is_nan(a.imag());
        if (real != is_nan(b.real())) return !real;
        if (real || a.real() == b.real()) {
            if (imag != is_nan(b.imag())) return !imag;
            return a.imag() < b.imag();
        }
        if (imag != is_nan(b.imag())) return !imag;
        return a.real() < b.real();
    } else {
        return is_nan(a) ? false : is_nan(b) ? true : a < b;
    }
}

template <typename T> T smaller(const T &a, const T &b) { return is_nan(a) ? a : is_nan(b) || less(b, a) ? b : a; }
template <typename T> T larger(const T &a, const T &b) { return is_nan(a) ? a : is_nan(b) || less(a, b) ? b : a; }

// As accurate as a sum by many threads
template <typename T, typename Combine> T tree(const T *x, size_t size, Combine combine) {
    if (size == 1) return *x;
    return combine(tree(x, size / 2, combine), tree(x + size / 2, size - size / 2, combine));
}

template <typename T> T reduced(int op, const T *x, size_t size) {
    switch (op) {
        case CUPY_CUB_SUM: return size ? tree(x, size, [](T a, T b) { return (T)(a + b); }) : T(0);
        case CUPY_CUB_PROD: return size ? tree(x, size, [](T a, T b) { return (T)(a * b); }) : T(1);
        case CUPY_CUB_MIN: return tree(x, size, smaller<T>);
        default: return tree(x, size, larger<T>);
    }
}

template <typename T> int best(int op, const T *x, int size) {
    int found = 0;
    for (int i = 1; i < size && !is_nan(x[found]); ++i)
        if (is_nan(x[i]) || (op == CUPY_CUB_ARGMIN ? less(x[i], x[found]) : less(x[found], x[i]))) found = i;
    return found;
}

template <typename Function> void queue(void *stream, Function function, const char *name = __builtin_FUNCTION()) {
    cuda_host_submit(name, stream, new Work(function));
}

ptrdiff_t product(const std::vector<ptrdiff_t> &shape) {
    return std::accumulate(shape.begin(), shape.end(), (ptrdiff_t)1, std::multiplies<ptrdiff_t>());
}

}  // namespace

size_t cub_device_reduce_get_workspace_size(void *, void *, int, cudaStream_t, int, int) { return 1; }
size_t cub_device_segmented_reduce_get_workspace_size(void *, void *, int, int, cudaStream_t, int, int) { return 1; }
size_t cub_device_scan_get_workspace_size(void *, void *, int, cudaStream_t, int, int) { return 1; }
size_t cub_device_histogram_range_get_workspace_size(void *, void *, int, void *, size_t, cudaStream_t, int) { return 1; }
size_t cub_device_histogram_even_get_workspace_size(void *, void *, int, int, int, size_t, cudaStream_t, int) { return 1; }

void cub_device_segmented_reduce(void *, size_t &, void *x, void *y, int segments, int size, cudaStream_t stream, int op, int dtype) {
    queue(stream, [=] {
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            for (int i = 0; i < segments; ++i) ((T *)y)[i] = reduced(op, (const T *)x + (size_t)i * size, size);
        });
    });
}

void cub_device_reduce(void *workspace, size_t &bytes, void *x, void *y, int size, cudaStream_t stream, int op, int dtype) {
    if (op != CUPY_CUB_ARGMIN && op != CUPY_CUB_ARGMAX)
        return cub_device_segmented_reduce(workspace, bytes, x, y, 1, size, stream, op, dtype);
    queue(stream, [=] { dispatch(dtype, [=](auto zero) { *(int *)y = best(op, (const decltype(zero) *)x, size); }); });
}

void cub_device_scan(void *, size_t &, void *x, void *y, int size, cudaStream_t stream, int op, int dtype) {
    queue(stream, [=] {
        dispatch(dtype, [=](auto total) {
            using T = decltype(total);
            total = T(op == CUPY_CUB_CUMPROD);
            for (int i = 0; i < size; ++i) {
                total = op == CUPY_CUB_CUMPROD ? T(total * ((const T *)x)[i]) : T(total + ((const T *)x)[i]);
                ((T *)y)[i] = total;
            }
        });
    });
}

void cub_device_histogram_even(void *, size_t &, void *x, void *y, int, int low, int high, size_t size, cudaStream_t stream, int dtype) {
    queue(stream, [=] {
        memset(y, 0, (high - low) * sizeof(int64_t));
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            if constexpr (std::is_integral_v<T>)
                for (size_t i = 0; i < size; ++i)
                    if ((int64_t)((const T *)x)[i] >= low && (int64_t)((const T *)x)[i] < high) ++((int64_t *)y)[((const T *)x)[i] - low];
        });
    });
}

void cub_device_histogram_range(void *, size_t &, void *x, void *y, int edges, void *at, size_t size, cudaStream_t stream, int dtype) {
    queue(stream, [=] {
        memset(y, 0, (edges - 1) * sizeof(int64_t));
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            auto values = (const T *)x, first = (const T *)at;
            for (size_t i = 0; i < size; ++i) {
                auto bin = std::upper_bound(first, first + edges, values[i], less<T>) - first;
                if (bin > 0 && bin < edges) ++((int64_t *)y)[bin - 1];
            }
        });
    });
}

void thrust_sort(int dtype, void *data, size_t *, const std::vector<ptrdiff_t> &shape, intptr_t stream, void *) {
    ptrdiff_t size = product(shape), row = shape.back();
    queue((void *)stream, [=] {
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            for (T *x = (T *)data; x < (T *)data + size; x += row) std::stable_sort(x, x + row, less<T>);
        });
    });
}

void thrust_argsort(int dtype, size_t *indices, void *data, void *, const std::vector<ptrdiff_t> &shape, intptr_t stream, void *) {
    ptrdiff_t size = product(shape), row = shape.back();
    queue((void *)stream, [=] {
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            for (ptrdiff_t start = 0; start < size; start += row) {
                const T *x = (const T *)data + start;
                std::iota(indices + start, indices + start + row, 0);
                std::stable_sort(indices + start, indices + start + row, [=](size_t i, size_t j) { return less(x[i], x[j]); });
            }
        });
    });
}

void thrust_lexsort(int dtype, size_t *indices, void *keys, size_t count, size_t size, intptr_t stream, void *) {
    queue((void *)stream, [=] {
        dispatch(dtype, [=](auto zero) {
            using T = decltype(zero);
            std::iota(indices, indices + size, 0);
            for (size_t k = 0; k < count; ++k) {
                const T *x = (const T *)keys + k * size;
                std::stable_sort(indices, indices + size, [=](size_t i, size_t j) { return less(x[i], x[j]); });
            }
        });
    });
}
