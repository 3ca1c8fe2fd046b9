/* Maximum pooling and its gradient: included for each type, with REAL, BITS (the integer of its
 * size), NAME and EXCEEDS.
 *
 * EXCEEDS(x, y) is x > y, or x >= y if NumPy takes the first of two zeros. Maxima are taken as in
 * pooling.py: in the forward pass down the columns first, in the gradient along the rows first. In
 * the forward pass the rows of windows of each channel are independent of each other; in the
 * gradient all lanes are, where a lane is one channel of one image.
 */

static inline BITS NAME(bits)(REAL x) {
    BITS y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline REAL NAME(with_bits)(BITS x) {
    REAL y;
    memcpy(&y, &x, sizeof y);
    return y;
}

/* Return NumPy's maximum, in two steps, which compilers vectorize. */
static inline REAL NAME(larger)(REAL x, REAL y) {
    const REAL most = EXCEEDS(x, y) ? x : y;
    return x != x ? x : most;
}

/* Pool two by two elements without overlap, for `count` adjacent windows of two rows. */
static void NAME(pool_pairs)(const REAL *restrict x, int64_t row, REAL *restrict out,
                             int64_t count) {
    const REAL *restrict y = x + row;
    for (int64_t k = 0; k < count; k++) {
        const REAL a = x[2 * k], b = x[2 * k + 1], c = y[2 * k], d = y[2 * k + 1];
        out[k] = NAME(larger)(NAME(larger)(a, c), NAME(larger)(b, d));
    }
}

/* Write the maxima of `count` windows, `step` apart, of `kernel` elements each, `dilation`
 * apart. */
static inline void NAME(maxima_apart)(const REAL *restrict x, int64_t step, int64_t kernel,
                                      int64_t dilation, REAL *restrict out, int64_t count) {
    for (int64_t k = 0; k < count; k++) out[k] = x[k * step];
    for (int64_t j = 1; j < kernel; j++) {
        const REAL *restrict y = x + j * dilation;
        for (int64_t k = 0; k < count; k++) out[k] = NAME(larger)(out[k], y[k * step]);
    }
}

/* Do the same; compilers vectorize steps that are constants. */
static void NAME(maxima)(const REAL *x, const struct window *w, REAL *out, int64_t count) {
    if (w->stride == 1) NAME(maxima_apart)(x, 1, w->kernel, w->dilation, out, count);
    else if (w->stride == 2) NAME(maxima_apart)(x, 2, w->kernel, w->dilation, out, count);
    else NAME(maxima_apart)(x, w->stride, w->kernel, w->dilation, out, count);
}

/* Write the largest elements of a row of windows, the first of which begins at `x`: maxima of
 * columns, then of these. */
static void NAME(pool_row)(const struct pooling *p, const REAL *x, REAL *out) {
    REAL columns[2 * LONGEST];
    const struct window down = {p->down.kernel, 1, p->down.dilation * p->input.row, 0},
                        *right = &p->right;
    const int64_t more = right->dilation * (right->kernel - 1),
                  most = 1 + (2 * LONGEST - 1 - more) / right->stride;
    for (int64_t k = 0; k < right->out; k += most) {
        const int64_t count = right->out - k < most ? right->out - k : most;
        NAME(maxima)(x + k * right->stride, &down, columns, (count - 1) * right->stride + more + 1);
        NAME(maxima)(columns, right, out + k, count);
    }
}

static int NAME(is_pairs)(const struct pooling *p) {
    const struct window *a = &p->down, *b = &p->right;
    return a->kernel == 2 && a->stride == 2 && a->dilation == 1 && b->kernel == 2 &&
           b->stride == 2 && b->dilation == 1;
}

/* Pool rows of windows, by channel. */
static void NAME(pool_rows)(void *argument, int64_t begin, int64_t end) {
    const struct pooling *p = argument;
    const int pairs = NAME(is_pairs)(p);
    /* images are adjacent */
    const int joined = p->input.image == 2 * p->right.out && p->out.image == p->right.out;
    for (int64_t t = begin; t < end; t++) {
        const int64_t row = t / p->channels, channel = t % p->channels;
        const REAL *x =
            (const REAL *)p->x + row * p->down.stride * p->input.row + channel * p->input.channel;
        REAL *out = (REAL *)p->result + row * p->out.row + channel * p->out.channel;
        if (pairs && joined) NAME(pool_pairs)(x, p->input.row, out, p->images * p->right.out);
        else
            for (int64_t n = 0; n < p->images; n++, x += p->input.image, out += p->out.image) {
                if (pairs) NAME(pool_pairs)(x, p->input.row, out, p->right.out);
                else NAME(pool_row)(p, x, out);
            }
    }
}

void NAME(pool)(const struct pooling *argument, struct array *const *arrays) {
    struct pooling p = *argument;
    const int64_t work = p.images * p.right.out * p.down.kernel * p.right.kernel;
    p.x = arrays[0]->data, p.result = arrays[1]->data;
    parallel(NAME(pool_rows), &p, p.down.out * p.channels, 1 + (1 << 16) / work);
}

/* Write the gradient of `pool_pairs`; return whether it is undefined. */
static int NAME(spread_pairs)(const REAL *restrict x, int64_t row, const REAL *restrict g,
                              REAL *restrict out, int64_t out_row, int64_t count, int padded) {
    const REAL *restrict y = x + row;
    REAL *restrict below = out + out_row;
    BITS failed = 0;
    for (int64_t k = 0; k < count; k++) {
        const REAL a = x[2 * k], b = x[2 * k + 1], c = y[2 * k], d = y[2 * k + 1];
        const REAL above = NAME(larger)(a, b), under = NAME(larger)(c, d),
                   most = NAME(larger)(above, under);
        const BITS value = NAME(bits)(g[k]);
        const BITS first = -(BITS)(a == most), second = -(BITS)(b == most) & ~first;
        const BITS third = -(BITS)(c == most) & ~(first | second);
        const BITS fourth = -(BITS)(d == most) & ~(first | second | third);
        failed |= (value & -(BITS)(most != most)) | (padded & -(BITS)(most == -(REAL)INFINITY));
        out[2 * k] = NAME(with_bits)(value & first);
        out[2 * k + 1] = NAME(with_bits)(value & second);
        below[2 * k] = NAME(with_bits)(value & third);
        below[2 * k + 1] = NAME(with_bits)(value & fourth);
    }
    return failed != 0;
}

static void NAME(clear)(REAL *x, int64_t count) {
    for (int64_t k = 0; k < count; k++) x[k] = 0;
}

/* Write the gradients of pairs of rows, by channel; if the number of rows or columns is odd, the
 * last is in no window.
 *
 * The rows of adjacent images are processed as one row. If their gradients are not adjacent, the
 * gradients of short rows are copied first.
 */
static void NAME(spread_rows)(void *argument, int64_t begin, int64_t end) {
    struct pooling *p = argument;
    const int64_t columns = p->right.out, covered = 2 * columns;
    const int adjacent =
        p->width == covered && p->input.image == covered && p->out.image == covered;
    const int copied =
        adjacent && p->grad.image != columns && columns <= LONGEST / 2 && p->images > 1;
    int64_t together = 1;
    if (copied) together = LONGEST / columns;
    else if (adjacent && p->grad.image == columns) together = p->images;
    REAL copies[LONGEST];
    int failed = 0;
    for (int64_t t = begin; t < end; t++) {
        const int64_t row = t / p->channels, channel = t % p->channels;
        const REAL *x = (const REAL *)p->x + 2 * row * p->input.row + channel * p->input.channel;
        const REAL *g = (const REAL *)p->g + row * p->grad.row + channel * p->grad.channel;
        REAL *out = (REAL *)p->result + 2 * row * p->out.row + channel * p->out.channel;
        for (int64_t n = 0; n < p->images; n += together) {
            const int64_t images = p->images - n < together ? p->images - n : together;
            const REAL *part = g + n * p->grad.image;
            REAL *to = out + n * p->out.image;
            for (int64_t i = 0; copied && i < images; i++)
                for (int64_t k = 0; k < columns; k++)
                    copies[i * columns + k] = part[i * p->grad.image + k];
            failed |=
                NAME(spread_pairs)(x + n * p->input.image, p->input.row, copied ? copies : part, to,
                                   p->out.row, images * columns, p->padded);
            if (p->width > covered) NAME(clear)(to + covered, p->width - covered);
            if (p->width > covered) NAME(clear)(to + p->out.row + covered, p->width - covered);
        }
        if (row == p->down.out - 1)
            for (int64_t i = 2 * (row + 1); i < p->height; i++)
                NAME(clear)((REAL *)p->result + i * p->out.row + channel * p->out.channel,
                            p->images * p->width);
    }
    if (failed) p->failed = 1;
}

/* Pass gradients in `rest` to elements, `step` apart, that equal maxima; clear the gradients
 * passed.
 *
 * An element in several windows adds their gradients in the order of calls, from +0; an element in
 * one window gets its bits.
 */
static inline void NAME(give)(const REAL *restrict x, const REAL *restrict maxima,
                              BITS *restrict rest, REAL *restrict out, int64_t step, int adds,
                              int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        const BITS part = rest[k] & -(BITS)(x[k * step] == maxima[k]);
        rest[k] ^= part;
        out[k * step] = adds ? out[k * step] + NAME(with_bits)(part) : NAME(with_bits)(part);
    }
}

