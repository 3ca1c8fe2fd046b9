/* Convolution and its gradients: included for each type, with REAL and NAME.
 *
 * Arrays are laid out as in convolution.py, and products are the same as in its NumPy code: one for
 * each row of the output, or for a part of its images. A thread copies the shifted rows for some
 * rows of the output, and multiplies them while they are in its cache.
 */

/* Copy the rows of images of a channel, shifted by `start`, with zeros outside them. */
static void NAME(shift)(const struct convolution *p, const REAL *x, int64_t start, REAL *out) {
    const int64_t columns = p->right.out, step = p->right.stride, width = p->width;
    const int64_t first = first_inside(p, start), end = end_inside(p, start);
    /* all images as one row */
    if (step == 1 && columns == width && p->input.image == width && first < end) {
        const int64_t before = start < 0 ? -start : 0, after = start > 0 ? start : 0;
        memcpy(out + before, x + after,
               (size_t)(p->together * width - before - after) * sizeof *out);
        for (int64_t n = 0; n < p->together; n++, out += width) {
            for (int64_t k = 0; k < first; k++) out[k] = 0;
            for (int64_t k = end; k < width; k++) out[k] = 0;
        }
        return;
    }
    for (int64_t n = 0; n < p->together; n++, x += p->input.image, out += columns) {
        for (int64_t k = 0; k < first; k++) out[k] = 0;
        if (step == 1)
            for (int64_t k = first; k < end; k++) out[k] = x[start + k];
        else if (step == 2)
            for (int64_t k = first; k < end; k++) out[k] = x[start + 2 * k];
        else
            for (int64_t k = first; k < end; k++) out[k] = x[start + step * k];
        for (int64_t k = end; k < columns; k++) out[k] = 0;
    }
}

/* Return the rows under the kernel for rows of the output and images from `image` on, copied to
 * `out` if necessary. */
static const REAL *NAME(under_kernel)(const struct convolution *p, int64_t begin, int64_t end,
                                      int64_t image, REAL *out) {
    const int64_t size = shifted_size(p);
    const int64_t first = begin * p->down.stride,
                  last = (end - 1) * p->down.stride + p->down.kernel;
    if (p->direct) return (const REAL *)p->x + first * size + image * p->right.out;
    for (int64_t row = first; row < last; row++) {
        REAL *target = out + (row - first) * size;
        if (row < p->top || row >= p->top + p->height) {
            memset(target, 0, (size_t)size * sizeof *target);
            continue;
        }
        const REAL *x = (const REAL *)p->x + (row - p->top) * p->input.row + image * p->input.image;
        for (int64_t c = 0; c < p->channels; c++, x += p->input.channel)
            for (int64_t j = 0; j < p->right.kernel; j++, target += p->pitch)
                NAME(shift)(p, x, j * p->right.dilation - p->left, target);
    }
    return out;
}

static void NAME(multiply)(const struct convolution *p, int64_t image, const REAL *first,
                           const REAL *second, REAL *out) {
    if (p->product.most)
        NAME(multiply_in_place)(&p->product, image * p->right.out, first, second, out);
    else
        call_blas(&p->product, (const char *)first, (const char *)second, (char *)out,
                  p->product.rows, p->product.columns);
}

/* Correlate blocks of rows with parts of the images. */
static void NAME(correlate_blocks)(void *argument, int64_t begin, int64_t end) {
    const struct convolution *p = argument;
    const int64_t part = take_part(p), size = shifted_size(p), outputs = p->product.rows,
                  columns = p->product.columns;
    const int64_t parts = p->images / p->together, all = p->images * p->right.out;
    REAL *scratch = (REAL *)p->rows + part * p->scratch;
    const REAL *bias = p->bias;
    clear_exceptions();
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = t / parts * p->block, image = t % parts * p->together;
        const int64_t last = first + p->block < p->down.out ? first + p->block : p->down.out;
        const REAL *rows = NAME(under_kernel)(p, first, last, image, scratch);
        for (int64_t row = first; row < last; row++, rows += p->down.stride * size) {
            REAL *out = (REAL *)p->result + row * outputs * all + image * p->right.out;
            NAME(multiply)(p, image, p->y, rows, out);
            for (int64_t o = 0; bias && o < outputs; o++, out += all)
                for (int64_t k = 0; k < columns; k++) out[k] += bias[o];
        }
    }
    atomic_fetch_or(&p->progress->raised, exceptions());
    return_part(p, part);
}

