/* Matrix products by NumPy's BLAS, each on one thread, shared out over the threads of the pool.
 *
 * BLAS is called as NumPy calls it. A single product is split by rows or by columns, a stack by its
 * matrices. The number of BLAS threads is a setting of the process: it is 1 between
 * `begin_products` and `end_products`.
 */

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, AS_IT_IS = 111, TRANSPOSED = 112 };

#if defined(WIDE_BLAS)
typedef int64_t blas_int;
#else
typedef int32_t blas_int;
#endif
typedef void (*float_gemm)(int, int, int, blas_int, blas_int, blas_int, float, const float *,
                           blas_int, const float *, blas_int, float, float *, blas_int);
typedef void (*double_gemm)(int, int, int, blas_int, blas_int, blas_int, double, const double *,
                            blas_int, const double *, blas_int, double, double *, blas_int);
typedef void (*float_gemv)(int, int, blas_int, blas_int, float, const float *, blas_int,
                           const float *, blas_int, float, float *, blas_int);
typedef void (*double_gemv)(int, int, blas_int, blas_int, double, const double *, blas_int,
                            const double *, blas_int, double, double *, blas_int);

static float_gemm multiply_floats;
static double_gemm multiply_doubles;
static float_gemv multiply_float_vector;
static double_gemv multiply_double_vector;
static int (*get_blas_threads)(void);
static void (*set_blas_threads)(int);

/* Whether NumPy warns of exceptions in single products, as its newer versions do. All versions warn
 * of exceptions in stacks. */
static int32_t single_products_warn;

static void note_exceptions(const struct product *x) {
    if (single_products_warn || x->stacks * x->count > 1) note(exceptions());
}

static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER; /* protects the two below */
static _Atomic int users, saved; /* calls between begin and end, and the setting before them */

static int wanted_threads(void) {
    int now = get_blas_threads();
    if (now > 1) return now;
    pthread_mutex_lock(&setting); /* BLAS may have one thread only during products */
    now = users ? saved : get_blas_threads();
    pthread_mutex_unlock(&setting);
    return now;
}

/* Allow no fork while BLAS is being set: the child would have locked mutexes and half a setting. */
static void before_fork(void) { pthread_mutex_lock(&setting); }
static void after_fork(void) { pthread_mutex_unlock(&setting); }

static void forget_users(void) {
    if (users) set_blas_threads(saved);
    users = 0;
    pthread_mutex_init(&setting, NULL);
}

/* Set the functions of BLAS: products of floats and doubles, and functions that return and set its
 * number of threads. */
void use_blas(float_gemm floats, double_gemm doubles, float_gemv float_vector,
              double_gemv double_vector, int (*get)(void), void (*set)(int), int32_t warn) {
    static int prepared;
    if (!prepared) prepared = !pthread_atfork(before_fork, after_fork, forget_users);
    multiply_floats = floats;
    multiply_doubles = doubles;
    multiply_float_vector = float_vector;
    multiply_double_vector = double_vector;
    single_products_warn = warn;
    get_blas_threads = get;
    set_blas_threads = set;
    use_threads_of(wanted_threads);
}

/* Return how many threads products and loops may have. */
int threads(void) { return current_threads ? current_threads() : 1; }

static int64_t begun; /* calls of `begin_products` */

void begin_products(void) {
    pthread_mutex_lock(&setting);
    begun++;
    if (!users) {
        saved = get_blas_threads();
        if (saved != 1) set_blas_threads(1);
    }
    users++;
    pthread_mutex_unlock(&setting);
}

/* Return the number of calls of `begin_products`; -1 between one and its end, while BLAS has one
 * thread. */
int64_t products_begun(void) {
    pthread_mutex_lock(&setting);
    const int64_t number = users ? -1 : begun;
    pthread_mutex_unlock(&setting);
    return number;
}

/* Set the number of BLAS threads: at once, or at the end of products that are running. */
void change_threads(int n) {
    pthread_mutex_lock(&setting);
    saved = n;
    set_blas_threads(users ? 1 : n);
    pthread_mutex_unlock(&setting);
}

