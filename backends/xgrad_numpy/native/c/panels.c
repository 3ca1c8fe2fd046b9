/* Products of few rows with a matrix that is used many times, with the bits of OpenBLAS.
 *
 * BLAS copies the matrix in each call, which for few rows takes as long as the product. Here it is copied once, to
 * panels of columns, of which a tile of the result stays in registers. Each number of the result is the sum that
 * OpenBLAS computes where it can: of fused multiplications and additions in order, of up to `most` at a time.
 */

#if defined(WITHOUT_PANELS)
int64_t NAME(panel_columns)(void) { return 0; }
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    (void)x, (void)second, (void)panels;
}
static void NAME(multiply_panels)(const struct product *x, int64_t rows, const REAL *first, const REAL *panels,
                                     int64_t most, REAL *out) {
    (void)x, (void)rows, (void)first, (void)panels, (void)most, (void)out;
}
#else
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* A vector anywhere in memory. */
typedef REAL NAME(stored) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum { NAME(LANES) = VECTOR_BYTES / sizeof(REAL), NAME(COLUMNS) = PANEL_VECTORS * NAME(LANES) };

/* How many columns a panel has, of which there is a whole number; 0 if there is no instruction that fuses. */
int64_t NAME(panel_columns)(void) { return NAME(COLUMNS); }

/* Write a matrix as panels. */
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    const int64_t width = NAME(COLUMNS);
    for (int64_t k = 0; k < x->inner; k++)
        for (int64_t j = 0; j < x->columns; j += width)
            memcpy(panels + j * x->inner + k * width, second + k * x->second_stride + j, sizeof(REAL) * width);
}

/* Multiply some rows by a part of a panel, and write the result, or add to it. `count` is a constant. */
static inline __attribute__((always_inline)) void NAME(multiply_tile)(
    const int count, int64_t depth, const REAL *first, int64_t first_stride, const REAL *panel, REAL *out,
    int64_t out_stride, int add) {
    NAME(vector) sums[TILE_ROWS][PANEL_VECTORS];
    const NAME(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = zero;
    for (int64_t k = 0; k < depth; k++, panel += NAME(COLUMNS)) {
        const NAME(stored) *row = (const NAME(stored) *)panel;
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * first_stride + k] - zero; /* in all lanes */
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        NAME(stored) *row = (NAME(stored) *)(out + i * out_stride);
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) {
            if (add) sums[i][v] += row[v];
            row[v] = sums[i][v];
        }
    }
}

/* Multiply some rows by a matrix in panels. */
static void NAME(multiply_panels)(const struct product *x, int64_t rows, const REAL *first, const REAL *panels,
                                     int64_t most, REAL *out) {
    const int64_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t k = 0, depth; k < x->inner; k += depth) {
        depth = next_depth(x->inner - k, most);
        for (int64_t j = 0; j < x->columns; j += NAME(COLUMNS)) {
            const REAL *panel = panels + j * x->inner + k * NAME(COLUMNS);
            for (int64_t tile = 0; tile < tiles; tile++) { /* as even as they can be */
                const int64_t begin = tile * rows / tiles;
                const REAL *a = first + begin * x->first_stride + k;
                REAL *c = out + begin * x->out_stride + j;
#define TILE(count) NAME(multiply_tile)(count, depth, a, x->first_stride, panel, c, x->out_stride, k > 0)
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
void NAME(multiply_packed)(const struct product *x, const REAL *first, const REAL *second, int64_t most,
                              REAL *panels, REAL *out) {
    NAME(pack)(x, second, panels);
    NAME(multiply_panels)(x, x->rows, first, panels, most, out);
}
