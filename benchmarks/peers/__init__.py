"""The libraries to compare, a file each, with the same functions where supported.

``step(sizes, batch)``
    returns a function that takes one training step of `problems.mlp` and returns its loss. Steps
    for a GPU also take a `device`, and `tf32`: whether products may use TF32.
``op(name)``
    returns a function that runs one op on `problems.operands` `REPEATS` times and returns the last
    result.
``chain(length)``
    returns a function that runs ``z = (z + y) * y``, `length` ops, forward and backward, and
    returns the gradient of y.
``epochs(data, sizes, seed)``
    returns two functions. The first trains on all of `problems.Images` once, in shuffled batches of
    `BATCH`, with Adam at a given learning rate, and waits for the end. The second predicts the
    classes of images. Peers for a GPU also take a `device`.
``additions(length)``
    adds to one scalar `length` times, runs backward and frees the graph, and returns the time at
    the start and after each of these parts.
``to_device(size, device)``, ``to_host(size, device)``
    return a function that transfers a number of bytes, and waits for the end.
``pullback(call, inputs, varied, weights)``
    calls a function with arrays of the library, made of NumPy arrays. It returns the results, and
    the gradients of the varied inputs, with the weights as the gradients of the outputs. In place
    of the gradients, it returns None if no output depends on an input.

Each library is called in a process of its own. Reading a returned value waits for its computation,
so that queued work is measured, too. A function raises `LeftOut` with a reason if the library does
not support it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

REPEATS = 1000
BATCH = 128


class LeftOut(Exception):
    """A case that a peer does not support; the message is the reason."""


def statements(relu: str) -> dict[str, str]:
    """Return the statements of the benchmark `ops` by name, given the statement of ReLU."""
    binary = {"add": "x + y", "multiply": "x * y", "add a scalar": "x + 1.0", "matmul": "x @ y"}
    return {**binary, "relu": relu, "sum": "x.sum()", "add, no grad": "x + y"}


def repeated(statements: Mapping[str, str], name: str, **names: Any) -> Callable[[], Any]:
    """Return a function that evaluates a statement `REPEATS` times.

    The loop is inside the function, without the overhead of a call.
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
