"""L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Never, TypeVar, overload

from xgrad.backend.recording import refuse
from xgrad.core.arguments import as_tensor
from xgrad.core.modes import enable_grad, no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.utils import parameters_to_vector, vector_to_parameters
from xgrad.ops import abs, asarray, astype, max, sum, vecdot, zeros_like
from xgrad.optim.flat import Update
from xgrad.optim.line_search import Point, strong_wolfe
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.support import trees
from xgrad.support.hints import shown

# Pairs of steps and gradient changes with less curvature are skipped, which keeps the approximation
# positive definite.
_CURVATURE = 1e-10
_LINE_TOLERANCE = 1e-9  # for the line search; not an option
R = TypeVar("R")
_MEMORY = frozenset("n_iter func_evals d t old_dirs old_stps ro H_diag prev_flat_grad".split())


class LBFGS(Optimizer):
    r"""Quasi-Newton steps from the gradients of the last steps [1]_, for problems without noise.

    With the gradient g of the parameters p, and an approximation H of the inverse Hessian, built
    from the last steps s and gradient changes y:

    .. math::

        \begin{align*}
        p &\gets p - t\, H g \\
        H &\gets (I - \rho\, s y^\top)\, H\, (I - \rho\, y s^\top) + \rho\, s s^\top, \quad
            \rho = 1 / (y^\top s)
        \end{align*}

    An iteration starts from :math:`H = y^\top s / (y^\top y)` of the last step, and applies the
    second line for each step that is kept. The step size t is `lr`, or what the line search finds.

    A step of the optimizer takes a function that computes the loss, and calls it several times::

        def closure():
            optimizer.zero_grad()
            loss = compute_loss()
            loss.backward()
            return loss

        optimizer.step(closure)

    Parameters
    ----------
    params : iterable of Tensor
        The parameters, in one group, on one device.
    lr : float, default 1
        The step size; with a line search, the first size that it tries.
    max_iter : int, default 20
        The maximum number of iterations in a step.
    max_eval : int, optional
        The maximum number of calls of the closure in a step; by default 5/4 `max_iter`.
    tolerance_grad : float, default 1e-7
        A step ends if the largest component of the gradient is at most this.
    tolerance_change : float, default 1e-9
        A step ends if the change of the loss or of the parameters is at most this.
    history_size : int, default 100
        The number of steps and gradient changes to keep, each as large as the parameters.
    line_search_fn : {None, "strong_wolfe"}, default None
        The line search; None takes steps of size `lr`.

    Raises
    ------
    TypeError, ValueError
        As for `Optimizer`, and if an option is out of range, there are several groups, or a step
        gets no closure.

    Notes
    -----
    The state has PyTorch's form, under the first parameter. The number of iterations depends on
    values, which have to be read: a step within `xgrad.capture` runs eagerly, with a warning.

    References
    ----------
    .. [1] J. Nocedal, S. J. Wright, "Numerical optimization", 2006, algorithm 7.5.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = xgrad.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     loss = optimizer.step(closure)
    >>> xgrad.round(100 * x.detach())
    Tensor([100., 100.])
    """

    ranges = ("lr", "tolerance_grad", "tolerance_change")

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        self._memory: dict[str, Any] = {}
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "tolerance_grad": tolerance_grad,
            "history_size": history_size,
        }
        if max_eval is None and isinstance(max_iter, int):
            max_eval = max_iter * 5 // 4
        defaults["max_eval"] = max_eval
        super().__init__(
            params,
            defaults | {"tolerance_change": tolerance_change, "line_search_fn": line_search_fn},
        )

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        for key in ("max_iter", "max_eval", "history_size"):
            if not isinstance(options[key], int) or options[key] < 1:
                raise ValueError(
                    f"LBFGS: expected {key} to be an int above 0, got {shown(options[key])}"
                )
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(
                "LBFGS: expected line_search_fn to be None or 'strong_wolfe', got"
                f" {shown(options['line_search_fn'])}"
            )

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add the group of parameters; raise a ValueError if there already is one."""
        if self.param_groups:
            raise ValueError(
                "LBFGS: expected one group of parameters, got two: give all parameters one list"
            )
        super().add_param_group(group)

    @overload
    def step(self, closure: None = None) -> Never: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` iterations, and return the first result of the closure."""
        if closure is None:
            raise TypeError(
                "LBFGS.step: expected a closure that computes the loss and its gradients, got none"
            )
        refuse("LBFGS takes steps that depend on values: capture the closure, not the step")
        (options,) = self.param_groups
        memory, lr = self._memory, options["lr"]
        with no_grad():
            loss, value, gradient = self._evaluate(closure)
            evaluations = 1
            for iteration in range(1, options["max_iter"] + 1):
                if float(max(abs(gradient))) <= options["tolerance_grad"]:
                    break
                direction = self._direction(gradient, options["history_size"])
                slope, size = float(vecdot(gradient, direction)), float(max(abs(direction)))
                t = min(1.0, 1 / float(sum(abs(gradient)))) * lr if memory["n_iter"] == 1 else lr
                memory |= {"d": direction, "t": t, "prev_flat_grad": gradient}
                if slope > -options["tolerance_change"]:
                    break
                x, before = self._vector(), value
                if options["line_search_fn"]:
                    at = partial(self._point, closure, x, direction)
                    start = Point(0.0, value, gradient, slope)
                    left = options["max_eval"] - evaluations
                    (t, value, gradient, _), count = strong_wolfe(
                        at, start, t, size, _LINE_TOLERANCE, left
                    )
                    evaluations += count
                    memory["t"] = t
                self._assign(x + t * direction)
                if not options["line_search_fn"] and iteration < options["max_iter"]:
                    _, value, gradient = self._evaluate(closure)
                    evaluations += 1
                change = min(size * math.fabs(t), math.fabs(value - before))
                if evaluations >= options["max_eval"] or change <= options["tolerance_change"]:
                    break
            memory["func_evals"] = memory.get("func_evals", 0) + evaluations
        return loss

    def apply_update(self, update: Update) -> None:
        """Raise a TypeError: a step is not a function of one gradient."""
        raise TypeError(
            "LBFGS: expected a call of step(closure), got one of GradScaler: scale no loss"
        )

    def _direction(self, gradient: Tensor, history_size: int) -> Tensor:
        """Return the direction of the next iteration, and add the last one to the history."""
        memory = self._memory
        if "n_iter" not in memory:
            memory |= {"n_iter": 1, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
            memory["func_evals"] = 0  # also in the state after a closure raised an error
            return -gradient
        memory["n_iter"] += 1
        change, step = gradient - memory["prev_flat_grad"], memory["t"] * memory["d"]
        curvature = vecdot(change, step)
        history = memory["old_dirs"], memory["old_stps"], memory["ro"]
        if float(curvature) > _CURVATURE:
            for part, new in zip(history, (change, step, 1 / curvature), strict=True):
                part.append(new)
                del part[:-history_size]
            memory["H_diag"] = curvature / vecdot(change, change)
        direction: Tensor = -gradient
        factors: list[Tensor] = []
        for change, step, inverse in reversed(list(zip(*history, strict=True))):
            factors.append(inverse * vecdot(step, direction))
            direction = direction - factors[-1] * change
        direction = direction * memory["H_diag"]
        for change, step, inverse in zip(*history, strict=True):
            direction = direction + step * (factors.pop() - inverse * vecdot(change, direction))
        return direction

    def _point(self, closure: Callable[[], Any], x: Tensor, direction: Tensor, t: float) -> Point:
        """Return the point at step size `t` along a direction."""
        self._assign(x + t * direction)
        _, value, gradient = self._evaluate(closure)
        return Point(t, value, gradient, float(vecdot(gradient, direction)))

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float, Tensor]:
        """Return the result of the closure, its value, and all gradients as one vector."""
        with enable_grad():
            loss = closure()
        grads = [
            zeros_like(p) if p.grad is None else p.grad for p in self.param_groups[0]["params"]
        ]
        return loss, float(loss), parameters_to_vector(grads)

    def _vector(self) -> Tensor:
        """Return all parameters as one vector."""
        return parameters_to_vector(self.param_groups[0]["params"])

    def _assign(self, vector: Tensor) -> None:
        """Set all parameters from one vector."""
        vector_to_parameters(vector, self.param_groups[0]["params"])

    def is_packed(self) -> bool:
        """Return True: nothing is packed, and a captured step may be traced."""
        return True

    @property
    def state(self) -> Mapping[Tensor, Mapping[str, Any]]:
        """The state, read-only, under the first parameter."""
        return MappingProxyType({self.param_groups[0]["params"][0]: MappingProxyType(self._memory)})

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue later: see `Optimizer.state_dict`."""
        return super().state_dict() | {
            "state": (
                {0: _mapped(lambda x: asarray(x, copy=True), self._memory)} if self._memory else {}
            )
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a result of `state_dict`: see `Optimizer.load_state_dict`."""
        memory, title = {}, "LBFGS.load_state_dict"
        if isinstance(state_dict, Mapping) and isinstance(state_dict.get("state"), Mapping):
            memory, state_dict = dict(state_dict["state"].get(0, {})), {**state_dict, "state": {}}
        if memory and not memory.keys() >= _MEMORY:
            raise ValueError(
                f"{title}: expected {sorted(_MEMORY)} in the state of parameter 0, got"
                f" {sorted(memory)}"
            )
        first, expected = self.param_groups[0]["params"][0], self._vector().shape
        if memory and memory["d"].shape != expected:
            raise ValueError(
                f"{title}: expected vectors of shape {expected} in the state, got"
                f" {memory['d'].shape}"
            )
        memory = {key: memory[key] for key in memory if key in _MEMORY}  # PyTorch has more
        memory = _mapped(lambda x: astype(x.detach().to(first.device), first.dtype), memory)
        super().load_state_dict(state_dict)
        self._memory = memory


def _mapped(function: Callable[[Tensor], Tensor], memory: dict[str, Any]) -> dict[str, Any]:
    """Return the state with a function applied to each tensor."""
    values = [
        function(as_tensor("LBFGS", "state", x)) if hasattr(x, "shape") else x
        for _, x in trees.leaves(memory)
    ]
    mapped: dict[str, Any] = trees.rebuild(memory, values)
    return mapped
