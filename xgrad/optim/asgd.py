"""ASGD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, check_number, penalized


class ASGD(Optimizer):
    r"""Stochastic gradient descent that also averages the parameters over its steps [1]_.

    With the gradient g of a parameter p, λ the weight decay, and t counting the steps of p:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        \eta &= \mathrm{lr} / (1 + \kappa\, \mathrm{lr}\, (t - 1))^\alpha,
            \quad \mu = 1 / \max(1, t - 1 - t_0) \\
        p &\gets (1 - \kappa\, \eta)\, p - \eta\, g \\
        a &\gets (1 - \mu)\, a + \mu\, p
        \end{align*}

    The average a is in the state, as ``optimizer.state[p]["ax"]``; it follows p until step `t0`.
    For averages of any optimizer's parameters, see `xgrad.optim.swa_utils`.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 0.01
        The learning rate.
    lambd : float, default 1e-4
        κ, the decay of the parameters and of the learning rate.
    alpha : float, default 0.75
        :math:`\alpha`, the power of the decay of the learning rate.
    t0 : float, default 1e6
        The step from which on parameters are averaged.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
    maximize : bool, default False
        Whether to maximize instead of minimize.
    **implementation
        PyTorch's choices of an implementation, False or None: see `Optimizer`.

    Raises
    ------
    TypeError, ValueError
        As for `Optimizer`, and if an option is out of range.

    References
    ----------
    .. [1] B. T. Polyak, A. B. Juditsky, "Acceleration of stochastic approximation by averaging",
       SIAM J. Control Optim. 30, 1992.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor(1.0, requires_grad=True)
    >>> optimizer = xgrad.optim.ASGD([x], lr=0.5, lambd=0.0, t0=0.0)
    >>> for slope in (1.0, 1.0, -1.0):
    ...     optimizer.zero_grad()
    ...     (slope * x).backward()
    ...     optimizer.step()
    >>> # with the mean of 0.5, 0 and 0.5, from step 2 on
    >>> x.item(), float(optimizer.state[x]["ax"])
    (0.5, 0.25)
    """

    elementwise = True
    required_state = frozenset({"step", "eta", "mu", "ax"})
    ranges = ("lr", "lambd", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        for key in ("alpha", "t0"):
            check_number("ASGD", key, options[key])

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr, lambd = options["lr"], options["lambd"]
        if not state:
            state["step"], state["eta"], state["mu"] = 0, lr, 1.0
            state["ax"] = xp.zeros_like(p)
        state["step"] += 1
        step, eta, mu, mean = state["step"], state["eta"], state["mu"], state["ax"]
        g = penalized(p, g, options)
        p *= 1 - lambd * eta
        p -= eta * g
        average(mean, p, 1 - mu)
        # the values of the next step, as in PyTorch's state
        state["eta"] = lr / (1 + lambd * lr * step) ** options["alpha"]
        state["mu"] = 1 / max(1, step - options["t0"])
        return p
