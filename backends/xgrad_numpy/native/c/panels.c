/* Matrix products with the bits of OpenBLAS, and fewer instructions between its multiplications.
 *
 * The second matrix is copied to panels of columns. A tile of the result, some rows of a panel's
 * columns, stays in registers. Each number of the result is the sum that OpenBLAS computes: a sum
 * of fused multiplications and additions in order, of up to `most` at a time, or two such sums, see
 * pairs.h. Trials check this for each product: see ways.py.
 */

#if defined(WITHOUT_PANELS)
int64_t NAME(panel_lanes)(void) { return 0; }
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    (void)x, (void)second, (void)panels;
}
static void NAME(multiply_panels)(const struct product *x, int64_t row, int64_t rows,
                                  const REAL *first, const REAL *panels, REAL *out) {
    (void)x, (void)row, (void)rows, (void)first, (void)panels, (void)out;
}
static void NAME(multiply_in_place)(const struct product *x, int64_t column, const REAL *first,
                                    const REAL *second, REAL *out) {
    (void)x, (void)column, (void)first, (void)second, (void)out;
}
void NAME(multiply_in_panels)(const struct product *x, const REAL *first, const REAL *second,
                              REAL *out) {
    (void)x, (void)first, (void)second, (void)out;
}
#else
#if defined(WITH_SHUFFLES)
/* Transpose a square of vectors: each round interleaves the halves of the rows. */
static inline void NAME(transpose)(NAME(vector) * rows) {
    NAME(vector) next[NAME(LANES)];
    for (int size = 1; size < NAME(LANES); size *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < NAME(LANES) / 2; i++) {
            next[2 * i] = __builtin_shufflevector(rows[i], rows[i + NAME(LANES) / 2], NAME(LOW));
            next[2 * i + 1] =
                __builtin_shufflevector(rows[i], rows[i + NAME(LANES) / 2], NAME(HIGH));
        }
        memcpy(rows, next, sizeof next);
    }
}
#endif

/* Copy whole vectors of columns of a transposed matrix, which are rows in memory, to a panel whose
 * rows are `next` apart. For whole panels, `columns` and `next` are constants. */
static inline __attribute__((always_inline)) void
NAME(pack_transposed)(const REAL *second, int64_t stride, int64_t depth, int64_t columns,
                      int64_t next, REAL *panel) {
    int64_t done = 0;
#if defined(WITH_SHUFFLES)
    for (int64_t line = NAME(LANES) * (LINE_BYTES / VECTOR_BYTES); done + line <= depth;
         done += line)
        for (int64_t v = 0; v < columns; v += NAME(LANES))
            for (int64_t k = done; k < done + line; k += NAME(LANES)) {
                NAME(vector) rows[NAME(LANES)];
                for (int i = 0; i < NAME(LANES); i++)
                    rows[i] = *(const NAME(stored) *)(second + (v + i) * stride + k);
                NAME(transpose)(rows);
                for (int i = 0; i < NAME(LANES); i++)
                    *(NAME(stored) *)(panel + (k + i) * next + v) = rows[i];
            }
#endif
    for (; done < depth; done++)
        for (int64_t j = 0; j < columns; j++) panel[done * next + j] = second[j * stride + done];
}

/* Copy some columns to a panel of whole vectors. The rest of the last vector repeats the last
 * column, which raises no other exceptions. */
static void NAME(pack_panel)(const struct product *x, const REAL *second, int64_t depth,
                             int64_t width, REAL *panel) {
    const int64_t stride = x->second_stride, next = NAME(vectors)(width) * NAME(LANES);
    const int64_t whole = x->second_transposed ? width / NAME(LANES) * NAME(LANES) : width;
    if (x->second_transposed && width == NAME(COLUMNS))
        NAME(pack_transposed)(second, stride, depth, NAME(COLUMNS), NAME(COLUMNS), panel);
    else if (x->second_transposed) NAME(pack_transposed)(second, stride, depth, whole, next, panel);
    else
        for (int64_t k = 0; k < depth; k++)
            memcpy(panel + k * next, second + k * stride, sizeof(REAL) * (size_t)width);
    const int64_t down = x->second_transposed ? 1 : stride,
                  right = x->second_transposed ? stride : 1;
    for (int64_t j = whole; j < next; j++) {
        const REAL *column = second + (j < width ? j : width - 1) * right;
        for (int64_t k = 0; k < depth; k++) panel[k * next + j] = column[k * down];
    }
}

