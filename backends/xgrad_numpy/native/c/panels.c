/* Matrix products with the bits of OpenBLAS, and fewer instructions between its multiplications.
 *
 * The second matrix is copied to panels of columns. A tile of the result, some rows of a panel's columns, stays in
 * registers. Each number of the result is the sum that OpenBLAS computes: of fused multiplications and additions in
 * order, of up to `most` at a time, or two such sums, see pairs.h. Whether that is so is tried out for each product:
 * see products.py.
 */

#if defined(WITHOUT_PANELS)
int64_t NAME(panel_columns)(void) { return 0; }
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    (void)x, (void)second, (void)panels;
}
static void NAME(multiply_panels)(const struct product *x, int64_t row, int64_t rows, const REAL *first,
                                  const REAL *panels, REAL *out) {
    (void)x, (void)row, (void)rows, (void)first, (void)panels, (void)out;
}
static void NAME(multiply_in_place)(const struct product *x, int64_t column, const REAL *first, const REAL *second,
                                    REAL *out) {
    (void)x, (void)column, (void)first, (void)second, (void)out;
}
void NAME(multiply_in_panels)(const struct product *x, const REAL *first, const REAL *second, REAL *out) {
    (void)x, (void)first, (void)second, (void)out;
}
#else
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
/* A vector anywhere in memory. */
typedef REAL NAME(stored) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum {
    NAME(LANES) = VECTOR_BYTES / sizeof(REAL),
    NAME(COLUMNS) = PANEL_VECTORS * NAME(LANES),
    NAME(BLOCK_COLUMNS) = 8 * NAME(COLUMNS), /* whose panels fit in the second cache */
    NAME(BLOCK_ROWS) = 8 * TILE_ROWS,
    NAME(AHEAD) = 8, /* rows of a panel between what is read and what is fetched to the first cache */
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
    for (int64_t k = 0; k < depth; k++, panel += by.next, first += by.right) {
        const NAME(stored) *row = (const NAME(stored) *)panel;
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECTORS; v++) __builtin_prefetch(panel + NAME(AHEAD) * by.next + v * NAME(LANES));
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
static inline __attribute__((always_inline)) void NAME(read_row)(const REAL *panel, int64_t next,
                                                                 NAME(vector) row[PANEL_VECTORS]) {
    __builtin_prefetch(panel + NAME(AHEAD) * next);
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
        NAME(read_row)(panel, by.next, row);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            const NAME(vector) number = first[i * by.down] - zero;
#pragma GCC unroll 8
            for (int v = 0; v < PANEL_VECTORS; v++) sums[i][v] = NAME(FUSED)(number, row[v], sums[i][v]);
        }
        if (k >= depth / 8 * 8) continue;
        k++, panel += by.next, first += by.right;
        NAME(read_row)(panel, by.next, row);
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

/* Multiply rows from `row` on by a panel from `column` on. Their numbers are `step` apart, or, if that is 0, were copied
 * by `pack_rows`. */
static void NAME(multiply_rows)(const struct product *x, int64_t row, int64_t rows, int64_t column, int64_t depth,
                                const REAL *first, int64_t step, const REAL *panel, REAL *out,
                                struct NAME(strides) by, int64_t width, int add) {
    struct row_part part = {0};
    uint32_t paired_of[KINDS] = {0};
    for (const int64_t end = row + rows; row < end;) {
        const int is_next = row >= part.end;
        const struct tile tile = next_tile(x, &part, row, end);
        if (is_next && x->row_ranges) NAME(note_pairs)(x, column, part.owner, paired_of);
        if (!step) by.right = tile.rows;
        const uint32_t paired = paired_of[tile.kind];
#define TILE(count) NAME(multiply_tile)(count, depth, first, panel, out, by, width, add)
#if defined(WITH_PAIRS)
        if (paired) NAME(multiply_tile_in_pairs)(tile.rows, paired, depth, first, panel, out, by, width, add);
        else
#endif
            switch (tile.rows) {
                case 1: TILE(1); break;
                case 2: TILE(2); break;
                case 3: TILE(3); break;
                case 4: TILE(4); break;
                case 5: TILE(5); break;
                default: TILE(6);
            }
#undef TILE
        row += tile.rows;
        first += tile.rows * (step ? step : depth);
        out += tile.rows * by.out;
    }
}

#if defined(WITH_SHUFFLES)
/* Transpose a square of vectors: each round puts the halves of the rows between each other. */
static inline void NAME(transpose)(NAME(vector) * rows) {
    NAME(vector) next[NAME(LANES)];
    for (int size = 1; size < NAME(LANES); size *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < NAME(LANES) / 2; i++) {
            next[2 * i] = __builtin_shufflevector(rows[i], rows[i + NAME(LANES) / 2], NAME(LOW));
            next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + NAME(LANES) / 2], NAME(HIGH));
        }
        memcpy(rows, next, sizeof next);
    }
}
#endif

