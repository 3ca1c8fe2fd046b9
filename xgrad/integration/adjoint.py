"""`odeint_adjoint`: solutions of differential equations, differentiated by the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from xgrad import ops
from xgrad.backend.device import batching
from xgrad.backend.recording import as_arrays
from xgrad.core.engine import run_backward
from xgrad.core.function import Function
from xgrad.core.graph import Edge
from xgrad.core.modes import is_grad_enabled, no_grad
from xgrad.core.tensor import Tensor, from_array, from_placement
from xgrad.integration.direct import Y, stacked
from xgrad.integration.problem import Problem, States
from xgrad.integration.solver import solve
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms.call import TransformCall
from xgrad.transforms.recomputation import blank_of


def odeint_adjoint(
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
    r"""Solve dy/dt = f(t, y), with derivatives by the adjoint equation.

    Only the solution at the given times is saved for backward, whatever the number of steps. The
    backward pass solves the equation of the gradient, together with the state, backwards in time
    [1]_.

    Parameters
    ----------
    f : callable
        As for `odeint`: takes the time, the state and `args`, and returns dy/dt. It may be a
        module.
    y0 : Tensor or containers of them
        The state at ``t[0]``: real tensors of one dtype and device.
    t : Tensor or list of float
        The times at which the solution is wanted, increasing or decreasing.
    args : tuple, default ()
        Further arguments of `f`.
    rtol, atol : float, optional
        As for `odeint`, for both passes. The backward pass also controls the errors of gradients.
    method : {"dopri5", "rk4", "heun2", "midpoint", "euler"}, default "dopri5"
        The method of both passes.
    options : dict, optional
        As for `odeint`.

    Returns
    -------
    Tensor or containers of them
        The solution in the containers of `y0`, with a first axis for the times.

    Raises
    ------
    TypeError
        As for `odeint`, and if a state is complex.
    ValueError, RuntimeError
        As for `odeint`; the backward pass may also raise RuntimeError, if the equation is stiff
        backwards in time.

    See Also
    --------
    odeint : The same with derivatives through the steps: exact for the computed solution.

    Notes
    -----
    .. math::

        \frac{d a}{d t} = -\left(\frac{\partial f}{\partial y}\right)^\top a,
        \quad \bar \theta
        = \int_{t_0}^{t_n} \left(\frac{\partial f}{\partial \theta}\right)^\top a\, dt

    :math:`a` is the gradient by the state, which grows by the gradient of the result at each of the
    times, and :math:`\theta` are the tensors that `f` uses.

    - Gradient for `y0`: :math:`a(t_0)`
    - Gradient for `t`: :math:`f(t_k, y_k) \cdot \bar y_k`, and for the first time
      :math:`-f(t_0, y_0) \cdot a`, before :math:`\bar y_0` is added
    - Gradient for `args`: :math:`\bar \theta`

    The gradients belong to the exact solution, to the tolerance of both passes. They are defined
    with respect to `y0`, `t`, tensors in `args`, and all tensors that `f` uses in its first call,
    such as the parameters of a module: none need be listed. Second derivatives go through the steps
    of the backward pass. `f` must compute the same when it is called again. In a `vmap`, transforms
    around it record each step, so that memory is saved for those inside it alone.

    References
    ----------
    .. [1] R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, "Neural ordinary differential
       equations", NeurIPS 2018.

    Examples
    --------
    >>> import xgrad
    >>> rate = xgrad.tensor(0.5, requires_grad=True)
    >>> times = xgrad.linspace(0.0, 2.0, 3)
    >>> y = xgrad.odeint_adjoint(lambda t, y: -rate * y, xgrad.asarray([1.0]), times)
    >>> y[2].sum().backward()  # the derivative of exp(-2 * rate)
    >>> rate.grad
    Tensor(-0.7357603)
    """
    problem = Problem("odeint_adjoint", f, y0, t, args, rtol, atol, method, options)
    if problem.states[0].dtype.kind == "c":
        raise TypeError(
            "odeint_adjoint: expected real states, got complex ones: use odeint, or real and"
            " imaginary parts"
        )
    batch = batching.get()
    if batch is not None:  # the solution may belong to the batch even if no argument does
        lifted = [batch.lift(x) if x.device.level < batch.level else x for x in problem.states]
        problem.states = lifted
    # transforms around a vmap record each op, as for `checkpoint`
    with no_grad() if batch is None else nullcontext():
        results = solve(problem, problem.slopes, problem.states, problem.times)
        arrays = stacked(results)
    if not is_grad_enabled():
        return rebuild(y0, arrays)  # type: ignore[no-any-return]
    states = problem.states
    tensors = [x for _, x in leaves(problem.args) if _is_floating(x)]
    adjoint = _Adjoint(problem)
    adjoint.edges = adjoint.call(problem.times[0].detach(), [*states, *tensors]).outer_edges()
    # Tensors without values represent the tensors that the function uses besides its arguments.
    others = [from_placement(blank_of(edge), edge.placement, edge) for edge in adjoint.edges]
    outs = _solution(
        *states,
        problem.times,
        *tensors,
        *others,
        values=[tuple([x._data for x in arrays])],
        adjoint=adjoint,
    )
    return rebuild(y0, outs)  # type: ignore[no-any-return]


class _Adjoint:
    """The backward pass of a solved problem, without the tensors that nodes save."""

    edges: list[Edge]  # of tensors that the function uses besides its arguments

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.device, self.count = problem.states[0].device, len(problem.states)
        values = [x for _, x in leaves(problem.args)]
        self.other_args = [None if _is_floating(x) else x for x in values]
        self.arg_containers = rebuild(problem.args, range(len(values)))
        problem.states, problem.args = [], ()

    def call(self, t: Tensor, inputs: Sequence[Tensor]) -> TransformCall:
        """Call the function with states and floating arguments, and return the call."""

        def flat(tensors: list[Tensor]) -> States:
            states, rest = tensors[: self.count], iter(tensors[self.count :])
            args = [next(rest) if x is None else x for x in self.other_args]
            self.problem.args = rebuild(self.arg_containers, args)
            try:
                return self.problem.slopes(t, states)
            finally:
                self.problem.args = ()

        return TransformCall("odeint_adjoint", flat, (list(inputs),), {}, 0, False)

    def gradients(
        self, inputs: list[Tensor], outs: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Return the gradients of states, times, floating arguments and other edges.

        `gradients` are the gradients of the solutions `outs` at all times.
        """
        n, times, args = self.count, inputs[self.count], inputs[self.count + 1 :]
        last = times.shape[0] - 1
        a = [g[last, ...] for g in gradients]
        weights = [ops.zeros_like(x) for x in args]
        weights += [
            ops.zeros(tuple(edge.shape), dtype=edge.placement.dtype, device=edge.placement.device)
            for edge in self.edges
        ]
        by_time: list[Tensor] = []

        def slopes(t: Tensor, states: Sequence[Tensor]) -> States:
            return self._backward_slopes(t, states[:n], states[n : 2 * n], args)

        for i in range(last, 0, -1):
            y = [out[i, ...] for out in outs]
            by_time.append(self._along(times[i], y, [g[i, ...] for g in gradients], args))
            ends = ops.stack([times[i], times[i - 1]])
            after = solve(self.problem, slopes, [*y, *a, *weights], ends)[-1]
            a, weights = after[n : 2 * n], after[2 * n :]
            if i == 1:
                y0 = [out[0, ...] for out in outs]
                by_time.append(-self._along(times[0], y0, a, args))
            a = [x + g[i - 1, ...] for x, g in zip(a, gradients, strict=True)]
        time_gradient = ops.stack(by_time[::-1]) if by_time else ops.zeros_like(times)
        return [*a, time_gradient, *weights]

    def _backward_slopes(
        self, t: Tensor, y: Sequence[Tensor], a: Sequence[Tensor], args: Sequence[Tensor]
    ) -> States:
        """Return the slopes of the state, of its gradient and of the gradients of all else."""
        recording = is_grad_enabled()
        call = self.call(t, [*y, *args])
        start: dict[Edge, Tensor] = {}
        for out, g in zip(call.outputs, a, strict=True):
            if (edge := out._edge) is not None:
                start[edge] = start[edge] - g if edge in start else -g
        wanted: list[Any] = [*(x._edge for x in call.inputs), *self.edges]
        found = run_backward(
            start, set(wanted), retain_graph=recording, create_graph=recording, stop=True
        )
        products = [found.get(edge) for edge in wanted]
        likes = [(x.shape, x._placement) for x in call.inputs]
        likes += [(tuple(edge.shape), edge.placement) for edge in self.edges]
        slopes = [
            ops.zeros(shape, dtype=placement.dtype, device=placement.device) if g is None else g
            for g, (shape, placement) in zip(products, likes, strict=True)
        ]
        return [*map(call.visible, call.outputs), *slopes]

    def _along(
        self, t: Tensor, y: Sequence[Tensor], a: Sequence[Tensor], args: Sequence[Tensor]
    ) -> Tensor:
        """Return the product of a gradient with dy/dt."""
        call = self.call(t, [*y, *args])
        slopes = map(call.visible, call.outputs)
        terms = [ops.sum(g * slope) for g, slope in zip(a, slopes, strict=True)]
        return sum(terms[1:], terms[0])


def _is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.kind in "fc"


class _Solution(Function):
    """The solution of a problem that has been solved, as a function of its inputs.

    Further inputs are tensors that represent other edges.
    """

    name, holomorphic, own_rule = "odeint_adjoint", False, False

    @staticmethod
    def forward(xp: Any, *arrays: Any, values: list[Any], adjoint: _Adjoint) -> Any:
        return values.pop()

    @staticmethod
    def backward(xp: Any, g: Any, arrays: Any, out: Any, adjoint: _Adjoint) -> Any:
        inputs = arrays[: len(arrays) - len(adjoint.edges)]
        if any(isinstance(x, Tensor) for x in (*g, *inputs)):  # in a recorded pass
            return adjoint.gradients(list(inputs), out, g)
        tensors = [
            [from_array(x, adjoint.device) for x in part] for part in as_arrays((inputs, out, g))
        ]
        found = adjoint.gradients(*tensors)
        return [None if x is None else x._data for x in found]


_solution = _Solution()
