/* For panels.c: instructions that multiply and add without rounding in between, and memory for
 * copies of operands. */

#include <pthread.h>
#include <stdlib.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Rows of a tile, whose sums fill the CPU's registers together with a row of a panel; and bytes of
 * a cache line. */
enum { TILE_ROWS = 6, LINE_BYTES = 64 };

/* Rows that are a power of two apart in memory share few lines of a cache: parts of this many rows
 * are copied together. */
enum { CACHE_WAYS = 8 };

/* How products are divided: the minimum number of pieces of a large product, the maximum number of
 * panels of a piece, and of columns and copied rows of a part; and how many numbers a thread copies
 * at once. */
enum {
    PIECES = 16,
    GROUP_PANELS = 8,
    PART_COLUMNS = 1024,
    COPIED_ROWS = 1152,
    CHUNK_NUMBERS = 1 << 12
};

/* Multiplications that one thread finishes sooner than several threads share them out. A product of
 * at most so many is computed sooner than its panels are copied. */
enum { ALONE = 1 << 17 };

/* Bytes of copies that a thread keeps for its next product: only trials need more. */
enum { KEPT_BYTES = 1 << 23 };

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#define PANEL_VECTORS 4
#define FUSED_float(x, y, sum) _mm512_fmadd_ps(x, y, sum)
#define FUSED_double(x, y, sum) _mm512_fmadd_pd(x, y, sum)
#define LOW_float 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_float 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_double 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_double 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__) && defined(__FMA__)
enum { VECTOR_BYTES = 32 };
#define PANEL_VECTORS 2
#define WITH_PAIRS /* these are the vectors of pairs.h */
#define FUSED_float(x, y, sum) _mm256_fmadd_ps(x, y, sum)
#define FUSED_double(x, y, sum) _mm256_fmadd_pd(x, y, sum)
#define LOW_float 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_float 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_double 0, 4, 1, 5
#define HIGH_double 2, 6, 3, 7
#elif defined(__aarch64__)
#include <arm_neon.h>
enum { VECTOR_BYTES = 16 };
#define PANEL_VECTORS 4
#define FUSED_float(x, y, sum) vfmaq_f32(sum, x, y)
#define FUSED_double(x, y, sum) vfmaq_f64(sum, x, y)
#define LOW_float 0, 4, 1, 5
#define HIGH_float 2, 6, 3, 7
#define LOW_double 0, 2
#define HIGH_double 1, 3
#else
#define WITHOUT_PANELS
#endif

#define FUSED_ONE_float fmaf
#define FUSED_ONE_double fma

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define WITH_SHUFFLES
#endif
#endif

/* Return how many products of two numbers are added up next, out of `left`.
 *
 * OpenBLAS adds up at most `most` at a time, and halves what is less than twice as many. On one
 * thread it rounds half of it up to a multiple of `unit`; on several threads, where `unit` is 0, it
 * rounds half of it up. */
static inline int64_t next_depth(const struct product *x, int64_t left) {
    if (left >= 2 * x->most) return x->most;
    if (left <= x->most) return left;
    return x->unit ? (left / 2 + x->unit - 1) / x->unit * x->unit : (left + 1) / 2;
}

/* The addend of the sums of a part of a product: nothing, 0, or the sums of the part before. */
enum addend { NOTHING, ZERO, SUMS };

static inline enum addend addend_of(const struct product *x, int is_first) {
    return !is_first ? SUMS : x->keeps_zeros ? NOTHING : ZERO;
}

/* Some rows of a product. */
struct row_block {
    int64_t begin, count;
};

/* A thread's memory for copies of operands, kept for its next product, and freed with the
 * thread. */
struct copies {
    size_t size;
    void *memory;
};

static pthread_key_t copies_key;
static pthread_once_t copies_once = PTHREAD_ONCE_INIT;
static int copies_work;

static void free_copies(void *argument) {
    struct copies *copies = argument;
    if (copies) free(copies->memory);
    free(copies);
}

static void make_copies_key(void) { copies_work = !pthread_key_create(&copies_key, free_copies); }

/* Return memory of a size, aligned to a cache line; NULL if there is none. */
static inline void *copies_of_thread(size_t size) {
    pthread_once(&copies_once, make_copies_key);
    if (!copies_work) return NULL;
    struct copies *copies = pthread_getspecific(copies_key);
    if (!copies) {
        copies = calloc(1, sizeof *copies);
        if (!copies || pthread_setspecific(copies_key, copies)) {
            free(copies);
            return NULL;
        }
    }
    if (copies->size < size || copies->size > KEPT_BYTES) {
        free(copies->memory);
        copies->memory = aligned_alloc(64, (size + 63) / 64 * 64);
        copies->size = copies->memory ? size : 0;
    }
    return copies->memory;
}

/* Free this thread's copies, which are larger for trials than for other products. */
void forget_copies(void) {
    pthread_once(&copies_once, make_copies_key);
    if (!copies_work) return;
    free_copies(pthread_getspecific(copies_key));
    pthread_setspecific(copies_key, NULL);
}

/* Return how many columns a vector of a panel has; 0 if there is no instruction that fuses. */
int64_t panel_lanes_float(void);
int64_t panel_lanes_double(void);

/* Return whether panels can add up as pairs.h describes. */
int32_t panels_have_pairs(void) {
#if defined(WITH_PAIRS)
    return 1;
#else
    return 0;
#endif
}

/* Compute a product in panels: the pool's threads share out the copies, then the pieces. */
void multiply_in_panels_float(const struct product *x, const float *first, const float *second,
                              float *out);
void multiply_in_panels_double(const struct product *x, const double *first, const double *second,
                               double *out);
