// libcublas: products, sums and solutions by plain loops, over matrices stored by columns.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "libraries.h"

namespace {

struct Shape { int op_a, op_b, m, n, k, lda, ldb, ldc; };

bool valid(const Shape &s) {
    return s.m >= 0 && s.n >= 0 && s.k >= 0 && s.lda >= std::max(1, s.op_a ? s.k : s.m) &&
           s.ldb >= std::max(1, s.op_b ? s.n : s.k) && s.ldc >= std::max(1, s.m);
}

// Of T, computed in S: c = alpha * a @ b + beta * c
template <typename T, typename S> void multiply(const Shape &s, S alpha, const T *a, const T *b, S beta, T *c) {
    std::vector<S> left((size_t)s.m * s.k), sums(s.m);
    for (int j = 0; j < s.k; ++j)
        for (int i = 0; i < s.m; ++i) left[i + (size_t)j * s.m] = (S)element(a, s.lda, s.op_a, i, j);
    for (int column = 0; column < s.n; ++column) {
        std::fill(sums.begin(), sums.end(), S(0));
        for (int j = 0; j < s.k; ++j) {
            S factor = (S)element(b, s.ldb, s.op_b, j, column);
            const S *source = &left[(size_t)j * s.m];
            for (int i = 0; i < s.m; ++i) sums[i] += source[i] * factor;
        }
        T *target = c + (size_t)column * s.ldc;
        for (int i = 0; i < s.m; ++i) target[i] = (T)(beta == S(0) ? alpha * sums[i] : alpha * sums[i] + beta * (S)target[i]);
    }
}

size_t extent(int rows, int columns, int lead) { return columns ? (size_t)(columns - 1) * lead + rows : 0; }

// A stack of products; in a capture only with a workspace, which the graph then keeps
template <typename T, typename S> int gemm(
    Handle *handle, Shape s, const void *alpha, const void *a, int64_t step_a, const void *b, int64_t step_b,
    const void *beta, void *c, int64_t step_c, int count, const char *name = __builtin_FUNCTION()
) {
    int capturing = 0;
    if (cudaStreamIsCapturing(handle->stream, &capturing) || (capturing && !handle->workspace)) return not_initialized;
    if (!valid(s)) return invalid_value;
    size_t last = std::max(count - 1, 0), size = sizeof(T);
    if (s.m && s.n && s.k && count &&
        (!cuda_host_owns(a, size * (last * step_a + (s.op_a ? extent(s.k, s.m, s.lda) : extent(s.m, s.k, s.lda)))) ||
         !cuda_host_owns(b, size * (last * step_b + (s.op_b ? extent(s.n, s.k, s.ldb) : extent(s.k, s.n, s.ldb)))) ||
         !cuda_host_owns(c, size * (last * step_c + extent(s.m, s.n, s.ldc)))))
        return execution_failed;
    S factors[2] = {};
    bool later = handle->pointers_on_device;
    if (!later) factors[0] = *(const S *)alpha, factors[1] = *(const S *)beta;
    return queue(handle, [=, first = factors[0], second = factors[1]] {
        for (int i = 0; i < count; ++i)
            multiply<T, S>(s, later ? *(const S *)alpha : first, (const T *)a + i * step_a, (const T *)b + i * step_b,
                           later ? *(const S *)beta : second, (T *)c + i * step_c);
    }, name);
}

struct BFloat16 {
    uint16_t bits;
    explicit BFloat16(float x) {
        uint32_t word;
        memcpy(&word, &x, 4);
        bits = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
    }
    explicit operator float() const {
        uint32_t word = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &word, 4);
        return x;
    }
};

int typed_gemm(
    Handle *handle, Shape s, const void *alpha, const void *a, int type_a, int64_t step_a, const void *b, int type_b,
    int64_t step_b, const void *beta, void *c, int type_c, int64_t step_c, int count, const char *name = __builtin_FUNCTION()
) {
    if (type_a != type_b || type_a != type_c) return invalid_value;
    auto call = [=](auto function) { return function(handle, s, alpha, a, step_a, b, step_b, beta, c, step_c, count, name); };
    switch (type_a) {  // cudaDataType_t
        case 0: return call(gemm<float, float>);
        case 1: return call(gemm<double, double>);
        case 2: return call(gemm<_Float16, float>);
        case 4: return call(gemm<c8, c8>);
        case 5: return call(gemm<c16, c16>);
        case 14: return call(gemm<BFloat16, float>);
        default: return invalid_value;
    }
}

// A result on the host is there when the call returns.
template <typename T> int dot(Handle *handle, int n, const T *x, int step_x, const T *y, int step_y, T *out, bool conj, const char *name = __builtin_FUNCTION()) {
    int status = queue(handle, [=] {
        T sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += (conj ? conjugate(x[i * step_x]) : x[i * step_x]) * y[i * step_y];
        *out = sum;
    }, name);
    return status || handle->pointers_on_device || !cudaStreamSynchronize(handle->stream) ? status : (int)execution_failed;
}

