"""SciPy's numerical methods: integrals, roots and minima, derivatives, interpolation, matrices."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from scipy import constants, differentiate, integrate, interpolate, linalg, optimize
from scipy.cluster import vq
from scipy.optimize import elementwise

from benchmarks.reach.path import COMPILED, MASKED, NUMPY, exactly, normal, path, positive, uniform

NDARRAY = "it needs the array method view, which the standard lacks"

X, Y = uniform(0, 1, 9), normal(9)
GRID, LOW, HIGH = exactly([0.0, 0.3, 0.8, 1.0, 1.7]), exactly([0.0, 0.1]), exactly([1.0, 1.3])


def wave(x: Any, a: Any) -> Any:
    """Return the values of a smooth function of as many dimensions as `x` has columns."""
    xp = array_namespace(x)
    return xp.exp(-(x**2)) * xp.cos(a * x)


def volume(x: Any, a: Any) -> Any:
    """Return the values of a function at points in the plane, one row each."""
    xp = array_namespace(x)
    return xp.sin(a * xp.sum(x, axis=-1)) + xp.prod(x, axis=-1)


def cubature(rule: str) -> Any:
    def call(a: Any, low: Any, high: Any) -> Any:
        return integrate.cubature(volume, low, high, args=(a,), rule=rule, rtol=1e-6).estimate

    return call


def cubic(x: Any, c: Any) -> Any:
    return x**3 + x - c


def bowl(x: Any, c: Any) -> Any:
    return (x - c) ** 2 + 0.1 * (x - c) ** 4


def like(x: Any, value: float) -> Any:
    return array_namespace(x).full_like(x, value)


def root(c: Any) -> Any:
    return elementwise.find_root(cubic, (like(c, -3.0), like(c, 3.0)), args=(c,))


def least(c: Any) -> Any:
    return elementwise.find_minimum(bowl, (like(c, -4.0), like(c, 0.1), like(c, 4.0)), args=(c,))


def rosenbrock(x: Any) -> Any:
    return optimize.rosen(x)


def spread(x: Any) -> Any:
    xp = array_namespace(x)
    return xp.stack([x[0] ** 2 * x[1], xp.sin(x[0]) + x[1] ** 3])


def infinite(a: Any) -> tuple[Any, Any]:
    xp = array_namespace(a)
    return tuple(xp.full((2,), sign * float("inf"), dtype=a.dtype) for sign in (-1, 1))


def axes(v: Any) -> tuple[Any, ...]:
    xp = array_namespace(v)
    return tuple(xp.arange(n, dtype=v.dtype) for n in v.shape)


PATHS = [
    # Integrals of samples
    path("integrate.trapezoid", lambda y, x: integrate.trapezoid(y, x), normal(5), GRID),
    path(
        "integrate.trapezoid, dx and axis",
        lambda y: integrate.trapezoid(y, dx=0.3, axis=0),
        normal(5, 3),
    ),
    path(
        "integrate.cumulative_trapezoid",
        lambda y, x: integrate.cumulative_trapezoid(y, x),
        normal(5),
        GRID,
    ),
    path(
        "integrate.cumulative_trapezoid, initial",
        lambda y: integrate.cumulative_trapezoid(y, dx=0.5, initial=0),
        normal(5),
    ),
    path("integrate.simpson", lambda y, x: integrate.simpson(y, x=x), normal(5), GRID, stops=NUMPY),
    path(
        "integrate.cumulative_simpson",
        lambda y, x: integrate.cumulative_simpson(y, x=x),
        normal(5),
        GRID,
    ),
    path(
        "integrate.cumulative_simpson, dx",
        lambda y: integrate.cumulative_simpson(y, dx=0.5, axis=0),
        normal(5, 2),
    ),
    path("integrate.romb", integrate.romb, Y),
    # Integrals of functions
    *(
        path(f"integrate.cubature, {rule}", cubature(rule), positive(), LOW, HIGH)
        for rule in ("gk21", "gk15", "gauss-kronrod", "genz-malik")
    ),
    path(
        "integrate.cubature, infinite limits",
        lambda a: (
            integrate.cubature(
                lambda x: array_namespace(x).exp(-a * array_namespace(x).sum(x**2, axis=-1)),
                *infinite(a),
            ).estimate
        ),
        positive(),
    ),
    path(
        "integrate.tanhsinh, parameters",
        lambda a: integrate.tanhsinh(wave, 0.0 * a, 0.0 * a + 2.0, args=(a,)).integral,
        positive(3),
    ),
    path(
        "integrate.tanhsinh, limits",
        lambda low, high, a: integrate.tanhsinh(wave, low, high, args=(a,)).integral,
        uniform(-1, 0, 3),
        positive(3),
        positive(3),
    ),
    path(
        "integrate.tanhsinh, infinite limits",
        lambda a: (
            integrate.tanhsinh(
                wave, like(a, -float("inf")), like(a, float("inf")), args=(a,)
            ).integral
        ),
        positive(3),
        stops=MASKED,
    ),
    path(
        "integrate.tanhsinh, logarithms",
        lambda a: (
            integrate.tanhsinh(
                lambda x, a: -a * x**2, like(a, -1.0), like(a, 2.0), args=(a,), log=True
            ).integral
        ),
        positive(3),
    ),
    path(
        "integrate.nsum",
        lambda a: (
            integrate.nsum(
                lambda k, a: 1 / (k + a) ** 3, like(a, 1.0), like(a, float("inf")), args=(a,)
            ).sum
        ),
        positive(3),
        stops=MASKED,
    ),
    path(
        "integrate.nsum, finite",
        lambda a: (
            integrate.nsum(lambda k, a: a**k / (k + 1), like(a, 1.0), like(a, 20.0), args=(a,)).sum
        ),
        uniform(0.1, 0.8, 3),
    ),
    # Roots, minima and test functions
    path("optimize.elementwise.find_root", lambda c: root(c).x, normal(4)),
    path(
        "optimize.elementwise.find_root, value there",
        lambda c, d: cubic(root(c).x, d),
        normal(4),
        normal(4),
    ),
    path("optimize.elementwise.find_minimum", lambda c: least(c).x, uniform(-1, 1, 4)),
    path(
        "optimize.elementwise.find_minimum, value",
        lambda c, d: bowl(least(c).x, d),
        uniform(-1, 1, 4),
        uniform(2, 3, 4),
    ),
    path(
        "optimize.elementwise.bracket_root",
        lambda a: elementwise.bracket_root(cubic, a, a + 0.5, args=(like(a, 7.0),)).bracket,
        uniform(-1, 0, 3),
    ),
    path(
        "optimize.elementwise.bracket_minimum",
        lambda a: elementwise.bracket_minimum(bowl, a, args=(like(a, 7.0),)).bracket,
        uniform(-1, 0, 3),
    ),
    path("optimize.rosen", optimize.rosen, normal(5)),
    path("optimize.rosen_der", optimize.rosen_der, normal(5)),
    path("optimize.rosen_hess", optimize.rosen_hess, normal(5)),
    path("optimize.rosen_hess_prod", optimize.rosen_hess_prod, normal(5), normal(5)),
    # Finite differences
    path(
        "differentiate.derivative, where",
        lambda x, a: differentiate.derivative(wave, x, args=(a,)).df,
        normal(4),
        positive(4),
    ),
    path(
        "differentiate.derivative, forward",
        lambda x, a: differentiate.derivative(wave, x, args=(a,), step_direction=1).df,
        normal(4),
        positive(4),
    ),
    path("differentiate.jacobian", lambda x: differentiate.jacobian(spread, x).df, normal(2)),
    path("differentiate.hessian", lambda x: differentiate.hessian(rosenbrock, x).ddf, normal(3)),
    # Interpolation
    *(
        path(
            f"interpolate.RBFInterpolator, {kernel}",
            lambda y, d, x, k=kernel: interpolate.RBFInterpolator(y, d, kernel=k, epsilon=1.0)(x),
            normal(8, 2),
            normal(8),
            normal(4, 2),
            stops=NDARRAY,
        )
        for kernel in (
            "thin_plate_spline",
            "cubic",
            "gaussian",
            "multiquadric",
            "inverse_quadratic",
        )
    ),
    path(
        "interpolate.RegularGridInterpolator",
        lambda v, x: interpolate.RegularGridInterpolator(axes(v), v)(x),
        normal(3, 4),
        uniform(0.1, 1.9, 5, 2),
        stops=COMPILED,
    ),
    path(
        "interpolate.PchipInterpolator",
        lambda y, x: interpolate.PchipInterpolator(array_namespace(y).arange(5, dtype=y.dtype), y)(
            x
        ),
        normal(5),
        uniform(0.1, 3.9, 4),
        stops=NUMPY,
    ),
    path(
        "interpolate.CubicSpline",
        lambda y, x: interpolate.CubicSpline(array_namespace(y).arange(5, dtype=y.dtype), y)(x),
        normal(5),
        uniform(0.1, 3.9, 4),
        stops=COMPILED,
    ),
    # Matrices and others
    path(
        "linalg.orthogonal_procrustes",
        lambda a, b: linalg.orthogonal_procrustes(a, b)[0],
        normal(5, 3),
        normal(5, 3),
    ),
    path(
        "linalg.orthogonal_procrustes, scale",
        lambda a, b: linalg.orthogonal_procrustes(a, b)[1],
        normal(5, 3),
        normal(5, 3),
    ),
    path("linalg.block_diag", linalg.block_diag, normal(2, 2), normal(1, 3)),
    path("linalg.fiedler", linalg.fiedler, normal(4)),
    path("cluster.vq.whiten", vq.whiten, normal(6, 3)),
    path(
        "cluster.vq.vq, distances",
        lambda x, c: vq.vq(x, c)[1],
        normal(6, 3),
        normal(2, 3),
        stops=COMPILED,
    ),
    path(
        "constants.convert_temperature",
        lambda t: constants.convert_temperature(t, "Celsius", "Fahrenheit"),
        X,
    ),
    path("constants.lambda2nu", lambda x: constants.lambda2nu(x) / 1e8, positive(4)),
    path("constants.nu2lambda", lambda x: constants.nu2lambda(x) / 1e8, positive(4)),
]
