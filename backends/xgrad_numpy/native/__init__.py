"""Native kernels: code in C, compiled on this machine, with the bits of NumPy.

| module | subject |
|---|---|
| `expressions` | the expression of C for each elementwise function of NumPy |
| `statements` | elementwise instructions as statements of C |
| `copy_propagation` | which copies loops of C do not need, since they read what was copied |
| `fusion` | which instructions of a captured step become a call of C, and which results are stored |
| `calls` | which instructions are one call of a function of C: products, loops, sums, indices and their checks |
| `products`, `loops`, `reductions` | matrix products by NumPy's BLAS, and the inner loops of NumPy's functions |
| `places` | the memory of operands |
| `printer` | a call as C |
| `kernels` | the calls of a captured step, and their compilation in a thread |
| `rule_kernels`, `update_kernels`, `blocks` | elementwise rules of eager mode, in blocks: of ops, and of optimizers |
| `rule_programs` | other rules of eager mode, as programs |
| `eager_products` | large products of eager mode |
| `runtime`, `c/` | the sources of what all share: the pool of threads, products, loops |
| `library`, `compiler`, `cache` | the compiler, and the cache of compiled libraries |
"""