template <typename T> int gemv(
    Handle *handle, int op, int m, int n, const T *alpha, const T *a, int lda, const T *x, int step_x, const T *beta, T *y, int step_y,
    const char *name = __builtin_FUNCTION()
) {
    T first = *alpha, second = *beta;
    return queue(handle, [=] {
        int rows = op ? n : m, columns = op ? m : n;
        for (int i = 0; i < rows; ++i) {
            T sum = 0;
            for (int j = 0; j < columns; ++j) sum += element(a, lda, op, i, j) * x[(int64_t)j * step_x];
            T &target = y[(int64_t)i * step_y];
            target = first * sum + (second == T(0) ? T(0) : second * target);
        }
    }, name);
}

// Solve op(a) @ x = alpha * b in place, for triangular a; from the right, x @ op(a) = alpha * b
template <typename T> void triangular(bool right, bool upper, int op, bool unit, int m, int n, T alpha, const T *a, int lda, T *b, int ldb) {
    int size = right ? n : m, others = right ? m : n;
    bool forward = right ? (upper == (op == 0)) : (upper == (op != 0));
    for (int other = 0; other < others; ++other) {
        auto at = [&](int i) -> T & { return right ? b[other + (size_t)i * ldb] : b[i + (size_t)other * ldb]; };
        for (int step = 0; step < size; ++step) {
            int i = forward ? step : size - 1 - step;
            T sum = alpha * at(i);
            for (int before = 0; before < step; ++before) {
                int j = forward ? before : size - 1 - before;
                sum -= (right ? element(a, lda, op, j, i) : element(a, lda, op, i, j)) * at(j);
            }
            at(i) = unit ? sum : sum / element(a, lda, op, i, i);
        }
    }
}

// LU with partial pivoting, in place; return the first column without a pivot, from 1, or 0
template <typename T> int factorize(int n, T *a, int lda, int *pivots) {
    int info = 0;
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; i < n; ++i) if (std::abs(a[i + (size_t)k * lda]) > std::abs(a[best + (size_t)k * lda])) best = i;
        if (pivots) {
            pivots[k] = best + 1;
            for (int j = 0; j < n; ++j) std::swap(a[k + (size_t)j * lda], a[best + (size_t)j * lda]);
        }
        if (a[k + (size_t)k * lda] == T(0)) {
            if (!info) info = k + 1;
            continue;
        }
        for (int i = k + 1; i < n; ++i) {
            T factor = a[i + (size_t)k * lda] /= a[k + (size_t)k * lda];
            for (int j = k + 1; j < n; ++j) a[i + (size_t)j * lda] -= factor * a[k + (size_t)j * lda];
        }
    }
    return info;
}

template <typename T> void solve(int op, int n, int columns, const T *lu, int lda, const int *pivots, T *b, int ldb) {
    auto swap = [&](int k) {
        for (int j = 0; j < columns; ++j) std::swap(b[k + (size_t)j * ldb], b[pivots[k] - 1 + (size_t)j * ldb]);
    };
    if (op == 0) for (int k = 0; k < n && pivots; ++k) swap(k);
    triangular(false, op != 0, op, op == 0, n, columns, T(1), lu, lda, b, ldb);
    triangular(false, op == 0, op, op != 0, n, columns, T(1), lu, lda, b, ldb);
    if (op != 0) for (int k = n - 1; k >= 0 && pivots; --k) swap(k);
}

}  // namespace

API int cublasCreate_v2(Handle **handle) { *handle = new Handle; return ok; }
API int cublasDestroy_v2(Handle *) { return ok; }
API int cublasGetVersion_v2(Handle *, int *version) { *version = 130300; return ok; }
API int cublasSetStream_v2(Handle *handle, void *stream) { handle->stream = stream; handle->workspace = nullptr; return ok; }
API int cublasGetStream_v2(Handle *handle, void **stream) { *stream = handle->stream; return ok; }
API int cublasSetMathMode(Handle *handle, int mode) { handle->math = mode; return ok; }
API int cublasGetMathMode(Handle *handle, int *mode) { *mode = handle->math; return ok; }
API int cublasSetPointerMode_v2(Handle *handle, int mode) { handle->pointers_on_device = mode; return ok; }
API int cublasGetPointerMode_v2(Handle *handle, int *mode) { *mode = handle->pointers_on_device; return ok; }
API int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t size) {
    if ((size_t)workspace % 256 || !cuda_host_owns(workspace, size)) return invalid_value;
    handle->workspace = workspace;
    return ok;
}

API int cublasGemmEx(
    Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda, const void *b,
    int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int, int
) {
    return typed_gemm(h, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, a, type_a, 0, b, type_b, 0, beta, c, type_c, 0, 1);
}
API int cublasSgemmEx(
    Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda, const void *b,
    int type_b, int ldb, const void *beta, void *c, int type_c, int ldc
) {
    return typed_gemm(h, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, a, type_a, 0, b, type_b, 0, beta, c, type_c, 0, 1);
}
API int cublasGemmStridedBatchedEx(
    Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda, int64_t sa,
    const void *b, int type_b, int ldb, int64_t sb, const void *beta, void *c, int type_c, int ldc, int64_t sc, int count,
    int, int
) {
    return typed_gemm(h, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, a, type_a, sa, b, type_b, sb, beta, c, type_c, sc, count);
}