/* Share out the gradients of a row of windows, from `k` on, among rows of maxima. Return whether
 * they are undefined. */
static int NAME(spread_down)(const struct pooling *p, const REAL *g, const REAL *maxima, REAL *rows,
                             int64_t count) {
    const struct window column = {p->down.kernel, 1, p->down.dilation * p->right.out, 0};
    REAL most[LONGEST];
    BITS rest[LONGEST], failed = 0;
    NAME(maxima)(maxima, &column, most, count);
    memcpy(rest, g, (size_t)count * sizeof *rest);
    for (int64_t i = 0; i < column.kernel; i++) {
        const int64_t at = i * column.dilation;
        if (overlap(&p->down)) NAME(give)(maxima + at, most, rest, rows + at, 1, 1, count);
        else NAME(give)(maxima + at, most, rest, rows + at, 1, 0, count);
    }
    for (int64_t k = 0; k < count; k++)
        failed |= rest[k] | (p->padded & -(BITS)(most[k] == -(REAL)INFINITY));
    return failed != 0;
}

/* Share out the gradients of windows along a row among the row's elements. */
static void NAME(spread_right)(const struct window *w, const REAL *x, const REAL *maxima,
                               const REAL *g, REAL *out, int64_t count) {
    BITS rest[LONGEST];
    memcpy(rest, g, (size_t)count * sizeof *rest);
    for (int64_t j = 0; j < w->kernel; j++) {
        const int64_t at = j * w->dilation;
        if (!overlap(w)) NAME(give)(x + at, maxima, rest, out + at, w->stride, 0, count);
        else if (w->stride == 1) NAME(give)(x + at, maxima, rest, out + at, 1, 1, count);
        else if (w->stride == 2) NAME(give)(x + at, maxima, rest, out + at, 2, 1, count);
        else NAME(give)(x + at, maxima, rest, out + at, w->stride, 1, count);
    }
}

