/* Arguments of pooling and convolution. Arrays have the shape (height, channels, images, width),
 * with adjacent columns. The functions that Python calls have them as a table of NumPy's arrays. */

/* Return the first whole cache line of scratch memory, which has one line more than is used. */
static inline void *whole_lines(const struct array *x) {
    return (void *)(((uintptr_t)x->data + 63) / 64 * 64);
}

struct window {
    int64_t kernel, stride, dilation, out; /* along one axis; `out` is the number of windows */
};

/* Return whether windows along an axis overlap. */
static inline int overlap(const struct window *w) {
    return w->stride < w->dilation * (w->kernel - 1) + 1;
}

struct steps {
    int64_t row, channel, image; /* elements from one to the next */
};

enum { LONGEST = 512 }; /* maximum span of a window along a row, in elements */

struct pooling {
    int64_t height, width, channels, images; /* sizes of the input, with its padding */
    struct window down, right;
    struct steps input, grad, out;
    int32_t padded;         /* whether there is padding */
    _Atomic int32_t failed; /* whether a maximum is NaN, or may be padding: no gradient */
    const void *x, *g;
    void *result, *rows; /* `rows` is scratch memory, see `spread_lanes` */
};

struct progress;

struct convolution {
    int64_t height, width, channels, images; /* sizes of the input */
    int64_t top, left; /* its padding before; if negative, the input before that is left out */
    struct window down, right;
    struct steps input;
    struct product product;  /* for one row of the output, and some images */
    int64_t block, together; /* rows of the output, and images, that a thread computes at once */
    int64_t pitch;           /* elements from one shifted row to the next */
    int32_t direct;  /* whether products read the input, whose rows are adjacent, without a copy */
    int32_t threads; /* at most 64; each has a part of the scratch memory */
    int64_t scratch; /* elements of each part */
    int64_t panels;  /* elements of each part before the panels of a matrix */
    int64_t image;   /* the first of the images that are being computed */
    const void *x, *y, *bias;
    void *result, *rows; /* `rows` is scratch memory */
    struct progress *progress;
};

/* State shared by the threads of a call. */
struct progress {
    _Atomic uint64_t parts; /* free parts of the scratch memory, one bit for each */
    _Atomic int32_t raised; /* floating-point exceptions */
};

static inline uint64_t all_parts(int32_t threads) {
    return threads < 64 ? ((uint64_t)1 << threads) - 1 : UINT64_MAX;
}

static inline int64_t take_part(const struct convolution *p) {
    uint64_t parts = atomic_load(&p->progress->parts);
    while (!atomic_compare_exchange_weak(&p->progress->parts, &parts, parts & (parts - 1))) {}
    return __builtin_ctzll(parts);
}

static inline void return_part(const struct convolution *p, int64_t part) {
    atomic_fetch_or(&p->progress->parts, (uint64_t)1 << part);
}

/* Return the elements from one row under the kernel to the next; a row has a shifted copy for each
 * column of the kernel. */
static inline int64_t shifted_size(const struct convolution *p) {
    return p->channels * p->right.kernel * p->pitch;
}

/* Return the first column of the output for which a kernel column, `start` before it, is in a row;
 * and, by `end_inside`, the end of these columns. */
static inline int64_t first_inside(const struct convolution *p, int64_t start) {
    const int64_t first = start < 0 ? (-start + p->right.stride - 1) / p->right.stride : 0;
    return first < p->right.out ? first : p->right.out;
}

static inline int64_t end_inside(const struct convolution *p, int64_t start) {
    const int64_t first = first_inside(p, start);
    const int64_t end = start < p->width ? (p->width - 1 - start) / p->right.stride + 1 : 0;
    return end < first ? first : end < p->right.out ? end : p->right.out;
}
