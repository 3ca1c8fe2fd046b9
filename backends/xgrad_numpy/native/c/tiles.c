/* Tiles of a product in panels: some rows of a panel's columns, whose sums stay in registers.
 *
 * Each number of a tile is one sum of fused multiplications and additions in order, or two sums,
 * see pairs.h.
 */

#if !defined(WITHOUT_PANELS)
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* A vector at any address. */
typedef REAL NAME(stored)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum {
    NAME(LANES) = VECTOR_BYTES / sizeof(REAL),
    NAME(COLUMNS) = PANEL_VECTORS * NAME(LANES),
    NAME(HAS_PAIRS) = sizeof(REAL) == sizeof(float), /* numbers with two sums are floats */
    NAME(BLOCK_ROWS) = 8 * TILE_ROWS,
    /* Whether a panel is prefetched. A copied panel with one cache line for each row stays in the
     * first cache from tile to tile, and so do most panels that are read in place. */
    NAME(FETCHED) = PANEL_VECTORS * VECTOR_BYTES > LINE_BYTES,
    NAME(AHEAD) = 8, /* rows of a panel between reading and prefetching */
};

int64_t NAME(panel_lanes)(void) { return NAME(LANES); }

/* Return the number of vectors of a panel with some columns. */
static inline int64_t NAME(vectors)(int64_t width) {
    return (width + NAME(LANES) - 1) / NAME(LANES);
}

/* Strides of the numbers of some rows: from one number of a row to the next, from row to row, and
 * from row to row of the result. A panel's rows are `next` apart. */
struct NAME(strides) {
    int64_t right, down, next, out;
};

/* Write the sums of a tile, plus the addend that `to` names. `count` and `vectors` are
 * constants. */
static inline __attribute__((always_inline)) void
NAME(write_tile)(const int count, const int vectors, NAME(vector) sums[][PANEL_VECTORS], REAL *out,
                 int64_t stride, int64_t width, enum addend to) {
    const REAL none = to == NOTHING ? (REAL)-0.0 : 0;
    if (width == vectors * NAME(LANES)) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            NAME(stored) *row = (NAME(stored) *)(out + i * stride);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                if (to == SUMS) sums[i][v] += row[v];
                else sums[i][v] += none;
                row[v] = sums[i][v];
            }
        }
        return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        REAL part[NAME(COLUMNS)], *row = out + i * stride;
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) *(NAME(stored) *)(part + v * NAME(LANES)) = sums[i][v];
        for (int64_t j = 0; j < width; j++) row[j] = part[j] + (to == SUMS ? row[j] : none);
    }
}

/* Multiply some rows by a panel of some vectors, with one sum for each number. */
static inline __attribute__((always_inline)) void
NAME(multiply_tile)(const int count, const int vectors, int64_t depth, const REAL *first,
                    const REAL *panel, REAL *out, struct NAME(strides) by, int64_t width,
                    enum addend to) {
    NAME(vector) sums[TILE_ROWS][PANEL_VECTORS];
    const NAME(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[i][v] = zero;
    /* rows that are written at the end */
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) __builtin_prefetch(out + i * by.out, 1);
    for (int64_t k = 0; k < depth; k++, panel += by.next, first += by.right) {
        const NAME(stored) *row = (const NAME(stored) *)panel;
#pragma GCC unroll 8
        for (int v = 0; NAME(FETCHED) && v < vectors; v += LINE_BYTES / VECTOR_BYTES)
            __builtin_prefetch(panel + NAME(AHEAD) * by.next + v * NAME(LANES));
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero; /* in all lanes */
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
    }
    NAME(write_tile)(count, vectors, sums, out, by.out, width, to);
}

#if defined(WITH_PAIRS)
/* Read a row of a panel into registers; compilers would otherwise read it again for each number. */
static inline __attribute__((always_inline)) void
NAME(read_row)(const int vectors, const REAL *panel, NAME(vector) row[PANEL_VECTORS]) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
        row[v] = ((const NAME(stored) *)panel)[v];
        __asm__("" : "+x"(row[v]));
    }
}

/* Multiply some rows by a panel of some vectors, with two sums for each number of the vectors in
 * `paired`, a constant. The products after the last eight are added to the even ones. */
