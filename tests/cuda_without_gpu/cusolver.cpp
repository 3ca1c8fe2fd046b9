// libcusolver: the LAPACK that NumPy has loaded (OpenBLAS, with integers of 64 bits).
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "libraries.h"

namespace {

const int columns = 102;  // LAPACK_COL_MAJOR

int find_openblas(dl_phdr_info *info, size_t, void *path) {
    if (!strstr(info->dlpi_name, "openblas64")) return 0;
    *(std::string *)path = info->dlpi_name;
    return 1;
}

// Call LAPACKE's function of a name, such as "getrf", for a type
template <typename T, typename... Args> int64_t lapack(const std::string &name, Args... args) {
    std::string path, letter = std::is_same_v<T, float> ? "s" : std::is_same_v<T, double> ? "d" : std::is_same_v<T, c8> ? "c" : "z";
    dl_iterate_phdr(find_openblas, &path);
    std::string symbol = "scipy_LAPACKE_" + letter + name + "64_";
    void *library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, symbol.c_str()) : nullptr;
    if (!function) {
        fprintf(stderr, "cuda_without_gpu: NumPy has no %s\n", symbol.c_str());
        abort();
    }
    // CUDA's solvers compute with NaN, and may be given memory of which they only write a part
    ((void (*)(int))dlsym(library, "scipy_LAPACKE_set_nancheck64_"))(0);
    return ((int64_t (*)(int, Args...))function)(columns, args...);
}

template <typename T> struct RealOf { typedef T type; };
template <typename T> struct RealOf<std::complex<T>> { typedef T type; };
template <typename T> using Real = typename RealOf<T>::type;
template <typename T> constexpr bool complex = !std::is_same_v<T, Real<T>>;

typedef int64_t i64;
char side(int flag) { return flag ? 'R' : 'L'; }
char operation(int flag) { return "NTC"[flag]; }
char triangle(int flag) { return flag ? 'U' : 'L'; }
char job(int flag) { return flag ? 'V' : 'N'; }

// Not a failure of the call, but one of the matrix
int quiet(int64_t info) { return (int)info; }

template <typename T> void gesvd(char u_job, char v_job, i64 m, i64 n, T *a, i64 lda, Real<T> *s, T *u, i64 ldu, T *vt, i64 ldvt, int *info) {
    std::vector<Real<T>> rest(std::max<i64>(1, std::min(m, n)));
    *info = quiet(lapack<T>("gesvd", u_job, v_job, m, n, a, lda, s, u, std::max<i64>(1, ldu), vt, std::max<i64>(1, ldvt), rest.data()));
}

template <typename T> void syevd(int vectors, int upper, i64 n, T *a, i64 lda, Real<T> *w, int *info) {
    *info = quiet(lapack<T>(complex<T> ? "heevd" : "syevd", job(vectors), triangle(upper), n, a, lda, w));
}

// gesvdj returns V, gesvd its conjugate transpose
template <typename T> void gesvdj(int vectors, int economy, i64 m, i64 n, T *a, i64 lda, Real<T> *s, T *u, i64 ldu, T *v, i64 ldv, int *info) {
    i64 k = std::min(m, n), rows = economy ? k : n;
    std::vector<T> vt((size_t)rows * n);
    char mode = !vectors ? 'N' : economy ? 'S' : 'A';
    gesvd<T>(mode, mode, m, n, a, lda, s, u, ldu, vt.data(), rows, info);
    if (vectors)
        for (i64 i = 0; i < rows; ++i)
            for (i64 j = 0; j < n; ++j) v[j + i * ldv] = conjugate(vt[i + j * rows]);
}

template <typename T> void geev(int vectors, i64 n, T *a, i64 lda, std::complex<Real<T>> *w, T *v, i64 ldv, int *info) {
    T nothing;
    if constexpr (complex<T>) {
        *info = quiet(lapack<T>("geev", 'N', job(vectors), n, a, lda, w, &nothing, (i64)1, vectors ? v : &nothing, vectors ? ldv : 1));
    } else {
        std::vector<T> real(n), imag(n);
        *info = quiet(lapack<T>("geev", 'N', job(vectors), n, a, lda, real.data(), imag.data(), &nothing, (i64)1, vectors ? v : &nothing, vectors ? ldv : 1));
        for (i64 i = 0; i < n; ++i) w[i] = {real[i], imag[i]};
    }
}

template <typename Function> void typed(int type, Function function) {
    switch (type) {  // cudaDataType_t
        case 0: return function(float());
        case 1: return function(double());
        case 4: return function(c8());
        case 5: return function(c16());
        default: abort();
    }
}

}  // namespace

