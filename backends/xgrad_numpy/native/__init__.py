"""Native kernels: code in C, compiled on this machine, with bit-identical results to NumPy.

| module | subject |
|---|---|
| `expressions` | the C expression for each elementwise function of NumPy |
| `statements` | elementwise instructions as C statements |
| `copy_propagation` | copies that loops in C do not need, because they read the source |
| `fusion` | which instructions of a captured step become a C call, and which results are stored |
| `calls` | instructions that are one call of a C function: products, loops, sums, indices, checks |
| `products`, `loops`, `reductions` | products by NumPy's BLAS; inner loops of NumPy's functions |
| `places` | the memory of operands |
| `printer` | a call as C source |
| `kernels` | the calls of a captured step, and their compilation in a thread |
| `rule_kernels`, `update_kernels`, `blocks` | elementwise rules of eager mode: ops, optimizers |
| `rule_programs` | other rules of eager mode, as programs |
| `eager_products` | large products of eager mode |
| `runtime`, `c/` | the shared sources: the thread pool, products, loops |
| `library`, `compiler`, `cache` | the compiler, and the cache of compiled libraries |
"""
