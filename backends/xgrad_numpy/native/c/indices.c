/* Elements at indices, and checks of indices: integers of 4 or of 8 bytes. */

static int64_t index_at(const char *indices, int64_t i, int64_t bytes) {
    return bytes == 8 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Whether an index is out of range. A negative one counts from the end, as in NumPy, and is replaced. */
static int32_t is_outside(int64_t *index, int64_t length) {
    *index += *index < 0 ? length : 0;
    return *index < 0 || *index >= length;
}

/* Copy `count` elements of `item` bytes of a matrix: `p` has the addresses of the matrix, of the numbers of the rows
 * and columns, and of the result. Return whether an index is out of range; then the result is not complete. */
int32_t elements(char **p, int64_t rows, int64_t columns, int64_t down, int64_t right, int64_t count, int64_t item,
                 int64_t row_bytes, int64_t column_bytes) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = index_at(p[1], i, row_bytes), column = index_at(p[2], i, column_bytes);
        if (is_outside(&row, rows) || is_outside(&column, columns)) return 1;
        const char *const x = p[0] + row * down + column * right;
        if (item == 4) memcpy(p[3] + i * 4, x, 4);
        else memcpy(p[3] + i * 8, x, 8);
    }
    return 0;
}

#define EXTREME(name, type)                                                                                            \
    static int64_t name(const type *x, int64_t count, int32_t largest) {                                               \
        type best = x[0];                                                                                              \
        if (largest)                                                                                                   \
            for (int64_t i = 1; i < count; i++) best = x[i] > best ? x[i] : best;                                      \
        else                                                                                                           \
            for (int64_t i = 1; i < count; i++) best = x[i] < best ? x[i] : best;                                      \
        return best;                                                                                                   \
    }

EXTREME(extreme_of_4, int32_t)
EXTREME(extreme_of_8, int64_t)

/* The largest or the smallest of integers without gaps. */
int64_t extreme_index(const char *x, int64_t count, int64_t bytes, int32_t largest) {
    return bytes == 8 ? extreme_of_8((const int64_t *)x, count, largest)
                      : extreme_of_4((const int32_t *)x, count, largest);
}
