/* Inner loops of NumPy, shared out over the threads of the pool. */

struct shared_loop {
    const struct loop *loop;
    char **operands;
    int64_t count, item;
};

enum { MOST_OPERANDS = 4 };

static void loop_over(void *argument, int64_t begin, int64_t end) {
    const struct shared_loop *x = argument;
    char *operands[MOST_OPERANDS];
    intptr_t size = (intptr_t)(end - begin), steps[MOST_OPERANDS];
    for (int64_t i = 0; i < x->count; i++) {
        operands[i] = x->operands[i] + begin * x->item;
        steps[i] = (intptr_t)x->item;
    }
    clear_exceptions();
    x->loop->function(operands, &size, steps, x->loop->data);
    atomic_fetch_or(&raised, exceptions());
}

/* Call a loop of NumPy for contiguous operands of one dtype, the result last. */
void loop(const struct loop *loop, char **operands, int64_t count, int64_t size, int64_t item) {
    struct shared_loop x = {loop, operands, count, item};
    parallel(loop_over, &x, size, 1 << 12);
}