API int cusolverGetProperty(int which, int *value) { *value = which == 0 ? 12 : which == 1 ? 1 : 0; return ok; }
API int cusolverDnCreate(Handle **handle) { *handle = new Handle; return ok; }
API int cusolverDnDestroy(Handle *) { return ok; }
API int cusolverDnSetStream(Handle *handle, void *stream) { handle->stream = stream; return ok; }
API int cusolverDnGetStream(Handle *handle, void **stream) { *stream = handle->stream; return ok; }
API int cusolverDnCreateParams(void **params) { *params = nullptr; return ok; }
API int cusolverDnDestroyParams(void *) { return ok; }
API int cusolverDnCreateGesvdjInfo(void **info) { *info = nullptr; return ok; }
API int cusolverDnDestroyGesvdjInfo(void *) { return ok; }
API int cusolverDnXgesvdjSetTolerance(void *, double) { return ok; }
API int cusolverDnXgesvdjSetMaxSweeps(void *, int) { return ok; }
API int cusolverDnXgesvdjSetSortEig(void *, int) { return ok; }
API int cusolverDnCreateSyevjInfo(void **info) { *info = nullptr; return ok; }
API int cusolverDnDestroySyevjInfo(void *) { return ok; }
API int cusolverDnXsyevjSetTolerance(void *, double) { return ok; }
API int cusolverDnXsyevjSetMaxSweeps(void *, int) { return ok; }
API int cusolverDnXsyevjSetSortEig(void *, int) { return ok; }

#define SOLVERS(L, T, ORGQR, ORMQR, ORGQR_NAME, ORMQR_NAME, SYEV) \
    API int cusolverDn##L##getrf_bufferSize(Handle *, int, int, T *, int, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##getrf(Handle *h, int m, int n, T *a, int lda, T *, int *pivots, int *info) { \
        return queue(h, [=] { \
            std::vector<i64> swaps(std::min(m, n)); \
            *info = quiet(lapack<T>("getrf", (i64)m, (i64)n, a, (i64)lda, swaps.data())); \
            std::copy(swaps.begin(), swaps.end(), pivots); \
        }); \
    } \
    API int cusolverDn##L##getrs(Handle *h, int op, int n, int count, const T *a, int lda, const int *pivots, T *b, int ldb, int *info) { \
        return queue(h, [=] { \
            std::vector<i64> swaps(pivots, pivots + n); \
            *info = quiet(lapack<T>("getrs", operation(op), (i64)n, (i64)count, a, (i64)lda, (const i64 *)swaps.data(), b, (i64)ldb)); \
        }); \
    } \
    API int cusolverDn##L##potrf_bufferSize(Handle *, int, int, T *, int, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##potrf(Handle *h, int upper, int n, T *a, int lda, T *, int, int *info) { \
        return queue(h, [=] { *info = quiet(lapack<T>("potrf", triangle(upper), (i64)n, a, (i64)lda)); }); \
    } \
    API int cusolverDn##L##potrs(Handle *h, int upper, int n, int count, const T *a, int lda, T *b, int ldb, int *info) { \
        return queue(h, [=] { *info = quiet(lapack<T>("potrs", triangle(upper), (i64)n, (i64)count, a, (i64)lda, b, (i64)ldb)); }); \
    } \
    API int cusolverDn##L##potrfBatched(Handle *h, int upper, int n, T **a, int lda, int *info, int batch) { \
        return queue(h, [=] { for (int i = 0; i < batch; ++i) info[i] = quiet(lapack<T>("potrf", triangle(upper), (i64)n, a[i], (i64)lda)); }); \
    } \
    API int cusolverDn##L##potrsBatched(Handle *h, int upper, int n, int count, T **a, int lda, T **b, int ldb, int *info, int batch) { \
        return queue(h, [=] { for (int i = 0; i < batch; ++i) *info = quiet(lapack<T>("potrs", triangle(upper), (i64)n, (i64)count, a[i], (i64)lda, b[i], (i64)ldb)); }); \
    } \
    API int cusolverDn##L##geqrf_bufferSize(Handle *, int, int, T *, int, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##geqrf(Handle *h, int m, int n, T *a, int lda, T *tau, T *, int, int *info) { \
        return queue(h, [=] { *info = quiet(lapack<T>("geqrf", (i64)m, (i64)n, a, (i64)lda, tau)); }); \
    } \
    API int cusolverDn##L##ORGQR##_bufferSize(Handle *, int, int, int, const T *, int, const T *, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##ORGQR(Handle *h, int m, int n, int k, T *a, int lda, const T *tau, T *, int, int *info) { \
        return queue(h, [=] { *info = quiet(lapack<T>(ORGQR_NAME, (i64)m, (i64)n, (i64)k, a, (i64)lda, tau)); }); \
    } \
    API int cusolverDn##L##ORMQR##_bufferSize(Handle *, int, int, int, int, int, const T *, int, const T *, const T *, int, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##ORMQR(Handle *h, int right, int op, int m, int n, int k, const T *a, int lda, const T *tau, T *c, int ldc, T *, int, int *info) { \
        return queue(h, [=] { *info = quiet(lapack<T>(ORMQR_NAME, side(right), operation(op), (i64)m, (i64)n, (i64)k, a, (i64)lda, tau, c, (i64)ldc)); }); \
    } \
    API int cusolverDn##L##gesvd_bufferSize(Handle *, int, int, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##gesvd(Handle *h, signed char ju, signed char jv, int m, int n, T *a, int lda, Real<T> *s, T *u, int ldu, T *vt, int ldvt, T *, int, Real<T> *, int *info) { \
        if (m < n) return invalid_value; \
        return queue(h, [=] { gesvd<T>(ju, jv, m, n, a, lda, s, u, ldu, vt, ldvt, info); }); \
    } \
    API int cusolverDn##L##gesvdj_bufferSize(Handle *, int, int, int, int, const T *, int, const Real<T> *, const T *, int, const T *, int, int *size, void *) { *size = 1; return ok; } \
    API int cusolverDn##L##gesvdj(Handle *h, int vectors, int economy, int m, int n, T *a, int lda, Real<T> *s, T *u, int ldu, T *v, int ldv, T *, int, int *info, void *) { \
        return queue(h, [=] { gesvdj<T>(vectors, economy, m, n, a, lda, s, u, ldu, v, ldv, info); }); \
    } \
    API int cusolverDn##L##gesvdjBatched_bufferSize(Handle *, int, int, int, const T *, int, const Real<T> *, const T *, int, const T *, int, int *size, void *, int) { *size = 1; return ok; } \
    API int cusolverDn##L##gesvdjBatched(Handle *h, int vectors, int m, int n, T *a, int lda, Real<T> *s, T *u, int ldu, T *v, int ldv, T *, int, int *info, void *, int batch) { \
        return queue(h, [=] { \
            for (i64 i = 0; i < batch; ++i) \
                gesvdj<T>(vectors, 0, m, n, a + i * lda * n, lda, s + i * std::min(m, n), u + i * ldu * m, ldu, v + i * ldv * n, ldv, info + i); \
        }); \
    } \
    API int cusolverDn##L##SYEV##d_bufferSize(Handle *, int, int, int, const T *, int, const Real<T> *, int *size) { *size = 1; return ok; } \
    API int cusolverDn##L##SYEV##d(Handle *h, int vectors, int upper, int n, T *a, int lda, Real<T> *w, T *, int, int *info) { \
        return queue(h, [=] { syevd<T>(vectors, upper, n, a, lda, w, info); }); \
    } \
    API int cusolverDn##L##SYEV##j_bufferSize(Handle *, int, int, int, const T *, int, const Real<T> *, int *size, void *) { *size = 1; return ok; } \
    API int cusolverDn##L##SYEV##j(Handle *h, int vectors, int upper, int n, T *a, int lda, Real<T> *w, T *, int, int *info, void *) { \
        return queue(h, [=] { syevd<T>(vectors, upper, n, a, lda, w, info); }); \
    } \
    API int cusolverDn##L##SYEV##jBatched_bufferSize(Handle *, int, int, int, const T *, int, const Real<T> *, int *size, void *, int) { *size = 1; return ok; } \
    API int cusolverDn##L##SYEV##jBatched(Handle *h, int vectors, int upper, int n, T *a, int lda, Real<T> *w, T *, int, int *info, void *, int batch) { \
        return queue(h, [=] { for (i64 i = 0; i < batch; ++i) syevd<T>(vectors, upper, n, a + i * lda * n, lda, w + i * n, info + i); }); \
    }