/* Write the gradients of lanes. `rows` has for each lane the maxima along its rows, then the
 * gradients of these maxima.
 *
 * An element adds the gradients of its windows from the last to the first, hence the order of rows
 * and of parts of rows.
 */
static void NAME(spread_lanes)(void *argument, int64_t begin, int64_t end) {
    struct pooling *p = argument;
    const int64_t columns = p->right.out, size = p->height * columns,
                  last = (columns - 1) / LONGEST * LONGEST;
    for (int64_t t = begin; t < end; t++) {
        const int64_t channel = t / p->images, image = t % p->images;
        const REAL *x = (const REAL *)p->x + channel * p->input.channel + image * p->input.image;
        const REAL *g = (const REAL *)p->g + channel * p->grad.channel + image * p->grad.image;
        REAL *out = (REAL *)p->result + channel * p->out.channel + image * p->out.image;
        REAL *maxima = (REAL *)p->rows + 2 * t * size, *rows = maxima + size;
        int failed = 0;
        for (int64_t i = 0; i < p->height; i++)
            NAME(maxima)(x + i * p->input.row, &p->right, maxima + i * columns, columns);
        NAME(clear)(rows, size);
        for (int64_t i = p->down.out - 1; i >= 0; i--)
            for (int64_t k = last; k >= 0; k -= LONGEST) {
                const int64_t at = i * p->down.stride * columns + k;
                const int64_t count = columns - k < LONGEST ? columns - k : LONGEST;
                failed |=
                    NAME(spread_down)(p, g + i * p->grad.row + k, maxima + at, rows + at, count);
            }
        if (failed) p->failed = 1;
        for (int64_t i = 0; i < p->height; i++) {
            REAL *row = out + i * p->out.row;
            NAME(clear)(row, p->width);
            for (int64_t k = last; k >= 0; k -= LONGEST) {
                const int64_t at = i * columns + k, start = k * p->right.stride;
                NAME(spread_right)(&p->right, x + i * p->input.row + start, maxima + at, rows + at,
                                   row + start, columns - k < LONGEST ? columns - k : LONGEST);
            }
        }
    }
}

/* Write the gradient; return whether it is defined. The arrays are the rows, the gradient of the
 * result, the gradient for the rows, and scratch memory. */
int NAME(spread)(const struct pooling *argument, struct array *const *arrays) {
    struct pooling p = *argument;
    p.x = arrays[0]->data, p.g = arrays[1]->data, p.result = arrays[2]->data;
    p.rows = arrays[3]->data;
    if (NAME(is_pairs)(&p))
        parallel(NAME(spread_rows), &p, p.down.out * p.channels,
                 1 + (1 << 14) / (p.images * p.right.out));
    else {
        const int64_t work = p.down.out * p.right.out * p.down.kernel * p.right.kernel;
        parallel(NAME(spread_lanes), &p, p.channels * p.images, 1 + (1 << 14) / work);
    }
    return !p.failed;
}
