"""Native kernels: the elementwise instructions of a captured step as loops of C, compiled on this machine.

| module | subject |
|---|---|
| `expressions` | what functions of NumPy are as expressions of C |
| `fusion` | which instructions become one loop, and which results are stored |
| `printer` | the loops as C |
| `library` | the compiler, and the cache of compiled libraries |
"""
