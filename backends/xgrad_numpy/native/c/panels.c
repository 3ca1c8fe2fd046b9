/* Matrix products with the bits of OpenBLAS, and fewer instructions between its multiplications.
 *
 * The second matrix is copied to panels of columns. A tile of the result, some rows of a panel's columns, stays in
 * registers. Each number of the result is the sum that OpenBLAS computes: of fused multiplications and additions in
 * order, of up to `most` at a time, or two such sums, see pairs.h. Whether that is so is tried out for each product:
 * see ways.py.
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
    struct run run = {0};
    for (const int64_t end = row + rows; row < end;) {
        const int64_t count = next_tile(x, &run, row, end);
        const REAL *numbers = first;
        if (count == TILE_ROWS)
            for (int64_t k = 0; k < depth; k++, numbers += x->first_stride, block += TILE_ROWS)
                memcpy(block, numbers, sizeof(REAL) * TILE_ROWS);
        else
            for (int64_t k = 0; k < depth; k++, numbers += x->first_stride, block += count)
                for (int64_t i = 0; i < count; i++) block[i] = numbers[i];
        row += count, first += count;
    }
}

/* A part of all sums of a product: those of a block of columns, over some of the numbers that they are of. */
struct NAME(part) {
    const struct product *product;
    const REAL *first, *second;
    REAL *out;
    int64_t column, columns, depth;
    int64_t length, block; /* of rows that are divided into blocks of rows, which threads share out */
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

/* Multiply some blocks of rows. Each thread copies all panels for itself, before its first rows. */
static void NAME(multiply_some_rows)(void *argument, int64_t begin, int64_t end) {
    const struct NAME(part) *p = argument;
    const int64_t panels = divided(p->columns, NAME(COLUMNS)), blocks = divided(p->length, p->block);
    struct copies *copies =
        copies_of_thread(sizeof(REAL) * (size_t)(p->depth * (panels * NAME(COLUMNS) + NAME(BLOCK_ROWS))));
    clear_exceptions();
    for (int64_t i = begin; i < end; i++) {
        const int64_t last = (i / blocks + 1) * p->length, row = i / blocks * p->length + i % blocks * p->block;
        const int64_t rows = last - row < p->block ? last - row : p->block;
        if (!copies) {
            NAME(multiply_slowly)(p, row, row + rows, 0, p->columns);
            continue;
        }
        REAL *copied = copies->memory, *block = copied + p->depth * panels * NAME(COLUMNS);
        if (copies->number != p->number) NAME(pack_panels)(p, 0, panels, copied);
        copies->number = p->number;
        NAME(multiply_copied)(p, row, rows, 0, panels, copied, block);
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
    const int64_t unit = x->row_ranges ? GROUP : TILE_ROWS, eighth = divided(x->rows / 8, unit) * unit;
    const int wide = !x->first_transposed && x->columns >= 2 * x->rows;
    struct NAME(part) p = {.product = x, .length = equal_parts(x)};
    p.block = eighth < unit ? unit : eighth < NAME(BLOCK_ROWS) ? eighth : NAME(BLOCK_ROWS);
    for (int64_t j = 0; j < x->columns; j += p.columns) {
        p.columns = wide || x->columns - j < NAME(BLOCK_COLUMNS) ? x->columns - j : NAME(BLOCK_COLUMNS);
        for (int64_t k = 0; k < x->inner; k += p.depth) {
            p.depth = next_depth(x, x->inner - k);
            p.first = first + k * (x->first_transposed ? x->first_stride : 1);
            p.second = second + (x->second_transposed ? j * x->second_stride + k : k * x->second_stride + j);
            p.out = out + j, p.column = j;
            p.number = atomic_fetch_add(&parts, 1) + 1;
            p.add = k > 0;
            if (wide) parallel(NAME(multiply_some_panels), &p, divided(p.columns, NAME(COLUMNS)), 2);
            else parallel(NAME(multiply_some_rows), &p, x->rows / p.length * divided(p.length, p.block), 1);
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