/* Return how many of all columns are in the panel that begins at a column. */
static inline int64_t NAME(width)(int64_t columns, int64_t column) {
    return columns - column < NAME(COLUMNS) ? columns - column : NAME(COLUMNS);
}

/* Where a product reads panels: copied panels one after the other, for which `next` is 0, or in the
 * matrix itself, whose rows are `next` apart. `step` is from panel to panel. */
struct NAME(panel_places) {
    const REAL *first;
    int64_t step, next;
};

/* Multiply some rows, the first of which is `row`, by panels from `column` on, over the whole inner
 * dimension. */
static void NAME(multiply_by_panels)(const struct product *x, int64_t row, int64_t rows,
                                     int64_t column, const REAL *first,
                                     struct NAME(panel_places) panels, REAL *out) {
    const int64_t down = x->first_transposed ? 1 : x->first_stride,
                  right = x->first_transposed ? x->first_stride : 1;
    struct NAME(strides) by = {right, down, 0, x->out_stride};
    struct tile tiles[NAME(BLOCK_ROWS)];
    for (int64_t begin = 0, block; begin < rows; begin += block) {
        block = rows - begin < NAME(BLOCK_ROWS) ? rows - begin : NAME(BLOCK_ROWS);
        const int64_t count = divide_into_tiles(x, row + begin, block, tiles);
        for (int64_t k = 0, depth; k < x->inner; k += depth) {
            depth = next_depth(x, x->inner - k);
            const REAL *numbers = first + begin * down + k * right, *panel = panels.first;
            for (int64_t j = 0; j < x->columns; j += NAME(COLUMNS), panel += panels.step) {
                const int64_t width = NAME(width)(x->columns, j);
                by.next = panels.next ? panels.next : NAME(vectors)(width) * NAME(LANES);
                NAME(multiply_tiles)(x, tiles, count, column + j, depth, numbers, down,
                                     panel + k * by.next, out + begin * x->out_stride + j, by,
                                     width, addend_of(x, k == 0));
            }
        }
    }
}

/* Multiply some rows, the first of which is `row`, by a matrix whose panels were copied. */
static void NAME(multiply_panels)(const struct product *x, int64_t row, int64_t rows,
                                  const REAL *first, const REAL *panels, REAL *out) {
    const struct NAME(panel_places) copied = {panels, NAME(COLUMNS) * x->inner, 0};
    NAME(multiply_by_panels)(x, row, rows, 0, first, copied, out);
}

/* Multiply by a matrix, whose first column is `column`, without copies of its panels. Its rows are
 * adjacent in memory, and its columns are whole vectors. If the first matrix has few rows, copying
 * panels would take as long as multiplying by them. */
static void NAME(multiply_in_place)(const struct product *x, int64_t column, const REAL *first,
                                    const REAL *second, REAL *out) {
    const struct NAME(panel_places) in_place = {second, NAME(COLUMNS), x->second_stride};
    NAME(multiply_by_panels)(x, 0, x->rows, column, first, in_place, out);
}

/* Copy rows of a transposed matrix in tiles. Each number is next to the numbers of the other rows
 * of its tile.
 *
 * Adjacent memory is read at once: a part of a cache line may be evicted before the next tile,
 * because such lines are often a power of two apart.
 */
static void NAME(pack_rows)(const struct tile *tiles, int64_t count, int64_t depth,
                            const REAL *first, int64_t stride, REAL *block) {
    for (int64_t begin = 0, end; begin < depth; begin = end) {
        end = depth - begin < CACHE_WAYS ? depth : begin + CACHE_WAYS;
        const REAL *numbers = first + begin * stride;
        REAL *copy = block;
        for (const struct tile *tile = tiles; tile < tiles + count; tile++) {
            const int64_t rows = tile->rows;
            REAL *to = copy + begin * rows;
            const REAL *from = numbers;
            if (rows == TILE_ROWS)
                for (int64_t k = begin; k < end; k++, to += TILE_ROWS, from += stride)
                    memcpy(to, from, sizeof(REAL) * TILE_ROWS);
            else
                for (int64_t k = begin; k < end; k++, to += rows, from += stride)
                    for (int64_t i = 0; i < rows; i++) to[i] = from[i];
            numbers += rows, copy += rows * depth;
        }
    }
}

