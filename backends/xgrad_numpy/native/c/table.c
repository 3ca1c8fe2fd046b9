/* The functions of the runtime, for the kernels of programs. */

const struct runtime runtime = {
    parallel, begin_products, end_products, multiply, loop, extremes, total, elements, extreme_index, note,
};
