/* Arguments of pooling: arrays are of shape (height, channels, images, width), the width adjacent. */

struct window {
    int64_t kernel, stride, dilation, out; /* along one axis; `out` is the number of windows */
};

/* Whether windows along an axis overlap. */
static inline int overlap(const struct window *w) { return w->stride < w->dilation * (w->kernel - 1) + 1; }

struct steps {
    int64_t row, channel, image; /* elements from one to the next */
};

enum { LONGEST = 512 }; /* the most elements from the first to the last of a window along a row */

struct pooling {
    int64_t height, width, channels, images; /* of the input, with its padding */
    struct window down, right;
    struct steps input, grad, out;
    int32_t padded;                          /* whether there is padding */
    _Atomic int32_t failed;                  /* whether a maximum is NaN, or may be padding: there is no gradient */
    const void *x, *g;
    void *result, *rows; /* the latter is scratch memory, see `spread_lanes` */
};
