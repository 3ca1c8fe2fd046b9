/* Reductions of rows. */

enum { LANES = 16 };

struct rows {
    const char *x;
    char *out;
    int64_t columns;
    int32_t smallest;
};

/* The element that NumPy's `argmax` or `argmin` finds: the first NaN, or the first extreme.
 *
 * The lanes are separate extremes, in an order that compilers vectorize. Which of equal elements is
 * the first matters only for zeros of both signs, and is looked up.
 */
#define EXTREME_OF_ROW(name, type)                                                                 \
    static type name(const type *x, int64_t columns, int32_t smallest) {                           \
        type lanes[LANES], best;                                                                   \
        int64_t i = 0;                                                                             \
        int32_t unordered = 0;                                                                     \
        for (int l = 0; l < LANES; l++) lanes[l] = x[l < columns ? l : 0];                         \
        if (smallest)                                                                              \
            for (; i + LANES <= columns; i += LANES)                                               \
                for (int l = 0; l < LANES; l++)                                                    \
                    lanes[l] = isless(x[i + l], lanes[l]) ? x[i + l] : lanes[l];                   \
        else                                                                                       \
            for (; i + LANES <= columns; i += LANES)                                               \
                for (int l = 0; l < LANES; l++)                                                    \
                    lanes[l] = isgreater(x[i + l], lanes[l]) ? x[i + l] : lanes[l];                \
        best = lanes[0];                                                                           \
        for (int l = 1; l < LANES; l++)                                                            \
            if (smallest ? isless(lanes[l], best) : isgreater(lanes[l], best)) best = lanes[l];    \
        for (; i < columns; i++)                                                                   \
            if (smallest ? isless(x[i], best) : isgreater(x[i], best)) best = x[i];                \
        for (i = 0; i < columns; i++) unordered |= x[i] != x[i];                                   \
        if (unordered)                                                                             \
            for (i = 0;; i++)                                                                      \
                if (x[i] != x[i]) return x[i];                                                     \
        if (best == 0)                                                                             \
            for (i = 0;; i++)                                                                      \
                if (x[i] == 0) return x[i];                                                        \
        return best;                                                                               \
    }                                                                                              \
    static void name##s(void *argument, int64_t begin, int64_t end) {                              \
        const struct rows *rows = argument;                                                        \
        for (int64_t i = begin; i < end; i++)                                                      \
            ((type *)rows->out)[i] =                                                               \
                name((const type *)rows->x + i * rows->columns, rows->columns, rows->smallest);    \
    }

EXTREME_OF_ROW(extreme_float, float)
EXTREME_OF_ROW(extreme_double, double)

/* Write the largest or the smallest element of each row of a contiguous matrix to a vector. */
void extremes(const char *x, char *out, int64_t count, int64_t columns, int32_t is_double,
              int32_t smallest) {
    struct rows rows = {x, out, columns, smallest};
    parallel(is_double ? extreme_doubles : extreme_floats, &rows, count, 1 + (1 << 13) / columns);
}