/* Copy columns of a transposed matrix, of which those of a panel are rows in memory. */
static void NAME(pack_transposed)(const REAL *second, int64_t stride, int64_t depth, REAL *panel) {
    int64_t done = 0;
#if defined(WITH_SHUFFLES)
    for (; done + NAME(LANES) <= depth; done += NAME(LANES))
        for (int v = 0; v < NAME(COLUMNS); v += NAME(LANES)) {
            NAME(vector) rows[NAME(LANES)];
            for (int i = 0; i < NAME(LANES); i++) rows[i] = *(const NAME(stored) *)(second + (v + i) * stride + done);
            NAME(transpose)(rows);
            for (int i = 0; i < NAME(LANES); i++)
                *(NAME(stored) *)(panel + (done + i) * NAME(COLUMNS) + v) = rows[i];
        }
#endif
    for (; done < depth; done++)
        for (int j = 0; j < NAME(COLUMNS); j++) panel[done * NAME(COLUMNS) + j] = second[j * stride + done];
}

/* Copy some columns to a panel. Those that it has more of are the last one, which raises no other exceptions. */
static void NAME(pack_panel)(const struct product *x, const REAL *second, int64_t depth, int64_t width, REAL *panel) {
    const int64_t stride = x->second_stride;
    if (width < NAME(COLUMNS)) {
        const int64_t down = x->second_transposed ? 1 : stride, right = x->second_transposed ? stride : 1;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < NAME(COLUMNS); j++)
                panel[k * NAME(COLUMNS) + j] = second[k * down + (j < width ? j : width - 1) * right];
    } else if (x->second_transposed) NAME(pack_transposed)(second, stride, depth, panel);
    else
        for (int64_t k = 0; k < depth; k++)
            memcpy(panel + k * NAME(COLUMNS), second + k * stride, sizeof(REAL) * NAME(COLUMNS));
}

/* Return the number of columns of the panel that begins at a column. */
static inline int64_t NAME(width)(const struct product *x, int64_t column) {
    return x->columns - column < NAME(COLUMNS) ? x->columns - column : NAME(COLUMNS);
}

/* Multiply some rows, the first of which is `row`, by a matrix in panels, of all that is summed over. */
static void NAME(multiply_panels)(const struct product *x, int64_t row, int64_t rows, const REAL *first,
                                  const REAL *panels, REAL *out) {
    const struct NAME(strides) by = {1, x->first_stride, NAME(COLUMNS), x->out_stride};
    for (int64_t k = 0, depth; k < x->inner; k += depth) {
        depth = next_depth(x, x->inner - k);
        for (int64_t j = 0; j < x->columns; j += NAME(COLUMNS))
            NAME(multiply_rows)(x, row, rows, j, depth, first + k, x->first_stride,
                                panels + j * x->inner + k * NAME(COLUMNS), out + j, by, NAME(width)(x, j), k > 0);
    }
}

/* Multiply by a matrix, whose first column is `column`, without copies of its panels. Its rows are adjacent in memory,
 * and its columns are whole panels. Where the first matrix has few rows, to copy panels would take as long as to multiply
 * by them. */
static void NAME(multiply_in_place)(const struct product *x, int64_t column, const REAL *first, const REAL *second,
                                    REAL *out) {
    const int64_t down = x->first_transposed ? 1 : x->first_stride, right = x->first_transposed ? x->first_stride : 1;
    const struct NAME(strides) by = {right, down, x->second_stride, x->out_stride};
    for (int64_t k = 0, depth; k < x->inner; k += depth) {
        depth = next_depth(x, x->inner - k);
        for (int64_t j = 0; j < x->columns; j += NAME(COLUMNS))
            NAME(multiply_rows)(x, 0, x->rows, column + j, depth, first + k * right, down,
                                second + k * x->second_stride + j, out + j, by, NAME(COLUMNS), k > 0);
    }
}

