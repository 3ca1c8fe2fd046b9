"""One device held against another: every op, trainings, random numbers, and how long each takes.

`table` is also what drives the tests of the ops: a new op is one new row. ``xgrad parity`` is the command.
"""
