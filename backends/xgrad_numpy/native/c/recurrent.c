/* LSTMs over all time steps, forward and backward, with the bits of xgrad_numpy/recurrent.py.
 *
 * Threads own rows of the batch for the whole sequence, so no thread waits for another after each
 * step. A step begins (forward) or ends (backward) with a product of these rows. Its arithmetic is
 * in blocks of rows, whose temporaries stay in the cache.
 */

/* Multiply some rows, the first of which is `row`, by the weight: in panels, or by BLAS. */
static void NAME(multiply_by_weight)(const struct product *x, int64_t row, int64_t rows,
                                     const REAL *first, const void *weight, const void *panels,
                                     REAL *out) {
    if (x->most) NAME(multiply_panels)(x, row, rows, first, panels, out);
    else call_blas(x, (const char *)first, weight, (char *)out, rows, x->columns);
}

/* Write `product - x` of a row to a plane for each gate, with the cell's candidate last. */
static void NAME(subtract)(int64_t n, int64_t plane, const REAL *restrict product,
                           const REAL *restrict x, REAL *restrict z) {
    static const int plane_of[] = {0, 1, 3, 2};
    for (int k = 0; k < 4; k++) {
        REAL *restrict out = z + plane_of[k] * plane;
        for (int64_t j = 0; j < n; j++) out[j] = product[k * n + j] - x[k * n + j];
    }
}

/* Write the gates and the cells, given planes of exp(-input) for the logistic gates, and of the
 * negated candidate. */
static void NAME(finish_gates)(int64_t size, const REAL *restrict z, const REAL *restrict before,
                               REAL *restrict i, REAL *restrict f, REAL *restrict g,
                               REAL *restrict o, REAL *restrict cell) {
    for (int64_t j = 0; j < size; j++) {
        const REAL input = 1 / (z[j] + 1), forget = 1 / (z[size + j] + 1),
                   candidate = z[3 * size + j];
        i[j] = input;
        f[j] = forget;
        g[j] = -candidate;
        o[j] = 1 / (z[2 * size + j] + 1);
        cell[j] = forget * before[j] - input * candidate;
    }
}

static void NAME(multiply_states)(int64_t size, const REAL *restrict x, const REAL *restrict y,
                                  REAL *restrict out) {
    for (int64_t j = 0; j < size; j++) out[j] = x[j] * y[j];
}

static void NAME(step_rows)(void *argument, int64_t begin, int64_t end) {
    const struct lstm_steps *a = argument;
    const int64_t n = a->product.inner, batch = a->product.rows, size = batch * n,
                  rows = block_rows(n);
    REAL *product = (REAL *)a->scratch + begin * 4 * n, *z = product + 4 * size;
    const REAL *h = (const REAL *)a->h + begin * n, *c = a->c;
    int32_t found = 0;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? a->steps - 1 - s : s;
        const REAL *x = (const REAL *)a->x + t * a->x_step;
        REAL *states = (REAL *)a->states + t * size, *cells = (REAL *)a->cells + t * size;
        REAL *gates = (REAL *)a->gates + t * 4 * size;
        NAME(multiply_by_weight)(&a->product, begin, end - begin, h, a->weight, a->panels, product);
        for (int64_t b = begin; b < end; b += rows) {
            const int64_t count = end - b < rows ? end - b : rows, plane = count * n,
                          offset = b * n;
            for (int64_t k = 0; k < count; k++)
                NAME(subtract)(n, plane, product + (b - begin + k) * 4 * n, x + (b + k) * a->x_row,
                               z + k * n);
            call_loop(&a->exp, z, z, 3 * plane, sizeof(REAL), &found);
            call_loop(&a->tanh, z + 3 * plane, z + 3 * plane, plane, sizeof(REAL), &found);
            REAL *i = gates + offset;
            NAME(finish_gates)(plane, z, c + offset, i, i + size, i + 2 * size, i + 3 * size,
                               cells + offset);
            call_loop(&a->tanh, cells + offset, z, plane, sizeof(REAL), &found);
            NAME(multiply_states)(plane, gates + 3 * size + offset, z, states + offset);
        }
        h = states + begin * n;
        c = cells;
    }
    FENCE();
    /* exp(-input) may overflow: 1 / (1 + inf) is right */
    atomic_fetch_or(a->raised, (found | exceptions()) & ~OVERFLOWN);
}

