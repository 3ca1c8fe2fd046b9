"""A call path: somebody else's function, the arrays that it is called with, and whether a gradient flows through it."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Pullback = Callable[..., tuple[list[Array], list[Array] | None]]

STEP = 1e-4  # of the differences; the inputs, and how fast functions bend, are of the order of 1
FLOWS = "flows"

# Why a path may stop.
NUMPY = "its code converts to NumPy, where tensors with a gradient refuse to go"
COMPILED = "its code is compiled, for NumPy's arrays"
MASKED = "0 / 0, or NaN, in what is masked afterwards: the derivative is NaN, with PyTorch as well"


@dataclass(frozen=True)
class Draw:
    """How an input is made, and whether derivatives are taken with respect to it."""

    make: Callable[[np.random.Generator], Array]
    varied: bool = True


def normal(*shape: int) -> Draw:
    return Draw(lambda random: np.asarray(random.normal(size=shape)))


def uniform(low: float, high: float, *shape: int) -> Draw:
    return Draw(lambda random: np.asarray(random.uniform(low, high, size=shape)))


def positive(*shape: int) -> Draw:
    return uniform(0.5, 2.5, *shape)


def exactly(values: Any) -> Draw:
    return Draw(lambda random: np.asarray(values, dtype=float))


def constant(values: Any) -> Draw:
    return Draw(lambda random: np.asarray(values), varied=False)


@dataclass(frozen=True)
class Path:
    """A function that somebody else wrote, and inputs to call it with.

    Attributes
    ----------
    name : str
        What is called, and how.
    call : callable
        Takes an array for each of `draws`, and returns an array, real or complex, or a tuple of them.
    draws : tuple of Draw
        How the inputs are made, in float64 but for constants.
    stops : str
        Why no gradient of xgrad's comes through; empty where one does.
    """

    name: str
    call: Callable[..., Any]
    draws: tuple[Draw, ...]
    stops: str = ""

    @property
    def varied(self) -> list[bool]:
        """Which inputs derivatives are taken with respect to."""
        return [draw.varied for draw in self.draws]

    def inputs(self) -> list[Array]:
        """Return the inputs, the same in every process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [draw.make(random) for draw in self.draws]


def path(name: str, call: Callable[..., Any], *draws: Draw, stops: str = "") -> Path:
    """Return a call path, in one line of a table."""
    return Path(name, call, draws, stops)


def outputs_of(result: Any) -> list[Any]:
    """Return what a path returned as a list."""
    return list(result) if isinstance(result, tuple) else [result]


def verdict(subject: Path, pullback: Pullback) -> str:
    """Return `FLOWS`, or in a few words what is in the way of a library's gradient.

    The values must be NumPy's, and the derivative along a random direction that of central differences through NumPy.

    Parameters
    ----------
    subject : Path
        What is called.
    pullback : callable
        That of a peer: see `benchmarks.peers`.

    Raises
    ------
    ValueError
        If the differences vanish: nothing could be seen here.
    """
    inputs = subject.inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others' code, about others' code
        directions, weights, expected, slope = differences(subject, inputs)
        if abs(slope) < 1e-6:
            raise ValueError(f"{subject.name}: expected a derivative that can be told from none, got {slope}")
        try:
            outputs, gradients = pullback(subject.call, inputs, subject.varied, weights)
        except Exception as error:
            return f"{type(error).__name__}: {first_sentence(str(error))}"
    for got, right in zip(outputs, expected, strict=True):
        if got.shape != right.shape or not np.allclose(got, right, rtol=1e-6, atol=1e-9):
            return "other values than with NumPy"
    if gradients is None:
        return "no graph: the result does not know its inputs"
    derivative = sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))
    if not abs(derivative - slope) <= 1e-7 + 1e-5 * abs(slope):
        return f"wrong: {derivative:.8g}, differences say {slope:.8g}"
    return FLOWS


def differences(subject: Path, inputs: Sequence[Array]) -> tuple[list[Array], list[Array], list[Array], float]:
    """Return a direction for each varied input, weights for each output, the outputs, and a derivative.

    It is that along the directions of ``sum(real(conj(weight) * output))``.
    """
    random = np.random.default_rng(1)
    varied = [x for x, moves in zip(inputs, subject.varied, strict=True) if moves]
    directions = [normal(*x.shape).make(random) for x in varied]

    def at(distance: float) -> list[Array]:
        steps = iter(directions)
        moved = [x + distance * next(steps) if moves else x for x, moves in zip(inputs, subject.varied, strict=True)]
        return [np.asarray(out) for out in outputs_of(subject.call(*moved))]

    def weigh(outputs: list[Array]) -> float:
        return sum(float(np.sum((np.conj(w) * out).real)) for w, out in zip(weights, outputs, strict=True))

    expected = at(0.0)
    weights = [normal(*out.shape).make(random) for out in expected]
    weights = [w * (1 + 0.7j) if out.dtype.kind == "c" else w for w, out in zip(weights, expected, strict=True)]
    near, far = (weigh(at(step)) - weigh(at(-step)) for step in (STEP, 2 * STEP))
    return directions, weights, expected, (8 * near - far) / (12 * STEP)  # its error goes with STEP to the fourth


def first_sentence(text: str) -> str:
    """Return what an error says first, short enough for a table."""
    words = " ".join(text.split()).split(". ")[0].rstrip(".")
    return words if len(words) <= 110 else words[:107] + "..."
