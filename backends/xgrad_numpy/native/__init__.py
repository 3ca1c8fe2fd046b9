"""Native kernels of captured steps: C sources, compiled on this machine and loaded as libraries.

| module | subject |
|---|---|
| `compiler` | the C compiler: how it is found, what its output depends on, calls of it |
| `cache` | the folder of compiled libraries |
| `library` | a C source as a loaded library |
"""