#define FOR_TYPES(define) define(S, float) define(D, double) define(C, c8) define(Z, c16)

#define GEMM(letter, T) \
    API int cublas##letter##gemm_v2(Handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, \
                                    int ldb, const T *beta, T *c, int ldc) { \
        return gemm<T, T>(h, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, a, 0, b, 0, beta, c, 0, 1); \
    } \
    API int cublas##letter##gemmStridedBatched(Handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int lda, \
                                               int64_t sa, const T *b, int ldb, int64_t sb, const T *beta, T *c, int ldc, int64_t sc, int count) { \
        return gemm<T, T>(h, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, a, sa, b, sb, beta, c, sc, count); \
    } \
    API int cublas##letter##gemmBatched(Handle *h, int ta, int tb, int m, int n, int k, const T *alpha, const T **a, int lda, \
                                        const T **b, int ldb, const T *beta, T **c, int ldc, int count) { \
        Shape s{ta, tb, m, n, k, lda, ldb, ldc}; \
        T first = *alpha, second = *beta; \
        return !valid(s) ? invalid_value : queue(h, [=] { \
            for (int i = 0; i < count; ++i) multiply<T, T>(s, first, a[i], b[i], second, c[i]); \
        }); \
    } \
    API int cublas##letter##gemv_v2(Handle *h, int op, int m, int n, const T *alpha, const T *a, int lda, const T *x, int step_x, \
                                    const T *beta, T *y, int step_y) { \
        return gemv<T>(h, op, m, n, alpha, a, lda, x, step_x, beta, y, step_y); \
    } \
    API int cublas##letter##trsm_v2(Handle *h, int side, int fill, int op, int diag, int m, int n, const T *alpha, const T *a, \
                                    int lda, T *b, int ldb) { \
        T factor = *alpha; \
        return queue(h, [=] { triangular<T>(side, fill, op, diag, m, n, factor, a, lda, b, ldb); }); \
    } \
    API int cublas##letter##trsmBatched(Handle *h, int side, int fill, int op, int diag, int m, int n, const T *alpha, T **a, \
                                        int lda, T **b, int ldb, int count) { \
        T factor = *alpha; \
        return queue(h, [=] { for (int i = 0; i < count; ++i) triangular<T>(side, fill, op, diag, m, n, factor, a[i], lda, b[i], ldb); }); \
    } \
    API int cublas##letter##getrfBatched(Handle *h, int n, T **a, int lda, int *pivots, int *info, int count) { \
        return queue(h, [=] { for (int i = 0; i < count; ++i) info[i] = factorize(n, a[i], lda, pivots ? pivots + i * n : nullptr); }); \
    } \
    API int cublas##letter##getrsBatched(Handle *h, int op, int n, int columns, T **a, int lda, const int *pivots, T **b, int ldb, \
                                         int *info, int count) { \
        *info = 0; \
        return queue(h, [=] { for (int i = 0; i < count; ++i) solve<T>(op, n, columns, a[i], lda, pivots ? pivots + i * n : nullptr, b[i], ldb); }); \
    } \
    API int cublas##letter##getriBatched(Handle *h, int n, T **a, int lda, int *pivots, T **c, int ldc, int *info, int count) { \
        return queue(h, [=] { \
            for (int i = 0; i < count; ++i) { \
                for (int row = 0; row < n; ++row) for (int j = 0; j < n; ++j) c[i][row + (size_t)j * ldc] = T(row == j); \
                solve<T>(0, n, n, a[i], lda, pivots ? pivots + i * n : nullptr, c[i], ldc); \
                info[i] = 0; \
            } \
        }); \
    }
FOR_TYPES(GEMM)

API int cublasSdot_v2(Handle *h, int n, const float *x, int sx, const float *y, int sy, float *r) { return dot(h, n, x, sx, y, sy, r, false); }
API int cublasDdot_v2(Handle *h, int n, const double *x, int sx, const double *y, int sy, double *r) { return dot(h, n, x, sx, y, sy, r, false); }
API int cublasCdotu_v2(Handle *h, int n, const c8 *x, int sx, const c8 *y, int sy, c8 *r) { return dot(h, n, x, sx, y, sy, r, false); }
API int cublasZdotu_v2(Handle *h, int n, const c16 *x, int sx, const c16 *y, int sy, c16 *r) { return dot(h, n, x, sx, y, sy, r, false); }
API int cublasCdotc_v2(Handle *h, int n, const c8 *x, int sx, const c8 *y, int sy, c8 *r) { return dot(h, n, x, sx, y, sy, r, true); }
API int cublasZdotc_v2(Handle *h, int n, const c16 *x, int sx, const c16 *y, int sy, c16 *r) { return dot(h, n, x, sx, y, sy, r, true); }
