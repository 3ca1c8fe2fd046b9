"""Calls on small arrays, compared with PyTorch.

Most of their time is spent in the Python code around the computation.
``python -m benchmarks.small_calls`` prints, for each line, the least time of many blocks in turn,
in one process with one thread, and the ratio.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import xgrad

#: Lines of Python for both libraries.
CALLS = {
    "assignment of a tensor to a slice": "x[1:7] = six",
    "assignment of a number to a slice": "x[1:7] = 2.0",
    "assignment to a row": "square[2] = four",
    "part": "x[1:7]",
    "softmax of a row": "x.softmax(-1)",
    "softmax of rows": "square.softmax(-1)",
    "third power": "x**3",
    "uniform numbers": "draws.rand((3,))",
    "normal numbers": "draws.randn((3,))",
    "tensor of an array": "library.asarray(array)",
    "tensor of a copied array": "library.asarray(array, copy=True)",
}


def timed_call(line: str, library: Any) -> Callable[[], None]:
    """Return a function that runs a line of Python; names in the line stand for arrays."""
    names: dict[str, Any] = {
        "library": library,
        "draws": xgrad.random if library is xgrad else library,
        "array": np.ones(3, np.float32),
        "x": library.ones(10),
        "six": library.ones(6),
        "four": library.ones(4),
        "square": library.ones((4, 4)),
    }
    exec(f"def call():\n    {line}", names)
    return names["call"]  # type: ignore[no-any-return]


def main() -> None:
    """Run the command."""
    import torch

    torch.set_num_threads(1)
    print("| call | line | xgrad, µs | PyTorch, µs | ratio |", "|---|---|---:|---:|---:|", sep="\n")
    for name, line in CALLS.items():
        mine, theirs = (timed_call(line, library) for library in (xgrad, torch))
        times = [
            (timeit.timeit(mine, number=50), timeit.timeit(theirs, number=50)) for _ in range(200)
        ]
        ours, other = (min(column) / 50 * 1e6 for column in zip(*times, strict=True))
        print(f"| {name} | `{line}` | {ours:.2f} | {other:.2f} | {ours / other:.1f} |")


if __name__ == "__main__":
    main()
