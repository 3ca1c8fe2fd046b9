/* NumPy arrays as in its C interface: PyArrayObject_fields of ndarraytypes.h. */

struct array {
    char object[OBJECT_SIZE]; /* the head of each Python object */
    char *data;
    int axes;
    intptr_t *lengths, *strides;
    void *base, *type;
    int flags;
};

enum { ALIGNED = 0x100 };

/* Write the addresses of the first elements of arrays. */
void addresses(struct array **arrays, int64_t count, char **out) {
    for (int64_t i = 0; i < count; i++) out[i] = arrays[i]->data;
}

/* The arrays that are in other memory in each run: their number, the indices of their addresses in
 * a table, and the layouts that the kernels expect, with all strides one after the other. */
struct moving {
    int64_t count;
    const int64_t *places, *axes, *strides;
};

/* Enter addresses into a table. Return whether all arrays are aligned and have their strides. */
int32_t enter(const struct moving *x, struct array **arrays, char **table) {
    const int64_t *strides = x->strides;
    for (int64_t i = 0; i < x->count; i++) {
        if (!(arrays[i]->flags & ALIGNED) || arrays[i]->axes != x->axes[i]) return 0;
        for (int64_t axis = 0; axis < x->axes[i]; axis++)
            if (arrays[i]->strides[axis] != *strides++) return 0;
        table[x->places[i]] = arrays[i]->data;
    }
    return 1;
}