void NAME(lstm_steps)(struct lstm_steps *a) {
    if (a->product.most) NAME(pack)(&a->product, a->weight, a->panels);
    if (!a->product.most) begin_products();
    parallel(NAME(step_rows), a, a->product.rows, a->rows);
    if (!a->product.most) end_products();
}

/* Write the gradients of the inputs of a row's gates. Replace the gradient of the cell by the
 * gradient of the cell before. */
static void NAME(pass_gates)(int64_t n, const REAL *restrict g_state, const REAL *restrict squashed,
                             const REAL *restrict before, const REAL *restrict i,
                             const REAL *restrict f, const REAL *restrict g, const REAL *restrict o,
                             const REAL *restrict dh, REAL *restrict dc, REAL *restrict di,
                             REAL *restrict df, REAL *restrict dg, REAL *restrict d_o) {
    for (int64_t j = 0; j < n; j++) {
        const REAL state = dh[j] + g_state[j], y = squashed[j];
        const REAL cell = dc[j] + (1 - y * y) * o[j] * state;
        di[j] = cell * g[j] * ((1 - i[j]) * i[j]);
        df[j] = cell * before[j] * ((1 - f[j]) * f[j]);
        dg[j] = cell * i[j] * (1 - g[j] * g[j]);
        d_o[j] = state * y * ((1 - o[j]) * o[j]);
        dc[j] = cell * f[j];
    }
}

static void NAME(gradient_rows)(void *argument, int64_t begin, int64_t end) {
    const struct lstm_gradient *a = argument;
    const int64_t n = a->product.columns, batch = a->product.rows, size = batch * n,
                  rows = block_rows(n);
    REAL *squashed = (REAL *)a->scratch + begin * n;
    REAL *dh = a->dh, *dc = a->dc;
    int32_t found = 0;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? s : a->steps - 1 - s, last = s == a->steps - 1;
        const REAL *g_states = (const REAL *)a->g_states + t * a->g_step,
                   *cells = (const REAL *)a->cells + t * size;
        const REAL *before = last ? a->c : a->reverse ? cells + size : cells - size;
        const REAL *gates = (const REAL *)a->gates + t * 4 * size;
        REAL *gradient = (REAL *)a->gradient + t * 4 * size;
        for (int64_t b = begin; b < end; b += rows) {
            const int64_t count = end - b < rows ? end - b : rows;
            call_loop(&a->tanh, cells + b * n, squashed, count * n, sizeof(REAL), &found);
            for (int64_t k = b; k < b + count; k++) {
                const REAL *i = gates + k * n;
                REAL *di = gradient + k * 4 * n;
                NAME(pass_gates)(n, g_states + k * a->g_row, squashed + (k - b) * n, before + k * n,
                                 i, i + size, i + 2 * size, i + 3 * size, dh + k * n, dc + k * n,
                                 di, di + n, di + 2 * n, di + 3 * n);
            }
        }
        NAME(multiply_by_weight)(&a->product, begin, end - begin, gradient + begin * 4 * n,
                                 a->weight, a->panels, dh + begin * n);
    }
    FENCE();
    atomic_fetch_or(a->raised, found | exceptions());
}

void NAME(lstm_gradient)(struct lstm_gradient *a) {
    if (a->product.most) NAME(pack)(&a->product, a->weight, a->panels);
    if (!a->product.most) begin_products();
    parallel(NAME(gradient_rows), a, a->product.rows, a->rows);
    if (!a->product.most) end_products();
}
