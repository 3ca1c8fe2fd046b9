"""Measurements of xgrad and other libraries, ``python -m benchmarks``, and a check of a GPU."""
