"""Adamax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, penalized


class Adamax(Optimizer):
    r"""Adam with a running maximum of the gradient in place of its second moment [1]_.

    With the gradient g of a parameter p, λ the weight decay, and t counting the steps of p:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        m &\gets \beta_1\, m + (1 - \beta_1)\, g \\
        u &\gets \max(\beta_2\, u, |g| + \varepsilon) \\
        p &\gets p - \frac{\mathrm{lr}}{1 - \beta_1^t} \cdot \frac{m}{u}
        \end{align*}

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 2e-3
        The learning rate.
    betas : tuple of float, default (0.9, 0.999)
        β1 and β2, the decay rates of the moments.
    eps : float, default 1e-8
        ε.
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
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm
       2; ε as in PyTorch.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.Adamax([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([450.,  49.])
    """

    elementwise = True
    required_state = frozenset({"step", "exp_avg", "exp_inf"})
    ranges = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        beta1, beta2 = options["betas"]
        if not state:
            state["step"] = 0
            state["exp_avg"] = xp.zeros_like(p)
            state["exp_inf"] = xp.zeros_like(p)
        state["step"] += 1
        g = penalized(p, g, options)
        m = state["exp_avg"]
        average(m, g, beta1)
        state["exp_inf"] = largest = xp.maximum(
            beta2 * state["exp_inf"], xp.abs(g) + options["eps"]
        )
        p -= options["lr"] / (1 - beta1 ** state["step"]) * (m / largest)
        return p