/* Correlate rows with a weight of shape (out, kernel height · in · kernel width), and add a bias if
 * there is one. The arrays are the rows, the weight, the result, scratch memory, and the bias.
 *
 * Like the functions below, it returns the floating-point exceptions.
 */
int NAME(correlate)(const struct convolution *argument, struct array *const *arrays,
                    int32_t has_bias) {
    struct convolution p = *argument;
    struct progress progress = {all_parts(p.threads), 0};
    p.progress = &progress;
    p.x = arrays[0]->data, p.y = arrays[1]->data, p.result = arrays[2]->data;
    p.rows = whole_lines(arrays[3]);
    p.bias = has_bias ? arrays[4]->data : NULL;
    if (!p.product.most) begin_products();
    parallel_on(p.threads, NAME(correlate_blocks), &p,
                (p.down.out + p.block - 1) / p.block * (p.images / p.together), 1);
    if (!p.product.most) end_products();
    return progress.raised;
}

static void NAME(weight_rows)(void *argument, int64_t begin, int64_t end) {
    const struct convolution *p = argument;
    const int64_t part = take_part(p), size = shifted_size(p), inner = p->product.inner;
    REAL *scratch = (REAL *)p->rows + part * p->scratch;
    clear_exceptions();
    for (int64_t i = begin; i < end; i += p->block) {
        const int64_t last = i + p->block < end ? i + p->block : end;
        const REAL *rows = NAME(under_kernel)(p, i, last, 0, scratch);
        for (int64_t row = i; row < last; row++, rows += p->down.stride * size) {
            const REAL *g = (const REAL *)p->y + row * p->product.columns * inner;
            REAL *out = (REAL *)p->result + row * p->product.rows * p->product.columns;
            if (!p->product.most) NAME(multiply)(p, 0, rows, g, out);
            else
                NAME(multiply_packed)(&p->product, 0, p->product.rows, rows, g, scratch + p->panels,
                                      out);
        }
    }
    atomic_fetch_or(&p->progress->raised, exceptions());
    return_part(p, part);
}

/* Add up all rows of the output in the first. */
static void NAME(add_rows)(void *argument, int64_t begin, int64_t end) {
    const struct convolution *p = argument;
    REAL *restrict out = p->result;
    clear_exceptions();
    for (int64_t row = 1; row < p->down.out; row++) {
        const REAL *restrict x =
            (const REAL *)p->result + row * p->product.rows * p->product.columns;
        for (int64_t k = begin; k < end; k++) out[k] += x[k];
    }
    atomic_fetch_or(&p->progress->raised, exceptions());
}

/* Compute the gradient for the weight, of shape (kernel height · in · kernel width, out), from rows
 * of gradients.
 *
 * The arrays are the rows, the gradients, the result, and scratch memory. The result has a matrix
 * for each row of the output; the first becomes the gradient.
 */
int NAME(weight_gradient)(const struct convolution *argument, struct array *const *arrays) {
    struct convolution p = *argument;
    struct progress progress = {all_parts(p.threads), 0};
    p.progress = &progress;
    p.x = arrays[0]->data, p.y = arrays[1]->data, p.result = arrays[2]->data;
    p.rows = whole_lines(arrays[3]);
    if (!p.product.most) begin_products();
    parallel_on(p.threads, NAME(weight_rows), &p, p.down.out, p.block);
    if (!p.product.most) end_products();
    parallel_on(p.threads, NAME(add_rows), &p, p.product.rows * p.product.columns,
                1 + (1 << 15) / p.down.out);
    return progress.raised;
}

static void NAME(scatter_products)(void *argument, int64_t begin, int64_t end) {
    const struct convolution *p = argument;
    const int64_t columns = p->right.out;
    clear_exceptions();
    for (int64_t row = begin; row < end; row++)
        NAME(multiply)(p, p->image, p->y,
                       (const REAL *)p->x +
                           (row * p->product.inner * p->images + p->image) * columns,
                       (REAL *)p->rows + row * p->product.rows * p->product.columns);
    atomic_fetch_or(&p->progress->raised, exceptions());
}

