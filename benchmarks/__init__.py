"""Measurements beside other libraries, ``python -m benchmarks``, and the check of a machine with a
GPU.
"""
