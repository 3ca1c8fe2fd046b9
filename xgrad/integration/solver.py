"""Runge-Kutta methods for states that are lists of tensors, with fixed steps and with control."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xgrad import ops
from xgrad.core.dtypes import float64
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.integration.methods import Method
from xgrad.integration.problem import Problem, States

Slopes = Callable[[Tensor, Sequence[Tensor]], States]

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0  # factors of the next step


def solve(problem: Problem, slopes: Slopes, states: States, times: Tensor) -> list[States]:
    """Return the states at the given times; the first are those given."""
    if problem.method.error:
        return _adaptive(problem, slopes, states, times)
    return _fixed(problem, slopes, states, times)


def _fixed(problem: Problem, slopes: Slopes, states: States, times: Tensor) -> list[States]:
    results = [states]
    for i in range(1, times.shape[0]):
        start, h = times[i - 1], (times[i] - times[i - 1]) / problem.steps
        for n in range(problem.steps):
            t = start + h * n if n else start
            states = _combined(
                states,
                h,
                _stages(problem.method, slopes, t, h, states, slopes(t, states)),
                problem.method.solution,
            )
        results.append(states)
    return results


def _adaptive(problem: Problem, slopes: Slopes, states: States, times: Tensor) -> list[States]:
    """Solve with steps whose estimated error is within the tolerance.

    Step sizes are Python numbers, which have no derivative. The time of a step depends on the
    first of the given times, and states between steps on the times at which they are wanted.
    """
    method, ends = problem.method, times.detach().tolist()
    results, start = [states], ends[0]
    if len(ends) == 1:
        return results
    direction = math.copysign(1.0, ends[-1] - start)
    slope, passed, rejected = slopes(times[0], states), 0.0, False
    h = problem.first_step or _first_step(problem, slopes, states, times[0], slope, direction)
    h, wanted, eps = direction * h, 1, float(ops.finfo(times.dtype).eps)
    for _ in range(problem.max_num_steps):
        now = start + passed
        if not abs(h) > 4 * eps * max(abs(now), abs(ends[-1] - start) * eps):
            raise RuntimeError(
                f"{problem.title}: expected an equation that {problem.name} solves with steps above"
                f" {4 * eps:.1g} of the time, got a step of {abs(h):.3g} at t = {now:.6g}: the"
                " equation may be stiff, or its solution infinite; raise rtol and atol, or end"
                " before"
            )
        t = times[0] + passed
        stages = _stages(method, slopes, t, h, states, slope)
        after = _combined(states, h, stages, method.solution)
        error = _error(problem, states, after, h, stages)
        if error <= 1:
            while wanted < len(ends) and direction * (ends[wanted] - now - h) <= 0:
                part = (times[wanted] - t) / h
                results.append(_interpolated(method, states, h, stages, part))
                wanted += 1
            if wanted == len(ends):
                return results
            states, slope, passed = after, stages[-1], passed + h
        # of order 5, with an estimate of order 4
        factor = _SAFETY * error**-0.2 if 0 < error < math.inf else _MOST if not error else _LEAST
        h *= min(1.0 if rejected else _MOST, max(_LEAST, factor))
        rejected = not error <= 1
    raise RuntimeError(
        f"{problem.title}: expected at most {problem.max_num_steps} steps, got to t ="
        f" {start + passed:.6g}: the equation may be stiff; raise rtol and atol, or the option"
        " max_num_steps"
    )


def _stages(
    method: Method,
    slopes: Slopes,
    t: Tensor,
    h: Tensor | float,
    states: States,
    first: States,
) -> list[States]:
    """Return the slopes of all stages of a step."""
    stages = [first]
    for node, weights in zip(method.nodes[1:], method.weights, strict=True):
        stages.append(slopes(t + h * node, _combined(states, h, stages, weights)))
    return stages


def _combined(
    states: States, h: Tensor | float, stages: list[States], weights: Sequence[float]
) -> States:
    """Return the states, plus the step times a weighted sum of slopes."""
    used = [(w, stage) for w, stage in zip(weights, stages, strict=True) if w]
    results = []
    for i, state in enumerate(states):
        total = _sum([w * stage[i] for w, stage in used])
        results.append(state + h * total)
    return results


def _interpolated(
    method: Method, states: States, h: float, stages: list[States], part: Tensor
) -> States:
    """Return the states at a part of a step, by a polynomial of order 4 in it."""
    powers = [part]
    for _ in range(3):
        powers.append(powers[-1] * part)
    weights = [
        _sum([c * power for c, power in zip(row, powers, strict=True) if c])
        for row in method.interpolation
        if any(row)
    ]
    used = [stage for stage, row in zip(stages, method.interpolation, strict=True) if any(row)]
    return [
        state + h * _sum([w * stage[i] for w, stage in zip(weights, used, strict=True)])
        for i, state in enumerate(states)
    ]


def _error(
    problem: Problem, states: States, after: States, h: float, stages: list[States]
) -> float:
    """Return the estimated error as a multiple of the tolerance: the root of the mean square."""
    with no_grad():
        zeros = [ops.zeros_like(x) for x in states]
        errors = _combined(zeros, h, stages, problem.method.error)
        sizes = [ops.maximum(ops.abs(a), ops.abs(b)) for a, b in zip(states, after, strict=True)]
        return _norm(problem, errors, sizes)


def _norm(problem: Problem, values: States, sizes: States) -> float:
    """Return the root mean square of values, in units of the tolerance for their sizes."""
    squares = []
    for x, size in zip(values, sizes, strict=True):
        # in float64, since squares overflow sooner than the states
        x, size = (ops.astype(ops.abs(part), float64) for part in (x, size))
        squares.append(ops.sum(ops.square(x / (problem.atol + problem.rtol * size))))
    count = sum(x.size for x in values)
    return math.sqrt(float(_sum(squares)) / max(count, 1))


def _first_step(
    problem: Problem,
    slopes: Slopes,
    states: States,
    t: Tensor,
    slope: States,
    direction: float,
) -> float:
    """Return the size of the first step, from the sizes of the first two derivatives [1]_.

    .. [1] E. Hairer, S. P. Norsett, G. Wanner, *Solving ordinary differential equations I*, 1993,
       section II.4.
    """
    with no_grad():
        size, change = _norm(problem, states, states), _norm(problem, slope, states)
        h = 1e-6 if min(size, change) < 1e-5 else 0.01 * size / change
        if not h > 0:  # the slope is infinite or NaN
            return h
        step = direction * h
        moved = [x + step * k for x, k in zip(states, slope, strict=True)]
        difference = [b - a for a, b in zip(slope, slopes(t + step, moved), strict=True)]
        curvature = _norm(problem, difference, states) / h
        largest = max(change, curvature)
        second = max(1e-6, h * 1e-3) if largest <= 1e-15 else (0.01 / largest) ** 0.2
        return min(100 * h, second)


def _sum(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
