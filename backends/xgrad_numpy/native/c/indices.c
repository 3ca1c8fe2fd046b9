/* Elements at indices, and checks of indices, which are integers of 4 or 8 bytes. */

static int64_t index_at(const char *indices, int64_t i, int64_t bytes) {
    return bytes == 8 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Return whether an index is out of range. A negative one counts from the end, as in NumPy, and is
 * replaced. */
static int32_t is_outside(int64_t *index, int64_t length) {
    *index += *index < 0 ? length : 0;
    return *index < 0 || *index >= length;
}

/* Copy `count` elements of `item` bytes of a matrix. `p` has the addresses of the matrix, the row
 * and column indices, and the result. Return whether an index is out of range; the result is then
 * incomplete. */
int32_t elements(char **p, int64_t rows, int64_t columns, int64_t down, int64_t right,
                 int64_t count, int64_t item, int64_t row_bytes, int64_t column_bytes) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = index_at(p[1], i, row_bytes), column = index_at(p[2], i, column_bytes);
        if (is_outside(&row, rows) || is_outside(&column, columns)) return 1;
        const char *const x = p[0] + row * down + column * right;
        if (item == 4) memcpy(p[3] + i * 4, x, 4);
        else memcpy(p[3] + i * 8, x, 8);
    }
    return 0;
}

#define EXTREME(name, type)                                                                        \
    static int64_t name(const type *x, int64_t count, int32_t largest) {                           \
        type best = x[0];                                                                          \
        if (largest)                                                                               \
            for (int64_t i = 1; i < count; i++) best = x[i] > best ? x[i] : best;                  \
        else                                                                                       \
            for (int64_t i = 1; i < count; i++) best = x[i] < best ? x[i] : best;                  \
        return best;                                                                               \
    }

EXTREME(extreme_of_4, int32_t)
EXTREME(extreme_of_8, int64_t)

/* Return the largest or the smallest of integers without gaps. */
int64_t extreme_index(const char *x, int64_t count, int64_t bytes, int32_t largest) {
    return bytes == 8 ? extreme_of_8((const int64_t *)x, count, largest)
                      : extreme_of_4((const int32_t *)x, count, largest);
}

static int32_t are_outside(const char *indices, int64_t count, int64_t bytes, int64_t length) {
    for (int64_t i = 0; i < count; i++) {
        int64_t index = index_at(indices, i, bytes);
        if (is_outside(&index, length)) return 1;
    }
    return 0;
}

struct rows_at {
    char **p;
    int64_t length, width, count, index_bytes; /* rows, bytes or elements of one, indices */
};

static int64_t row_at(const struct rows_at *x, int64_t i) {
    int64_t index = index_at(x->p[1], i, x->index_bytes);
    is_outside(&index, x->length);
    return index;
}

static void copy_rows(void *argument, int64_t begin, int64_t end) {
    const struct rows_at *x = argument;
    for (int64_t i = begin; i < end; i++)
        memcpy(x->p[2] + i * x->width, x->p[0] + row_at(x, i) * x->width, (size_t)x->width);
}

/* Copy rows at indices. `p` has the addresses of the matrix, the indices and the result. Return
 * whether an index is out of range; then nothing is copied. */
int32_t take_rows(char **p, int64_t length, int64_t bytes, int64_t count, int64_t index_bytes) {
    struct rows_at x = {p, length, bytes, count, index_bytes};
    if (are_outside(p[1], count, index_bytes, length)) return 1;
    parallel(copy_rows, &x, count, 1 + (1 << 15) / bytes);
    return 0;
}

/* Each thread adds some columns of all rows, so that each element is added to in the order of the
 * indices, as in NumPy. */
#define ADD_COLUMNS(name, type)                                                                    \
    static void name(void *argument, int64_t begin, int64_t end) {                                 \
        const struct rows_at *x = argument;                                                        \
        clear_exceptions();                                                                        \
        for (int64_t i = 0; i < x->count; i++) {                                                   \
            const type *const values = (const type *)x->p[0] + i * x->width;                       \
            type *const out = (type *)x->p[2] + row_at(x, i) * x->width;                           \
            for (int64_t k = begin; k < end; k++) out[k] += values[k];                             \
        }                                                                                          \
        note(exceptions());                                                                        \
    }

ADD_COLUMNS(add_float_columns, float)
ADD_COLUMNS(add_double_columns, double)

/* Add rows at indices. `p` has the addresses of the rows, the indices and the matrix. Return
 * whether an index is out of range; then nothing is added. */
int32_t add_rows(char **p, int64_t length, int64_t width, int64_t count, int64_t index_bytes,
                 int32_t is_double) {
    struct rows_at x = {p, length, width, count, index_bytes};
    if (are_outside(p[1], count, index_bytes, length)) return 1;
    parallel(is_double ? add_double_columns : add_float_columns, &x, width, 32 + (1 << 14) / count);
    return 0;
}
