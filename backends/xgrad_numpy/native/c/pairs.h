/* The numbers of a product that are two sums, of the products at even and at odd indices, which are
 * added at the end.
 *
 * OpenBLAS's AVX2 kernel for floats computes some of its tiles in this way, since their few sums
 * would wait for each other. Which tiles follows from how it divides the result (rows and columns
 * are meant as in C here, and are swapped there):
 *
 * - Columns are divided into a range for each of some threads, ranges into blocks, and blocks into
 *   vectors of 8.
 * - Rows are divided into a range for each thread, which copies them in two parts, and parts into
 *   groups of 12.
 * - The upper 6 rows of a group have two sums in the first vector of a block, and in the last
 *   vector if the number of vectors is even; the lower 6 rows in the last vector if it is odd. A
 *   block of one vector has none.
 * - Of the rows after the last group, 4 have two sums in all vectors. 8 have two sums where their
 *   own thread copies them.
 *
 * A product without `row_ranges` has one sum for each number. Trials check that all this is true:
 * see ways.py.
 */

enum { LANES_OF_PAIRS = 8, GROUP = 12, HALF_GROUP = 6, BLOCK_OF_COLUMNS = 320 };

/* Kinds of rows. */
enum kind { UPPER, LOWER, EIGHT, FOUR, REST, KINDS };

struct row_part {
    int64_t begin, end;
    int64_t owner; /* range of columns whose thread copies the rows */
};

/* Consecutive rows of one kind, and the part that contains the last of them. */
struct run {
    struct row_part part;
    int64_t end;
    enum kind kind;
};

static inline int64_t divided(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* Return the length of the first of some equal ranges, rounded up. */
static inline int64_t range_length(int64_t left, int64_t ranges) {
    const int64_t length = divided(divided(left, ranges), LANES_OF_PAIRS) * LANES_OF_PAIRS;
    return length < left ? length : left;
}

/* Return the part of a row. Rows are first divided by the ranges of rows that meet one range of
 * columns. */
static inline struct row_part row_part_of(const struct product *x, int64_t row) {
    const int64_t outer = x->row_ranges / x->column_ranges;
    int64_t begin = 0, length = x->all_rows;
    for (int64_t i = 0; i < outer; i++, begin += length) {
        length = divided(x->all_rows - begin, outer - i);
        if (row < begin + length) break;
    }
    const int64_t end = begin + length;
    for (int64_t i = 0; i < x->column_ranges; i++, begin += length) {
        length =
            x->column_ranges > 1 ? range_length(end - begin, x->column_ranges - i) : end - begin;
        if (row >= begin + length) continue;
        const int64_t middle = begin + (x->row_ranges > 1 ? divided(length, 2) : length);
        if (row < middle) return (struct row_part){begin, middle, i};
        return (struct row_part){middle, begin + length, i};
    }
    return (struct row_part){row, end, 0};
}

/* Return the number of rows of a part if all parts have the same, else the rows of the product. */
static inline int64_t equal_parts(const struct product *x) {
    const int64_t parts = x->row_ranges > 1 ? 2 * x->row_ranges : 1;
    return x->rows % parts ? x->rows : x->rows / parts;
}

/* Return the kind of a row in a part; set `rows` to the number of rows of the kind from there
 * on. */
static inline enum kind kind_of(const struct row_part *part, int64_t row, int64_t *rows) {
    const int64_t length = part->end - part->begin, grouped = length / GROUP * GROUP,
                  left = length - grouped;
    const int64_t within = row - part->begin, after = within - grouped;
    if (after < 0) {
        *rows = HALF_GROUP - within % HALF_GROUP;
        return within / HALF_GROUP % 2 ? LOWER : UPPER;
    }
    if (left >= 8 && after < 8) {
        *rows = 8 - after;
        return EIGHT;
    }
    if (left >= 4 && left < 8 && after < 4) {
        *rows = 4 - after;
        return FOUR;
    }
    *rows = length - within;
    return REST;
}

/* Advance a run to a row: in its current part, or in a later one. Parts of few rows may form one
 * run. */
static inline void go_on(const struct product *x, struct run *run, int64_t row) {
    int64_t rows;
    if (row >= run->part.end) run->part = row_part_of(x, row);
    run->kind = kind_of(&run->part, row, &rows);
    for (run->end = row + rows; run->end == run->part.end && run->end < x->all_rows;
         run->end += rows) {
        const struct row_part next = row_part_of(x, run->end);
        if (next.owner != run->part.owner || kind_of(&next, next.begin, &rows) != run->kind) return;
        run->part = next;
    }
}

/* Return how many rows a tile has: at most 6. Of 7 or 8 rows it has 4: with 1 or 2 rows, the next
 * tile would wait for its few sums, unless each number has two. */
static inline int64_t rows_of_tile(int64_t left, enum kind kind) {
    if (left > 8) return 6;
    return left > 6 ? kind == FOUR ? 6 : 4 : left;
}

/* The rows of a tile, their kind, and the range of columns whose thread copies them. */
struct tile {
    int64_t rows, owner;
    enum kind kind;
};

/* Divide some rows into tiles, of which there are at most as many as rows. Return their number. */
static inline int64_t divide_into_tiles(const struct product *x, int64_t row, int64_t rows,
                                        struct tile *tiles) {
    struct run run = {.part = {.owner = -1}, .kind = REST};
    int64_t count = 0;
    for (const int64_t end = row + rows; row < end; row += tiles[count++].rows) {
        if (x->row_ranges && row >= run.end) go_on(x, &run, row);
        const int64_t last = x->row_ranges && run.end < end ? run.end : end;
        tiles[count] = (struct tile){rows_of_tile(last - row, run.kind), run.part.owner, run.kind};
    }
    return count;
}

/* Return the kinds of rows that have two sums in the vector of a column, one bit for each kind. */
static inline uint32_t paired_kinds(const struct product *x, int64_t column, int64_t owner) {
    int64_t begin = 0, length = 0, range = 0;
    for (;; range++, begin += length) {
        length = range_length(x->all_columns - begin, x->column_ranges - range);
        if (column < begin + length || range + 1 == x->column_ranges) break;
    }
    const int64_t first = begin, end = begin + length;
    for (;; begin += length) {
        length = end - begin;
        if (length >= 2 * BLOCK_OF_COLUMNS) length = BLOCK_OF_COLUMNS;
        else if (length > BLOCK_OF_COLUMNS)
            length = divided(length / 2, LANES_OF_PAIRS) * LANES_OF_PAIRS;
        if (column < begin + length || begin + length >= end) break;
    }
    const int64_t vectors = length / LANES_OF_PAIRS, vector = (column - begin) / LANES_OF_PAIRS;
    if (vector >= vectors) return 0;
    uint32_t kinds = 1u << FOUR;
    if (vectors > 1 && vector == 0) kinds |= 1u << UPPER;
    if (vectors > 1 && vector == vectors - 1) kinds |= 1u << (vectors % 2 ? LOWER : UPPER);
    if (begin == first && range == owner) kinds |= 1u << EIGHT;
    return kinds;
}

static inline int is_paired(const struct product *x, int64_t row, int64_t column) {
    if (!x->row_ranges) return 0;
    const struct row_part part = row_part_of(x, row);
    int64_t rows;
    return paired_kinds(x, column, part.owner) >> kind_of(&part, row, &rows) & 1;
}
