/* Tiles of a product in panels: some rows of a panel's columns, whose sums stay in registers.
 *
 * Each number of a tile is one sum of fused multiplications and additions in order, or two, see pairs.h.
 */

#if !defined(WITHOUT_PANELS)
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* A vector anywhere in memory. */
typedef REAL NAME(stored) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum {
    NAME(LANES) = VECTOR_BYTES / sizeof(REAL),
    NAME(COLUMNS) = PANEL_VECTORS * NAME(LANES),
    NAME(HAS_PAIRS) = sizeof(REAL) == sizeof(float), /* numbers with two sums are floats */
    NAME(BLOCK_ROWS) = 8 * TILE_ROWS,
    /* Whether a panel is prefetched. A copied one of a line of the cache for each row stays in the first cache from tile
     * to tile, and few of those that are read in place do not. */
    NAME(FETCHED) = PANEL_VECTORS * VECTOR_BYTES > LINE_BYTES,
    NAME(AHEAD) = 8, /* rows of a panel between what is read and what is prefetched */
};

int64_t NAME(panel_columns)(void) { return NAME(COLUMNS); }

/* Where the numbers of some rows lie: from one of a row to the next, from row to row, and from row to row of the result.
 * A panel's rows are `next` apart. */
struct NAME(strides) {
    int64_t right, down, next, out;
};

/* Write the sums of a tile, or add them to the result. `count` is a constant. */
static inline __attribute__((always_inline)) void NAME(write_tile)(const int count,
                                                                   NAME(vector) sums[][PANEL_VECTORS], REAL *out,
                                                                   int64_t stride, int64_t width, int add) {
    const NAME(vector) zero = {0};
    if (width == NAME(COLUMNS)) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            NAME(stored) *row = (NAME(stored) *)(out + i * stride);
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) {
                if (add) sums[i][v] += row[v];
                else sums[i][v] += zero;
                row[v] = sums[i][v];
            }
        }
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        REAL part[NAME(COLUMNS)], *row = out + i * stride;
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) *(NAME(stored) *)(part + v * NAME(LANES)) = sums[i][v];
        for (int64_t j = 0; j < width; j++) row[j] = part[j] + (add ? row[j] : 0);
    }
}

/* Multiply some rows by a panel: one sum for each number. */
static inline __attribute__((always_inline)) void NAME(multiply_tile)(
    const int count, int64_t depth, const REAL *first, const REAL *panel, REAL *out,
    struct NAME(strides) by, int64_t width, int add) {
    NAME(vector) sums[TILE_ROWS][PANEL_VECTORS];
    const NAME(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = zero;
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) __builtin_prefetch(out + i * by.out, 1); /* rows that are written at the end */
    for (int64_t k = 0; k < depth; k++, panel += by.next, first += by.right) {
        const NAME(stored) *row = (const NAME(stored) *)panel;
#pragma GCC unroll 8
        for (int v = 0; NAME(FETCHED) && v < PANEL_VECTORS; v += LINE_BYTES / VECTOR_BYTES)
            __builtin_prefetch(panel + NAME(AHEAD) * by.next + v * NAME(LANES));
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero; /* in all lanes */
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
    }
    NAME(write_tile)(count, sums, out, by.out, width, add);
}

#if defined(WITH_PAIRS)
/* Read a row of a panel into registers, from which compilers would else read it again for each number. */
static inline __attribute__((always_inline)) void NAME(read_row)(const REAL *panel, NAME(vector) row[PANEL_VECTORS]) {
#pragma GCC unroll 8
    for (int v = 0; v < PANEL_VECTORS; v++) {
        row[v] = ((const NAME(stored) *)panel)[v];
        __asm__("" : "+x"(row[v]));
    }
}

/* Multiply some rows by a panel: two sums for each number of the vectors in `paired`, a constant. What is left of eights
 * adds to the even ones. */