/* Write a matrix as panels, all of which have the same size. */
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    const int64_t step = x->second_transposed ? x->second_stride : 1;
    for (int64_t j = 0; j < x->columns; j += NAME(COLUMNS))
        NAME(pack_panel)(x, second + j * step, x->inner, NAME(width)(x, j), panels + j * x->inner);
}

/* Copy rows of a transposed matrix, each number of a tile next to those of its other rows. */
static void NAME(pack_rows)(const struct product *x, int64_t row, int64_t rows, int64_t depth, const REAL *first,
                            REAL *block) {
    struct row_part part = {0};
    for (const int64_t end = row + rows; row < end;) {
        const struct tile tile = next_tile(x, &part, row, end);
        const REAL *numbers = first;
        if (tile.rows == TILE_ROWS)
            for (int64_t k = 0; k < depth; k++, numbers += x->first_stride, block += TILE_ROWS)
                memcpy(block, numbers, sizeof(REAL) * TILE_ROWS);
        else
            for (int64_t k = 0; k < depth; k++, numbers += x->first_stride, block += tile.rows)
                for (int64_t i = 0; i < tile.rows; i++) block[i] = numbers[i];
        row += tile.rows, first += tile.rows;
    }
}

/* A part of all sums of a product: those of a block of columns, over some of the numbers that they are of. */
struct NAME(part) {
    const struct product *product;
    const REAL *first, *second;
    REAL *out;
    int64_t column, columns, depth;
    uint64_t number; /* by which a thread knows what it has copied */
    int add;         /* to sums of another part */
};

/* Multiply a row by a column as panels do. */
static REAL NAME(sum)(int64_t depth, int paired, const REAL *a, int64_t right, const REAL *b, int64_t next) {
    const int64_t pairs = paired ? depth / 8 * 8 : 0;
    REAL sum = 0, odd = 0;
    for (int64_t k = 0; k < depth; k++, a += right, b += next) {
        if (k < pairs && k % 2) odd = NAME(FUSED_ONE)(*a, *b, odd);
        else sum = NAME(FUSED_ONE)(*a, *b, sum);
    }
    return paired ? sum + odd : sum;
}

/* Multiply some rows by some columns without memory for copies. */
static void NAME(multiply_slowly)(const struct NAME(part) *p, int64_t row, int64_t last_row, int64_t column,
                                  int64_t last_column) {
    const struct product *x = p->product;
    const int64_t down = x->first_transposed ? 1 : x->first_stride, right = x->first_transposed ? x->first_stride : 1;
    const int64_t step = x->second_transposed ? x->second_stride : 1, next = x->second_transposed ? 1 : x->second_stride;
    for (int64_t i = row; i < last_row; i++)
        for (int64_t j = column; j < last_column; j++) {
            REAL *c = p->out + i * x->out_stride + j;
            const int paired = is_paired(x, i, p->column + j);
            const REAL sum = NAME(sum)(p->depth, paired, p->first + i * down, right, p->second + j * step, next);
            *c = sum + (p->add ? *c : 0);
        }
}

/* Copy some panels of a part, one after the other. */
static void NAME(pack_panels)(const struct NAME(part) *p, int64_t begin, int64_t end, REAL *panels) {
    const int64_t width = NAME(COLUMNS), step = p->product->second_transposed ? p->product->second_stride : 1;
    for (int64_t j = begin; j < end; j++, panels += width * p->depth) {
        const int64_t left = p->columns - j * width;
        NAME(pack_panel)(p->product, p->second + j * width * step, p->depth, left < width ? left : width, panels);
    }
}

/* Multiply some rows by some panels, which were copied. */
static void NAME(multiply_copied)(const struct NAME(part) *p, int64_t row, int64_t rows, int64_t begin, int64_t end,
                                  const REAL *panels, REAL *block) {
    const struct product *x = p->product;
    const int64_t width = NAME(COLUMNS);
    const REAL *first = p->first + row * (x->first_transposed ? 1 : x->first_stride);
    struct NAME(strides) by = {1, x->first_stride, width, x->out_stride};
    if (x->first_transposed) {
        NAME(pack_rows)(x, row, rows, p->depth, first, block);
        first = block, by.down = 1;
    }
    for (int64_t j = begin; j < end; j++, panels += width * p->depth) {
        const int64_t left = p->columns - j * width;
        NAME(multiply_rows)(x, row, rows, p->column + j * width, p->depth, first,
                            x->first_transposed ? 0 : x->first_stride, panels,
                            p->out + row * x->out_stride + j * width, by, left < width ? left : width, p->add);
    }
}