static inline __attribute__((always_inline)) void
NAME(multiply_pairs)(const int count, const int vectors, const uint32_t paired, int64_t depth,
                     const REAL *first, const REAL *panel, REAL *out, struct NAME(strides) by,
                     int64_t width, enum addend to) {
    NAME(vector) sums[TILE_ROWS][PANEL_VECTORS], odd[TILE_ROWS][PANEL_VECTORS];
    const NAME(vector) zero = {0};
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[i][v] = odd[i][v] = zero;
    for (int64_t k = 0; k < depth; k++, panel += by.next, first += by.right) {
        NAME(vector) row[PANEL_VECTORS];
        NAME(read_row)(vectors, panel, row);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero;
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
        if (k >= depth / 8 * 8) continue;
        k++, panel += by.next, first += by.right;
        NAME(read_row)(vectors, panel, row);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero;
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                if (paired >> v & 1) odd[i][v] = NAME(FUSED)(number, row[v], odd[i][v]);
                else sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            if (paired >> v & 1) sums[i][v] += odd[i][v];
    NAME(write_tile)(count, vectors, sums, out, by.out, width, to);
}

/* Multiply the rows of a tile by a panel whose vectors in `paired` have two sums for each number.
 * The sums of 3 rows fill the registers. */
static void NAME(multiply_tile_in_pairs)(int64_t rows, uint32_t paired, int64_t depth,
                                         const REAL *first, const REAL *panel, REAL *out,
                                         struct NAME(strides) by, int64_t width, enum addend to) {
    const int is_single = NAME(vectors)(width) == 1;
    for (int64_t i = 0, count; i < rows; i += count) {
        count = rows - i == 4 ? 2 : rows - i < 3 ? rows - i : 3;
#define TILE(count, vectors, paired)                                                               \
    NAME(multiply_pairs)(count, vectors, paired, depth, first + i * by.down, panel,                \
                         out + i * by.out, by, width, to)
        switch (4 * count + (is_single ? 0 : paired)) {
            case 4 * 1: TILE(1, 1, 1); break;
            case 4 * 1 + 1: TILE(1, 2, 1); break;
            case 4 * 1 + 2: TILE(1, 2, 2); break;
            case 4 * 1 + 3: TILE(1, 2, 3); break;
            case 4 * 2: TILE(2, 1, 1); break;
            case 4 * 2 + 1: TILE(2, 2, 1); break;
            case 4 * 2 + 2: TILE(2, 2, 2); break;
            case 4 * 2 + 3: TILE(2, 2, 3); break;
            case 4 * 3: TILE(3, 1, 1); break;
            case 4 * 3 + 1: TILE(3, 2, 1); break;
            case 4 * 3 + 2: TILE(3, 2, 2); break;
            default: TILE(3, 2, 3);
        }
#undef TILE
    }
}
#endif

/* Note in which vectors of the panel at a column rows have two sums: a bit for each, by kind of
 * row. */
static void NAME(note_pairs)(const struct product *x, int64_t column, int64_t vectors,
                             int64_t owner, uint32_t paired[KINDS]) {
    for (int kind = 0; kind < KINDS; kind++) paired[kind] = 0;
    for (int v = 0; v < vectors; v++) {
        const uint32_t kinds = paired_kinds(x, column + v * NAME(LANES), owner);
        for (int kind = 0; kind < KINDS; kind++) paired[kind] |= (kinds >> kind & 1) << v;
    }
}

/* Multiply the rows of a tile by a panel of some `vectors`, a constant. */
static inline __attribute__((always_inline)) void NAME(multiply_rows)(
    const int vectors, int64_t rows, int64_t depth, const REAL *first, const REAL *panel, REAL *out,
    struct NAME(strides) by, int64_t width, enum addend to) {
#define TILE(i, count)                                                                             \
    NAME(multiply_tile)(count, vectors, depth, first + (i) * by.down, panel, out + (i) * by.out,   \
                        by, width, to)
    if (vectors < PANEL_VECTORS && rows < TILE_ROWS) { /* two by two, which is less code */
        for (int64_t i = 1; i < rows; i += 2) TILE(i - 1, 2);
        if (rows % 2) TILE(rows - 1, 1);
        return;
    }
    switch (rows) {
        case 1: TILE(0, 1); break;
        case 2: TILE(0, 2); break;
        case 3: TILE(0, 3); break;
        case 4: TILE(0, 4); break;
        case 5: TILE(0, 5); break;
        default: TILE(0, TILE_ROWS);
    }
#undef TILE
}

#define PANEL_PARAMETERS                                                                           \
    const struct product *x, const struct tile *tile, int64_t count, int64_t column,               \
        int64_t depth, const REAL *first, int64_t step, const REAL *panel, REAL *out,              \
        struct NAME(strides) by, int64_t width, enum addend to

/* Multiply the rows of some tiles by a panel of some `vectors`, a constant, from `column` on. Their
 * numbers are `step` apart; if that is 0, `pack_rows` has copied them. */
static inline __attribute__((always_inline)) void NAME(multiply_tiles_by)(const int vectors,
                                                                          PANEL_PARAMETERS) {
    int64_t owner = -1;
    uint32_t paired_of[KINDS] = {0};
    for (const struct tile *end = tile + count; tile < end; tile++) {
        if (tile->owner != owner)
            NAME(note_pairs)(x, column, vectors, owner = tile->owner, paired_of);
        if (!step) by.right = tile->rows;
#if defined(WITH_PAIRS)
        const uint32_t paired = paired_of[tile->kind];
        if (NAME(HAS_PAIRS) && paired)
            NAME(multiply_tile_in_pairs)(tile->rows, paired, depth, first, panel, out, by, width,
                                         to);
        else
#endif
            NAME(multiply_rows)(vectors, tile->rows, depth, first, panel, out, by, width, to);
        first += tile->rows * (step ? step : depth);
        out += tile->rows * by.out;
    }
}

/* Each number of vectors has its own function, in which compilers allocate registers as needed. */
#define TILES_BY(vectors)                                                                          \
    static __attribute__((noinline)) void NAME(multiply_tiles_by_##vectors)(PANEL_PARAMETERS) {    \
        NAME(multiply_tiles_by)(vectors, x, tile, count, column, depth, first, step, panel, out,   \
                                by, width, to);                                                    \
    }
TILES_BY(1)
TILES_BY(2)
#if PANEL_VECTORS > 2
TILES_BY(3)
TILES_BY(4)
#endif

/* Multiply the rows of some tiles by a panel: see `multiply_tiles_by`. */
static void NAME(multiply_tiles)(PANEL_PARAMETERS) {
#define TILES(vectors)                                                                             \
    NAME(multiply_tiles_by_##vectors)(x, tile, count, column, depth, first, step, panel, out, by,  \
                                      width, to)
    switch (NAME(vectors)(width)) {
        case 1: TILES(1); break;
#if PANEL_VECTORS > 2
        case 2: TILES(2); break;
        case 3: TILES(3); break;
        default: TILES(4);
#else
        default: TILES(2);
#endif
    }
#undef TILES
}
#undef TILES_BY
#undef PANEL_PARAMETERS
#endif
