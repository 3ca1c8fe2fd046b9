"""Native kernels: the elementwise instructions of a captured step as loops of C, compiled on this machine.

| module | subject |
|---|---|
| `expressions` | the expression of C for each function of NumPy |
| `fusion` | which instructions become one loop, and which results are stored |
| `printer` | the loops as C |
| `library` | the compiler, and the cache of compiled libraries |
"""