/* Multiply some rows. Each thread copies all panels for itself, before its first rows. */
static void NAME(multiply_some_rows)(void *argument, int64_t begin, int64_t end) {
    const struct NAME(part) *p = argument;
    const int64_t panels = (p->columns + NAME(COLUMNS) - 1) / NAME(COLUMNS);
    struct copies *copies =
        copies_of_thread(sizeof(REAL) * (size_t)(p->depth * (panels * NAME(COLUMNS) + NAME(BLOCK_ROWS))));
    clear_exceptions();
    if (!copies) NAME(multiply_slowly)(p, begin, end, 0, p->columns);
    else {
        REAL *copied = copies->memory, *block = copied + p->depth * panels * NAME(COLUMNS);
        if (copies->number != p->number) NAME(pack_panels)(p, 0, panels, copied);
        copies->number = p->number;
        for (int64_t i = begin; i < end; i += NAME(BLOCK_ROWS))
            NAME(multiply_copied)(p, i, end - i < NAME(BLOCK_ROWS) ? end - i : NAME(BLOCK_ROWS), 0, panels, copied,
                                  block);
    }
    note_exceptions(p->product);
}

/* Multiply all rows by some panels, a block of them at a time, of a first matrix that is not transposed. */
static void NAME(multiply_some_panels)(void *argument, int64_t begin, int64_t end) {
    const struct NAME(part) *p = argument;
    const int64_t most = NAME(BLOCK_COLUMNS) / NAME(COLUMNS), rows = p->product->rows;
    clear_exceptions();
    for (int64_t j = begin, last; j < end; j = last) {
        last = end - j < most ? end : j + most;
        struct copies *copies = copies_of_thread(sizeof(REAL) * (size_t)(p->depth * (last - j) * NAME(COLUMNS)));
        if (!copies) {
            const int64_t columns = last * NAME(COLUMNS);
            NAME(multiply_slowly)(p, 0, rows, j * NAME(COLUMNS), columns < p->columns ? columns : p->columns);
            continue;
        }
        NAME(pack_panels)(p, j, last, copies->memory);
        copies->number = 0;
        for (int64_t i = 0; i < rows; i += NAME(BLOCK_ROWS))
            NAME(multiply_copied)(p, i, rows - i < NAME(BLOCK_ROWS) ? rows - i : NAME(BLOCK_ROWS), j, last,
                                  copies->memory, NULL);
    }
    note_exceptions(p->product);
}

/* Threads share out the rows, or the panels if there are many more columns, of which each then copies some alone. */
void NAME(multiply_in_panels)(const struct product *x, const REAL *first, const REAL *second, REAL *out) {
    const int64_t eighth = (x->rows / 8 + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    const int64_t rows = eighth < TILE_ROWS ? TILE_ROWS : eighth < NAME(BLOCK_ROWS) ? eighth : NAME(BLOCK_ROWS);
    const int wide = !x->first_transposed && x->columns >= 2 * x->rows;
    struct NAME(part) p = {.product = x};
    for (int64_t j = 0; j < x->columns; j += p.columns) {
        p.columns = wide || x->columns - j < NAME(BLOCK_COLUMNS) ? x->columns - j : NAME(BLOCK_COLUMNS);
        for (int64_t k = 0; k < x->inner; k += p.depth) {
            p.depth = next_depth(x, x->inner - k);
            p.first = first + k * (x->first_transposed ? x->first_stride : 1);
            p.second = second + (x->second_transposed ? j * x->second_stride + k : k * x->second_stride + j);
            p.out = out + j, p.column = j;
            p.number = atomic_fetch_add(&parts, 1) + 1;
            p.add = k > 0;
            if (wide) parallel(NAME(multiply_some_panels), &p, (p.columns + NAME(COLUMNS) - 1) / NAME(COLUMNS), 2);
            else parallel(NAME(multiply_some_rows), &p, x->rows, rows);
        }
    }
}
#endif

/* Compute some rows of a product, of a first matrix that is not transposed, with memory for the panels. */
void NAME(multiply_packed)(const struct product *x, int64_t row, int64_t rows, const REAL *first, const REAL *second,
                           REAL *panels, REAL *out) {
    NAME(pack)(x, second, panels);
    NAME(multiply_panels)(x, row, rows, first, panels, out);
}
