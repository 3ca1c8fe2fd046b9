"""Call paths: functions of other projects, their inputs, and whether a gradient flows."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Pullback = Callable[..., tuple[list[Array], list[Array] | None]]

STEP = 1e-4  # step of the differences; inputs and curvatures are of the order of 1
FLOWS = "flows"
OTHER_VALUES = "other values than with NumPy"

# Reasons for paths without a gradient.
NUMPY = "its code converts to NumPy, which tensors with a gradient refuse"
COMPILED = "its code is compiled, for NumPy's arrays"
MASKED = "0 / 0, or NaN, in what is masked afterwards: the derivative is NaN, with PyTorch as well"


@dataclass(frozen=True)
class Draw:
    """Random input, and whether derivatives are taken with respect to it."""

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
    """A function of another project, and its inputs."""

    name: str  # function and arguments
    # takes an array for each of `draws`, returns a real or complex array, or a tuple of them
    call: Callable[..., Any]
    draws: tuple[Draw, ...]  # inputs, in float64 except for constants
    stops: str = ""  # why no gradient of xgrad flows, if none does

    @property
    def varied(self) -> list[bool]:
        """Whether derivatives are taken, for each input."""
        return [draw.varied for draw in self.draws]

    def inputs(self) -> list[Array]:
        """Return the inputs, equal in every process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [draw.make(random) for draw in self.draws]


def path(name: str, call: Callable[..., Any], *draws: Draw, stops: str = "") -> Path:
    """Return a call path, in one line of a table."""
    return Path(name, call, draws, stops)


def outputs_of(result: Any) -> list[Any]:
    """Return the result of a path as a list."""
    return list(result) if isinstance(result, tuple) else [result]


def verdict(subject: Path, pullback: Pullback) -> str:
    """Return `FLOWS`, or in a few words why the gradient of a library does not flow.

    The values must be NumPy's, and the derivative along a random direction must equal central
    differences through NumPy. `pullback` is the function of a peer: see `benchmarks.peers`.
    ValueError is raised for a path whose differences vanish, since these could not show a wrong
    gradient.
    """
    inputs = subject.inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from other projects
        directions, weights, expected, slope = differences(subject, inputs)
        if abs(slope) < 1e-6:
            raise ValueError(
                f"{subject.name}: expected a derivative that differs from zero, got {slope}"
            )
        try:
            outputs, gradients = pullback(subject.call, inputs, subject.varied, weights)
        except Exception as error:
            return f"{type(error).__name__}: {first_sentence(str(error))}"
    for got, right in zip(outputs, expected, strict=True):
        if got.shape != right.shape or not np.allclose(got, right, rtol=1e-6, atol=1e-9):
            return OTHER_VALUES
    if gradients is None:
        return "no graph: the result has no gradient"
    derivative = sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))
    if not abs(derivative - slope) <= 1e-7 + 1e-5 * abs(slope):
        return f"wrong: {derivative:.8g}, differences say {slope:.8g}"
    return FLOWS


def differences(
    subject: Path, inputs: Sequence[Array]
) -> tuple[list[Array], list[Array], list[Array], float]:
    """Return a direction for each varied input, output weights, the outputs, and a derivative.

    The derivative of ``sum(real(conj(weight) * output))`` is taken along the directions.
    """
    random = np.random.default_rng(1)
    varied = [x for x, moves in zip(inputs, subject.varied, strict=True) if moves]
    directions = [normal(*x.shape).make(random) for x in varied]

    def at(distance: float) -> list[Array]:
        steps = iter(directions)
        moved = [
            x + distance * next(steps) if moves else x
            for x, moves in zip(inputs, subject.varied, strict=True)
        ]
        return [np.asarray(out) for out in outputs_of(subject.call(*moved))]

    def weigh(outputs: list[Array]) -> float:
        return sum(
            float(np.sum((np.conj(w) * out).real)) for w, out in zip(weights, outputs, strict=True)
        )

    expected = at(0.0)
    weights = [normal(*out.shape).make(random) for out in expected]
    weights = [
        w * (1 + 0.7j) if out.dtype.kind == "c" else w
        for w, out in zip(weights, expected, strict=True)
    ]
    near, far = (weigh(at(step)) - weigh(at(-step)) for step in (STEP, 2 * STEP))
    # The error of the derivative is of the order of STEP**4.
    return directions, weights, expected, (8 * near - far) / (12 * STEP)


def first_sentence(text: str) -> str:
    """Return the first sentence of an error, shortened for a table."""
    words = " ".join(text.split()).split(". ")[0].rstrip(".")
    return words if len(words) <= 110 else words[:107] + "..."
