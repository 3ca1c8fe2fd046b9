"""Draws of random numbers on the host, such as normal numbers, in captured steps.

A CUDA graph cannot repeat work of the host. So the host makes these numbers before each launch, and
they are inputs of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, map_leaves


def is_host_draw(call: Call) -> bool:
    """Return whether a call is `Backend.from_words`, which draws random numbers on the host."""
    return call.name == "from_words"


def host_draws(program: Program) -> dict[Call, Callable[[Sequence[Any]], Any]]:
    """Return the host's draws in a program, and functions that make them for a run.

    The functions take the values of `Program.numbers`, and return an array on the GPU.
    """
    indices = {number.text: i for i, number in enumerate(program.numbers)}
    return {call: partial(_draw, call, indices) for call in program.calls if is_host_draw(call)}


def _draw(call: Call, indices: dict[str, int], numbers: Sequence[Any]) -> Any:
    args = map_leaves(lambda x: numbers[indices[x.text]] if type(x) is Number else x, call.args)
    return call.function(*args)
