/* LSTMs over all time steps, forward and backward, with the bits of xgrad_numpy/recurrent.py.
 *
 * Threads own rows of the batch for the whole sequence, so that none waits for another one after each step. A step is
 * a product of these rows, or ends with one, and arithmetic in blocks of rows, whose temporaries stay in the cache.
 *
 * The runtime has this source twice: for float, and then for double, as it has panels.c.
 */

#if !defined(BLOCK)
#define BLOCK 1024 /* numbers in a block of rows of a state */

struct lstm_steps {
    struct product product; /* of all rows of a state and the weight */
    struct loop exp, tanh;
    int64_t steps, reverse, rows; /* the rows that one thread takes */
    int64_t x_step, x_row;        /* elements from step to step, and from row to row */
    int64_t most;                 /* see panels.c; 0 for products by BLAS */
    const void *x, *weight, *h, *c;
    void *states, *cells, *gates;
    void *scratch; /* two arrays of the shape of a product */
    void *panels;  /* memory for the weight */
    _Atomic int32_t *raised;
};

struct lstm_gradient {
    struct product product; /* of all rows of a step's gradient and the weight */
    struct loop tanh;
    int64_t steps, reverse, rows;
    int64_t g_step, g_row, most;
    const void *g_states, *weight, *c, *cells, *gates;
    void *gradient, *dh, *dc;
    void *scratch; /* of the shape of a state */
    void *panels;
    _Atomic int32_t *raised;
};

static int64_t block_rows(int64_t width) { return width < BLOCK ? BLOCK / width : 1; }

/* Loops of NumPy may clear exceptions, which are therefore added to those `found`. */
static void call_loop(const struct loop *loop, const void *x, void *out, int64_t size, intptr_t item, int32_t *found) {
    FENCE();
    *found |= exceptions();
    char *arrays[] = {(char *)x, out};
    const intptr_t count = size, strides[] = {item, item};
    loop->function(arrays, &count, strides, loop->data);
}
#endif

/* Multiply some rows by the weight: in panels, or else, if `most` is 0, by BLAS. */
static void OF_TYPE(multiply_by_weight)(const struct product *x, int64_t rows, const real *first, const void *weight,
                                        const void *panels, int64_t most, real *out) {
    if (most) OF_TYPE(multiply_panels)(x, rows, first, panels, most, out);
    else call_blas(x, (const char *)first, weight, (char *)out, rows, x->columns);
}

/* Write `product - x` of a row to a plane for each gate: of all but the cell's candidate, and last of that. */
static void OF_TYPE(subtract)(int64_t n, int64_t plane, const real *restrict product, const real *restrict x,
                              real *restrict z) {
    static const int plane_of[] = {0, 1, 3, 2};
    for (int k = 0; k < 4; k++) {
        real *restrict out = z + plane_of[k] * plane;
        for (int64_t j = 0; j < n; j++) out[j] = product[k * n + j] - x[k * n + j];
    }
}

/* Write the gates and the cells: of planes of exp(-input) for the logistic gates, and of the negative candidate. */
static void OF_TYPE(finish_gates)(int64_t size, const real *restrict z, const real *restrict before, real *restrict i,
                                  real *restrict f, real *restrict g, real *restrict o, real *restrict cell) {
    for (int64_t j = 0; j < size; j++) {
        const real input = 1 / (z[j] + 1), forget = 1 / (z[size + j] + 1), candidate = z[3 * size + j];
        i[j] = input;
        f[j] = forget;
        g[j] = -candidate;
        o[j] = 1 / (z[2 * size + j] + 1);
        cell[j] = forget * before[j] - input * candidate;
    }
}

static void OF_TYPE(multiply)(int64_t size, const real *restrict x, const real *restrict y, real *restrict out) {
    for (int64_t j = 0; j < size; j++) out[j] = x[j] * y[j];
}