/* Restore the setting, unless it was changed meanwhile. */
void end_products(void) {
    pthread_mutex_lock(&setting);
    if (!--users && saved != 1 && get_blas_threads() == 1) set_blas_threads(saved);
    pthread_mutex_unlock(&setting);
}

/* Multiply some rows by some columns. */
static void call_blas(const struct product *x, const char *a, const char *b, char *c, int64_t rows,
                      int64_t columns) {
    const int one = x->first_transposed ? TRANSPOSED : AS_IT_IS,
              other = x->second_transposed ? TRANSPOSED : AS_IT_IS;
    if (x->is_double)
        multiply_doubles(ROW_MAJOR, one, other, (blas_int)rows, (blas_int)columns,
                         (blas_int)x->inner, 1, (const double *)a, (blas_int)x->first_stride,
                         (const double *)b, (blas_int)x->second_stride, 0, (double *)c,
                         (blas_int)x->out_stride);
    else
        multiply_floats(ROW_MAJOR, one, other, (blas_int)rows, (blas_int)columns,
                        (blas_int)x->inner, 1, (const float *)a, (blas_int)x->first_stride,
                        (const float *)b, (blas_int)x->second_stride, 0, (float *)c,
                        (blas_int)x->out_stride);
}

static void multiply_one(const struct product *x, const char *a, const char *b, char *c,
                         int64_t rows, int64_t columns) {
    clear_exceptions();
    call_blas(x, a, b, c, rows, columns);
    note_exceptions(x);
}

static void multiply_whole(const struct product *x, const char *a, const char *b, char *c) {
    if (!x->most) multiply_one(x, a, b, c, x->rows, x->columns);
    else if (x->is_double)
        multiply_in_panels_double(x, (const double *)a, (const double *)b, (double *)c);
    else multiply_in_panels_float(x, (const float *)a, (const float *)b, (float *)c);
}

/* Multiply some rows by a vector. As NumPy does, pass a transposed matrix in column-major order. */
static void multiply_vector(const struct product *x, const char *a, const char *b, char *c,
                            int64_t rows) {
    const int order = x->first_transposed ? COLUMN_MAJOR : ROW_MAJOR;
    clear_exceptions();
    if (x->is_double)
        multiply_double_vector(order, AS_IT_IS, (blas_int)rows, (blas_int)x->inner, 1,
                               (const double *)a, (blas_int)x->first_stride, (const double *)b,
                               (blas_int)x->second_stride, 0, (double *)c, (blas_int)x->out_stride);
    else
        multiply_float_vector(order, AS_IT_IS, (blas_int)rows, (blas_int)x->inner, 1,
                              (const float *)a, (blas_int)x->first_stride, (const float *)b,
                              (blas_int)x->second_stride, 0, (float *)c, (blas_int)x->out_stride);
    note_exceptions(x);
}

struct shared_product {
    const struct product *product;
    const char *first, *second;
    char *out;
};

static void multiply_stack(void *argument, int64_t begin, int64_t end) {
    const struct shared_product *y = argument;
    const struct product *x = y->product;
    for (int64_t i = begin; i < end; i++) {
        const int64_t stack = i / x->count, matrix = i % x->count;
        multiply_whole(x, y->first + stack * x->first_leap + matrix * x->first_step,
                       y->second + stack * x->second_leap + matrix * x->second_step,
                       y->out + stack * x->out_leap + matrix * x->out_step);
    }
}

/* Return the size of pieces of rows or columns, a multiple of 16; only the last may be smaller. */
static int64_t piece_size(int64_t n, int64_t pieces) {
    const int64_t size = (n + pieces - 1) / pieces;
    return (size + 15) / 16 * 16;
}

