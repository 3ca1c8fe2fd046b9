/* Arguments of recurrent.c and gru.c. */

#define BLOCK 1024 /* numbers in a block of rows of a state */

struct lstm_steps {
    struct product product; /* product of all rows of a state with the weight */
    struct loop exp, tanh;
    int64_t steps, reverse, rows; /* `rows` is for one thread */
    int64_t x_step, x_row;        /* elements from step to step, and from row to row */
    const void *x, *weight, *h, *c;
    void *states, *cells, *gates;
    void *scratch; /* two arrays with the shape of a product */
    void *panels;  /* memory for the weight */
    _Atomic int32_t *raised;
};

struct lstm_gradient {
    struct product product; /* product of all rows of a step's gradient with the weight */
    struct loop tanh;
    int64_t steps, reverse, rows;
    int64_t g_step, g_row;
    const void *g_states, *weight, *c, *cells, *gates;
    void *gradient, *dh, *dc;
    void *scratch; /* an array with the shape of a state */
    void *panels;
    _Atomic int32_t *raised;
};

struct gru_steps {
    struct product product; /* product of all rows of a state with the weight */
    struct loop exp, tanh;
    int64_t steps, reverse, rows; /* `rows` is for one thread */
    int64_t x_step, x_row;
    const void *x, *weight, *h, *bias;
    void *states, *gates;
    void *scratch; /* two arrays with the shape of a product */
    void *panels;  /* memory for the weight */
    _Atomic int32_t *raised;
};

struct gru_gradient {
    struct product product; /* product of all rows of a step's gradient with the weight */
    int64_t steps, reverse, rows;
    int64_t g_step, g_row;
    const void *g, *weight, *h, *states, *gates;
    void *of_input, *of_state, *dh;
    void *scratch; /* an array with the shape of a state */
    void *panels;
    _Atomic int32_t *raised;
};

static int64_t block_rows(int64_t width) { return width < BLOCK ? BLOCK / width : 1; }

/* Call a NumPy loop. It may clear exceptions, so add the current ones to `found` before. */
static void call_loop(const struct loop *loop, const void *x, void *out, int64_t size,
                      intptr_t item, int32_t *found) {
    FENCE();
    *found |= exceptions();
    char *arrays[] = {(char *)x, out};
    const intptr_t count = size, strides[] = {item, item};
    loop->function(arrays, &count, strides, loop->data);
}
