"""Coefficients of explicit Runge-Kutta methods."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """An explicit Runge-Kutta method: its Butcher tableau, and more if it controls its steps.

    Attributes
    ----------
    nodes : tuple of float
        The times of the stages, as parts of a step.
    weights : tuple of tuple of float
        For each stage after the first, the weights of the slopes before it.
    solution : tuple of float
        The weights of the slopes in the step.
    error : tuple of float
        The weights of the slopes in the estimate of the error; empty for a fixed step.
    interpolation : tuple of tuple of float
        For each slope, the coefficients of its weight within a step: of the powers 1 to 4 of the
        part of the step.
    """

    nodes: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    solution: tuple[float, ...]
    error: tuple[float, ...] = ()
    interpolation: tuple[tuple[float, ...], ...] = ()


#: J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", Journal of
#: Computational and Applied Mathematics 6, 1980. Its interpolation of order 4 is by L. F. Shampine,
#: "Some practical Runge-Kutta formulas", Mathematics of Computation 46, 1986. The last slope of a
#: step is the first of the next one.
_DOPRI5 = Method(
    nodes=(0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1),
    weights=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    solution=(35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
    error=(71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    interpolation=(
        (
            1,
            -8048581381 / 2820520608,
            8663915743 / 2820520608,
            -12715105075 / 11282082432,
        ),
        (0, 0, 0, 0),
        (
            0,
            131558114200 / 32700410799,
            -68118460800 / 10900136933,
            87487479700 / 32700410799,
        ),
        (0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (
            0,
            127303824393 / 49829197408,
            -318862633887 / 49829197408,
            701980252875 / 199316789632,
        ),
        (0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

METHODS = {
    "dopri5": _DOPRI5,
    "rk4": Method(
        nodes=(0, 1 / 2, 1 / 2, 1),
        weights=((1 / 2,), (0, 1 / 2), (0, 0, 1)),
        solution=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    ),
    "heun2": Method(nodes=(0, 1), weights=((1,),), solution=(1 / 2, 1 / 2)),
    "midpoint": Method(nodes=(0, 1 / 2), weights=((1 / 2,),), solution=(0, 1)),
    "euler": Method(nodes=(0,), weights=(), solution=(1,)),
}