static void OF_TYPE(step_rows)(void *argument, int64_t begin, int64_t end) {
    const struct lstm_steps *a = argument;
    const int64_t n = a->product.inner, batch = a->product.rows, size = batch * n, rows = block_rows(n);
    real *product = (real *)a->scratch + begin * 4 * n, *z = product + 4 * size;
    const real *h = (const real *)a->h + begin * n, *c = a->c;
    int32_t found = 0;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? a->steps - 1 - s : s;
        const real *x = (const real *)a->x + t * a->x_step;
        real *states = (real *)a->states + t * size, *cells = (real *)a->cells + t * size;
        real *gates = (real *)a->gates + t * 4 * size;
        OF_TYPE(multiply_by_weight)(&a->product, end - begin, h, a->weight, a->panels, a->most, product);
        for (int64_t b = begin; b < end; b += rows) {
            const int64_t count = end - b < rows ? end - b : rows, plane = count * n, offset = b * n;
            for (int64_t k = 0; k < count; k++)
                OF_TYPE(subtract)(n, plane, product + (b - begin + k) * 4 * n, x + (b + k) * a->x_row, z + k * n);
            call_loop(&a->exp, z, z, 3 * plane, sizeof(real), &found);
            call_loop(&a->tanh, z + 3 * plane, z + 3 * plane, plane, sizeof(real), &found);
            real *i = gates + offset;
            OF_TYPE(finish_gates)(plane, z, c + offset, i, i + size, i + 2 * size, i + 3 * size, cells + offset);
            call_loop(&a->tanh, cells + offset, z, plane, sizeof(real), &found);
            OF_TYPE(multiply)(plane, gates + 3 * size + offset, z, states + offset);
        }
        h = states + begin * n;
        c = cells;
    }
    FENCE();
    atomic_fetch_or(a->raised, (found | exceptions()) & ~OVERFLOWN); /* in exp(-input): 1 / (1 + inf) is right */
}

void OF_TYPE(lstm_steps)(struct lstm_steps *a) {
    if (a->most) OF_TYPE(pack)(&a->product, a->weight, a->panels);
    begin_products();
    parallel(OF_TYPE(step_rows), a, a->product.rows, a->rows);
    end_products();
}

/* Write the gradients of the inputs of a row's gates, and replace the cell's gradient by that of the cell before. */
static void OF_TYPE(pass_gates)(int64_t n, const real *restrict g_state, const real *restrict squashed,
                                const real *restrict before, const real *restrict i, const real *restrict f,
                                const real *restrict g, const real *restrict o, const real *restrict dh,
                                real *restrict dc, real *restrict di, real *restrict df, real *restrict dg,
                                real *restrict d_o) {
    for (int64_t j = 0; j < n; j++) {
        const real state = dh[j] + g_state[j], y = squashed[j];
        const real cell = dc[j] + (1 - y * y) * o[j] * state;
        di[j] = cell * g[j] * ((1 - i[j]) * i[j]);
        df[j] = cell * before[j] * ((1 - f[j]) * f[j]);
        dg[j] = cell * i[j] * (1 - g[j] * g[j]);
        d_o[j] = state * y * ((1 - o[j]) * o[j]);
        dc[j] = cell * f[j];
    }
}

static void OF_TYPE(gradient_rows)(void *argument, int64_t begin, int64_t end) {
    const struct lstm_gradient *a = argument;
    const int64_t n = a->product.columns, batch = a->product.rows, size = batch * n, rows = block_rows(n);
    real *squashed = (real *)a->scratch + begin * n;
    real *dh = a->dh, *dc = a->dc;
    int32_t found = 0;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? s : a->steps - 1 - s, last = s == a->steps - 1;
        const real *g_states = (const real *)a->g_states + t * a->g_step, *cells = (const real *)a->cells + t * size;
        const real *before = last ? a->c : a->reverse ? cells + size : cells - size;
        const real *gates = (const real *)a->gates + t * 4 * size;
        real *gradient = (real *)a->gradient + t * 4 * size;
        for (int64_t b = begin; b < end; b += rows) {
            const int64_t count = end - b < rows ? end - b : rows;
            call_loop(&a->tanh, cells + b * n, squashed, count * n, sizeof(real), &found);
            for (int64_t k = b; k < b + count; k++) {
                const real *i = gates + k * n;
                real *di = gradient + k * 4 * n;
                OF_TYPE(pass_gates)(n, g_states + k * a->g_row, squashed + (k - b) * n, before + k * n, i, i + size,
                                    i + 2 * size, i + 3 * size, dh + k * n, dc + k * n, di, di + n, di + 2 * n,
                                    di + 3 * n);
            }
        }
        OF_TYPE(multiply_by_weight)(&a->product, end - begin, gradient + begin * 4 * n, a->weight, a->panels, a->most,
                                    dh + begin * n);
    }
    FENCE();
    atomic_fetch_or(a->raised, found | exceptions());
}

void OF_TYPE(lstm_gradient)(struct lstm_gradient *a) {
    if (a->most) OF_TYPE(pack)(&a->product, a->weight, a->panels);
    begin_products();
    parallel(OF_TYPE(gradient_rows), a, a->product.rows, a->rows);
    end_products();
}
