"""`odeint`: solutions of differential equations, differentiated through their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xgrad import ops
from xgrad.core.tensor import Tensor
from xgrad.integration.problem import Problem, States
from xgrad.integration.solver import solve
from xgrad.support.trees import rebuild

#: The state: a tensor, or containers of tensors.
Y = TypeVar("Y")


def odeint(
    f: Callable[[Tensor, Y], Y] | Callable[..., Y],
    y0: Y,
    t: Tensor | Sequence[float],
    *,
    args: tuple[Any, ...] = (),
    rtol: float | None = None,
    atol: float | None = None,
    method: str = "dopri5",
    options: dict[str, Any] | None = None,
) -> Y:
    r"""Solve dy/dt = f(t, y), with derivatives through the steps of the method.

    Parameters
    ----------
    f : callable
        Takes the time, of shape (), the state, and `args`, and returns dy/dt in the containers of
        the state. It may be a module.
    y0 : Tensor or containers of them
        The state at ``t[0]``: floating tensors of one dtype and device.
    t : Tensor or list of float
        The times at which the solution is wanted, increasing or decreasing.
    args : tuple, default ()
        Further arguments of `f`.
    rtol, atol : float, optional
        The tolerated error of a step: the root mean square of the errors, each divided by ``atol +
        rtol * abs(y)``, is at most 1. By default 1e-7 and 1e-9 in float64, 1e-5 and 1e-6 in
        float32. Methods of fixed steps ignore them.
    method : {"dopri5", "rk4", "heun2", "midpoint", "euler"}, default "dopri5"
        The method of Dormand and Prince, of order 5 with steps of controlled size [1]_, or one of
        fixed steps, of order 4, 2, 2 and 1.
    options : dict, optional
        For "dopri5", ``"first_step"``, the size of the first step, and ``"max_num_steps"``, by
        default 100 000. For the others ``"steps"``, the number of steps between two times, by
        default 1.

    Returns
    -------
    Tensor or containers of them
        The solution in the containers of `y0`, with a first axis for the times.

    Raises
    ------
    TypeError
        If an argument, or the result of `f`, has the wrong type or dtype.
    ValueError
        If the times are not monotonic, an option is invalid, or shapes do not match. The order of
        the times is not checked on ``cuda``.
    RuntimeError
        If the steps become too small or too many: the equation may be stiff.

    See Also
    --------
    odeint_adjoint : The same with less memory: derivatives by the adjoint equation.

    Notes
    -----
    .. math:: y(t_k) = y_0 + \int_{t_0}^{t_k} f(t, y(t))\, dt

    The result has derivatives with respect to `y0`, `t`, `args` and all tensors that `f` uses, to
    any order. They belong to the computed solution: the memory grows with the number of steps.
    The sizes of steps count as constants. Between steps, "dopri5" interpolates with order 4.

    Methods of fixed steps read no values, and can be captured and mapped by `vmap`. "dopri5" reads
    the error of each step: in a captured step there is a CaptureWarning, "the value of a tensor is
    read", and the step runs eagerly; in a `vmap` it raises TypeError.

    The arguments have the order of SciPy's ``solve_ivp`` and of torchdiffeq; JAX's ``odeint`` calls
    ``f(y, t, *args)``.

    References
    ----------
    .. [1] J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", Journal of
       Computational and Applied Mathematics 6, 1980.

    Examples
    --------
    >>> import xgrad
    >>> rate = xgrad.tensor(0.5, requires_grad=True)
    >>> y = xgrad.odeint(lambda t, y: -rate * y, xgrad.asarray([1.0]), [0.0, 1.0, 2.0])
    >>> y.detach().reshape(-1)
    Tensor([1.        , 0.6065292 , 0.36788037])
    >>> y[2].sum().backward()  # the derivative of exp(-2 * rate)
    >>> rate.grad
    Tensor(-0.7357474)
    """
    problem = Problem("odeint", f, y0, t, args, rtol, atol, method, options)
    results = solve(problem, problem.slopes, problem.states, problem.times)
    return rebuild(y0, stacked(results))  # type: ignore[no-any-return]


def stacked(results: list[States]) -> States:
    """Return each part of the states, stacked along the times."""
    return [ops.stack(list(column)) for column in zip(*results, strict=True)]
