"""Comparison of devices, ``xgrad parity``: ops, fused kernels, training runs, seeds and times.

The op table in `cases` also drives the tests of the ops: a new op is a new case.
"""
