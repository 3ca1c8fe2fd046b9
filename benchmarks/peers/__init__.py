"""The libraries that are compared, a file each, with the same functions as far as the library has what it takes.

``step(sizes, batch)``
    returns a function that takes one training step of `problems.mlp` and returns its loss.
``op(name)``
    returns a function that does one op of `problems.operands` `REPEATS` times and returns the last result.
``chain(length)``
    returns a function that goes forward and backward through ``z = (z + y) * y``, `length` ops, and returns the
    gradient of y.
``epochs(data, sizes, seed)``
    returns a function that learns from all of `problems.Images` once, in shuffled batches of `BATCH`, with Adam at the
    rate that it is given, and a function that returns the classes of images.
``additions(length)``
    adds to one scalar so often, goes backward and lets go of the graph, and returns the time at the start and after
    each of these.
``to_device(size, device)``, ``to_host(size, device)``
    return a function that moves so many bytes and waits for them.
``pullback(call, inputs, varied, weights)``
    calls a function with arrays of the library's, made of NumPy's, of which the varied ones require gradients, and
    returns what the function returns, and the gradients of the varied ones, where each output has its weight for a
    gradient; None if no output depends on an input.

All are called in a process of their own. What is returned says by its value, as far as the benchmarks read it, that it
is ready; so nothing that is queued goes unpaid. Whoever cannot do something raises `LeftOut` and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

REPEATS = 1000
BATCH = 128


class LeftOut(Exception):
    """A peer cannot take part here: the reason."""


def repeated(statements: Mapping[str, str], name: str, **names: Any) -> Callable[[], Any]:
    """Make a function that evaluates a statement `REPEATS` times, with no call around it to be measured as well."""
    if name not in statements:
        raise LeftOut("not compared in this")
    arguments = ", ".join(f"{key}={key}" for key in names)  # local variables: the fastest there are
    program = f"def run({arguments}):\n for _ in range({REPEATS}):\n  result = {statements[name]}\n return result"
    exec(program, names)
    run: Callable[[], Any] = names["run"]
    return run
