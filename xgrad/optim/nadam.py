"""NAdam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, penalized


class NAdam(Optimizer):
    r"""Adam with Nesterov's momentum [1]_.

    With the gradient g of a parameter p, λ the weight decay, ψ the momentum decay, and t counting
    the steps of p:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        m &\gets \beta_1\, m + (1 - \beta_1)\, g \\
        v &\gets \beta_2\, v + (1 - \beta_2)\, g^2 \\
        \mu_t &= \beta_1 (1 - \tfrac{1}{2}\, 0.96^{t \psi}) \\
        \hat m &= \frac{\mu_{t+1}\, m}{1 - \prod_{i=1}^{t+1} \mu_i}
            + \frac{(1 - \mu_t)\, g}{1 - \prod_{i=1}^t \mu_i},
            \quad \hat v = \frac{v}{1 - \beta_2^t} \\
        p &\gets p - \mathrm{lr}\, \hat m / (\sqrt{\hat v} + \varepsilon)
        \end{align*}

    With `decoupled_weight_decay`, the first line is
    :math:`p \gets (1 - \mathrm{lr}\, \lambda)\, p`.

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
    momentum_decay : float, default 4e-3
        ψ.
    decoupled_weight_decay : bool, default False
        Whether the weight decay is decoupled, as in `AdamW`.
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
    .. [1] T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016, algorithm 2.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.NAdam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([447.,  52.])
    """

    elementwise = True
    required_state = frozenset({"step", "mu_product", "exp_avg", "exp_avg_sq"})
    ranges = ("lr", "betas", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
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
        decays = {
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults | decays, implementation)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr, (beta1, beta2), psi = options["lr"], options["betas"], options["momentum_decay"]
        if not state:
            state["step"], state["mu_product"] = 0, 1.0
            state["exp_avg"], state["exp_avg_sq"] = xp.zeros_like(p), xp.zeros_like(p)
        state["step"] += 1
        step = state["step"]
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * psi)) for t in (step, step + 1))
        state["mu_product"] *= mu
        product = state["mu_product"]
        g = penalized(p, g, options)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        average(m, g, beta1)
        average(v, g * g, beta2)
        root = (1 - beta2**step) ** 0.5  # √v̂ = √v / root
        mean = (following / (1 - product * following)) * m + ((1 - mu) / (1 - product)) * g
        p -= (lr * root) * (mean / (xp.sqrt(v) + options["eps"] * root))
        return p
