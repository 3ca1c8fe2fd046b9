// What the libraries of linear algebra share.
#pragma once
#include <complex>
#include <vector>

#include "driver.h"

#define API extern "C" __attribute__((visibility("default")))

typedef std::complex<float> c8;
typedef std::complex<double> c16;

extern "C" int cudaStreamIsCapturing(void *stream, int *status);
extern "C" int cudaStreamSynchronize(void *stream);

struct Handle {
    void *stream = nullptr;
    void *workspace = nullptr;
    int pointers_on_device = 0, math = 0;
};

enum { ok = 0, not_initialized = 1, invalid_value = 7, execution_failed = 13 };

// The name by which a call is counted is the one of the function that calls this.
template <typename Function> int queue(Handle *handle, Function function, const char *name = __builtin_FUNCTION()) {
    return cuda_host_submit(name, handle->stream, new Work(function)) ? execution_failed : ok;
}

template <typename T> T conjugate(T x) { return x; }
template <typename T> std::complex<T> conjugate(std::complex<T> x) { return std::conj(x); }

// An element of a matrix stored by columns, transposed and conjugated as `op` says: 0, 1 or 2
template <typename T> T element(const T *a, int lead, int op, int row, int column) {
    T x = op ? a[column + (size_t)row * lead] : a[row + (size_t)column * lead];
    return op == 2 ? conjugate(x) : x;
}
