/* Products of few rows with a matrix that is used many times, with the bits of OpenBLAS.
 *
 * BLAS copies the matrix in each call, which for few rows takes as long as the product. Here it is copied once, to
 * panels of columns, of which a tile of the result stays in registers. Each number of the result is the sum that
 * OpenBLAS computes where it can: of fused multiplications and additions in order, of up to `most` at a time.
 *
 * The runtime has this source twice: for float, and then for double.
 */

#if !defined(OF_TYPE)
#define real float
#define OF_TYPE(name) name##_of_floats

enum { TILE_ROWS = 6 };
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, PANEL_VECTORS = 4 };
#define FUSED_of_floats(x, y, sum) _mm512_fmadd_ps(x, y, sum)
#define FUSED_of_doubles(x, y, sum) _mm512_fmadd_pd(x, y, sum)
#elif defined(__AVX2__) && defined(__FMA__)
enum { VECTOR_BYTES = 32, PANEL_VECTORS = 2 };
#define FUSED_of_floats(x, y, sum) _mm256_fmadd_ps(x, y, sum)
#define FUSED_of_doubles(x, y, sum) _mm256_fmadd_pd(x, y, sum)
#elif defined(__aarch64__)
#include <arm_neon.h>
enum { VECTOR_BYTES = 16, PANEL_VECTORS = 4 };
#define FUSED_of_floats(x, y, sum) vfmaq_f32(sum, x, y)
#define FUSED_of_doubles(x, y, sum) vfmaq_f64(sum, x, y)
#else
#define WITHOUT_PANELS
#endif

#if !defined(WITHOUT_PANELS)
/* OpenBLAS halves what is less than twice as many as it adds up at a time. */
static int64_t next_depth(int64_t left, int64_t most) {
    return left >= 2 * most ? most : left > most ? (left / 2 + 15) / 16 * 16 : left;
}
#endif
#else
#undef real
#undef OF_TYPE
#define real double
#define OF_TYPE(name) name##_of_doubles
#endif

#if defined(WITHOUT_PANELS)
int64_t OF_TYPE(panel_columns)(void) { return 0; }
static void OF_TYPE(pack)(const struct product *x, const real *second, real *panels) {
    (void)x, (void)second, (void)panels;
}
static void OF_TYPE(multiply_panels)(const struct product *x, int64_t rows, const real *first, const real *panels,
                                     int64_t most, real *out) {
    (void)x, (void)rows, (void)first, (void)panels, (void)most, (void)out;
}
#else
typedef real OF_TYPE(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* A vector anywhere in memory. */
typedef real OF_TYPE(stored) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

enum { OF_TYPE(LANES) = VECTOR_BYTES / sizeof(real), OF_TYPE(COLUMNS) = PANEL_VECTORS * OF_TYPE(LANES) };

/* How many columns a panel has, of which there is a whole number; 0 if there is no instruction that fuses. */
int64_t OF_TYPE(panel_columns)(void) { return OF_TYPE(COLUMNS); }

/* Write a matrix as panels. */
static void OF_TYPE(pack)(const struct product *x, const real *second, real *panels) {
    const int64_t width = OF_TYPE(COLUMNS);
    for (int64_t k = 0; k < x->inner; k++)
        for (int64_t j = 0; j < x->columns; j += width)
            memcpy(panels + j * x->inner + k * width, second + k * x->second_stride + j, sizeof(real) * width);
}

/* Multiply some rows by a part of a panel, and write the result, or add to it. `count` is a constant. */
static inline __attribute__((always_inline)) void OF_TYPE(multiply_tile)(
    const int count, int64_t depth, const real *first, int64_t first_stride, const real *panel, real *out,
    int64_t out_stride, int add) {
    OF_TYPE(vector) sums[TILE_ROWS][PANEL_VECTORS];
    const OF_TYPE(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = zero;
    for (int64_t k = 0; k < depth; k++, panel += OF_TYPE(COLUMNS)) {
        const OF_TYPE(stored) *row = (const OF_TYPE(stored) *)panel;
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const OF_TYPE(vector) number = first[i * first_stride + k] - zero; /* in all lanes */
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = OF_TYPE(FUSED)(number, row[v], sums[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        OF_TYPE(stored) *row = (OF_TYPE(stored) *)(out + i * out_stride);
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) {
            if (add) sums[i][v] += row[v];
            row[v] = sums[i][v];
        }
    }
}

/* Multiply some rows by a matrix in panels. */
static void OF_TYPE(multiply_panels)(const struct product *x, int64_t rows, const real *first, const real *panels,
                                     int64_t most, real *out) {
    const int64_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t k = 0, depth; k < x->inner; k += depth) {
        depth = next_depth(x->inner - k, most);
        for (int64_t j = 0; j < x->columns; j += OF_TYPE(COLUMNS)) {
            const real *panel = panels + j * x->inner + k * OF_TYPE(COLUMNS);
            for (int64_t tile = 0; tile < tiles; tile++) { /* as even as they can be */
                const int64_t begin = tile * rows / tiles;
                const real *a = first + begin * x->first_stride + k;
                real *c = out + begin * x->out_stride + j;
#define TILE(count) OF_TYPE(multiply_tile)(count, depth, a, x->first_stride, panel, c, x->out_stride, k > 0)
                switch ((tile + 1) * rows / tiles - begin) {
                    case 1: TILE(1); break;
                    case 2: TILE(2); break;
                    case 3: TILE(3); break;
                    case 4: TILE(4); break;
                    case 5: TILE(5); break;
                    default: TILE(6);
                }
#undef TILE
            }
        }
    }
}
#endif

/* Compute one product of contiguous matrices, with memory for the panels. */
void OF_TYPE(multiply_packed)(const struct product *x, const real *first, const real *second, int64_t most,
                              real *panels, real *out) {
    OF_TYPE(pack)(x, second, panels);
    OF_TYPE(multiply_panels)(x, x->rows, first, panels, most, out);
}