/* A part of a product: sums of some blocks of rows with some panels, over a part of the inner
 * dimension.
 *
 * Threads first share out the copies: of the panels, and of the rows if they are columns in memory.
 * Then they share out the pieces, each of which is a block of rows times a group of panels. The
 * pieces of one group, which stays in the cache of a core, follow each other.
 */
struct NAME(part) {
    const struct product *product;
    const REAL *first, *second;
    REAL *out;
    REAL *panels, *copied_rows; /* NULL without memory; rows may need no copy */
    int64_t column, columns, depth;
    int64_t length, block; /* rows of a range that is divided into blocks, and of a block */
    int64_t first_block, blocks, new_blocks; /* `new_blocks` are to be copied */
    int64_t group;                           /* panels of a piece */
    enum addend to;                          /* the addend of its sums */
};

/* Return the rows of a block, which is counted among all blocks. */
static inline struct row_block NAME(rows_of)(const struct NAME(part) *p, int64_t block) {
    const int64_t each = divided(p->length, p->block);
    const int64_t begin = block % each * p->block, left = p->length - begin;
    return (struct row_block){block / each * p->length + begin, left < p->block ? left : p->block};
}

/* Return the copy of one of the part's blocks. */
static inline REAL *NAME(copied_block)(const struct NAME(part) *p, int64_t i) {
    return p->copied_rows + i * p->block * p->depth;
}

/* Return the product of a row and a column, added up as panels do. */
static REAL NAME(sum)(int64_t depth, int paired, const REAL *a, int64_t right, const REAL *b,
                      int64_t next) {
    const int64_t pairs = paired ? depth / 8 * 8 : 0;
    REAL sum = 0, odd = 0;
    for (int64_t k = 0; k < depth; k++, a += right, b += next) {
        if (k < pairs && k % 2) odd = NAME(FUSED_ONE)(*a, *b, odd);
        else sum = NAME(FUSED_ONE)(*a, *b, sum);
    }
    return paired ? sum + odd : sum;
}

/* Multiply some rows by some columns without memory for copies. */
static void NAME(multiply_slowly)(const struct NAME(part) *p, int64_t row, int64_t last_row,
                                  int64_t column, int64_t last_column) {
    const struct product *x = p->product;
    const int64_t down = x->first_transposed ? 1 : x->first_stride,
                  right = x->first_transposed ? x->first_stride : 1;
    const int64_t step = x->second_transposed ? x->second_stride : 1,
                  next = x->second_transposed ? 1 : x->second_stride;
    for (int64_t i = row; i < last_row; i++)
        for (int64_t j = column; j < last_column; j++) {
            REAL *c = p->out + i * x->out_stride + j;
            const int paired = is_paired(x, i, p->column + j);
            const REAL sum =
                NAME(sum)(p->depth, paired, p->first + i * down, right, p->second + j * step, next);
            *c = p->to == SUMS ? sum + *c : p->to == ZERO ? sum + 0 : sum;
        }
}

/* Copy some whole panels, which are adjacent in memory: a few rows of all of them at a time. */
static void NAME(pack_adjacent)(const struct product *x, const REAL *second, int64_t depth,
                                int64_t count, REAL *panels) {
    for (int64_t begin = 0, end; begin < depth; begin = end) {
        end = depth - begin < CACHE_WAYS ? depth : begin + CACHE_WAYS;
        for (int64_t j = 0; j < count; j++)
            for (int64_t k = begin; k < end; k++)
                memcpy(panels + (j * depth + k) * NAME(COLUMNS),
                       second + k * x->second_stride + j * NAME(COLUMNS),
                       sizeof(REAL) * NAME(COLUMNS));
    }
}

/* Copy some panels of a part. */
static void NAME(pack_panels)(const struct NAME(part) *p, int64_t begin, int64_t end) {
    const struct product *x = p->product;
    const int64_t step = x->second_transposed ? x->second_stride : 1;
    if (!x->second_transposed && begin < end) {
        const int64_t whole = (end * NAME(COLUMNS) <= p->columns ? end : end - 1) - begin;
        NAME(pack_adjacent)(x, p->second + begin * NAME(COLUMNS), p->depth, whole,
                            p->panels + begin * NAME(COLUMNS) * p->depth);
        begin += whole;
    }
    for (int64_t j = begin * NAME(COLUMNS); j < end * NAME(COLUMNS); j += NAME(COLUMNS))
        NAME(pack_panel)(x, p->second + j * step, p->depth, NAME(width)(p->columns, j),
                         p->panels + j * p->depth);
}