static void multiply_rows(void *argument, int64_t begin, int64_t end) {
    const struct shared_product *y = argument;
    const struct product *x = y->product;
    const int64_t item = x->is_double ? 8 : 4;
    const char *first = y->first + begin * item * (x->first_transposed ? 1 : x->first_stride);
    char *out = y->out + begin * item * x->out_stride;
    if (x->by_vector) multiply_vector(x, first, y->second, out, end - begin);
    else multiply_one(x, first, y->second, out, end - begin, x->columns);
}

static void multiply_columns(void *argument, int64_t begin, int64_t end) {
    const struct shared_product *y = argument;
    const struct product *x = y->product;
    const int64_t item = x->is_double ? 8 : 4;
    multiply_one(x, y->first,
                 y->second + begin * item * (x->second_transposed ? x->second_stride : 1),
                 y->out + begin * item, x->rows, end - begin);
}

/* Compute a product, or a stack of them, between `begin_products` and `end_products`. */
void multiply(const struct product *x, const char *first, const char *second, char *out) {
    struct shared_product y = {x, first, second, out};
    const int64_t count = x->stacks * x->count;
    if (count > 1) {
        const int64_t chunk = 1 + (int64_t)(1e5 / (double)(x->rows * x->columns * x->inner));
        parallel(multiply_stack, &y, count, chunk);
    } else if (x->most) multiply_whole(x, first, second, out);
    else if (x->pieces > 1) parallel(multiply_rows, &y, x->rows, piece_size(x->rows, x->pieces));
    else if (x->pieces < -1)
        parallel(multiply_columns, &y, x->columns, piece_size(x->columns, -x->pieces));
    else if (x->by_vector) multiply_vector(x, first, second, out, x->rows);
    else multiply_one(x, first, second, out, x->rows, x->columns);
}

/* Compute one product outside a captured step. */
void multiply_alone(const struct product *x, const char *first, const char *second, char *out) {
    if (!x->most) begin_products();
    multiply(x, first, second, out);
    if (!x->most) end_products();
}

struct row_sums {
    char *out;
    const char *row;
    int64_t columns, out_stride; /* in elements */
    int32_t is_double;
};

static void add_row(void *argument, int64_t begin, int64_t end) {
    const struct row_sums *x = argument;
    clear_exceptions();
    for (int64_t i = begin; i < end; i++)
        if (x->is_double) {
            double *restrict out = (double *)x->out + i * x->out_stride;
            for (int64_t j = 0; j < x->columns; j++) out[j] += ((const double *)x->row)[j];
        } else {
            float *restrict out = (float *)x->out + i * x->out_stride;
            for (int64_t j = 0; j < x->columns; j++) out[j] += ((const float *)x->row)[j];
        }
    note(exceptions());
}

enum { REFUSED = -1, CHANGED = -2 };

/* Compute one product of arrays: the operands, and the result. Return the floating-point
 * exceptions, or CHANGED if the number of threads has changed, or REFUSED for arrays that NumPy
 * multiplies in another way. */
int32_t multiply_arrays(const struct product *x, int32_t expected_threads, struct array **arrays) {
    const char *first = arrays[0]->data, *second = arrays[1]->data;
    if (threads() != expected_threads) return CHANGED;
    if (first == second) return REFUSED; /* a matrix may meet its own transpose */
    if (!(arrays[0]->flags & arrays[1]->flags & arrays[2]->flags & ALIGNED)) return REFUSED;
    multiply_alone(x, first, second, arrays[2]->data);
    return take_raised();
}

/* Compute one product of matrices, and add a row, the last array, to each of its rows. */
int32_t multiply_arrays_and_add(const struct product *x, int32_t expected_threads,
                                struct array **arrays) {
    struct row_sums sums = {arrays[2]->data, arrays[3]->data, x->columns, x->out_stride,
                            x->is_double};
    if (!(arrays[3]->flags & ALIGNED) || arrays[3]->strides[0] != (x->is_double ? 8 : 4))
        return REFUSED;
    const int32_t raised = multiply_arrays(x, expected_threads, arrays);
    if (raised < 0) return raised;
    parallel(add_row, &sums, x->rows, 1 + (1 << 14) / x->columns);
    return raised | take_raised();
}