/* Add up, by channel, what rows of the output contribute to rows of the input: first down, then
 * along the rows. */
static void NAME(scatter_rows)(void *argument, int64_t begin, int64_t end) {
    const struct convolution *p = argument;
    const int64_t columns = p->right.out, size = p->together * columns, wide = p->right.kernel,
                  step = p->right.stride;
    const int64_t high = p->down.kernel, down = p->down.stride;
    const int64_t most = LONGEST > columns ? LONGEST / columns : 1; /* images at a time */
    REAL sums[LONGEST];
    clear_exceptions();
    for (int64_t t = begin; t < end; t++) {
        const int64_t channel = t % p->channels,
                      under = t / p->channels + p->top; /* index of the padded row */
        const int64_t first = under < high ? 0 : (under - high) / down + 1;
        const int64_t last = under / down < p->down.out - 1 ? under / down : p->down.out - 1;
        REAL *out = (REAL *)p->result + (t * p->images + p->image) * p->width;
        memset(out, 0, (size_t)(p->together * p->width) * sizeof *out);
        for (int64_t j = 0; j < wide && first <= last; j++) {
            const int64_t start = j * p->right.dilation - p->left;
            const int64_t begin_column = first_inside(p, start), end_column = end_inside(p, start);
            for (int64_t n = 0; n < p->together; n += most) {
                const int64_t images = p->together - n < most ? p->together - n : most;
                for (int64_t k = 0; k < columns; k += LONGEST) {
                    const int64_t rest = columns - k < LONGEST ? columns - k : LONGEST,
                                  count = images * rest;
                    for (int64_t i = first; i <= last; i++) {
                        const int64_t row = ((under - i * down) * p->channels + channel) * wide + j;
                        const REAL *x = (const REAL *)p->rows + (i * p->product.rows + row) * size +
                                        n * columns + k;
                        if (i == first) memcpy(sums, x, (size_t)count * sizeof *sums);
                        else
                            for (int64_t l = 0; l < count; l++) sums[l] += x[l];
                    }
                    const int64_t from = k > begin_column ? k : begin_column;
                    const int64_t to = k + rest < end_column ? k + rest : end_column;
                    for (int64_t m = 0; m < images && from < to; m++) {
                        const REAL *x = sums + m * rest + from - k;
                        REAL *target = out + (n + m) * p->width + start + from * step;
                        if (step == 1)
                            for (int64_t l = 0; l < to - from; l++) target[l] += x[l];
                        else
                            for (int64_t l = 0; l < to - from; l++) target[l * step] += x[l];
                    }
                }
            }
        }
    }
    atomic_fetch_or(&p->progress->raised, exceptions());
}

/* Scatter parts of the images; a single part is itself shared out. */
static void NAME(scatter_parts)(void *argument, int64_t begin, int64_t end) {
    struct convolution p = *(const struct convolution *)argument;
    const int64_t part = take_part(&p);
    const int64_t work =
        p.together * p.right.out * p.right.kernel * (1 + p.down.kernel / p.down.stride);
    p.rows = (REAL *)p.rows + part * p.scratch;
    for (int64_t t = begin; t < end; t++) {
        p.image = t * p.together;
        parallel_on(p.threads, NAME(scatter_products), &p, p.down.out, 1);
        parallel_on(p.threads, NAME(scatter_rows), &p, p.height * p.channels, 1 + (1 << 14) / work);
    }
    return_part(&p, part);
}

/* Compute the transpose of a correlation. The arrays are the rows of gradients, the same weight,
 * the result, and scratch memory, which has the products. */
int NAME(scatter)(const struct convolution *argument, struct array *const *arrays) {
    struct convolution p = *argument;
    struct progress progress = {all_parts(p.threads), 0};
    p.progress = &progress;
    p.x = arrays[0]->data, p.y = arrays[1]->data, p.result = arrays[2]->data;
    p.rows = whole_lines(arrays[3]);
    if (!p.product.most) begin_products();
    parallel_on(p.threads, NAME(scatter_parts), &p, p.images / p.together, 1);
    if (!p.product.most) end_products();
    return progress.raised;
}
