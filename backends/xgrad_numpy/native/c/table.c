/* The runtime's functions for the kernels of programs. */

const struct runtime runtime = {
    parallel, begin_products, end_products, multiply, loop, extremes, reduce, dots,
    elements, take_rows, add_rows, extreme_index, note,
};