static inline __attribute__((always_inline)) void NAME(multiply_pairs)(
    const int count, const uint32_t paired, int64_t depth, const REAL *first, const REAL *panel, REAL *out,
    struct NAME(strides) by, int64_t width, int add) {
    NAME(vector) sums[TILE_ROWS][PANEL_VECTORS], odd[TILE_ROWS][PANEL_VECTORS];
    const NAME(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = odd[i][v] = zero;
    for (int64_t k = 0; k < depth; k++, panel += by.next, first += by.right) {
        NAME(vector) row[PANEL_VECTORS];
        NAME(read_row)(panel, row);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero;
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
        if (k >= depth / 8 * 8) continue;
        k++, panel += by.next, first += by.right;
        NAME(read_row)(panel, row);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero;
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++)
                if (paired >> v & 1) odd[i][v] = NAME(FUSED)(number, row[v], odd[i][v]);
                else sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++)
            if (paired >> v & 1) sums[i][v] += odd[i][v];
    NAME(write_tile)(count, sums, out, by.out, width, add);
}

/* Multiply the rows of a tile by a panel, in the vectors `paired` of which numbers have two sums: those of 3 rows fill
 * the registers. */
static void NAME(multiply_tile_in_pairs)(int64_t rows, uint32_t paired, int64_t depth, const REAL *first,
                                         const REAL *panel, REAL *out, struct NAME(strides) by, int64_t width,
                                         int add) {
    for (int64_t i = 0, count; i < rows; i += count) {
        count = rows - i == 4 ? 2 : rows - i < 3 ? rows - i : 3;
#define TILE(count, paired)                                                                                            \
    NAME(multiply_pairs)(count, paired, depth, first + i * by.down, panel, out + i * by.out, by, width, add)
        switch (4 * count + paired) {
            case 4 * 1 + 1: TILE(1, 1); break;
            case 4 * 1 + 2: TILE(1, 2); break;
            case 4 * 1 + 3: TILE(1, 3); break;
            case 4 * 2 + 1: TILE(2, 1); break;
            case 4 * 2 + 2: TILE(2, 2); break;
            case 4 * 2 + 3: TILE(2, 3); break;
            case 4 * 3 + 1: TILE(3, 1); break;
            case 4 * 3 + 2: TILE(3, 2); break;
            default: TILE(3, 3);
        }
#undef TILE
    }
}
#endif

/* Note in which vectors of a panel at a column rows have two sums: a bit for each, by kinds of rows. */
static void NAME(note_pairs)(const struct product *x, int64_t column, int64_t owner, uint32_t paired[KINDS]) {
    for (int kind = 0; kind < KINDS; kind++) paired[kind] = 0;
    for (int v = 0; v < PANEL_VECTORS; v++) {
        const uint32_t kinds = paired_kinds(x, column + v * NAME(LANES), owner);
        for (int kind = 0; kind < KINDS; kind++) paired[kind] |= (kinds >> kind & 1) << v;
    }
}

/* Multiply the rows of some tiles by a panel from `column` on. Their numbers are `step` apart, or, if that is 0, were
 * copied by `pack_rows`. */
static void NAME(multiply_tiles)(const struct product *x, const struct tile *tile, int64_t count, int64_t column,
                                 int64_t depth, const REAL *first, int64_t step, const REAL *panel, REAL *out,
                                 struct NAME(strides) by, int64_t width, int add) {
    int64_t owner = -1;
    uint32_t paired_of[KINDS] = {0};
    for (const struct tile *end = tile + count; tile < end; tile++) {
        if (tile->owner != owner) NAME(note_pairs)(x, column, owner = tile->owner, paired_of);
        if (!step) by.right = tile->rows;
#define TILE(rows) NAME(multiply_tile)(rows, depth, first, panel, out, by, width, add)
#if defined(WITH_PAIRS)
        const uint32_t paired = paired_of[tile->kind];
        if (NAME(HAS_PAIRS) && paired)
            NAME(multiply_tile_in_pairs)(tile->rows, paired, depth, first, panel, out, by, width, add);
        else
#endif
            switch (tile->rows) {
                case 1: TILE(1); break;
                case 2: TILE(2); break;
                case 3: TILE(3); break;
                case 4: TILE(4); break;
                case 5: TILE(5); break;
                default: TILE(6);
            }
#undef TILE
        first += tile->rows * (step ? step : depth);
        out += tile->rows * by.out;
    }
}
#endif
