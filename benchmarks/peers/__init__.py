"""The libraries to compare, a file each, with the same functions as far as the library supports
them.

``step(sizes, batch)``
    returns a function that takes one training step of `problems.mlp` and returns its loss. Those
    for a GPU also take a `device`, and whether products may use TF32, `tf32`.
``op(name)``
    returns a function that does one op of `problems.operands` `REPEATS` times and returns the last
    result.
``chain(length)``
    returns a function that runs ``z = (z + y) * y``, `length` ops, forward and backward, and
    returns the gradient of y.
``epochs(data, sizes, seed)``
    returns a function that trains on all of `problems.Images` once, in shuffled batches of `BATCH`,
    with Adam at a given learning rate, and waits for the end, and a function that predicts the
    classes of images. Those for a GPU also take a `device`.
``additions(length)``
    adds to one scalar `length` times, runs backward and frees the graph, and returns the time at
    the start and after each of these.
``to_device(size, device)``, ``to_host(size, device)``
    return a function that transfers a number of bytes, and waits for the end.
``pullback(call, inputs, varied, weights)``
    calls a function with arrays of the library, made of NumPy arrays, and returns its results, and
    the gradients of the varied inputs, given weights as the gradients of the outputs; None in place
    of the gradients if no output depends on an input.

All are called in a process of their own. Reading a returned value waits for its computation, so
that queued work is measured, too. A function raises `LeftOut` with a reason if the library does not
support it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

REPEATS = 1000
BATCH = 128


class LeftOut(Exception):
    """A peer does not support a case; the message is the reason."""


def statements(relu: str) -> dict[str, str]:
    """Return the statements of the benchmark `ops` by name, given that of ReLU."""
    binary = {"add": "x + y", "multiply": "x * y", "add a scalar": "x + 1.0", "matmul": "x @ y"}
    return {**binary, "relu": relu, "sum": "x.sum()", "add, no grad": "x + y"}


def repeated(statements: Mapping[str, str], name: str, **names: Any) -> Callable[[], Any]:
    """Return a function that evaluates a statement `REPEATS` times, without the overhead of a
    call.
    """
    if name not in statements:
        raise LeftOut("not compared in this")
    arguments = ", ".join(f"{key}={key}" for key in names)  # local variables are the fastest
    program = (
        f"def run({arguments}):\n for _ in range({REPEATS}):\n  result = {statements[name]}\n"
        " return result"
    )
    exec(program, names)
    run: Callable[[], Any] = names["run"]
    return run
