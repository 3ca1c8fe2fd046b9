/* Definitions shared by the kernels of programs and the runtime, which is compiled only once. */

#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* for signal masks */
#endif
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* A function of a range; threads call it for parts of the range. */
typedef void (*range_function)(void *argument, int64_t begin, int64_t end);

/* A matrix product, or a stack of them. */
struct product {
    int64_t rows, columns, inner;                    /* sizes of the result, and summed over */
    int64_t stacks, count;                           /* numbers of stacks, and matrices in each */
    int64_t first_leap, second_leap, out_leap;       /* bytes from stack to stack, or 0 */
    int64_t first_step, second_step, out_step;       /* bytes from matrix to matrix */
    int64_t first_stride, second_stride, out_stride; /* elements from row to row in memory */
    int64_t most, unit;            /* see next_depth of panels.h; `most` is 0 if BLAS multiplies */
    int64_t all_rows, all_columns; /* sizes of the product that this is a part of, see pairs.h */
    int64_t row_ranges, column_ranges;
    int32_t first_transposed, second_transposed, is_double;
    int32_t by_vector; /* the second operand is a vector, with its stride in `second_stride` */
    int32_t pieces;    /* number of pieces of rows of one product, negative for pieces of columns */
    /* in panels: whether sums of -0 stay, or are added to 0, as OpenBLAS does in most products */
    int32_t keeps_zeros;
};

/* An inner loop of NumPy. Its function takes the addresses of operands and result, the number of
 * elements, their strides in bytes, and `data`. */
struct loop {
    void (*function)(char **, const intptr_t *, const intptr_t *, void *);
    void *data;
};

struct runtime {
    void (*parallel)(range_function, void *, int64_t total, int64_t chunk);
    void (*begin_products)(void);
    void (*end_products)(void);
    void (*multiply)(const struct product *, const char *, const char *, char *);
    void (*loop)(const struct loop *, char **operands, int64_t count, int64_t size, int64_t item);
    void (*extremes)(const char *, char *, int64_t count, int64_t columns, int32_t is_double,
                     int32_t smallest);
    void (*reduce)(const struct loop *, const char *x, char *out, int64_t outer, int64_t middle,
                   int64_t inner, int64_t of_middle, int64_t item, int64_t starts_at_0);
    void (*dots)(const struct loop *, char **operands, int64_t rows, int64_t size, int64_t item);
    int32_t (*elements)(char **, int64_t rows, int64_t columns, int64_t down, int64_t right,
                        int64_t count, int64_t item, int64_t row_bytes, int64_t column_bytes);
    int32_t (*take_rows)(char **, int64_t length, int64_t bytes, int64_t count,
                         int64_t index_bytes);
    int32_t (*add_rows)(char **, int64_t length, int64_t width, int64_t count, int64_t index_bytes,
                        int32_t is_double);
    int64_t (*extreme_index)(const char *, int64_t count, int64_t bytes, int32_t largest);
    void (*note)(int32_t); /* floating-point exceptions, for the thread that owns the task */
};

enum { INVALID = 1, DIVIDED = 2, OVERFLOWN = 4, UNDERFLOWN = 8 };

#if defined(__SSE2__)
#include <xmmintrin.h>
static inline void clear_exceptions(void) { _mm_setcsr(_mm_getcsr() & ~0x3fu); }
static inline int32_t exceptions(void) {
    const uint32_t x = _mm_getcsr();
    return (x & 1 ? INVALID : 0) | (x & 4 ? DIVIDED : 0) | (x & 8 ? OVERFLOWN : 0) |
           (x & 16 ? UNDERFLOWN : 0);
}
/* Include the exceptions of the x87 unit, where `feraiseexcept`, which NumPy calls in its loops,
 * raises some. */
static inline void clear_all_exceptions(void) {
    clear_exceptions();
    __asm__ volatile("fnclex");
}
static inline int32_t all_exceptions(void) {
    uint16_t x;
    __asm__ volatile("fnstsw %0" : "=a"(x));
    return exceptions() | (x & 1 ? INVALID : 0) | (x & 4 ? DIVIDED : 0) | (x & 8 ? OVERFLOWN : 0) |
           (x & 16 ? UNDERFLOWN : 0);
}
#else
#include <fenv.h>
static inline void clear_exceptions(void) { feclearexcept(FE_ALL_EXCEPT); }
static inline int32_t exceptions(void) {
    const int x = fetestexcept(FE_ALL_EXCEPT);
    return (x & FE_INVALID ? INVALID : 0) | (x & FE_DIVBYZERO ? DIVIDED : 0) |
           (x & FE_OVERFLOW ? OVERFLOWN : 0) | (x & FE_UNDERFLOW ? UNDERFLOWN : 0);
}
static inline void clear_all_exceptions(void) { clear_exceptions(); }
static inline int32_t all_exceptions(void) { return exceptions(); }
#endif

/* Precedes a loop in which no step reads what another step writes: any two places that statements
 * read and write are the same, or apart (fusion.py). Compilers then vectorize the loop without
 * comparing the addresses of all operands; with many operands they would give up. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* Arithmetic does not move across a fence. */
#define FENCE() __asm__ volatile("" ::: "memory")

/* Comparisons of floats without the exception for NaN, of which NumPy does not warn: the functions
 * of <math.h> raise it where GCC vectorizes them for AVX-512. The bits, as integers, are in the
 * order of the floats; -0. + 0. is 0.
 *
 * `choose` returns the first of two floats where a condition is 1, and the second where it is 0:
 * GCC moves the condition of ``?:`` into the comparisons that follow, and then does not vectorize
 * them. */
#define COMPARISONS(type, integer, shift, most)                                                    \
    static inline integer order_##type(type x) {                                                   \
        integer bits;                                                                              \
        x += 0;                                                                                    \
        memcpy(&bits, &x, sizeof bits);                                                            \
        return bits ^ ((bits >> shift) & most);                                                    \
    }                                                                                              \
    static inline int32_t ordered_##type(type x, type y) { return (x == x) & (y == y); }           \
    static inline int32_t less_##type(type x, type y) {                                            \
        return (order_##type(x) < order_##type(y)) & ordered_##type(x, y);                         \
    }                                                                                              \
    static inline int32_t less_equal_##type(type x, type y) {                                      \
        return (order_##type(x) <= order_##type(y)) & ordered_##type(x, y);                        \
    }                                                                                              \
    static inline type choose_##type(int32_t condition, type x, type y) {                          \
        integer first, second;                                                                     \
        memcpy(&first, &x, sizeof x);                                                              \
        memcpy(&second, &y, sizeof y);                                                             \
        second ^= (first ^ second) & -(integer)condition;                                          \
        memcpy(&y, &second, sizeof y);                                                             \
        return y;                                                                                  \
    }

COMPARISONS(float, int32_t, 31, INT32_MAX)
COMPARISONS(double, int64_t, 63, INT64_MAX)