/* Write a matrix as panels, over the whole inner dimension. */
static void NAME(pack)(const struct product *x, const REAL *second, REAL *panels) {
    const struct NAME(part) p = {
        .product = x, .second = second, .panels = panels, .columns = x->columns, .depth = x->inner};
    NAME(pack_panels)(&p, 0, divided(x->columns, NAME(COLUMNS)));
}

/* Copy a block of rows of a part. */
static void NAME(pack_block)(const struct NAME(part) *p, int64_t i) {
    struct tile tiles[NAME(BLOCK_ROWS)];
    const struct row_block rows = NAME(rows_of)(p, p->first_block + i);
    const int64_t count = divide_into_tiles(p->product, rows.begin, rows.count, tiles);
    NAME(pack_rows)(tiles, count, p->depth, p->first + rows.begin, p->product->first_stride,
                    NAME(copied_block)(p, i));
}

/* Copy some of the new blocks and some of the panels, which follow the blocks in one range. */
static void NAME(pack_part)(void *argument, int64_t begin, int64_t end) {
    const struct NAME(part) *p = argument;
    const int64_t blocks = p->new_blocks;
    for (int64_t i = begin; i < end && i < blocks; i++) NAME(pack_block)(p, i);
    if (end > blocks) NAME(pack_panels)(p, begin < blocks ? 0 : begin - blocks, end - blocks);
}

/* Multiply a block of rows by a group of panels. */
static void NAME(multiply_block)(const struct NAME(part) *p, int64_t i, int64_t begin,
                                 int64_t end) {
    const struct product *x = p->product;
    const struct row_block rows = NAME(rows_of)(p, p->first_block + i);
    if (!p->panels) {
        const int64_t last = end * NAME(COLUMNS) < p->columns ? end * NAME(COLUMNS) : p->columns;
        NAME(multiply_slowly)(p, rows.begin, rows.begin + rows.count, begin * NAME(COLUMNS), last);
        return;
    }
    struct NAME(strides) by = {1, x->first_transposed ? 1 : x->first_stride, 0, x->out_stride};
    const REAL *first =
        x->first_transposed ? NAME(copied_block)(p, i) : p->first + rows.begin * x->first_stride;
    const int64_t step = x->first_transposed ? 0 : x->first_stride;
    struct tile tiles[NAME(BLOCK_ROWS)];
    const int64_t count = divide_into_tiles(x, rows.begin, rows.count, tiles);
    for (int64_t j = begin * NAME(COLUMNS); j < end * NAME(COLUMNS); j += NAME(COLUMNS)) {
        const int64_t width = NAME(width)(p->columns, j);
        by.next = NAME(vectors)(width) * NAME(LANES);
        NAME(multiply_tiles)(x, tiles, count, p->column + j, p->depth, first, step,
                             p->panels + j * p->depth, p->out + rows.begin * x->out_stride + j, by,
                             width, p->to);
    }
}

/* Multiply some pieces: all blocks by the first group of panels, and so on. */
static void NAME(multiply_pieces)(void *argument, int64_t begin, int64_t end) {
    const struct NAME(part) *p = argument;
    const int64_t panels = divided(p->columns, NAME(COLUMNS));
    clear_exceptions();
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / p->blocks * p->group, last = first + p->group;
        NAME(multiply_block)(p, i % p->blocks, first, last < panels ? last : panels);
    }
    note_exceptions(p->product);
}

/* Return how many panels, or blocks of rows, a thread copies at once.
 *
 * Panels that are adjacent in memory have one cache line of each row of the matrix, and the lines
 * of several panels follow each other. There must be enough parts for threads to share out. */
static inline int64_t NAME(copied_at_once)(const struct NAME(part) *p, int64_t panels) {
    const int64_t few = 1 + CHUNK_NUMBERS / (p->depth * NAME(COLUMNS)),
                  many = panels / (PIECES / 2);
    if (p->product->second_transposed || many <= few) return few;
    return many < CACHE_WAYS ? many : CACHE_WAYS;
}

