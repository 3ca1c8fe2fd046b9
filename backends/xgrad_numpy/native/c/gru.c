/* GRUs over all time steps, forward and backward, with the bits of xgrad_numpy/recurrent.py.
 *
 * As in recurrent.c, threads own rows of the batch for the whole sequence. The weight and the bias
 * of the forward pass are negated: the logistic function of a gate is 1 / (1 + exp(-input)).
 */

/* Write -input of the reset and the update gate to two planes, and the state's part of the
 * candidate to `part`. */
static void NAME(gru_inputs)(int64_t n, int64_t plane, const REAL *restrict product,
                             const REAL *restrict bias, const REAL *restrict x, REAL *restrict z,
                             REAL *restrict part) {
    for (int k = 0; k < 2; k++) {
        REAL *restrict out = z + k * plane;
        for (int64_t j = 0; j < n; j++)
            out[j] = product[k * n + j] + bias[k * n + j] - x[k * n + j];
    }
    for (int64_t j = 0; j < n; j++) part[j] = -(product[2 * n + j] + bias[2 * n + j]);
}

/* Write the two gates, given planes of exp(-input). */
static void NAME(gru_gates)(int64_t size, const REAL *restrict z, REAL *restrict reset,
                            REAL *restrict update) {
    for (int64_t j = 0; j < size; j++) {
        reset[j] = 1 / (z[j] + 1);
        update[j] = 1 / (z[size + j] + 1);
    }
}

/* Write the input of a row's candidate; `x` is the projected input's part of it. */
static void NAME(gru_candidate)(int64_t n, const REAL *restrict reset, const REAL *restrict part,
                                const REAL *restrict x, REAL *restrict candidate) {
    for (int64_t j = 0; j < n; j++) candidate[j] = reset[j] * part[j] + x[j];
}

static void NAME(gru_state)(int64_t size, const REAL *restrict before, const REAL *restrict update,
                            const REAL *restrict candidate, REAL *restrict state) {
    for (int64_t j = 0; j < size; j++)
        state[j] = candidate[j] + update[j] * (before[j] - candidate[j]);
}

static void NAME(gru_rows)(void *argument, int64_t begin, int64_t end) {
    const struct gru_steps *a = argument;
    const int64_t n = a->product.inner, batch = a->product.rows, size = batch * n,
                  rows = block_rows(n);
    REAL *product = (REAL *)a->scratch + begin * 3 * n, *z = product + 3 * size;
    const REAL *h = a->h, *bias = a->bias;
    int32_t found = 0;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? a->steps - 1 - s : s;
        const REAL *x = (const REAL *)a->x + t * a->x_step;
        REAL *states = (REAL *)a->states + t * size, *gates = (REAL *)a->gates + t * 4 * size;
        NAME(multiply_by_weight)(&a->product, begin, end - begin, h + begin * n, a->weight,
                                 a->panels, product);
        for (int64_t b = begin; b < end; b += rows) {
            const int64_t count = end - b < rows ? end - b : rows, plane = count * n,
                          offset = b * n;
            REAL *reset = gates + offset, *update = reset + size, *candidate = update + size,
                 *part = candidate + size;
            for (int64_t k = 0; k < count; k++)
                NAME(gru_inputs)(n, plane, product + (b - begin + k) * 3 * n, bias,
                                 x + (b + k) * a->x_row, z + k * n, part + k * n);
            call_loop(&a->exp, z, z, 2 * plane, sizeof(REAL), &found);
            NAME(gru_gates)(plane, z, reset, update);
            for (int64_t k = 0; k < count; k++)
                NAME(gru_candidate)(n, reset + k * n, part + k * n, x + (b + k) * a->x_row + 2 * n,
                                    candidate + k * n);
            call_loop(&a->tanh, candidate, candidate, plane, sizeof(REAL), &found);
            NAME(gru_state)(plane, h + offset, update, candidate, states + offset);
        }
        h = states;
    }
    FENCE();
    /* exp(-input) may overflow: 1 / (1 + inf) is right */
    atomic_fetch_or(a->raised, (found | exceptions()) & ~OVERFLOWN);
}

void NAME(gru_steps)(struct gru_steps *a) {
    if (a->product.most) NAME(pack)(&a->product, a->weight, a->panels);
    if (!a->product.most) begin_products();
    parallel(NAME(gru_rows), a, a->product.rows, a->rows);
    if (!a->product.most) end_products();
}

/* Write the gradients of a row's projected input and projected state. Replace `dh`, the gradient of
 * the state, by its part that passes through the update gate to the state before. */
static void NAME(pass_gru_gates)(int64_t n, const REAL *restrict g, const REAL *restrict before,
                                 const REAL *restrict reset, const REAL *restrict update,
                                 const REAL *restrict candidate, const REAL *restrict part,
                                 REAL *restrict dh, REAL *restrict of_input,
                                 REAL *restrict of_state) {
    for (int64_t j = 0; j < n; j++) {
        const REAL state = dh[j] + g[j], r = reset[j], z = update[j], c = candidate[j];
        const REAL of_candidate = state * (1 - z) * (1 - c * c);
        const REAL of_reset = of_candidate * part[j] * ((1 - r) * r);
        const REAL of_update = state * (before[j] - c) * ((1 - z) * z);
        of_input[j] = of_state[j] = of_reset;
        of_input[n + j] = of_state[n + j] = of_update;
        of_input[2 * n + j] = of_candidate;
        of_state[2 * n + j] = of_candidate * r;
        dh[j] = state * z;
    }
}

static void NAME(gru_gradient_rows)(void *argument, int64_t begin, int64_t end) {
    const struct gru_gradient *a = argument;
    const int64_t n = a->product.columns, batch = a->product.rows, size = batch * n;
    REAL *through_gates = (REAL *)a->scratch + begin * n, *dh = a->dh;
    clear_exceptions();
    FENCE();
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t t = a->reverse ? s : a->steps - 1 - s, last = s == a->steps - 1;
        const REAL *g = (const REAL *)a->g + t * a->g_step,
                   *states = (const REAL *)a->states + t * size;
        const REAL *before = last ? a->h : a->reverse ? states + size : states - size;
        const REAL *gates = (const REAL *)a->gates + t * 4 * size;
        REAL *of_input = (REAL *)a->of_input + t * 3 * size,
             *of_state = (REAL *)a->of_state + t * 3 * size;
        for (int64_t k = begin; k < end; k++) {
            const REAL *reset = gates + k * n;
            NAME(pass_gru_gates)(n, g + k * a->g_row, before + k * n, reset, reset + size,
                                 reset + 2 * size, reset + 3 * size, dh + k * n,
                                 of_input + k * 3 * n, of_state + k * 3 * n);
        }
        NAME(multiply_by_weight)(&a->product, begin, end - begin, of_state + begin * 3 * n,
                                 a->weight, a->panels, through_gates);
        for (int64_t j = 0; j < (end - begin) * n; j++) dh[begin * n + j] += through_gates[j];
    }
    FENCE();
    atomic_fetch_or(a->raised, exceptions());
}

void NAME(gru_gradient)(struct gru_gradient *a) {
    if (a->product.most) NAME(pack)(&a->product, a->weight, a->panels);
    if (!a->product.most) begin_products();
    parallel(NAME(gru_gradient_rows), a, a->product.rows, a->rows);
    if (!a->product.most) end_products();
}
