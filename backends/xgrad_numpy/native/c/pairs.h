/* Which numbers of a product are two sums, of what has even and what has odd places, which are added at the end.
 *
 * OpenBLAS's kernel of floats for AVX2 computes some of its tiles so, since their few sums would wait for each other.
 * Which ones follows from how it divides the result (rows and columns are those of C here, and the reverse there):
 *
 * - Columns are divided into a range for each of some threads, ranges into blocks, and blocks into vectors of 8.
 * - Rows are divided into a range for each thread, which copies them in two parts, and parts into groups of 12.
 * - The upper 6 rows of a group have two sums in the first vector of a block, and in the last one of an even number;
 *   the lower 6 in the last one of an odd number. A block of one vector has none.
 * - Of the rows after the last group, 4 have two sums in all vectors. 8 have them where their thread copies them.
 *
 * A product without `row_ranges` has one sum for each number. Whether all this is so is tried out: see ways.py.
 */

enum { LANES_OF_PAIRS = 8, GROUP = 12, HALF_GROUP = 6, BLOCK_OF_COLUMNS = 320 };

/* Kinds of rows. */
enum kind { UPPER, LOWER, EIGHT, FOUR, REST, KINDS };

struct row_part {
    int64_t begin, end;
    int64_t owner; /* the range of columns whose thread copies the rows */
};

struct tile {
    int64_t rows;
    enum kind kind;
};

static inline int64_t divided(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* Return the length of the first one of equal ranges, which is rounded up. */
static inline int64_t range_length(int64_t left, int64_t ranges) {
    const int64_t length = divided(divided(left, ranges), LANES_OF_PAIRS) * LANES_OF_PAIRS;
    return length < left ? length : left;
}

/* Return the part that a row is in. Rows are first divided by the ranges of rows that meet one range of columns. */
static inline struct row_part row_part_of(const struct product *x, int64_t row) {
    const int64_t outer = x->row_ranges / x->column_ranges;
    int64_t begin = 0, length = x->all_rows;
    for (int64_t i = 0; i < outer; i++, begin += length) {
        length = divided(x->all_rows - begin, outer - i);
        if (row < begin + length) break;
    }
    const int64_t end = begin + length;
    for (int64_t i = 0; i < x->column_ranges; i++, begin += length) {
        length = x->column_ranges > 1 ? range_length(end - begin, x->column_ranges - i) : end - begin;
        if (row >= begin + length) continue;
        const int64_t middle = begin + (x->row_ranges > 1 ? divided(length, 2) : length);
        if (row < middle) return (struct row_part){begin, middle, i};
        return (struct row_part){middle, begin + length, i};
    }
    return (struct row_part){row, end, 0};
}

/* Return the number of rows of a part where all parts have as many, else that of the product. */
static inline int64_t equal_parts(const struct product *x) {
    const int64_t parts = x->row_ranges > 1 ? 2 * x->row_ranges : 1;
    return x->rows % parts ? x->rows : x->rows / parts;
}

/* Return the next rows of a kind, at most 8. */
static inline struct tile tile_of_part(const struct row_part *part, int64_t row) {
    const int64_t rows = part->end - part->begin, grouped = rows / GROUP * GROUP, left = rows - grouped;
    const int64_t within = row - part->begin, after = within - grouped;
    if (after < 0) {
        const int64_t half = within / HALF_GROUP, rest = HALF_GROUP - within % HALF_GROUP;
        return (struct tile){rest, half % 2 ? LOWER : UPPER};
    }
    if (left >= 8 && after < 8) return (struct tile){8 - after, EIGHT};
    if (left >= 4 && left < 8 && after < 4) return (struct tile){4 - after, FOUR};
    return (struct tile){rows - within, REST};
}

/* Return the next rows of a product before `end` that a tile computes. `part` is that of the row before, if any.
 *
 * A tile has at most 6 rows. Of 7 or 8 it has 4: with 1 or 2, the next one would wait for its few sums. */
static inline struct tile next_tile(const struct product *x, struct row_part *part, int64_t row, int64_t end) {
    struct tile tile = {end - row, REST};
    if (x->row_ranges) {
        if (row >= part->end) *part = row_part_of(x, row);
        tile = tile_of_part(part, row);
        if (tile.rows > end - row) tile.rows = end - row;
    }
    if (tile.rows > 8) tile.rows = 6;
    else if (tile.rows > 6) tile.rows = 4;
    return tile;
}

/* Return the kinds of rows that have two sums in the vector of a column, a bit for each. */
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
        else if (length > BLOCK_OF_COLUMNS) length = divided(length / 2, LANES_OF_PAIRS) * LANES_OF_PAIRS;
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
    return paired_kinds(x, column, part.owner) >> tile_of_part(&part, row).kind & 1;
}
