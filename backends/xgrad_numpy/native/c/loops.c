/* NumPy's inner loops, shared out over the threads of the pool. */

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
    clear_all_exceptions();
    x->loop->function(operands, &size, steps, x->loop->data);
    note(all_exceptions());
}

/* Call a NumPy loop for contiguous operands of one dtype, the result last. */
void loop(const struct loop *loop, char **operands, int64_t count, int64_t size, int64_t item) {
    struct shared_loop x = {loop, operands, count, item};
    parallel(loop_over, &x, size, 1 << 12);
}

struct rows_of_loop {
    const struct loop *loop;
    char **operands;
    int64_t size, item;
};

static void dots_of_rows(void *argument, int64_t begin, int64_t end) {
    const struct rows_of_loop *x = argument;
    const intptr_t item = (intptr_t)x->item, row = (intptr_t)(x->size * x->item);
    const intptr_t sizes[] = {(intptr_t)(end - begin), (intptr_t)x->size},
                   steps[] = {row, row, item, item, item};
    char *operands[] = {x->operands[0] + begin * row, x->operands[1] + begin * row,
                        x->operands[2] + begin * item};
    clear_exceptions();
    x->loop->function(operands, sizes, steps, x->loop->data);
    note(exceptions());
}

/* Write the dot products of the rows of two matrices, by the loop of NumPy's `vecdot`. */
void dots(const struct loop *loop, char **operands, int64_t rows, int64_t size, int64_t item) {
    struct rows_of_loop x = {loop, operands, size, item};
    parallel(dots_of_rows, &x, rows, 1 + (1 << 13) / size);
}

/* A reduction over axes. NumPy's loop reduces if its first operand is its result. */
struct reduction {
    const struct loop *loop;
    const char *x;
    char *out;
    int64_t outer, middle, inner, item; /* lengths of three axes, and bytes of an element */
    int64_t starts_at_0;                /* as sums do; others start with the first elements */
};

/* Reduce elements from `first` on into one result, or several, which are `out_step` bytes apart. */
static void reduce_into(const struct reduction *x, char *out, int64_t first, int64_t count,
                        int64_t out_step) {
    char *operands[] = {out, (char *)(uintptr_t)(x->x + first * x->item), out};
    const intptr_t size = (intptr_t)count,
                   steps[] = {(intptr_t)out_step, (intptr_t)x->item, (intptr_t)out_step};
    x->loop->function(operands, &size, steps, x->loop->data);
}

/* Write the initial values of results. Return 1 if these are the first elements, which are then
 * done, else 0. */
static int64_t start(const struct reduction *x, char *out, int64_t first, int64_t count) {
    if (x->starts_at_0) memset(out, 0, (size_t)(count * x->item));
    else memcpy(out, x->x + first * x->item, (size_t)(count * x->item));
    return !x->starts_at_0;
}

/* Reduce over the outer and the inner axis. */
static void reduce_ends(void *argument, int64_t begin, int64_t end) {
    const struct reduction *x = argument;
    clear_exceptions();
    for (int64_t k = begin; k < end; k++) {
        char *const out = x->out + k * x->item;
        int64_t done = start(x, out, k * x->inner, 1);
        for (int64_t i = 0; i < x->outer; i++, done = 0)
            if (done < x->inner)
                reduce_into(x, out, (i * x->middle + k) * x->inner + done, x->inner - done, 0);
    }
    note(exceptions());
}

/* Reduce over the middle axis, for a range of the outer and inner axes together. */
static void reduce_middle(void *argument, int64_t begin, int64_t end) {
    const struct reduction *x = argument;
    clear_exceptions();
    for (int64_t at = begin; at < end;) {
        const int64_t i = at / x->inner, k = at % x->inner, left = end - at;
        const int64_t count = left < x->inner - k ? left : x->inner - k,
                      first = i * x->middle * x->inner + k;
        char *const out = x->out + at * x->item;
        for (int64_t l = start(x, out, first, count); l < x->middle; l++)
            reduce_into(x, out, first + l * x->inner, count, x->item);
        at += count;
    }
    note(exceptions());
}

/* Reduce over the middle one of three axes, or over the outer and the inner one. */
void reduce(const struct loop *loop, const char *x, char *out, int64_t outer, int64_t middle,
            int64_t inner, int64_t of_middle, int64_t item, int64_t starts_at_0) {
    struct reduction reduction = {loop, x, out, outer, middle, inner, item, starts_at_0};
    const int64_t reduced = of_middle ? middle : outer * inner,
                  results = of_middle ? outer * inner : middle;
    parallel(of_middle ? reduce_middle : reduce_ends, &reduction, results, 1 + (1 << 13) / reduced);
}

/* A rule for all elements of arrays of one shape, in blocks, whose intermediate results stay in the
 * cache. */
struct blocks {
    void (*run)(char **places);
    /* elements in total and in a block; bytes of an element, and of scratch memory */
    int64_t size, block, item, scratch;
    int64_t places;            /* number of arguments of `run` */
    int64_t read, kept, count; /* the first `read` arrays are read, all but `kept` are written */
    const int64_t *sources;    /* for each place: the index of an array, SCRATCH or CONSTANT */
    const int64_t *offsets;    /* for each place: its offset in scratch memory, or its address */
    char **arrays;
};

enum { SCRATCH = -1, CONSTANT = -2, MOST_PLACES = 64, MOST_ARRAYS = 8, MOST_SCRATCH = 1 << 16 };

static void set_places(const struct blocks *x, char **places, char *scratch, char **arrays,
                       int64_t offset) {
    for (int64_t i = 0; i < x->places; i++) {
        if (x->sources[i] == SCRATCH) places[i] = scratch + x->offsets[i];
        else if (x->sources[i] == CONSTANT) places[i] = (char *)(intptr_t)x->offsets[i];
        else places[i] = arrays[x->sources[i]] + offset;
    }
}

static void run_range(void *argument, int64_t begin, int64_t end) {
    const struct blocks *x = argument;
    _Alignas(64) char scratch[MOST_SCRATCH];
    char *places[MOST_PLACES];
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * x->block, left = x->size - first, bytes = x->block * x->item;
        if (left >= x->block) {
            set_places(x, places, scratch, x->arrays, first * x->item);
            x->run(places);
            continue;
        }
        /* The last block is computed outside the arrays, padded with its last elements. */
        char *padded[MOST_ARRAYS], *memory = scratch + x->scratch;
        for (int64_t k = 0; k < x->count; k++, memory += bytes) {
            padded[k] = memory;
            if (k < x->read)
                for (int64_t l = 0; l < x->block; l++)
                    memcpy(memory + l * x->item,
                           x->arrays[k] + (first + (l < left ? l : left - 1)) * x->item,
                           (size_t)x->item);
        }
        set_places(x, places, scratch, padded, 0);
        x->run(places);
        for (int64_t k = x->kept; k < x->count; k++)
            memcpy(x->arrays[k] + first * x->item, padded[k], (size_t)(left * x->item));
    }
}

/* Run a rule. Return 0, and do nothing, if it needs more memory than there is. */
int run_blocks(const struct blocks *x) {
    if (x->places > MOST_PLACES || x->count > MOST_ARRAYS) return 0;
    if (x->scratch + x->count * x->block * x->item > MOST_SCRATCH) return 0;
    parallel(run_range, (void *)x, (x->size + x->block - 1) / x->block, 8);
    return 1;
}