SOLVERS(S, float, orgqr, ormqr, "orgqr", "ormqr", syev)
SOLVERS(D, double, orgqr, ormqr, "orgqr", "ormqr", syev)
SOLVERS(C, c8, ungqr, unmqr, "ungqr", "unmqr", heev)
SOLVERS(Z, c16, ungqr, unmqr, "ungqr", "unmqr", heev)

API int cusolverDnXsyevd_bufferSize(Handle *, void *, int, int, i64, int, const void *, i64, int, const void *, int, size_t *device, size_t *host) {
    *device = *host = 1;
    return ok;
}
API int cusolverDnXsyevd(
    Handle *h, void *, int vectors, int upper, i64 n, int type, void *a, i64 lda, int, void *w, int, void *, size_t, void *, size_t, int *info
) {
    return queue(h, [=] { typed(type, [=](auto zero) {
        typedef decltype(zero) T;
        syevd<T>(vectors, upper, n, (T *)a, lda, (Real<T> *)w, info);
    }); });
}
API int cusolverDnXgeev_bufferSize(
    Handle *, void *, int, int, i64, int, const void *, i64, int, const void *, int, const void *, i64, int, const void *, i64, int,
    size_t *device, size_t *host
) {
    *device = *host = 1;
    return ok;
}
API int cusolverDnXgeev(
    Handle *h, void *, int, int vectors, i64 n, int type, void *a, i64 lda, int, void *w, int, void *, i64, int, void *v, i64 ldv, int,
    void *, size_t, void *, size_t, int *info
) {
    return queue(h, [=] { typed(type, [=](auto zero) {
        typedef decltype(zero) T;
        geev<T>(vectors, n, (T *)a, lda, (std::complex<Real<T>> *)w, (T *)v, ldv, info);
    }); });
}