/* Compute the sums of a part. Copies made by the part before are not made again. */
static void NAME(multiply_part)(struct NAME(part) *p) {
    const int64_t panels = divided(p->columns, NAME(COLUMNS));
    const int64_t new_panels = p->first_block == 0 || p->columns < p->product->columns ? panels : 0;
    const int64_t panel = p->depth * NAME(COLUMNS), pieces = p->blocks * divided(panels, p->group);
    p->new_blocks = p->copied_rows && p->column == 0 ? p->blocks : 0;
    if (p->panels)
        parallel(NAME(pack_part), p, p->new_blocks + new_panels,
                 NAME(copied_at_once)(p, new_panels));
    parallel(NAME(multiply_pieces), p, pieces, 1 + ALONE / (p->block * p->group * panel));
}

/* Divide the rows into blocks and the panels into groups, so that there are enough pieces for
 * threads to share out. */
static void NAME(divide)(struct NAME(part) *p, int64_t panels) {
    const struct product *x = p->product;
    const int64_t unit = x->row_ranges ? GROUP : TILE_ROWS,
                  eighth = divided(x->rows / 8, unit) * unit;
    p->length = equal_parts(x);
    while (2 * p->length <= NAME(BLOCK_ROWS) && x->rows % (2 * p->length) == 0) p->length *= 2;
    p->block = NAME(BLOCK_ROWS);
    if (divided(x->rows, p->block) * panels < PIECES && eighth < p->block)
        p->block = eighth < unit ? unit : eighth;
    const int64_t group = divided(x->rows, p->block) * panels / PIECES;
    p->group = group < 1 ? 1 : group < GROUP_PANELS ? group : GROUP_PANELS;
}

/* Compute a product part by part. Each part has copies of its panels, and of its rows if the first
 * matrix is transposed. A small product is computed at once, with panels read in place. */
void NAME(multiply_in_panels)(const struct product *x, const REAL *first, const REAL *second,
                              REAL *out) {
    const int is_small = x->rows * x->columns * x->inner <= ALONE;
    if (is_small && !x->second_transposed && x->columns % NAME(LANES) == 0) {
        clear_exceptions();
        NAME(multiply_in_place)(x, 0, first, second, out);
        note_exceptions(x);
        return;
    }
    struct NAME(part) p = {.product = x};
    NAME(divide)(&p, divided(x->columns, NAME(COLUMNS)));
    const int64_t deepest = x->inner < x->most + x->unit ? x->inner : x->most + x->unit;
    const int64_t blocks = x->rows / p.length * divided(p.length, p.block);
    const int64_t copied_blocks = COPIED_ROWS / p.block;
    const int64_t most = x->first_transposed && blocks > copied_blocks ? copied_blocks : blocks;
    const int64_t columns = x->columns < PART_COLUMNS ? x->columns : PART_COLUMNS;
    const int64_t width = NAME(vectors)(columns) * NAME(LANES);
    const int64_t copied = width + (x->first_transposed ? most * p.block : 0);
    p.panels = copies_of_thread(sizeof(REAL) * (size_t)(deepest * copied));
    if (p.panels && x->first_transposed) p.copied_rows = p.panels + deepest * width;
    for (int64_t k = 0; k < x->inner; k += p.depth) {
        p.depth = next_depth(x, x->inner - k);
        p.first = first + k * (x->first_transposed ? x->first_stride : 1);
        p.to = addend_of(x, k == 0);
        for (p.first_block = 0; p.first_block < blocks; p.first_block += p.blocks) {
            p.blocks = blocks - p.first_block < most ? blocks - p.first_block : most;
            for (p.column = 0; p.column < x->columns; p.column += p.columns) {
                p.columns =
                    x->columns - p.column < PART_COLUMNS ? x->columns - p.column : PART_COLUMNS;
                p.second = second + (x->second_transposed ? p.column * x->second_stride + k
                                                          : k * x->second_stride + p.column);
                p.out = out + p.column;
                NAME(multiply_part)(&p);
            }
        }
    }
}
#endif

/* Compute some rows of a product with given memory for the panels. The first matrix must not be
 * transposed. */
void NAME(multiply_packed)(const struct product *x, int64_t row, int64_t rows, const REAL *first,
                           const REAL *second, REAL *panels, REAL *out) {
    NAME(pack)(x, second, panels);
    NAME(multiply_panels)(x, row, rows, first, panels, out);
}
